// The filter: which codes of a block may lie within the current bound?
//
// Costs are floored to 8 bits on the scale of the bound, looked up by nibble and added with saturation.
// Floors make every sum a true lower bound, so a code that fails can be forgotten without another look.
//
// A byte is too coarse for the sum of a long code. There every group of planes is summed in bytes on a scale of its
// own, multiplied by its factor and added in 16 bits; and since the heaviest planes come first, a block is left as
// soon as all its codes are beyond the bound: the rest of it is never read.
#pragma once
#include "layout.hpp"

namespace bitscale {

constexpr uint32_t kBatch = 4;  // queries that share one pass over the codes

// Byte tables of one query: planes in pairs; a pair holds its low-nibble tables, then its high-nibble ones,
// 2 planes x 32 bytes each (16 entries, twice, as the shuffle wants them).
constexpr size_t kPairBytes = 128;
inline size_t filter_bytes(uint32_t planes) { return size_t{(planes + 1) / 2} * kPairBytes; }

constexpr uint32_t kShort = 16;  // planes up to which a code's sum is held in one byte
constexpr uint32_t kGroup = 4;   // planes of a long code that share a scale
constexpr uint32_t kCountedGroup = 8;  // the same where differing bits are counted: one floor a plane, not two

// A long query as the filter takes it; its tables are laid out as above. Where bits are counted, each of a plane's
// bytes in the first half of a pair is the query's own, and in the second half stand the costs of 0 to 8 bits.
struct LongTables {
  const uint8_t* tables;
  const uint8_t* factors;  // one a group, at most kMaxFactor
  uint16_t threshold;
};
// A long query whose bits all cost the same. Of each pair of planes the query's own bytes, 32 times each; behind them
// 64 bytes that say which bits of the last pair count.
struct PlainQuery {
  const uint8_t* code;
  uint32_t pairs;
  bool odd;        // the last pair is one plane
  uint16_t limit;  // differing bits
};

// The blocks of long codes to go through: `n` in a row, or those listed.
struct Walk {
  const uint8_t* blocks;
  uint64_t n, stride;
  const uint32_t* listed;  // null: the first n
  const uint8_t* operator[](uint64_t i) const { return blocks + (listed ? listed[i] : i) * stride; }
};

constexpr uint32_t kMaxFactor = 127;       // signed bytes are what the multiplication takes
constexpr uint32_t kMaxThreshold = 65000;  // sums saturate above it

struct Filter {
  const char* name;
  // First of the `n` blocks with a lane whose sum is <= threshold, its lanes in *mask; n when there is none.
  uint64_t (*find)(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes, const uint8_t* tables,
                   uint8_t threshold, uint32_t* mask);
  // The same for kBatch queries at once; stops at a block where any of them has a lane.
  uint64_t (*find_batch)(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes,
                         const uint8_t* const* tables, const uint8_t* thresholds, uint32_t* masks);
  // `find` for codes of more than kShort planes.
  uint64_t (*find_long)(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask);
  // The same by counting bits; null where this processor is no faster at that.
  uint64_t (*find_counted)(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask);
  // The same where all bits cost the same, exactly; null like the one before.
  uint64_t (*find_plain)(const Walk& walk, const PlainQuery& query, uint32_t* mask);
};

uint64_t find_long_portable(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask);
#if defined(__x86_64__)
uint64_t find_long_avx2(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask);
uint64_t find_long_avx512(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask);
uint64_t find_counted_avx512(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask);
uint64_t find_plain_avx512(const Walk& walk, const PlainQuery& query, uint32_t* mask);
#endif

// "avx512", "avx2", "portable", or null for the best; null when this machine cannot run it.
const Filter* find_filter(const char* name);

}  // namespace bitscale

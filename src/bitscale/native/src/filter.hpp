// The filter: which codes of a block may lie within the current bound?
//
// Costs are floored to 8 bits on the scale of the bound, looked up by nibble and added with saturation.
// Floors make every sum a true lower bound, so a code that fails can be forgotten without another look.
#pragma once
#include "layout.hpp"

namespace bitscale {

constexpr uint32_t kBatch = 4;  // queries that share one pass over the codes

// Byte tables of one query: planes in pairs; a pair holds its low-nibble tables, then its high-nibble ones,
// 2 planes x 32 bytes each (16 entries, twice, as the shuffle wants them).
constexpr size_t kPairBytes = 128;
inline size_t filter_bytes(uint32_t planes) { return size_t{(planes + 1) / 2} * kPairBytes; }

struct Filter {
  const char* name;
  // First of the `n` blocks with a lane whose sum is <= threshold, its lanes in *mask; n when there is none.
  uint64_t (*find)(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes, const uint8_t* tables,
                   uint8_t threshold, uint32_t* mask);
  // The same for kBatch queries at once; stops at a block where any of them has a lane.
  uint64_t (*find_batch)(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes,
                         const uint8_t* const* tables, const uint8_t* thresholds, uint32_t* masks);
};

const Filter& filter();              // the best this machine runs, or the one chosen by name
bool choose_filter(const char* name);  // "avx512", "avx2" or "portable"; false when this machine lacks it

}  // namespace bitscale

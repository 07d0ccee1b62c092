// The segment layout every kernel works on. All memory belongs to the caller (NumPy arrays, mapped files).
//
// Codes stand in blocks of 32, one byte plane after another, so that a vector register holds the same
// byte of 32 codes. Table 0 is the codes themselves, sorted; further tables are copies in bucket order.
#pragma once
#include <cstddef>
#include <cstdint>

#define BITSCALE_API extern "C" __attribute__((visibility("default")))

namespace bitscale {

constexpr uint32_t kLanes = 32;        // codes a block
constexpr uint32_t kMaxWidth = 24;     // key bits a table; a probe packs table (8 bits) and pattern (24 bits)
constexpr uint32_t kMaxTables = 8;
constexpr int32_t kEverything = 1 << 28;  // a bound no distance reaches: integer distances stay below 2^23

enum Status : int { kOk = 0, kNoMemory = 1, kBadArgument = 2 };

// Buckets by the bits [first_bit, first_bit + width): bucket b holds rows offsets[b] .. offsets[b + 1].
struct Table {
  uint32_t first_bit;
  uint32_t width;
  const uint32_t* offsets;    // 2^width + 1
  const uint8_t* blocks;      // ceil(n_codes / 32) * n_bytes * 32
  const uint32_t* positions;  // row -> row in table 0; null for table 0 itself
};

// Distinct codes and, for each, the ordinals of its items; ordinals ascend with ids.
struct Segment {
  uint64_t n_codes;
  uint64_t n_items;
  uint32_t n_bytes;
  uint32_t n_tables;
  const Table* tables;
  const uint32_t* item_offsets;  // n_codes + 1; null when every code has one item
  const uint32_t* ordinals;      // n_items, in code order, ascending within a code
  const int64_t* ids;            // by ordinal, ascending; null: id = first_id + ordinal
  int64_t first_id;
  const uint64_t* alive;    // bitmap over ordinals; null: all
  const uint64_t* allowed;  // bitmap over ordinals; null: all

  uint64_t n_blocks() const { return (n_codes + kLanes - 1) / kLanes; }
  uint64_t block_bytes() const { return uint64_t{n_bytes} * kLanes; }
};

}  // namespace bitscale

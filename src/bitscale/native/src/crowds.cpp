// Where the codes of each centre are: blocks that hold several of them, and copies of those that lie apart.
//
// Codes are sorted, so those of one centre spread: most share blocks with their like, but many of its blocks hold one or
// two. A block costs as much to read for one code as for 32; side by side, such strays cost what they are worth.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "centres.hpp"

namespace bitscale {
namespace {

// Calls `look(list, block, codes)` for each block and list that has so many codes in it; a list is a centre, or none.
template <class Look>
void each_pair(const uint8_t* homes, uint64_t n_codes, uint32_t n_centres, const Look& look) {
  uint32_t count[kMaxCentres + 1] = {};
  const auto list = [&](uint64_t at) { return homes[at] == kNoCentre ? n_centres : homes[at]; };
  for (uint64_t begin = 0; begin < n_codes; begin += kLanes) {
    const uint64_t end = std::min(n_codes, begin + kLanes);
    for (uint64_t at = begin; at < end; at++) count[list(at)]++;
    for (uint64_t at = begin; at < end; at++)
      if (const uint32_t c = list(at); count[c]) look(c, static_cast<uint32_t>(begin / kLanes), count[c]), count[c] = 0;
  }
}

void copy_code(const uint8_t* from, uint64_t at, uint8_t* to, uint64_t place, uint32_t n_bytes) {
  from += at / kLanes * n_bytes * kLanes + at % kLanes;
  to += place / kLanes * n_bytes * kLanes + place % kLanes;
  for (uint32_t j = 0; j < n_bytes; j++) to[j * kLanes] = from[j * kLanes];
}

}  // namespace
}  // namespace bitscale

using namespace bitscale;

// The lists of `Centres`: `begins` (n_centres + 2), `blocks` (n_codes). Codes in blocks with few of their centre's are
// copied, at most `room` of them: they are the table of strays, with `stray_begins` (n_centres + 2) for its offsets.
BITSCALE_API int bitscale_crowds(const Table* table, uint64_t n_codes, uint32_t n_bytes, const uint8_t* homes,
                                 uint32_t n_centres, uint64_t room, uint32_t* begins, uint32_t* blocks,
                                 uint32_t* stray_begins, uint8_t* stray_blocks, uint32_t* stray_rows) try {
  if (!n_codes || !n_bytes || !n_centres || n_centres > kMaxCentres) return kBadArgument;
  uint64_t alike[kLanes + 1] = {};  // codes that share a block with so many of their centre's, themselves included
  each_pair(homes, n_codes, n_centres, [&](uint32_t, uint32_t, uint32_t codes) { alike[codes] += codes; });
  uint32_t few = 0;
  for (uint64_t copied = 0; few < kLanes && (copied += alike[few + 1]) <= room;) few++;
  std::fill(begins, begins + n_centres + 2, 0);
  std::fill(stray_begins, stray_begins + n_centres + 2, 0);
  each_pair(homes, n_codes, n_centres, [&](uint32_t c, uint32_t, uint32_t codes) {
    if (codes > few) begins[c + 1]++;
    else stray_begins[c + 1] += codes;
  });
  for (uint32_t c = 0; c <= n_centres; c++) begins[c + 1] += begins[c], stray_begins[c + 1] += stray_begins[c];
  if (const uint32_t strays = stray_begins[n_centres + 1])  // lanes behind the last one are read, and ruled out
    std::memset(stray_blocks + (strays - 1) / kLanes * uint64_t{n_bytes} * kLanes, 0, uint64_t{n_bytes} * kLanes);
  std::vector<uint32_t> next(begins, begins + n_centres + 1), next_stray(stray_begins, stray_begins + n_centres + 1);
  each_pair(homes, n_codes, n_centres, [&](uint32_t c, uint32_t block, uint32_t codes) {
    if (codes > few) {
      blocks[next[c]++] = block;
      return;
    }
    const uint8_t home = c == n_centres ? kNoCentre : static_cast<uint8_t>(c);
    for (uint64_t at = uint64_t{block} * kLanes, end = std::min(n_codes, at + kLanes); at < end; at++) {
      if (homes[at] != home) continue;
      copy_code(table->blocks, at, stray_blocks, next_stray[c], n_bytes);
      stray_rows[next_stray[c]++] = static_cast<uint32_t>(at);
    }
  });
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

#include "query.hpp"

#include <algorithm>

namespace bitscale {

std::vector<int32_t> nibble_costs(const int32_t* costs, uint32_t n_bits, uint32_t planes) {
  std::vector<int32_t> table(size_t{planes} * 32);
  for (uint32_t nibble = 0; nibble < planes * 2; nibble++) {
    const uint32_t first = nibble / 2 * 8 + (nibble % 2 ? 0 : 4);  // the high nibble holds the earlier bits
    int32_t* entry = &table[size_t{nibble} * 16];
    for (uint32_t bit = 0; bit < 4; bit++) {
      const uint32_t place = 1u << bit, which = first + 3 - bit;
      const int32_t cost = which < n_bits ? costs[which] : 0;
      for (uint32_t x = 0; x < place; x++) entry[place + x] = entry[x] + cost;
    }
  }
  return table;
}

Query::Query(const uint8_t* code, const std::vector<int32_t>& xor_costs, uint32_t planes)
    : code_(code), planes_(planes), costs_(size_t{planes} * 32), tables_(filter_bytes(planes)) {
  for (uint32_t j = 0; j < planes; j++)
    for (uint32_t x = 0; x < 16; x++) {
      costs_[j * 32 + x] = xor_costs[j * 32 + (x ^ (code[j] & 15))];
      costs_[j * 32 + 16 + x] = xor_costs[j * 32 + 16 + (x ^ (code[j] >> 4))];
    }
}

void Query::rescale(int32_t reach) {
  scaled_for_ = reach;
  // Shrunk by a hair, so that rounding in this product never lifts a floor above the true value.
  const float scale = reach >= kEverything ? 0.f : 254.f / static_cast<float>(std::max(reach, 1)) * (1 - 1e-6f);
  scale_ = scale;
  for (uint32_t j = 0; j < planes_; j++)
    for (uint32_t half = 0; half < 2; half++) {
      const int32_t* cost = &costs_[j * 32 + half * 16];
      uint8_t* out = &tables_[(j / 2) * kPairBytes + half * 64 + (j % 2) * 32];
      for (uint32_t x = 0; x < 16; x++) {
        const float value = static_cast<float>(cost[x]) * scale;
        out[x] = out[x + 16] = static_cast<uint8_t>(std::min(value, 255.f));
      }
    }
}

}  // namespace bitscale

#include "query.hpp"

#include <algorithm>
#include <cmath>

namespace bitscale {

Vec<int32_t> nibble_costs(const int32_t* costs, uint32_t n_bits, uint32_t planes) {
  Vec<int32_t> table(size_t{planes} * 32);
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

// Counting is worth while up to this part of what random bits cost that it does not see.
constexpr double kUnseen = 0.05;

Query::Query(const Filter* filter, const uint8_t* code, const Vec<int32_t>& xor_costs, uint32_t planes)
    : filter_(filter), code_(code), planes_(planes), costs_(size_t{planes} * 32), tables_(filter_bytes(planes)) {
  for (uint32_t j = 0; j < planes; j++)
    for (uint32_t x = 0; x < 16; x++) {
      costs_[j * 32 + x] = xor_costs[j * 32 + (x ^ (code[j] & 15))];
      costs_[j * 32 + 16 + x] = xor_costs[j * 32 + 16 + (x ^ (code[j] >> 4))];
    }
  if (is_long() && filter && filter->find_plain && set_plain(xor_costs)) return;
  if (is_long() && filter && filter->find_counted) count_costs(xor_costs);
  factors_.resize(planes / kGroup + 1);
}

// Ready for counting where all bits that count cost the same: those are the first ones. False where they do not.
bool Query::set_plain(const Vec<int32_t>& xor_costs) {
  const auto cost = [&](uint32_t bit) { return xor_costs[bit / 8 * 32 + bit % 8 / 4 * 16 + (1u << bit % 4)]; };
  const int32_t one = cost(7);  // the first bit is a byte's highest
  uint8_t last = 0xFF;          // bits of the last plane that count
  for (uint32_t bit = 0; bit < planes_ * 8; bit++)
    if (cost(bit) != one) {
      if (bit / 8 + 1 < planes_ || cost(bit)) return false;
      last &= static_cast<uint8_t>(~(1u << bit % 8));
    }
  if (one <= 0 || !last || planes_ >= 8192) return false;  // sums are of 16 bits
  bit_cost_ = one;
  const uint32_t pairs = (planes_ + 1) / 2;
  tables_.assign(size_t{pairs + 1} * 64, 0);
  for (uint32_t j = 0; j < planes_; j++) {
    std::fill_n(&tables_[j * kLanes], kLanes, code_[j]);
    if (j / 2 + 1 == pairs) std::fill_n(&tables_[pairs * 64 + j % 2 * kLanes], kLanes, j + 1 < planes_ ? 0xFF : last);
  }
  return true;
}

// What so many differing bits of each plane cost at least; kept where that is nearly what they cost on average.
void Query::count_costs(const Vec<int32_t>& xor_costs) {
  constexpr uint32_t kWays[9] = {1, 8, 28, 56, 70, 56, 28, 8, 1};  // of 256, to choose so many of 8 bits
  Vec<int32_t> costs(size_t{planes_} * 16);
  double whole = 0, seen = 0;
  for (uint32_t j = 0; j < planes_; j++) {
    int32_t bits[8], *entry = &costs[j * 16];
    for (uint32_t i = 0; i < 8; i++) bits[i] = xor_costs[j * 32 + i / 4 * 16 + (1u << i % 4)];
    std::sort(bits, bits + 8);
    for (uint32_t i = 0; i < 15; i++) entry[i + 1] = entry[i] + (i < 8 ? bits[i] : 0);
    for (uint32_t i = 0; i < 9; i++) seen += kWays[i] / 256. * entry[i];
    whole += entry[8] / 2.;
  }
  if (seen >= (1 - kUnseen) * whole) count_costs_ = std::move(costs);
}

// Floor the costs of one plane's nibbles on a scale.
static void floor_costs(const int32_t* costs, float scale, uint8_t* low) {
  for (uint32_t half = 0; half < 2; half++)
    for (uint32_t x = 0; x < 16; x++) {
      const float value = static_cast<float>(costs[half * 16 + x]) * scale;
      low[half * 64 + x] = low[half * 64 + x + 16] = static_cast<uint8_t>(std::min(value, 255.f));
    }
}

// The same of the costs of its bits by their number, beside the query's own byte.
static void floor_counts(const int32_t* costs, float scale, uint8_t byte, uint8_t* low) {
  std::fill_n(low, 32, byte);
  for (uint32_t x = 0; x < 16; x++)
    low[64 + x] = low[64 + x + 16] = static_cast<uint8_t>(std::min(static_cast<float>(costs[x]) * scale, 255.f));
}

void Query::rescale(int32_t reach) {
  scaled_for_ = reach;
  // Shrunk by a hair, so that rounding in this product never lifts a floor above the true value.
  const float most = is_long() ? kMaxThreshold : 254;
  scale_ = reach >= kEverything ? 0.f : most / static_cast<float>(std::max(reach, 1)) * (1 - 1e-6f);
  const uint32_t planes = counted() ? kCountedGroup : kGroup;
  if (is_long())
    for (uint32_t group = 0; group * planes < planes_; group++) rescale_group(group, planes);
  else
    for (uint32_t j = 0; j < planes_; j++)
      floor_costs(&costs_[j * 32], static_cast<float>(scale_), &tables_[(j / 2) * kPairBytes + (j % 2) * 32]);
}

// The smallest factor with which the sums of a group's even planes, and of its odd ones, fit a byte.
void Query::rescale_group(uint32_t group, uint32_t planes) {
  const uint32_t begin = group * planes, end = std::min(planes_, begin + planes);
  int64_t largest[2] = {};
  for (uint32_t j = begin; j < end; j++)
    largest[j % 2] += costs_[j * 32 + (~code_[j] & 15)] + costs_[j * 32 + 16 + (~code_[j] >> 4 & 15)];  // all differ
  const double parts = std::ceil(static_cast<double>(std::max(largest[0], largest[1])) * scale_ / 255);
  factors_[group] = static_cast<uint8_t>(std::clamp<double>(parts, 1, kMaxFactor));
  const float scale = static_cast<float>(scale_) / factors_[group] * (1 - 1e-6f);
  for (uint32_t j = begin; j < end; j++) {
    uint8_t* low = &tables_[(j / 2) * kPairBytes + (j % 2) * 32];
    if (!counted()) floor_costs(&costs_[j * 32], scale, low);
    else floor_counts(&count_costs_[j * 16], scale, code_[j], low);
  }
}

}  // namespace bitscale

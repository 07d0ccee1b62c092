// One query: what each nibble of a code costs against it, exactly, and floored to bytes for the filter.
#pragma once
#include <vector>

#include "filter.hpp"

namespace bitscale {

// Cost of each XOR nibble, (2 * planes) x 16 entries: low nibble, then high nibble of each plane.
std::vector<int32_t> nibble_costs(const int32_t* costs, uint32_t n_bits, uint32_t planes);

class Query {
 public:
  Query(const uint8_t* code, const std::vector<int32_t>& xor_costs, uint32_t planes);

  const uint8_t* code() const { return code_; }
  uint32_t planes() const { return planes_; }

  // Exact integer distance of one lane of a block.
  int32_t distance(const uint8_t* block, uint32_t lane) const {
    int32_t sum = 0;
    const int32_t* cost = costs_.data();
    for (uint32_t j = 0; j < planes_; j++, cost += 32) {
      const uint8_t byte = block[j * kLanes + lane];
      sum += cost[byte & 15] + cost[16 + (byte >> 4)];
    }
    return sum;
  }

  // The same of all lanes.
  void distances(const uint8_t* block, int32_t* out) const {
    for (uint32_t lane = 0; lane < kLanes; lane++) out[lane] = 0;
    const int32_t* cost = costs_.data();
    for (uint32_t j = 0; j < planes_; j++, cost += 32)
      for (uint32_t lane = 0; lane < kLanes; lane++) {
        const uint8_t byte = block[j * kLanes + lane];
        out[lane] += cost[byte & 15] + cost[16 + (byte >> 4)];
      }
  }

  // Set tables and threshold so that no code within `reach` is filtered out. Tables are rescaled only when the
  // reach has shrunk enough to matter.
  void aim(int32_t reach) {
    if (reach == aimed_) return;
    aimed_ = reach;
    if (scaled_for_ < 0 || reach < 0.92 * scaled_for_) rescale(reach);
    const double limit = scale_ * reach * (1 + 1e-6);
    threshold_ = limit >= 254 ? 254 : static_cast<uint8_t>(limit);
  }
  const uint8_t* tables() const { return tables_.data(); }
  uint8_t threshold() const { return threshold_; }

 private:
  void rescale(int32_t reach);
  const uint8_t* code_;
  uint32_t planes_;
  std::vector<int32_t> costs_;   // as nibble_costs, permuted so that a code's own nibble is the index
  std::vector<uint8_t> tables_;  // see filter.hpp
  int32_t aimed_ = -1;
  int32_t scaled_for_ = -1;
  double scale_ = 0;
  uint8_t threshold_ = 0;
};

}  // namespace bitscale

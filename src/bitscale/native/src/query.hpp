// One query: what each nibble of a code costs against it, exactly, and floored to bytes for the filter.
#pragma once
#include <algorithm>

#include "filter.hpp"
#include "pool.hpp"

namespace bitscale {

// Cost of each XOR nibble, (2 * planes) x 16 entries: low nibble, then high nibble of each plane.
Vec<int32_t> nibble_costs(const int32_t* costs, uint32_t n_bits, uint32_t planes);

class Query {
 public:
  Query(const Filter* filter, const uint8_t* code, const Vec<int32_t>& xor_costs, uint32_t planes);

  const Filter& filter() const { return *filter_; }
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

  // The same of a code on its own.
  int32_t distance_to(const uint8_t* code) const {
    int32_t sum = 0;
    const int32_t* cost = costs_.data();
    for (uint32_t j = 0; j < planes_; j++, cost += 32) sum += cost[code[j] & 15] + cost[16 + (code[j] >> 4)];
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
    if (plain()) {
      limit_ = static_cast<uint16_t>(std::min<int32_t>(reach / bit_cost_, 65535));
      return;
    }
    if (scaled_for_ < 0 || reach < 0.92 * scaled_for_) rescale(reach);
    const double limit = scale_ * reach * (1 + 1e-6), most = is_long() ? kMaxThreshold : 254;
    threshold_ = static_cast<uint16_t>(std::min(limit, most));
  }
  const uint8_t* tables() const { return tables_.data(); }
  uint8_t threshold() const { return static_cast<uint8_t>(threshold_); }
  bool is_long() const { return planes_ > kShort; }
  bool counted() const { return !count_costs_.empty(); }
  bool plain() const { return bit_cost_ > 0; }

  // First of the `n` blocks in which a code may lie within what was aimed at, its lanes in *mask; n when there is none.
  uint64_t find(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t* mask) const {
    if (is_long()) return find_long({blocks, n, uint64_t{n_bytes} * kLanes, nullptr}, mask);
    return filter_->find(blocks, n, n_bytes, planes_, tables_.data(), threshold(), mask);
  }
  // The same of long codes, for any blocks.
  uint64_t find_long(const Walk& walk, uint32_t* mask) const {
    if (plain()) return filter_->find_plain(walk, {tables_.data(), (planes_ + 1) / 2, planes_ % 2 == 1, limit_}, mask);
    const LongTables tables{tables_.data(), factors_.data(), threshold_};
    return (counted() ? filter_->find_counted : filter_->find_long)(walk, planes_, tables, mask);
  }

 private:
  bool set_plain(const Vec<int32_t>& xor_costs);
  void count_costs(const Vec<int32_t>& xor_costs);
  void rescale(int32_t reach);
  void rescale_group(uint32_t group, uint32_t planes);
  const Filter* filter_;
  const uint8_t* code_;
  uint32_t planes_;
  Vec<int32_t> costs_;   // as nibble_costs, permuted so that a code's own nibble is the index
  Vec<int32_t> count_costs_;  // of 0 to 8 bits of a plane, the lightest ones, 16 entries each; empty: not counted
  Vec<uint8_t> tables_;  // see filter.hpp
  Vec<uint8_t> factors_;  // of a long code's groups
  int32_t aimed_ = -1;
  int32_t scaled_for_ = -1;
  double scale_ = 0;
  uint16_t threshold_ = 0;
  int32_t bit_cost_ = 0;  // of a long code's bits where all cost the same and differing ones are counted; else 0
  uint16_t limit_ = 0;    // differing bits within what was aimed at
};

}  // namespace bitscale

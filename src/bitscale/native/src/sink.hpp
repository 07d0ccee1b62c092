// Where hits go. A sink knows the largest distance still of interest and takes (distance, id) pairs.
#pragma once
#include <algorithm>

#include "layout.hpp"
#include "pool.hpp"

namespace bitscale {

struct Hit {
  int32_t distance;
  int64_t id;
  bool operator<(const Hit& other) const {
    return distance != other.distance ? distance < other.distance : id < other.id;
  }
};

// The k first hits by (distance, id): a heap whose worst is on top.
class Top {
 public:
  explicit Top(size_t k) : k_(k) {}
  Top part() const { return Top(k_, limit_); }  // empty, but nothing at or behind the limit is of interest

  int32_t reach() const { return limit_.distance; }
  bool bounded() const { return limit_.distance < kEverything; }
  size_t wanted() const { return k_; }
  // False: this hit came too late, and so will every later id at this distance.
  bool offer(int32_t distance, int64_t id) {
    const Hit hit{distance, id};
    if (!(hit < limit_)) return false;
    if (heap_.size() == k_) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = hit;
    } else {
      heap_.push_back(hit);
    }
    std::push_heap(heap_.begin(), heap_.end());
    if (heap_.size() == k_) limit_ = heap_.front();
    return true;
  }
  Vec<Hit>& sorted() {
    std::sort_heap(heap_.begin(), heap_.end());
    return heap_;
  }
  const Vec<Hit>& hits() const { return heap_; }

 private:
  Top(size_t k, const Hit& limit) : k_(k), limit_(limit) {}
  size_t k_;
  Vec<Hit> heap_;
  Hit limit_{kEverything, 0};
};

// All hits up to a distance.
class Ball {
 public:
  explicit Ball(int32_t radius) : radius_(radius) {}
  Ball part() const { return Ball(radius_); }
  int32_t reach() const { return radius_; }
  size_t wanted() const { return 0; }
  bool bounded() const { return true; }
  bool offer(int32_t distance, int64_t id) {
    hits_.push_back({distance, id});
    return true;
  }
  Vec<Hit>& sorted() {
    std::sort(hits_.begin(), hits_.end());
    return hits_;
  }
  const Vec<Hit>& hits() const { return hits_; }

 private:
  int32_t radius_;
  Vec<Hit> hits_;
};

// Rows already handed to the sink, since tables hold copies of one another's codes.
class Seen {
 public:
  void clear() {
    if (count_) std::fill(slots_.begin(), slots_.end(), 0);
    count_ = 0;
  }
  bool has(uint32_t row) const { return count_ && slots_[slot(row)]; }
  void add(uint32_t row) {
    if (count_ * 2 >= slots_.size()) grow();
    slots_[slot(row)] = uint64_t{row} + 1;
    count_++;
  }

 private:
  size_t slot(uint32_t row) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (row * uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
    while (slots_[at] && slots_[at] != uint64_t{row} + 1) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    Vec<uint64_t> old(std::max<size_t>(64, slots_.size() * 2), 0);
    old.swap(slots_);
    for (uint64_t kept : old)
      if (kept) slots_[slot(static_cast<uint32_t>(kept - 1))] = kept;
  }
  Vec<uint64_t> slots_;
  size_t count_ = 0;
};

}  // namespace bitscale

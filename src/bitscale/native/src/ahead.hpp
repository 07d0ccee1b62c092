// What the filters for long codes share on x86: asking for blocks ahead, when to look, and lanes from their halves.
#pragma once
#include <immintrin.h>

#include "filter.hpp"

namespace bitscale {

// Ask for the planes that the blocks before needed, of a block a few thousand bytes ahead. Where these are more than a
// quarter of a block, the hardware does that better by itself.
class Ahead {
 public:
  Ahead(const uint8_t* blocks, uint64_t n, uint64_t stride) : end_(blocks + n * stride), stride_(stride) {}
  __attribute__((always_inline)) inline void prefetch(const uint8_t* block) const {
    const uint8_t* next = block + away_ * stride_;
    if (next < end_ && used_ * 4 <= stride_)
      for (uint32_t c = 0; c < used_; c += 64) __builtin_prefetch(next + c);
  }
  void used(uint32_t planes) {
    const uint32_t bytes = planes * kLanes;
    if (bytes == used_) return;
    used_ = bytes > used_ ? bytes : used_ - 64;
    away_ = used_ < kBytes / 16 ? 16 : kBytes / used_ + 1;
  }

 private:
  static constexpr uint32_t kBytes = 8192;
  const uint8_t* end_;
  uint64_t stride_, away_ = 16;
  uint32_t used_ = 256;
};

// How many planes to read before the first look: as many as nearly every block has needed so far.
class Sure {
 public:
  uint32_t planes() const { return planes_; }
  void needed(uint32_t planes) {
    if (planes > planes_ + kCountedGroup) {
      if (++late_ == kOften) planes_ += kCountedGroup, late_ = 0, early_ = 0;
    } else if (++early_ == kMany) {
      planes_ -= planes_ ? kCountedGroup : 0, late_ = 0, early_ = 0;
    }
  }

 private:
  static constexpr uint32_t kOften = 24, kMany = 32;
  uint32_t planes_ = 0, late_ = 0, early_ = 0;
};

// Lanes stand apart by parity in 16-bit sums: bit i of `even` is lane 2 i.
__attribute__((target("bmi2"))) inline uint32_t lanes_of(uint32_t even, uint32_t odd) {
  return _pdep_u32(even, 0x55555555) | _pdep_u32(odd, 0xAAAAAAAA);
}

}  // namespace bitscale

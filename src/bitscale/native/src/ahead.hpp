// What the filters for long codes share on x86: asking for blocks ahead, when to look, and lanes from their halves.
#pragma once
#include <immintrin.h>

#include "filter.hpp"

namespace bitscale {

// Ask for the planes that the blocks before needed, of a block a few thousand bytes ahead; where these are more than
// `most` bytes, something else does.
class Ahead {
 public:
  Ahead(const Walk& walk, uint64_t most) : walk_(walk), most_(most) {}
  __attribute__((always_inline)) inline void prefetch(uint64_t block) const {
    if (block + away_ >= walk_.n || used_ > most_) return;
    const uint8_t* next = walk_[block + away_];
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
  const Walk& walk_;
  uint64_t most_, away_ = 16;
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

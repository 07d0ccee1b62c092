#include "filter.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns about its own AVX-512 header (PR105593)
#endif
#endif

namespace bitscale {
namespace {

// ---------------------------------------------------------------- portable
uint32_t block_mask(const uint8_t* block, uint32_t planes, const uint8_t* tables, uint8_t threshold) {
  uint16_t sums[kLanes] = {};
  for (uint32_t j = 0; j < planes; j++) {
    const uint8_t* low = tables + (j / 2) * kPairBytes + (j % 2) * 32;
    const uint8_t* high = low + 64;
    for (uint32_t lane = 0; lane < kLanes; lane++) {
      const uint8_t byte = block[j * kLanes + lane];
      sums[lane] = static_cast<uint16_t>(sums[lane] + low[byte & 15] + high[byte >> 4]);
    }
  }
  uint32_t mask = 0;
  for (uint32_t lane = 0; lane < kLanes; lane++) mask |= uint32_t{sums[lane] <= threshold} << lane;
  return mask;
}

uint64_t find_portable(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes, const uint8_t* tables,
                       uint8_t threshold, uint32_t* mask) {
  for (uint64_t b = 0; b < n; b++)
    if ((*mask = block_mask(blocks + b * n_bytes * kLanes, planes, tables, threshold))) return b;
  return n;
}

uint64_t find_batch_portable(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes,
                             const uint8_t* const* tables, const uint8_t* thresholds, uint32_t* masks) {
  for (uint64_t b = 0; b < n; b++) {
    uint32_t any = 0;
    for (uint32_t t = 0; t < kBatch; t++)
      any |= masks[t] = block_mask(blocks + b * n_bytes * kLanes, planes, tables[t], thresholds[t]);
    if (any) return b;
  }
  return n;
}

const Filter kPortable{"portable", find_portable, find_batch_portable, find_long_portable, nullptr, nullptr};

#if defined(__x86_64__)
constexpr uint64_t kAhead = 16;  // blocks to prefetch ahead: the hardware stops at page borders

// Always inlined: GCC takes a function that only prefetches for one without effect, and drops the call.
__attribute__((always_inline)) inline void prefetch(const uint8_t* block, uint64_t stride, uint32_t bytes, bool wanted) {
  if (wanted)
    for (uint32_t c = 0; c < bytes; c += 64) __builtin_prefetch(block + kAhead * stride + c);
}

// ---------------------------------------------------------------- AVX2: one plane a register
#define AVX2 __attribute__((target("avx2"), always_inline)) inline

AVX2 __m256i add_plane(__m256i sum, const uint8_t* plane, const uint8_t* low) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(plane));
  const __m256i t0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
  const __m256i t1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low + 64));
  sum = _mm256_adds_epu8(sum, _mm256_shuffle_epi8(t0, _mm256_and_si256(codes, nibble)));
  return _mm256_adds_epu8(sum, _mm256_shuffle_epi8(t1, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble)));
}

AVX2 uint32_t at_most(__m256i sum, uint8_t threshold) {
  const __m256i limit = _mm256_set1_epi8(static_cast<char>(threshold));
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, limit), sum)));
}

template <uint32_t kPlanes>  // 0: as many as `planes` says
AVX2 uint64_t find_avx2_n(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes, const uint8_t* tables,
                          uint8_t threshold, uint32_t* mask) {
  const uint32_t count = kPlanes ? kPlanes : planes;
  for (uint64_t b = 0; b < n; b++) {
    const uint8_t* block = blocks + b * n_bytes * kLanes;
    prefetch(block, n_bytes * kLanes, count * kLanes, b + kAhead < n);
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (uint32_t j = 0; j < count; j++)
      sum = add_plane(sum, block + j * kLanes, tables + (j / 2) * kPairBytes + (j % 2) * 32);
    if ((*mask = at_most(sum, threshold))) return b;
  }
  return n;
}

__attribute__((target("avx2"))) uint64_t find_avx2(const uint8_t* blocks, uint64_t n, uint32_t n_bytes,
                                                   uint32_t planes, const uint8_t* tables, uint8_t threshold,
                                                   uint32_t* mask) {
  switch (planes) {
    case 2: return find_avx2_n<2>(blocks, n, n_bytes, planes, tables, threshold, mask);
    case 4: return find_avx2_n<4>(blocks, n, n_bytes, planes, tables, threshold, mask);
    case 8: return find_avx2_n<8>(blocks, n, n_bytes, planes, tables, threshold, mask);
    case 16: return find_avx2_n<16>(blocks, n, n_bytes, planes, tables, threshold, mask);
    default: return find_avx2_n<0>(blocks, n, n_bytes, planes, tables, threshold, mask);
  }
}

template <uint32_t kPlanes>
AVX2 uint64_t find_batch_avx2_n(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes,
                                const uint8_t* const* tables, const uint8_t* thresholds, uint32_t* masks) {
  const uint32_t count = kPlanes ? kPlanes : planes;
  const __m256i nibble = _mm256_set1_epi8(15);
  for (uint64_t b = 0; b < n; b++) {
    const uint8_t* block = blocks + b * n_bytes * kLanes;
    __m256i sum[kBatch];
    for (uint32_t t = 0; t < kBatch; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (uint32_t j = 0; j < count; j++) {
      const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + j * kLanes));
      const __m256i low = _mm256_and_si256(codes, nibble);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble);
      const size_t at = (j / 2) * kPairBytes + (j % 2) * 32;
      for (uint32_t t = 0; t < kBatch; t++) {
        const __m256i t0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tables[t] + at));
        const __m256i t1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tables[t] + at + 64));
        sum[t] = _mm256_adds_epu8(sum[t], _mm256_shuffle_epi8(t0, low));
        sum[t] = _mm256_adds_epu8(sum[t], _mm256_shuffle_epi8(t1, high));
      }
    }
    uint32_t any = 0;
    for (uint32_t t = 0; t < kBatch; t++) any |= masks[t] = at_most(sum[t], thresholds[t]);
    if (any) return b;
  }
  return n;
}

__attribute__((target("avx2"))) uint64_t find_batch_avx2(const uint8_t* blocks, uint64_t n, uint32_t n_bytes,
                                                         uint32_t planes, const uint8_t* const* tables,
                                                         const uint8_t* thresholds, uint32_t* masks) {
  switch (planes) {
    case 2: return find_batch_avx2_n<2>(blocks, n, n_bytes, planes, tables, thresholds, masks);
    case 4: return find_batch_avx2_n<4>(blocks, n, n_bytes, planes, tables, thresholds, masks);
    case 8: return find_batch_avx2_n<8>(blocks, n, n_bytes, planes, tables, thresholds, masks);
    default: return find_batch_avx2_n<0>(blocks, n, n_bytes, planes, tables, thresholds, masks);
  }
}

const Filter kAvx2{"avx2", find_avx2, find_batch_avx2, find_long_avx2, nullptr, nullptr};

// ---------------------------------------------------------------- AVX-512: two planes a register
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2"), always_inline)) inline

struct Nibbles { __m512i low, high; };

AVX512 Nibbles split(__m512i codes) {
  const __m512i nibble = _mm512_set1_epi8(15);
  return {_mm512_and_si512(codes, nibble), _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble)};
}

AVX512 Nibbles load_pair(const uint8_t* pair, bool whole) {
  return split(whole ? _mm512_loadu_si512(pair) : _mm512_maskz_loadu_epi64(0x0F, pair));
}

AVX512 __m512i add_pair(__m512i sum, const Nibbles& codes, const uint8_t* tables) {
  sum = _mm512_adds_epu8(sum, _mm512_shuffle_epi8(_mm512_loadu_si512(tables), codes.low));
  return _mm512_adds_epu8(sum, _mm512_shuffle_epi8(_mm512_loadu_si512(tables + 64), codes.high));
}

AVX512 uint32_t at_most_pair(__m512i sum, uint8_t threshold) {
  const __m256i both = _mm256_adds_epu8(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
  return _mm256_cmple_epu8_mask(both, _mm256_set1_epi8(static_cast<char>(threshold)));
}

// Up to eight pairs of planes: the tables stay in registers, and nothing but codes comes from memory.
template <uint32_t kPairs>
AVX512 uint64_t find_avx512_n(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, const uint8_t* tables,
                              uint8_t threshold, uint32_t* mask) {
  __m512i low[kPairs], high[kPairs];
  for (uint32_t p = 0; p < kPairs; p++) {
    low[p] = _mm512_loadu_si512(tables + p * kPairBytes);
    high[p] = _mm512_loadu_si512(tables + p * kPairBytes + 64);
  }
  const uint64_t stride = uint64_t{n_bytes} * kLanes;
  for (uint64_t b = 0; b < n; b++) {
    const uint8_t* block = blocks + b * stride;
    prefetch(block, stride, kPairs * 64, b + kAhead < n);
    __m512i lows = _mm512_setzero_si512(), highs = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kPairs; p++) {
      const Nibbles codes = load_pair(block + p * 64, true);
      lows = _mm512_adds_epu8(lows, _mm512_shuffle_epi8(low[p], codes.low));
      highs = _mm512_adds_epu8(highs, _mm512_shuffle_epi8(high[p], codes.high));
    }
    if (const uint32_t found = at_most_pair(_mm512_adds_epu8(lows, highs), threshold)) {
      *mask = found;
      return b;
    }
  }
  return n;
}

AVX512 uint64_t find_avx512_any(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes,
                                const uint8_t* tables, uint8_t threshold, uint32_t* mask) {
  const uint32_t pairs = (planes + 1) / 2;
  const uint64_t stride = uint64_t{n_bytes} * kLanes;
  for (uint64_t b = 0; b < n; b++) {
    const uint8_t* block = blocks + b * stride;
    prefetch(block, stride, pairs * 64, b + kAhead < n);
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t p = 0; p < pairs; p++)
      sum = add_pair(sum, load_pair(block + p * 64, p * 2 + 1 < planes), tables + p * kPairBytes);
    if ((*mask = at_most_pair(sum, threshold))) return b;
  }
  return n;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx2"))) uint64_t find_avx512(
    const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes, const uint8_t* tables, uint8_t threshold,
    uint32_t* mask) {
  switch (planes) {
    case 2: return find_avx512_n<1>(blocks, n, n_bytes, tables, threshold, mask);
    case 4: return find_avx512_n<2>(blocks, n, n_bytes, tables, threshold, mask);
    case 8: return find_avx512_n<4>(blocks, n, n_bytes, tables, threshold, mask);
    case 16: return find_avx512_n<8>(blocks, n, n_bytes, tables, threshold, mask);
    default: return find_avx512_any(blocks, n, n_bytes, planes, tables, threshold, mask);
  }
}

template <uint32_t kPairs>
AVX512 uint64_t find_batch_avx512_n(const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes,
                                    const uint8_t* const* tables, const uint8_t* thresholds, uint32_t* masks) {
  const uint32_t pairs = kPairs ? kPairs : (planes + 1) / 2;
  for (uint64_t b = 0; b < n; b++) {
    const uint8_t* block = blocks + b * n_bytes * kLanes;
    __m512i sum[kBatch];
    for (uint32_t t = 0; t < kBatch; t++) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (uint32_t p = 0; p < pairs; p++) {
      const Nibbles codes = load_pair(block + p * 64, kPairs || p * 2 + 1 < planes);
      for (uint32_t t = 0; t < kBatch; t++) sum[t] = add_pair(sum[t], codes, tables[t] + p * kPairBytes);
    }
    uint32_t any = 0;
    for (uint32_t t = 0; t < kBatch; t++) any |= masks[t] = at_most_pair(sum[t], thresholds[t]);
    if (any) return b;
  }
  return n;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx2"))) uint64_t find_batch_avx512(
    const uint8_t* blocks, uint64_t n, uint32_t n_bytes, uint32_t planes, const uint8_t* const* tables,
    const uint8_t* thresholds, uint32_t* masks) {
  switch (planes) {
    case 2: return find_batch_avx512_n<1>(blocks, n, n_bytes, planes, tables, thresholds, masks);
    case 4: return find_batch_avx512_n<2>(blocks, n, n_bytes, planes, tables, thresholds, masks);
    case 8: return find_batch_avx512_n<4>(blocks, n, n_bytes, planes, tables, thresholds, masks);
    default: return find_batch_avx512_n<0>(blocks, n, n_bytes, planes, tables, thresholds, masks);
  }
}

const Filter kAvx512{"avx512", find_avx512, find_batch_avx512, find_long_avx512, nullptr, nullptr};
const Filter kCounting{"avx512",         find_avx512,         find_batch_avx512,
                       find_long_avx512, find_counted_avx512, find_plain_avx512};
#endif

}  // namespace

const Filter* find_filter(const char* name) {
#if defined(__x86_64__)
  const bool bmi2 = __builtin_cpu_supports("bmi2");
  if (!name || !std::strcmp(name, "avx512"))
    if (bmi2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return __builtin_cpu_supports("avx512bitalg") ? &kCounting : &kAvx512;
  if (!name || !std::strcmp(name, "avx2"))
    if (bmi2 && __builtin_cpu_supports("avx2")) return &kAvx2;
#endif
  return !name || !std::strcmp(name, "portable") ? &kPortable : nullptr;
}

}  // namespace bitscale

// A filter to pass with queries, and its name.
BITSCALE_API const void* bitscale_filter(const char* name) { return bitscale::find_filter(name); }
BITSCALE_API const char* bitscale_filter_name(const void* filter) {
  return static_cast<const bitscale::Filter*>(filter)->name;
}

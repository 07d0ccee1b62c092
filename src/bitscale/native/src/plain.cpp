// The filter for long codes whose bits all cost the same: differing bits are counted, and their number is the distance.
#include "filter.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns about its own AVX-512 header (PR105593)
#endif

#include "ahead.hpp"

namespace bitscale {
namespace {

#define COUNTING "avx512f,avx512bw,avx512vl,avx512bitalg,avx2,bmi2"
#define AVX512 __attribute__((target(COUNTING), always_inline)) inline

constexpr uint32_t kPairs = kCountedGroup / 2;
constexpr uint64_t kAsked = 8192;  // bytes between what is read and what is asked for

AVX512 __m512i differing(__m512i codes, const uint8_t* own) {
  return _mm512_popcnt_epi8(_mm512_xor_si512(codes, _mm512_loadu_si512(own)));
}

AVX512 __m512i by_lane(__m512i pairs) {  // 16 bits for each lane, in its order
  return _mm512_cvtepu8_epi16(_mm256_add_epi8(_mm512_castsi512_si256(pairs), _mm512_extracti64x4_epi64(pairs, 1)));
}

// Differing bits of a group of planes. The same planes of a later block are asked for: it will need about as many.
AVX512 __m512i of_group(const uint8_t* codes, const uint8_t* own, const uint8_t* later) {
  for (uint32_t p = 0; p < kPairs; p++) _mm_prefetch(reinterpret_cast<const char*>(later + p * 64), _MM_HINT_T0);
  const __m512i first = _mm512_add_epi8(differing(_mm512_loadu_si512(codes), own),
                                        differing(_mm512_loadu_si512(codes + 64), own + 64));
  const __m512i second = _mm512_add_epi8(differing(_mm512_loadu_si512(codes + 128), own + 128),
                                         differing(_mm512_loadu_si512(codes + 192), own + 192));
  return by_lane(_mm512_add_epi8(first, second));
}

// The same of the last pairs, at most a group; of the very last only the bits that count.
AVX512 __m512i of_last(const uint8_t* codes, const PlainQuery& query, uint32_t p) {
  __m512i sum = _mm512_setzero_si512();
  for (; p + 1 < query.pairs; p++)
    sum = _mm512_add_epi8(sum, differing(_mm512_loadu_si512(codes + p * 64), query.code + p * 64));
  const uint8_t* own = query.code + p * 64;
  const __m512i last = _mm512_maskz_loadu_epi64(query.odd ? 0x0F : 0xFF, codes + p * 64);
  const __m512i bits = _mm512_and_si512(_mm512_xor_si512(last, _mm512_loadu_si512(own)), _mm512_loadu_si512(own + 64));
  return by_lane(_mm512_add_epi8(sum, _mm512_popcnt_epi8(bits)));
}

}  // namespace

__attribute__((target(COUNTING))) uint64_t find_plain_avx512(const Walk& walk, const PlainQuery& query,
                                                             uint32_t* mask) {
  const uint64_t away = (kAsked + walk.stride - 1) / walk.stride;
  const __m512i limit = _mm512_set1_epi16(static_cast<short>(query.limit));
  const uint32_t whole = (query.pairs - 1) / kPairs * kPairs;
  Sure sure;
  for (uint64_t b = 0; b < walk.n; b++) {
    const uint8_t *block = walk[b], *later = walk[b + away < walk.n ? b + away : b];
    __m512i sum = _mm512_setzero_si512();
    uint32_t p = 0, in = 1;
    while (p < whole && in) {
      sum = _mm512_add_epi16(sum, of_group(block + p * 64, query.code + p * 64, later + p * 64));
      p += kPairs;
      if (p * 2 > sure.planes()) in = _mm512_cmple_epu16_mask(sum, limit);
    }
    if (in) {
      in = _mm512_cmple_epu16_mask(_mm512_add_epi16(sum, of_last(block, query, whole)), limit);
      p = query.pairs;
    }
    if (in) {
      *mask = in;
      return b;
    }
    sure.needed(p * 2);
  }
  return walk.n;
}

}  // namespace bitscale
#endif

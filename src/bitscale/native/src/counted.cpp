// The filter for long codes whose weights are nearly equal within a byte: differing bits are counted, not looked up.
//
// So many differing bits of a byte cost as much as its lightest ones at least: one table of nine sums, in the place of
// two tables for the nibbles. It takes half the work, and rules out nearly as much.
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

constexpr uint64_t kAsked = 8192;  // bytes between what is read and what is asked for

AVX512 __m512i count_pair(__m512i codes, const uint8_t* tables) {
  const __m512i differing = _mm512_popcnt_epi8(_mm512_xor_si512(codes, _mm512_loadu_si512(tables)));
  return _mm512_shuffle_epi8(_mm512_loadu_si512(tables + 64), differing);
}

AVX512 uint32_t at_most_pair(__m512i sum, __m256i limit) {
  const __m256i both = _mm256_adds_epu16(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
  return _mm256_cmple_epu16_mask(both, limit);
}

}  // namespace

__attribute__((target(COUNTING))) uint64_t find_counted_avx512(const Walk& walk, uint32_t planes,
                                                               const LongTables& query, uint32_t* mask) {
  const __m256i limit = _mm256_set1_epi16(static_cast<short>(query.threshold));
  Ahead ahead(walk, walk.stride / 4);
  Sure sure;
  const uint64_t away = (kAsked + walk.stride - 1) / walk.stride;
  for (uint64_t b = 0; b < walk.n; b++) {
    const uint8_t *block = walk[b], *later = walk[b + away < walk.n ? b + away : b];
    ahead.prefetch(b);
    __m512i even = _mm512_setzero_si512(), odd = even;
    uint32_t j = 0, in_even = 1, in_odd = 0;
    while (j < planes && (in_even | in_odd)) {
      const __m512i factor = _mm512_set1_epi16(query.factors[j / kCountedGroup]);
      const uint8_t *codes = block + j * kLanes, *tables = query.tables + j / 2 * kPairBytes;
      __m512i group;
      if (j + kCountedGroup <= planes) {
        // the same planes of a later block: it will need about as many, which the hardware does not know
        for (uint32_t p = 0; p < 256; p += 64) __builtin_prefetch(later + j * kLanes + p);
        const __m512i first = _mm512_adds_epu8(count_pair(_mm512_loadu_si512(codes), tables),
                                               count_pair(_mm512_loadu_si512(codes + 64), tables + kPairBytes));
        const __m512i second = _mm512_adds_epu8(count_pair(_mm512_loadu_si512(codes + 128), tables + 2 * kPairBytes),
                                                count_pair(_mm512_loadu_si512(codes + 192), tables + 3 * kPairBytes));
        group = _mm512_adds_epu8(first, second);
        j += kCountedGroup;
      } else {
        group = _mm512_setzero_si512();
        for (; j < planes; j += 2, codes += 64, tables += kPairBytes)
          group = _mm512_adds_epu8(
              group, count_pair(_mm512_maskz_loadu_epi64(j + 1 < planes ? 0xFF : 0x0F, codes), tables));
      }
      even = _mm512_adds_epu16(even, _mm512_maddubs_epi16(group, factor));
      odd = _mm512_adds_epu16(odd, _mm512_maddubs_epi16(group, _mm512_slli_epi16(factor, 8)));
      if (j <= sure.planes() && j < planes) continue;
      in_even = at_most_pair(even, limit), in_odd = at_most_pair(odd, limit);
    }
    if (in_even | in_odd) {
      *mask = lanes_of(in_even, in_odd);
      return b;
    }
    ahead.used(j < planes ? j : planes);
    sure.needed(j);
  }
  return walk.n;
}

}  // namespace bitscale
#endif

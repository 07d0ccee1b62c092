// The filter for long codes: sums of 16 bits, and no more planes of a block read than it takes to rule it out.
#include "filter.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns about its own AVX-512 header (PR105593)
#endif

#include "ahead.hpp"
#endif

namespace bitscale {
namespace {

constexpr uint32_t kLook = 8;  // planes between two looks at whether any code of the block is still in

}  // namespace

// ---------------------------------------------------------------- portable
uint64_t find_long_portable(const Walk& walk, uint32_t planes, const LongTables& query, uint32_t* mask) {
  for (uint64_t b = 0; b < walk.n; b++) {
    const uint8_t* block = walk[b];
    uint32_t sums[kLanes] = {};
    for (uint32_t j = 0; j < planes;) {
      const uint8_t *low = query.tables + (j / 2) * kPairBytes + (j % 2) * 32, *high = low + 64;
      const uint32_t factor = query.factors[j / kGroup];
      for (uint32_t lane = 0; lane < kLanes; lane++) {
        const uint8_t byte = block[j * kLanes + lane];
        sums[lane] += factor * (low[byte & 15] + high[byte >> 4]);
      }
      if (++j % kLook && j < planes) continue;
      *mask = 0;
      for (uint32_t lane = 0; lane < kLanes; lane++) *mask |= uint32_t{sums[lane] <= query.threshold} << lane;
      if (!*mask) break;
    }
    if (*mask) return b;
  }
  return walk.n;
}

#if defined(__x86_64__)
namespace {

// Bytes of a block to ask for at most: where blocks stand in a row, the hardware asks for more by itself.
uint64_t own_part(const Walk& walk) { return walk.listed ? walk.stride : walk.stride / 4; }

// ---------------------------------------------------------------- AVX2: one plane a register
#define AVX2 __attribute__((target("avx2"), always_inline)) inline

AVX2 __m256i look_up(const uint8_t* plane, const uint8_t* low) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(plane));
  const __m256i t0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
  const __m256i t1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low + 64));
  return _mm256_adds_epu8(_mm256_shuffle_epi8(t0, _mm256_and_si256(codes, nibble)),
                          _mm256_shuffle_epi8(t1, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble)));
}

AVX2 uint32_t at_most(__m256i sum, __m256i limit) {  // a bit for each 16-bit sum
  const __m256i in = _mm256_cmpeq_epi16(_mm256_min_epu16(sum, limit), sum);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(in), _mm256_extracti128_si256(in, 1));
  return static_cast<uint32_t>(_mm_movemask_epi8(bytes));
}

}  // namespace

__attribute__((target("avx2,bmi2"))) uint64_t find_long_avx2(const Walk& walk, uint32_t planes,
                                                             const LongTables& query, uint32_t* mask) {
  const __m256i limit = _mm256_set1_epi16(static_cast<short>(query.threshold));
  Ahead ahead(walk, own_part(walk));
  for (uint64_t b = 0; b < walk.n; b++) {
    const uint8_t* block = walk[b];
    ahead.prefetch(b);
    __m256i even = _mm256_setzero_si256(), odd = even;
    uint32_t j = 0, in_even = 1, in_odd = 0;
    while (j < planes && (in_even | in_odd)) {
      const __m256i factor = _mm256_set1_epi16(query.factors[j / kGroup]);
      __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};  // of the group's even planes, of its odd ones
      for (const uint32_t end = j + kGroup < planes ? j + kGroup : planes; j < end; j++)
        sums[j % 2] = _mm256_adds_epu8(
            sums[j % 2], look_up(block + j * kLanes, query.tables + (j / 2) * kPairBytes + (j % 2) * 32));
      for (const __m256i& sum : sums) {
        even = _mm256_adds_epu16(even, _mm256_maddubs_epi16(sum, factor));
        odd = _mm256_adds_epu16(odd, _mm256_maddubs_epi16(sum, _mm256_slli_epi16(factor, 8)));
      }
      if (j % kLook && j < planes) continue;
      in_even = at_most(even, limit), in_odd = at_most(odd, limit);
    }
    if (in_even | in_odd) {
      *mask = lanes_of(in_even, in_odd);
      return b;
    }
    ahead.used(j);
  }
  return walk.n;
}

// ---------------------------------------------------------------- AVX-512: two planes a register
namespace {
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi2"), always_inline)) inline

AVX512 __m512i look_up_pair(__m512i codes, const uint8_t* tables) {
  const __m512i nibble = _mm512_set1_epi8(15);
  const __m512i low = _mm512_and_si512(codes, nibble), high = _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble);
  return _mm512_adds_epu8(_mm512_shuffle_epi8(_mm512_loadu_si512(tables), low),
                          _mm512_shuffle_epi8(_mm512_loadu_si512(tables + 64), high));
}

struct Sums {
  __m512i even, odd;  // of even and of odd lanes; one half for each plane of a pair
};

AVX512 void add_group(Sums* sums, __m512i group, uint8_t by) {
  const __m512i factor = _mm512_set1_epi16(by);
  sums->even = _mm512_adds_epu16(sums->even, _mm512_maddubs_epi16(group, factor));
  sums->odd = _mm512_adds_epu16(sums->odd, _mm512_maddubs_epi16(group, _mm512_slli_epi16(factor, 8)));
}

AVX512 uint32_t at_most_pair(__m512i sum, __m256i limit) {
  const __m256i both = _mm256_adds_epu16(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
  return _mm256_cmple_epu16_mask(both, limit);
}

}  // namespace

__attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi2"))) uint64_t find_long_avx512(const Walk& walk,
                                                                                         uint32_t planes,
                                                                                         const LongTables& query,
                                                                                         uint32_t* mask) {
  const __m256i limit = _mm256_set1_epi16(static_cast<short>(query.threshold));
  const uint32_t whole = planes / kGroup * kGroup;
  Ahead ahead(walk, own_part(walk));
  for (uint64_t b = 0; b < walk.n; b++) {
    const uint8_t* block = walk[b];
    ahead.prefetch(b);
    Sums sums{_mm512_setzero_si512(), _mm512_setzero_si512()};
    uint32_t j = 0, in_even = 1, in_odd = 0;
    while (j < planes && (in_even | in_odd)) {
      const uint8_t *codes = block + j * kLanes, *tables = query.tables + j / 2 * kPairBytes;
      if (j < whole) {
        const __m512i first = look_up_pair(_mm512_loadu_si512(codes), tables);
        const __m512i second = look_up_pair(_mm512_loadu_si512(codes + 64), tables + kPairBytes);
        add_group(&sums, _mm512_adds_epu8(first, second), query.factors[j / kGroup]);
        j += kGroup;
        if (j % kLook && j < planes) continue;
      } else {
        __m512i group = _mm512_setzero_si512();
        const uint8_t factor = query.factors[j / kGroup];
        for (; j < planes; j += 2, codes += 64, tables += kPairBytes)
          group = _mm512_adds_epu8(
              group, look_up_pair(_mm512_maskz_loadu_epi64(j + 1 < planes ? 0xFF : 0x0F, codes), tables));
        add_group(&sums, group, factor);
      }
      in_even = at_most_pair(sums.even, limit), in_odd = at_most_pair(sums.odd, limit);
    }
    if (in_even | in_odd) {
      *mask = lanes_of(in_even, in_odd);
      return b;
    }
    ahead.used(j < planes ? j : planes);
  }
  return walk.n;
}
#endif

}  // namespace bitscale

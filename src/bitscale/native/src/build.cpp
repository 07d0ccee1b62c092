// Making a segment: sort codes, store equal ones once, and lay out tables in bucket order.
#include <algorithm>
#include <atomic>
#include <cstring>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <memory>
#include <new>
#include <vector>

#include "layout.hpp"
#include "parallel.hpp"

namespace bitscale {
namespace {

struct Row {
  uint64_t key;
  uint32_t from;  // the row's place before sorting
};

constexpr size_t kFew = 24;           // rows an insertion sort handles best
constexpr size_t kWorthThreads = 1 << 16;
constexpr uint32_t kFanout = 256;

// Sorts rows by the top `bits` bits of their keys, keeping the order of equal ones; one byte a level.
class RadixSort {
 public:
  explicit RadixSort(uint32_t bits) : bits_(bits) {}

  // Rows stand in `rows` before and after; `spare` is as large.
  void operator()(Row* rows, Row* spare, size_t n, uint32_t threads) const {
    if (threads > 1 && n >= kWorthThreads) return top_level(rows, spare, n, threads);
    descend(rows, spare, n, 0, false);
  }

 private:
  uint32_t digit(const Row& row, uint32_t level) const {
    const uint32_t width = std::min<uint32_t>(8, bits_ - level);
    return static_cast<uint32_t>(row.key << level >> (64 - width));
  }
  bool before(const Row& a, const Row& b) const {
    const uint64_t x = a.key >> (64 - bits_), y = b.key >> (64 - bits_);
    return x != y ? x < y : a.from < b.from;
  }

  // Sort `at`; leave the result there, or in `other` when told so.
  void descend(Row* at, Row* other, size_t n, uint32_t level, bool into_other) const {
    if (n <= kFew) {
      for (size_t i = 1; i < n; i++) {
        const Row row = at[i];
        size_t j = i;
        for (; j && before(row, at[j - 1]); j--) at[j] = at[j - 1];
        at[j] = row;
      }
    } else if (level < bits_) {
      size_t ends[kFanout] = {};
      for (size_t i = 0; i < n; i++) ends[digit(at[i], level)]++;
      if (ends[digit(at[0], level)] == n) return descend(at, other, n, level + 8, into_other);
      size_t sum = 0;
      for (size_t& end : ends) sum += end, end = sum - end;
      for (size_t i = 0; i < n; i++) other[ends[digit(at[i], level)]++] = at[i];
      for (uint32_t d = 0; d < kFanout; d++) {
        const size_t begin = d ? ends[d - 1] : 0;
        if (begin < ends[d]) descend(other + begin, at + begin, ends[d] - begin, level + 8, !into_other);
      }
      return;
    }
    if (into_other) std::memcpy(static_cast<void*>(other), at, n * sizeof(Row));
  }

  void top_level(Row* rows, Row* spare, size_t n, uint32_t threads) const {
    std::vector<std::vector<size_t>> places(threads, std::vector<size_t>(kFanout));
    in_parallel(threads, [&](uint32_t t) {
      for (size_t i = n * t / threads, end = n * (t + 1) / threads; i < end; i++) places[t][digit(rows[i], 0)]++;
    });
    std::vector<size_t> begins(kFanout + 1);
    size_t sum = 0;
    for (uint32_t d = 0; d < kFanout; d++) {
      begins[d] = sum;
      for (auto& place : places) sum += place[d], place[d] = sum - place[d];
    }
    begins[kFanout] = n;
    in_parallel(threads, [&](uint32_t t) {
      for (size_t i = n * t / threads, end = n * (t + 1) / threads; i < end; i++) spare[places[t][digit(rows[i], 0)]++] = rows[i];
    });
    std::atomic<uint32_t> next{0};
    in_parallel(threads, [&](uint32_t) {
      for (uint32_t d; (d = next++) < kFanout;)
        descend(spare + begins[d], rows + begins[d], begins[d + 1] - begins[d], 8, true);
    });
  }

  uint32_t bits_;
};

uint64_t load_key(const uint8_t* code, uint32_t n_bytes, uint32_t from) {  // 8 bytes from `from`, first byte highest
  uint64_t key = 0;
  if (from + 8 <= n_bytes) {
    std::memcpy(&key, code + from, 8);
    return __builtin_bswap64(key);
  }
  for (uint32_t i = 0; i < 8; i++) key = key << 8 | (from + i < n_bytes ? code[from + i] : 0);
  return key;
}

// Rows share the bytes before `from`; order them by the rest.
void sort_rest(const uint8_t* codes, uint32_t n_bytes, Row* rows, Row* spare, size_t n, uint32_t from) {
  for (size_t i = 0; i < n; i++) rows[i].key = load_key(codes + uint64_t{rows[i].from} * n_bytes, n_bytes, from);
  RadixSort{64}(rows, spare, n, 1);
  if (from + 8 >= n_bytes) return;
  for (size_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && rows[end].key == rows[begin].key;) end++;
    if (end - begin > 1) sort_rest(codes, n_bytes, rows + begin, spare, end - begin, from + 8);
  }
}

// For codes longer than a key: order each run of equal keys by its remaining bytes, runs shared among threads.
void sort_tails(const uint8_t* codes, uint32_t n_bytes, Row* rows, Row* spare, size_t n, uint32_t threads) {
  std::vector<size_t> edges;
  for (uint32_t t = 0; t <= threads; t++) {
    size_t edge = n * t / threads;
    while (edge && edge < n && rows[edge].key == rows[edge - 1].key) edge++;
    edges.push_back(edge);
  }
  in_parallel(threads, [&](uint32_t t) {
    for (size_t begin = edges[t], end; begin < edges[t + 1]; begin = end) {
      const uint64_t key = rows[begin].key;
      for (end = begin + 1; end < n && rows[end].key == key;) end++;
      if (end - begin < 2) continue;
      sort_rest(codes, n_bytes, rows + begin, spare + begin, end - begin, 8);
      for (size_t i = begin; i < end; i++) rows[i].key = key;
    }
  });
}

// A table's view of a code: the key bits on top. Short codes are rotated, so that the key is the whole code.
uint64_t table_key(const uint8_t* code, uint32_t n_bytes, uint32_t first_bit) {
  if (n_bytes > 8) return load_key(code, n_bytes, first_bit / 8) << first_bit % 8;
  const uint64_t key = load_key(code, n_bytes, 0);
  return first_bit ? key << first_bit | key >> (64 - first_bit) : key;
}

void put(uint8_t* blocks, uint32_t n_bytes, uint64_t row, const uint8_t* code) {
  uint8_t* lane = blocks + row / kLanes * n_bytes * kLanes + row % kLanes;
  for (uint32_t j = 0; j < n_bytes; j++) lane[uint64_t{j} * kLanes] = code[j];
}

void put_key(uint8_t* blocks, uint32_t n_bytes, uint64_t row, uint64_t key, uint32_t first_bit) {
  if (first_bit) key = key >> first_bit | key << (64 - first_bit);
  key = __builtin_bswap64(key);
  put(blocks, n_bytes, row, reinterpret_cast<const uint8_t*>(&key));
}

}  // namespace
}  // namespace bitscale

using namespace bitscale;

// Sort `codes` (n x n_bytes) and store equal ones once: `ordinals` (n) lists rows in code order, `item_offsets` (n + 1)
// where each distinct code's rows begin, `distinct` (n x n_bytes) the codes themselves. *n_codes is their number.
BITSCALE_API int bitscale_sort(const uint8_t* codes, uint64_t n, uint32_t n_bytes, uint32_t threads, uint32_t* ordinals,
                               uint32_t* item_offsets, uint8_t* distinct, uint64_t* n_codes) try {
  if (!n_bytes || !threads || n >= UINT32_MAX) return kBadArgument;
  std::unique_ptr<Row[]> rows(new Row[n]), spare(new Row[n]);
  in_parallel(threads, [&](uint32_t t) {
    for (uint64_t i = n * t / threads, end = n * (t + 1) / threads; i < end; i++)
      rows[i] = {load_key(codes + i * n_bytes, n_bytes, 0), static_cast<uint32_t>(i)};
  });
  RadixSort{64}(rows.get(), spare.get(), n, threads);
  if (n_bytes > 8) sort_tails(codes, n_bytes, rows.get(), spare.get(), n, threads);
  uint64_t count = 0;
  const uint8_t* last = nullptr;
  for (uint64_t i = 0; i < n; i++) {
    ordinals[i] = rows[i].from;
    const uint8_t* code = codes + uint64_t{rows[i].from} * n_bytes;
    bool fresh = !i || rows[i].key != rows[i - 1].key;
    if (!fresh && n_bytes > 8) fresh = std::memcmp(code, last, n_bytes) != 0;
    if (!fresh) continue;
    if (n_bytes == 8) {
      const uint64_t key = __builtin_bswap64(rows[i].key);
      std::memcpy(distinct + count * 8, &key, 8);
    } else {
      std::memcpy(distinct + count * n_bytes, last = code, n_bytes);
    }
    item_offsets[count++] = static_cast<uint32_t>(i);
  }
  item_offsets[count] = static_cast<uint32_t>(n);
  *n_codes = count;
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
} catch (...) {
  return kBadArgument;
}

// Lay out a table over `distinct` (n x n_bytes, sorted): bucket offsets, codes in blocks and, unless this is table 0
// (`positions` null), the row each code has there.
BITSCALE_API int bitscale_table(const uint8_t* distinct, uint64_t n, uint32_t n_bytes, uint32_t first_bit, uint32_t width,
                                uint32_t threads, uint32_t* offsets, uint8_t* blocks, uint32_t* positions) try {
  if (!n_bytes || !threads || !width || width > kMaxWidth || first_bit + width > n_bytes * 8 || n >= UINT32_MAX)
    return kBadArgument;
  if (!positions && first_bit) return kBadArgument;
  std::unique_ptr<Row[]> rows(new Row[n]), spare(new Row[positions ? n : 0]);
  in_parallel(threads, [&](uint32_t t) {
    for (uint64_t i = n * t / threads, end = n * (t + 1) / threads; i < end; i++)
      rows[i] = {table_key(distinct + i * n_bytes, n_bytes, first_bit), static_cast<uint32_t>(i)};
  });
  if (positions) RadixSort{width}(rows.get(), spare.get(), n, threads);
  auto bucket_of = [&](uint64_t i) { return rows[i].key >> (64 - width); };
  in_parallel(threads, [&](uint32_t t) {  // whole blocks to each thread
    const uint64_t n_blocks = (n + kLanes - 1) / kLanes;
    const uint64_t begin = n_blocks * t / threads * kLanes, end = std::min(n, n_blocks * (t + 1) / threads * kLanes);
    for (uint64_t i = begin; i < end; i++) {
      if (positions) positions[i] = rows[i].from;
      if (n_bytes <= 8) put_key(blocks, n_bytes, i, rows[i].key, first_bit);
      else put(blocks, n_bytes, i, distinct + uint64_t{rows[i].from} * n_bytes);
      // a bucket's first row is where it, and the empty ones before it, begin
      for (uint64_t b = i ? bucket_of(i - 1) + 1 : 0; b <= bucket_of(i); b++) offsets[b] = static_cast<uint32_t>(i);
    }
  });
  for (uint64_t b = n ? bucket_of(n - 1) + 1 : 0; b <= uint64_t{1} << width; b++) offsets[b] = static_cast<uint32_t>(n);
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
} catch (...) {
  return kBadArgument;
}

// Give memory that building left behind back to the system.
BITSCALE_API void bitscale_trim() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

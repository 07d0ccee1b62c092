// The C boundary of search. Python has checked shapes and ranges; what is cheap to check again is checked here.
#include <memory>
#include <limits>
#include <new>

#include "search.hpp"

namespace bitscale {
namespace {

struct Queries {
  const Filter* filter;
  const uint8_t* codes;    // n x n_bytes
  const int32_t* costs;    // cost_rows x n_bits; zero from `bits` on
  const double* unit;      // cost_rows
  const double* base;      // n; null: 0
  uint64_t n, cost_rows;
  uint32_t n_bytes, n_bits, bits;

  uint32_t planes() const { return (bits + 7) / 8; }
  const int32_t* costs_of(uint64_t i) const { return costs + (cost_rows == 1 ? 0 : i) * n_bits; }
  double value(uint64_t i, const Hit& hit) const {
    return hit.distance * unit[cost_rows == 1 ? 0 : i] + (base ? base[i] : 0);
  }
  bool valid(const Segment* segments, const Plan* plans, uint32_t n_segments) const {
    for (uint32_t s = 0; s < n_segments; s++)
      if (segments[s].n_bytes != n_bytes || plans[s].n_tables > segments[s].n_tables) return false;
    return filter && bits >= 1 && bits <= n_bits && n_bytes == (n_bits + 7) / 8 && (cost_rows == 1 || cost_rows == n);
  }
};

// A search with everything fixed but the queries' codes: made once, used often.
struct Call {
  const Segment* segments;
  const Plan* plans;
  uint64_t k;
  uint32_t n_segments, strategy, threads;
  Queries queries;  // without codes
};

template <class Sink, class MakeSink>
Vec<Search<Sink>> prepare(const Queries& queries, uint64_t from, uint64_t to, const MakeSink& make_sink) {
  Vec<Search<Sink>> searches;
  searches.reserve(to - from);
  Vec<int32_t> table;
  for (uint64_t i = from; i < to; i++) {
    if (table.empty() || queries.cost_rows > 1) table = nibble_costs(queries.costs_of(i), queries.n_bits, queries.planes());
    Query query(queries.filter, queries.codes + i * queries.n_bytes, table, queries.planes());
    searches.emplace_back(std::move(query), make_sink(i), queries.costs_of(i));
  }
  return searches;
}

template <class Sink>
void add_stats(const Vec<Search<Sink>>& searches, Stats* total) {
  for (const auto& search : searches) {
    total->steps += search.stats.steps, total->codes += search.stats.codes, total->blocks += search.stats.blocks;
    total->flat_queries += search.stats.flat_queries;
    total->probe_ns += search.stats.probe_ns, total->flat_ns += search.stats.flat_ns;
  }
}

struct Found {  // of a lookup, until Python has copied it
  std::vector<uint64_t> offsets;
  std::vector<int64_t> ids;
  std::vector<double> distances;
};

}  // namespace
}  // namespace bitscale

using namespace bitscale;

// The k first items by (distance, id) for each of n queries; rows shorter than k are padded with -1 and infinity.
// `base` may be null: 0.
BITSCALE_API int bitscale_search(const Call* call, const uint8_t* codes, const double* base, uint64_t n, int64_t* ids,
                                 Stats* stats) try {
  Queries all = call->queries;
  all.codes = codes, all.base = base, all.n = n;
  const Queries* queries = &all;
  const Segment* segments = call->segments;
  const Plan* plans = call->plans;
  const uint64_t k = call->k;
  const uint32_t n_segments = call->n_segments, threads = call->threads;
  double* distances = reinterpret_cast<double*>(ids + n * k);
  if (!queries->valid(segments, plans, n_segments) || !k || !threads || call->strategy > kProbe) return kBadArgument;
  const uint64_t chunk = std::max<uint64_t>(16, std::min<uint64_t>(4096, (uint64_t{4} << 20) / k));  // bounds memory
  for (uint64_t from = 0; from < queries->n; from += chunk) {
    const uint64_t to = std::min(queries->n, from + chunk);
    auto searches = prepare<Top>(*queries, from, to, [&](uint64_t) { return Top(k); });
    search_all<Top>(segments, plans, n_segments, queries->bits, &searches, static_cast<Strategy>(call->strategy), threads);
    for (uint64_t i = from; i < to; i++) {
      const Vec<Hit>& hits = searches[i - from].sink.sorted();
      for (uint64_t j = 0; j < k; j++) {
        const bool found = j < hits.size();
        ids[i * k + j] = found ? hits[j].id : -1;
        distances[i * k + j] = found ? queries->value(i, hits[j]) : std::numeric_limits<double>::infinity();
      }
    }
    add_stats(searches, stats);
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
} catch (...) {
  return kBadArgument;
}

// All items with an integer distance of at most radius[i]. The result is kept for bitscale_lookup_take.
BITSCALE_API int bitscale_lookup(const Segment* segments, const Plan* plans, uint32_t n_segments, const Queries* queries,
                                 const int32_t* radius, uint32_t strategy, uint32_t threads, void** result,
                                 uint64_t* total, Stats* stats) try {
  if (!queries->valid(segments, plans, n_segments) || !threads || strategy > kProbe) return kBadArgument;
  auto found = std::make_unique<Found>();
  found->offsets.push_back(0);
  for (uint64_t from = 0; from < queries->n; from += 1024) {
    const uint64_t to = std::min(queries->n, from + 1024);
    auto searches = prepare<Ball>(*queries, from, to, [&](uint64_t i) { return Ball(radius[i]); });
    search_all<Ball>(segments, plans, n_segments, queries->bits, &searches, static_cast<Strategy>(strategy), threads);
    for (uint64_t i = from; i < to; i++) {
      for (const Hit& hit : searches[i - from].sink.sorted()) {
        found->ids.push_back(hit.id);
        found->distances.push_back(queries->value(i, hit));
      }
      found->offsets.push_back(found->ids.size());
    }
    add_stats(searches, stats);
  }
  *total = found->ids.size();
  *result = found.release();
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
} catch (...) {
  return kBadArgument;
}

// Copy a lookup's result out and free it; null pointers only free.
BITSCALE_API void bitscale_lookup_take(void* result, int64_t* offsets, int64_t* ids, double* distances) {
  std::unique_ptr<Found> found(static_cast<Found*>(result));
  if (!offsets) return;
  std::copy(found->offsets.begin(), found->offsets.end(), offsets);
  std::copy(found->ids.begin(), found->ids.end(), ids);
  std::copy(found->distances.begin(), found->distances.end(), distances);
}

#include "search.hpp"

#include <atomic>
#include <chrono>
#include <cmath>

#include "parallel.hpp"

namespace bitscale {
namespace {

constexpr uint64_t kTileBytes = 256 << 10;       // codes that stay in cache while a batch passes over them
constexpr double kWorthAThread = 200e3;          // ns of work below which starting a thread costs more
// Shares of the flat scan's time that probing may take, and of the way it must then have come: see Search::probe.
constexpr double kTrial = 0.05, kPatience = 1.5, kBlind = 0.25, kFarEnough = 0.6;
constexpr double kLongTrial = 0.01;  // in long codes neighbours are found at once, or hardly ever
constexpr uint32_t kGlance = 8;     // planes of a long code that are read before most codes are ruled out

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch()).count());
}

// `count` bits of a code from `first` on, as a number.
uint32_t key_bits(const uint8_t* code, uint32_t n_bytes, uint32_t first, uint32_t count) {
  uint64_t window = 0;
  for (uint32_t i = 0; i < 5; i++) window = window << 8 | (first / 8 + i < n_bytes ? code[first / 8 + i] : 0);
  return static_cast<uint32_t>(window >> (40 - first % 8 - count)) & ((1u << count) - 1);
}

// A schedule already made, or one that grows as it is read.
class Steps {
 public:
  Steps(const Plan& plan, const Segment& segment, const Vec<Key>& keys, const int32_t* costs)
      : steps_(plan.steps), size_(plan.n_steps), final_bound_(plan.final_bound) {
    if (steps_) return;
    Vec<float> work;
    for (const Key& key : keys)
      work.push_back(static_cast<float>(plan.probe_ns + plan.code_ns * static_cast<double>(segment.n_codes) / (1u << key.used)));
    lazy_.emplace_back(keys, costs, work);
    grow();
  }
  bool has(uint64_t i) { return i < size_ || (!lazy_.empty() && grow() && i < size_); }
  uint64_t size() const { return size_; }
  const Step& operator[](uint64_t i) const { return steps_[i]; }
  int32_t final_bound() const { return final_bound_; }

 private:
  bool grow() {
    if (ended_) return false;
    ended_ = !lazy_[0].extend(&own_, std::max<size_t>(64, own_.size()));
    steps_ = own_.data();
    size_ = own_.size();
    final_bound_ = lazy_[0].bound();
    return true;
  }
  const Step* steps_;
  uint64_t size_;
  int32_t final_bound_;
  Vec<Schedule> lazy_;
  Vec<Step> own_;
  bool ended_ = false;
};

constexpr uint64_t kFar = 16, kNear = 4;  // steps ahead to ask for a bucket's borders, and for its codes
constexpr uint64_t kAsked = 8;            // blocks of a bucket to ask for; the scan itself looks ahead in longer ones

// Where a step leads: the rows [*begin, *end) of a table.
struct Place {
  const Table* table;
  const uint32_t *begin, *end;

  __attribute__((always_inline)) inline void announce() const {
    __builtin_prefetch(begin);
    __builtin_prefetch(end);
  }
  // Ask for the first `bytes` of each of its blocks.
  __attribute__((always_inline)) inline void prefetch(const Segment& segment, uint32_t bytes) const {
    if (*begin >= *end) return;
    const uint64_t first = *begin / kLanes, stop = std::min<uint64_t>((*end - 1) / kLanes + 1, first + kAsked);
    for (uint64_t b = first; b < stop; b++)
      for (uint32_t c = 0; c < bytes; c += 64) __builtin_prefetch(table->blocks + b * segment.block_bytes() + c);
  }
};

// Modelled time of the steps from `from` on until the bound exceeds `reach`; infinite when they do not suffice.
double time_left(const Plan& plan, uint64_t from, int32_t reach) {
  if (!plan.steps) return 0;
  const Step* end = std::upper_bound(plan.steps + from, plan.steps + plan.n_steps, reach,
                                     [](int32_t value, const Step& step) { return value < step.bound; });
  const uint64_t to = static_cast<uint64_t>(end - plan.steps);
  if (to == plan.n_steps && plan.final_bound <= reach) return INFINITY;
  if (to == from) return 0;
  const double codes = plan.codes[to - 1] - (from ? plan.codes[from - 1] : 0);
  return plan.probe_ns * static_cast<double>(to - from) + plan.code_ns * codes;
}

}  // namespace

// The planner's run-time half. Probing that is expected to beat the flat scan may take up to kPatience times as long
// before it is given up; otherwise a short trial finds out whether neighbours are close (clustered codes), and only
// then goes on. Steps drawn as they come do not tell how many are left; they go on only if the bound is close already.
template <class Sink>
bool Search<Sink>::probe(const Segment& segment, const Plan& plan, uint32_t bits, bool may_give_up, double flat_ns) {
  const Vec<Key> keys = keys_in_use(segment.tables, plan.n_tables, bits);
  uint32_t key[kMaxTables], shift[kMaxTables];
  for (const Key& k : keys) {
    key[k.table] = key_bits(query.code(), segment.n_bytes, k.first_bit, k.used);
    shift[k.table] = segment.tables[k.table].width - k.used;
  }
  const uint32_t glance = (query.is_long() ? kGlance : query.planes()) * kLanes;  // bytes of a block surely read
  const bool exact = keys.size() == 1 && keys[0].used == bits;  // a bucket is one distance
  const double expected = sink.bounded() ? std::min(plan.expected_ns, time_left(plan, 0, sink.reach())) : plan.expected_ns;
  bool promising = plan.steps && expected <= flat_ns;
  double spent = 0, budget = flat_ns * (!plan.steps ? kBlind : promising ? kPatience : query.is_long() ? kLongTrial : kTrial);
  Steps steps(plan, segment, keys, costs);
  const auto place = [&](uint64_t i) {
    const uint32_t t = steps[i].probe >> kMaxWidth;
    const uint64_t bucket = key[t] ^ (steps[i].probe & ((1u << kMaxWidth) - 1));
    const uint32_t* offsets = segment.tables[t].offsets;
    return Place{&segment.tables[t], offsets + (bucket << shift[t]), offsets + ((bucket + 1) << shift[t])};
  };
  for (uint64_t i = 0; i < std::min(kFar, steps.size()); i++) place(i).announce();
  for (uint64_t i = 0; i < std::min(kNear, steps.size()) && !exact; i++) place(i).prefetch(segment, glance);
  for (uint64_t i = 0; steps.has(i); i++) {
    const Step step = steps[i];
    if (step.bound > sink.reach()) return true;
    if (i + kFar < steps.size()) place(i + kFar).announce();
    if (i + kNear < steps.size() && !exact) place(i + kNear).prefetch(segment, glance);
    const Place at = place(i);
    const uint32_t begin = *at.begin, end = *at.end;
    stats.steps++;
    stats.codes += end - begin;
    if (begin < end) {
      if (exact) take_bucket(segment, begin, end, step.bound);
      else scan(segment, *at.table, begin, end, true);
    }
    if (exact) settled = steps.has(i + 1) ? steps[i + 1].bound : steps.final_bound();
    spent += plan.probe_ns + plan.code_ns * (end - begin) + (plan.steps ? 0 : plan.draw_ns);
    if (may_give_up && spent > budget && !(exact && settled == step.bound)) {
      if (promising || !sink.bounded()) return false;
      if (plan.steps ? time_left(plan, i + 1, sink.reach()) > flat_ns : step.bound < kFarEnough * sink.reach()) return false;
      promising = true;
      budget = spent + flat_ns * (plan.steps ? kPatience : 1);
    }
  }
  return steps.final_bound() > sink.reach() || steps.final_bound() >= kEverything;
}

namespace {

// Filter the blocks [begin, end) for several queries, kBatch at a time, tile by tile.
template <class Sink>
void scan_batch(const Segment& segment, Search<Sink>* const* searches, uint64_t n, uint64_t begin, uint64_t end) {
  const Table& table = segment.tables[0];
  const uint64_t stride = segment.block_bytes(), tile = n > (searches[0]->query.is_long() ? 1 : kBatch) ? std::max<uint64_t>(1, kTileBytes / stride) : end - begin;
  for (uint64_t q = 0; q < n; q++)
    if (!searches[q]->sink.bounded())
      searches[q]->seed(segment, table, begin * kLanes, std::min(end * kLanes, segment.n_codes), true);
  for (uint64_t at = begin; at < end; at += tile) {
    const uint64_t stop = std::min(end, at + tile);
    uint64_t q = 0;
    for (; q + kBatch <= n && !searches[q]->query.is_long(); q += kBatch) {
      for (uint64_t b = at; b < stop; b++) {
        const uint8_t* tables[kBatch];
        uint8_t thresholds[kBatch];
        uint32_t masks[kBatch] = {};
        for (uint32_t i = 0; i < kBatch; i++) {
          Query& query = searches[q + i]->query;
          query.aim(searches[q + i]->sink.reach());
          tables[i] = query.tables(), thresholds[i] = query.threshold();
        }
        b += searches[q]->query.filter().find_batch(table.blocks + b * stride, stop - b, segment.n_bytes, searches[q]->query.planes(),
                                 tables, thresholds, masks);
        if (b == stop) break;
        const uint64_t over = (b + 1) * kLanes > segment.n_codes ? (b + 1) * kLanes - segment.n_codes : 0;
        for (uint32_t i = 0; i < kBatch; i++)
          searches[q + i]->survivors(segment, table, b, masks[i] & ~0u >> over, false);
      }
    }
    for (; q < n; q++) searches[q]->scan(segment, table, at * kLanes, std::min(stop * kLanes, segment.n_codes), false);
  }
}

template <class Sink>
void flat_all(const Segment& segment, Vec<Search<Sink>*>* searches, uint32_t threads, double block_ns) {
  const uint64_t n = searches->size(), blocks = segment.n_blocks();
  if (block_ns * static_cast<double>(blocks * n) < kWorthAThread) threads = 1;
  if (threads <= 1 || n >= uint64_t{threads} * kBatch) {  // queries to spare: each thread takes some
    in_parallel(threads, [&](uint32_t t) {
      const uint64_t from = n * t / threads, to = n * (t + 1) / threads;
      if (from < to) scan_batch(segment, searches->data() + from, to - from, 0, blocks);
    });
    return;
  }
  // Few queries: each thread takes a range of blocks with sinks of its own, none worse than what is known already.
  Vec<Vec<Search<Sink>>> parts(threads);
  in_parallel(threads, [&](uint32_t t) {
    Vec<Search<Sink>*> own;
    parts[t].reserve(n);
    for (Search<Sink>* search : *searches) {
      parts[t].push_back(search->part());
      own.push_back(&parts[t].back());
    }
    scan_batch(segment, own.data(), n, blocks * t / threads, blocks * (t + 1) / threads);
  });
  for (auto& part : parts)
    for (uint64_t i = 0; i < n; i++)
      for (const Hit& hit : part[i].sink.hits()) (*searches)[i]->sink.offer(hit.distance, hit.id);
}

}  // namespace

template <class Sink>
void search_all(const Segment* segments, const Plan* plans, uint32_t n_segments, uint32_t bits,
                Vec<Search<Sink>>* searches, Strategy strategy, uint32_t threads) {
  const uint64_t n = searches->size();
  for (uint32_t s = 0; s < n_segments; s++) {
    const Segment& segment = segments[s];
    const Plan& plan = plans[s];
    if (!segment.n_codes) continue;
    const double block_ns = n >= kBatch ? plan.block_batch_ns : plan.block_ns;
    const double flat_ns = block_ns * static_cast<double>(segment.n_blocks());
    const bool probing = strategy != kFlat && plan.n_tables > 0;
    std::atomic<uint64_t> next{0};
    const uint32_t probers = probing && n > 1 && static_cast<double>(n) * std::min(plan.expected_ns, flat_ns) > kWorthAThread ? threads : 1;
    in_parallel(static_cast<uint32_t>(std::min<uint64_t>(probers, n)), [&](uint32_t) {
      for (uint64_t i; (i = next++) < n;) {
        Search<Sink>& search = (*searches)[i];
        search.seen.clear();
        search.settled = 0;
        search.needs_flat = search.sink.reach() >= 0;
        if (!probing || !search.needs_flat) continue;
        const uint64_t start = now_ns();
        search.needs_flat = plan.centres && strategy == kAuto && search.query.is_long()
                                ? !search.visit(segment, *plan.centres)
                                : !search.probe(segment, plan, bits, strategy == kAuto, flat_ns);
        search.stats.probe_ns += now_ns() - start;
      }
    });
    Vec<Search<Sink>*> flat;
    for (Search<Sink>& search : *searches)
      if (search.needs_flat) flat.push_back(&search);
    if (flat.empty()) continue;
    const uint64_t start = now_ns();
    flat_all(segment, &flat, threads, block_ns);
    Stats& stats = flat[0]->stats;
    stats.flat_ns += now_ns() - start;
    stats.blocks += segment.n_blocks() * flat.size();
    stats.flat_queries += flat.size();
  }
}

template void search_all<Top>(const Segment*, const Plan*, uint32_t, uint32_t, Vec<TopSearch>*, Strategy, uint32_t);
template void search_all<Ball>(const Segment*, const Plan*, uint32_t, uint32_t, Vec<BallSearch>*, Strategy, uint32_t);

}  // namespace bitscale

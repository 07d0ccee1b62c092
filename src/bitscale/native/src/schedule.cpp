#include "schedule.hpp"

#include <algorithm>
#include <new>

namespace bitscale {

constexpr size_t kLongRun = 1024;

Vec<Key> keys_in_use(const Table* tables, uint32_t n_tables, uint32_t bits) {
  Vec<Key> keys;
  for (uint32_t t = 0; t < n_tables; t++)
    if (tables[t].first_bit < bits)
      keys.push_back({t, tables[t].first_bit, std::min(tables[t].width, bits - tables[t].first_bit)});
  return keys;
}

Patterns::Patterns(const Key& key, const int32_t* costs) {
  for (uint32_t i = 0; i < key.used; i++) bits_.push_back({costs[key.first_bit + i], 1u << (key.used - 1 - i)});
  std::sort(bits_.begin(), bits_.end(), [](const Bit& a, const Bit& b) { return a.cost < b.cost; });
  if (!bits_.empty()) heap_.push_back({bits_[0].cost, 0, bits_[0].mask});
}

void Patterns::sink(const Node& node) {
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
    if (child + 1 < heap_.size() && heap_[child + 1].cost < heap_[child].cost) child++;
    if (heap_[child].cost >= node.cost) break;
    heap_[at] = heap_[child];
  }
  heap_[at] = node;
}

void Patterns::push(const Node& node) {
  size_t at = heap_.size();
  heap_.push_back(node);
  for (size_t parent; at && heap_[parent = (at - 1) / 2].cost > node.cost; at = parent) heap_[at] = heap_[parent];
  heap_[at] = node;
}

// Each subset is reached once: add the next dearer bit, or exchange the dearest for it.
void Patterns::next() {
  if (heap_.empty()) {
    done_ = true;
    return;
  }
  const Node node = heap_[0];
  cost_ = node.cost;
  pattern_ = node.pattern;
  if (node.last + 1 < bits_.size()) {
    const Bit &last = bits_[node.last], &dearer = bits_[node.last + 1];
    sink({node.cost - last.cost + dearer.cost, node.last + 1, (node.pattern ^ last.mask) | dearer.mask});
    push({node.cost + dearer.cost, node.last + 1, node.pattern | dearer.mask});
  } else {
    const Node moved = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(moved);
  }
}

Schedule::Schedule(const Vec<Key>& keys, const int32_t* costs, const Vec<float>& work) {
  for (size_t i = 0; i < keys.size(); i++) {
    streams_.push_back({keys[i], Patterns(keys[i], costs), work[i], {}, 0, 0, 1});
    refill(&streams_.back());
  }
}

// Runs double in length: the gain of a single pattern is noise, that of many is the slope worth comparing. They go on
// over equal costs, where stopping gains nothing, but not for ever: bits that cost nothing make 2^n equal patterns.
void Schedule::refill(Stream* s) {
  s->run.clear();
  s->lower = s->patterns.cost();
  int32_t last = s->lower;
  while (!s->patterns.done() && (s->run.size() < s->length || (s->patterns.cost() == last && s->run.size() < kLongRun))) {
    s->run.push_back({s->key.table << kMaxWidth | s->patterns.pattern(), s->patterns.cost()});
    last = s->patterns.cost();
    s->patterns.next();
  }
  s->after = s->patterns.done() ? kEverything : s->patterns.cost();
  s->length = std::min(s->length * 2, kLongRun);
}

bool Schedule::extend(Vec<Step>* steps, size_t count) {
  const size_t goal = steps->size() + count;
  while (steps->size() < goal) {
    Stream* best = nullptr;
    float slope = -1;
    for (Stream& s : streams_) {
      const float gain = static_cast<float>(s.after - s.lower) / (s.work * static_cast<float>(s.run.size()));
      if (gain > slope) best = &s, slope = gain;
    }
    if (!best || bound_ >= kEverything) {
      bound_ = kEverything;
      return false;
    }
    const int32_t others = bound_ - best->lower;
    for (const Step& step : best->run) steps->push_back({step.probe, others + step.bound});
    bound_ = best->after >= kEverything ? kEverything : others + best->after;
    if (bound_ < kEverything) refill(best);
  }
  return bound_ < kEverything;
}

Forecast::Forecast(const int32_t* costs, uint32_t bits) {
  int64_t total = 0;
  for (uint32_t i = 0; i < bits; i++) total += costs[i];
  cell_ = std::max<double>(1, static_cast<double>(total)) / kCells;
  double density[kCells + 1] = {1.0};
  int top = 0;
  for (uint32_t i = 0; i < bits; i++) {
    const double shift = costs[i] / cell_;
    const int whole = static_cast<int>(shift);
    const double part = shift - whole;
    top = std::min(kCells, top + whole + 1);
    for (int c = top; c >= 0; c--) {
      double moved = c >= whole ? density[c - whole] * (1 - part) : 0;
      if (c > whole) moved += density[c - whole - 1] * part;
      density[c] = 0.5 * (density[c] + moved);
    }
  }
  double sum = 0;
  for (int c = 0; c <= kCells; c++) below_[c] = sum += density[c];
}

int32_t Forecast::distance(double share) const {
  const double* cell = std::lower_bound(below_, below_ + kCells, share);
  return static_cast<int32_t>((cell - below_ + 1) * cell_);
}

}  // namespace bitscale

using namespace bitscale;

// Steps for costs shared by many queries. Arrays hold `capacity` steps; *n_steps says how many were written and
// *final_bound what holds after them. `codes` is the expected number of codes met up to and including each step.
BITSCALE_API int bitscale_schedule(const Table* tables, uint32_t n_tables, uint64_t n_codes, const int32_t* costs,
                                   uint32_t bits, double probe_codes, uint64_t capacity, Step* out,
                                   float* codes, uint64_t* n_steps, int32_t* final_bound) try {
  const Vec<Key> keys = keys_in_use(tables, n_tables, bits);
  if (keys.empty() || n_tables > kMaxTables) return kBadArgument;
  Vec<float> met(kMaxTables, 0), work;
  for (const Key& key : keys) {
    met[key.table] = static_cast<float>(static_cast<double>(n_codes) / static_cast<double>(1u << key.used));
    work.push_back(met[key.table] + static_cast<float>(probe_codes));
  }
  Schedule schedule(keys, costs, work);
  Vec<Step> steps;
  while (steps.size() < capacity && schedule.extend(&steps, std::min<size_t>(1024, capacity - steps.size()))) {
  }
  *n_steps = std::min<uint64_t>(steps.size(), capacity);
  *final_bound = *n_steps < steps.size() ? steps[*n_steps].bound : schedule.bound();
  while (*n_steps && steps[*n_steps - 1].bound == *final_bound) --*n_steps;  // never end amid equal bounds
  double seen = 0;
  for (uint64_t i = 0; i < *n_steps; i++) {
    out[i] = steps[i];
    codes[i] = static_cast<float>(seen += met[steps[i].probe >> kMaxWidth]);
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

// The distance below which `share` of all codes would lie if bits were fair coins.
BITSCALE_API int32_t bitscale_forecast(const int32_t* costs, uint32_t bits, double share) {
  return Forecast(costs, bits).distance(share);
}

// Searching one segment for one query: probe buckets in schedule order, or filter every code.
#pragma once

#include "centres.hpp"
#include "query.hpp"
#include "schedule.hpp"
#include "sink.hpp"

namespace bitscale {

constexpr uint64_t kSeed = 10;  // rows to look at nearest first, for each hit wanted, while nothing is known

enum Strategy : uint32_t { kAuto = 0, kFlat = 1, kProbe = 2 };

// What the planner knows about a segment under the current costs, bits and k. Times are nanoseconds, measured.
struct Plan {
  const Step* steps;  // null: every query draws its own
  const float* codes;  // expected codes met up to and including each step
  uint64_t n_steps;
  int32_t final_bound;  // after the last step
  uint32_t n_tables;    // tables to draw on: 1 for the prefix table alone
  double expected_ns;   // of probing, if codes were random
  double probe_ns, code_ns;          // a probe costs probe_ns plus code_ns for each code in its bucket
  double draw_ns;                    // and this much more when its step is drawn for one query
  double block_ns, block_batch_ns;   // filtering a block: for one query, for each of a batch
  const Centres* centres;            // null: none, or no radii for these costs
};

struct Stats {
  uint64_t steps = 0, codes = 0, blocks = 0, flat_queries = 0;
  uint64_t probe_ns = 0, flat_ns = 0;
};

inline bool in_bitmap(const uint64_t* bitmap, uint32_t ordinal) {
  return !bitmap || (bitmap[ordinal >> 6] >> (ordinal & 63) & 1);
}

template <class Sink>
struct Search {
  Query query;
  Sink sink;
  const int32_t* costs;  // of this query, by bit
  Seen seen;
  int32_t settled = 0;  // every code of this segment nearer than this has been handed over
  Stats stats;
  bool needs_flat = false;

  Search(Query query, Sink sink, const int32_t* costs) : query(std::move(query)), sink(std::move(sink)), costs(costs) {}
  // The same question with nothing found yet, for a part of the codes: nothing beyond what is known is of interest.
  Search part() const {
    Search part(query, sink.part(), costs);
    part.seen = seen;
    part.settled = settled;
    return part;
  }

  // Hand over the items of one distinct code, unless that was done before. `mark`: it may be met again.
  void take(const Segment& segment, uint32_t row, int32_t distance, bool mark) {
    if (seen.has(row)) return;
    bool taken = false;
    uint64_t item = row, end = row + 1;
    if (segment.item_offsets) item = segment.item_offsets[row], end = segment.item_offsets[row + 1u];
    for (; item < end; item++) {
      const uint32_t ordinal = segment.ordinals[item];
      if (!in_bitmap(segment.alive, ordinal) || !in_bitmap(segment.allowed, ordinal)) continue;
      if (!sink.offer(distance, segment.ids ? segment.ids[ordinal] : segment.first_id + ordinal)) break;
      taken = true;
    }
    if (taken && mark) seen.add(row);  // what was refused now will be refused again
  }

  // Rows of table 0 that all lie at one distance: their items need no second look at the codes.
  void take_bucket(const Segment& segment, uint64_t begin, uint64_t end, int32_t distance) {
    uint64_t item = begin;
    if (segment.item_offsets) item = segment.item_offsets[begin], end = segment.item_offsets[end];
    for (; item < end; item++) {
      const uint32_t ordinal = segment.ordinals[item];
      if (in_bitmap(segment.alive, ordinal) && in_bitmap(segment.allowed, ordinal))
        sink.offer(distance, segment.ids ? segment.ids[ordinal] : segment.first_id + ordinal);
    }
  }

  // Check the filter's survivors in one block.
  void survivors(const Segment& segment, const Table& table, uint64_t block, uint32_t mask, bool mark) {
    const uint8_t* codes = table.blocks + block * segment.block_bytes();
    for (; mask; mask &= mask - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(mask));
      const int32_t distance = query.distance(codes, lane);
      if (distance > sink.reach() || distance < settled) continue;
      const uint64_t at = block * kLanes + lane;
      const uint32_t row = table.positions ? table.positions[at] : static_cast<uint32_t>(at);
      take(segment, row, distance, mark);
    }
  }

  // With nothing found yet the filter lets everything through, in stored order. Nearest first instead: a bound
  // stands at once, and long lists of equal codes far away are never walked.
  uint64_t seed(const Segment& segment, const Table& table, uint64_t begin, uint64_t end, bool mark) {
    end = std::min<uint64_t>(end, begin + std::max<uint64_t>(kLanes, kSeed * sink.wanted()));
    Vec<Hit> rows;
    rows.reserve(end - begin);
    for (uint64_t at = begin; at < end;) {
      int32_t distances[kLanes];
      query.distances(table.blocks + at / kLanes * segment.block_bytes(), distances);
      for (const uint64_t stop = std::min(end, at / kLanes * kLanes + kLanes); at < stop; at++)
        rows.push_back({distances[at % kLanes], static_cast<int64_t>(at)});
    }
    const auto farther = [](const Hit& a, const Hit& b) { return b < a; };
    std::make_heap(rows.begin(), rows.end(), farther);
    for (; !rows.empty() && rows.front().distance <= sink.reach(); rows.pop_back()) {
      const Hit nearest = rows.front();
      std::pop_heap(rows.begin(), rows.end(), farther);
      const uint32_t row = table.positions ? table.positions[nearest.id] : static_cast<uint32_t>(nearest.id);
      if (nearest.distance >= settled) take(segment, row, nearest.distance, mark);
    }
    return end;
  }

  // Filter the rows [begin, end) of a table. `mark`: remember rows, other tables may show them again.
  void scan(const Segment& segment, const Table& table, uint64_t begin, uint64_t end, bool mark) {
    if (!sink.bounded()) begin = seed(segment, table, begin, end, mark);
    const uint64_t last = (end + kLanes - 1) / kLanes;
    for (uint64_t b = begin / kLanes; b < last; b++) {
      uint32_t mask = 0;
      query.aim(sink.reach());
      b += query.find(table.blocks + b * segment.block_bytes(), last - b, segment.n_bytes, &mask);
      if (b == last) return;
      if (b * kLanes < begin) mask &= ~0u << (begin - b * kLanes);
      if ((b + 1) * kLanes > end) mask &= ~0u >> ((b + 1) * kLanes - end);
      survivors(segment, table, b, mask, mark);
    }
  }

  // The same of some blocks of table 0, of long codes.
  void scan_listed(const Segment& segment, const uint32_t* blocks, uint64_t n) {
    const Table& table = segment.tables[0];
    for (uint64_t i = 0; i < n; i++) {
      const uint64_t begin = uint64_t{blocks[i]} * kLanes, end = std::min(segment.n_codes, begin + kLanes);
      if (!sink.bounded()) {
        scan(segment, table, begin, end, true);
        continue;
      }
      uint32_t mask = 0;
      query.aim(sink.reach());
      i += query.find_long({table.blocks, n - i, segment.block_bytes(), blocks + i}, &mask);
      if (i == n) return;
      const uint64_t over = (blocks[i] + uint64_t{1}) * kLanes;
      survivors(segment, table, blocks[i], over > segment.n_codes ? mask & ~0u >> (over - segment.n_codes) : mask, true);
    }
  }

  // Look at the nearest centre's codes, then at those of all centres still in reach. True when done.
  bool visit(const Segment& segment, const Centres& centres);

  // True when done; false when the flat scan has to finish the job.
  bool probe(const Segment& segment, const Plan& plan, uint32_t bits, bool may_give_up, double flat_ns);
};

using TopSearch = Search<Top>;
using BallSearch = Search<Ball>;

// Search all segments for all queries.
template <class Sink>
void search_all(const Segment* segments, const Plan* plans, uint32_t n_segments, uint32_t bits,
                Vec<Search<Sink>>* searches, Strategy strategy, uint32_t threads);

}  // namespace bitscale

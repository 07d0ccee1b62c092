// The order in which buckets are probed: XOR patterns of every table, cheapest first, tables interleaved.
//
// A code not yet met in any table differs from the query by at least the sum over tables of the cheapest
// pattern not yet probed there. That sum, the bound, grows with every step; search ends once it exceeds the
// distance of the k-th hit. The order depends on the costs alone, so one schedule serves all queries that
// share them; a query with costs of its own draws its steps as it goes.
#pragma once

#include "layout.hpp"
#include "pool.hpp"

namespace bitscale {

struct Step {
  uint32_t probe;  // table << 24 | pattern over the table's used key bits
  int32_t bound;   // no code left unseen before this step is nearer than this
};

// What fixes a table's part in a schedule.
struct Key {
  uint32_t table;      // its number in the segment
  uint32_t first_bit;  // of its key
  uint32_t used;       // leading key bits that count under the current `bits`
};

Vec<Key> keys_in_use(const Table* tables, uint32_t n_tables, uint32_t bits);

// Subsets of a key's bits in ascending order of summed cost.
class Patterns {
 public:
  Patterns(const Key& key, const int32_t* costs);
  bool done() const { return done_; }
  int32_t cost() const { return cost_; }         // of the current pattern
  uint32_t pattern() const { return pattern_; }
  void next();

 private:
  struct Node {
    int32_t cost;
    uint32_t last;  // largest bit of the subset, in ascending order of cost
    uint32_t pattern;
  };
  struct Bit { int32_t cost; uint32_t mask; };
  void sink(const Node& node);  // put in place of the cheapest
  void push(const Node& node);
  Vec<Bit> bits_;
  Vec<Node> heap_;  // binary, cheapest first
  int32_t cost_ = 0;
  uint32_t pattern_ = 0;
  bool done_ = false;
};

// Merges the tables' patterns: whichever table raises the bound most per expected work goes next.
class Schedule {
 public:
  // work[t]: the cost of one probe of table t, in any unit
  Schedule(const Vec<Key>& keys, const int32_t* costs, const Vec<float>& work);
  // Append about `count` steps, whole runs; false when every pattern of some table has been given,
  // and with it every code.
  bool extend(Vec<Step>* steps, size_t count);
  int32_t bound() const { return bound_; }  // after the steps given so far

 private:
  struct Stream {
    Key key;
    Patterns patterns;
    float work;
    Vec<Step> run;  // the next patterns to give, together, each with its own cost as bound
    int32_t lower = 0;      // cost of the first of them
    int32_t after = 0;      // cost of the first one past them
    size_t length = 1;
  };
  void refill(Stream* stream);
  Vec<Stream> streams_;
  int32_t bound_ = 0;
};

// The distance below which a share of all codes would lie if bits were fair coins; coarse, for planning only.
class Forecast {
 public:
  Forecast(const int32_t* costs, uint32_t bits);
  int32_t distance(double share) const;

 private:
  static constexpr int kCells = 256;
  double below_[kCells + 1];
  double cell_;
};

}  // namespace bitscale

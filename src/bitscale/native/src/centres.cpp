// Finding centres, and how far their codes lie from them.
#include "centres.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "query.hpp"

namespace bitscale {
namespace {

constexpr uint64_t kSample = 2048;
constexpr double kJoins = 0.3;    // share of bits in which two codes of one cluster differ at most
constexpr double kBelongs = 0.25; // the same for a code and its centre
constexpr double kCrowd = 0.5;    // share of the sample that must lie in clusters to make centres worth having
constexpr uint64_t kFew = 8;      // sampled codes that make a cluster
constexpr uint64_t kLooks = 4;    // samples taken: after the first, of codes that have no centre yet
constexpr uint64_t kLeft = 512;   // of so many codes one without a centre is too few to look again
constexpr uint32_t kGlance = 4;   // words compared before the rest is

// Codes in whole words, so that bits are counted eight bytes at a time.
class Rows {
 public:
  Rows(uint64_t n, uint32_t n_bytes) : words_((n_bytes + 7) / 8), data_(n * words_) {}
  uint64_t* operator[](uint64_t i) { return &data_[i * words_]; }
  uint32_t words() const { return words_; }

 private:
  uint32_t words_;
  std::vector<uint64_t> data_;
};

void copy_lane(const uint8_t* block, uint32_t n_bytes, uint32_t lane, uint64_t* out) {
  uint8_t* bytes = reinterpret_cast<uint8_t*>(out);
  for (uint32_t j = 0; j < n_bytes; j++) bytes[j] = block[j * kLanes + lane];
}

uint32_t differing(const uint64_t* a, const uint64_t* b, uint32_t from, uint32_t to) {
  uint32_t sum = 0;
  for (uint32_t w = from; w < to; w++) sum += static_cast<uint32_t>(__builtin_popcountll(a[w] ^ b[w]));
  return sum;
}

// The first of the centres [from, n) within `limit` bits, or else n. Most are ruled out at a glance.
uint32_t home_of(const uint64_t* code, Rows* centres, uint32_t from, uint32_t n, uint32_t limit) {
  const uint32_t words = centres->words(), few = std::min(kGlance, words);
  const uint32_t glance = few == words ? limit : few * 64 * 2 / 5;
  for (uint32_t c = from; c < n; c++) {
    const uint32_t seen = differing(code, (*centres)[c], 0, few);
    if (seen <= std::min(glance, limit) && seen + differing(code, (*centres)[c], few, words) <= limit) return c;
  }
  return n;
}

// The bits that most of some codes have.
void majority(const std::vector<uint64_t*>& members, uint32_t words, uint64_t* out) {
  std::fill(out, out + words, 0);
  for (uint32_t w = 0; w < words; w++)
    for (uint32_t bit = 0; bit < 64; bit++) {
      uint64_t ones = 0;
      for (const uint64_t* member : members) ones += member[w] >> bit & 1;
      if (2 * ones > members.size()) out[w] |= uint64_t{1} << bit;
    }
}

// Codes of a sample that lie close to an earlier one join it; a centre is what most of such a group agree on. Adds to the
// `known` centres as many as there is room for, and returns how many there are then.
uint32_t add_centres(Rows* sample, uint64_t n, uint32_t n_bits, Rows* centres, uint32_t known, double crowd) {
  const uint32_t words = sample->words();
  Rows leaders(kMaxCentres, words * 8);
  std::vector<std::vector<uint64_t*>> groups;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t* code = (*sample)[i];
    const uint32_t led = static_cast<uint32_t>(groups.size());
    const uint32_t home = home_of(code, &leaders, 0, led, static_cast<uint32_t>(kJoins * n_bits));
    if (home < led) {
      groups[home].push_back(code);
    } else if (led < kMaxCentres) {
      std::copy(code, code + words, leaders[led]);
      groups.push_back({code});
    }
  }
  uint64_t inside = 0;
  for (const auto& group : groups) inside += group.size() >= kFew ? group.size() : 0;
  if (static_cast<double>(inside) < crowd * static_cast<double>(n)) return known;
  for (const auto& group : groups)
    if (group.size() >= kFew && known < kMaxCentres) majority(group, words, (*centres)[known++]);
  return known;
}

// Codes without a centre in `homes`, as many as a sample holds, from everywhere alike. Returns how many.
uint64_t sample_of(const Table& table, const uint8_t* homes, uint64_t n_codes, uint64_t without, uint32_t n_bytes,
                   Rows* sample) {
  const uint64_t n = std::min(kSample, without);
  uint64_t taken = 0, seen = 0;
  for (uint64_t at = 0; at < n_codes && taken < n; at++) {
    if (homes[at] != kNoCentre || seen++ < taken * without / n) continue;
    copy_lane(table.blocks + at / kLanes * n_bytes * kLanes, n_bytes, at % kLanes, (*sample)[taken++]);
  }
  return taken;
}

}  // namespace
}  // namespace bitscale

using namespace bitscale;

// Centres of the codes of table 0: `centres` (kMaxCentres x n_bytes), and each code's centre in `homes` (n_codes).
// *n_centres is 0 where codes do not crowd.
BITSCALE_API int bitscale_centres(const Table* table, uint64_t n_codes, uint32_t n_bytes, uint8_t* centres,
                                  uint8_t* homes, uint32_t* n_centres) try {
  if (!n_codes || !n_bytes || n_codes >= UINT32_MAX) return kBadArgument;
  const uint32_t n_bits = n_bytes * 8, limit = static_cast<uint32_t>(kBelongs * n_bits);
  const uint64_t stride = uint64_t{n_bytes} * kLanes;
  Rows sample(std::min(kSample, n_codes), n_bytes), known(kMaxCentres, n_bytes), row(1, n_bytes);
  std::memset(homes, kNoCentre, n_codes);
  uint32_t count = *n_centres = 0;
  uint64_t without = n_codes;
  for (uint64_t look = 0; look < kLooks && without > n_codes / kLeft; look++) {  // a sample can miss a cluster
    const uint64_t n = sample_of(*table, homes, n_codes, without, n_bytes, &sample);
    const uint32_t before = count;
    count = add_centres(&sample, n, n_bits, &known, before, look ? 0 : kCrowd);
    if (count == before) break;
    uint32_t home = before;
    for (uint64_t at = 0; at < n_codes; at++) {
      if (homes[at] != kNoCentre) continue;
      copy_lane(table->blocks + at / kLanes * stride, n_bytes, at % kLanes, row[0]);
      if (home == count || differing(row[0], known[home], 0, row.words()) > limit)  // neighbours often share a home
        home = home_of(row[0], &known, before, count, limit);
      if (home < count) homes[at] = static_cast<uint8_t>(home), without--;
    }
  }
  if (!(*n_centres = count)) return kOk;
  for (uint32_t c = 0; c < count; c++) std::memcpy(centres + uint64_t{c} * n_bytes, known[c], n_bytes);
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

// How far the codes of each centre lie from it at most, where bits cost `costs` and the first `bits` count.
BITSCALE_API int bitscale_radii(const Table* table, uint64_t n_codes, uint32_t n_bytes, const uint8_t* centres,
                                const uint8_t* homes, uint32_t n_centres, const int32_t* costs, uint32_t bits,
                                int32_t* radii) try {
  if (!bits || bits > n_bytes * 8 || n_centres > kMaxCentres) return kBadArgument;
  const uint32_t planes = (bits + 7) / 8;
  const Vec<int32_t> table_costs = nibble_costs(costs, bits, planes);
  std::vector<Query> queries;
  for (uint32_t c = 0; c < n_centres; c++)
    queries.emplace_back(nullptr, centres + uint64_t{c} * n_bytes, table_costs, planes);
  std::fill(radii, radii + n_centres, 0);
  for (uint64_t at = 0; at < n_codes; at++) {
    if (homes[at] == kNoCentre) continue;
    const uint8_t* block = table->blocks + at / kLanes * n_bytes * kLanes;
    const int32_t distance = queries[homes[at]].distance(block, at % kLanes);
    if (distance > radii[homes[at]]) radii[homes[at]] = distance;
  }
  return kOk;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

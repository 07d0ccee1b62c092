// Searching by centres: the nearest one's codes, then those of every centre that could still hold something nearer.
#include "search.hpp"

namespace bitscale {
namespace {

constexpr double kFewBlocks = 0.5;  // share of all blocks up to which looking at some beats the flat scan

// The blocks of several lists, ascending, each once.
class Union {
 public:
  explicit Union(uint64_t n_blocks) : words_((n_blocks + 63) / 64) {}
  void set(const uint32_t* begin, const uint32_t* end, bool value) {
    for (; begin < end; begin++) {
      const uint64_t bit = uint64_t{1} << (*begin & 63);
      words_[*begin >> 6] = value ? words_[*begin >> 6] | bit : words_[*begin >> 6] & ~bit;
    }
  }
  Vec<uint32_t> blocks() const {
    Vec<uint32_t> blocks;
    for (uint64_t w = 0; w < words_.size(); w++)
      for (uint64_t word = words_[w]; word; word &= word - 1)
        blocks.push_back(static_cast<uint32_t>(w * 64 + static_cast<uint64_t>(__builtin_ctzll(word))));
    return blocks;
  }

 private:
  Vec<uint64_t> words_;
};

}  // namespace

template <class Sink>
bool Search<Sink>::visit(const Segment& segment, const Centres& centres) {
  const uint32_t* stray_begins = centres.strays->offsets;
  Vec<int32_t> away(centres.n);
  for (uint32_t c = 0; c < centres.n; c++)
    away[c] = query.distance_to(centres.codes + uint64_t{c} * segment.n_bytes) - centres.radius[c];
  const uint32_t nearest = static_cast<uint32_t>(std::min_element(away.begin(), away.end()) - away.begin());
  const auto list = [&](uint32_t c) { return centres.blocks + centres.begins[c]; };
  const auto look_at_strays = [&](uint32_t c) {
    if (stray_begins[c] == stray_begins[c + 1]) return;
    stats.blocks += (stray_begins[c + 1] - 1) / kLanes - stray_begins[c] / kLanes + 1;
    scan(segment, *centres.strays, stray_begins[c], stray_begins[c + 1], true);
  };
  const auto look_at = [&](const uint32_t* blocks, uint64_t n) {
    stats.blocks += n;
    scan_listed(segment, blocks, n);
  };
  look_at_strays(nearest);  // these first: all are of the nearest centre, and a bound stands at once
  look_at(list(nearest), centres.begins[nearest + 1] - centres.begins[nearest]);
  Vec<uint32_t> others;
  for (uint32_t c = 0; c < centres.n; c++)
    if (c != nearest && away[c] <= sink.reach()) others.push_back(c);
  if (list(centres.n) < list(centres.n + 1) || stray_begins[centres.n] < stray_begins[centres.n + 1])
    others.push_back(centres.n);  // codes of no centre are never ruled out
  if (others.empty()) return true;
  Union wanted(segment.n_blocks());
  uint64_t strays = 0;
  for (uint32_t c : others) {
    wanted.set(list(c), list(c + 1), true);
    strays += stray_begins[c + 1] - stray_begins[c];
  }
  wanted.set(list(nearest), list(nearest + 1), false);  // seen already
  const Vec<uint32_t> blocks = wanted.blocks();
  if (static_cast<double>(blocks.size() + strays / kLanes) > kFewBlocks * static_cast<double>(segment.n_blocks()))
    return false;
  for (uint32_t c : others) look_at_strays(c);
  look_at(blocks.data(), blocks.size());
  return true;
}

template bool Search<Top>::visit(const Segment&, const Centres&);
template bool Search<Ball>::visit(const Segment&, const Centres&);

}  // namespace bitscale

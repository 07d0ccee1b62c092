// Centres of clustered codes: what lies beyond a centre's radius, seen from the query, need not be looked at.
//
// Distances obey the triangle inequality: a code x of centre c is no nearer to a query q than d(q, c) - d(c, x). Where
// codes crowd around centres, which the heavy bits of a long code alone do not show, that rules out nearly all of them.
#pragma once
#include "layout.hpp"

namespace bitscale {

constexpr uint32_t kMaxCentres = 255;
constexpr uint8_t kNoCentre = 255;  // of a code far from all of them

struct Centres {
  const uint8_t* codes;    // n x n_bytes
  const int32_t* radius;   // n: how far the centre's codes lie from it at most, in the costs of the plan
  const uint32_t* begins;  // n + 2: where each centre's list in `blocks` begins; the last list has the codes of none
  const uint32_t* blocks;  // of table 0 in which the centre has more than a few codes, ascending
  const Table* strays;     // a bucket a centre, the last of codes of none: copies of those in no block of the list
  uint32_t n;
};

}  // namespace bitscale

// Doing work on several threads at once.
#pragma once
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace bitscale {

// Run work(0) .. work(threads - 1) at once; the first exception is thrown again here.
template <class Work>
void in_parallel(uint32_t threads, const Work& work) {
  if (threads <= 1) return work(0);
  std::vector<std::exception_ptr> failures(threads);
  auto guarded = [&](uint32_t t) {
    try {
      work(t);
    } catch (...) {
      failures[t] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  for (uint32_t t = 1; t < threads; t++) others.emplace_back(guarded, t);
  guarded(0);
  for (auto& thread : others) thread.join();
  for (auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace bitscale

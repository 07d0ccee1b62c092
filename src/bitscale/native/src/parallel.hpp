// Doing work on several threads at once.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace bitscale {

// Do parts 0 .. parts - 1, each once, on up to as many threads; the first exception is thrown again here. Where the
// system has no thread to give, those that run do the rest.
template <class Work>
void in_parallel(uint32_t parts, const Work& work) {
  if (parts <= 1) return work(0);
  std::atomic<uint32_t> next{0};
  std::vector<std::exception_ptr> failures(parts);
  auto run = [&] {
    for (uint32_t part; (part = next++) < parts;) {
      try {
        work(part);
      } catch (...) {
        failures[part] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  others.reserve(parts);
  try {
    for (uint32_t t = 1; t < parts; t++) others.emplace_back(run);
  } catch (const std::system_error&) {
  }
  run();
  for (auto& thread : others) thread.join();
  for (auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace bitscale

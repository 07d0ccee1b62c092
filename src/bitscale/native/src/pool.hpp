// Memory for a search that the thread keeps from one to the next.
//
// A lone search takes microseconds; the system's allocator may take milliseconds for one block, when it first tidies up
// what other code in the process has left behind. So small blocks are kept by the thread that freed them.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace bitscale {

class Pool {
 public:
  static Pool& of_thread() {
    thread_local Pool pool;
    return pool;
  }
  ~Pool() {
    for (Class& list : classes_)
      for (size_t i = 0; i < list.count; i++) ::operator delete(list.kept[i]);
  }
  void* take(size_t bytes) {
    const size_t size = class_of(bytes);
    if (size >= kClasses) return ::operator new(bytes);
    Class& list = classes_[size];
    return list.count ? list.kept[--list.count] : ::operator new(kSmallest << size);
  }
  void give(void* block, size_t bytes) noexcept {
    const size_t size = class_of(bytes);
    if (size < kClasses && classes_[size].count < kMost) classes_[size].kept[classes_[size].count++] = block;
    else ::operator delete(block);
  }

 private:
  static constexpr size_t kSmallest = 64, kClasses = 11, kMost = 16;  // blocks of 64 bytes to 64 KB, 16 of each
  static size_t class_of(size_t bytes) {
    size_t size = 0;
    while (size < kClasses && kSmallest << size < bytes) size++;
    return size;
  }
  struct Class {
    void* kept[kMost];
    size_t count = 0;
  };
  Class classes_[kClasses];
};

template <class T>
struct Pooled {
  using value_type = T;
  Pooled() = default;
  template <class U>
  Pooled(const Pooled<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(Pool::of_thread().take(n * sizeof(T))); }
  void deallocate(T* block, size_t n) noexcept { Pool::of_thread().give(block, n * sizeof(T)); }
  template <class U>
  bool operator==(const Pooled<U>&) const { return true; }
  template <class U>
  bool operator!=(const Pooled<U>&) const { return false; }
};

template <class T>
using Vec = std::vector<T, Pooled<T>>;

}  // namespace bitscale

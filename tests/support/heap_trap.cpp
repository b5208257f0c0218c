// SPDX-License-Identifier: MIT
//
// Under a sanitizer its own hooks count; elsewhere the C library's entry points are replaced.
#include "heap_trap.hpp"

#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#endif

namespace {
thread_local bool armed = false;
thread_local std::uint64_t allocations = 0;
void note() {
  if (armed) ++allocations;
}
}  // namespace

#if defined(UNDER_SANITIZER)
#include <sanitizer/allocator_interface.h>
namespace {
void on_malloc(const volatile void*, std::size_t) { note(); }
void on_free(const volatile void*) {}
const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}  // namespace
#elif defined(__GLIBC__)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* malloc(std::size_t size) {
  note();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  note();
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  note();
  return __libc_realloc(old, size);
}
}
#endif

HeapTrap::HeapTrap() {
  allocations = 0;
  armed = true;
}
HeapTrap::~HeapTrap() { armed = false; }
std::uint64_t HeapTrap::count() const { return allocations; }

// SPDX-License-Identifier: MIT
//
// A buffer whose last byte is the last byte of a page, with a page behind it that nobody may touch: a read or a write
// past the end is a crash, with and without sanitizers.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "holdfast/proto/bytes.hpp"

namespace holdfast::testing {

class GuardPage {
 public:
  explicit GuardPage(std::size_t size) : size_(size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (size + page - 1) / page * page;
    mapped_size_ = usable + page;
    void* const mapped = mmap(nullptr, mapped_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) fail("mmap");
    mapped_ = static_cast<char*>(mapped);
    if (mprotect(mapped_ + usable, page, PROT_NONE) != 0) fail("mprotect");
    data_ = mapped_ + (usable - size);
  }
  ~GuardPage() { munmap(mapped_, mapped_size_); }
  GuardPage(const GuardPage&) = delete;
  GuardPage& operator=(const GuardPage&) = delete;

  // All of it.
  [[nodiscard]] MutableBytes bytes() const { return {data_, size_}; }
  // The last `size` bytes of it: these, too, end at the guard.
  [[nodiscard]] MutableBytes last(std::size_t size) const { return {data_ + (size_ - size), size}; }

 private:
  [[noreturn]] static void fail(const char* call) {
    std::perror(call);
    std::abort();
  }

  std::size_t size_;
  std::size_t mapped_size_ = 0;
  char* mapped_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace holdfast::testing

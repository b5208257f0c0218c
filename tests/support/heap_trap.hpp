// SPDX-License-Identifier: MIT
//
// HeapTrap counts this thread's heap allocations while it lives, libc's own included. Link with heap_trap.cpp.
#pragma once

#include <cstdint>

class HeapTrap {
 public:
  HeapTrap();
  ~HeapTrap();
  HeapTrap(const HeapTrap&) = delete;
  HeapTrap& operator=(const HeapTrap&) = delete;
  // Allocations of this thread since the trap was set.
  [[nodiscard]] std::uint64_t count() const;
};

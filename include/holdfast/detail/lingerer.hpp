// SPDX-License-Identifier: MIT
//
// Lingerer is what a client and its locks know of their Lingering: a table of functions, so that a program without one does not
// carry it.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class BlockingLock;
class OwnedHold;

class Lingerer {
 public:
  struct Table {
    // One handle more of a hold that may stay for so long. Its place, which the hold has while there are handles; -1: none is
    // free.
    int (*enter)(Lingerer& lingerer, OwnedHold& hold, Duration linger) noexcept;
    void (*leave)(Lingerer& lingerer, int place) noexcept;
    // Calls of a lock that has a place.
    Status (*acquire)(Lingerer& lingerer, BlockingLock& lock, Duration wait, bool once) noexcept;
    Status (*release)(Lingerer& lingerer, BlockingLock& lock, bool posted) noexcept;
    bool (*idle)(const Lingerer& lingerer, int place) noexcept;
    // Listens, and lets go of what is not to stay; with `closing` of all that is idle. When to call it again.
    Instant (*look)(Lingerer& lingerer, bool closing) noexcept;
  };
  Lingerer(const Lingerer&) = delete;
  Lingerer& operator=(const Lingerer&) = delete;

  [[nodiscard]] const Table& table() const noexcept { return *table_; }

 protected:
  explicit Lingerer(const Table& table) noexcept : table_(&table) {}
  ~Lingerer() = default;

 private:
  const Table* table_;
};

}  // namespace holdfast

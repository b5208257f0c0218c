// SPDX-License-Identifier: MIT
//
// WakePipe ends a poll(2) from another thread or from a signal handler. Not used by itself: clients have one.
//
// Thread rule: wake() any thread, safe in a signal handler; the rest its owner's.
#pragma once

#include "holdfast/status.hpp"

namespace holdfast {

class WakePipe {
 public:
  WakePipe() noexcept = default;
  ~WakePipe() { close(); }
  WakePipe(const WakePipe&) = delete;
  WakePipe& operator=(const WakePipe&) = delete;

  // Once; a second call does nothing. system_error: errno says why.
  [[nodiscard]] Status open() noexcept;
  void close() noexcept;
  // Readable from a wake() on until drain(); -1 without a pipe, which poll(2) passes over.
  [[nodiscard]] int descriptor() const noexcept { return ends_[0]; }
  // Leaves errno as it is.
  void wake() noexcept;
  void drain() noexcept;

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace holdfast

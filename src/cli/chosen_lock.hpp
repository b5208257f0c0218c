// SPDX-License-Identifier: MIT
//
// ChosenLock is the one lock of a run, of the kind that the command line asked for. All but its making and its fence is
// the same for every kind: see lock().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "holdfast/client.hpp"
#include "holdfast/fenced_lock.hpp"
#include "holdfast/instant.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/owner.hpp"
#include "holdfast/reentrant_lock.hpp"
#include "lock_choice.hpp"

namespace holdfast::cli {

// ClientConfig::max_poll for a waiter of that kind.
[[nodiscard]] Duration max_poll_of(Kind kind) noexcept;

class ChosenLock {
 public:
  // The name's bytes are copied; the client must outlive the lock.
  ChosenLock(Client& client, std::string_view name, Duration lease, const LockChoice& choice);
  ChosenLock(const ChosenLock&) = delete;
  ChosenLock& operator=(const ChosenLock&) = delete;

  [[nodiscard]] BlockingLock& lock() noexcept { return *lock_; }
  // Of the present or last grant; none where the choice has none.
  [[nodiscard]] std::optional<std::uint64_t> fence() const noexcept;

 private:
  Owner owner_;  // In front of the locks, which must go first.
  std::variant<std::monostate, Mutex, ReentrantLock, FencedLock> place_;
  BlockingLock* lock_ = nullptr;
  bool with_fence_;
};

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
#include "chosen_lock.hpp"

#include "holdfast/limits.hpp"

namespace holdfast::cli {

Duration max_poll_of(Kind kind) noexcept {
  // Not every peer of a mutex announces its release (redis-py does not), so a waiter also asks by itself. Twice a second
  // costs a server nothing, and a command that starts half a second late is no worse for it.
  constexpr Duration unannounced = std::chrono::milliseconds(500);
  return kind == Kind::mutex ? unannounced : max_poll_default;
}

ChosenLock::ChosenLock(Client& client, std::string_view name, Duration lease, const LockChoice& choice)
    : owner_(client), with_fence_(choice.fence) {
  const LockTiming timing = {.lease = lease};
  switch (choice.kind) {
    case Kind::mutex:
      lock_ = &place_.emplace<Mutex>(client, name, timing, MutexOptions{.announce = true, .fence = choice.fence});
      break;
    case Kind::reentrant: lock_ = &place_.emplace<ReentrantLock>(owner_, name, timing); break;
    case Kind::fenced: lock_ = &place_.emplace<FencedLock>(owner_, name, timing); break;
  }
}

std::optional<std::uint64_t> ChosenLock::fence() const noexcept {
  if (!with_fence_) return std::nullopt;
  if (const FencedLock* const fenced = std::get_if<FencedLock>(&place_)) return fenced->fence();
  if (const Mutex* const mutex = std::get_if<Mutex>(&place_)) return mutex->fence();
  return std::nullopt;
}

}  // namespace holdfast::cli

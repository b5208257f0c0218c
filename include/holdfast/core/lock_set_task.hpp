// SPDX-License-Identifier: MIT
//
// LockSetTask is one call of a set of locks: which lock is next, for how long it may be waited for, what is renewed meanwhile,
// and what is undone in which order. A driver does what step() says and tells what came of it. It does no I/O and reads no
// clock.
//
//     acquire   take 1 -> (renew what is due) -> take 2 -> ... -> all are held, or all that was taken is let go of
//     renew     all, in their order              release   all, the last taken first
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/kept_config.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// Where a lock is: one node, or those of its quorum.
struct LockPlace {
  const KeptConfig* nodes[nodes_max] = {};
  std::size_t node_count = 0;
  const LockKind* kind = nullptr;
  Key key;

  // In the one order of all sets. REQUIRES: once all nodes are filled in.
  void sort() noexcept;
};

// The one order in which sets take their locks: by the nodes' addresses, as configured and in the order of their bytes (socket
// path, or host and port), then by database, then by the first name. Below 0: `left` comes first. REQUIRES: sort() before.
[[nodiscard]] int compare(const LockPlace& left, const LockPlace& right) noexcept;
// Of two locks in this order: where the first is held, the second can never be had.
[[nodiscard]] bool excludes(const LockPlace& first, const LockPlace& second) noexcept;

// Sorts a set's locks, whatever they are. ok; invalid_argument when there is none, or two of them can never be had together;
// what `configuration` says of one.
[[nodiscard]] Status arrange(std::size_t count, void* locks,
                             Status (*configuration)(void* locks, std::size_t place) noexcept,
                             void (*locate)(void* locks, std::size_t place, LockPlace& found) noexcept,
                             void (*move)(void* locks, std::size_t from, std::size_t to) noexcept) noexcept;
// Moves what stands at `from` down to `to`; those between move up.
template <class Element>
void move_down(Element* elements, std::size_t from, std::size_t to) noexcept {
  const Element moved = elements[from];
  for (; from > to; --from) elements[from] = elements[from - 1];
  elements[to] = moved;
}

class LockSetTask {
 public:
  enum class Call : std::uint8_t { none, acquire, renew, release };
  enum class Act : std::uint8_t {
    over,          // The call is over: status().
    acquire,       // The lock at place(), for at most wait().
    renew,         // The lock at place().
    release,       // The lock at place(), and its server's word is waited for.
    post_release,  // The lock at place(), without waiting.
  };
  // What the task asks of its locks.
  struct Host {
    Instant (*valid_until)(const void* set, std::size_t place) noexcept;
    Instant (*renewal_due)(const void* set, std::size_t place) noexcept;
  };

  LockSetTask(const Host& host, const void* set, std::size_t count) noexcept : host_(&host), set_(set), count_(count) {}

  // A. Questions.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }  // The first ones of their order.
  [[nodiscard]] std::size_t place() const noexcept { return place_; }
  [[nodiscard]] Duration wait() const noexcept { return wait_; }
  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] bool over() const noexcept { return call_ == Call::none; }
  // Which lock the last acquire failed at; no_place after a grant, and where a cancel came between two locks.
  static constexpr std::size_t no_place = SIZE_MAX;
  [[nodiscard]] std::size_t blocker() const noexcept { return blocker_; }
  // The first of the ends of all; the epoch when one is not held.
  [[nodiscard]] Instant valid_until() const noexcept;
  // The first of the times of what is taken; Instant::max() when nothing is.
  [[nodiscard]] Instant renewal_due() const noexcept;

  // B. Commands. Each begins a call, step() follows. REQUIRES: over().
  // Errors: invalid_argument, already_held.
  [[nodiscard]] Status begin_acquire(Instant now, Duration wait) noexcept;
  // Errors: not_held.
  [[nodiscard]] Status begin(Call call) noexcept;
  // The call is not wanted any more: what an acquire has taken is let go of, also all of it, until the acquire is over; no more
  // is renewed; what is to be released is not waited for. Where all have been renewed, or released, it changes nothing.
  void cancel() noexcept { cancelled_ = !over(); }
  // Nothing is taken, whatever was: what is left has been let go of one by one, the last first.
  [[nodiscard]] bool take_back(std::size_t& place) noexcept {
    if (taken_ == 0) return false;
    place = --taken_;
    return true;
  }

  // C. What to do now; again after handle().
  [[nodiscard]] Act step(Instant now) noexcept;
  // What came of the act.
  void handle(Status outcome) noexcept;

 private:
  enum class Stage : std::uint8_t { take, keep, undo, go_through };

  [[nodiscard]] Act go(Act act, std::size_t place) noexcept {
    act_ = act;
    place_ = place;
    return act;
  }
  [[nodiscard]] Act end() noexcept {
    call_ = Call::none;
    return Act::over;
  }
  [[nodiscard]] Act take(Instant now) noexcept;
  [[nodiscard]] bool all_held(Instant now) noexcept;
  void fail(Status why) noexcept {
    status_ = why;
    stage_ = Stage::undo;
  }

  const Host* host_;
  const void* set_;
  std::size_t count_;
  std::size_t taken_ = 0;
  std::size_t place_ = 0;
  std::size_t next_ = 0;  // To be looked at, of a renewal of what is taken.
  std::size_t blocker_ = no_place;
  Instant deadline_;
  Instant until_;  // Of the wait for the present one.
  Duration wait_{};
  Call call_ = Call::none;
  Stage stage_ = Stage::take;
  Act act_ = Act::over;
  Status status_ = Status::ok;
  bool cancelled_ = false;
};

}  // namespace holdfast

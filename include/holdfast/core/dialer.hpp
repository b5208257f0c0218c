// SPDX-License-Identifier: MIT
//
// Dialer decides when one connection is made and where it goes: the addresses of a name in turn, a deadline for each,
// and a growing, jittered pause after failures. It does no I/O, reads no clock and draws no random bytes: a driver asks
// poll_action(), does what it says, and tells what came of it. Addresses are numbers here; the driver keeps their bytes.
//
//          due          addresses are known      the transport is up     the peer has proved itself
//   waiting -> (resolving) -> next -> dialling -------> handshaking --------------> ready
//      ^            |                    |                   |                       |
//      +------------+--------------------+-------------------+-----------------------+   failed, closed
//
// Where others say who the server is (HostSearch), one attempt goes to several hosts, one after the other: what fails is `elsewhere` then,
// and go_to() or give_up() follows.
//
// A name is asked for when no address is known, or when all have failed. An answer that comes later than connect_timeout
// is used all the same: one question is under way at a time, and what fails at the deadline is the attempt. Of another host than
// the one that is dialled now such an answer is dropped; before it has come, no other name is asked for.
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

enum class DialAction : std::uint8_t {
  none,     // Nothing to do before poll_timeout(), or before the driver has something to tell.
  resolve,  // Ask for the addresses of the name, then call handle_resolved().
  dial,     // Open a transport to address(), then call handle_dialled() or handle_dial_failed().
  hang_up,  // Close the transport that is being dialled: its time is over. Then poll again.
};

enum class DialState : std::uint8_t { off, waiting, elsewhere, resolving, next, dialling, handshaking, ready };

class Dialer {
 public:
  // A. Questions.
  [[nodiscard]] DialState state() const noexcept { return state_; }
  [[nodiscard]] bool ready() const noexcept { return state_ == DialState::ready; }
  // An attempt is under way.
  [[nodiscard]] bool connecting() const noexcept { return state_ > DialState::waiting && state_ < DialState::ready; }
  // No attempt has failed since a connection was lost that had been of use, or none was made yet: it is worth waiting for
  // the next one, which begins within reconnect_soon_max.
  [[nodiscard]] bool hopeful(Instant now) const noexcept {
    return connecting() || (state_ == DialState::waiting && (lost_ || now >= next_));
  }
  // Ready for so long that its end says nothing of the next.
  [[nodiscard]] bool lasted(Instant now) const noexcept {
    return ready() && now - address_deadline_ >= reconnect_delay_max;
  }
  [[nodiscard]] bool named() const noexcept { return named_; }
  // The next attempt begins with a question for the name.
  [[nodiscard]] bool asks_first() const noexcept { return named_ && (address_count_ == 0 || exhausted_); }
  // Why the last attempt failed or the last connection ended; ok while it is ready.
  [[nodiscard]] Status failure() const noexcept { return failure_; }
  // The address in use: the one that is dialled or connected, or else the one that is tried first.
  [[nodiscard]] std::uint8_t address() const noexcept { return address_; }
  [[nodiscard]] std::uint8_t address_count() const noexcept { return address_count_; }
  // By when the attempt under way must be done, its handshake included.
  [[nodiscard]] Instant attempt_deadline() const noexcept { return attempt_deadline_; }
  // The same of a handshake. One that is silent leaves time for the other addresses of a host that is one of several.
  [[nodiscard]] Instant handshake_deadline() const noexcept {
    return guided_ && untried_ != 0 ? address_deadline_ : attempt_deadline_;
  }
  // A new attempt may begin.
  [[nodiscard]] bool due(Instant now) const noexcept { return state_ == DialState::waiting && now >= next_; }
  // Tells apart where connections go: it is another number after another host, and for another address. So wide that it is
  // not the same again: a search goes to several hosts, and who keeps a connection beside this one may look after many.
  [[nodiscard]] std::uint32_t place() const noexcept { return moves_ + address_; }
  // Whether addresses that are found now may replace those of before. If not, tell handle_resolved() of none.
  [[nodiscard]] bool takes_addresses() const noexcept {
    return !stale_ && (state_ == DialState::resolving || state_ == DialState::waiting);
  }

  // B. Commands.
  // Connects from the next poll_action() on. `count` addresses are known, of which `first` is dialled first; with `named`,
  // more can be asked for. REQUIRES: no transport is open, and a question of before has been forgotten. `count` is at most
  // addresses_max; without `named` it is at least 1. `first` is below `count`, or 0.
  void start(Duration connect_timeout, std::uint8_t count, bool named, std::uint8_t first = 0) noexcept;
  // No pause is longer than this from now on: reconnect_delay_max, or less where holds would be lost meanwhile.
  void set_pause_max(Duration most) noexcept { pause_max_ = most; }
  // The next attempt is due at once, whatever has failed before.
  void hurry() noexcept {
    next_ = Instant();
    delay_ = Duration::zero();
    ended_soon_ = 1;
  }
  // The driver has closed the transport on its own account. The next attempt is due at once.
  void abandon() noexcept {
    if (state_ != DialState::off) state_ = DialState::waiting;
    failure_ = Status::not_connected;
    asking_ = stale_ = false;
    hurry();
  }
  // The attempt goes to another host, which has until the deadline, and for as much longer as the resolver takes: that has
  // connect_timeout for itself. A name fails at once while the question for another is under way. `known`: address 0 is the
  // host's, and none is asked for. What fails there, before it is ready, is `elsewhere`.
  // REQUIRES: due(), or the state is elsewhere.
  void go_to(bool known, Instant now, Instant deadline) noexcept;
  // To the next address of the same host, where there is one and the deadline has not passed. REQUIRES: the state is elsewhere.
  [[nodiscard]] bool go_on_here(Instant now) noexcept;
  // No other host is left. REQUIRES: the state is elsewhere, or due().
  void give_up(Status why, Instant now, std::uint16_t random) noexcept {
    guided_ = false;
    stale_ = asking_;
    fail(why, now, random);
  }
  // Connects no more. The driver closes what is open.
  void stop() noexcept { state_ = DialState::off; }

  // C. Inputs. `random` is drawn evenly from all its values. `now` never goes back.
  // The answer to resolve: the driver has this many addresses now. 0: none was found, and those of before still count.
  void handle_resolved(std::uint8_t count, Instant now, std::uint16_t random) noexcept;
  // The transport is up. The handshake follows; handshake_deadline() bounds it.
  void handle_dialled() noexcept;
  void handle_dial_failed(Status why, Instant now, std::uint16_t random) noexcept;
  // The peer has proved itself: the handshake is done, or the first subscription is confirmed.
  void handle_ready(Instant now) noexcept;
  // The transport is gone. `used`: it has carried something since handle_ready(). After a connection that was ready the next
  // attempt is due at once; where several end soon, one after the other, after a growing pause, which is short if they were
  // used.
  void handle_closed(Status why, bool used, Instant now, std::uint16_t random) noexcept;

  // D. Outputs. Poll until it is none.
  [[nodiscard]] DialAction poll_action(Instant now, std::uint16_t random) noexcept;
  // When to poll again if nothing happens; Instant::max() where nothing is to come. The handshake is the driver's to bound.
  [[nodiscard]] Instant poll_timeout() const noexcept;

 private:
  void begin_attempt(Instant now) noexcept;
  void resolve(Instant now) noexcept;
  void go_on(Status why, Instant now, std::uint16_t random) noexcept;
  void advance() noexcept;
  void fail(Status why, Instant now, std::uint16_t random) noexcept;
  void pause(Duration most, Instant now, std::uint16_t random) noexcept;

  Instant next_;  // waiting: when the next attempt begins.
  Instant attempt_deadline_;
  Instant address_deadline_;  // dialling: of this address alone. resolving, ready: since when.
  Duration connect_timeout_ = connect_timeout_default;
  Duration delay_ = Duration::zero();  // The last pause; doubles with each failure.
  Duration pause_max_ = reconnect_delay_max;
  std::uint32_t moves_ = 0;  // addresses_max for each host.
  DialState state_ = DialState::off;
  Status failure_ = Status::not_connected;
  std::uint8_t address_count_ = 0;
  std::uint8_t address_ = 0;
  std::uint8_t untried_ = 0;     // Addresses that this attempt may still dial.
  std::uint8_t ended_soon_ = 1;  // Doubles with each connection of use that did, one after the other, up to a bound.
  bool named_ = false;
  bool asking_ = false;      // A question for the name is under way.
  bool fresh_ = false;       // The addresses were found in this attempt.
  bool exhausted_ = false;   // All addresses have failed.
  bool lost_ = false;        // waiting: for another connection after one that was of use.
  bool guided_ : 1 = false;  // The attempt may go to another host.
  bool stale_ : 1 = false;   // The question under way is for the name of a host that it has left.
};
static_assert(sizeof(Dialer) <= 64, "promised: a dialer");

}  // namespace holdfast

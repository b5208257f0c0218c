// SPDX-License-Identifier: MIT
//
// Linger is what is to be known of a hold that may stay where it is used when its user lets go of it. It is idle then: on the
// server, and renewed as before, but nobody's. Until somebody else asks for it, or it has stayed for long enough, taking it
// again is a step of this class alone. proto/handoff.md is the paper.
//
//     begin() -> in use --stay()--> idle --take()--> in use
//                                     '--due(): its machine is to release it; end()
//
// Invariant: what take() gives is held by the machine's own reckoning; nothing here makes a hold last longer.
// Not thread-safe: one owner. No heap.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

inline constexpr Duration linger_off = Duration::zero();

// Of an option: off, or within the limits.
[[nodiscard]] constexpr bool valid_linger(Duration linger) noexcept {
  return linger == linger_off || (linger >= linger_min && linger <= linger_max);
}

class Linger {
 public:
  explicit Linger(Duration most = linger_off) noexcept : most_(most) {}

  // A. Questions.
  [[nodiscard]] bool idle() const noexcept { return idle_; }
  [[nodiscard]] bool recalled() const noexcept { return recalled_; }
  // An idle hold is to be released for good: it was recalled, has stayed for long enough, is in doubt or was lost.
  [[nodiscard]] bool due(const LockMachine& machine, Instant now) const noexcept {
    return idle_ && (recalled_ || now >= until_ || doubtful(machine, now));
  }
  // When due() may become true if nothing happens; Instant::max(): never.
  [[nodiscard]] Instant poll_timeout(const LockMachine& machine) const noexcept {
    return idle_ ? earlier(until_, machine.poll_timeout()) : Instant::max();
  }

  // B. Inputs.
  // The server has granted the lock: a new hold, which nobody has recalled.
  void begin() noexcept {
    idle_ = recalled_ = false;
    until_ = Instant::max();
  }
  // Somebody else asks for it. It is let go of now, or by the next release: the hold that is recalled is not idle again.
  void recall() noexcept { recalled_ = true; }
  // Whoever would hear of a recall has listened until then, and has missed none.
  void hear(Instant now) noexcept { heard_at_ = later(heard_at_, now); }

  // C. Commands.
  // Its user lets go of it. True: it is idle from here on, and nothing is sent. False: it is to be released. A hold that was
  // recalled, whose time is over, that is in doubt, or for which nobody has listened lately does not stay. Its time begins when it
  // stays first, however often it is taken meanwhile: who cannot recall it comes in between then.
  [[nodiscard]] bool stay(const LockMachine& machine, Instant now) noexcept {
    if (idle_ || recalled_ || most_ == linger_off || machine.count() != 1 || doubtful(machine, now) || unheard(now))
      return false;
    if (until_ == Instant::max()) until_ = now + most_;
    idle_ = now < until_;
    return idle_;
  }
  // Its user wants it again, by this timing. True: it holds it. False: an idle hold is to be released first, and then the server
  // is asked, as by any acquire. So it is where the hold's lease is shorter than the timing's, or where it is not `kept_alike`,
  // renewed or not as a new hold of this timing would be: nobody has less than was asked for. A longer lease stays as it is.
  [[nodiscard]] bool take(const LockMachine& machine, const LockTiming& timing, bool kept_alike, Instant now) noexcept {
    if (!idle_ || !kept_alike || timing.effective_lease() > machine.timing().lease) return false;
    if (due(machine, now) || unheard(now)) return false;
    idle_ = false;
    return true;
  }
  // It is over, or another process's.
  void end() noexcept { idle_ = false; }

 private:
  [[nodiscard]] static bool doubtful(const LockMachine& machine, Instant now) noexcept {
    return machine.state() != LockState::held || !machine.held(now) || machine.at_risk(now);
  }

  [[nodiscard]] bool unheard(Instant now) const noexcept {
    return heard_at_ == Instant() || now - heard_at_ >= linger_unheard_max;
  }

  Duration most_;
  Instant until_ = Instant::max();  // Instant::max(): it has not been idle yet.
  Instant heard_at_;                // The epoch: nobody listens.
  bool idle_ = false;
  bool recalled_ = false;
};

}  // namespace holdfast

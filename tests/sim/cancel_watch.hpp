// SPDX-License-Identifier: MIT
//
// CancelWatch knows what cancel() was called for one client, or one quorum, and judges how its calls end.
//
// cancel   a call ends by no cancel() but one that came while it ran, or between the last call that could be ended and it;
//          a call that was cancelled ends soon; and one that acquires says so
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "holdfast/status.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Process;
struct Thread;

// What a cancel() does to a call.
enum class Cancels : std::uint8_t {
  acquiring,  // It ends soon, and says so: what was granted in the same moment is released again.
  asked,      // It ends soon, and says so unless it was answered.
  spared,     // It does its work; its wait ends soon. What comes before it waits may be the next call's.
};

class CancelWatch {
 public:
  // `turns`: another thread uses the client between its calls. What comes while a call gives back its turn ends the next one.
  void begin(const Thread& thread, bool turns) noexcept;
  // cancel() is called now. `thread` is the one that makes the calls.
  void note_raised(const Process& process, const Thread& thread, SimTime now) noexcept;
  // The call ends. `allowed` is how long one may take that was cancelled. Empty, or what is wrong.
  [[nodiscard]] std::string end(const Process& process, const Thread& thread, SimTime now, Cancels how, Status status,
                                SimTime allowed) noexcept;
  // The same of a call of several clients, of which this is one: how soon it ends is not said, and any of them may have ended it.
  // Where it is spared nobody knows whose cancel ended it, and the next call may be ended by what was left.
  [[nodiscard]] std::string end_among_others(const Thread& thread, Cancels how, Status status) noexcept;
  // A call that ends now may have been ended by this one's.
  [[nodiscard]] bool may_end() const noexcept { return raised_ || owed_ || unsure_; }
  [[nodiscard]] bool raised() const noexcept { return raised_; }
  void doubt() noexcept { unsure_ = true; }

 private:
  bool running_ = false;
  bool unsure_ = false;  // One may be left of a call among others.
  bool owed_ = false;    // One came that no call was there for.
  bool turns_ = false;
  bool raised_ = false;    // One came during the call in progress.
  bool again_ = false;     // Another one did.
  SimTime raised_at_ = 0;  // The first of them.
  SimTime imposed_ = 0;    // By then,
  SimTime resolving_ = 0;  // as this.
  std::uint64_t blocks_ = 0;
  std::uint64_t blocks_at_first_ = 0;
  std::uint64_t blocks_at_last_ = 0;  // When the last of them came.
};

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
#include "cancel_watch.hpp"

#include "world.hpp"

namespace holdfast::sim {

void CancelWatch::begin(const Thread& thread, bool turns) noexcept {
  running_ = true;
  turns_ = turns;
  raised_ = again_ = false;
  blocks_at_first_ = thread.blocks;
}

void CancelWatch::note_raised(const Process& process, const Thread& thread, SimTime now) noexcept {
  if (!running_) {
    owed_ = true;
    return;
  }
  blocks_at_last_ = thread.blocks;
  again_ = raised_;
  if (raised_) return;
  raised_ = true;
  raised_at_ = now;
  imposed_ = process.imposed;
  // The resolver takes its own time.
  resolving_ = thread.resolving_since < 0 ? thread.resolving : thread.resolving + now - thread.resolving_since;
  blocks_ = thread.blocks;
}

std::string CancelWatch::end(const Process& process, const Thread& thread, SimTime now, Cancels how, Status status,
                             SimTime allowed) noexcept {
  running_ = false;
  const bool raised = raised_;
  const bool owed = owed_;
  raised_ = false;
  // Nor was there anything to end in one that was refused for what it asked for.
  const bool spared = (how == Cancels::spared && status != Status::cancelled) || status == Status::invalid_argument;
  owed_ = spared && (owed || raised);
  const bool unsure = unsure_;
  // Nothing was waited for after the last of them, so the outcome may have stood by then; the only one of a call that was cancelled
  // did that.
  const bool late =
      turns_ && raised && thread.blocks == blocks_at_last_ && (status != Status::cancelled || again_ || owed || unsure);
  unsure_ = late || (spared && unsure);
  if (status == Status::cancelled && !raised && !owed && !unsure)
    return "was cancelled by nobody, or by what ended an earlier call";
  if (!raised || (how == Cancels::spared && blocks_ == blocks_at_first_)) return {};
  // What was imposed before may reach into it.
  const SimTime since = std::max(raised_at_, std::min(process.disturbed_until, now));
  const SimTime took = now - since - (process.imposed - imposed_) - (thread.resolving - resolving_);
  if (took > allowed) return "ended " + time_text(took) + " s after it was cancelled";
  // Not where nothing was waited for any more.
  if (how == Cancels::acquiring && status != Status::cancelled && thread.blocks > blocks_)
    return std::string("was cancelled, and said ") + to_string(status);
  return {};
}

std::string CancelWatch::end_among_others(const Thread& thread, Cancels how, Status status) noexcept {
  running_ = false;
  const bool raised = raised_;
  unsure_ = (how == Cancels::spared || status == Status::invalid_argument) && may_end();
  raised_ = owed_ = false;
  if (how == Cancels::acquiring && raised && status != Status::cancelled && thread.blocks > blocks_)
    return std::string("was cancelled, and said ") + to_string(status);
  return {};
}

}  // namespace holdfast::sim

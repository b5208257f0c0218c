// SPDX-License-Identifier: MIT
//
// Waiting is the time from the first attempt to connect until the lock is ours, or until it is clear that it will not be:
//
//     connect -> try -> wait -> wait -> ... -> held
//        |        |       \______/
//        |        |      each time a little, so that a new reason is noticed
//        v        v
//      what waiting cannot heal, the end of the wait, or a signal
//
// The first refusal and each new reason are told while it waits.
#pragma once

#include <optional>
#include <string>

#include "chosen_lock.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/status.hpp"
#include "options.hpp"
#include "run_list.hpp"
#include "signal_relay.hpp"

namespace holdfast::cli {

class Waiting {
 public:
  // REQUIRES: all of these outlive this.
  Waiting(ChosenLock& lock, const AcquisitionOptions& options, SignalRelay& relay, const RunList& outer);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Waits as long as the options say, and for the reply to a last request at most. ok: the lock is held, with enough of its
  // lease left to start something. Signals are held back from the return on.
  [[nodiscard]] Status run();

  // After a failure: says why, and returns what to end with.
  [[nodiscard]] int tell_failure(Status status) const;
  // How long the whole may take, see run(). Instant::max() where the wait has no end.
  [[nodiscard]] Instant limit() const noexcept { return limit_; }

 private:
  [[nodiscard]] Status connect();
  [[nodiscard]] Status wait_connected();
  [[nodiscard]] Status attempt(bool first);
  [[nodiscard]] bool goes_on_after(Status status) const noexcept;
  [[nodiscard]] Status look_at_holder();
  [[nodiscard]] std::string holder_text() const;
  void tell(Status status);

  ChosenLock& lock_;
  const AcquisitionOptions& options_;
  SignalRelay& relay_;
  const RunList& outer_;
  std::string name_;  // Printable.
  Instant deadline_;
  Instant limit_;
  bool connected_ = false;            // Once.
  std::optional<LockInfo> holder_;    // Who was in the way when that was looked at last.
  const OuterRun* around_ = nullptr;  // The run that holds it, where we are inside of that.
  std::string told_;                  // The reason that was told last, see ChosenLock::reason_of().
};

// True if `name` is the lock of a run that this process is inside of, on one of these servers: who waits for it waits for
// itself.
[[nodiscard]] bool is_own_lock(const AcquisitionOptions& options, const RunList& outer);
// Says so, and returns what to end with.
[[nodiscard]] int tell_own_lock(const AcquisitionOptions& options);

}  // namespace holdfast::cli

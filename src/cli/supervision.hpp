// SPDX-License-Identifier: MIT
//
// Supervision keeps the lock while the command runs, and ends the command when the lock cannot be kept:
//
//     running -> ending (TERM) -> killing (KILL) -> over
//        \_________________________________________/
//
//     acquired or renewed                       TERM                KILL   valid_until
//     |-- renewal at a third of the lease --------|----- grace ------|-margin-|
//
// When the command has ended by itself, what it left behind is ended in the same way, under the lock.
#pragma once

#include <string>
#include <vector>

#include "child_process.hpp"
#include "chosen_lock.hpp"
#include "holdfast/instant.hpp"
#include "options.hpp"
#include "process_tree.hpp"
#include "signal_relay.hpp"
#include "terminal.hpp"
#include "warden.hpp"

namespace holdfast::cli {

// From KILL to valid_until: what the kernel may need to end processes, and we to notice. A tenth of the lease, but no
// more than a busy machine takes. With the longest grace, half of the lease, the first renewal at a third of it still
// fits in front.
[[nodiscard]] Duration margin_of(Duration lease) noexcept;

class Supervision {
 public:
  // REQUIRES: the command is started, the lock was acquired, and all of these outlive this.
  Supervision(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, Terminal& terminal,
              ChildProcess& command, Warden& warden) noexcept;
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  // Returns when the command and all that came from it are gone.
  void run();
  // The lock was lost, or the command had to be ended because nobody could say how long it would last.
  [[nodiscard]] bool lost() const noexcept { return lost_; }

 private:
  enum class Stage { running, ending, killing };

  // Things that happened to the command.
  void observe_command();
  void reap_orphans();
  void handle_stop(int signal);
  void go_on();

  // The lock.
  void judge_hold(Instant now);
  void renew(Instant now, Instant limit);
  // REQUIRES, for the first: the lock is held.
  [[nodiscard]] Instant term_at() const noexcept;
  [[nodiscard]] Instant kill_at() const noexcept;
  [[nodiscard]] Instant next_deadline(Instant now) const noexcept;
  void instruct_warden() noexcept;

  // The end.
  void end_command(Instant now);
  void kill_all();
  void kill_again();
  void signal_all(int signal);
  // Is anything left that we can end?
  [[nodiscard]] bool anything_left();
  [[nodiscard]] bool given_up(pid_t pid) const noexcept;

  ChosenLock& lock_;
  const RunOptions& options_;
  SignalRelay& relay_;
  Terminal& terminal_;
  ChildProcess& command_;
  Warden& warden_;

  std::string name_;  // Printable.
  Duration margin_;
  Instant valid_until_;               // The last that was known while the lock was held.
  Instant kill_at_ = Instant::max();  // From TERM on.
  bool renewal_failed_ = false;       // Since the last that did not.
  Instant renew_not_before_;          // After a renewal that failed,
  std::string last_failure_;          // and why it did.
  Duration rescan_delay_ = std::chrono::milliseconds(10);
  Stage stage_ = Stage::running;
  bool held_ = true;  // Until the loss was noticed.
  bool lost_ = false;
  std::vector<pid_t> given_up_;  // Another user's: we may not signal them.
};

}  // namespace holdfast::cli

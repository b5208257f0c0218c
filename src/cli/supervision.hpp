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

#include "chosen_lock.hpp"
#include "holdfast/core/instant.hpp"
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
  // `token` is what the run list of the command has for this run.
  // REQUIRES: the command is started, the lock was acquired, and all of these outlive this.
  Supervision(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, Terminal& terminal, Warden& warden,
              std::string token) noexcept;
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
  void bury_command();
  void handle_stop(int signal);
  void go_on();
  void lose_warden();
  void reap_strangers();

  // The terminal.
  void yield_terminal();
  void nudge(pid_t group) noexcept;
  void nudge_again(Instant now) noexcept;

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
  [[nodiscard]] bool signal_group(int signal) const noexcept;
  void signal_all(int signal);
  // Is anything left that we can end?
  [[nodiscard]] bool anything_left();
  [[nodiscard]] bool given_up(pid_t pid) const noexcept;
  // Whatever came from the command, the command with it.
  [[nodiscard]] std::vector<Process> processes() const;
  // The command's group, as long as its number is nobody else's.
  [[nodiscard]] pid_t group() const noexcept { return buried_ || warden_.gone() ? 0 : warden_.command(); }
  // It is, and whether anything of it is left is known.
  [[nodiscard]] bool command_over() const noexcept { return told_of_rest_ || warden_.gone(); }

  ChosenLock& lock_;
  const RunOptions& options_;
  SignalRelay& relay_;
  Terminal& terminal_;
  Warden& warden_;

  std::string token_;
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
  bool buried_ = false;
  bool told_of_rest_ = false;          // By the warden, after the burial.
  int empty_looks_ = 0;                // In a row.
  std::vector<pid_t> given_up_;        // Another user's: we may not signal them.
  pid_t nudged_ = 0;                   // The group that got the terminal last,
  int nudges_ = 0;                     // how often it was continued since,
  Instant nudge_at_ = Instant::max();  // and when it is once more.
};

}  // namespace holdfast::cli

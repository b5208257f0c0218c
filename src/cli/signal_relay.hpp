// SPDX-License-Identifier: MIT
//
// SignalRelay is what this process does with signals:
//
//     connecting -> waiting -> running -> ending -> over
//
//   connecting   a signal that asks for the end gives it at once: nothing is held.
//   waiting      it cancels the wait for the lock, and is remembered. A call that does not end is cancelled again and again, and
//                ended with the process where that does not help: a signal ends a wait, wherever that is.
//   running      every signal of the list goes to the command's group, from inside the handler: a renewal that blocks
//                delays none. One that asks for the end also continues a stopped command: it could not hear it otherwise.
//                SIGCONT is the exception: the lock is looked at before the command may go on.
//   ending       the command has ended: they are kept for what it left behind, see take_passed_on().
//   over         nothing: all that is left to do is to let go, and that is bounded.
//
// A signal that was ignored when we were started stays ignored, by us and by the command: nohup and the background jobs
// of a shell count on that.   One a process, for signal handlers are.
#pragma once

#include <sys/types.h>

#include <csignal>

#include "holdfast/core/instant.hpp"

namespace holdfast::cli {

class ChosenLock;

class SignalRelay {
 public:
  // Opens the pipe and installs the handlers. opened() is false, and nothing is installed, when the system refuses.
  SignalRelay() noexcept;
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;
  [[nodiscard]] bool opened() const noexcept;

  // A. The phases, in this order.
  // Calls of the lock are cancelled from then on. What does not end by that, such as a resolver, is ended with the process a
  // little later: with exit_no_server, or as the signal says that asked for the end.
  void limit_calls(ChosenLock& lock, Instant until) noexcept;
  void end_limit() noexcept;
  // REQUIRES: limit_calls() has named the lock.
  void begin_waiting() noexcept;
  // Holds all signals back until release_signals(), so that none is lost between the lock and the command.
  void hold_signals() noexcept;
  // `news` is readable when something has become of the command.
  void begin_running(pid_t leader, int news) noexcept;
  void release_signals() noexcept;
  // The command has ended, and its group is about to vanish.
  void begin_ending() noexcept;
  void end() noexcept;

  // B. Questions.
  // The last signal that asked for the end while waiting, or 0.
  [[nodiscard]] int ending_signal() const noexcept;
  // True once after a SIGCONT.
  [[nodiscard]] bool take_continued() noexcept;
  // The last signal that came while ending, or 0; once.
  [[nodiscard]] int take_passed_on() noexcept;
  // True once after somebody of our own group has been stopped by the terminal, since it is not in the foreground.
  [[nodiscard]] bool take_terminal_wish() noexcept;

  // C. While the command runs.
  // Between these two, a command that ends or stops cancels the lock's call.
  void begin_renewal() noexcept;
  void end_renewal() noexcept;
  // Sleeps until a signal or news came, or until then, at most sleep_max.
  void sleep_until(Instant then) noexcept;
  // Stops this process as `signal` (SIGTSTP, SIGTTIN, SIGTTOU) does by default, with its whole group if asked. True
  // when it goes on; false, at once, in a group that nobody could continue.
  bool stop_ourselves(int signal, bool whole_group) noexcept;

  // D. In the child, between fork and exec: what we were started with, and an empty mask.
  void restore_for_command() const noexcept;

 private:
  sigset_t handled_{};
};

}  // namespace holdfast::cli

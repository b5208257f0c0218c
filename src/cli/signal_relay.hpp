// SPDX-License-Identifier: MIT
//
// SignalRelay is what this process does with signals:
//
//     connecting -> waiting -> running -> over
//
//   connecting   a signal that asks for the end gives it at once: nothing is held.
//   waiting      it cancels the wait for the lock, and is remembered.
//   running      every signal of the list goes to the command's group, from inside the handler: a renewal that blocks
//                delays none. SIGCONT is the exception: the lock is looked at before the command may go on.
//   over         nothing: all that is left to do is to let go, and that is bounded.
//
// A signal that was ignored when we were started stays ignored, by us and by the command: nohup and the background jobs
// of a shell count on that.   One a process, for signal handlers are.
#pragma once

#include <sys/types.h>

#include <csignal>

#include "holdfast/instant.hpp"

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
  void begin_waiting(ChosenLock& lock) noexcept;
  // Holds all signals back until release_signals(), so that none is lost between the lock and the command.
  void hold_signals() noexcept;
  void begin_running(pid_t leader) noexcept;
  void release_signals() noexcept;
  // The command's group is about to vanish.
  void end_running() noexcept;

  // B. Questions.
  // The last signal that asked for the end while waiting, or 0.
  [[nodiscard]] int ending_signal() const noexcept;
  // True once after a SIGCONT.
  [[nodiscard]] bool take_continued() noexcept;

  // C. While the command runs.
  // Between these two, a command that ends or stops cancels the lock's call.
  void begin_renewal() noexcept;
  void end_renewal() noexcept;
  // Sleeps until a signal came, or until then, at most sleep_max.
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

// SPDX-License-Identifier: MIT
//
// ChildProcess is the command: the leader of a process group of its own, whose number stays taken until reap(), so that
// a signal to it never reaches a stranger.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "signal_relay.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

enum class CommandChange { none, stopped, ended };

class ChildProcess {
 public:
  ChildProcess() = default;
  // REQUIRES: reaped, or never started.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Forks and executes. The kernel kills the command should this process die. False, with errno, if there is no new
  // process; that it cannot be executed shows as its end, see exec_error().
  // REQUIRES: signals are held; `words` is not empty.
  [[nodiscard]] bool start(const std::vector<std::string>& words, const SignalRelay& relay, Terminal& terminal);

  // What has happened since the last call, without waiting.
  [[nodiscard]] CommandChange poll_change() noexcept;
  [[nodiscard]] int stop_signal() const noexcept { return stop_signal_; }

  [[nodiscard]] pid_t group() const noexcept { return pid_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  // As a shell has it: the exit status, or 128 and the signal. REQUIRES: ended().
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  // errno of the exec that failed, or 0. REQUIRES: ended().
  [[nodiscard]] int exec_error() noexcept;

  // Waits for the zombie: the group's number may be anybody's from here on. REQUIRES: ended().
  void reap() noexcept;

 private:
  pid_t pid_ = -1;
  int exec_error_pipe_ = -1;
  int stop_signal_ = 0;
  int exit_code_ = 0;
  bool ended_ = false;
};

}  // namespace holdfast::cli

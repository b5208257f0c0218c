// SPDX-License-Identifier: MIT
#include "child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cerrno>

#include "exit_codes.hpp"
#include "holdfast/assert.hpp"

namespace holdfast::cli {

namespace {

// Should we die, by SIGKILL for one, the lock runs out with nobody to tell the command.
void die_with_parent(pid_t parent) noexcept {
#ifdef __linux__
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  // It may have died before it was asked for.
  if (::getppid() != parent) ::_exit(exit_lost);
}

[[noreturn]] void become(char* const* words, pid_t parent, const SignalRelay& relay, Terminal* terminal,
                         int error_pipe) noexcept {
  die_with_parent(parent);
  (void)::setpgid(0, 0);
  if (terminal != nullptr) (void)terminal->give_to(::getpid());
  relay.restore_for_command();
  ::execvp(words[0], words);
  const int error = errno;
  if (::write(error_pipe, &error, sizeof error) < 0) ::_exit(exit_cannot_execute);
  ::_exit(error == ENOENT || error == ENOTDIR ? exit_not_found : exit_cannot_execute);
}

}  // namespace

ChildProcess::~ChildProcess() {
  if (exec_error_pipe_ >= 0) ::close(exec_error_pipe_);
}

bool ChildProcess::start(const std::vector<std::string>& words, const SignalRelay& relay, Terminal& terminal) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const bool with_terminal = terminal.given_at_start();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(pointers.data(), parent, relay, with_terminal ? &terminal : nullptr, ends[1]);
  const int error = errno;
  ::close(ends[1]);
  if (pid_ < 0) {
    ::close(ends[0]);
    errno = error;
    return false;
  }
  exec_error_pipe_ = ends[0];
  // Both sides do this, so that it is done whoever runs first. Ours fails where the command is already executed.
  (void)::setpgid(pid_, pid_);
  if (with_terminal) (void)terminal.give_to(pid_);
  return true;
}

CommandChange ChildProcess::poll_change() noexcept {
  if (ended_) return CommandChange::none;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return CommandChange::none;
  if (info.si_code == CLD_STOPPED) {
    stop_signal_ = info.si_status;
    siginfo_t taken{};
    (void)::waitid(P_PID, static_cast<id_t>(pid_), &taken, WSTOPPED | WNOHANG);
    return CommandChange::stopped;
  }
  // The zombie stays: it keeps the group's number ours.
  exit_code_ = info.si_code == CLD_EXITED ? info.si_status : exit_signal_base + info.si_status;
  ended_ = true;
  return CommandChange::ended;
}

int ChildProcess::exec_error() noexcept {
  int error = 0;
  if (::read(exec_error_pipe_, &error, sizeof error) != sizeof error) return 0;
  return error;
}

void ChildProcess::reap() noexcept {
  HOLDFAST_ASSERT(ended_);
  (void)::waitpid(pid_, nullptr, 0);
}

}  // namespace holdfast::cli

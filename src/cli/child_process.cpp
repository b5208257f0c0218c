// SPDX-License-Identifier: MIT
#include "child_process.hpp"

#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cerrno>

#include "exit_codes.hpp"
#include "secrets.hpp"

namespace holdfast::cli {

namespace {

// Should its guard die, nobody can end what the command starts: then the command ends, too.
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
  restore_core_files();
  ::execvp(words[0], words);
  const int error = errno;
  if (::write(error_pipe, &error, sizeof error) < 0) ::_exit(exit_cannot_execute);
  ::_exit(error == ENOENT || error == ENOTDIR ? exit_not_found : exit_cannot_execute);
}

}  // namespace

pid_t start_child(const std::vector<std::string>& words, const SignalRelay& relay, Terminal* terminal, int error_pipe) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(pointers.data(), parent, relay, terminal, error_pipe);
  // Both sides do this, so that it is done whoever runs first. Ours fails where the command is already executed.
  if (pid > 0) (void)::setpgid(pid, pid);
  return pid;
}

}  // namespace holdfast::cli

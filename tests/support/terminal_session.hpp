// SPDX-License-Identifier: MIT
//
// A terminal for tests of the holdfast command, with a shell of sorts on it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "command_fixture.hpp"

// It runs one holdfast, or a line of sh with one in it, as its job and tells what becomes of it. Whatever is typed while the
// job is stopped is a request to bring it to the foreground.
class TerminalSession {
 public:
  static constexpr int stopped = 1000;
  enum class Place { foreground, background };

  TerminalSession(const std::string& url, const std::string& line, Place place = Place::foreground)
      : TerminalSession(url, {"-c", line}, place, {.path = "/bin/sh"}) {}
  TerminalSession(const std::string& url, const Words& words, Place place = Place::foreground,
                  const Start& start = {}) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0 || ::pipe2(told_, O_CLOEXEC) != 0)
      throw std::runtime_error("no terminal");
    const std::string path = ::ptsname(master_);
    shell_ = fork_without_handlers();
    if (shell_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();
      const int terminal = ::open(path.c_str(), O_RDWR);
      ::ioctl(terminal, TIOCSCTTY, 0);
      ::signal(SIGTTOU, SIG_IGN);
      const pid_t job = ::fork();
      if (job == 0) {
        ::setpgid(0, 0);
        if (place == Place::foreground) ::tcsetpgrp(terminal, ::getpid());
        ::signal(SIGTTOU, SIG_DFL);
        for (const int descriptor : {0, 1, 2}) ::dup2(terminal, descriptor);
        execute_command(words, url, start);
      }
      ::setpgid(job, job);
      tell(job);
      for (;;) {
        int status = 0;
        if (::waitpid(job, &status, WUNTRACED) != job) ::_exit(1);
        ::tcsetpgrp(terminal, ::getpgrp());
        if (!WIFSTOPPED(status)) {
          tell(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
          ::_exit(0);
        }
        tell(stopped);
        // fg, on request.
        char request[8];
        if (::read(terminal, request, sizeof request) <= 0) ::_exit(1);
        ::tcsetpgrp(terminal, job);
        ::kill(-job, SIGCONT);
      }
    }
    ::close(told_[1]);
  }
  ~TerminalSession() {
    ::kill(shell_, SIGKILL);
    ::waitpid(shell_, nullptr, 0);
    ::close(master_);
    ::close(told_[0]);
  }
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  void type(const std::string& keys) const { (void)!::write(master_, keys.data(), keys.size()); }
  void resize(unsigned short rows, unsigned short columns) const {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  // True as soon as `text` has been shown.
  bool shows(const std::string& text) {
    return eventually([&] { return shows_now(text); });
  }
  // The same without waiting.
  bool shows_now(const std::string& text) {
    pollfd entry = {.fd = master_, .events = POLLIN, .revents = 0};
    char part[512];
    while (::poll(&entry, 1, 0) == 1) {
      const ssize_t count = ::read(master_, part, sizeof part);
      if (count <= 0) break;
      shown_.append(part, static_cast<std::size_t>(count));
    }
    return contains(shown_, text);
  }
  // Of what was shown.
  int number_behind(const std::string& text) const {
    return static_cast<int>(std::strtol(shown_.c_str() + shown_.find(text) + text.size(), nullptr, 10));
  }
  // The id of the holdfast process. Once, and first.
  int process() const { return hear(); }
  // What became of it: `stopped`, else its exit code.
  int job() const { return hear(); }

 private:
  void tell(int value) const {
    if (::write(told_[1], &value, sizeof value) != sizeof value) ::_exit(1);
  }
  int hear() const {
    int value = -1;
    pollfd entry = {.fd = told_[0], .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(patience / 1ms)) != 1) return -1;
    return ::read(told_[0], &value, sizeof value) == sizeof value ? value : -1;
  }

  int master_ = -1;
  int told_[2] = {-1, -1};
  pid_t shell_ = -1;
  std::string shown_;
};

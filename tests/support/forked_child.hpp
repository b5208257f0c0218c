// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "unity_style.hpp"

// A forked child that does what it is told and ends with a number, and two pipes to talk to it.
class Child {
 public:
  template <class Work>
  explicit Child(Work&& work) {
    TEST_ASSERT_EQUAL(0, ::pipe2(to_parent_, O_CLOEXEC));
    TEST_ASSERT_EQUAL(0, ::pipe2(to_child_, O_CLOEXEC));
    pid_ = ::fork();
    close_end(pid_ == 0 ? to_parent_[0] : to_parent_[1]);
    close_end(pid_ == 0 ? to_child_[1] : to_child_[0]);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::alarm(20);
      ::_exit(work(*this));
    }
  }
  ~Child() {
    if (pid_ > 0) kill();  // Its test has failed, and it may stand still.
    close_end(to_parent_[0]);
    close_end(to_child_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The child's side.
  void say(const std::string& line) const { (void)!::write(to_parent_[1], (line + "\n").data(), line.size() + 1); }
  void await_go() const {
    char byte = 0;
    (void)!::read(to_child_[0], &byte, 1);
  }
  // The parent's.
  [[nodiscard]] std::string hear() const {
    std::string line;
    char byte = 0;
    pollfd entry = {to_parent_[0], POLLIN, 0};
    while (::poll(&entry, 1, 60000) == 1 && ::read(to_parent_[0], &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }
  void go() const { (void)!::write(to_child_[1], "", 1); }
  void kill() {
    ::kill(pid_, SIGKILL);
    (void)join();
  }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void resume() const { ::kill(pid_, SIGCONT); }
  [[nodiscard]] int join() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  static void close_end(int& end) {
    ::close(end);
    end = -1;
  }

  int to_parent_[2];
  int to_child_[2];
  pid_t pid_ = -1;
};

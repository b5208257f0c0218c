// SPDX-License-Identifier: MIT
//
// What tests of the holdfast command share: one command, started with its output at hand. HOLDFAST_COMMAND says where it is.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "live_fixture.hpp"
#include "patience.hpp"

using namespace holdfast;

inline constexpr int exit_free = 1;
inline constexpr int exit_usage = 64;
inline constexpr int exit_no_lock = 65;
inline constexpr int exit_no_server = 69;
inline constexpr int exit_output = 74;
inline constexpr int exit_not_acquired = 75;
inline constexpr int exit_no_permission = 77;
inline constexpr int exit_lost = 79;

template <class Predicate>
bool eventually(Predicate&& predicate) {
  return comes(predicate);
}

// As /proc has it: 'T' is stopped, 'Z' a zombie; '?' for a process that is gone.
inline char state_of(pid_t pid) {
  char text[512] = {};
  const int file = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return '?';
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  const std::string stat(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t bracket = stat.rfind(')');
  return bracket == std::string::npos || bracket + 2 >= stat.size() ? '?' : stat[bracket + 2];
}

// Zombies count as gone: they do nothing any more.
inline bool alive(pid_t pid) {
  const char state = state_of(pid);
  return state != '?' && state != 'Z';
}

inline std::string command_path() {
  const char* const path = std::getenv("HOLDFAST_COMMAND");
  return path == nullptr ? "holdfast" : path;
}

using Words = std::vector<std::string>;

// What is to be executed, and with what beside HOLDFAST_URL in its environment.
struct Start {
  std::string path = command_path();
  std::vector<std::pair<std::string, std::string>> environment{};
};

// Does not return. Nothing but the standard descriptors is handed on.
[[noreturn]] inline void execute_command(const Words& words, const std::string& url, const Start& start = {}) {
  if (url.empty())
    ::unsetenv("HOLDFAST_URL");
  else
    ::setenv("HOLDFAST_URL", url.c_str(), 1);
  for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
  for (int descriptor = 3; descriptor < 256; ++descriptor) ::close(descriptor);
  std::string path = start.path;
  Words copy = words;
  std::vector<char*> pointers = {path.data()};
  for (std::string& word : copy) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  ::_exit(99);
}

// The runner's own handlers must not meet a signal in a child: it gets none before they are gone.
inline pid_t fork_without_handlers() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0)
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

// One holdfast, with its output at hand.
class Running {
 public:
  Running(const std::string& url, const Words& words, const Start& start = {}) {
    if (::pipe2(output_, O_CLOEXEC) != 0 || ::pipe2(errors_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = fork_without_handlers();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(::open("/dev/null", O_RDONLY), 0);
      ::dup2(output_[1], 1);
      ::dup2(errors_[1], 2);
      execute_command(words, url, start);
    }
    ::close(output_[1]);
    ::close(errors_[1]);
  }
  ~Running() {
    if (pid_ > 0) {
      ::kill(pid_, SIGCONT);
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(output_[0]);
    ::close(errors_[0]);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  // The next line of the command's output.
  std::string line() {
    std::string text;
    for (char byte = 0; take(output_[0], byte);) {
      if (byte == '\n') return text;
      text += byte;
    }
    return text + " (no line)";
  }
  // All of the output that is left.
  std::string rest() {
    std::string text;
    for (char byte = 0; take(output_[0], byte);) text += byte;
    return text;
  }
  pid_t line_of_pid() { return static_cast<pid_t>(std::strtol(line().c_str(), nullptr, 10)); }

  // Its exit code, or -N where signal N has ended it.
  int wait() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1000;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // True as soon as `text` was said on standard error, behind what was waited for before.
  bool says(const std::string& text) {
    return eventually([&] {
      hear();
      const std::size_t at = said_.find(text, heard_);
      if (at != std::string::npos) heard_ = at + text.size();
      return at != std::string::npos;
    });
  }
  // All that was said until it ended. REQUIRES: wait().
  std::string errors() {
    hear();
    return said_;
  }

 private:
  void hear() {
    ::fcntl(errors_[0], F_SETFL, O_NONBLOCK);
    char part[4096];
    for (ssize_t count = 0; (count = ::read(errors_[0], part, sizeof part)) > 0;)
      said_.append(part, static_cast<std::size_t>(count));
  }
  static bool take(int descriptor, char& byte) {
    pollfd entry = {.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(patience / 1ms)) == 1 && ::read(descriptor, &byte, 1) == 1;
  }

  int output_[2] = {-1, -1};
  int errors_[2] = {-1, -1};
  pid_t pid_ = -1;
  std::string said_;       // On standard error,
  std::size_t heard_ = 0;  // and how much of it says() has passed.
};

inline std::vector<pid_t> children_of(pid_t pid) {
  const std::string process = std::to_string(pid);
  std::ifstream children("/proc/" + process + "/task/" + process + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; children >> child;) found.push_back(child);
  return found;
}

// The second process of a `holdfast run`; 0 as long as it has not said its name.
inline pid_t warden_of(pid_t holdfast) {
  for (const pid_t child : children_of(holdfast)) {
    std::string name;
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm"), name);
    if (name == "holdfast-warden") return child;
  }
  return 0;
}

// The same, as soon as it has.
inline pid_t await_warden_of(pid_t holdfast) {
  pid_t warden = 0;
  TEST_ASSERT_TRUE(eventually([&] { return (warden = warden_of(holdfast)) > 0; }));
  return warden;
}

// run OPTION... NAME -- sh -c SCRIPT
inline Words run_script(Words options, const std::string& script) {
  options.insert(options.begin(), "run");
  for (const char* word : {"lock", "--", "sh", "-c"}) options.emplace_back(word);
  options.push_back(script);
  return options;
}

inline int run_to_end(const std::string& url, const Words& words, std::string* errors = nullptr) {
  Running command(url, words);
  const int code = command.wait();
  const std::string said = command.errors();
  TEST_MESSAGE("stderr: " << said);
  if (errors != nullptr) *errors = said;
  return code;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The standard output of a command that ends with `code`.
inline std::string output_of(const std::string& url, const Words& words, int code) {
  Running command(url, words);
  const std::string text = command.rest();
  const int ended = command.wait();
  TEST_MESSAGE("stdout: " << text << "stderr: " << command.errors());
  TEST_ASSERT_EQUAL(code, ended);
  return text;
}

// What a holdfast has ended with, and all that it has said.
struct Outcome {
  int code;
  std::string text;
};

inline Outcome outcome_of(const std::string& url, const std::vector<std::string>& arguments) {
  Running command(url, arguments, {});
  const std::string text = command.rest();
  const int code = command.wait();
  return {code, text + command.errors()};
}

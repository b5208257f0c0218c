// SPDX-License-Identifier: MIT
#include "peer_program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace bench {

PeerProgram::PeerProgram(const std::vector<std::string>& command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no pair of sockets");
  descriptor_ = ends[0];
  const timeval limit = {.tv_sec = 20, .tv_usec = 0};  // An interpreter takes its time to start.
  (void)::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], 0);
    ::dup2(ends[1], 1);
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  const std::string greeting = read_line();
  if (greeting.rfind("ready ", 0) == 0)
    name_ = greeting.substr(6);
  else if (greeting.rfind("skip ", 0) == 0)
    missing_ = greeting.substr(5);
  else
    missing_ = command[0] + " does not run here";
}

PeerProgram::~PeerProgram() {
  ::close(descriptor_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void PeerProgram::tell(const std::string& line) {
  const std::string bytes = line + "\n";
  if (::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error(name_ + " does not listen any more");
}

std::string PeerProgram::hear(const std::string& word) {
  const std::string line = read_line();
  if (line.rfind(word, 0) != 0) throw std::runtime_error(name_ + " says " + (line.empty() ? "nothing" : line));
  return line.size() > word.size() ? line.substr(word.size() + 1) : std::string();
}

// Empty at the end, and when nothing comes for too long.
std::string PeerProgram::read_line() {
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    char bytes[512];
    const ssize_t count = ::recv(descriptor_, bytes, sizeof bytes, 0);
    if (count <= 0) return {};
    received_.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace bench

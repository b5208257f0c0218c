// SPDX-License-Identifier: MIT
//
// Peer is a program that takes locks with a client of another language, told by lines on its standard input. It dies
// with its object, and with the test should that be killed.
//
// The protocol, the same for every language. A command is a line, its words separated by spaces; bytes of names that
// are not plain come as %XX. Each command has one line for an answer. What was started in the background is heard of
// later, by a line that begins with "* ". Whatever fails otherwise is "error TEXT".
//
//     watchdog-timeout MS                 ok                    before connect: how long a hold without a lease lasts
//     connect PORT...                     ok                    several: the nodes of a quorum (redsync, node-redlock)
//     lock NAME LEASE WAIT                granted | busy        LEASE, WAIT: milliseconds; WAIT 0: one attempt
//     start-lock NAME LEASE WAIT          waiting               then: * granted NAME MICROSECONDS, or * busy ...
//     extend NAME                         ok | lost             by the lease that it was taken with
//     unlock NAME                         ok | lost
//     token NAME                          TOKEN                 what the key's value should be
//     start-count NAME COUNTER ROUNDS     counting              then: * counted COUNTER MICROSECONDS
//     quit                                bye
//
// A LEASE may be "none" (redis-py: no expiry) or "watchdog" (Redisson: renewed by itself), a WAIT "forever" (Redisson).
// "waiting" says that the first attempt was refused; Redisson's says only that it has begun. Redisson has no extend and
// token, but also:
//
//     connect-cluster PORT...             ok                    nodes of a Redis Cluster
//     connect-sentinel SERVICE PORT...    ok                    sentinels that know the service
//
//     fenced-lock, start-fenced-lock      granted TOKEN         * granted NAME MICROSECONDS TOKEN
//     fence NAME                          TOKEN                 the counter's present value
//     force-unlock | is-locked | is-held NAME      yes | no
//     hold-count | remaining NAME         NUMBER                of the thread that locked it last; milliseconds
//
// and of the sides of a read/write lock, as lock, start-lock, unlock and so on are of a lock:
//
//     read-lock | start-read-lock NAME LEASE WAIT
//     unlock-read | force-unlock-read | is-locked-read | is-held-read | hold-count-read NAME
//     write-lock ... hold-count-write, start-write-count
//
// of permits of a semaphore, which have ids of their own and no owner; a LEASE may be "none":
//
//     set-permits NAME NUMBER             yes | no              no: a number is set already
//     permit NAME LEASE WAIT              granted ID | busy
//     start-permit NAME LEASE WAIT        waiting               then: * granted NAME MICROSECONDS ID, or * busy ...
//     release-permit NAME ID              ok | lost
//     try-release-permit NAME ID          yes | no
//     update-lease NAME ID MS             yes | no
//     lease-time NAME ID                  NUMBER                milliseconds; -1: without an end
//     available-permits | acquired-permits | all-permits NAME      NUMBER
//     start-permit-use NAME COUNTER MS    counting              * counted COUNTER MICROSECONDS ROUNDS MOST LONGEST
//
// the last of which takes permits for so long, counts who is inside, and says how many were at most and how many milliseconds
// it waited for one at most; and
//
//     await-waiters NAME                  ok                    those that were started in the background sleep
//
// What is started in the background belongs to an owner of its own. The others are of one owner, which may have both sides; but
// what is asked of a side is asked of the owner that locked this side last.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

class Peer {
 public:
  // Starts the program of HOLDFAST_PEER, which prepare.sh sets, and connects it to the server at that port.
  explicit Peer(int port, const std::vector<std::string>& commands_before = {})
      : Peer(std::vector<int>{port}, commands_before) {}
  // The same with several servers.
  explicit Peer(const std::vector<int>& ports, const std::vector<std::string>& commands_before = {})
      : Peer("connect", ports, commands_before) {}
  // The same by another command than "connect": "connect-cluster", "connect-sentinel mymaster".
  Peer(const char* connect, const std::vector<int>& ports, const std::vector<std::string>& commands_before = {}) {
    const char* const program = std::getenv("HOLDFAST_PEER");
    if (program == nullptr) throw std::runtime_error("HOLDFAST_PEER is not set: run this test by prepare.sh");
    spawn(program);
    for (const std::string& command : commands_before) ask_ok(command);
    std::string command = connect;
    for (const int port : ports) command += ' ' + std::to_string(port);
    ask_ok(command);
  }
  ~Peer() {
    kill();
    ::close(input_);
    ::close(output_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Generous: a runtime that starts on a busy machine. No test waits for it unless it fails.
  static constexpr std::chrono::seconds patience{60};

  // The answer to one command. Throws when the peer ends or says nothing in time.
  std::string ask(const std::string& command) {
    const std::string line = command + "\n";
    if (::write(input_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("the peer has ended before: " + command);
    return next_of(answers_, command, patience);
  }
  // The same with a name between two parts of the command.
  std::string ask(const std::string& command, const std::string& name, const std::string& rest = "") {
    return ask(command + ' ' + word_of(name) + (rest.empty() ? "" : ' ' + rest));
  }
  // The next line of what goes on in the background, without its star, split at spaces.
  std::vector<std::string> event(std::chrono::milliseconds within = patience) {
    std::istringstream line(next_of(events_, "an event", within));
    std::vector<std::string> words;
    for (std::string word; line >> word;) words.push_back(word);
    return words;
  }
  // Is there one, or does one come in that time? Throws when the peer has ended.
  bool has_event(std::chrono::milliseconds within = std::chrono::milliseconds(0)) {
    const Clock::time_point deadline = Clock::now() + within;
    while (events_.empty() && readable_until(deadline)) read_some("an event");
    return !events_.empty();
  }
  // Ends it in the midst of whatever it does.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
  }

  // A name of any bytes as a word of the protocol.
  static std::string word_of(const std::string& name) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/{}";
    static const char digits[] = "0123456789ABCDEF";
    std::string word;
    for (const char byte : name) {
      if (byte != '\0' && std::strchr(plain, byte) != nullptr) {
        word += byte;
        continue;
      }
      const auto value = static_cast<unsigned char>(byte);
      word += '%';
      word += digits[value / 16];
      word += digits[value % 16];
    }
    return word;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void spawn(const char* program) {
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);  // It was gone before the line above.
      ::dup2(input[0], 0);
      ::dup2(output[1], 1);
      ::execl(program, program, static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    output_ = output[0];
    ::signal(SIGPIPE, SIG_IGN);  // A peer that has ended is an error of ask().
  }

  void ask_ok(const std::string& command) {
    const std::string answer = ask(command);
    if (answer != "ok") throw std::runtime_error("the peer says to " + command + ": " + answer);
  }

  std::string next_of(std::deque<std::string>& lines, const std::string& awaited, std::chrono::milliseconds within) {
    const Clock::time_point deadline = Clock::now() + within;
    while (lines.empty()) {
      if (!readable_until(deadline)) throw std::runtime_error("the peer is silent; awaited: " + awaited);
      read_some(awaited);
    }
    std::string line = lines.front();
    lines.pop_front();
    return line;
  }

  // Bytes, or the end.
  bool readable_until(Clock::time_point deadline) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd readable{output_, POLLIN, 0};
      const int ready = ::poll(&readable, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
      if (ready >= 0 || errno != EINTR) return ready > 0;
    }
  }

  void read_some(const std::string& awaited) {
    char bytes[4096];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) throw std::runtime_error("the peer has ended; awaited: " + awaited);
    unread_.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      if (line.rfind("* ", 0) == 0)
        events_.push_back(line.substr(2));
      else
        answers_.push_back(line);
    }
  }

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string unread_;
  std::deque<std::string> answers_;
  std::deque<std::string> events_;
};

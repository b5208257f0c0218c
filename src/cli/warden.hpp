// SPDX-License-Identifier: MIT
//
// Warden is a second process that stands between us and the command:
//
//     holdfast --- holdfast-warden --- command --- all that it starts
//              orders ->
//              <- news
//
// It is the parent of the command and the foster parent of all orphans that come from it, so that whatever the command starts
// descends from the warden, and nothing else does: not a child that we had before. And it guards the command against our own
// failure: while we are stopped, or hang, or have been killed, nobody renews the lock and nobody ends the command. The warden
// kills them all when it hears that we are gone, or when the deadline that it was last told has passed.
//
// Should the warden be killed, the kernel ends the command with it, and we end what is left: see gone(). Should both of us be
// killed at once, as by their name, a third process does: the deputy, which does nothing else.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "holdfast/core/instant.hpp"
#include "signal_relay.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

// What a process of this name is to a look at /proc.
inline constexpr char warden_name[] = "holdfast-warden";
// Whoever kills all that is called holdfast, as `pkill holdfast` does, misses it.
inline constexpr char deputy_name[] = "hf-deputy";

enum class News {
  none,
  stopped,  // The command, by stop_signal().
  ended,    // The command. Its zombie stays, and with it the number of its group, until bury().
  left,     // After bury(): processes that came from the command are still there.
  empty,    // After bury(): no such process is there any more.
  gone,     // The warden has died, and the command with it. There is no news from here on.
};

class Warden {
 public:
  Warden() = default;
  // Without dismiss() we end by a mistake of ours, and the warden takes that for our death.
  ~Warden();
  Warden(const Warden&) = delete;
  Warden& operator=(const Warden&) = delete;

  // Forks the deputy and the warden, which forks the command. Until the first instruct() the deadline is this one. `token` is
  // what the run list of the command has for this run. That the command cannot be executed shows as its end, see exec_error().
  // False, with errno, if there is no new process.
  // REQUIRES: signals are held; `words` is not empty.
  [[nodiscard]] bool start(const std::vector<std::string>& words, const SignalRelay& relay, Terminal& terminal,
                           const std::string& token, Instant deadline);

  // A. Questions.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // The command, and its group; 0 where the warden was killed before it told.
  [[nodiscard]] pid_t command() const noexcept { return command_; }
  // Readable when there is news.
  [[nodiscard]] int descriptor() const noexcept { return news_; }
  [[nodiscard]] int stop_signal() const noexcept { return stop_signal_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  // As a shell has it: the exit status, or 128 and the signal. REQUIRES: ended(), or gone().
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  // errno of the exec that failed, or 0. REQUIRES: as above.
  [[nodiscard]] int exec_error() noexcept;

  // B. A child of ours, which is neither the warden nor of its tree, is about to be waited for.
  void note_end_of(pid_t pid) noexcept {
    if (pid == deputy_) deputy_ = -1;
  }
  // What has happened since the last call, without waiting.
  [[nodiscard]] News poll_news() noexcept;
  // A stopped warden guards nothing: it is continued. A SIGCHLD tells that it may have been stopped.
  void keep_awake() const noexcept;

  // C. Orders. None of them blocks, but the last.
  // When to kill if nothing else is said.
  void instruct(Instant deadline) noexcept;
  // The command's zombie may go: the group's number may be anybody's from here on. REQUIRES: ended().
  void bury() noexcept;
  // There is nothing left to guard. Waits for its end.
  void dismiss() noexcept;

 private:
  enum class Order : int;
  void send(Order order, Instant deadline) noexcept;
  void end_deputy() noexcept;

  pid_t deputy_ = -1;
  pid_t pid_ = -1;
  pid_t command_ = -1;
  int orders_ = -1;
  int news_ = -1;
  int exec_error_pipe_ = -1;
  int stop_signal_ = 0;
  int exit_code_ = 0;
  bool ended_ = false;
  bool empty_ = false;
  bool gone_ = false;
};

}  // namespace holdfast::cli

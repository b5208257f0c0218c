// SPDX-License-Identifier: MIT
//
// LiveScreen is the terminal that a watcher draws on, and the signals that a watcher hears:
//
//     lines  ------------------> over          Standard output is no terminal: text goes out line by line.
//     shown <---> suspended ---> over          It is one: the alternate screen, which is left at every end.
//
//   INT, TERM, HUP   ask for the end, once. What waits is cancelled. Where that does not help, as in a resolver, the system call is
//                    interrupted once more, and then the terminal is put right and the process ended from inside the handler. A
//                    second signal does that at once.
//   WINCH            the window has another size: the next frame is drawn for that.
//   TSTP             the terminal is put right before the process stops, and the frame is drawn anew when it goes on.
//
// A signal that was ignored when we were started stays ignored.   One per process, as signal handlers are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/core/instant.hpp"
#include "lock_table.hpp"

namespace holdfast::cli {

class LiveScreen {
 public:
  // The client's calls are cancelled when the end is asked for. It outlives this. With `lines` the terminal is not used.
  LiveScreen(ClientBase& client, bool lines) noexcept;
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // There is a terminal to draw on.
  [[nodiscard]] bool shown() const noexcept { return shown_; }
  [[nodiscard]] WindowSize size() const noexcept;
  // The signal that asked for the end; 0: none.
  [[nodiscard]] int ending_signal() const noexcept;
  // True once after the window was resized, or drawn on by others.
  [[nodiscard]] bool take_redraw() noexcept;

  // Writes to standard output, however long its reader takes, or until the end is asked for. False: nobody can read it any more.
  [[nodiscard]] bool write(std::string_view text) noexcept;
  // Draws. False: the terminal is gone.
  [[nodiscard]] bool draw(const std::vector<std::string>& lines) noexcept;
  // Sleeps until then, until a signal came, or something on this socket. Stops with the job, where that was asked for. True if it
  // was the socket.
  bool sleep_until(Instant then, int socket = -1, short events = 0) noexcept;
  // Puts the terminal right. Nothing is drawn from then on.
  void leave() noexcept;

 private:
  void enter() noexcept;
  void stop_with_job() noexcept;

  bool shown_ = false;
  bool entered_ = false;
  bool redraw_ = false;
};

}  // namespace holdfast::cli

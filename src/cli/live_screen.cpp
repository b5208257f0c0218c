// SPDX-License-Identifier: MIT
#include "live_screen.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "exit_codes.hpp"

namespace holdfast::cli {

namespace {

// The alternate screen, without a cursor and without wrapping; and back. Terminals since xterm know these.
constexpr std::string_view enter_bytes = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J";
constexpr std::string_view leave_bytes = "\x1b[?25h\x1b[?7h\x1b[?1049l";
// From the request for the end to another interrupt, and from that to the end.
constexpr unsigned ending_seconds = 2;

constexpr int all_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGALRM, SIGPIPE};

// For the handlers. Lock-free where they are int-sized, as everywhere that has signals.
std::atomic<ClientBase*> cancelled_client{nullptr};
std::atomic<int> ended_by{0};
std::atomic<bool> was_interrupted{false};  // After that.
std::atomic<bool> resized{false};
std::atomic<bool> stop_wanted{false};
std::atomic<bool> on_alternate_screen{false};
int wake_pipe[2] = {-1, -1};
struct sigaction actions_before[std::size(all_signals)];

void wake() noexcept {
  const char byte = 0;
  if (::write(wake_pipe[1], &byte, 1) < 0) return;  // It is full: it wakes as it is.
}

void put_right() noexcept {
  if (!on_alternate_screen.exchange(false)) return;
  if (::write(STDOUT_FILENO, leave_bytes.data(), leave_bytes.size()) < 0) return;  // Nobody is left to see it.
}

extern "C" void handle_watch_signal(int number) {
  const int error_before = errno;
  switch (number) {
    case SIGWINCH: resized = true; break;
    case SIGTSTP: stop_wanted = true; break;
    case SIGALRM:
      // What was about to block when the signal came has not heard of it.
      if (!was_interrupted.exchange(true)) {
        (void)::alarm(ending_seconds);
        break;
      }
      put_right();
      ::_exit(exit_ok);
    default:
      if (ended_by.exchange(number) != 0) {
        put_right();
        ::_exit(exit_ok);
      }
      (void)::alarm(ending_seconds);
      if (ClientBase* const client = cancelled_client.load(); client != nullptr) client->cancel();
  }
  wake();
  errno = error_before;
}

bool is_usable_terminal() noexcept {
  const char* const name = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && name != nullptr && *name != '\0' && std::string_view(name) != "dumb";
}

}  // namespace

LiveScreen::LiveScreen(ClientBase& client, bool lines) noexcept : shown_(!lines && is_usable_terminal()) {
  if (::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) wake_pipe[0] = wake_pipe[1] = -1;
  cancelled_client = &client;
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  for (std::size_t place = 0; place < std::size(all_signals); ++place) {
    const int number = all_signals[place];
    action.sa_handler = number == SIGPIPE ? SIG_IGN : handle_watch_signal;
    (void)::sigaction(number, nullptr, &actions_before[place]);
    const bool needs_screen = number == SIGTSTP || number == SIGWINCH;
    if (actions_before[place].sa_handler == SIG_IGN || (needs_screen && !shown_)) continue;
    (void)::sigaction(number, &action, nullptr);
  }
  enter();
}

LiveScreen::~LiveScreen() {
  leave();
  for (std::size_t place = 0; place < std::size(all_signals); ++place)
    (void)::sigaction(all_signals[place], &actions_before[place], nullptr);
  cancelled_client = nullptr;
  for (int& end : wake_pipe) {
    if (end >= 0) ::close(end);
    end = -1;
  }
}

void LiveScreen::enter() noexcept {
  if (!shown_ || entered_) return;
  entered_ = redraw_ = true;
  on_alternate_screen = true;
  (void)write(enter_bytes);
}

void LiveScreen::leave() noexcept {
  (void)::alarm(0);  // What follows the end has its time.
  entered_ = shown_ = false;
  put_right();
}

WindowSize LiveScreen::size() const noexcept {
  constexpr WindowSize usual;
  // What a hostile or broken terminal may say, and what a frame may take.
  constexpr std::size_t side_max = 1000;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) return usual;
  return {.rows = std::min<std::size_t>(window.ws_row, side_max),
          .columns = std::min<std::size_t>(window.ws_col, side_max)};
}

int LiveScreen::ending_signal() const noexcept { return ended_by; }

bool LiveScreen::take_redraw() noexcept {
  const bool was_resized = resized.exchange(false);
  const bool wanted = redraw_ || was_resized;
  redraw_ = false;
  return wanted;
}

bool LiveScreen::write(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    const bool full = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (count < 0 && !full && errno != EINTR) return false;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (ended_by != 0) break;  // Who reads nothing keeps nobody from the end.
    pollfd entry = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (full) (void)::poll(&entry, 1, -1);
  }
  return true;
}

bool LiveScreen::draw(const std::vector<std::string>& lines) noexcept {
  // Each line is drawn over the one before it: nothing flickers.
  std::string frame = "\x1b[H";
  for (std::size_t index = 0; index < lines.size(); ++index)
    frame += (index == 0 ? "" : "\r\n") + lines[index] + "\x1b[K";
  frame += "\x1b[J";
  return write(frame);
}

void LiveScreen::stop_with_job() noexcept {
  put_right();
  entered_ = false;
  (void)::kill(::getpid(), SIGSTOP);
  enter();
}

bool LiveScreen::sleep_until(Instant then, int socket, short events) noexcept {
  for (;;) {
    if (stop_wanted.exchange(false)) stop_with_job();
    const Duration left = then - ClientBase::now();
    if (ended_by != 0 || redraw_ || resized || left <= Duration::zero()) return false;
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, sleep_max)).count();
    pollfd entries[] = {{.fd = wake_pipe[0], .events = POLLIN, .revents = 0},
                        {.fd = socket, .events = events, .revents = 0}};
    if (::poll(entries, std::size(entries), static_cast<int>(milliseconds)) <= 0) continue;
    char bytes[64];
    while (::read(wake_pipe[0], bytes, sizeof bytes) > 0) {}
    if (entries[1].revents != 0) return true;
  }
}

}  // namespace holdfast::cli

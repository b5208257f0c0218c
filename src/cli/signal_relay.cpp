// SPDX-License-Identifier: MIT
#include "signal_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "chosen_lock.hpp"
#include "exit_codes.hpp"
#include "holdfast/client.hpp"
#include "holdfast/limits.hpp"

namespace holdfast::cli {

namespace {

enum class Phase : int { connecting, waiting, running, ending, over };

// A handler has no other way to its state than through statics.
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<ChosenLock*>::is_always_lock_free);
constinit std::atomic<Phase> phase{Phase::connecting};
constinit std::atomic<ChosenLock*> waiting_lock{nullptr};
constinit std::atomic<ChosenLock*> renewing_lock{nullptr};
constinit std::atomic<pid_t> command_process{0};
constinit std::atomic<int> ending{0};
constinit std::atomic<int> passed_on{0};
constinit std::atomic<bool> continued{false};
constinit std::atomic<int> news_of_command{-1};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
// Calls are cancelled from then on, and the process is ended where they do not end.
constinit std::atomic<std::int64_t> cancel_from{Instant::max().nanoseconds()};
constinit std::atomic<int> wake_read{-1};
constinit std::atomic<int> wake_write{-1};

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// Without a command these do by default what they should.
constexpr int running_signals[] = {SIGWINCH, SIGTSTP};
// What the terminal stops a group by that is not in its foreground. We print, and take the terminal back, while the command has
// it; and others of our group may be stopped, which we only want to know.
constexpr int terminal_signals[] = {SIGTTOU, SIGTTIN};

// What was there before us, by number.
constexpr int signal_count = NSIG;
struct sigaction inherited[signal_count];

bool inherited_ignored(int signal) noexcept { return inherited[signal].sa_handler == SIG_IGN; }

// The command has ended or stopped, and that is still to be noticed.
bool command_changed() noexcept {
  pollfd entry = {.fd = news_of_command.load(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool asks_for_the_end(int signal) noexcept {
  for (const int it : ending_signals)
    if (it == signal) return true;
  return false;
}

// ---- The limit of calls ------------------------------------------------------------------------------------------

timer_t limit_timer;
constinit bool limit_timer_made = false;
// No other use of it is known. SIGALRM may have been asked for by who executed us, to end us.
int limit_signal() noexcept { return SIGRTMIN; }

// Once more and more: a call that has a cancel() behind it may still have another wait in front of it.
constexpr Duration cancel_interval = std::chrono::milliseconds(20);
// A call that does not end by then does not hear of it: a resolver, which asks for as long as it likes.
constexpr Duration obedience_max = std::chrono::milliseconds(700);

timespec timespec_of(Duration duration) noexcept {
  return {.tv_sec = static_cast<time_t>(duration.count() / 1'000'000'000),
          .tv_nsec = static_cast<long>(duration.count() % 1'000'000'000)};
}

// Async-signal-safe. The clock of the timer need not be ours: the handler looks at ours.
void arm_timer(Instant at) noexcept {
  if (!limit_timer_made) return;
  itimerspec times{};
  const Instant now = Client::now();
  if (at != Instant::max()) {
    times.it_value = timespec_of(now < at ? at - now : Duration(1));
    times.it_interval = timespec_of(cancel_interval);
  }
  ::timer_settime(limit_timer, 0, &times, nullptr);
}

void cancel_from_now_on() noexcept {
  const Instant now = Client::now();
  if (now.nanoseconds() < cancel_from.load()) cancel_from.store(now.nanoseconds());
  arm_timer(now);
}

// At its end. Before the command is started nothing of the process needs tidying up.
void handle_limit() noexcept {
  const Instant from = Instant::from_nanoseconds(cancel_from.load());
  const Instant now = Client::now();
  if (now < from) return;
  if (ChosenLock* const lock = waiting_lock.load()) lock->cancel();
  const Phase present = phase.load();
  if (now - from < obedience_max || (present != Phase::connecting && present != Phase::waiting)) return;
  constexpr char text[] =
      "holdfast: a call did not end in time, and is ended with the process; what a server may have "
      "granted meanwhile ends by its lease\n";
  if (::write(STDERR_FILENO, text, sizeof text - 1) < 0) ::_exit(exit_no_server);
  const int signal = ending.load();
  ::_exit(signal != 0 ? exit_signal_base + signal : exit_no_server);
}

// Those that mean nothing else.
bool is_end(int signal) noexcept {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

// Async-signal-safe, all of it.
void handle_signal(int signal) noexcept {
  const int saved = errno;
  if (signal == SIGCHLD) {
    ChosenLock* const lock = renewing_lock.load();
    if (lock != nullptr && command_changed()) lock->cancel();
  } else if (signal == SIGCONT) {
    continued.store(true);
  } else if (signal == limit_signal()) {
    handle_limit();
  } else {
    switch (phase.load()) {
      case Phase::connecting:
        if (asks_for_the_end(signal)) ::_exit(exit_signal_base + signal);
        break;
      case Phase::waiting:
        if (asks_for_the_end(signal)) {
          ending.store(signal);
          waiting_lock.load()->cancel();
          cancel_from_now_on();
        }
        break;
      // The group's number cannot be another's: its leader is not waited for before begin_ending().
      case Phase::running:
        if (command_process.load() <= 0) break;
        ::kill(-command_process.load(), signal);
        if (is_end(signal)) ::kill(-command_process.load(), SIGCONT);
        break;
      case Phase::ending: passed_on.store(signal); break;
      case Phase::over: break;
    }
  }
  // A full pipe is readable, too.
  if (::write(wake_write.load(), "", 1) < 0) errno = saved;
  errno = saved;
}

void install(int signal, void (*handler)(int), const sigset_t& blocked) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_mask = blocked;
  // Without SA_RESTART: a receive that waits must notice a cancel().
  ::sigaction(signal, &action, nullptr);
}

void block_terminal_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : terminal_signals) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

SignalRelay::SignalRelay() noexcept {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  wake_read = ends[0];
  wake_write = ends[1];
  for (int signal = 1; signal < signal_count; ++signal) ::sigaction(signal, nullptr, &inherited[signal]);

  sigemptyset(&handled_);
  for (const int signal : ending_signals) sigaddset(&handled_, signal);
  for (const int signal : running_signals) sigaddset(&handled_, signal);
  sigaddset(&handled_, SIGCHLD);
  sigaddset(&handled_, SIGCONT);

  install(SIGPIPE, SIG_IGN, handled_);
  block_terminal_signals();
  for (const int signal : ending_signals)
    if (!inherited_ignored(signal)) install(signal, handle_signal, handled_);
  install(SIGCHLD, handle_signal, handled_);
  install(SIGCONT, handle_signal, handled_);
  sigaddset(&handled_, limit_signal());
  install(limit_signal(), handle_signal, handled_);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = limit_signal();
  limit_timer_made = ::timer_create(CLOCK_MONOTONIC, &event, &limit_timer) == 0;
  release_signals();
}

SignalRelay::~SignalRelay() {
  if (!opened()) return;
  // From here on signals do what they did before us; the process is about to end.
  for (const int signal : ending_signals) ::sigaction(signal, &inherited[signal], nullptr);
  for (const int signal : running_signals) ::sigaction(signal, &inherited[signal], nullptr);
  ::sigaction(SIGCHLD, &inherited[SIGCHLD], nullptr);
  ::sigaction(SIGCONT, &inherited[SIGCONT], nullptr);
  ::close(wake_read.exchange(-1));
  ::close(wake_write.exchange(-1));
}

bool SignalRelay::opened() const noexcept { return wake_read.load() >= 0; }

void SignalRelay::limit_calls(ChosenLock& lock, Instant until) noexcept {
  waiting_lock = &lock;
  cancel_from = until.nanoseconds();
  arm_timer(until);
}

void SignalRelay::end_limit() noexcept {
  cancel_from = Instant::max().nanoseconds();
  arm_timer(Instant::max());
}

void SignalRelay::begin_waiting() noexcept { phase = Phase::waiting; }

void SignalRelay::hold_signals() noexcept { ::sigprocmask(SIG_BLOCK, &handled_, nullptr); }

void SignalRelay::begin_running(pid_t leader, int news) noexcept {
  news_of_command = news;
  command_process = leader;
  for (const int signal : running_signals)
    if (!inherited_ignored(signal)) install(signal, handle_signal, handled_);
  phase = Phase::running;
}

void SignalRelay::release_signals() noexcept { ::sigprocmask(SIG_UNBLOCK, &handled_, nullptr); }

void SignalRelay::begin_ending() noexcept {
  phase = Phase::ending;
  command_process = 0;
}

void SignalRelay::end() noexcept {
  phase = Phase::over;
  news_of_command = -1;
}

int SignalRelay::ending_signal() const noexcept { return ending.load(); }

bool SignalRelay::take_continued() noexcept { return continued.exchange(false); }

int SignalRelay::take_passed_on() noexcept { return passed_on.exchange(0); }

bool SignalRelay::take_terminal_wish() noexcept {
  sigset_t pending;
  bool wish = false;
  sigpending(&pending);
  for (const int signal : terminal_signals) {
    if (sigismember(&pending, signal) != 1) continue;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    constexpr timespec at_once = {.tv_sec = 0, .tv_nsec = 0};
    wish = ::sigtimedwait(&one, nullptr, &at_once) == signal || wish;
  }
  return wish;
}

void SignalRelay::begin_renewal() noexcept { renewing_lock = waiting_lock.load(); }

void SignalRelay::end_renewal() noexcept { renewing_lock = nullptr; }

void SignalRelay::sleep_until(Instant then) noexcept {
  const Instant now = Client::now();
  Duration left = now < then ? then - now : Duration::zero();
  if (left > sleep_max) left = sleep_max;
  // Rounded up: waking too early would turn the loop once more for nothing.
  const auto milliseconds = static_cast<int>((left.count() + 999'999) / 1'000'000);
  // A descriptor below zero is passed over.
  pollfd entries[] = {{.fd = wake_read.load(), .events = POLLIN, .revents = 0},
                      {.fd = news_of_command.load(), .events = POLLIN, .revents = 0}};
  if (::poll(entries, 2, milliseconds) <= 0) return;
  char drained[64];
  while (::read(entries[0].fd, drained, sizeof drained) > 0) {}
}

bool SignalRelay::stop_ourselves(int signal, bool whole_group) noexcept {
  struct sigaction kept {};
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, &kept);
  (void)take_continued();
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(whole_group ? 0 : ::getpid(), signal);
  block_terminal_signals();
  ::sigaction(signal, &kept, nullptr);
  // What was stopped has met a SIGCONT since.
  return take_continued();
}

void SignalRelay::restore_for_command() const noexcept {
  for (int signal = 1; signal < signal_count; ++signal) {
    struct sigaction action {};
    action.sa_handler = inherited_ignored(signal) && signal != SIGCHLD ? SIG_IGN : SIG_DFL;
    ::sigaction(signal, &action, nullptr);  // Refused for SIGKILL and SIGSTOP, which nobody can change.
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace holdfast::cli

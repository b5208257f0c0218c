// SPDX-License-Identifier: MIT
#include "signal_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "chosen_lock.hpp"
#include "exit_codes.hpp"
#include "holdfast/client.hpp"
#include "holdfast/limits.hpp"

namespace holdfast::cli {

namespace {

enum class Phase : int { connecting, waiting, running, over };

// A handler has no other way to its state than through statics.
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<ChosenLock*>::is_always_lock_free);
constinit std::atomic<Phase> phase{Phase::connecting};
constinit std::atomic<ChosenLock*> waiting_lock{nullptr};
constinit std::atomic<ChosenLock*> renewing_lock{nullptr};
constinit std::atomic<pid_t> command{0};
constinit std::atomic<int> ending{0};
constinit std::atomic<bool> continued{false};
constinit std::atomic<int> wake_read{-1};
constinit std::atomic<int> wake_write{-1};

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// Without a command these do by default what they should.
constexpr int running_signals[] = {SIGWINCH, SIGTSTP};
// SIGTTOU: to print, and to take the terminal back, while the command has it.
constexpr int ignored_signals[] = {SIGPIPE, SIGTTOU};

// What was there before us, by number.
constexpr int signal_count = NSIG;
struct sigaction inherited[signal_count];

bool inherited_ignored(int signal) noexcept { return inherited[signal].sa_handler == SIG_IGN; }

// The command has ended or stopped, and that is still to be noticed.
bool command_changed() noexcept {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(command.load()), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

bool asks_for_the_end(int signal) noexcept {
  for (const int it : ending_signals)
    if (it == signal) return true;
  return false;
}

// Async-signal-safe, all of it.
void handle_signal(int signal) noexcept {
  const int saved = errno;
  if (signal == SIGCHLD) {
    ChosenLock* const lock = renewing_lock.load();
    if (lock != nullptr && command_changed()) lock->cancel();
  } else if (signal == SIGCONT) {
    continued.store(true);
  } else {
    switch (phase.load()) {
      case Phase::connecting:
        if (asks_for_the_end(signal)) ::_exit(exit_signal_base + signal);
        break;
      case Phase::waiting:
        if (asks_for_the_end(signal)) {
          ending.store(signal);
          waiting_lock.load()->cancel();
        }
        break;
      // The group's number cannot be another's: its leader is not waited for before end_running().
      case Phase::running: ::kill(-command.load(), signal); break;
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

  for (const int signal : ignored_signals) install(signal, SIG_IGN, handled_);
  for (const int signal : ending_signals)
    if (!inherited_ignored(signal)) install(signal, handle_signal, handled_);
  install(SIGCHLD, handle_signal, handled_);
  install(SIGCONT, handle_signal, handled_);
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

void SignalRelay::begin_waiting(ChosenLock& lock) noexcept {
  waiting_lock = &lock;
  phase = Phase::waiting;
}

void SignalRelay::hold_signals() noexcept { ::sigprocmask(SIG_BLOCK, &handled_, nullptr); }

void SignalRelay::begin_running(pid_t leader) noexcept {
  command = leader;
  for (const int signal : running_signals)
    if (!inherited_ignored(signal)) install(signal, handle_signal, handled_);
  phase = Phase::running;
}

void SignalRelay::release_signals() noexcept { ::sigprocmask(SIG_UNBLOCK, &handled_, nullptr); }

void SignalRelay::end_running() noexcept {
  phase = Phase::over;
  command = 0;
}

int SignalRelay::ending_signal() const noexcept { return ending.load(); }

bool SignalRelay::take_continued() noexcept { return continued.exchange(false); }

void SignalRelay::begin_renewal() noexcept { renewing_lock = waiting_lock.load(); }

void SignalRelay::end_renewal() noexcept { renewing_lock = nullptr; }

void SignalRelay::sleep_until(Instant then) noexcept {
  const Instant now = Client::now();
  Duration left = now < then ? then - now : Duration::zero();
  if (left > sleep_max) left = sleep_max;
  // Rounded up: waking too early would turn the loop once more for nothing.
  const auto milliseconds = static_cast<int>((left.count() + 999'999) / 1'000'000);
  pollfd entry = {.fd = wake_read.load(), .events = POLLIN, .revents = 0};
  if (::poll(&entry, 1, milliseconds) <= 0) return;
  char drained[64];
  while (::read(entry.fd, drained, sizeof drained) > 0) {}
}

bool SignalRelay::stop_ourselves(int signal, bool whole_group) noexcept {
  struct sigaction kept {};
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, &kept);
  (void)take_continued();
  ::kill(whole_group ? 0 : ::getpid(), signal);
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

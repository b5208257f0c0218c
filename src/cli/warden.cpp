// SPDX-License-Identifier: MIT
#include "warden.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <cerrno>

#include "holdfast/client.hpp"
#include "holdfast/limits.hpp"
#include "process_tree.hpp"

namespace holdfast::cli {

namespace {

// One message; smaller than PIPE_BUF, so it is written and read whole.
struct Order {
  std::int64_t deadline = Instant::max().nanoseconds();
  pid_t group = 0;
  std::int32_t padding = 0;
};

// A copy of a descriptor in the warden would keep open what others wait to see closed: sockets, pipes of a shell.
void close_all_but(int kept) noexcept {
  const auto first = static_cast<unsigned>(kept) + 1;
#if defined(__linux__) && defined(SYS_close_range)
  const bool above = ::syscall(SYS_close_range, first, ~0U, 0U) == 0;
#else
  const bool above = false;
#endif
  rlimit limit{};
  unsigned end = first;
  if (!above && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) end = static_cast<unsigned>(limit.rlim_cur);
  for (unsigned descriptor = 0; descriptor < end; ++descriptor)
    if (descriptor != static_cast<unsigned>(kept)) ::close(static_cast<int>(descriptor));
}

// The group at once, and then whoever carries the mark, until nobody does: what is killed may just have forked.
void strike(pid_t group, const std::string& mark) {
  constexpr int rounds_max = 200;
  constexpr int pause_milliseconds = 5;
  if (group > 0) ::kill(-group, SIGKILL);
  for (int round = 0; round < rounds_max; ++round) {
    bool found = false;
    for (const pid_t pid : bearers_of(mark))
      if (::kill(pid, SIGKILL) == 0) found = true;
    if (!found) return;
    (void)::poll(nullptr, 0, pause_milliseconds);
  }
}

[[noreturn]] void keep_watch(int orders, const std::string& mark) {
  Order order;
  for (;;) {
    const Instant now = Client::now();
    const Instant deadline = Instant::from_nanoseconds(order.deadline);
    Duration left = now < deadline ? deadline - now : Duration::zero();
    if (left > sleep_max) left = sleep_max;  // Timers stand still in suspend.
    // Orders come before deadlines: while we had no processor, one that we slept over may have been moved, and often.
    pollfd entry = {.fd = orders, .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>((left.count() + 999'999) / 1'000'000)) <= 0) {
      if (now < deadline) continue;
      strike(order.group, mark);
      order.deadline = Instant::max().nanoseconds();
      continue;
    }
    Order next;
    const ssize_t count = ::read(orders, &next, sizeof next);
    if (count == sizeof next) order = next;
    if (count == 0) {
      strike(order.group, mark);
      ::_exit(0);
    }
  }
}

}  // namespace

Warden::~Warden() {
  if (orders_ >= 0) ::close(orders_);
}

bool Warden::start(const std::string& mark) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  pid_ = ::fork();
  if (pid_ == 0) {
    // Nothing but SIGKILL and SIGSTOP reaches it: not the keys of the terminal, not what is meant for the command.
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    (void)::setsid();
    close_all_but(ends[0]);
#ifdef __linux__
    (void)::prctl(PR_SET_NAME, "holdfast-warden");
#endif
    keep_watch(ends[0], mark);
  }
  const int error = errno;
  ::close(ends[0]);
  if (pid_ < 0) {
    ::close(ends[1]);
    errno = error;
    return false;
  }
  orders_ = ends[1];
  const int flags = ::fcntl(orders_, F_GETFL);
  (void)::fcntl(orders_, F_SETFL, flags | O_NONBLOCK);
  return true;
}

void Warden::instruct(pid_t group, Instant deadline) noexcept {
  if (orders_ < 0) return;
  const Order order = {.deadline = deadline.nanoseconds(), .group = group, .padding = 0};
  // Without its warden the command still has us.
  if (::write(orders_, &order, sizeof order) < 0 && errno == EPIPE) {
    ::close(orders_);
    orders_ = -1;
  }
}

void Warden::dismiss() noexcept {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  if (orders_ >= 0) ::close(orders_);
  orders_ = -1;
}

}  // namespace holdfast::cli

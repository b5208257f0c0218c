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

#include "child_process.hpp"
#include "exit_codes.hpp"
#include "holdfast/client.hpp"
#include "holdfast/limits.hpp"
#include "process_tree.hpp"

namespace holdfast::cli {

enum class Warden::Order : int { watch, bury, dismiss };

namespace {

// Messages of both directions; smaller than PIPE_BUF, so they are written and read whole.
struct OrderMessage {
  std::int64_t deadline = Instant::max().nanoseconds();
  std::int32_t order = 0;
  std::int32_t padding = 0;
};
enum class Report : std::int32_t { started, not_started, stopped, ended, left, empty };
struct NewsMessage {
  Report report;
  std::int32_t value;  // A process, an errno, a signal, an exit code.
};

// A copy of a descriptor in the warden would keep open what others wait to see closed: sockets, pipes of a shell.
void close_all_from(unsigned first) noexcept {
#if defined(__linux__) && defined(SYS_close_range)
  if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
#endif
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (unsigned descriptor = first; descriptor < limit.rlim_cur; ++descriptor) ::close(static_cast<int>(descriptor));
}

// ---- The second process ------------------------------------------------------------------------------------------

class Guard {
 public:
  Guard(pid_t holdfast, pid_t command, int orders, int news, Instant deadline) noexcept
      : holdfast_(holdfast), command_(command), orders_(orders), news_(news), deadline_(deadline) {
    sigfillset(&awake_);
    sigdelset(&awake_, SIGCHLD);
  }

  [[noreturn]] void keep_watch() {
    for (;;) {
      observe();
      const Instant now = Client::now();
      Duration left = now < deadline_ ? deadline_ - now : Duration::zero();
      if (left > sleep_max) left = sleep_max;  // Timers stand still in suspend.
      // Orders come before deadlines: while we had no processor, one that we slept over may have been moved, and often.
      if (!sleep(left)) {
        if (now < deadline_) continue;
        strike();
        deadline_ = Instant::max();
        continue;
      }
      OrderMessage next;
      const ssize_t count = ::read(orders_, &next, sizeof next);
      if (count == 0) {
        strike();
        ::_exit(0);
      }
      if (count == sizeof next) obey(next);
    }
  }

 private:
  // True if there is an order, or nobody who could give one. A child that ended or stopped ends the sleep, too.
  [[nodiscard]] bool sleep(Duration duration) const noexcept {
    const timespec limit = {.tv_sec = static_cast<time_t>(duration.count() / 1'000'000'000),
                            .tv_nsec = static_cast<long>(duration.count() % 1'000'000'000)};
    pollfd entry = {.fd = orders_, .events = POLLIN, .revents = 0};
    return ::ppoll(&entry, 1, &limit, &awake_) > 0;
  }

  void obey(const OrderMessage& message) {
    // The numbers are Warden::Order's, which is private to it.
    switch (message.order) {
      case 0: deadline_ = Instant::from_nanoseconds(message.deadline); return;
      case 1:
        bury();
        reap_orphans();
        empty_ = has_no_child();
        report(empty_ ? Report::empty : Report::left, 0);
        return;
      default: bury(); ::_exit(0);
    }
  }

  void report(Report what, int value) const noexcept {
    const NewsMessage message = {.report = what, .value = value};
    // A full pipe has so much unread news in it that nobody waits for more.
    if (::write(news_, &message, sizeof message) < 0) return;
    // It may be in the middle of a renewal.
    if (::getppid() == holdfast_) ::kill(holdfast_, SIGCHLD);
  }

  // What became of our children.
  void observe() {
    if (!ended_) observe_command();
    reap_orphans();
    if (buried_ && !empty_ && has_no_child()) {
      empty_ = true;
      report(Report::empty, 0);
    }
  }

  void observe_command() noexcept {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(command_), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      return;
    if (info.si_code == CLD_STOPPED) {
      siginfo_t taken{};
      (void)::waitid(P_PID, static_cast<id_t>(command_), &taken, WSTOPPED | WNOHANG);
      report(Report::stopped, info.si_status);
      return;
    }
    // The zombie stays: it keeps the group's number taken.
    ended_ = true;
    report(Report::ended, info.si_code == CLD_EXITED ? info.si_status : exit_signal_base + info.si_status);
  }

  // Orphans of the command become our children, and zombies when they end. The command's own zombie stays until bury(), and
  // hides the others from waitid(); until then these few are looked for.
  void reap_orphans() {
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      if (info.si_pid == command_ && !buried_) break;
      (void)::waitpid(info.si_pid, nullptr, 0);
    }
    for (const Process& process : descendants_of(::getpid()))
      if (process.zombie && process.parent == ::getpid() && process.pid != command_)
        (void)::waitpid(process.pid, nullptr, WNOHANG);
  }

  void bury() noexcept {
    if (buried_ || !ended_) return;
    buried_ = true;
    (void)::waitpid(command_, nullptr, 0);
  }

  // Then nothing descends from us either: an orphan would be our child.
  [[nodiscard]] static bool has_no_child() noexcept {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
  }

  // The group at once, and then whoever descends from us, until nobody does: what is killed may just have forked. Who is
  // another user's cannot be killed, and is not waited for.
  void strike() {
    constexpr int pause_max_milliseconds = 100;
    int pause = 1;
    for (bool found = true; found || pause < pause_max_milliseconds;) {
      if (!buried_) ::kill(-command_, SIGKILL);
      found = false;
      for (const Process& process : descendants_of(::getpid()))
        if (!process.zombie && ::kill(process.pid, SIGKILL) == 0) found = true;
      observe();
      if (!found && only_the_command()) return;
      (void)::poll(nullptr, 0, pause);
      pause = pause * 2 < pause_max_milliseconds ? pause * 2 : pause_max_milliseconds;
    }
  }

  // Nobody but the command's zombie is left, by the kernel's own word where there is one.
  [[nodiscard]] bool only_the_command() const noexcept { return buried_ ? empty_ : ended_; }

  pid_t holdfast_;
  pid_t command_;
  int orders_;
  int news_;
  Instant deadline_;
  sigset_t awake_{};
  bool ended_ = false;
  bool buried_ = false;
  bool empty_ = false;
};

struct Ends {
  int read = -1;
  int write = -1;
  // An object that is not opened closes nothing.
  [[nodiscard]] bool open(int flags) noexcept {
    int ends[2];
    if (::pipe2(ends, flags | O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close() const noexcept {
    const int error = errno;
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
    errno = error;
  }
};

void wait_no_longer(int /*signal*/) noexcept {}

// ---- The third process -------------------------------------------------------------------------------------------

// Lives until the warden's end of the pipe is closed. Where that is not by dismiss(), whatever carries the mark of the run is
// killed; wardens of runs inside of it end by themselves what they guard.
[[noreturn]] void deputize(const std::string& token, int warden_alive) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  (void)::setsid();
#ifdef __linux__
  (void)::prctl(PR_SET_NAME, deputy_name);
#endif
  constexpr int place = 0;
  if (::dup2(warden_alive, place) < 0) ::_exit(0);
  close_all_from(place + 1);
  char byte = 0;
  while (::read(place, &byte, 1) < 0 && errno == EINTR) {}
  constexpr int looks_max = 3;  // In a row without anybody: who was forked during one is seen by the next.
  constexpr int pause_milliseconds = 10;
  for (int looks = 0; looks < looks_max; ++looks) {
    for (const Process& process : bearers_of(token))
      if (!process.zombie && (process.warden || ::kill(process.pid, SIGKILL) == 0)) looks = 0;
    (void)::poll(nullptr, 0, pause_milliseconds);
  }
  ::_exit(0);
}

// Our ends of pipes, by number.
struct Pipes {
  int orders;
  int news;
  int alive;
};

[[noreturn]] void live(const std::vector<std::string>& words, const SignalRelay& relay, Terminal* terminal,
                       Instant deadline, pid_t holdfast, const Pipes& pipes, int error_pipe) {
  // Nothing but SIGKILL and SIGSTOP reaches it: not the keys of the terminal, not what is meant for the command. In a group
  // of its own, so that it survives a signal to the job; in our session, since the group of the command would be an orphaned
  // one otherwise, which no terminal can stop and continue.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  (void)::setpgid(0, 0);
  struct sigaction action {};
  action.sa_handler = wait_no_longer;
  ::sigaction(SIGCHLD, &action, nullptr);
#ifdef __linux__
  (void)::prctl(PR_SET_NAME, warden_name);
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
  if (::getppid() != holdfast) ::_exit(0);
  const pid_t command = start_child(words, relay, terminal, error_pipe);
  const NewsMessage started = {.report = command > 0 ? Report::started : Report::not_started,
                               .value = command > 0 ? command : errno};
  if (::write(pipes.news, &started, sizeof started) < 0 || command <= 0) ::_exit(0);
  // In the place of the standard descriptors, which nobody reads or writes here.
  constexpr int orders_place = 0;
  constexpr int news_place = 1;
  constexpr int alive_place = 2;
  if (::dup2(pipes.orders, orders_place) < 0 || ::dup2(pipes.news, news_place) < 0 ||
      ::dup2(pipes.alive, alive_place) < 0)
    ::_exit(0);
  close_all_from(alive_place + 1);
  Guard(holdfast, command, orders_place, news_place, deadline).keep_watch();
}

}  // namespace

// ---- Our side ----------------------------------------------------------------------------------------------------

Warden::~Warden() {
  for (const int descriptor : {orders_, news_, exec_error_pipe_})
    if (descriptor >= 0) ::close(descriptor);
}

bool Warden::start(const std::vector<std::string>& words, const SignalRelay& relay, Terminal& terminal,
                   const std::string& token, Instant deadline) {
  Ends orders;
  Ends news;
  Ends errors;
  Ends alive;
  const bool opened = orders.open(0) && news.open(0) && errors.open(O_NONBLOCK) && alive.open(0);
  Terminal* const given = terminal.given_at_start() ? &terminal : nullptr;
  const pid_t holdfast = ::getpid();
  if (opened) deputy_ = ::fork();
  if (opened && deputy_ == 0) {
    ::close(alive.write);
    deputize(token, alive.read);
  }
  if (deputy_ > 0) pid_ = ::fork();
  if (deputy_ > 0 && pid_ == 0)
    live(words, relay, given, deadline, holdfast, {.orders = orders.read, .news = news.write, .alive = alive.write},
         errors.write);
  const int error = errno;
  Ends{.read = orders.read, .write = news.write}.close();
  Ends{.read = -1, .write = errors.write}.close();
  alive.close();
  orders_ = orders.write;
  news_ = news.read;
  exec_error_pipe_ = errors.read;
  if (pid_ < 0) {
    end_deputy();
    errno = error;
    return false;
  }
  for (const int descriptor : {orders_, news_})
    (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  NewsMessage first{.report = Report::started, .value = 0};  // It may have been killed before it could tell.
  for (ssize_t count = -1; count < 0;) {
    constexpr int look_milliseconds = 20;  // Signals are held: nobody tells us that it was stopped.
    pollfd entry = {.fd = news_, .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, look_milliseconds) > 0) count = ::read(news_, &first, sizeof first);
    keep_awake();
  }
  if (first.report != Report::started) {
    (void)::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    end_deputy();
    errno = first.value;
    return false;
  }
  command_ = first.value;
  if (given != nullptr) (void)terminal.give_to(command_);
  return true;
}

News Warden::poll_news() noexcept {
  if (gone_) return News::none;
  NewsMessage message{};
  ssize_t count = 0;
  do count = ::read(news_, &message, sizeof message);
  while (count < 0 && errno == EINTR);
  if (count == sizeof message) {
    switch (message.report) {
      case Report::started:
      case Report::not_started: return News::none;
      case Report::stopped: stop_signal_ = message.value; return News::stopped;
      case Report::ended:
        ended_ = true;
        exit_code_ = message.value;
        return News::ended;
      case Report::left: return News::left;
      case Report::empty: empty_ = true; return News::empty;
    }
  }
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return News::none;
  gone_ = true;
  if (!ended_) exit_code_ = exit_signal_base + SIGKILL;
  return News::gone;
}

void Warden::keep_awake() const noexcept {
  if (pid_ <= 0) return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid_)
    ::kill(pid_, SIGCONT);
}

void Warden::send(Order order, Instant deadline) noexcept {
  if (orders_ < 0) return;
  const OrderMessage message = {
      .deadline = deadline.nanoseconds(), .order = static_cast<std::int32_t>(order), .padding = 0};
  // Its end is told by poll_news().
  if (::write(orders_, &message, sizeof message) < 0) return;
}

void Warden::instruct(Instant deadline) noexcept { send(Order::watch, deadline); }

void Warden::bury() noexcept { send(Order::bury, Instant::max()); }

void Warden::end_deputy() noexcept {
  if (deputy_ <= 0) return;
  ::kill(deputy_, SIGKILL);
  (void)::waitpid(deputy_, nullptr, 0);
  deputy_ = -1;
}

void Warden::dismiss() noexcept {
  if (pid_ <= 0) return;
  end_deputy();  // First: it would take the warden's end for its death.
  send(Order::dismiss, Instant::max());
  // Its end of the pipe closes with it. A stopped one hears nothing, and one that hangs has nothing left to guard.
  constexpr int patience_milliseconds = 500;
  for (int tries = 0; tries < 2; ++tries) {
    pollfd entry = {.fd = news_, .events = 0, .revents = 0};
    if (::poll(&entry, 1, patience_milliseconds) == 1) break;
    keep_awake();
  }
  ::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int Warden::exec_error() noexcept {
  int error = 0;
  if (::read(exec_error_pipe_, &error, sizeof error) != sizeof error) return 0;
  return error;
}

}  // namespace holdfast::cli

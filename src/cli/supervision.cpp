// SPDX-License-Identifier: MIT
#include "supervision.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "holdfast/limits.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

// After a renewal that failed: about as often as the lock itself would have it.
Duration retry_delay_of(Duration lease) noexcept {
  return std::clamp(lease / 30, Duration(retry_delay_min), Duration(sleep_max));
}

}  // namespace

Duration margin_of(Duration lease) noexcept {
  constexpr Duration margin_min = std::chrono::milliseconds(1);
  constexpr Duration margin_max = std::chrono::milliseconds(500);
  return std::clamp(lease / 10, margin_min, margin_max);
}

Supervision::Supervision(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, Terminal& terminal,
                         ChildProcess& command, Warden& warden) noexcept
    : lock_(lock),
      options_(options),
      relay_(relay),
      terminal_(terminal),
      command_(command),
      warden_(warden),
      name_(escaped(options.name)),
      margin_(margin_of(options.lease)),
      valid_until_(lock.valid_until()) {}

void Supervision::run() {
  instruct_warden();
  for (;;) {
    judge_hold(Client::now());
    observe_command();
    reap_orphans();
    if (relay_.take_continued()) go_on();
    // Only now: all of these take their time, and a stop may have taken hours.
    const Instant now = Client::now();
    if (command_.ended()) {
      if (!anything_left()) return;
      if (stage_ == Stage::running) {
        if (options_.verbose) say("the command has ended; ending what it left behind");
        end_command(now);
      }
    }
    if (stage_ == Stage::ending && now >= kill_at()) kill_all();
    if (stage_ == Stage::killing) kill_again();

    const Instant renewal = std::max(lock_.renewal_due(), renew_not_before_);
    if (held_ && now >= renewal) {
      renew(now, next_deadline(now));
      continue;
    }
    if (held_) lock_.tend();
    const Instant wake = held_ ? std::min(renewal, lock_.valid_until()) : Instant::max();
    relay_.sleep_until(std::min(wake, next_deadline(now)));
  }
}

// ---- The lock ----------------------------------------------------------------------------------------------------

void Supervision::judge_hold(Instant now) {
  if (!held_) return;
  const Instant valid_until = lock_.valid_until();
  if (lock_.held(now)) {
    valid_until_ = valid_until;
    if (stage_ != Stage::running || now < term_at()) return;
    if (!renewal_failed_ && now < kill_at()) {
      // It was not even tried: we were stopped or suspended. One attempt takes little of the time that is left. Later
      // than that the warden may have acted.
      renew(now, now + (kill_at() - now) / 4);
      return;
    }
    lost_ = true;
    say("the lock " + name_ + " could not be renewed in time; ending the command" +
        (last_failure_.empty() ? "" : ": " + last_failure_));
    end_command(now);
    return;
  }
  held_ = false;
  lost_ = true;
  if (now >= valid_until_) {
    // Somebody else may have the lock already. There is no time left to ask nicely.
    say("the lock " + name_ + " has run out: no renewal came in time; killing the command");
    kill_at_ = now;
    kill_all();
  } else {
    const bool one = options_.servers.size() == 1;
    say("the lock " + name_ + " was lost: " + (one ? "the server does" : "a majority of the nodes does") +
        " not have it any more; ending the command. " + remedy(Status::lock_lost));
    end_command(now);
  }
}

// When something must happen on time, whatever a renewal does.
Instant Supervision::next_deadline(Instant now) const noexcept {
  switch (stage_) {
    case Stage::running: return term_at();
    case Stage::ending: return kill_at();
    case Stage::killing: return now + rescan_delay_;
  }
  return now;
}

void Supervision::renew(Instant now, Instant limit) {
  const Duration timeout = std::min(limit - now, options_.request_timeout());
  if (timeout < timeout_min) {
    renewal_failed_ = true;
    renew_not_before_ = limit + Duration(1);
    return;
  }
  relay_.begin_renewal();
  const Status status = lock_.renew(timeout);
  relay_.end_renewal();
  renew_not_before_ = Instant();
  if (status == Status::ok) {
    valid_until_ = lock_.valid_until();
    renewal_failed_ = false;
    last_failure_.clear();
    instruct_warden();
    if (options_.verbose) say("renewed; valid for " + seconds_text(lock_.remaining()) + " seconds");
    return;
  }
  // Cancelled because the command ended or stopped. What is still to be renewed is renewed soon after.
  if (status == Status::cancelled || status == Status::lock_lost || status == Status::not_held) return;
  renewal_failed_ = true;
  renew_not_before_ = Client::now() + retry_delay_of(options_.lease);
  std::string failure = lock_.failure_text(status);
  // The same once more is no news.
  if (options_.verbose && failure != last_failure_)
    say("not renewed; valid for " + seconds_text(lock_.remaining()) + " seconds more: " + failure);
  last_failure_ = std::move(failure);
}

Instant Supervision::term_at() const noexcept { return lock_.valid_until() - margin_ - options_.grace; }

Instant Supervision::kill_at() const noexcept {
  // A lock that is still held may also run out first.
  return held_ ? std::min(kill_at_, lock_.valid_until() - margin_) : kill_at_;
}

void Supervision::instruct_warden() noexcept {
  // Half of the margin later than we: it acts where we fail.
  warden_.instruct(command_.group(), held_ ? lock_.valid_until() - margin_ / 2 : kill_at_ + margin_);
}

// ---- The command -------------------------------------------------------------------------------------------------

void Supervision::observe_command() {
  for (;;) {
    switch (command_.poll_change()) {
      case CommandChange::none: return;
      case CommandChange::stopped:
        // Who is to end must be able to.
        if (stage_ != Stage::running)
          ::kill(-command_.group(), SIGCONT);
        else
          handle_stop(command_.stop_signal());
        break;
      case CommandChange::ended:
        if (options_.verbose) say("the command has ended with " + std::to_string(command_.exit_code()));
        break;
    }
  }
}

// Orphans of the command become our children, and zombies when they end.
void Supervision::reap_orphans() {
  while (!command_.ended()) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (info.si_pid == command_.group()) return;  // It ended just now: the next turn sees it.
    if (info.si_pid == warden_.pid())
      warden_.dismiss();
    else
      (void)::waitpid(info.si_pid, nullptr, 0);
  }
}

void Supervision::handle_stop(int signal) {
  const pid_t group = command_.group();
  // Somebody has stopped it, and it alone: the lock is kept.
  if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;
  // It wants a terminal that is ours to give.
  if (signal != SIGTSTP && terminal_.ours() && terminal_.give_to(group)) {
    ::kill(-group, SIGCONT);
    return;
  }
  // Stopped by its keys, as part of a job: the rest of the job stops, too, so that the shell gets its terminal back.
  const bool whole_job = terminal_.given() || terminal_.ours();
  terminal_.take_back_from(group);
  // Nobody could continue us, so the kernel did not let us stop, nor can anybody give the command a terminal. It gets
  // what the kernel has for a stopped group in that place: a hang-up.
  if (!relay_.stop_ourselves(signal, whole_job) && signal != SIGTSTP) ::kill(-group, SIGHUP);

  // A shell's fg or bg continues us here, perhaps much later.
  judge_hold(Client::now());
  if (held_ && stage_ == Stage::running) renew(Client::now(), term_at());
  judge_hold(Client::now());
  go_on();
}

void Supervision::go_on() {
  if (stage_ == Stage::killing) return;
  if (terminal_.given_at_start()) (void)terminal_.give_to(command_.group());
  ::kill(-command_.group(), SIGCONT);
}

// ---- The end -----------------------------------------------------------------------------------------------------

void Supervision::end_command(Instant now) {
  if (stage_ == Stage::killing) return;
  kill_at_ = std::min(kill_at_, now + options_.grace);
  if (stage_ == Stage::running) {
    stage_ = Stage::ending;
    signal_all(SIGTERM);
    signal_all(SIGCONT);  // What is stopped hears it only then.
  }
  instruct_warden();
}

void Supervision::kill_all() {
  if (stage_ == Stage::killing) return;
  if (options_.verbose) say("killing what is left");
  stage_ = Stage::killing;
  if (::kill(-command_.group(), SIGKILL) != 0 && errno == EPERM)
    say("the command is another user's and cannot be killed; waiting for its end");
  signal_all(SIGKILL);
}

// What was killed may have forked between our look and the signal; and some things in the kernel take their time.
void Supervision::kill_again() {
  rescan_delay_ = std::min(rescan_delay_ * 2, Duration(sleep_max));
  signal_all(SIGKILL);
}

// To the group, and to those who left it.
void Supervision::signal_all(int signal) {
  const pid_t group = command_.group();
  ::kill(-group, signal);
  for (const Process& process : descendants_of(::getpid(), warden_.pid()))
    if (!process.zombie && process.group != group) ::kill(process.pid, signal);
}

bool Supervision::anything_left() {
  bool left = false;
  for (const Process& process : descendants_of(::getpid(), warden_.pid())) {
    if (process.pid == command_.group()) continue;
    if (process.zombie) {
      if (process.parent == ::getpid()) (void)::waitpid(process.pid, nullptr, 0);
      continue;
    }
    if (given_up(process.pid)) continue;
    if (::kill(process.pid, 0) != 0 && errno == EPERM) {
      given_up_.push_back(process.pid);
      say("process " + std::to_string(process.pid) + " is another user's and cannot be ended; it runs on");
      continue;
    }
    left = true;
  }
  return left;
}

bool Supervision::given_up(pid_t pid) const noexcept {
  return std::find(given_up_.begin(), given_up_.end(), pid) != given_up_.end();
}

}  // namespace holdfast::cli

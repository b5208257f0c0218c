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
                         Warden& warden, std::string token) noexcept
    : lock_(lock),
      options_(options),
      relay_(relay),
      terminal_(terminal),
      warden_(warden),
      token_(std::move(token)),
      name_(escaped(options.name)),
      margin_(margin_of(options.lease)),
      valid_until_(lock.valid_until()) {}

void Supervision::run() {
  instruct_warden();
  for (;;) {
    judge_hold(Client::now());
    warden_.keep_awake();
    observe_command();
    reap_strangers();
    if (relay_.take_continued()) go_on();
    if (relay_.take_terminal_wish()) yield_terminal();
    // Only now: all of these take their time, and a stop may have taken hours.
    const Instant now = Client::now();
    nudge_again(now);
    if (command_over()) {
      if (!anything_left()) return;
      if (const int signal = relay_.take_passed_on(); signal != 0) signal_all(signal);
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
    relay_.sleep_until(std::min(std::min(wake, nudge_at_), next_deadline(now)));
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
  warden_.instruct(held_ ? lock_.valid_until() - margin_ / 2 : kill_at_ + margin_);
}

// ---- The command -------------------------------------------------------------------------------------------------

void Supervision::observe_command() {
  for (;;) {
    switch (warden_.poll_news()) {
      case News::none: return;
      case News::stopped:
        // Who is to end must be able to.
        if (stage_ != Stage::running)
          (void)signal_group(SIGCONT);
        else
          handle_stop(warden_.stop_signal());
        break;
      case News::ended:
        if (options_.verbose) say("the command has ended with " + std::to_string(warden_.exit_code()));
        bury_command();
        break;
      case News::left:
        told_of_rest_ = true;
        if (stage_ != Stage::running) break;
        if (options_.verbose) say("the command has ended; ending what it left behind");
        end_command(Client::now());
        break;
      case News::empty: told_of_rest_ = true; return;
      case News::gone: lose_warden(); return;
    }
  }
}

// From here on its group has no number that is safe to use.
void Supervision::bury_command() {
  relay_.begin_ending();
  terminal_.take_back_from(group());
  buried_ = true;
  warden_.bury();
}

// The command has died with it, or is about to. What it started may run on, unguarded.
void Supervision::lose_warden() {
  relay_.begin_ending();
  terminal_.take_back_from(warden_.command());
  if (warden_.empty()) return;
  say("the process that guards the command, " + std::string(warden_name) + ", was killed" +
      (warden_.ended() ? "" : ", and the command with it") + "; killing what is left");
  kill_at_ = Client::now();
  kill_all();
}

// Not of the command, but children that we had before, or whose orphans come to us as the first process of a container: they
// run on, and are no zombies afterwards.
void Supervision::reap_strangers() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (info.si_pid == warden_.pid()) return;  // That it is gone is told by its news.
    warden_.note_end_of(info.si_pid);
    (void)::waitpid(info.si_pid, nullptr, 0);
  }
}

void Supervision::handle_stop(int signal) {
  // Somebody has stopped it, and it alone: the lock is kept.
  if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;
  // It wants a terminal that is ours to give.
  if (signal != SIGTSTP && terminal_.ours() && terminal_.give_to(group())) {
    nudge(group());
    return;
  }
  nudge_at_ = Instant::max();
  // Stopped by its keys, as part of a job: the rest of the job stops, too, so that the shell gets its terminal back.
  const bool whole_job = terminal_.given() || terminal_.ours();
  terminal_.take_back_from(group());
  // Nobody could continue us, so the kernel did not let us stop, nor can anybody give the command a terminal. It gets
  // what the kernel has for a stopped group in that place: a hang-up.
  if (!relay_.stop_ourselves(signal, whole_job) && signal != SIGTSTP) (void)signal_group(SIGHUP);

  // A shell's fg or bg continues us here, perhaps much later.
  judge_hold(Client::now());
  if (held_ && stage_ == Stage::running) renew(Client::now(), term_at());
  judge_hold(Client::now());
  go_on();
}

void Supervision::go_on() {
  if (stage_ == Stage::killing || group() == 0) return;
  // After fg it is ours again; after bg it is not.
  if (terminal_.wanted() && terminal_.ours()) (void)terminal_.give_to(group());
  (void)signal_group(SIGCONT);
}

// ---- The terminal ------------------------------------------------------------------------------------------------

// Somebody else of our group has been stopped since it is not in the foreground.
void Supervision::yield_terminal() {
  if (group() == 0) return;
  if (terminal_.given()) {
    terminal_.yield_from(group());
    nudge(0);
    return;
  }
  // A shell has put the job into the background and part of it has stopped: so does the rest.
  (void)signal_group(SIGTSTP);
}

// Who got the terminal goes on; 0 is our own group. Once is not enough: one that catches the signal of the terminal, as ssh
// does, stops itself by the same signal a moment later.
void Supervision::nudge(pid_t group) noexcept {
  nudged_ = group;
  nudges_ = 0;
  nudge_at_ = Instant();
  nudge_again(Client::now());
}

void Supervision::nudge_again(Instant now) noexcept {
  constexpr Duration delays[] = {std::chrono::milliseconds(20), std::chrono::milliseconds(100),
                                 std::chrono::milliseconds(500)};
  if (now < nudge_at_) return;
  nudge_at_ = nudges_ < 3 ? now + delays[nudges_] : Instant::max();
  ++nudges_;
  if (nudged_ == 0) {
    ::kill(0, SIGCONT);
    (void)relay_.take_continued();  // That was our own.
  } else {
    (void)signal_group(SIGCONT);
  }
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
  if (!signal_group(SIGKILL) && errno == EPERM)
    say("the command is another user's and cannot be killed; waiting for its end");
  signal_all(SIGKILL);
}

// What was killed may have forked between our look and the signal; and some things in the kernel take their time.
void Supervision::kill_again() {
  rescan_delay_ = std::min(rescan_delay_ * 2, Duration(sleep_max));
  signal_all(SIGKILL);
}

// Without its warden the command's tree has fallen apart. Other wardens, of runs inside of this one, end by themselves what they
// guard, as soon as their holdfast is killed.
std::vector<Process> Supervision::processes() const {
  return warden_.gone() ? bearers_of(token_) : descendants_of(warden_.pid());
}

// False, with errno, where there is no group or it cannot be signalled.
bool Supervision::signal_group(int signal) const noexcept {
  errno = ESRCH;
  return group() > 0 && ::kill(-group(), signal) == 0;  // -0 would be our own.
}

// To the group, and to those who left it.
void Supervision::signal_all(int signal) {
  const pid_t whole = group();
  (void)signal_group(signal);
  for (const Process& process : processes()) {
    const bool spared = warden_.gone() && process.warden;
    if (!process.zombie && !spared && (whole == 0 || process.group != whole)) ::kill(process.pid, signal);
  }
}

// REQUIRES: the command has ended.
bool Supervision::anything_left() {
  if (warden_.empty()) return false;
  bool left = false;
  bool seen = false;
  for (const Process& process : processes()) {
    if (process.zombie) continue;
    seen = true;
    if (given_up(process.pid)) continue;
    if (::kill(process.pid, 0) != 0 && errno == EPERM) {
      given_up_.push_back(process.pid);
      say("process " + std::to_string(process.pid) + " is another user's and cannot be ended; it runs on");
      continue;
    }
    left = true;
  }
  if (left || seen) {
    empty_looks_ = 0;
    return left;
  }
  // A look may miss who is just being orphaned, so it is no proof while the warden says otherwise. But something may also be
  // hidden from us for good.
  const int empty_looks_max = warden_.gone() ? 2 : 8;
  return ++empty_looks_ < empty_looks_max;
}

bool Supervision::given_up(pid_t pid) const noexcept {
  return std::find(given_up_.begin(), given_up_.end(), pid) != given_up_.end();
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
#include "waiting.hpp"

#include <algorithm>
#include <cstdlib>

#include "exit_codes.hpp"
#include "failure_text.hpp"
#include "holdfast/limits.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

// How long one call waits for the lock before its reason is looked at. A waiter that asks anew so often costs the server two
// requests a second.
constexpr Duration reason_interval = std::chrono::seconds(2);
// After a call that came back at once.
constexpr Duration pause_between_calls = std::chrono::milliseconds(200);

constexpr char holder_is_around_us[] = "the run that this one is inside of holds it";

}  // namespace

Waiting::Waiting(ChosenLock& lock, const AcquisitionOptions& options, SignalRelay& relay, const RunList& outer)
    : lock_(lock),
      options_(options),
      relay_(relay),
      outer_(outer),
      name_(escaped(options.name)),
      deadline_(Client::now() + options.wait),
      limit_(deadline_ + options.request_timeout()) {
  if (options.wait == no_wait) limit_ = limit_ + connect_timeout_default;
}

Status Waiting::run() {
  relay_.limit_calls(lock_, limit_);
  Status status = connect();
  relay_.begin_waiting();
  if (options_.verbose && options_.wait != no_wait) say("waiting for " + name_);
  if (status == Status::ok || goes_on_after(status)) {
    if (status != Status::ok) tell(status);
    status = wait_connected();
  }
  relay_.hold_signals();
  relay_.end_limit();
  return status;
}

Status Waiting::connect() {
  const Status status = lock_.connect();
  connected_ = status == Status::ok;
  // It was the limit that ended it.
  return lock_.verdict(status == Status::cancelled ? Status::timed_out : status);
}

// A server that was never reached may be a typing error, so it is waited for only where the wait has an end. What a server that
// is there says of itself is waited for in any case.
bool Waiting::goes_on_after(Status status) const noexcept {
  if (options_.wait == no_wait || !heals(status)) return false;
  return options_.wait != wait_forever || !is_absence(status);
}

Status Waiting::wait_connected() {
  Status reason = connected_ ? Status::timed_out : Status::not_connected;
  for (bool first = connected_;; first = false) {
    const Instant begin = Client::now();
    const Status status = attempt(first);
    if (status == Status::ok) return status;
    relay_.release_signals();
    // The end of the wait comes before the limit, so that who is cancelled there has no reply.
    if (status != Status::cancelled || Client::now() >= limit_)
      reason = lock_.verdict(status == Status::cancelled ? Status::timed_out : status);
    if (!heals(reason)) return reason;
    const Instant now = Client::now();
    const bool last = options_.wait == no_wait || now >= deadline_ || now >= limit_;
    if (reason == Status::lock_busy && (last || lock_.reason_of(reason) != told_))
      if (const Status found = look_at_holder(); found != Status::lock_busy) return found;
    if (last) return reason;
    tell(reason);
    if (now - begin < pause_between_calls) relay_.sleep_until(std::min(begin + pause_between_calls, deadline_));
    if (relay_.ending_signal() != 0) return Status::cancelled;
  }
}

// One call, with signals held back from its return on.
Status Waiting::attempt(bool first) {
  for (;; relay_.release_signals()) {
    const Duration left = std::max(deadline_ - Client::now(), no_wait);
    Status status = first ? lock_.try_acquire() : lock_.acquire(std::min(left, reason_interval));
    relay_.hold_signals();
    connected_ = connected_ || (status != Status::cancelled && !is_absence(status));
    // We may have been stopped in the middle.
    if (status != Status::ok || relay_.ending_signal() != 0 || lock_.remaining() > options_.lease / 2) return status;
    status = lock_.renew(options_.request_timeout());
    if (status == Status::ok) return status;
    // A hold that ran out before it was of use was none: even without waiting the lock is asked for again.
    if (options_.wait == no_wait && status != Status::lock_lost) return status;
    (void)lock_.release();
  }
}

// lock_busy, or what makes waiting vain.
Status Waiting::look_at_holder() {
  holder_.reset();
  LockInfo found;
  if (lock_.inspect(found) != Status::ok) return Status::lock_busy;  // Not every user may.
  holder_ = found;
  const bool others_too = found.form == LockForm::semaphore && found.owners > 1;  // One of them may let go first.
  around_ = others_too ? nullptr : outer_.find_token(std::string(found.owner.view().string_view()));
  if (found.form == LockForm::other) return Status::wrong_type;
  return around_ != nullptr && options_.wait != no_wait ? Status::already_held : Status::lock_busy;
}

std::string Waiting::holder_text() const {
  if (around_ != nullptr) return holder_is_around_us;
  if (!holder_ || holder_->owner.empty()) return "somebody else has it";
  std::string text = "it is held by " + escaped(holder_->owner.view());
  if (holder_->owners > 1) text += " and " + std::to_string(holder_->owners - 1) + " more";
  if (holder_->remaining == Duration::max()) return text + ", without an expiry";
  return text + ", for " + seconds_text(holder_->remaining) + " seconds unless it is renewed";
}

void Waiting::tell(Status status) {
  std::string reason = lock_.reason_of(status);
  if (reason == told_) return;
  told_ = std::move(reason);
  if (options_.quiet) return;
  say("waiting for " + name_ + ": " + (status == Status::lock_busy ? holder_text() : lock_.failure_text(status)));
}

int Waiting::tell_failure(Status status) const {
  if (status == Status::lock_busy) {
    if (!options_.quiet) say("did not get the lock " + name_ + ": " + holder_text());
    return options_.not_acquired;
  }
  if (status == Status::already_held) return tell_own_lock(options_);
  const bool one = options_.servers.size() == 1;
  const std::string what = connected_ ? "did not get the lock " + name_
                           : one      ? "no connection to " + address_text(options_.servers.front())
                                      : "no quorum";
  say(what + ": " + lock_.failure_text(status));
  return lock_.exit_code_of(status, connected_ ? options_.not_acquired : exit_no_server);
}

bool is_own_lock(const AcquisitionOptions& options, const RunList& outer) {
  bool listed = false;
  for (const OuterRun& run : outer.runs()) {
    if (run.name != options.name) continue;
    listed = true;
    for (const ClientConfig& server : options.servers)
      if (std::find(run.servers.begin(), run.servers.end(), database_text(server)) != run.servers.end()) return true;
  }
  // A run that is not on the list cannot say where its lock is.
  const char* const name = std::getenv("HOLDFAST_NAME");
  return !listed && name != nullptr && options.name == name;
}

int tell_own_lock(const AcquisitionOptions& options) {
  say("did not wait for the lock " + escaped(options.name) + ": " + holder_is_around_us +
      ", and would wait for its own end; leave out the inner holdfast run, or give it another name");
  return exit_usage;
}

}  // namespace holdfast::cli

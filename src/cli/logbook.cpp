// SPDX-License-Identifier: MIT
#include "logbook.hpp"

#include <algorithm>
#include <utility>

#include "holdfast/limits.hpp"

namespace holdfast::cli {

namespace {

// A renewal moves the end by more than the drift between the two clocks may.
Duration drift_margin_of(Duration remaining) noexcept { return remaining / drift_divisor + drift_base; }

// Holders renew at a third of the lease: with less than a third left, at least one renewal is overdue.
constexpr int overdue_divisor = 3;

double rate_of(const std::deque<Instant>& recent, Instant start, Instant now) noexcept {
  const auto count = std::count_if(recent.begin(), recent.end(), [&](Instant at) { return now - at <= rate_window; });
  const Duration over = std::clamp<Duration>(now - start, std::chrono::seconds(1), rate_window);
  return static_cast<double>(count) / std::chrono::duration<double>(over).count();
}

void note(std::deque<Instant>& recent, Instant at, std::size_t kept) {
  recent.push_back(at);
  while (recent.size() > kept || at - recent.front() > rate_window) recent.pop_front();
}

const Hold* find(const std::vector<Hold>& holds, const std::string& holder) noexcept {
  const auto found = std::find_if(holds.begin(), holds.end(), [&](const Hold& hold) { return hold.holder == holder; });
  return found == holds.end() ? nullptr : &*found;
}

Hold hold_of(const LockSight::Holder& holder, Instant asked, Instant answered) {
  Hold hold = {.holder = holder.id,
               .since = answered,
               .remaining = holder.remaining,
               .lease = holder.remaining,
               .count = holder.count};
  hold.ends_from = asked + holder.remaining;
  hold.ends_until = answered + holder.remaining;
  return hold;
}

}  // namespace

const char* to_string(ChangeKind kind) noexcept {
  switch (kind) {
    case ChangeKind::found: return "found";
    case ChangeKind::acquired: return "acquired";
    case ChangeKind::handed_over: return "handed-over";
    case ChangeKind::released: return "released";
    case ChangeKind::ran_out: return "ran-out";
    case ChangeKind::ended: return "ended";
    case ChangeKind::stolen: return "stolen";
    case ChangeKind::cut_short: return "cut-short";
    case ChangeKind::waiting: return "waiting";
    case ChangeKind::no_expiry: return "no-expiry";
    case ChangeKind::no_lock: return "no-lock";
    case ChangeKind::free: return "free";
    case ChangeKind::silent: return "silent";
    case ChangeKind::answers: return "answers";
  }
  return "invalid";
}

double Logbook::hand_offs_per_second(const LockEntry& entry, Instant now) const noexcept {
  return rate_of(entry.recent, start_, now);
}
double Logbook::hand_offs_per_second(Instant now) const noexcept { return rate_of(recent_, start_, now); }

std::vector<std::string> Logbook::names_after(const std::string& name, std::size_t count) const {
  std::vector<std::string> names;
  count = std::min(count, locks_.size());
  for (auto at = locks_.upper_bound(name); names.size() < count; ++at) {
    if (at == locks_.end()) at = locks_.begin();
    names.push_back(at->first);
  }
  return names;
}

bool Logbook::poll_change(Change& change) {
  if (changes_.empty()) return false;
  change = std::move(changes_.front());
  changes_.pop_front();
  return true;
}

void Logbook::tell(Change change) {
  if (changes_.size() >= changes_max) {
    ++changes_dropped_;
    return;
  }
  changes_.push_back(std::move(change));
}

// ---- The server ------------------------------------------------------------------------------------------------------

void Logbook::handle_silence(const std::string& why, Instant now) {
  if (silence_.empty()) {
    silent_since_ = now;
    tell({.kind = ChangeKind::silent, .at = now, .text = why});
  }
  silence_ = why.empty() ? "no answer" : why;
}

void Logbook::handle_answer(Instant now) {
  if (silence_.empty()) return;
  tell({.kind = ChangeKind::answers, .at = now, .held = now - silent_since_});
  silence_.clear();
}

void Logbook::handle_sweep() noexcept {
  not_followed_ = std::exchange(not_followed_now_, 0);
  swept_ = true;
}

void Logbook::handle_timeout(Instant now) {
  for (auto at = locks_.begin(); at != locks_.end();) {
    const LockEntry& entry = at->second;
    const bool over = !entry.held() && entry.waiting == 0 && entry.form != LockForm::other;
    // Of a free lock this is when it was seen to be free first: see handle_sight().
    at = over && now - entry.seen > free_kept ? locks_.erase(at) : std::next(at);
  }
}

// ---- One look --------------------------------------------------------------------------------------------------------

// What became of a hold that is not there any more.
ChangeKind Logbook::end_of(const LockEntry& entry, const Hold& hold, Instant answered) noexcept {
  if (entry.has_expired != entry.was_deleted) return entry.has_expired ? ChangeKind::ran_out : ChangeKind::released;
  if (answered < hold.ends_from - drift_margin_of(hold.remaining)) return ChangeKind::released;
  return hold.remaining < hold.lease / overdue_divisor ? ChangeKind::ran_out : ChangeKind::ended;
}

void Logbook::end(const std::string& name, LockEntry& entry, const Hold& hold, Instant answered) {
  tell({.kind = end_of(entry, hold, answered),
        .at = answered,
        .lock = name,
        .form = entry.form,
        .holder = hold.holder,
        .held = answered - hold.since,
        .renewals = hold.renewals,
        .waiting = entry.waiting});
}

void Logbook::judge_holds(const LockSight& sight, LockEntry& entry, bool first, Instant asked, Instant answered) {
  const auto change_of = [&](ChangeKind kind, const Hold& hold) {
    return Change{.kind = kind,
                  .at = answered,
                  .lock = sight.name,
                  .form = sight.form,
                  .holder = hold.holder,
                  .remaining = hold.remaining,
                  .waiting = sight.waiting};
  };
  std::vector<Hold> holds;
  std::vector<std::size_t> came;
  bool renewed = false;
  // A reader that comes lifts the TTL of all.
  const bool joined = sight.form == LockForm::read &&
                      std::any_of(sight.holders.begin(), sight.holders.end(), [&](const LockSight::Holder& holder) {
                        return find(entry.holds, holder.id) == nullptr;
                      });
  for (const LockSight::Holder& holder : sight.holders) {
    Hold hold = hold_of(holder, asked, answered);
    const Hold* const known = find(entry.holds, holder.id);
    if (known == nullptr) {
      came.push_back(holds.size());
    } else {
      const Duration margin = drift_margin_of(std::max(known->remaining, known->lease));
      const bool later = hold.remaining != Duration::max() && hold.ends_from > known->ends_until + margin;
      const bool earlier = hold.ends_until < known->ends_from - margin;
      hold.since = known->since;
      hold.renewals = known->renewals + (later && !joined ? 1 : 0);
      hold.lease = std::max(known->lease, hold.remaining);
      if (known->lease == Duration::max()) hold.lease = hold.remaining;
      if (earlier && known->remaining != Duration::max()) tell(change_of(ChangeKind::cut_short, hold));
      if (later && sight.form == LockForm::semaphore) ++entry.renewals;
      renewed = renewed || (later && !joined);
    }
    holds.push_back(std::move(hold));
  }
  if (renewed && sight.form != LockForm::semaphore) ++entry.renewals;

  std::vector<const Hold*> gone;
  for (const Hold& hold : entry.holds)
    if (find(holds, hold.holder) == nullptr) gone.push_back(&hold);

  const bool one = is_exclusive(sight.form) && sight.owners == 1;
  const bool all_told = sight.complete() && entry.holds.size() == entry.owners;
  if (one && gone.size() == 1 && came.size() == 1) {
    const Hold& hold = holds[came.front()];
    entry.renewals = 0;
    ++entry.hand_offs;
    note(entry.recent, answered, hand_offs_kept);
    note(recent_, answered, changes_max);
    if (end_of(entry, *gone.front(), answered) == ChangeKind::ran_out) {
      end(sight.name, entry, *gone.front(), answered);
      tell(change_of(ChangeKind::acquired, hold));
    } else {
      // Nobody acquires a lock by writing over it.
      const bool over = entry.was_set && !entry.was_deleted && !entry.has_expired;
      Change change = change_of(over ? ChangeKind::stolen : ChangeKind::handed_over, hold);
      change.before = gone.front()->holder;
      change.over = over;
      change.held = answered - gone.front()->since;
      change.renewals = gone.front()->renewals;
      tell(std::move(change));
    }
  } else if (all_told || !entry.held()) {
    if (!entry.held()) entry.renewals = 0;
    const bool two = is_exclusive(sight.form) && sight.owners > 1;
    for (const Hold* const hold : gone) end(sight.name, entry, *hold, answered);
    for (const std::size_t place : came) {
      Change change = change_of(first && !swept_ ? ChangeKind::found : ChangeKind::acquired, holds[place]);
      const auto other = std::find_if(holds.begin(), holds.end(), [&](const Hold& hold) {
        return hold.holder != holds[place].holder && (first || find(entry.holds, hold.holder) != nullptr);
      });
      if (two && other != holds.end()) {
        change.kind = ChangeKind::stolen;
        change.before = other->holder;
      }
      tell(std::move(change));
    }
  }
  entry.holds = std::move(holds);
}

void Logbook::handle_event(const std::string& name, const std::string& event) {
  const auto at = locks_.find(name);
  if (at == locks_.end()) return;
  LockEntry& entry = at->second;
  if (event == "set") entry.was_set = true;
  if (event == "del" || event == "evicted" || event == "rename_from") entry.was_deleted = true;
  if (event == "expired") entry.has_expired = true;
}

void Logbook::handle_sight(const LockSight& sight, Instant asked, Instant answered) {
  auto at = locks_.find(sight.name);
  const bool first = at == locks_.end();
  const bool idle = sight.form == LockForm::free;
  if (first && locks_.size() >= locks_max) {
    ++not_followed_now_;
    return;
  }
  if (first) at = locks_.emplace(sight.name, LockEntry()).first;
  LockEntry& entry = at->second;

  if (idle || sight.form == LockForm::other) {
    for (const Hold& hold : entry.holds) end(sight.name, entry, hold, answered);
    if (first && idle) tell({.kind = ChangeKind::free, .at = answered, .lock = sight.name});
    if (sight.form == LockForm::other && entry.form != LockForm::other)
      tell({.kind = ChangeKind::no_lock, .at = answered, .lock = sight.name, .form = LockForm::other});
    if (entry.held() || first || sight.form == LockForm::other) entry.seen = answered;
    if (!idle || entry.form == LockForm::other) entry.form = sight.form;
    entry.holds.clear();
  } else {
    judge_holds(sight, entry, first, asked, answered);
    entry.form = sight.form;
    entry.seen = answered;
  }
  entry.was_set = entry.was_deleted = entry.has_expired = false;
  entry.owners = sight.owners;
  entry.permits = sight.permits;
  const bool endless = std::any_of(entry.holds.begin(), entry.holds.end(),
                                   [](const Hold& hold) { return hold.remaining == Duration::max(); });
  if (endless && !entry.no_expiry)
    tell({.kind = ChangeKind::no_expiry,
          .at = answered,
          .lock = sight.name,
          .form = entry.form,
          .holder = entry.holds.front().holder,
          .remaining = Duration::max()});
  entry.no_expiry = endless;
  entry.two_holders = is_exclusive(sight.form) && sight.owners > 1;
  if (sight.waiting != entry.waiting || sight.waiters != entry.waiters) {
    entry.waiting = sight.waiting;
    entry.waiters = sight.waiters;
    tell({.kind = ChangeKind::waiting,
          .at = answered,
          .lock = sight.name,
          .form = entry.form,
          .holder = entry.holds.empty() ? std::string() : entry.holds.front().holder,
          .waiting = sight.waiting,
          .waiters = sight.waiters});
  }
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
//
// RestartGuard is the delayed restart of Redlock, done by the client: a node that was restarted may have forgotten a lock
// that somebody holds, so it has no vote until every lease that it may have granted before has run out. The same goes for a
// server that has taken another's place, and for a replica that was promoted.
//
// It keeps what was learnt, and when; how long that keeps a node from voting follows from what was promised (LeasePromise).
// It does no I/O and reads no clock.
#pragma once

#include <cstdint>
#include <cstring>

#include "holdfast/core/session.hpp"
#include "holdfast/instant.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// How long anything may be held that a quorum's nodes have granted. A smaller max_lease does not shorten what was promised
// under a larger one before: until all of that is over, both count.
class LeasePromise {
 public:
  [[nodiscard]] constexpr Duration max_lease() const noexcept { return max_lease_; }
  // From `now` on nothing is granted for longer.
  constexpr void change(Duration max_lease, Instant now) noexcept {
    if (max_lease < max_lease_) {
      former_ = former_ > max_lease_ && now < former_until_ ? former_ : max_lease_;
      former_until_ = later(former_until_, now + longest(max_lease_));
    }
    max_lease_ = max_lease;
  }

  // What a lease lasts at most: our clock may be the faster one, and its holder's the slower one.
  [[nodiscard]] static constexpr Duration longest(Duration lease) noexcept {
    return lease + lease / drift_divisor + drift_base;
  }
  // By then all is over that was granted before `at`.
  [[nodiscard]] constexpr Instant over_by(Instant at) const noexcept {
    return later(at + longest(max_lease_), earlier(at + longest(former_), former_until_));
  }
  // The same of a server that said at `at` how long it had been up: granted before its start. The epoch where that is so
  // already. Uptimes are differences of whole seconds, so it may be a second younger.
  [[nodiscard]] constexpr Instant over_by(Instant at, std::uint64_t uptime_seconds) const noexcept {
    return later(waited_out(at, uptime_seconds, max_lease_),
                 earlier(waited_out(at, uptime_seconds, former_), former_until_));
  }

 private:
  [[nodiscard]] static constexpr Instant waited_out(Instant at, std::uint64_t uptime_seconds, Duration lease) noexcept {
    const Duration needed = longest(lease) + std::chrono::seconds(1);
    const auto needed_seconds = static_cast<std::uint64_t>(needed.count() / 1'000'000'000) + 1;
    if (uptime_seconds > needed_seconds) return {};
    return at + (needed - std::chrono::seconds(static_cast<std::int64_t>(uptime_seconds)));
  }

  Duration max_lease_ = Duration::zero();  // Nothing was granted yet.
  Duration former_ = Duration::zero();     // The longest of those before that still count,
  Instant former_until_;                   // until then.
};

class RestartGuard {
 public:
  enum class Verdict : std::uint8_t {
    votes,
    young,     // It has not been up for max_lease, its drift and a second.
    replaced,  // Another server answers where one did before, less than max_lease ago: a restart, or a fail-over.
    successor,  // Its data are of another life, and it was first seen so less than max_lease ago: it may have been promoted.
    replica,    // What it grants is its master's to forget: no vote before it is a master.
    anonymous,  // It has not told its run id: no vote before it does.
  };

  // What a handshake has found out, at `now`, which is not earlier than the server's answer.
  void note(const ServerIdentity& identity, Instant now) noexcept {
    anonymous_ = !identity.run_id_known;
    if (anonymous_) return;
    const bool same = is(identity);
    const ServerStanding standing = identity.standing();
    const bool successor = standing == ServerStanding::successor;
    // A promotion gives a new replication id, and other things do, too: whether it was one is told by the standing.
    const bool risen = successor && (!successor_ || replication_id_ != identity.replication_id);
    const bool as_before = same && !replica_ && !risen;
    if (!as_before && (known() || stranger_ || successor)) {
      waits_ = true;
      waits_since_ = now;
    }
    replaced_ = same ? replaced_ && as_before : known() || stranger_;
    replica_ = standing == ServerStanding::replica;
    successor_ = successor;
    replication_id_ = identity.replication_id;
    std::memcpy(run_id_, identity.run_id, run_id_size);
    noted_at_ = now;
    uptime_seconds_ = identity.uptime_seconds;
  }
  // It has said that it is a replica, by what it refused.
  void note_replica() noexcept { replica_ = true; }
  // Somebody may have answered here before whom nobody remembers: who comes is taken for his successor.
  void expect_stranger() noexcept { stranger_ = true; }

  // From when on it votes in grants and repairs; Instant::max(): never, as far as is known.
  [[nodiscard]] Instant votes_from(const LeasePromise& promise) const noexcept {
    if (anonymous() || replica_) return Instant::max();
    return later(promise.over_by(noted_at_, uptime_seconds_), waits_until(promise));
  }
  [[nodiscard]] Verdict verdict(const LeasePromise& promise, Instant now) const noexcept {
    if (anonymous()) return Verdict::anonymous;
    if (replica_) return Verdict::replica;
    if (now < waits_until(promise)) return replaced_ ? Verdict::replaced : Verdict::successor;
    const Instant grown_up_at = promise.over_by(noted_at_, uptime_seconds_);
    return now <= grown_up_at && grown_up_at != Instant() ? Verdict::young : Verdict::votes;
  }
  // It has not told who it is.
  [[nodiscard]] bool anonymous() const noexcept { return anonymous_ || !known(); }
  // It, or one before it, has.
  [[nodiscard]] bool known() const noexcept { return run_id_[0] != '\0'; }
  [[nodiscard]] bool stranger() const noexcept { return stranger_; }
  [[nodiscard]] bool replica() const noexcept { return replica_; }
  // This one was the last to tell who it is.
  [[nodiscard]] bool is(const ServerIdentity& identity) const noexcept {
    return known() && identity.run_id_known && std::memcmp(run_id_, identity.run_id, run_id_size) == 0;
  }
  // A number of its run id; 0 where it has not told it. Two servers have the same one by an accident of 1 in 2^32.
  [[nodiscard]] std::uint32_t server() const noexcept {
    if (anonymous()) return 0;
    std::uint32_t hash = 2166136261;  // FNV-1a
    for (const char digit : run_id_) hash = (hash ^ static_cast<unsigned char>(digit)) * 16777619;
    return hash != 0 ? hash : 1;
  }

 private:
  [[nodiscard]] Instant waits_until(const LeasePromise& promise) const noexcept {
    return waits_ ? promise.over_by(waits_since_) : Instant();
  }

  char run_id_[run_id_size] = {};  // The last one that was read.
  std::uint64_t replication_id_ = 0;
  std::uint64_t uptime_seconds_ = 0;
  Instant noted_at_;     // When it told its uptime.
  Instant waits_since_;  // When it was first seen in another's place, or as one that was promoted.
  bool waits_ = false;
  bool replaced_ = false;
  bool successor_ = false;
  bool replica_ = false;
  bool anonymous_ = false;
  bool stranger_ = false;
};

// True if both connections lead to one server, or one server is a replica of the other: a quorum of one machine is none.
[[nodiscard]] inline bool same_machine(const ServerIdentity& left, const ServerIdentity& right) noexcept {
  if (left.run_id_known && right.run_id_known && std::memcmp(left.run_id, right.run_id, run_id_size) == 0) return true;
  return left.replication_id != 0 && left.replication_id == right.replication_id;
}

}  // namespace holdfast

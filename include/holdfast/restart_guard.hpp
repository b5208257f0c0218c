// SPDX-License-Identifier: MIT
//
// RestartGuard is the delayed restart of Redlock, done by the client: a node that was restarted may have forgotten a lock
// that somebody holds, so it has no vote until every lease that it may have granted before has run out.
//
// It does no I/O and reads no clock.
#pragma once

#include <cstdint>
#include <cstring>

#include "holdfast/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/session.hpp"

namespace holdfast {

class RestartGuard {
 public:
  enum class Verdict : std::uint8_t {
    votes,
    young,      // It has not been up for max_lease, its drift and a second.
    replaced,   // Another server answers where one did before, less than max_lease ago: a restart, or a fail-over.
    anonymous,  // It has not told its run id: no vote before it does.
  };

  // What a handshake has found out, at `now`, which is not earlier than the server's answer.
  void note(const ServerIdentity& identity, Duration max_lease, Instant now) noexcept {
    if (!identity.run_id_known) {
      anonymous_ = true;
      return;
    }
    anonymous_ = false;
    const bool known = run_id_[0] != '\0';
    const bool same = known && std::memcmp(run_id_, identity.run_id, run_id_size) == 0;
    std::memcpy(run_id_, identity.run_id, run_id_size);
    // Our clock may be the faster one, and the forgotten hold's the slower one.
    const Duration longest = max_lease + max_lease / drift_divisor + drift_base;
    const Duration needed = longest + std::chrono::seconds(1);  // Uptimes are differences of whole seconds.
    const auto needed_seconds = static_cast<std::uint64_t>(needed.count() / 1'000'000'000) + 1;
    grown_up_at_ = identity.uptime_seconds > needed_seconds
                       ? Instant()
                       : now + (needed - std::chrono::seconds(static_cast<std::int64_t>(identity.uptime_seconds)));
    if (!same) replaced_until_ = known ? now + longest : Instant();
  }

  // From when on it votes in grants and repairs; Instant::max(): never, as far as is known.
  [[nodiscard]] Instant votes_from() const noexcept {
    if (anonymous()) return Instant::max();
    return later(grown_up_at_, replaced_until_);
  }
  [[nodiscard]] Verdict verdict(Instant now) const noexcept {
    if (anonymous()) return Verdict::anonymous;
    if (now < replaced_until_) return Verdict::replaced;
    return now <= grown_up_at_ && grown_up_at_ != Instant() ? Verdict::young : Verdict::votes;
  }
  // It has not told who it is.
  [[nodiscard]] bool anonymous() const noexcept { return anonymous_ || run_id_[0] == '\0'; }
  void forget() noexcept { *this = RestartGuard(); }

 private:
  char run_id_[run_id_size] = {};  // The last one that was read.
  bool anonymous_ = false;
  Instant grown_up_at_;
  Instant replaced_until_;
};

// True if both connections lead to one server, or one server is a replica of the other: a quorum of one machine is none.
[[nodiscard]] inline bool same_machine(const ServerIdentity& left, const ServerIdentity& right) noexcept {
  if (left.run_id_known && right.run_id_known && std::memcmp(left.run_id, right.run_id, run_id_size) == 0) return true;
  return left.replication_id != 0 && left.replication_id == right.replication_id;
}

}  // namespace holdfast

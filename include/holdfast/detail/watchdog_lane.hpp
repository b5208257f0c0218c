// SPDX-License-Identifier: MIT
//
// WatchdogLane is what a Watchdog has for each server: a connection, and the renewals of the holds that are there. The thread serves
// one lane after the other, and no step of a lane waits: none holds up another.
//
// Not thread-safe: the watchdog's lock guards it, but what the thread looks at as it falls asleep: the descriptors, and what is to
// be transmitted. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/renewal_schedule.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/resolver.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

class WatchdogBranches;

class WatchdogLane {
 public:
  // The storage must outlive the lane.
  WatchdogLane(const RenewalSchedule::Host& host, const RenewalSchedule::Storage& storage) noexcept;
  WatchdogLane(const WatchdogLane&) = delete;
  WatchdogLane& operator=(const WatchdogLane&) = delete;

  // A. Questions.
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] const Connection& connection() const noexcept { return connection_; }
  [[nodiscard]] RenewalSchedule& schedule() noexcept { return schedule_; }
  // The one behind it in the list that the thread serves; nullptr: it is the last.
  [[nodiscard]] WatchdogLane* next() const noexcept { return next_; }
  [[nodiscard]] int resolver() const noexcept { return resolver_.descriptor(); }
  // Its connection goes to this server, or has been there last.
  [[nodiscard]] bool is_at(const ServerIdentity& server) const noexcept;
  // When a call was last answered, and not refused.
  [[nodiscard]] Instant answered_at() const noexcept { return answered_at_; }
  // When it has something to do if nothing comes.
  [[nodiscard]] Instant next_timeout() const noexcept;

  // B. Commands.
  // As Connection's. REQUIRES: it is open before the lane is configured.
  void use(RandomSource& random) noexcept { connection_.use(random, &resolver_); }
  // Who is told of holds whose slot is at another server; nullptr: nobody.
  void belong_to(WatchdogBranches* branches) noexcept { branches_ = branches; }
  // In the list that the thread serves.
  void precede(WatchdogLane* lane) noexcept { next_ = lane; }
  // It will go to another.
  void forget_server() noexcept { run_id_[0] = '\0'; }
  // After every configuration of its connection.
  void configured() noexcept;
  // The hold's client speaks to this server. Another one than ours says "not yours" of every hold. True if it is another.
  bool compare(const ServerIdentity& server) noexcept;
  // Ends the connection. What was in flight is the schedule's, and no lock's.
  void stop(Instant now) noexcept;

  // C. The thread's turn, with the time of it: dials, takes what has come, judges what time has done.
  void work(Instant now) noexcept;
  // What has become of a socket that is dialled.
  void finish_dial() noexcept {
    if (connection_.dialling()) connection_.finish_dial();
  }
  // Asks for the renewals that are due. How many calls that makes.
  std::uint32_t send_due() noexcept;

 private:
  void connect() noexcept;
  void take_replies() noexcept;
  void hand_over() noexcept;
  void look_and_transmit() noexcept;
  [[nodiscard]] bool needed() const noexcept;

  // Room for a call of 100 keys of 100 bytes, and for the replies to all calls in flight.
  using Buffers = NodeBuffersOf<SessionBuffersOf<elements_max, reply_size_max / 2, 16 * 1024>, config_texts_size_max,
                                addresses_max>;
  static_assert(reply_size_max / 2 >= renewal_calls_max * (renewal_batch_max * 5 + 6));

  WatchdogLane* next_ = nullptr;
  WatchdogBranches* branches_ = nullptr;
  Instant answered_at_;
  bool reconnect_ = false;         // The client speaks to another server than we do.
  char run_id_[run_id_size] = {};  // Of the server that we are connected to; NUL when unknown.
  RenewalSchedule schedule_;
  Buffers buffers_;
  Resolver resolver_;
  Connection connection_;
};
static_assert(sizeof(WatchdogLane) <= 32 * 1024, "promised: a lane without its places");

}  // namespace holdfast

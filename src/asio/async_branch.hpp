// SPDX-License-Identifier: MIT
//
// AsyncBranch is one server of an AsyncClient: its node, the renewals of the holds that are there, its lane for acks, and which
// locks wait for its connection or for room on it. A client has one, and of a cluster one for each master whose names it has: see
// AsyncCluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "async_acks.hpp"
#include "async_node.hpp"
#include "holdfast/asio/async_client.hpp"
#include "holdfast/core/renewal_schedule.hpp"
#include "holdfast/detail/linked_place.hpp"

namespace holdfast {

class AsyncClientCore;
class AsyncRecord;

class AsyncBranch final : private AsyncNode::Host {
 public:
  AsyncBranch(AsyncClientCore& core, const AsyncLimits& limits, std::uint8_t number);
  ~AsyncBranch() = default;
  AsyncBranch(const AsyncBranch&) = delete;
  AsyncBranch& operator=(const AsyncBranch&) = delete;

  // Among those of its client; the first is 0.
  [[nodiscard]] std::uint8_t number() const noexcept { return number_; }
  [[nodiscard]] AsyncNode& node() noexcept { return node_; }
  [[nodiscard]] const AsyncNode& node() const noexcept { return node_; }
  [[nodiscard]] const RenewalSchedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] std::uint64_t renewal_calls() const noexcept { return renewal_calls_; }

  // Of every configuration. With `acks` it has a lane for them from now on, which nobody takes from it any more: Asio may have
  // handlers of its socket.
  void configure(const ClientConfig& config);
  // Ends its connections, as AsyncNode::close().
  void close();
  void close_acks();
  template <class Function>
  void each_node(Function&& function) {
    function(node_);
    if (acks_ != nullptr) function(acks_->node());
  }

  // Whether replicas have a grant of this server. REQUIRES: configured with `acks`.
  void confirm(AckRequest& request) noexcept { acks_->confirm(request); }
  void stop_confirming(AckRequest& request) noexcept {
    if (acks_ != nullptr) acks_->stop_confirming(request);
  }

  // Places of locks. Who comes first waits longest.
  void await_connection(LinkedPlace<AsyncRecord>& place) noexcept { await_connection_.push_back(place); }
  void await_room(LinkedPlace<AsyncRecord>& place) noexcept { await_room_.push_back(place); }
  [[nodiscard]] bool room_is_awaited() const noexcept { return await_room_.linked(); }
  // Everybody who waits is told what has become of the connection, and decides.
  void tell_waiting(bool of_room);

  // nullptr: the client keeps as many holds as its limits allow.
  [[nodiscard]] RenewalSchedule::Place* keep(const KeptHold& hold);
  // Of one that was kept at another server, which has said that it is here. Two that name each other are asked with a pause.
  [[nodiscard]] RenewalSchedule::Place* keep_on(const KeptHold& hold);
  // What the lock's own requests have made of a hold that is kept.
  void confirm(RenewalSchedule::Place& place, const KeptHold& hold) noexcept;
  void stop_keeping(RenewalSchedule::Place& place) noexcept;
  // A renewal of this hold is on its way, or one that was given up may be.
  [[nodiscard]] bool renews(const RenewalSchedule::Place& place) const noexcept {
    return schedule_.asks_for(place) || node_.session().in_flight_of(&schedule_) > schedule_.calls_in_flight();
  }

  // There is news of its server: what is kept is renewed now.
  void hasten() noexcept;
  // Of a turn: everything but what waits to be sent at its end.
  void work();
  [[nodiscard]] Instant next_timeout() const noexcept {
    const Instant next = earlier(node_.next_timeout(), schedule_.poll_timeout());
    return acks_ == nullptr ? next : earlier(next, acks_->node().next_timeout());
  }
  void judge_time();

  // How many locks are here.
  [[nodiscard]] std::uint32_t locks() const noexcept { return locks_; }
  // Nothing is on its way to its server, or is to go there.
  [[nodiscard]] bool silent() const noexcept {
    return node_.session().in_flight() == 0 && !node_.unsent() && node_.session().compensations_pending() == 0;
  }
  void enter() noexcept { ++locks_; }
  void leave() noexcept { --locks_; }

 private:
  void node_reply(AsyncNode& node, const Reply& reply) override;
  void node_ready(AsyncNode& node) override;
  void node_down(AsyncNode& node) override;

  [[nodiscard]] bool take_renewals(const Reply& reply);
  void serve_room();
  void work_acks();
  void renew_due();
  void take_renewal_events();
  static bool may_renew(void* holder, Instant now) noexcept;
  static void renewed(const KeptHold& hold) noexcept;
  static bool together(const KeptHold& one, const KeptHold& other) noexcept;

  AsyncClientCore& core_;
  AsyncNode node_;
  std::unique_ptr<AsyncAcks> acks_;  // Where grants are to be confirmed.
  std::unique_ptr<RenewalSchedule::Place[]> places_;
  std::unique_ptr<std::uint32_t[]> heap_;
  RenewalSchedule schedule_;
  LinkedPlace<AsyncRecord> await_connection_;
  LinkedPlace<AsyncRecord> await_room_;
  std::uint64_t renewal_calls_ = 0;
  std::uint32_t locks_ = 0;
  std::uint8_t number_;
};

}  // namespace holdfast

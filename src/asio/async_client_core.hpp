// SPDX-License-Identifier: MIT
//
// AsyncClientCore is what lives of an AsyncClient as long as anything of it is in progress: the node, the schedule of
// renewals, and who waits for what.
#pragma once

#include <memory>
#include <optional>

#include "async_lookout.hpp"
#include "async_node.hpp"
#include "holdfast/asio/async_client.hpp"
#include "holdfast/asio/async_record.hpp"
#include "holdfast/core/ack_lane.hpp"
#include "holdfast/core/renewal_schedule.hpp"

namespace holdfast {

class AsyncClientCore : public AsyncLoop, public OperationOwner, private AsyncNode::Host, private Sleeper {
 public:
  AsyncClientCore(executor_type executor, const AsyncLimits& limits);
  ~AsyncClientCore() override;

  [[nodiscard]] AsyncNode& node() noexcept { return node_; }
  [[nodiscard]] const AsyncNode& node() const noexcept { return node_; }
  // Of an executor that is none of this process's.
  [[nodiscard]] bool forked() const noexcept override { return node_.forked(); }
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }
  // Of every call of its locks.
  [[nodiscard]] const TaskSettings& settings() const noexcept { return settings_; }

  void start_connect(const ClientConfig& config, Completion& completion, Status status);
  void start_close(Completion& completion);
  [[nodiscard]] Status read_url(ByteView url, ClientConfig& config);
  void close();
  // Of a client that is used: in a forked child nothing is cancelled, but completed with Status::forked.
  void cancel_all();
  // The client goes away.
  void shut_down();

  // Places of locks.
  void enter(LinkedPlace<AsyncRecord>& place) noexcept { locks_.push_back(place); }
  void await_connection(LinkedPlace<AsyncRecord>& place) noexcept { await_connection_.push_back(place); }
  void await_room(LinkedPlace<AsyncRecord>& place) noexcept { await_room_.push_back(place); }
  // Who comes first waits longest.
  [[nodiscard]] bool room_is_awaited() const noexcept { return await_room_.linked(); }

  // Whether replicas have a grant. Its owner is the record, which is told by proceed().
  void confirm(AckRequest& request) noexcept {
    acks_.enter(request);
    schedule_turn();
  }
  // From the next turn on.
  void watch(std::unique_ptr<AsyncLookout> lookout) {
    if (lookout_ == nullptr) lookout_ = std::move(lookout);
  }
  void stop_confirming(AckRequest& request) noexcept { acks_.leave(request); }

  [[nodiscard]] RenewalSchedule::Place* keep(const KeptHold& hold) {
    node_.bound_pauses(true);
    return schedule_.enter(hold, now());
  }
  // What the lock's own requests have made of a hold that is kept.
  void confirm(RenewalSchedule::Place& place, const KeptHold& hold) noexcept { schedule_.update(place, hold, now()); }
  void stop_keeping(RenewalSchedule::Place& place) noexcept {
    schedule_.leave(place);
    node_.bound_pauses(schedule_.size() != 0);
  }
  [[nodiscard]] const RenewalSchedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] std::uint64_t renewal_calls() const noexcept { return renewal_calls_; }

 private:
  void cancel_operation(Completion& completion) override;
  void wake(Instant now) override;
  void node_reply(AsyncNode& node, const Reply& reply) override;
  void node_ready(AsyncNode& node) override;
  void node_down(AsyncNode& node) override;
  void work() override;
  void await() override {
    node_.receive();
    if (ack_node_ != nullptr) ack_node_->receive();
    if (lookout_ != nullptr) lookout_->receive();
  }
  void set_now(Instant now) noexcept override {
    node_.set_now(now);
    if (ack_node_ != nullptr) ack_node_->set_now(now);
    if (lookout_ != nullptr) lookout_->set_now(now);
  }
  [[nodiscard]] Instant next_timeout() const noexcept override;
  void judge_time() override;
  void leave_connections() override { close_nodes(); }

  [[nodiscard]] Status prepare(const ClientConfig& config, Instant now);
  [[nodiscard]] bool is_for_acks(const AsyncNode& node) const noexcept { return &node == ack_node_.get(); }
  void work_acks();
  void close_nodes();
  void tell_connect(Status status);
  void end_idle();
  void work_close();
  void serve_room();
  void renew_due();
  void take_renewal_events();
  static bool may_renew(void* holder, Instant now) noexcept;
  static void renewed(const KeptHold& hold) noexcept;

  AsyncNode node_;
  std::unique_ptr<AsyncNode> ack_node_;  // Where grants are to be confirmed: made by the first connect that says so.
  AckLane acks_;
  std::unique_ptr<AsyncLookout> lookout_;  // Where it was asked for.
  std::unique_ptr<RenewalSchedule::Place[]> places_;
  std::unique_ptr<std::uint32_t[]> heap_;
  RenewalSchedule schedule_;
  LinkedPlace<AsyncRecord> locks_;
  LinkedPlace<AsyncRecord> await_connection_;
  LinkedPlace<AsyncRecord> await_room_;
  Completion* connect_ = nullptr;
  Completion* close_ = nullptr;
  std::uint64_t renewal_calls_ = 0;
  ConfigProblem problem_;
  TaskSettings settings_;
};

}  // namespace holdfast

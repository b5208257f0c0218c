// SPDX-License-Identifier: MIT
//
// AsyncQuorumCore is what lives of an AsyncQuorum as long as anything of it is in progress: the nodes, who may vote, and who
// waits for what.
#pragma once

#include <deque>

#include "async_node.hpp"
#include "holdfast/asio/async_quorum.hpp"
#include "holdfast/asio/async_quorum_inquiry.hpp"
#include "holdfast/asio/async_quorum_record.hpp"
#include "holdfast/core/voter_roll.hpp"

namespace holdfast {

class AsyncQuorumCore : public AsyncLoop, public OperationOwner, private AsyncNode::Host, private Sleeper {
 public:
  AsyncQuorumCore(executor_type executor, std::size_t nodes, const AsyncQuorumLimits& limits);
  ~AsyncQuorumCore() override;

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] AsyncNode& node(std::size_t index) noexcept { return nodes_[index]; }
  [[nodiscard]] const AsyncNode& node(std::size_t index) const noexcept { return nodes_[index]; }
  [[nodiscard]] VoterRoll& roll() noexcept { return roll_; }
  [[nodiscard]] const VoterRoll& roll() const noexcept { return roll_; }
  // It may be asked for something: it was connected once, and has not gone away.
  [[nodiscard]] bool usable() const noexcept { return configured_ && !stopped(); }
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }
  [[nodiscard]] std::size_t problem_node() const noexcept { return problem_node_; }
  [[nodiscard]] ByteView error_text() noexcept { return roll_.write_text({text_, sizeof text_}, begin()); }
  // Of an executor that is none of this process's.
  [[nodiscard]] bool forked() const noexcept override { return nodes_.front().forked(); }
  // Nodes that are on their way to be ready.
  [[nodiscard]] NodeSet connecting() const noexcept;
  [[nodiscard]] Instant request_deadline() const noexcept { return now() + nodes_.front().config().request_timeout; }
  // When an acquire that waits until then is over.
  [[nodiscard]] Instant end_of_wait(Instant deadline) const noexcept {
    return deadline + nodes_.front().config().request_timeout;
  }
  [[nodiscard]] bool connected() const noexcept { return roll_.connected(); }
  [[nodiscard]] std::size_t compensations_pending() noexcept;
  [[nodiscard]] Duration random_delay(Duration most) noexcept {
    return retry_delay_min + most * nodes_.front().random() / UINT16_MAX;
  }
  // What the nodes said before is no answer to what comes.
  void clear_texts() noexcept;

  void start_connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config,
                     Completion& completion);
  void start_connect(const ByteView* urls, std::size_t count, const QuorumConfig& config, Completion& completion);
  void start_close(Completion& completion);
  void close();
  void cancel_all();
  // The quorum goes away.
  void shut_down();

  // Nodes with room for one more request and its compensation.
  [[nodiscard]] NodeSet roomy();
  // Where there is none, what has arrived is taken in: it may make room.
  void read_arrived();
  // Before the time of a call is judged: what has arrived is taken in, and what no node has answered in time is known.
  void catch_up();
  // Of these nodes, the ones whose room is worth waiting for: they have none, and were not waited for in vain before.
  [[nodiscard]] NodeSet room_awaited(NodeSet nodes, NodeSet with_room) const noexcept {
    return static_cast<NodeSet>(nodes & ~with_room & ~crowded_);
  }
  void note_crowded(NodeSet with_room) noexcept { crowded_ = static_cast<NodeSet>(ready() & ~with_room); }
  [[nodiscard]] NodeSet ready() const noexcept;

  // Places of locks.
  void enter(LinkedPlace<AsyncQuorumRecord>& place) noexcept { locks_.push_back(place); }
  void enter(LinkedPlace<AsyncQuorumInquiry>& place) noexcept { inquiries_.push_back(place); }
  void await_voters(LinkedPlace<AsyncQuorumRecord>& place) noexcept { await_voters_.push_back(place); }
  void await_room(LinkedPlace<AsyncQuorumRecord>& place) noexcept { await_room_.push_back(place); }
  // Who comes first waits longest.
  [[nodiscard]] bool room_is_awaited() const noexcept { return await_room_.linked(); }
  // What some lock has to take back has found no place.
  void note_owing() noexcept { owing_ = true; }
  void stir(LinkedPlace<AsyncQuorumRecord>& place) {
    if (!place.linked()) stirred_.push_back(place);
    schedule_turn();
  }

 private:
  void cancel_operation(Completion& completion) override;
  void wake(Instant now) override;
  void node_reply(AsyncNode& node, const Reply& reply) override;
  void node_ready(AsyncNode& node) override;
  void node_down(AsyncNode& node) override;
  void work() override;
  void await() override;
  void set_now(Instant now) noexcept override;
  [[nodiscard]] Instant next_timeout() const noexcept override;
  void judge_time() override;
  void leave_connections() override;

  [[nodiscard]] std::size_t index_of(const AsyncNode& node) const noexcept;
  template <class Source>
  void start_connect_to(const Source& source, std::size_t count, const QuorumConfig& config, Completion& completion);
  template <class Source>
  [[nodiscard]] Status prepare(const Source& source, std::size_t count, const QuorumConfig& config);
  void tell_connect(Status status);
  void work_connect();
  void work_close();
  void tell_close();
  void serve_voters();
  void serve_room();
  void serve_stirred();
  void serve_owing();
  void serve_listening();
  void serve_inquiries();

  std::deque<AsyncNode> nodes_;
  VoterRoll::Voter voters_[nodes_max];
  VoterRoll roll_{voters_, nodes_max};
  NodeSet crowded_ = 0;
  LinkedPlace<AsyncQuorumRecord> locks_;
  LinkedPlace<AsyncQuorumRecord> await_voters_;
  LinkedPlace<AsyncQuorumRecord> await_room_;
  LinkedPlace<AsyncQuorumRecord> stirred_;
  LinkedPlace<AsyncQuorumInquiry> inquiries_;
  Completion* connect_ = nullptr;
  Completion* close_ = nullptr;
  Instant connect_until_;
  bool enough_ = false;  // A majority is there; the rest is given a moment.
  bool configured_ = false;
  bool voters_changed_ = false;
  bool owing_ = false;
  ConfigProblem problem_;
  std::size_t problem_node_ = 0;
  char text_[320];
};

}  // namespace holdfast

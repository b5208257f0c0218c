// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_quorum.hpp"

#include <algorithm>

#include "async_quorum_core.hpp"
#include "holdfast/url.hpp"

namespace holdfast {

namespace {

// Of Asio's own operations, those in progress and those of before that have been cancelled: of each node two sockets' read,
// write and connect, twice; the timer; the turn.
constexpr std::size_t own_operations_each = 16;
constexpr std::size_t own_operations_loop = 8;
// How long async_connect() waits for the rest once a majority is there.
constexpr Duration connect_grace = std::chrono::milliseconds(250);

}  // namespace

// ---- The quorum --------------------------------------------------------------------------------------------------

AsyncQuorum::AsyncQuorum(executor_type executor, std::size_t nodes, const AsyncQuorumLimits& limits)
    : core_(std::make_shared<AsyncQuorumCore>(std::move(executor), nodes, limits)) {}

AsyncQuorum::~AsyncQuorum() { core_->shut_down(); }

AsyncQuorum::executor_type AsyncQuorum::get_executor() const noexcept { return core_->executor(); }
AsyncLoop& AsyncQuorum::loop() const noexcept { return *core_; }
OperationOwner& AsyncQuorum::owner() const noexcept { return *core_; }
void AsyncQuorum::start_connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config,
                                Completion& completion) {
  core_->start_connect(configs, count, config, completion);
}
void AsyncQuorum::start_connect(const ByteView* urls, std::size_t count, const QuorumConfig& config,
                                Completion& completion) {
  core_->start_connect(urls, count, config, completion);
}
void AsyncQuorum::start_close(Completion& completion) { core_->start_close(completion); }
void AsyncQuorum::close() { core_->close(); }
void AsyncQuorum::cancel() { core_->cancel_all(); }

std::size_t AsyncQuorum::size() const noexcept { return core_->size(); }
std::size_t AsyncQuorum::majority() const noexcept { return majority_of(core_->size()); }
const QuorumConfig& AsyncQuorum::config() const noexcept { return core_->roll().config(); }
bool AsyncQuorum::connected() const noexcept { return core_->roll().connected() && !core_->forked(); }
NodeSet AsyncQuorum::voters() const noexcept { return core_->roll().voters(read_clock()); }
Status AsyncQuorum::node_status(std::size_t index) const noexcept { return core_->roll().status(index, read_clock()); }
std::uint64_t AsyncQuorum::seconds_until_vote(std::size_t index) const noexcept {
  return core_->roll().seconds_until_vote(index, read_clock());
}
ByteView AsyncQuorum::error_text() noexcept { return core_->error_text(); }
ConfigProblem AsyncQuorum::problem() const noexcept { return core_->problem(); }
Stats AsyncQuorum::stats() const noexcept { return stats_of(config().meter); }
std::size_t AsyncQuorum::problem_node() const noexcept { return core_->problem_node(); }
std::size_t AsyncQuorum::compensations_pending() const noexcept { return core_->compensations_pending(); }

// ---- Its core ----------------------------------------------------------------------------------------------------

AsyncQuorumCore::AsyncQuorumCore(executor_type executor, std::size_t nodes, const AsyncQuorumLimits& limits)
    : AsyncLoop(std::move(executor), limits.operations, own_operations_each * nodes + own_operations_loop) {
  HOLDFAST_ASSERT(nodes >= 1 && nodes <= nodes_max);
  const AsyncNode::Limits each = {
      .requests = std::clamp(limits.requests, AsyncNode::Limits::requests_min, AsyncNode::Limits::requests_max),
      .waiters = limits.waiters};
  AsyncLoop& loop = *this;
  AsyncNode::Host& host = *this;
  for (std::size_t index = 0; index < nodes; ++index) {
    roll_.attach(index, nodes_.emplace_back(loop, host, each).node());
    nodes_.back().bound_pauses(true);  // Any of its locks may be kept.
  }
  roll_.begin(nodes, {}, Instant());
}

AsyncQuorumCore::~AsyncQuorumCore() {
  for (AsyncNode& node : nodes_) node.close();
}

std::size_t AsyncQuorumCore::index_of(const AsyncNode& node) const noexcept {
  std::size_t index = 0;
  while (&nodes_[index] != &node) ++index;
  return index;
}

NodeSet AsyncQuorumCore::connecting() const noexcept {
  NodeSet connecting = 0;
  for (std::size_t index = 0; index < size(); ++index)
    if (nodes_[index].connecting()) connecting = static_cast<NodeSet>(connecting | node_bit(index));
  return connecting;
}

NodeSet AsyncQuorumCore::ready() const noexcept {
  NodeSet ready = 0;
  for (std::size_t index = 0; index < size(); ++index)
    if (nodes_[index].ready()) ready = static_cast<NodeSet>(ready | node_bit(index));
  return ready;
}

NodeSet AsyncQuorumCore::roomy() {
  NodeSet with_room = 0;
  for (std::size_t index = 0; index < size(); ++index)
    if (nodes_[index].room(true)) with_room = static_cast<NodeSet>(with_room | node_bit(index));
  crowded_ = static_cast<NodeSet>(crowded_ & ~with_room);
  return with_room;
}

void AsyncQuorumCore::read_arrived() {
  for (AsyncNode& node : nodes_)
    if (!node.room(true)) node.read_arrived();
}

void AsyncQuorumCore::catch_up() {
  for (AsyncNode& node : nodes_) {
    node.read_arrived();
    node.judge_requests();
  }
}

void AsyncQuorumCore::clear_texts() noexcept {
  for (AsyncNode& node : nodes_)
    if (node.ready()) node.session().clear_failure_text();
}

// ---- Connecting --------------------------------------------------------------------------------------------------

void AsyncQuorumCore::start_connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config,
                                    Completion& completion) {
  const auto source = [this, configs](std::size_t index, ClientConfig& node) {
    node = configs[index];
    problem_ = validate_voter(node);
    return problem_.found() ? Status::invalid_argument : Status::ok;
  };
  start_connect_to(source, count, config, completion);
}

void AsyncQuorumCore::start_connect(const ByteView* urls, std::size_t count, const QuorumConfig& config,
                                    Completion& completion) {
  const auto source = [this, urls](std::size_t index, ClientConfig& node) {
    node = ClientConfig();
    const char* reason = nullptr;
    if (const Status status = parse_url(urls[index], node, &reason); status != Status::ok) {
      problem_ = {"url", reason};
      return status;
    }
    problem_ = validate_voter(node);
    return problem_.found() ? Status::invalid_argument : Status::ok;
  };
  start_connect_to(source, count, config, completion);
}

template <class Source>
void AsyncQuorumCore::start_connect_to(const Source& source, std::size_t count, const QuorumConfig& config,
                                       Completion& completion) {
  const Instant now = begin();
  if (connect_ != nullptr || close_ != nullptr) return complete(completion, Status::already_held);
  if (stopped()) return complete(completion, Status::cancelled);
  if (now == Instant::max()) return complete(completion, Status::system_error);  // The clock cannot be read.
  if (const Status status = prepare(source, count, config); status != Status::ok) return complete(completion, status);
  Duration longest = timeout_min;
  for (const AsyncNode& node : nodes_)
    if (node.config().connect_timeout > longest) longest = node.config().connect_timeout;
  connect_ = &completion;
  enough_ = false;
  connect_until_ = now + longest;
  sleep(*this, connect_until_);
  schedule_turn();
}

// Everything is looked at before anything is changed.
template <class Source>
Status AsyncQuorumCore::prepare(const Source& source, std::size_t count, const QuorumConfig& config) {
  ClientConfig configuration;
  problem_ = {};
  problem_node_ = 0;
  if (count != size()) {
    problem_ = {"nodes", "a quorum has the number of nodes that it was made for"};
    return Status::invalid_argument;
  }
  for (; problem_node_ < count; ++problem_node_)
    if (const Status status = source(problem_node_, configuration); status != Status::ok) return status;
  problem_node_ = 0;
  if (!config.valid()) {
    problem_ = {"max_lease", "it must be from lease_min to lease_max"};
    return Status::invalid_argument;
  }
  close();
  roll_.begin(count, config, now());
  configured_ = true;
  for (; problem_node_ < count; ++problem_node_) {
    AsyncNode& node = nodes_[problem_node_];
    (void)source(problem_node_, configuration);
    if (configuration.meter == nullptr) configuration.meter = config.meter;
    roll_.enter(problem_node_, configuration);
    if (const Status status = node.prepare(configuration, now()); status != Status::ok) {
      problem_ = node.problem();
      close();
      return status;
    }
  }
  problem_node_ = 0;
  return Status::ok;
}

// Who is slower than a majority is not waited for much longer.
void AsyncQuorumCore::work_connect() {
  if (connect_ == nullptr) return;
  const Status verdict = roll_.verdict(now());
  if (!enough_ && verdict == Status::ok) {
    enough_ = true;
    connect_until_ = earlier(connect_until_, now() + connect_grace);
    sleep(*this, connect_until_);
  }
  if (connecting() == 0 || now() >= connect_until_) tell_connect(verdict);
}

void AsyncQuorumCore::tell_connect(Status status) {
  if (connect_ == nullptr) return;
  Completion& completion = *connect_;
  connect_ = nullptr;
  sleep(*this, Instant::max());
  complete(completion, status);
}

// ---- Closing -----------------------------------------------------------------------------------------------------

void AsyncQuorumCore::start_close(Completion& completion) {
  (void)begin();
  if (close_ != nullptr) return complete(completion, Status::already_held);
  cancel_all();
  close_ = &completion;
  sleep(*this, request_deadline());
  schedule_turn();
}

// What was released is known to be free, or nothing can be known any more.
void AsyncQuorumCore::work_close() {
  if (close_ == nullptr) return;
  for (AsyncNode& node : nodes_) {
    const Session& session = node.session();
    const bool open =
        session.compensations_pending() != 0 || (node.ready() && (session.in_flight() != 0 || node.unsent()));
    if (open && (node.ready() || node.connecting())) return;
  }
  if (owing_ && connected()) return;
  tell_close();
}

void AsyncQuorumCore::tell_close() {
  std::size_t free = 0;
  for (const AsyncNode& node : nodes_)
    if (node.session().compensations_pending() == 0) ++free;
  Completion& completion = *close_;
  close_ = nullptr;
  sleep(*this, Instant::max());
  close();
  complete(completion, free >= majority_of(size()) ? Status::ok : Status::timed_out);
}

// The time of what is in progress is over. Of async_connect() the next work() sees to it.
void AsyncQuorumCore::wake(Instant) {
  if (close_ != nullptr) tell_close();
}

void AsyncQuorumCore::cancel_operation(Completion& completion) {
  if (&completion == connect_) return tell_connect(Status::cancelled);
  if (&completion != close_) return;
  close_ = nullptr;
  sleep(*this, Instant::max());
  complete(completion, Status::cancelled);
}

void AsyncQuorumCore::cancel_all() {
  if (forked()) return leave_to_parent();
  (void)begin();
  note_cancel();
  tell_connect(Status::cancelled);
  if (close_ != nullptr) cancel_operation(*close_);
  for (AsyncQuorumRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->cancel();
  while (AsyncQuorumInquiry* const asker = inquiries_.first()) asker->cancel();
}

void AsyncQuorumCore::leave_connections() {
  for (std::size_t index = 0; index < size(); ++index) {
    nodes_[index].close();
    roll_.forget(index);
  }
}

void AsyncQuorumCore::close() {
  if (forked()) return leave_to_parent();
  (void)begin();
  for (std::size_t index = 0; index < size(); ++index) {
    nodes_[index].close();
    roll_.forget(index);
  }
  voters_changed_ = true;
  schedule_turn();
  tell_connect(Status::cancelled);
}

void AsyncQuorumCore::shut_down() {
  sleep(*this, Instant::max());
  if (forked()) return leave_to_parent();
  (void)begin();
  cancel_all();
  for (AsyncQuorumRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next())
    while (lock->post_release() == Status::ok) {}
  close();  // Which sends what waits to be sent.
  sleep(*this, Instant::max());
  stop();
}

// ---- What the nodes say ------------------------------------------------------------------------------------------

void AsyncQuorumCore::node_reply(AsyncNode& node, const Reply& reply) {
  if (reply.tag.operation == Operation::query)  // A lock asks for other things.
    return static_cast<AsyncQuorumInquiry*>(reply.tag.requester)->take_reply(index_of(node), reply);
  auto& vote = *static_cast<QuorumVote*>(reply.tag.requester);
  static_cast<AsyncQuorumRecord*>(vote.owner)->take_reply(vote, reply);
}

// Every lock learns who answers there.
void AsyncQuorumCore::node_ready(AsyncNode& node) {
  voters_changed_ = true;
  const std::size_t ready = index_of(node);
  const NodeSet changed = roll_.introduce(ready, now());
  if (roll_.moved(ready)) node.session().forget_compensations();
  for (NodeSet left = changed; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
    const auto index = static_cast<std::size_t>(__builtin_ctz(left));
    for (AsyncQuorumRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->meet(index);
  }
}

void AsyncQuorumCore::node_down(AsyncNode& node) {
  voters_changed_ = true;
  roll_.leave(index_of(node), node.failure());
}

// ---- Turns -------------------------------------------------------------------------------------------------------

void AsyncQuorumCore::set_now(Instant now) noexcept {
  for (AsyncNode& node : nodes_) node.set_now(now);
}

void AsyncQuorumCore::await() {
  for (AsyncNode& node : nodes_) node.receive();
}

void AsyncQuorumCore::work() {
  for (std::size_t index = 0; index < size(); ++index) {
    // It did not say who it is; it may have been busy.
    if (now() >= roll_.introduction_due(index)) nodes_[index].fail(Status::transport_closed, {});
    nodes_[index].work();
  }
  serve_voters();
  serve_stirred();
  serve_owing();
  serve_room();
  serve_listening();
  serve_stirred();
  serve_inquiries();
  work_connect();
  work_close();
  for (AsyncNode& node : nodes_) node.transmit();
}

void AsyncQuorumCore::serve_voters() {
  if (!voters_changed_) return;
  voters_changed_ = false;
  LinkedPlace<AsyncQuorumRecord> waiting;
  waiting.take_all(await_voters_);
  while (AsyncQuorumRecord* const lock = waiting.first()) {
    lock->queued_.unlink();
    lock->proceed();
  }
}

void AsyncQuorumCore::serve_stirred() {
  while (AsyncQuorumRecord* const lock = stirred_.first()) {
    lock->stirred_.unlink();
    lock->look();
  }
}

// One after the other, until there is none for the first.
void AsyncQuorumCore::serve_room() {
  while (AsyncQuorumRecord* const lock = await_room_.first()) {
    if (!lock->room_is_there()) return;
    lock->queued_.unlink();
    lock->take_room();
  }
}

// What has found no place on a node may have one by now, before anybody else.
void AsyncQuorumCore::serve_owing() {
  if (!owing_) return;
  owing_ = false;
  for (AsyncQuorumRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next())
    if (lock->machine_.owed() != 0) lock->pay();
}

std::size_t AsyncQuorumCore::compensations_pending() noexcept {
  std::size_t pending = roll_.compensations_pending();
  for (const AsyncQuorumRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next())
    pending += count_of(lock->machine_.owed());
  return pending;
}

void AsyncQuorumCore::serve_listening() {
  for (AsyncNode& node : nodes_)
    while (void* const heard = node.next_heard()) static_cast<AsyncQuorumRecord*>(heard)->hear();
}

// Each asks what it has to ask. One that is over leaves the list.
void AsyncQuorumCore::serve_inquiries() {
  for (AsyncQuorumInquiry* asker = inquiries_.first(); asker != nullptr;) {
    AsyncQuorumInquiry* const next = asker->place_.next();
    asker->proceed();
    asker = next;
  }
}

Instant AsyncQuorumCore::next_timeout() const noexcept {
  Instant next = Instant::max();
  for (std::size_t index = 0; index < size(); ++index)
    next = earlier(next, earlier(nodes_[index].next_timeout(), roll_.introduction_due(index)));
  return next;
}

void AsyncQuorumCore::judge_time() {
  for (AsyncNode& node : nodes_) node.judge_time();
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_client.hpp"

#include <algorithm>

#include "async_client_core.hpp"
#include "holdfast/url.hpp"

namespace holdfast {

namespace {

// Of Asio's own operations, the ones in progress and those of before that have been cancelled: a socket's read, write and
// connect, twice; the timer; the turn.
constexpr std::size_t own_operations = 24;
// Fewer requests than this, and a session has no room for its handshake; more, and it cannot count its compensations.
constexpr std::size_t requests_min = in_flight_max;
constexpr std::size_t requests_max = 2 * UINT16_MAX;

AsyncNode::Limits node_limits(const AsyncLimits& limits) noexcept {
  return {.requests = std::clamp(limits.requests, requests_min, requests_max), .waiters = limits.waiters};
}

}  // namespace

// ---- The client --------------------------------------------------------------------------------------------------

AsyncClient::AsyncClient(executor_type executor, const AsyncLimits& limits)
    : core_(std::make_shared<AsyncClientCore>(std::move(executor), limits)) {}

AsyncClient::~AsyncClient() { core_->shut_down(); }

AsyncClient::executor_type AsyncClient::get_executor() const noexcept { return core_->executor(); }
AsyncLoop& AsyncClient::loop() const noexcept { return *core_; }
OperationOwner& AsyncClient::owner() const noexcept { return *core_; }
Status AsyncClient::read_url(ByteView url, ClientConfig& config) { return core_->read_url(url, config); }
void AsyncClient::start_connect(const ClientConfig& config, Completion& completion, Status status) {
  core_->start_connect(config, completion, status);
}
void AsyncClient::start_close(Completion& completion) { core_->start_close(completion); }
void AsyncClient::close() { core_->close(); }
void AsyncClient::cancel() { core_->cancel_all(); }

bool AsyncClient::connected() const noexcept { return core_->node().ready() && !core_->forked(); }
ClientConfig AsyncClient::config() const noexcept { return core_->node().config(); }
const ServerIdentity& AsyncClient::server() const noexcept { return core_->node().session().identity(); }
Status AsyncClient::failure() const noexcept {
  return core_->forked() ? Status::forked : connected() ? Status::ok : core_->node().failure();
}
ByteView AsyncClient::error_text() const noexcept { return core_->node().session().failure_text(); }
int AsyncClient::system_error_number() const noexcept { return core_->node().error_number(); }
ConfigProblem AsyncClient::problem() const noexcept { return core_->problem(); }
Stats AsyncClient::stats() const noexcept { return stats_of(core_->node().config().meter); }
std::size_t AsyncClient::compensations_pending() const noexcept {
  return core_->node().session().compensations_pending();
}
std::size_t AsyncClient::kept() const noexcept { return core_->schedule().size(); }
std::uint64_t AsyncClient::renewal_calls() const noexcept { return core_->renewal_calls(); }

// ---- Its core ----------------------------------------------------------------------------------------------------

AsyncClientCore::AsyncClientCore(executor_type executor, const AsyncLimits& limits)
    : AsyncLoop(std::move(executor), limits.operations, own_operations),
      node_(*this, *this, node_limits(limits)),
      places_(new RenewalSchedule::Place[limits.kept == 0 ? 1 : limits.kept]),
      heap_(new std::uint32_t[limits.kept == 0 ? 1 : limits.kept]),
      schedule_({may_renew, renewed}, {places_.get(), heap_.get(), limits.kept}, request_timeout_default) {}

AsyncClientCore::~AsyncClientCore() { close_nodes(); }

Status AsyncClientCore::read_url(ByteView url, ClientConfig& config) {
  const char* reason = nullptr;
  const Status status = parse_url(url, config, &reason);
  if (status != Status::ok) problem_ = {"url", reason};
  return status;
}

void AsyncClientCore::start_connect(const ClientConfig& config, Completion& completion, Status status) {
  const Instant now = begin();
  if (connect_ != nullptr || close_ != nullptr) return complete(completion, Status::already_held);
  if (stopped()) return complete(completion, Status::cancelled);
  if (status == Status::ok && now == Instant::max()) status = Status::system_error;  // The clock cannot be read.
  if (status == Status::ok) {
    problem_ = {};
    status = prepare(config, now);
    problem_ = node_.problem();
    if (status != Status::ok) node_down(node_);  // Who waits for the connection waits in vain.
  }
  if (status != Status::ok) return complete(completion, status);
  schedule_.set_request_timeout(config.request_timeout);
  schedule_.set_witness(config.meter);
  settings_ = {
      .request_timeout = config.request_timeout, .max_poll = config.max_poll, .acks_wait = acks_wait_of(config)};
  connect_ = &completion;
  schedule_turn();
}

Status AsyncClientCore::prepare(const ClientConfig& config, Instant now) {
  if (const Status status = node_.prepare(config, now); status != Status::ok) return status;
  if (config.acks == 0) {
    if (ack_node_ != nullptr) ack_node_->close();
    return Status::ok;
  }
  if (ack_node_ == nullptr) ack_node_.reset(new AsyncNode(*this, *this, {.requests = requests_min}));
  return ack_node_->prepare(config, now);
}

void AsyncClientCore::close_nodes() {
  node_.close();
  if (ack_node_ != nullptr) ack_node_->close();
  if (lookout_ != nullptr) lookout_->close();
}

void AsyncClientCore::tell_connect(Status status) {
  if (connect_ == nullptr) return;
  Completion& completion = *connect_;
  connect_ = nullptr;
  complete(completion, status);
}

void AsyncClientCore::start_close(Completion& completion) {
  const Instant now = begin();
  if (close_ != nullptr) return complete(completion, Status::already_held);
  cancel_all();
  end_idle();
  close_ = &completion;
  sleep(*this, now + node_.config().request_timeout);
  schedule_turn();
}

// What was released is known to be free, or nothing can be known any more.
void AsyncClientCore::work_close() {
  if (close_ == nullptr || (node_.ready() && (node_.session().in_flight() != 0 || node_.unsent()))) return;
  if (node_.session().compensations_pending() != 0 && node_.wanted() && wakes_at() != Instant::max()) return;
  const bool free = node_.session().compensations_pending() == 0;
  Completion& completion = *close_;
  close_ = nullptr;
  sleep(*this, Instant::max());
  close_nodes();
  disarm_timer();
  complete(completion, free ? Status::ok : Status::timed_out);
}

// Of async_close().
void AsyncClientCore::wake(Instant) {
  if (close_ == nullptr) return;
  Completion& completion = *close_;
  close_ = nullptr;
  close_nodes();
  disarm_timer();
  complete(completion, Status::timed_out);
}

void AsyncClientCore::cancel_operation(Completion& completion) {
  if (&completion == connect_) return tell_connect(Status::cancelled);
  if (&completion != close_) return;
  close_ = nullptr;
  sleep(*this, Instant::max());
  complete(completion, Status::cancelled);
}

void AsyncClientCore::cancel_all() {
  if (forked()) return leave_to_parent();
  (void)begin();
  tell_connect(Status::cancelled);
  if (close_ != nullptr) cancel_operation(*close_);
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->cancel();
}

// Holds that are nobody's end with the connection.
void AsyncClientCore::end_idle() {
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->end_idle();
  node_.transmit();
}

void AsyncClientCore::close() {
  if (forked()) return leave_to_parent();
  (void)begin();
  cancel_all();
  end_idle();
  close_nodes();
  tell_connect(Status::cancelled);
  disarm_timer();
  schedule_turn();
}

void AsyncClientCore::shut_down() {
  sleep(*this, Instant::max());
  if (forked()) return leave_to_parent();
  (void)begin();
  cancel_all();
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next())
    while (lock->post_release_now() == Status::ok || (lock->owes() && lock->pay())) {}
  node_.transmit();
  close_nodes();
  tell_connect(Status::cancelled);
  sleep(*this, Instant::max());
  stop();
}

// ---- What the node says ------------------------------------------------------------------------------------------

void AsyncClientCore::node_reply(AsyncNode& node, const Reply& reply) {
  if (is_for_acks(node)) {
    if (!acks_.handle_reply(reply, node.config()))
      node.fail(Status::protocol_error, "a reply of another shape than asked for");
    return;
  }
  if (reply.tag.requester != &schedule_) return static_cast<AsyncRecord*>(reply.tag.requester)->handle_reply(reply);
  if (!schedule_.handle_reply(reply, now()))
    node.fail(Status::protocol_error, "a reply of another shape than asked for");
}

void AsyncClientCore::node_ready(AsyncNode& node) {
  if (is_for_acks(node)) return;
  tell_connect(Status::ok);
  LinkedPlace<AsyncRecord> waiting;
  waiting.take_all(await_connection_);
  while (AsyncRecord* const lock = waiting.first()) {
    lock->queued_.unlink();
    lock->proceed();
  }
}

// Everybody who waits for the connection is told what has become of it, and decides.
void AsyncClientCore::node_down(AsyncNode& node) {
  if (is_for_acks(node)) return;
  if (!node.connecting()) tell_connect(node.failure());
  LinkedPlace<AsyncRecord> waiting;
  waiting.take_all(await_connection_);
  waiting.take_all(await_room_);
  while (AsyncRecord* const lock = waiting.first()) {
    lock->queued_.unlink();
    lock->proceed();
  }
}

// ---- Turns -------------------------------------------------------------------------------------------------------

void AsyncClientCore::work() {
  if (lookout_ != nullptr && lookout_->work(node_)) schedule_.hasten(now());
  node_.work();
  serve_room();
  if (schedule_.size() != 0) {
    take_renewal_events();
    renew_due();
  }
  if (ack_node_ != nullptr) work_acks();
  while (void* const heard = node_.next_heard()) static_cast<AsyncRecord*>(heard)->hear();
  work_close();
  node_.transmit();
}

// Who is answered may ask anew.
void AsyncClientCore::work_acks() {
  ack_node_->work();
  acks_.work(ack_node_->node(), now());
  ack_node_->transmit();
  while (NodeTask* const told = acks_.poll_told()) static_cast<AsyncRecord*>(told->requester())->proceed();
}

void AsyncClientCore::serve_room() {
  while (await_room_.linked() && node_.room(true)) {
    AsyncRecord* const lock = await_room_.first();
    lock->queued_.unlink();
    lock->proceed();
  }
}

void AsyncClientCore::renew_due() {
  while (node_.ready() && schedule_.wants_request(now())) {
    const Session::Place place = node_.session().open(false);
    std::size_t size = 0;
    if (place.request == nullptr || !schedule_.poll_request(place.space, *place.request, size, now())) return;
    place.request->tag.requester = &schedule_;
    node_.session().commit(*place.request, size, now());
    ++renewal_calls_;
    node_.transmit();  // Its bytes make room for the next.
  }
}

void AsyncClientCore::take_renewal_events() {
  void* holder = nullptr;
  for (RenewalEvent event = schedule_.poll_event(holder); event != RenewalEvent::none;
       event = schedule_.poll_event(holder)) {
    auto& lock = *static_cast<AsyncRecord*>(holder);
    if (event == RenewalEvent::lost)
      lock.lose();
    else
      lock.doubt();
  }
}

Instant AsyncClientCore::next_timeout() const noexcept {
  Instant next = earlier(node_.next_timeout(), schedule_.poll_timeout());
  if (lookout_ != nullptr) next = earlier(next, lookout_->next_timeout(node_));
  return ack_node_ == nullptr ? next : earlier(next, ack_node_->next_timeout());
}

void AsyncClientCore::judge_time() {
  node_.judge_time();
  if (ack_node_ != nullptr) ack_node_->judge_time();
  if (lookout_ != nullptr) lookout_->judge_time();
  schedule_.handle_timeout(now());
}

bool AsyncClientCore::may_renew(void* holder, Instant now) noexcept {
  return static_cast<AsyncRecord*>(holder)->may_renew(now);
}

void AsyncClientCore::renewed(const KeptHold& hold) noexcept { static_cast<AsyncRecord*>(hold.holder)->renewed(hold); }

}  // namespace holdfast

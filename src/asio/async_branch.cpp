// SPDX-License-Identifier: MIT
#include "async_branch.hpp"

#include <algorithm>

#include "async_client_core.hpp"
#include "holdfast/core/slot_search.hpp"

namespace holdfast {

namespace {

AsyncNode::Limits node_limits(const AsyncLimits& limits) noexcept {
  return {.requests = std::clamp(limits.requests, AsyncNode::Limits::requests_min, AsyncNode::Limits::requests_max),
          .waiters = limits.waiters};
}

}  // namespace

AsyncBranch::AsyncBranch(AsyncClientCore& core, const AsyncLimits& limits, std::uint8_t number)
    : core_(core),
      node_(core, *this, node_limits(limits)),
      places_(new RenewalSchedule::Place[limits.kept == 0 ? 1 : limits.kept]),
      heap_(new std::uint32_t[limits.kept == 0 ? 1 : limits.kept]),
      schedule_({may_renew, renewed, together}, {places_.get(), heap_.get(), limits.kept}, request_timeout_default),
      number_(number) {}

void AsyncBranch::configure(const ClientConfig& config) {
  schedule_.set_request_timeout(config.request_timeout);
  schedule_.set_witness(config.meter);
  if (config.acks != 0 && acks_ == nullptr) acks_ = std::make_unique<AsyncAcks>(core_);
}

void AsyncBranch::close() {
  node_.close();
  close_acks();
}

void AsyncBranch::close_acks() {
  if (acks_ != nullptr) acks_->close();
}

// ---- What the node says ------------------------------------------------------------------------------------------

void AsyncBranch::node_reply(AsyncNode& node, const Reply& reply) {
  if (reply.tag.requester != &schedule_)
    static_cast<AsyncRecord*>(reply.tag.requester)->handle_reply(reply, *this);
  else if (!take_renewals(reply))
    node.fail_shape();
}

// False: no server answers so. Holds of a call are of one slot. Where that has moved, they go after it.
bool AsyncBranch::take_renewals(const Reply& reply) {
  if (reply.outcome != Status::moved || core_.cluster() == nullptr) return schedule_.handle_reply(reply, core_.now());
  AsyncRecord* strayed[renewal_batch_max];
  std::size_t count = 0;
  void* holder = nullptr;
  for (std::size_t index = 0; schedule_.holder_in_call(reply.tag, index, holder); ++index)
    if (holder != nullptr) strayed[count++] = static_cast<AsyncRecord*>(holder);
  AsyncBranch* const to = count == 0 ? nullptr : core_.cluster()->follow(*this, strayed[0]->machine());
  Reply refused = reply;
  refused.outcome = Status::not_connected;
  const bool known = schedule_.handle_reply(refused, core_.now());
  for (std::size_t index = 0; to != nullptr && index < count; ++index) strayed[index]->go_to(*to);
  return known;
}

void AsyncBranch::node_ready(AsyncNode& /*node*/) {
  if (acks_ != nullptr && node_.config().acks != 0) acks_->go_to(node_.config());
  core_.branch_ready(*this);
  tell_waiting(false);
}

void AsyncBranch::node_down(AsyncNode& /*node*/) {
  core_.branch_down(*this);
  tell_waiting(true);
}

void AsyncBranch::tell_waiting(bool of_room) {
  LinkedPlace<AsyncRecord> waiting;
  waiting.take_all(await_connection_);
  if (of_room) waiting.take_all(await_room_);
  while (AsyncRecord* const lock = waiting.first()) {
    lock->queued_.unlink();
    lock->proceed();
  }
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

RenewalSchedule::Place* AsyncBranch::keep(const KeptHold& hold) {
  if (!core_.may_keep()) return nullptr;
  node_.bound_pauses(true);
  RenewalSchedule::Place* const place = schedule_.enter(hold, core_.now());
  if (place != nullptr) core_.count_kept(1);
  return place;
}

RenewalSchedule::Place* AsyncBranch::keep_on(const KeptHold& hold) {
  RenewalSchedule::Place* const place = keep(hold);
  if (place != nullptr) schedule_.put_off(*place, core_.now());
  return place;
}

void AsyncBranch::confirm(RenewalSchedule::Place& place, const KeptHold& hold) noexcept {
  schedule_.update(place, hold, core_.now());
}

void AsyncBranch::stop_keeping(RenewalSchedule::Place& place) noexcept {
  schedule_.leave(place);
  core_.count_kept(-1);
  node_.bound_pauses(schedule_.size() != 0);
}

void AsyncBranch::hasten() noexcept { schedule_.hasten(core_.now()); }

bool AsyncBranch::may_renew(void* holder, Instant now) noexcept {
  return static_cast<AsyncRecord*>(holder)->may_renew(now);
}

void AsyncBranch::renewed(const KeptHold& hold) noexcept { static_cast<AsyncRecord*>(hold.holder)->renewed(hold); }

// A cluster refuses calls across slots.
bool AsyncBranch::together(const KeptHold& one, const KeptHold& other) noexcept {
  if (static_cast<AsyncRecord*>(one.holder)->core_->cluster() == nullptr) return true;
  return SlotSearch::slot_of_lock(*one.kind, one.key) == SlotSearch::slot_of_lock(*other.kind, other.key);
}

// ---- Turns -------------------------------------------------------------------------------------------------------

void AsyncBranch::work() {
  node_.work();
  serve_room();
  if (schedule_.size() != 0) {
    take_renewal_events();
    renew_due();
  }
  if (acks_ != nullptr) work_acks();
}

void AsyncBranch::work_acks() {
  acks_->work();
  while (NodeTask* const told = acks_->poll_told()) static_cast<AsyncRecord*>(told->requester())->proceed();
}

void AsyncBranch::serve_room() {
  while (await_room_.linked() && node_.room(true)) {
    AsyncRecord* const lock = await_room_.first();
    lock->queued_.unlink();
    lock->proceed();
  }
}

void AsyncBranch::renew_due() {
  while (node_.ready() && schedule_.wants_request(core_.now())) {
    const Session::Place place = node_.session().open(false);
    std::size_t size = 0;
    if (place.request == nullptr || !schedule_.poll_request(place.space, *place.request, size, core_.now())) return;
    place.request->tag.requester = &schedule_;
    node_.session().commit(*place.request, size, core_.now());
    ++renewal_calls_;
    node_.transmit();  // Its bytes make room for the next.
  }
}

void AsyncBranch::take_renewal_events() {
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

void AsyncBranch::judge_time() {
  node_.judge_time();
  if (acks_ != nullptr) acks_->node().judge_time();
  schedule_.handle_timeout(core_.now());
}

}  // namespace holdfast

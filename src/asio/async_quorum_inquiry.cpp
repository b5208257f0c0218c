// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_quorum_inquiry.hpp"

#include "async_quorum_core.hpp"

namespace holdfast {

AsyncQuorumInquiry::AsyncQuorumInquiry(AsyncQuorum& quorum, BytesArgument key) : core_(quorum.core_) {
  if (Key(key).valid()) key_.assign(Key(key).bytes());  // Otherwise it stays empty, and every operation is refused.
}

AsyncQuorumInquiry::~AsyncQuorumInquiry() {
  cancel();
  core_->sleep(*this, Instant::max());
}

AsyncLoop& AsyncQuorumInquiry::loop() const noexcept { return *core_; }

void AsyncQuorumInquiry::start(QuorumInfo* info, QuorumRelease* release, Completion& completion) {
  const Instant now = core_->begin();
  Status refused = completion_ != nullptr ? Status::too_many_requests : Status::ok;
  if (refused == Status::ok && core_->forked()) refused = Status::forked;
  if (refused == Status::ok && !core_->usable()) refused = Status::not_connected;
  const Key key(key_.view());
  if (refused == Status::ok)
    refused = info != nullptr ? inquiry_.begin_info(key, core_->size(), *info)
                              : inquiry_.begin_release(key, core_->size(), *release);
  if (refused != Status::ok) return core_->complete(completion, refused);
  completion_ = &completion;
  core_->enter(place_);
  core_->clear_texts();
  core_->sleep(*this, core_->end_of_wait(now + core_->node(0).config().connect_timeout));
  core_->schedule_turn();
}

void AsyncQuorumInquiry::proceed() {
  inquiry_.hand_over(core_->roll(), core_->connecting(), this, core_->now());
  if (inquiry_.over()) finish(false);
}

void AsyncQuorumInquiry::take_reply(std::size_t node, const Reply& reply) {
  if (!inquiry_.take(node, reply.outcome, reply.nothing_ran, reply.value)) core_->node(node).fail_shape();
  core_->schedule_turn();
}

void AsyncQuorumInquiry::give_up(Status why) {
  for (NodeSet left = inquiry_.give_up(core_->roll(), this, why, core_->now()); left != 0;
       left = static_cast<NodeSet>(left & (left - 1)))
    core_->node(static_cast<std::size_t>(__builtin_ctz(left))).dispatch();
  finish(why == Status::cancelled);
}

// What is known, and what was done, is not undone by a cancel.
void AsyncQuorumInquiry::finish(bool cancelled) {
  Completion& completion = *completion_;
  completion_ = nullptr;
  place_.unlink();
  core_->sleep(*this, Instant::max());
  const Status status = inquiry_.conclude(core_->roll(), core_->now());
  core_->complete(completion, cancelled && status == Status::no_quorum ? Status::cancelled : status);
}

void AsyncQuorumInquiry::cancel() {
  if (core_->forked()) return core_->leave_to_parent();
  (void)core_->begin();
  if (completion_ != nullptr) cancel_operation(*completion_);
}

void AsyncQuorumInquiry::cancel_operation(Completion& completion) {
  if (&completion == completion_) give_up(Status::cancelled);
}

void AsyncQuorumInquiry::wake(Instant) {
  if (completion_ != nullptr) give_up(Status::timed_out);
}

}  // namespace holdfast

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
  info_ = info;
  release_ = release;
  core_->enter(place_);
  core_->clear_texts();
  core_->sleep(*this, core_->end_of_wait(now + core_->node(0).config().connect_timeout));
  core_->schedule_turn();
}

void AsyncQuorumInquiry::proceed() {
  for (NodeSet left = inquiry_.to_ask(); left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
    const auto index = static_cast<std::size_t>(__builtin_ctz(left));
    AsyncNode& node = core_->node(index);
    if (node.ready()) {
      Status status = core_->roll().excluded(index) ? Status::same_machine : Status::ok;
      if (status == Status::ok) status = node.node().ask(inquiry_.ask(index), {.requester = this}, core_->now());
      if (status != Status::ok) inquiry_.refuse(index, status);
    } else if (!node.connecting()) {
      inquiry_.refuse(index, Status::not_connected);
    }
  }
  if (inquiry_.over()) finish();
}

void AsyncQuorumInquiry::take_reply(std::size_t node, const Reply& reply) {
  if (!inquiry_.take(node, reply.outcome, reply.nothing_ran, reply.value))
    core_->node(node).fail(Status::protocol_error, "a reply of another shape than asked for");
  core_->schedule_turn();
}

void AsyncQuorumInquiry::give_up(Status why) {
  for (std::size_t index = 0; index < core_->size() && !inquiry_.over(); ++index) {
    if ((inquiry_.asked() & node_bit(index)) != 0) {
      core_->node(index).session().give_up(this, why, core_->now());
      core_->node(index).dispatch();
    }
    // It was not asked, or is not asked once more.
    if ((inquiry_.to_ask() & node_bit(index)) != 0) inquiry_.refuse(index, why);
  }
}

void AsyncQuorumInquiry::finish() {
  Completion& completion = *completion_;
  completion_ = nullptr;
  place_.unlink();
  core_->sleep(*this, Instant::max());
  if (info_ != nullptr) info_->judge(core_->roll().voters(core_->now()));
  const Status verdict = info_ == nullptr                      ? release_->verdict()
                         : info_->state != Possession::unknown ? Status::ok
                                                               : Status::no_quorum;
  core_->complete(completion, verdict);
}

void AsyncQuorumInquiry::cancel() {
  if (core_->forked()) return core_->leave_to_parent();
  (void)core_->begin();
  if (completion_ != nullptr) cancel_operation(*completion_);
}

void AsyncQuorumInquiry::cancel_operation(Completion& completion) {
  if (&completion != completion_) return;
  give_up(Status::cancelled);
  completion_ = nullptr;
  place_.unlink();
  core_->sleep(*this, Instant::max());
  core_->complete(completion, Status::cancelled);
}

void AsyncQuorumInquiry::wake(Instant) {
  if (completion_ == nullptr) return;
  give_up(Status::timed_out);
  finish();
}

}  // namespace holdfast

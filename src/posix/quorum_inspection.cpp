// SPDX-License-Identifier: MIT
#include "holdfast/core/quorum_inquiry.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/quorum.hpp"

namespace holdfast {

Status QuorumClient::inquire(QuorumInquiry& inquiry) noexcept {
  struct Asker : Asking {
    Asker(QuorumClient& asking_quorum, QuorumInquiry& asked) noexcept
        : Asking(take_reply), quorum(&asking_quorum), inquiry(&asked) {}
    static void take_reply(Asking& self, std::size_t node, const Reply& reply) noexcept {
      const auto& asker = static_cast<const Asker&>(self);
      if (asker.inquiry->take(node, reply.outcome, reply.nothing_ran, reply.value)) return;
      asker.quorum->nodes_[node].connection.session().fail_shape();
    }
    QuorumClient* quorum;
    QuorumInquiry* inquiry;
  };
  Asker asker(*this, inquiry);
  asking_ = &asker;
  const Instant end = end_of_try();
  for (bool looked = false; !inquiry.over(); looked = true) {
    if (looked) wait_until(earlier(end, earlier(tend_next(), next_timeout())));
    if (now_ >= end || cancelled()) break;
    move();
    tend_due();
    inquiry.hand_over(roll_, connecting(), &asker, now_);
    transmit_all();
  }
  const Status why = cancelled() ? Status::cancelled : Status::timed_out;
  for (NodeSet left = inquiry.give_up(roll_, &asker, why, now_); left != 0;
       left = static_cast<NodeSet>(left & (left - 1)))
    dispatch(nodes_[static_cast<std::size_t>(__builtin_ctz(left))]);
  asking_ = nullptr;
  // What is known, and what was done, is not undone by a cancel.
  Status status = inquiry.conclude(roll_, now_);
  status = cancel_.conclude(status, status != Status::no_quorum);
  tell_holds();
  return status;
}

Status inspect(QuorumClient& quorum, Key key, QuorumInfo& info) noexcept {
  const QuorumClient::Turn turn(quorum);
  QuorumInquiry inquiry;
  if (const Status status = quorum.begin(); status != Status::ok) return status;
  if (const Status status = inquiry.begin_info(key, quorum.nodes(), info); status != Status::ok) return status;
  return quorum.inquire(inquiry);
}

Status force_release(QuorumClient& quorum, Key key, QuorumRelease& release) noexcept {
  const QuorumClient::Turn turn(quorum);
  QuorumInquiry inquiry;
  if (const Status status = quorum.begin(); status != Status::ok) return status;
  if (const Status status = inquiry.begin_release(key, quorum.nodes(), release); status != Status::ok) return status;
  return quorum.inquire(inquiry);
}

}  // namespace holdfast

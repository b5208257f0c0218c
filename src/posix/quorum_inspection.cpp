// SPDX-License-Identifier: MIT
#include "holdfast/core/quorum_inquiry.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/quorum.hpp"

namespace holdfast {

void QuorumClient::inquire(QuorumInquiry& inquiry) noexcept {
  struct Asker : Asking {
    Asker(QuorumClient& asking_quorum, QuorumInquiry& asked) noexcept
        : Asking(take_reply), quorum(&asking_quorum), inquiry(&asked) {}
    static void take_reply(Asking& self, std::size_t node, const Reply& reply) noexcept {
      const auto& asker = static_cast<const Asker&>(self);
      if (asker.inquiry->take(node, reply.outcome, reply.nothing_ran, reply.value)) return;
      asker.quorum->nodes_[node].connection.session().fail(Status::protocol_error,
                                                           "a reply of another shape than asked for");
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
    for (NodeSet left = inquiry.to_ask(); left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
      const auto index = static_cast<std::size_t>(__builtin_ctz(left));
      Connection& connection = nodes_[index].connection;
      if (roll_.introduced(index)) {
        Status status = roll_.excluded(index) ? Status::same_machine : Status::ok;
        if (status == Status::ok) status = connection.ask(inquiry.ask(index), {.requester = &asker}, now_);
        if (status != Status::ok) inquiry.refuse(index, status);
      } else if (connection.socket() < 0 && !connection.dialer().hopeful(now_)) {
        inquiry.refuse(index, Status::not_connected);
      }
    }
    transmit_all();
  }
  const Status why = cancelled() ? Status::cancelled : Status::timed_out;
  for (std::size_t index = 0; index < nodes() && !inquiry.over(); ++index) {
    if ((inquiry.asked() & node_bit(index)) != 0) {
      nodes_[index].connection.session().give_up(&asker, why, now_);
      dispatch(nodes_[index]);
    }
    // It was not asked, or is not asked once more.
    if ((inquiry.to_ask() & node_bit(index)) != 0) inquiry.refuse(index, why);
  }
  asking_ = nullptr;
  tell_holds();
}

Status inspect(QuorumClient& quorum, Key key, QuorumInfo& info) noexcept {
  const QuorumClient::Turn turn(quorum);
  QuorumInquiry inquiry;
  if (const Status status = quorum.begin(); status != Status::ok) return status;
  if (const Status status = inquiry.begin_info(key, quorum.nodes(), info); status != Status::ok) return status;
  quorum.inquire(inquiry);
  info.judge(quorum.roll_.voters(quorum.now_));
  return quorum.cancel_.conclude(info.state != Possession::unknown ? Status::ok : Status::no_quorum,
                                 info.state != Possession::unknown);
}

Status force_release(QuorumClient& quorum, Key key, QuorumRelease& release) noexcept {
  const QuorumClient::Turn turn(quorum);
  QuorumInquiry inquiry;
  if (const Status status = quorum.begin(); status != Status::ok) return status;
  if (const Status status = inquiry.begin_release(key, quorum.nodes(), release); status != Status::ok) return status;
  quorum.inquire(inquiry);
  // What was done is not undone by a cancel.
  return quorum.cancel_.conclude(release.verdict(), release.verdict() != Status::no_quorum);
}

}  // namespace holdfast

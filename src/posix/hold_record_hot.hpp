// SPDX-License-Identifier: MIT
//
// What every reply to a lock passes through, inline: the calls themselves would cost as much as what they do.
#pragma once

#include "ear.hpp"
#include "holdfast/client.hpp"
#include "holdfast/detail/hold_record.hpp"

namespace holdfast {

inline void HoldRecord::publish() noexcept {
  if (keeper_ != nullptr) [[unlikely]]
    keeper_->sync(*this);
  else
    publish_unkept();
}

// Who hears of releases for the call in progress now; nullptr: nobody does.
HOLDFAST_ONE_COPY inline Ear* ClientBase::listening() const noexcept {
  return ear_ != nullptr && ear_->listening() ? ear_ : nullptr;
}

inline ListenSet HoldRecord::confirmed() const noexcept {
  const Ear* const ear = client_->listening();
  return ear != nullptr ? ear->confirmed() : ListenSet{0};
}

inline void HoldRecord::handle_reply(const Reply& reply, Instant now) noexcept {
  if (reply.tag.operation == Operation::compensate || post_outcome_ == Status::outcome_unknown) [[unlikely]]
    note_post_outcome(reply);
  if (reply.tag.operation == Operation::compensate || reply.tag.operation == Operation::query) [[unlikely]] {
    if (calls() && client_->task_->note(reply))
      client_->task_->plan_anew(now, confirmed(), client_->random_source_.number());
    if (reply.tag.operation == Operation::query) return;
  }
  if (keeper_ != nullptr) [[unlikely]]
    keeper_->sync(*this);  // The hold may have been extended while this was on its way.
  NodeTask::take(machine_, *client_, reply, now);
  if (machine_.only_said_what_was_asked()) [[likely]]
    publish();
  else
    settle();
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// Questions that others bring along, on the blocking client.
#include "client_hot.hpp"
#include "holdfast/core/node_task.hpp"

namespace holdfast {

Status ClientBase::put(Question& question) noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  make_room();
  Status outcome = Status::ok;
  do {
    if (cancelled()) return conclude(Status::cancelled);
    if (const Status status = ensure_ready(Instant::max()); status != Status::ok) return conclude(status);
    if (query_waiting_) pump(nullptr);  // One at a time.
    if (query_waiting_) return conclude(Status::too_many_requests);
    if (const Status status = question.ask(question, *this, {.requester = static_cast<ClientBase*>(this)}, now_);
        status != Status::ok)
      return conclude(status);
    query_waiting_ = true;
    query_outcome_ = Status::outcome_unknown;
    query_decode_ = [](const RespValue& reply, void* self) noexcept {
      return static_cast<Question*>(self)->take(*static_cast<Question*>(self), reply);
    };
    query_out_ = &question;
    pump(nullptr);
    query_waiting_ = false;
    outcome = query_outcome_;
  } while (question.asks_on(question, outcome));
  return conclude(outcome);
}

}  // namespace holdfast

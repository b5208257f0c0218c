// SPDX-License-Identifier: MIT
#include "holdfast/core/ack_lane.hpp"

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/resp_encoder.hpp"

namespace holdfast {

namespace {

// From the send of a request on this connection to its reply.
Instant deadline_of(const KeptConfig& config, Instant now) noexcept {
  return now + config.acks_timeout + config.request_timeout;
}

const LockMachine& machine_of(const AckRequest& request) noexcept {
  return static_cast<const NodeTask&>(request).machine();
}

}  // namespace

// ---- Requests ----------------------------------------------------------------------------------------------------

void AckLane::enter(AckRequest& request) noexcept {
  HOLDFAST_ASSERT(!request.pending());
  leave(request);  // It may have been told, and not been polled yet.
  AckRequest** place = &first_;
  while (*place != nullptr) place = &(*place)->next_;
  *place = &request;
  request.next_ = nullptr;
  request.state_ = AckRequest::State::waiting;
  request.outcome_ = Status::outcome_unknown;
}

void AckLane::leave(AckRequest& request) noexcept {
  for (AckRequest** place = &first_; *place != nullptr; place = &(*place)->next_)
    if (*place == &request) {
      *place = request.next_;
      break;
    }
  request.state_ = AckRequest::State::told;
}

void AckLane::forget() noexcept {
  while (first_ != nullptr) leave(*first_);
  waits_ = false;
}

AckRequest* AckLane::find(std::uint32_t ticket) noexcept {
  for (AckRequest* request = first_; request != nullptr; request = request->next_)
    if (request->state_ == AckRequest::State::sent && request->ticket_ == ticket) return request;
  return nullptr;  // Nobody wants to know any more.
}

// It stays in the list until it is polled.
void AckLane::tell(AckRequest& request, Status outcome) noexcept {
  request.state_ = AckRequest::State::told;
  request.outcome_ = outcome;
}

void AckLane::tell_all(Status outcome) noexcept {
  for (AckRequest* request = first_; request != nullptr; request = request->next_)
    if (request->pending()) tell(*request, outcome);
}

NodeTask* AckLane::poll_told() noexcept {
  for (AckRequest* request = first_; request != nullptr; request = request->next_)
    if (!request->pending()) {
      leave(*request);
      return static_cast<NodeTask*>(request);
    }
  return nullptr;
}

// ---- Asking ------------------------------------------------------------------------------------------------------

void AckLane::work(Node& node, Instant now) noexcept {
  if (!node.ready()) {
    if (!node.dialer().hopeful(now)) tell_all(node.dialer().failure());
    return;
  }
  if (waits_) return;
  for (AckRequest* request = first_; request != nullptr; request = request->next_) {
    if (request->state_ != AckRequest::State::waiting) continue;
    if (!renew(*request, node, now)) break;
    waits_ = true;
  }
  if (waits_) ask_wait(node, now);
}

// By text: one request, which no NOSCRIPT makes two of. What it may do late, it may do: it is a renewal of this hold, and
// shortens nothing.
bool AckLane::renew(AckRequest& request, Node& node, Instant now) noexcept {
  const LockMachine& machine = machine_of(request);
  const LockKind& kind = machine.kind();
  // With room for the WAIT, which has a place where a compensation would.
  if (!node.session().has_room(true, kind.request_size + ack_wait_size_max)) return false;
  const Session::Place place = node.session().open(true);
  std::size_t size = 0;
  CommandLine line(place.space);
  // Longer than what there is, or the script would write nothing.
  kind.fill(line, kind, Operation::renew, RequestForm::by_text,
            {.key = machine.key(),
             .token = &machine.token(),
             .lease = whole_milliseconds(machine.timing().lease) + std::chrono::milliseconds(1),
             .machine = &machine});
  if (line.finish(size) != Status::ok) return false;
  tickets_ += 2;
  request.ticket_ = tickets_ | 1U;
  request.state_ = AckRequest::State::sent;
  *place.request = {.tag = {.requester = this, .generation = request.ticket_},
                    .deadline = deadline_of(node.config(), now)};
  node.session().commit(*place.request, size, now);
  return true;
}

// It never goes alone: on a connection that has written nothing, the server answers it with ok.
void AckLane::ask_wait(Node& node, Instant now) noexcept {
  const KeptConfig& config = node.config();
  const Session::Place place = node.session().open(false);
  std::size_t size = 0;
  CommandLine line(place.space);
  line.add("WAIT").add(std::int64_t{config.acks}).add(whole_milliseconds(config.acks_timeout).count());
  const bool fits = place.request != nullptr && line.finish(size) == Status::ok;
  HOLDFAST_ASSERT(fits && size <= ack_wait_size_max);
  *place.request = {.tag = {.requester = this, .generation = 0}, .deadline = deadline_of(config, now)};
  node.session().commit(*place.request, size, now);
}

// ---- Answers -----------------------------------------------------------------------------------------------------

bool AckLane::handle_reply(const Reply& reply, const KeptConfig& config) noexcept {
  return reply.tag.generation == 0 ? handle_counted(reply, config.acks) : handle_renewed(reply);
}

bool AckLane::handle_renewed(const Reply& reply) noexcept {
  AckRequest* const request = find(reply.tag.generation);
  if (request == nullptr) return true;
  if (reply.outcome == Status::not_connected) {  // It had not left: once more, on the next connection.
    request->state_ = AckRequest::State::waiting;
    return true;
  }
  if (reply.outcome != Status::ok) {
    tell(*request, reply.outcome);
    return true;
  }
  const LockKind& kind = machine_of(*request).kind();
  LockFacts facts;
  switch (kind.decode(kind, Operation::renew, reply.value, facts)) {
    case Verdict::granted: request->state_ = AckRequest::State::renewed; return true;
    case Verdict::not_ours: tell(*request, Status::lock_lost); return true;
    case Verdict::refused: tell(*request, Status::server_error); return true;
    case Verdict::unexpected:
    case Verdict::busy: break;
  }
  tell(*request, Status::protocol_error);
  return false;
}

// Of all that was renewed before it: replies come in the order of their requests.
bool AckLane::handle_counted(const Reply& reply, std::uint8_t wanted) noexcept {
  waits_ = false;
  const bool counted = reply.outcome == Status::ok && reply.value.is(RespKind::integer) && reply.value.integer() >= 0;
  Status outcome = reply.outcome;
  if (counted)
    outcome = reply.value.integer() >= wanted ? Status::ok : Status::too_few_replicas;
  else if (outcome == Status::ok)
    outcome = Status::protocol_error;
  for (AckRequest* request = first_; request != nullptr; request = request->next_) {
    if (request->state_ == AckRequest::State::renewed && outcome == Status::not_connected)
      request->state_ = AckRequest::State::waiting;  // Nobody was asked.
    else if (request->state_ == AckRequest::State::renewed)
      tell(*request, outcome);
    else if (request->state_ == AckRequest::State::sent)
      tell(*request, counted ? Status::outcome_unknown : outcome);
  }
  return counted || outcome != Status::protocol_error;
}

bool AckLane::invariants() const noexcept {
  for (const AckRequest* request = first_; request != nullptr; request = request->next_) {
    const bool asked = request->state_ == AckRequest::State::sent || request->state_ == AckRequest::State::renewed;
    if (asked && !waits_) return false;
  }
  return true;
}

}  // namespace holdfast

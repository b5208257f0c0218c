// SPDX-License-Identifier: MIT
#include "holdfast/core/hold_request.hpp"

#include "holdfast/proto/decimal.hpp"

namespace holdfast {

namespace {

constexpr std::size_t uuid_size = 36;
constexpr std::size_t ordinal_digits_max = 20;
static_assert(uuid_size + 2 + ordinal_digits_max <= token_size_max);

bool is_hexadecimal(char byte) noexcept { return is_digit(byte) || (byte >= 'a' && byte <= 'f'); }

bool is_random_token(ByteView text) noexcept {
  if (text.size() != token_text_size) return false;
  for (const char byte : text)
    if (!is_hexadecimal(byte)) return false;
  return true;
}

bool is_ordinal_token(ByteView text, bool negative_too) noexcept {
  if (text.size() < uuid_size + 2) return false;
  for (std::size_t index = 0; index < uuid_size; ++index) {
    const bool dash = index == 8 || index == 13 || index == 18 || index == 23;
    if (dash ? text[index] != '-' : !is_hexadecimal(text[index])) return false;
  }
  std::size_t at = uuid_size;
  if (text[at++] != ':') return false;
  if (negative_too && text[at] == '-') ++at;
  const std::size_t digits = text.size() - at;
  if (digits == 0 || digits > ordinal_digits_max) return false;
  for (; at < text.size(); ++at)
    if (!is_digit(text[at])) return false;
  return true;
}

}  // namespace

bool is_token_of(const LockKind& kind, ByteView text) noexcept {
  return kind.token == TokenSource::random ? is_random_token(text) : is_ordinal_token(text, kind.queues);
}

// ---- What is asked -----------------------------------------------------------------------------------------------

Status HoldRequest::begin(const LockKind& kind, Operation operation, Key key, ByteView token,
                          const LockTiming& timing) noexcept {
  // A key of several names stands for no key of the server's.
  if (!key.valid() || kind.name_at != nullptr || !is_token_of(kind, token) || !timing.valid() ||
      timing.effective_lease() > kind.lease_max)
    return Status::invalid_argument;
  kind_ = &kind;
  operation_ = operation;
  verdict_ = Verdict::unexpected;
  key_ = key;
  token_ = Token(token);
  timing_ = timing;
  return Status::ok;
}

Status HoldRequest::begin_renewal(const LockKind& kind, Key key, ByteView token, const LockTiming& timing) noexcept {
  return begin(kind, Operation::renew, key, token, timing);
}

Status HoldRequest::begin_release(const LockKind& kind, Key key, ByteView token) noexcept {
  return begin(kind, Operation::release, key, token, {});
}

// By text: one request, which no NOSCRIPT makes two of. It is compensated by nothing: what it may do late, it may do.
Status HoldRequest::put(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept {
  auto& request = static_cast<HoldRequest&>(self);
  Session& session = node.session();
  const Session::Place place = session.open(false);
  if (place.request == nullptr) return Status::too_many_requests;
  std::size_t size = 0;
  CommandLine line(place.space);
  request.kind_->fill(
      line, *request.kind_, request.operation_, RequestForm::by_text,
      {.key = request.key_, .token = &request.token_, .lease = whole_milliseconds(request.timing_.effective_lease())});
  if (line.finish(size) != Status::ok) return Status::too_many_requests;
  request.asked_at_ = now;
  *place.request = {.tag = tag, .deadline = now + node.config().request_timeout};
  session.commit(*place.request, size, now);
  return Status::ok;
}

// ---- What is answered ----------------------------------------------------------------------------------------------

bool HoldRequest::judge(Question& self, const RespValue& reply) noexcept {
  auto& request = static_cast<HoldRequest&>(self);
  LockFacts facts;
  request.verdict_ = request.kind_->decode(*request.kind_, request.operation_, reply, facts);
  return request.verdict_ != Verdict::unexpected && request.verdict_ != Verdict::busy;
}

bool HoldRequest::conclude(Question& self, Status& outcome) noexcept {
  const Verdict verdict = static_cast<HoldRequest&>(self).verdict_;
  if (outcome == Status::ok && verdict == Verdict::not_ours)
    outcome = Status::lock_lost;
  else if (outcome == Status::ok && verdict == Verdict::refused)
    outcome = Status::server_error;
  else if (outcome == Status::timed_out || outcome == Status::transport_closed || outcome == Status::cancelled)
    outcome = Status::outcome_unknown;  // It was sent, and what became of it nobody has said.
  return false;
}

}  // namespace holdfast

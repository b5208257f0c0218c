// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_inquiry.hpp"

#include "holdfast/core/node.hpp"

namespace holdfast {

Status AsyncInquiry::ask(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept {
  return node.ask(static_cast<AsyncInquiry&>(self).inquiry_.arguments(), tag, now);
}

bool AsyncInquiry::take(Question& self, const RespValue& reply) noexcept {
  return static_cast<AsyncInquiry&>(self).inquiry_.take(reply);
}

bool AsyncInquiry::asks_on(Question& self, Status& outcome) noexcept {
  return static_cast<AsyncInquiry&>(self).inquiry_.asks_on(outcome);
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/inspection.hpp"

#include "client_hot.hpp"

namespace holdfast {

// As many requests as it takes. `begun`: the inquiry's arguments are fit for it.
Status ClientBase::inquire(Inquiry& inquiry, Key key, Status begun) noexcept {
  if (begun != Status::ok) return begun;
  ClientBase* at = branched_ ? &brancher().table().lead(brancher(), key) : this;
  const auto ask = [this, &inquiry, &at]() noexcept {
    if (branched_) brancher().note_call(*at);
    return at->query(
        inquiry.arguments(),
        [](const RespValue& reply, void* self) noexcept { return static_cast<Inquiry*>(self)->take(reply); }, &inquiry);
  };
  Status outcome = Status::ok;
  do {
    outcome = ask();
    // Nothing ran, and it is asked again where the slot is.
    for (int moves = 0; outcome == Status::moved && branched_ && moves < redirections_max; ++moves) {
      ClientBase* const next = brancher().table().lead_on(brancher(), *at, key);
      if (next == nullptr) break;
      at = next;
      outcome = ask();
    }
  } while (inquiry.asks_on(outcome));
  return outcome;
}

Status inspect(ClientBase& client, Key key, LockInfo& info) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, key, inquiry.begin_info(key, info));
}

Status inspect_queue(ClientBase& client, Key key, LockQueue& queue) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, key, inquiry.begin_queue(key, queue));
}

Status force_release(ClientBase& client, Key key, bool& released) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, key, inquiry.begin_release(key, released));
}

Status fenced_set(ClientBase& client, Key resource, std::uint64_t fence, BytesArgument value, bool& written) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, resource, inquiry.begin_fenced_set(resource, fence, value, written));
}

}  // namespace holdfast

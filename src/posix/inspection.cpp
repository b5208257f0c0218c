// SPDX-License-Identifier: MIT
#include "holdfast/inspection.hpp"

#include "client_hot.hpp"

namespace holdfast {

// As many requests as it takes. `begun`: the inquiry's arguments are fit for it.
Status ClientBase::inquire(Inquiry& inquiry, Status begun) noexcept {
  if (begun != Status::ok) return begun;
  Status outcome = Status::ok;
  do {
    outcome = query(
        inquiry.arguments(),
        [](const RespValue& reply, void* self) noexcept { return static_cast<Inquiry*>(self)->take(reply); }, &inquiry);
  } while (inquiry.asks_on(outcome));
  return outcome;
}

Status inspect(ClientBase& client, Key key, LockInfo& info) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, inquiry.begin_info(key, info));
}

Status inspect_queue(ClientBase& client, Key key, LockQueue& queue) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, inquiry.begin_queue(key, queue));
}

Status force_release(ClientBase& client, Key key, bool& released) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, inquiry.begin_release(key, released));
}

Status fenced_set(ClientBase& client, Key resource, std::uint64_t fence, BytesArgument value, bool& written) noexcept {
  Inquiry inquiry;
  return client.inquire(inquiry, inquiry.begin_fenced_set(resource, fence, value, written));
}

}  // namespace holdfast

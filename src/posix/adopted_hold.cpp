// SPDX-License-Identifier: MIT
#include "holdfast/inspection.hpp"

#include "holdfast/core/hold_request.hpp"

namespace holdfast {

Status renew_adopted(ClientBase& client, const LockKind& kind, Key key, BytesArgument token, const LockTiming& timing,
                     Instant& valid_until) noexcept {
  HoldRequest request;
  Status status = request.begin_renewal(kind, key, token, timing);
  if (status == Status::ok) status = client.put(request);
  if (status == Status::ok) valid_until = request.valid_until();
  return status;
}

Status release_adopted(ClientBase& client, const LockKind& kind, Key key, BytesArgument token) noexcept {
  HoldRequest request;
  const Status status = request.begin_release(kind, key, token);
  return status == Status::ok ? client.put(request) : status;
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/fenced_set.hpp"

#include "client_hot.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "scripts.hpp"

namespace holdfast {

static_assert(seen_fence_prefix.size() <= name_prefix_size_max);
static_assert(scripts::fenced_set.text.size() + key_size_max + derived_name_size_max + 128 < transmit_size_max,
              "the EVAL must fit up to its value");

Status fenced_set(Client& client, Key resource, std::uint64_t fence, BytesArgument value, bool& written) noexcept {
  if (!resource.valid() || fence == 0 || fence > INT64_MAX) return Status::invalid_argument;
  if (value.view().size() > fenced_value_size_max) return Status::buffer_too_small;
  const DerivedName seen(seen_fence_prefix, resource);
  const Argument arguments[] = {"EVAL",       scripts::fenced_set.text,
                                "2",          resource.bytes(),
                                seen.bytes(), Argument(static_cast<std::int64_t>(fence)),
                                value.view()};
  return client.query(
      arguments,
      [](const RespValue& reply, void* out) noexcept {
        if (!reply.is_integer(0) && !reply.is_integer(1)) return false;
        *static_cast<bool*>(out) = reply.is_integer(1);
        return true;
      },
      &written);
}

}  // namespace holdfast

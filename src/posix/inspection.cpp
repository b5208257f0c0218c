// SPDX-License-Identifier: MIT
#include "holdfast/inspection.hpp"

#include "client_hot.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

constexpr std::uint32_t info_fields = 7;
static_assert(info_fields + 1 <= client_elements_max);
static_assert(scripts::lock_info.text.size() + key_size_max + derived_name_size_max + 128 < transmit_size_max &&
              scripts::force_release.text.size() + key_size_max + 2 * derived_name_size_max + 128 < transmit_size_max);

LockForm form_of(ByteView type, ByteView mode) noexcept {
  if (type == ByteView("none")) return LockForm::free;
  if (type == ByteView("string")) return LockForm::mutex;
  if (type != ByteView("hash")) return LockForm::other;
  if (mode == ByteView("read")) return LockForm::read;
  if (mode == ByteView("write")) return LockForm::write;
  return mode.empty() ? LockForm::reentrant : LockForm::other;
}

// True if that is the reply of lock_info.lua.
bool decode_info(const RespValue& reply, void* out) noexcept {
  if (reply.count() != info_fields) return false;
  const RespValue& remaining = reply.at(1);
  const RespValue& fields = reply.at(4);
  if (!remaining.is(RespKind::integer) || !fields.is(RespKind::integer) || fields.integer() < 0) return false;
  ByteView texts[info_fields];
  for (const std::uint32_t index : {0U, 2U, 3U, 5U, 6U}) {
    if (!reply.at(index).is(RespKind::bulk)) return false;
    texts[index] = reply.at(index).text();
  }
  LockInfo& info = *static_cast<LockInfo*>(out);
  info = LockInfo();
  info.form = form_of(texts[0], texts[5]);
  info.owner.assign(texts[2]);
  // Whatever another client wrote there: what is no number counts as none.
  (void)read_decimal(texts[3], UINT64_MAX / 2, info.count);
  (void)read_decimal(texts[6], UINT64_MAX / 2, info.fence);
  info.owners = static_cast<std::uint64_t>(fields.integer());
  if (info.form == LockForm::read) --info.owners;     // The mode.
  if (info.form == LockForm::write) info.owners = 1;  // What is beside the writer is its other side.
  constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
  if (remaining.integer() == -1 || remaining.integer() > milliseconds_max)
    info.remaining = Duration::max();
  else if (remaining.integer() > 0)
    info.remaining = std::chrono::milliseconds(remaining.integer());
  return true;
}

bool decode_released(const RespValue& reply, void* out) noexcept {
  if (!reply.is_integer(0) && !reply.is_integer(1)) return false;
  *static_cast<bool*>(out) = reply.is_integer(1);
  return true;
}

}  // namespace

const char* to_string(LockForm form) noexcept {
  switch (form) {
    case LockForm::free: return "free";
    case LockForm::mutex: return "mutex";
    case LockForm::reentrant: return "reentrant";
    case LockForm::read: return "read";
    case LockForm::write: return "write";
    case LockForm::other: return "other";
  }
  return "invalid";
}

Status inspect(Client& client, Key key, LockInfo& info) noexcept {
  if (!key.valid()) return Status::invalid_argument;
  const DerivedName counter(fence_prefix, key);
  return client.query({{"EVAL", scripts::lock_info.text, "2", key.bytes(), counter.bytes()}}, decode_info, &info);
}

Status force_release(Client& client, Key key, bool& released) noexcept {
  if (!key.valid()) return Status::invalid_argument;
  const DerivedName channel(channel_prefix, key);
  const DerivedName read_write_channel(read_write_channel_prefix, key);
  return client.query(
      {{"EVAL", scripts::force_release.text, "1", key.bytes(), channel.bytes(), read_write_channel.bytes()}},
      decode_released, &released);
}

}  // namespace holdfast

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
constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
static_assert(info_fields + 1 <= client_elements_max);
static_assert(scripts::lock_info.text.size() + key_size_max + derived_name_size_max + 128 < transmit_size_max &&
              scripts::semaphore_info.text.size() + key_size_max + 128 < transmit_size_max &&
              scripts::fair_queue.text.size() + key_size_max + 128 < transmit_size_max &&
              scripts::force_release.text.size() + key_size_max + 128 < transmit_size_max);
// Two numbers and a token of each.
static_assert(waiters_told_max * (20 + 1 + 5 + 1 + token_size_max + 1) <= bulk_size_max);

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
  if (remaining.integer() == -1 || remaining.integer() > milliseconds_max)
    info.remaining = Duration::max();
  else if (remaining.integer() > 0)
    info.remaining = std::chrono::milliseconds(remaining.integer());
  return true;
}

// True if that is the reply of semaphore_info.lua.
bool decode_permits(const RespValue& reply, void* out) noexcept {
  if (reply.count() != 4 || !reply.at(2).is(RespKind::bulk)) return false;
  for (const std::uint32_t index : {0U, 1U, 3U})
    if (!reply.at(index).is(RespKind::integer) || reply.at(index).integer() < 0) return false;
  if (reply.at(0).is_integer(0)) return true;
  LockInfo& info = *static_cast<LockInfo*>(out);
  info = LockInfo();
  info.form = LockForm::semaphore;
  info.owner.assign(reply.at(2).text());
  info.permits = static_cast<std::uint64_t>(reply.at(0).integer());
  info.owners = static_cast<std::uint64_t>(reply.at(1).integer());
  info.count = info.owners == 0 ? 0 : 1;
  const std::int64_t left = reply.at(3).integer();
  info.remaining = left > milliseconds_max ? Duration::max() : Duration(std::chrono::milliseconds(left));
  return true;
}

// Takes what stands before the first `end` off the text; all of it where there is none.
ByteView take_until(ByteView& text, char end) noexcept {
  const void* const found = std::memchr(text.data(), end, text.size());
  const std::size_t size =
      found == nullptr ? text.size() : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
  const ByteView part(text.data(), size);
  const std::size_t taken = size + (found == nullptr ? 0 : 1);
  text = {text.data() + taken, text.size() - taken};
  return part;
}

// True if that is the reply of fair_queue.lua.
bool decode_queue(const RespValue& reply, void* out) noexcept {
  if (reply.count() != 2 || !reply.at(0).is(RespKind::integer) || !reply.at(1).is(RespKind::bulk)) return false;
  if (reply.at(0).integer() < 0) return false;
  LockQueue& queue = *static_cast<LockQueue*>(out);
  queue = LockQueue();
  queue.waiting = static_cast<std::uint64_t>(reply.at(0).integer());
  for (ByteView text = reply.at(1).text(); !text.empty() && queue.told < waiters_told_max;) {
    ByteView line = take_until(text, '\n');
    std::uint64_t waited = 0;
    std::uint64_t heard = 0;
    if (!read_decimal(take_until(line, ' '), milliseconds_max, waited)) return false;
    const bool silent = !read_decimal(take_until(line, ' '), milliseconds_max, heard);
    LockQueue::Waiter& waiter = queue.waiters[queue.told++];
    waiter.waited = std::chrono::milliseconds(waited);
    waiter.heard = silent ? Duration::max() : Duration(std::chrono::milliseconds(heard));
    waiter.token.assign(line);
  }
  return true;
}

// A string that is a number: how many permits are free, perhaps.
bool may_be_semaphore(const LockInfo& info) noexcept {
  ByteView digits = info.owner.view();
  if (!digits.empty() && digits[0] == '-') digits = {digits.data() + 1, digits.size() - 1};
  std::uint64_t number = 0;
  return info.form == LockForm::mutex && read_decimal(digits, UINT64_MAX, number);
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
    case LockForm::semaphore: return "semaphore";
    case LockForm::other: return "other";
  }
  return "invalid";
}

Status inspect(Client& client, Key key, LockInfo& info) noexcept {
  if (!key.valid()) return Status::invalid_argument;
  const DerivedName counter(fence_prefix, key);
  LockInfo found;
  Status status =
      client.query({{"EVAL", scripts::lock_info.text, "2", key.bytes(), counter.bytes()}}, decode_info, &found);
  if (status == Status::ok && may_be_semaphore(found)) {
    status = client.query({{"EVAL", scripts::semaphore_info.text, "1", key.bytes()}}, decode_permits, &found);
    // What stands beside the key is another's, or not for this user: the key is a string.
    if (status == Status::wrong_type || status == Status::no_permission) status = Status::ok;
  }
  if (status == Status::ok) info = found;
  return status;
}

Status inspect_queue(Client& client, Key key, LockQueue& queue) noexcept {
  if (!key.valid()) return Status::invalid_argument;
  LockQueue found;
  const Status status = client.query({{"EVAL", scripts::fair_queue.text, "1", key.bytes()}}, decode_queue, &found);
  if (status == Status::ok) queue = found;
  return status;
}

Status force_release(Client& client, Key key, bool& released) noexcept {
  if (!key.valid()) return Status::invalid_argument;
  return client.query({{"EVAL", scripts::force_release.text, "1", key.bytes()}}, decode_released, &released);
}

}  // namespace holdfast

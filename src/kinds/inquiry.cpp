// SPDX-License-Identifier: MIT
#include "holdfast/core/inquiry.hpp"

#include "holdfast/proto/decimal.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

constexpr std::uint32_t info_fields = 7;
constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
static_assert(info_fields + 1 <= client_elements_max);
static_assert(seen_fence_prefix.size() <= name_prefix_size_max && fence_prefix.size() <= name_prefix_size_max);
static_assert(scripts::fenced_set.text.size() + key_size_max + derived_name_size_max + 128 < transmit_size_max,
              "the EVAL must fit up to its value");
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

// A string that is a number: how many permits are free, perhaps.
bool may_be_semaphore(const LockInfo& info) noexcept {
  ByteView digits = info.owner.view();
  if (!digits.empty() && digits[0] == '-') digits = {digits.data() + 1, digits.size() - 1};
  std::uint64_t number = 0;
  return info.form == LockForm::mutex && read_decimal(digits, UINT64_MAX, number);
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

// ---- What is asked -------------------------------------------------------------------------------------------------

Status Inquiry::begin(Decode decode, Key key, ByteView script, ByteView beside, void* out) noexcept {
  if (!key.valid()) return Status::invalid_argument;
  decode_ = decode;
  out_ = out;
  arguments_[0] = "EVAL";
  arguments_[1] = script;
  arguments_[2] = beside.empty() ? ByteView("1") : ByteView("2");
  arguments_[3] = key.bytes();
  count_ = 4;
  if (beside.empty()) return Status::ok;
  beside_ = DerivedName(beside, key);
  arguments_[count_++] = beside_.bytes();
  return Status::ok;
}

Status Inquiry::begin_info(Key key, LockInfo& info) noexcept {
  return begin(decode_info, key, scripts::lock_info.text, fence_prefix, &info);
}

Status Inquiry::begin_permits(Key key, LockInfo& info) noexcept {
  found_ = info;
  return begin(decode_permits, key, scripts::semaphore_info.text, {}, &info);
}

Status Inquiry::begin_queue(Key key, LockQueue& queue) noexcept {
  return begin(decode_queue, key, scripts::fair_queue.text, {}, &queue);
}

Status Inquiry::begin_release(Key key, bool& released) noexcept {
  return begin(decode_yes_or_no, key, scripts::force_release.text, {}, &released);
}

Status Inquiry::begin_fenced_set(Key resource, std::uint64_t fence, ByteView value, bool& written) noexcept {
  if (fence == 0 || fence > INT64_MAX) return Status::invalid_argument;
  const Status status = begin(decode_yes_or_no, resource, scripts::fenced_set.text, seen_fence_prefix, &written);
  if (status != Status::ok) return status;
  if (value.size() > fenced_value_size_max) return Status::buffer_too_small;
  arguments_[count_++] = Argument(static_cast<std::int64_t>(fence));
  arguments_[count_++] = value;
  return Status::ok;
}

// ---- What is answered ------------------------------------------------------------------------------------------------

bool Inquiry::asks_on(Status& outcome) noexcept {
  if (decode_ == decode_info && outcome == Status::ok && may_be_semaphore(found_)) {
    (void)begin(decode_permits, Key(arguments_[3].bytes()), scripts::semaphore_info.text, {}, out_);
    return true;
  }
  // What stands beside the key is another's, or not for this user: the key is a string.
  if (decode_ == decode_permits && (outcome == Status::wrong_type || outcome == Status::no_permission))
    outcome = Status::ok;
  if (outcome == Status::ok && (decode_ == decode_info || decode_ == decode_permits))
    *static_cast<LockInfo*>(out_) = found_;
  return false;
}

// True if that is the reply of lock_info.lua.
bool Inquiry::decode_info(Inquiry& self, const RespValue& reply) noexcept {
  if (reply.count() != info_fields) return false;
  const RespValue& remaining = reply.at(1);
  const RespValue& fields = reply.at(4);
  if (!remaining.is(RespKind::integer) || !fields.is(RespKind::integer) || fields.integer() < 0) return false;
  ByteView texts[info_fields];
  for (const std::uint32_t index : {0U, 2U, 3U, 5U, 6U}) {
    if (!reply.at(index).is(RespKind::bulk)) return false;
    texts[index] = reply.at(index).text();
  }
  LockInfo& info = self.found_;
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
bool Inquiry::decode_permits(Inquiry& self, const RespValue& reply) noexcept {
  if (reply.count() != 4 || !reply.at(2).is(RespKind::bulk)) return false;
  for (const std::uint32_t index : {0U, 1U, 3U})
    if (!reply.at(index).is(RespKind::integer) || reply.at(index).integer() < 0) return false;
  if (reply.at(0).is_integer(0)) return true;
  LockInfo& info = self.found_;
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

// True if that is the reply of fair_queue.lua.
bool Inquiry::decode_queue(Inquiry& self, const RespValue& reply) noexcept {
  if (reply.count() != 2 || !reply.at(0).is(RespKind::integer) || !reply.at(1).is(RespKind::bulk)) return false;
  if (reply.at(0).integer() < 0) return false;
  LockQueue queue;
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
  *static_cast<LockQueue*>(self.out_) = queue;
  return true;
}

bool Inquiry::decode_yes_or_no(Inquiry& self, const RespValue& reply) noexcept {
  if (!reply.is_integer(0) && !reply.is_integer(1)) return false;
  *static_cast<bool*>(self.out_) = reply.is_integer(1);
  return true;
}

}  // namespace holdfast

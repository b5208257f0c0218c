// SPDX-License-Identifier: MIT
#include "lock_sight.hpp"

#include <algorithm>
#include <string_view>

#include "holdfast/limits.hpp"
#include "holdfast/proto/decimal.hpp"
#include "messages.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t uuid_size = 36;
constexpr std::size_t short_size = 8;       // The first group of a UUID.
constexpr std::size_t short_text_max = 24;  // Of what has no form that is known.
constexpr std::string_view write_end = ":write";
constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;

bool is_hex(char byte) noexcept {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
bool is_base64(char byte) noexcept {
  return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '+' || byte == '/' ||
         byte == '-' || byte == '_';
}
bool all_of(std::string_view text, bool (*is)(char) noexcept) { return std::all_of(text.begin(), text.end(), is); }

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != uuid_size) return false;
  for (std::size_t at = 0; at < uuid_size; ++at) {
    const bool dash = at == 8 || at == 13 || at == 18 || at == 23;
    if (dash ? text[at] != '-' : !is_hex(text[at])) return false;
  }
  return true;
}

// UUID:ORDINAL, and UUID:-ORDINAL of a lock that lingers.
bool is_owner_field(std::string_view text) noexcept {
  if (text.size() < uuid_size + 2 || text.size() > token_size_max) return false;
  if (!is_uuid(text.substr(0, uuid_size)) || text[uuid_size] != ':') return false;
  std::string_view ordinal = text.substr(uuid_size + 1);
  if (ordinal.front() == '-') ordinal.remove_prefix(1);
  return !ordinal.empty() && all_of(ordinal, is_digit);
}

// 128 random bits as the clients write them: 32 hexadecimal digits (holdfast, redis-py, node-redlock), base64 with its end
// (redsync) or without, a UUID.
bool is_token(std::string_view text) noexcept {
  if (text.size() == token_text_size) return all_of(text, is_hex);
  if (text.size() == 24) return text.substr(22) == "==" && all_of(text.substr(0, 22), is_base64);
  if (text.size() == 22) return all_of(text, is_base64);
  return is_uuid(text);
}

bool read_number(std::string_view text, std::uint64_t& number) noexcept {
  return read_decimal(ByteView(text), UINT64_MAX / 2, number);
}

Duration duration_of(std::int64_t milliseconds) noexcept {
  if (milliseconds == -1 || milliseconds > milliseconds_max) return Duration::max();
  return std::chrono::milliseconds(std::max<std::int64_t>(milliseconds, 0));
}

bool begins_with(std::string_view text, std::string_view prefix) noexcept {
  return text.substr(0, prefix.size()) == prefix;
}

// What stands beside locks, and is none.
bool is_beside(std::string_view name) noexcept {
  for (const std::string_view prefix : {"redisson_lock_token:", "holdfast_fence:", "holdfast_queue:", "holdfast_beat:",
                                        "redisson_lock_timeout:", "redisson_lock_queue:", "redisson_unlock_latch:"})
    if (begins_with(name, prefix)) return true;
  return name.find(":rwlock_timeout:") != std::string_view::npos;
}

std::optional<LockSight> string_sight(const KeyFacts& facts, Chosen chosen, LockSight sight) {
  std::uint64_t number = 0;
  std::string_view digits = facts.text;
  if (!digits.empty() && digits.front() == '-') digits.remove_prefix(1);
  const bool is_number = facts.size == facts.text.size() && read_number(digits, number);
  if (is_number && (facts.taken != 0 || (chosen == Chosen::by_name && facts.remaining == -1))) {
    // Nobody can tell the number of an idle semaphore from another one: where the user names it, it is one.
    sight.form = LockForm::semaphore;
    sight.owners = facts.taken;
    const bool owed = facts.text.front() == '-';  // More are taken than there are.
    sight.permits = owed ? facts.taken - std::min(facts.taken, number) : number + facts.taken;
    for (const auto& [token, left] : facts.holders) {
      std::uint64_t milliseconds = 0;
      (void)read_number(left, milliseconds);
      sight.holders.push_back({.id = token, .remaining = duration_of(static_cast<std::int64_t>(milliseconds))});
    }
    return sight;
  }
  const bool shaped = facts.size == facts.text.size() && is_token(facts.text);
  if (chosen != Chosen::by_name && is_number && facts.remaining == -1) return std::nullopt;  // A counter.
  if (chosen == Chosen::by_shape && !shaped) return std::nullopt;
  sight.form = LockForm::mutex;
  sight.owners = 1;
  sight.holders.push_back({.id = facts.text, .remaining = duration_of(facts.remaining)});
  return sight;
}

std::optional<LockSight> hash_sight(const KeyFacts& facts, Chosen chosen, LockSight sight) {
  const bool read = facts.text == "read";
  const bool write = facts.text == "write";
  if (!facts.text.empty() && !read && !write) return std::nullopt;
  sight.form = read ? LockForm::read : write ? LockForm::write : LockForm::reentrant;
  for (const auto& [field, count] : facts.holders) {
    std::string_view id = field;
    if (write && id.size() > write_end.size() && id.substr(id.size() - write_end.size()) == write_end)
      id.remove_suffix(write_end.size());
    LockSight::Holder holder = {.id = std::string(id), .count = 0, .remaining = duration_of(facts.remaining)};
    const bool counted = read_number(count, holder.count);
    if (chosen == Chosen::by_shape && (!counted || !is_owner_field(id))) return std::nullopt;
    sight.holders.push_back(std::move(holder));
  }
  sight.owners = read ? facts.size - std::min<std::uint64_t>(facts.size, 1) : write ? sight.holders.size() : facts.size;
  // Of very many readers none is told.
  const bool untold = read && facts.remaining >= 0 && facts.size > 2;
  if (sight.holders.empty() && chosen == Chosen::by_shape && !untold) return std::nullopt;
  return sight;
}

}  // namespace

std::optional<LockSight> sight_of(const KeyFacts& facts, Chosen chosen) {
  LockSight sight;
  sight.name = facts.name;
  sight.waiting = facts.waiting;
  sight.waiters = facts.waiters;
  if (facts.name.empty() || facts.name.size() > key_size_max) return std::nullopt;
  if (chosen != Chosen::by_name && is_beside(facts.name)) return std::nullopt;
  if (facts.type == "none" || facts.remaining == -2) return sight;
  std::optional<LockSight> found;
  if (facts.type == "string") found = string_sight(facts, chosen, sight);
  if (facts.type == "hash") found = hash_sight(facts, chosen, sight);
  if (!found && chosen == Chosen::by_name) {
    sight.form = LockForm::other;
    return sight;
  }
  return found;
}

bool is_exclusive(LockForm form) noexcept {
  switch (form) {
    case LockForm::mutex:
    case LockForm::reentrant:
    case LockForm::write: return true;
    case LockForm::read:
    case LockForm::semaphore:
    case LockForm::free:
    case LockForm::other: return false;
  }
  return false;
}

std::string short_holder(const std::string& id) {
  if (is_owner_field(id)) return id.substr(0, short_size) + ".." + id.substr(uuid_size);
  if (is_token(id)) return escaped(std::string_view(id).substr(0, short_size)) + "..";
  std::string text = escaped(id);
  if (text.size() > short_text_max) text = text.substr(0, short_text_max - 2) + "..";
  return text;
}

std::string client_of(const std::string& id) { return is_owner_field(id) ? id.substr(0, uuid_size) : id; }

}  // namespace holdfast::cli

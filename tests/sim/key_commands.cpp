// SPDX-License-Identifier: MIT
//
// Keys of any type: whether they are there, and for how long.
#include <limits>

#include "server_state.hpp"

namespace holdfast::sim {

namespace {

using Effect = ModelRedis::EffectKind;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

Keyspace& keys_of(const Call& call) { return call.server.databases[static_cast<std::size_t>(call.database)]; }

void del(Call& call) {
  std::int64_t deleted = 0;
  for (std::size_t index = 1; index < call.count(); ++index) {
    if (call.find(call[index]) == nullptr) continue;
    call.erase(call[index]);
    ++deleted;
  }
  call.reply.integer(deleted);
}

void exists(Call& call) {
  std::int64_t found = 0;
  for (std::size_t index = 1; index < call.count(); ++index)
    if (call.find(call[index]) != nullptr) ++found;
  call.reply.integer(found);
}

void type(Call& call) {
  const Entry* const entry = call.find(call[1]);
  call.reply.status(entry == nullptr ? "none" : to_string(entry->type()));
}

void expire_at(Call& call, bool seconds, std::int64_t base_ms) {
  bool nx = false, xx = false, gt = false, lt = false;
  for (std::size_t index = 3; index < call.count(); ++index) {
    if (call.is(index, "nx"))
      nx = true;
    else if (call.is(index, "xx"))
      xx = true;
    else if (call.is(index, "gt"))
      gt = true;
    else if (call.is(index, "lt"))
      lt = true;
    else
      return call.reply.error("ERR Unsupported option " + std::string(c_string(call[index])));
  }
  if (nx && (xx || gt || lt))
    return call.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
  if (gt && lt) return call.reply.error("ERR GT and LT options at the same time are not compatible");
  std::int64_t when = 0;
  if (!call.read(call[2], when)) return;
  if (seconds) {
    if (when > largest / 1000 || when < smallest / 1000) return call.refuse_expire_time();
    when *= 1000;
  }
  if (when > largest - base_ms) return call.refuse_expire_time();
  when += base_ms;
  Entry* const entry = call.find(call[1]);
  if (entry == nullptr) return call.reply.integer(0);
  const std::int64_t current = entry->expiry_ms;
  const bool refused = (nx && current != no_expiry) || (xx && current == no_expiry) ||
                       (gt && (when <= current || current == no_expiry)) ||
                       (lt && current != no_expiry && when >= current);
  if (refused) return call.reply.integer(0);
  if (when <= call.server.now_ms() && !call.server.faults.replica && !call.server.faults.loading) {
    call.erase(call[1]);
  } else {
    keys_of(call).set_expiry(call[1], *entry, when);
    call.tell(Effect::expiry_changed, call[1]);
  }
  call.reply.integer(1);
}
void expire(Call& call) { expire_at(call, true, call.server.now_ms()); }
void pexpire(Call& call) { expire_at(call, false, call.server.now_ms()); }
void expireat(Call& call) { expire_at(call, true, 0); }
void pexpireat(Call& call) { expire_at(call, false, 0); }

void tell_expiry(Call& call, bool seconds, bool absolute) {
  const Entry* const entry = call.find(call[1]);
  if (entry == nullptr) return call.reply.integer(-2);
  if (entry->expiry_ms == no_expiry) return call.reply.integer(-1);
  const std::int64_t left =
      std::max<std::int64_t>(absolute ? entry->expiry_ms : entry->expiry_ms - call.server.now_ms(), 0);
  // To the nearest second.
  const auto rounded = static_cast<std::int64_t>((static_cast<std::uint64_t>(left) + 500) / 1000);
  call.reply.integer(seconds ? rounded : left);
}
void ttl(Call& call) { tell_expiry(call, true, false); }
void pttl(Call& call) { tell_expiry(call, false, false); }
void expiretime(Call& call) { tell_expiry(call, true, true); }
void pexpiretime(Call& call) { tell_expiry(call, false, true); }

void persist(Call& call) {
  Entry* const entry = call.find(call[1]);
  if (entry == nullptr || entry->expiry_ms == no_expiry) return call.reply.integer(0);
  keys_of(call).set_expiry(call[1], *entry, no_expiry);
  call.tell(Effect::expiry_changed, call[1]);
  call.reply.integer(1);
}

// A glob pattern with *, ? and escapes: what KEYS and PUBSUB CHANNELS are asked with here.
bool matches(std::string_view pattern, std::string_view text) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      for (std::size_t skip = 0; skip <= text.size(); ++skip)
        if (matches(pattern.substr(1), text.substr(skip))) return true;
      return false;
    }
    if (text.empty()) return false;
    if (pattern[0] == '\\' && pattern.size() > 1)
      pattern.remove_prefix(1);
    else if (pattern[0] == '?') {
      pattern.remove_prefix(1);
      text.remove_prefix(1);
      continue;
    }
    if (pattern[0] != text[0]) return false;
    pattern.remove_prefix(1);
    text.remove_prefix(1);
  }
  return text.empty();
}

void keys(Call& call) {
  std::vector<std::string> found;
  for (std::string& key : keys_of(call).keys())
    if (matches(call[1], key) && call.find(key) != nullptr) found.push_back(std::move(key));
  call.reply.array(found.size());
  for (const std::string& key : found) call.reply.bulk(key);
}

void dbsize(Call& call) { call.reply.integer(static_cast<std::int64_t>(keys_of(call).size())); }

bool flush_mode(Call& call) {
  if (call.count() == 1 || (call.count() == 2 && (call.is(1, "sync") || call.is(1, "async")))) return true;
  call.refuse_syntax();
  return false;
}
void flush_one(Call& call, int database) {
  Keyspace& flushed = call.server.databases[static_cast<std::size_t>(database)];
  if (flushed.size() == 0) return;
  flushed.clear();
  call.server.tell({.kind = Effect::flushed,
                    .connection = call.connection.id,
                    .command = call.command.full_name,
                    .request = call.server.request,
                    .database = database});
}
void flushdb(Call& call) {
  if (!flush_mode(call)) return;
  flush_one(call, call.database);
  call.reply.ok();
}
void flushall(Call& call) {
  if (!flush_mode(call)) return;
  for (int database = 0; database < database_count; ++database) flush_one(call, database);
  call.reply.ok();
}

constexpr Command all[] = {
    {"del", -2, flag_write, del},
    {"unlink", -2, flag_write, del},
    {"exists", -2, 0, exists},
    {"type", 2, 0, type},
    {"expire", -3, flag_write, expire},
    {"pexpire", -3, flag_write, pexpire},
    {"expireat", -3, flag_write, expireat},
    {"pexpireat", -3, flag_write, pexpireat},
    {"ttl", 2, 0, ttl},
    {"pttl", 2, 0, pttl},
    {"expiretime", 2, 0, expiretime},
    {"pexpiretime", 2, 0, pexpiretime},
    {"persist", 2, flag_write, persist},
    {"keys", 2, 0, keys},
    {"dbsize", 1, 0, dbsize},
    {"flushdb", -1, flag_write, flushdb},
    {"flushall", -1, flag_write, flushall},
};

}  // namespace

std::span<const Command> key_commands() noexcept { return all; }

}  // namespace holdfast::sim

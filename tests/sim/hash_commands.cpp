// SPDX-License-Identifier: MIT
//
// Hashes: reentrant locks, an owner to a count.
#include <limits>

#include "resp_request_parser.hpp"
#include "server_state.hpp"

namespace holdfast::sim {

namespace {

using Effect = ModelRedis::EffectKind;

void set_field(Call& call, HashValue& hash, std::string_view field, std::string_view value) {
  hash.set(field, value);
  call.tell(Effect::field_set, call[1], field, value);
}

// HMSET is HSET with an older reply.
void set_fields(Call& call, bool count_them) {
  if (call.count() % 2 == 1) return call.refuse_arity();
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash, true)) return;
  std::int64_t created = 0;
  for (std::size_t index = 2; index < call.count(); index += 2) {
    if (hash->find(call[index]) == nullptr) ++created;
    set_field(call, *hash, call[index], call[index + 1]);
  }
  if (count_them)
    call.reply.integer(created);
  else
    call.reply.ok();
}
void hset(Call& call) { set_fields(call, true); }
void hmset(Call& call) { set_fields(call, false); }

void hsetnx(Call& call) {
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash, true)) return;
  if (hash->find(call[2]) != nullptr) return call.reply.integer(0);
  set_field(call, *hash, call[2], call[3]);
  call.reply.integer(1);
}

void reply_field(Call& call, const HashValue* hash, std::string_view field) {
  const std::string* const value = hash == nullptr ? nullptr : hash->find(field);
  if (value == nullptr)
    call.reply.null_bulk();
  else
    call.reply.bulk(*value);
}
void hget(Call& call) {
  HashValue* hash = nullptr;
  if (call.get(call[1], hash)) reply_field(call, hash, call[2]);
}
void hmget(Call& call) {
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash)) return;
  call.reply.array(call.count() - 2);
  for (std::size_t index = 2; index < call.count(); ++index) reply_field(call, hash, call[index]);
}

void hdel(Call& call) {
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash)) return;
  std::int64_t deleted = 0;
  for (std::size_t index = 2; hash != nullptr && index < call.count(); ++index)
    if (hash->erase(call[index])) {
      call.tell(Effect::field_deleted, call[1], call[index]);
      ++deleted;
    }
  call.erase_if_empty(call[1]);
  call.reply.integer(deleted);
}

void hexists(Call& call) {
  HashValue* hash = nullptr;
  if (call.get(call[1], hash)) call.reply.integer(hash != nullptr && hash->find(call[2]) != nullptr ? 1 : 0);
}

void hlen(Call& call) {
  HashValue* hash = nullptr;
  if (call.get(call[1], hash)) call.reply.integer(static_cast<std::int64_t>(hash == nullptr ? 0 : hash->fields.size()));
}

void hstrlen(Call& call) {
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash)) return;
  const std::string* const value = hash == nullptr ? nullptr : hash->find(call[2]);
  call.reply.integer(static_cast<std::int64_t>(value == nullptr ? 0 : value->size()));
}

void reply_all(Call& call, bool names, bool values) {
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash)) return;
  const std::size_t size = hash == nullptr ? 0 : hash->fields.size();
  call.reply.array(names && values ? 2 * size : size);
  if (hash == nullptr) return;
  for (const auto& [name, value] : hash->fields) {
    if (names) call.reply.bulk(name);
    if (values) call.reply.bulk(value);
  }
}
void hgetall(Call& call) { reply_all(call, true, true); }
void hkeys(Call& call) { reply_all(call, true, false); }
void hvals(Call& call) { reply_all(call, false, true); }

void hincrby(Call& call) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  std::int64_t step = 0;
  if (!call.read(call[3], step)) return;
  HashValue* hash = nullptr;
  if (!call.get(call[1], hash, true)) return;
  std::int64_t number = 0;
  if (const std::string* const value = hash->find(call[2]); value != nullptr && !read_integer(*value, number))
    return call.reply.error("ERR hash value is not an integer");
  if ((step < 0 && number < 0 && step < smallest - number) || (step > 0 && number > 0 && step > largest - number))
    return call.reply.error("ERR increment or decrement would overflow");
  number += step;
  set_field(call, *hash, call[2], std::to_string(number));
  call.reply.integer(number);
}

constexpr unsigned writes = flag_write | flag_deny_oom;
constexpr Command all[] = {
    {"hset", -4, writes, hset},      {"hmset", -4, writes, hmset},
    {"hsetnx", 4, writes, hsetnx},   {"hget", 3, 0, hget},
    {"hmget", -3, 0, hmget},         {"hdel", -3, flag_write, hdel},
    {"hexists", 3, 0, hexists},      {"hlen", 2, 0, hlen},
    {"hstrlen", 3, 0, hstrlen},      {"hgetall", 2, 0, hgetall},
    {"hkeys", 2, 0, hkeys},          {"hvals", 2, 0, hvals},
    {"hincrby", 4, writes, hincrby},
};

}  // namespace

std::span<const Command> hash_commands() noexcept { return all; }

}  // namespace holdfast::sim

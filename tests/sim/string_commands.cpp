// SPDX-License-Identifier: MIT
//
// Strings: tokens, counters of fences, permits.
#include <limits>

#include "server_state.hpp"

namespace holdfast::sim {

namespace {

using Effect = ModelRedis::EffectKind;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

Keyspace& keys_of(const Call& call) { return call.server.databases[static_cast<std::size_t>(call.database)]; }

// The key becomes this string, whatever it was before.
void store(Call& call, std::string_view key, std::string_view value, std::int64_t expiry_ms, bool keep_expiry) {
  Entry* entry = call.find(key);
  if (entry == nullptr) entry = &keys_of(call).create(key);
  if (auto* const text = std::get_if<StringValue>(&entry->value); text != nullptr)
    text->assign(value);
  else
    entry->value = StringValue(value);
  if (!keep_expiry && entry->expiry_ms != expiry_ms) keys_of(call).set_expiry(key, *entry, expiry_ms);
  call.tell(Effect::set, key, {}, value);
}

// A lifetime or a point in time becomes a point in time. False: refused.
bool read_expiry(Call& call, std::string_view text, bool seconds, bool absolute, std::int64_t& expiry_ms) {
  std::int64_t number = 0;
  if (!call.read(text, number)) return false;
  if (number <= 0 || (seconds && number > largest / 1000)) {
    call.refuse_expire_time();
    return false;
  }
  if (seconds) number *= 1000;
  if (!absolute) {
    if (number > largest - call.server.now_ms()) {
      call.refuse_expire_time();
      return false;
    }
    number += call.server.now_ms();
  }
  expiry_ms = number;
  return true;
}

// Replies with the value, or null. False: another type, refused.
bool reply_value(Call& call) {
  StringValue* value = nullptr;
  if (!call.get(call[1], value)) return false;
  if (value == nullptr)
    call.reply.null_bulk();
  else
    call.reply.bulk(*value);
  return true;
}

struct SetOptions {
  bool absent = false;   // NX
  bool present = false;  // XX
  bool get = false;
  bool keep = false;
  char expiry = 0;  // 'e' EX, 'p' PX, 'E' EXAT, 'P' PXAT
  std::string_view expiry_text;
  bool compare = false;  // IFEQ
  std::string_view comparand;
};

bool read_set_options(Call& call, SetOptions& options) {
  const bool can_compare = call.server.settings.kind != ServerKind::redis_7_0;
  for (std::size_t index = 3; index < call.count(); ++index) {
    const bool last = index + 1 == call.count();
    const auto takes_time = [&](std::string_view name, char kind) {
      if (!call.is(index, name) || options.keep || last) return false;
      if (options.expiry != 0 && options.expiry != kind) return false;
      options.expiry = kind;
      options.expiry_text = call[++index];
      return true;
    };
    if (call.is(index, "nx") && !options.present && !options.compare) {
      options.absent = true;
    } else if (call.is(index, "xx") && !options.absent && !options.compare) {
      options.present = true;
    } else if (call.is(index, "get")) {
      options.get = true;
    } else if (call.is(index, "keepttl") && options.expiry == 0) {
      options.keep = true;
    } else if (can_compare && call.is(index, "ifeq") && !options.absent && !options.present && !options.compare &&
               !last) {
      options.compare = true;
      options.comparand = call[++index];
    } else if (!takes_time("ex", 'e') && !takes_time("px", 'p') && !takes_time("exat", 'E') &&
               !takes_time("pxat", 'P')) {
      call.refuse_syntax();
      return false;
    }
  }
  return true;
}

void set(Call& call) {
  SetOptions options;
  if (!read_set_options(call, options)) return;
  std::int64_t expiry_ms = no_expiry;
  if (options.expiry != 0 && !read_expiry(call, options.expiry_text, options.expiry == 'e' || options.expiry == 'E',
                                          options.expiry == 'E' || options.expiry == 'P', expiry_ms))
    return;
  if (options.get && !reply_value(call)) return;
  const Entry* const entry = call.find(call[1]);
  bool refused = (options.absent && entry != nullptr) || (options.present && entry == nullptr);
  if (options.compare) {
    const auto* const value = entry == nullptr ? nullptr : std::get_if<StringValue>(&entry->value);
    if (entry != nullptr && value == nullptr) {
      if (!options.get) call.refuse_type();
      return;
    }
    refused = value == nullptr || *value != options.comparand;
  }
  if (refused) {
    if (!options.get) call.reply.null_bulk();
    return;
  }
  store(call, call[1], call[2], expiry_ms, options.keep);
  if (!options.get) call.reply.ok();
}

void setnx(Call& call) {
  if (call.find(call[1]) != nullptr) return call.reply.integer(0);
  store(call, call[1], call[2], no_expiry, false);
  call.reply.integer(1);
}

void set_for(Call& call, bool seconds) {
  std::int64_t expiry_ms = no_expiry;
  if (!read_expiry(call, call[2], seconds, false, expiry_ms)) return;
  store(call, call[1], call[3], expiry_ms, false);
  call.reply.ok();
}
void setex(Call& call) { set_for(call, true); }
void psetex(Call& call) { set_for(call, false); }

void get(Call& call) { static_cast<void>(reply_value(call)); }

void getset(Call& call) {
  if (!reply_value(call)) return;
  store(call, call[1], call[2], no_expiry, false);
}

void getdel(Call& call) {
  if (reply_value(call)) call.erase(call[1]);
}

void mget(Call& call) {
  call.reply.array(call.count() - 1);
  for (std::size_t index = 1; index < call.count(); ++index) {
    const Entry* const entry = call.find(call[index]);
    const auto* const value = entry == nullptr ? nullptr : std::get_if<StringValue>(&entry->value);
    if (value == nullptr)
      call.reply.null_bulk();
    else
      call.reply.bulk(*value);
  }
}

void getrange(Call& call) {
  std::int64_t start = 0;
  std::int64_t end = 0;
  if (!call.read(call[2], start) || !call.read(call[3], end)) return;
  StringValue* value = nullptr;
  if (!call.get(call[1], value)) return;
  const auto size = static_cast<std::int64_t>(value == nullptr ? 0 : value->size());
  if (start < 0 && end < 0 && start > end) return call.reply.bulk("");
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::max<std::int64_t>(start, 0);
  end = std::min(std::max<std::int64_t>(end, 0), size - 1);
  if (size == 0 || start > end) return call.reply.bulk("");
  call.reply.bulk(
      std::string_view(*value).substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start + 1)));
}

void strlen_of(Call& call) {
  StringValue* value = nullptr;
  if (!call.get(call[1], value)) return;
  call.reply.integer(static_cast<std::int64_t>(value == nullptr ? 0 : value->size()));
}

void append(Call& call) {
  StringValue* value = nullptr;
  if (!call.get(call[1], value, true)) return;
  value->append(call[2]);
  call.tell(Effect::set, call[1], {}, *value);
  call.reply.integer(static_cast<std::int64_t>(value->size()));
}

void add(Call& call, std::int64_t step) {
  StringValue* value = nullptr;
  if (!call.get(call[1], value)) return;
  std::int64_t number = 0;
  if (value != nullptr && !call.read(*value, number)) return;
  if ((step < 0 && number < 0 && step < smallest - number) || (step > 0 && number > 0 && step > largest - number))
    return call.reply.error("ERR increment or decrement would overflow");
  number += step;
  store(call, call[1], std::to_string(number), no_expiry, true);
  call.reply.integer(number);
}
void incr(Call& call) { add(call, 1); }
void decr(Call& call) { add(call, -1); }
void incrby(Call& call) {
  std::int64_t step = 0;
  if (call.read(call[2], step)) add(call, step);
}
void decrby(Call& call) {
  std::int64_t step = 0;
  if (!call.read(call[2], step)) return;
  if (step == smallest) return call.reply.error("ERR decrement would overflow");
  add(call, -step);
}

// Redis from 8.4.
void delex(Call& call) {
  if (call.count() != 2 && call.count() != 4) return call.refuse_arity();
  const Entry* const entry = call.find(call[1]);
  if (entry == nullptr) return call.reply.integer(0);
  if (call.count() == 4) {
    const auto* const value = std::get_if<StringValue>(&entry->value);
    if (value == nullptr) return call.reply.error("ERR Key should be of string type if conditions are specified");
    const bool equal = call.is(2, "ifeq");
    if (!equal && !call.is(2, "ifne"))
      return call.reply.error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    if ((*value == call[3]) != equal) return call.reply.integer(0);
  }
  call.erase(call[1]);
  call.reply.integer(1);
}

// Valkey from 9.0.
void delifeq(Call& call) {
  StringValue* value = nullptr;
  if (!call.get(call[1], value)) return;
  if (value == nullptr || *value != call[2]) return call.reply.integer(0);
  call.erase(call[1]);
  call.reply.integer(1);
}

constexpr unsigned writes = flag_write | flag_deny_oom;
constexpr Command all[] = {
    {"set", -3, writes, set},          {"setnx", 3, writes, setnx}, {"setex", 4, writes, setex},
    {"psetex", 4, writes, psetex},     {"get", 2, 0, get},          {"getset", 3, writes, getset},
    {"getdel", 2, flag_write, getdel}, {"mget", -2, 0, mget},       {"getrange", 4, 0, getrange},
    {"substr", 4, 0, getrange},        {"strlen", 2, 0, strlen_of}, {"append", 3, writes, append},
    {"incr", 2, writes, incr},         {"decr", 2, writes, decr},   {"incrby", 3, writes, incrby},
    {"decrby", 3, writes, decrby},
};
constexpr Command conditional[] = {
    {"delex", -2, flag_write, delex},
    {"delifeq", 3, flag_write, delifeq},
};

}  // namespace

std::span<const Command> string_commands() noexcept { return all; }
std::span<const Command> conditional_commands() noexcept { return conditional; }

}  // namespace holdfast::sim

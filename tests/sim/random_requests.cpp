// SPDX-License-Identifier: MIT
#include "random_requests.hpp"

#include "scripts.hpp"

namespace holdfast::sim {

namespace {

std::string text_of(const Script& script) { return std::string(script.text.string_view()); }
std::string sha_of(const Script& script) { return std::string(script.sha.bytes().string_view()); }

std::string mixed_case(std::string text, RandomSource& random) {
  if (random.one_in(4))
    for (char& byte : text)
      if (byte >= 'a' && byte <= 'z' && random.one_in(2)) byte = static_cast<char>(byte - 'a' + 'A');
  return text;
}

// As Lua reads it back.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < ' ' || code > '~' || byte == '\'' || byte == '\\') {
      result += '\\';
      const std::string digits = std::to_string(static_cast<unsigned>(code));
      result += std::string(3 - digits.size(), '0') + digits;
    } else {
      result += byte;
    }
  }
  return result + "'";
}

}  // namespace

std::string RandomRequests::key() {
  return random_.pick<std::string>({"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "", "key with a blank"});
}

std::string RandomRequests::channel() { return random_.pick<std::string>({"c0", "c1", "c2", "c3", ""}); }

std::string RandomRequests::value() {
  if (random_.one_in(40)) return std::string(100 + random_.below(300), 'v');
  return short_value();
}

// Of a list: often twice the same.
std::string RandomRequests::element() { return random_.one_in(3) ? value() : random_.pick<std::string>({"a", "b"}); }

// Small enough that a hash or a sorted set of Redis keeps its order.
std::string RandomRequests::short_value() {
  switch (random_.below(14)) {
    case 0: return "";
    case 1: return number();
    case 2: return score();
    case 3: return std::string("zero\0byte", 9);
    case 4: return "line\r\nend";
    case 5: return "\xff\xfe";
    case 6: return "a blank";
    default: return random_.pick<std::string>({"a", "b", "token", "1", "0", "2", "mode", "-1"});
  }
}

std::string RandomRequests::number() {
  return random_.pick<std::string>({"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "-2",
                                    "3",
                                    "10",
                                    "100",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "9223372036854775808",
                                    "4611686018427387904",
                                    "-4611686018427387905",
                                    "99999999999999999999999",
                                    "01",
                                    "+1",
                                    " 1",
                                    "1 ",
                                    "-0",
                                    "1.5",
                                    "abc",
                                    "",
                                    "0x10",
                                    "-"});
}

// Far away and never twice the same, past, or wrong: what the clock does meanwhile must not decide.
std::string RandomRequests::lifetime(bool seconds) {
  if (random_.one_in(3)) {
    if (random_.one_in(2))
      return random_.pick<std::string>({"0", "-1", "-100000", "-9223372036854775", "-9223372036854775808"});
    if (seconds && random_.one_in(2)) return random_.pick<std::string>({"9223372036854775", "9223372036854776"});
    return random_.pick<std::string>({"9223372036854775807", "9223372036854775806", "abc", "", "1.5"});
  }
  const std::uint64_t far = 1'000'000 + (++lifetimes_ * 7919 % 100'000'000) * 10;
  return std::to_string(seconds ? far : far * 1000);
}

std::string RandomRequests::score() {
  return random_.pick<std::string>({"0",     "1",
                                    "-1",    "2",
                                    "3",     "1.5",
                                    "-2.25", "1e3",
                                    "1e400", "inf",
                                    "-inf",  "+inf",
                                    "nan",   "0.1",
                                    "-0",    "1e-5",
                                    "abc",   "",
                                    " 1",    "1 ",
                                    "0x1p3", "3.0000000000000004",
                                    "1e17",  "9007199254740993",
                                    "1e-400"});
}

std::string RandomRequests::bound() {
  if (random_.one_in(3)) return random_.pick<std::string>({"-inf", "+inf", "inf", "0", "5"});
  return (random_.one_in(4) ? "(" : "") + score();
}

std::vector<std::string> RandomRequests::plain_command(bool& clock) {
  clock = false;
  std::vector<std::string> words;
  const auto add = [&](auto&&... more) { (words.push_back(more), ...); };
  const auto repeat = [&](std::size_t most, auto&& write) {
    for (std::size_t count = 1 + random_.below(most); count > 0; --count) write();
  };
  switch (random_.below(64)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      add("set", key(), value());
      while (random_.one_in(2)) {
        switch (random_.below(8)) {
          case 0: add("nx"); break;
          case 1: add("xx"); break;
          case 2: add("get"); break;
          case 3: add("keepttl"); break;
          case 4: add("px", lifetime(false)); break;
          case 5: add("ex", lifetime(true)); break;
          case 6:
            add(random_.pick<std::string>({"pxat", "exat"}),
                random_.pick<std::string>({"1", "99999999999", "0", "9223372036854775807"}));
            break;
          default: add(random_.pick<std::string>({"junk", "ex", "px", "ifeq"}));
        }
      }
      break;
    }
    case 4:
    case 5: add("get", key()); break;
    case 6: add("getset", key(), value()); break;
    case 7: add("getdel", key()); break;
    case 8:
      add("mget");
      repeat(4, [&] { add(key()); });
      break;
    case 9: add(random_.pick<std::string>({"getrange", "substr"}), key(), number(), number()); break;
    case 10: add("strlen", key()); break;
    case 11: add("append", key(), short_value()); break;
    case 12: add(random_.pick<std::string>({"incr", "decr"}), key()); break;
    case 13: add(random_.pick<std::string>({"incrby", "decrby"}), key(), number()); break;
    case 14: add("setnx", key(), value()); break;
    case 15: add("setex", key(), lifetime(true), value()); break;
    case 16: add("psetex", key(), lifetime(false), value()); break;
    case 17:
    case 18:
      add(random_.pick<std::string>({"del", "unlink"}));
      repeat(3, [&] { add(key()); });
      break;
    case 19:
      add("exists");
      repeat(4, [&] { add(key()); });
      break;
    case 20: add("type", key()); break;
    case 21:
    case 22:
    case 23: {
      const bool seconds = random_.one_in(2);
      add(seconds ? "expire" : "pexpire", key(), lifetime(seconds));
      while (random_.one_in(3)) add(random_.pick<std::string>({"nx", "xx", "gt", "lt", "junk\r\n"}));
      break;
    }
    case 24:
      // The same far time again and again: what is not later is not later. A script may have set it a tick later, so
      // nobody asks whether it is earlier; and it is a number that Lua keeps whole.
      if (random_.one_in(2)) {
        const bool seconds = random_.one_in(2);
        add(seconds ? "expireat" : "pexpireat", key(), seconds ? "8000000000000" : "99999999999999");
        if (random_.one_in(2)) add(random_.pick<std::string>({"nx", "xx", "gt"}));
      } else {
        add(random_.pick<std::string>({"expireat", "pexpireat"}), key(),
            random_.pick<std::string>({"1", "0", "-5", "9223372036854775807", "x"}));
        if (random_.one_in(2)) add(random_.pick<std::string>({"nx", "xx", "gt", "lt"}));
      }
      break;
    case 25:
    case 26:
      clock = true;
      add(random_.pick<std::string>({"ttl", "pttl", "expiretime", "pexpiretime"}), key());
      break;
    case 27: add("persist", key()); break;
    case 28: add("get", key()); break;
    case 29:
    case 30:
      add(random_.pick<std::string>({"hset", "hmset"}), key());
      repeat(3, [&] { add(short_value(), short_value()); });
      break;
    case 31: add("hsetnx", key(), short_value(), short_value()); break;
    case 32: add("hget", key(), short_value()); break;
    case 33:
      add("hmget", key());
      repeat(3, [&] { add(short_value()); });
      break;
    case 34:
      add("hdel", key());
      repeat(3, [&] { add(short_value()); });
      break;
    case 35: add("hexists", key(), short_value()); break;
    case 36: add("hlen", key()); break;
    case 37: add(random_.pick<std::string>({"hgetall", "hkeys", "hvals"}), key()); break;
    case 38: add("hincrby", key(), short_value(), number()); break;
    case 39: add("hstrlen", key(), short_value()); break;
    case 40:
    case 41:
      add(random_.pick<std::string>({"lpush", "rpush", "lpushx", "rpushx"}), key());
      repeat(3, [&] { add(element()); });
      break;
    case 42:
      add(random_.pick<std::string>({"lpop", "rpop"}), key());
      if (random_.one_in(3)) add(number());
      break;
    case 43: add("llen", key()); break;
    case 44: add("lindex", key(), number()); break;
    case 45:
      if (random_.one_in(2))
        add("lrange", key(), "0", "-1");
      else
        add("lrange", key(), number(), number());
      break;
    case 46: add("lrem", key(), random_.one_in(2) ? "-1" : number(), element()); break;
    case 47: add("lset", key(), number(), element()); break;
    case 48: add("ltrim", key(), number(), number()); break;
    case 49:
    case 50:
      add("zadd", key());
      while (random_.one_in(3)) add(random_.pick<std::string>({"nx", "xx", "ch", "incr", "gt", "lt"}));
      repeat(3, [&] { add(score(), short_value()); });
      break;
    case 51: add("zincrby", key(), score(), short_value()); break;
    case 52:
      add("zrem", key());
      repeat(3, [&] { add(short_value()); });
      break;
    case 53: add(random_.pick<std::string>({"zscore", "zrank"}), key(), short_value()); break;
    case 54:
      add(random_.pick<std::string>({"zcard", "zpopmin", "zpopmax"}), key());
      if (random_.one_in(4)) add(number());
      break;
    case 55:
    case 56: {
      const std::string name = random_.pick<std::string>({"zrange", "zrangebyscore", "zrevrangebyscore"});
      const bool by_rank = name == "zrange" && random_.one_in(2);
      add(name, key());
      if (by_rank && random_.one_in(2))
        add("0", "-1", "withscores");
      else
        add(by_rank ? number() : bound(), by_rank ? number() : bound());
      while (random_.one_in(3)) {
        switch (random_.below(5)) {
          case 0: add("withscores"); break;
          case 1: add("limit", number(), number()); break;
          case 2: add("byscore"); break;
          case 3: add("rev"); break;
          default: add(random_.pick<std::string>({"bylex", "junk", "limit"}));
        }
      }
      break;
    }
    case 57:
      add("zrange", key(), random_.pick<std::string>({"-", "[a", "(a", "+", "a", ""}),
          random_.pick<std::string>({"+", "[token", "(b", "-", "(", "++"}), "bylex");
      if (random_.one_in(3)) add("limit", number(), number());
      if (random_.one_in(3)) add("rev");
      break;
    case 58: add(random_.pick<std::string>({"zcount", "zremrangebyscore"}), key(), bound(), bound()); break;
    case 59: add("publish", channel(), short_value()); break;
    case 60: add("echo", value()); break;
    case 61:
      add("ping");
      if (random_.one_in(2)) add(value());
      break;
    case 62: add("pubsub", "numsub", channel(), channel()); break;
    default: add(random_.pick<std::string>({"nosuch", "GETT", "", "get set", "li\r\nne"}), value(), value()); break;
  }
  words[0] = mixed_case(words[0], random_);
  if (random_.one_in(25)) {
    if (random_.one_in(2) && words.size() > 1)
      words.resize(1 + random_.below(words.size() - 1));
    else
      words.push_back("extra");
  }
  return words;
}

RandomRequest RandomRequests::lock_command() {
  switch (random_.below(16)) {
    case 0: return {{"set", key(), short_value(), "nx", "px", lifetime(false)}, Comparison::exact};
    case 1: return {{"set", key(), short_value(), "px", lifetime(false), "ifeq", short_value()}, Comparison::exact};
    case 2: return {{"get", key()}, Comparison::exact};
    case 3: return {{"delifeq", key(), short_value()}, Comparison::exact};
    case 4: return {{"pexpire", key(), lifetime(false)}, Comparison::exact};
    case 5: return {{random_.pick<std::string>({"pttl", "ttl"}), key()}, Comparison::clock};
    case 6:
      return {{random_.pick<std::string>({"del", "exists", "type", "hgetall", "persist"}), key()}, Comparison::exact};
    case 7: return {{"hset", key(), short_value(), short_value()}, Comparison::exact};
    case 8: return {{random_.pick<std::string>({"hdel", "hget", "hexists"}), key(), short_value()}, Comparison::exact};
    case 9: return {{"publish", channel(), short_value()}, Comparison::exact};
    case 10: return {{"script", "load", text_of(scripts::mutex_release)}, Comparison::exact};
    case 11: return {{random_.pick<std::string>({"nosuch", "set", "delifeq", "client"}), "x"}, Comparison::exact};
    case 12: return fence_script();
    case 13: return semaphore_request();
    case 14: return fair_request();
    default: return known_script();
  }
}

RandomRequest RandomRequests::command() {
  if (scope_ == Scope::locks) return lock_command();
  RandomRequest request;
  switch (random_.below(40)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: return known_script();
    case 7: return fence_script();
    case 6: return semaphore_request();
    case 8: return fair_request();
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15: return lua_script();
    case 16: {
      switch (random_.below(17)) {
        case 0:
          request.words = {"keys", "*"};
          request.comparison = Comparison::unordered;
          break;
        case 1:
          request.words = {random_.one_in(2) ? "client" : "dbsize"};
          if (request.words[0] == "client") request.words.push_back("id");
          request.comparison = Comparison::ignored;
          break;
        case 2: request.words = {"client", "setname", short_value()}; break;
        case 3: request.words = {"client", "getname"}; break;
        case 4:
          request.words = {"client", "kill", "id", random_.pick<std::string>({"999999", "0", "-1", "x", ""})};
          break;
        case 5:
          request.words = {"client", "kill", random_.pick<std::string>({"type", "user", "skipme", "junk"}),
                           short_value()};
          break;
        case 6:
          request.words = {random_.pick<std::string>({"client", "script", "pubsub"}), short_value(), short_value()};
          break;
        case 7: request.words = {random_.pick<std::string>({"client", "script", "pubsub"})}; break;
        case 8:
          request.words = {"pubsub", "channels"};
          request.comparison = Comparison::unordered;
          break;
        case 9:
          request.words = {"auth", short_value()};
          if (random_.one_in(2)) request.words.push_back(short_value());
          break;
        case 10:
          request.words = {"select", random_.pick<std::string>({"0", "1", "15", "16", "-1", "x", "99999999999"})};
          break;
        case 11:
          request.words = {"time"};
          request.comparison = Comparison::ignored;
          break;
        case 12:
          request.words = {"info", "server"};
          request.comparison = Comparison::ignored;
          break;
        case 13: request.words = {"wait", "0", random_.pick<std::string>({"0", "10", "-1", "x"})}; break;
        case 14:
          request.words = {random_.pick<std::string>({"flushall", "flushdb"})};
          if (random_.one_in(2)) request.words.push_back(random_.pick<std::string>({"sync", "ASYNC", "x"}));
          break;
        case 15:
          request.words = {"script", "flush"};
          if (random_.one_in(2)) request.words.push_back(random_.pick<std::string>({"sync", "ASYNC", "x"}));
          break;
        default: request.words = {"script", "kill"}; break;
      }
      return request;
    }
    case 17: {
      const Script* const known[] = {&scripts::mutex_release, &scripts::mutex_renew, &scripts::reentrant_acquire};
      const Script& script = *known[random_.below(std::size(known))];
      switch (random_.below(3)) {
        case 0: request.words = {"script", "load", random_.one_in(4) ? "return (" + value() : text_of(script)}; break;
        case 1:
          request.words = {"script", "exists", sha_of(script), "0000", mixed_case(sha_of(script), random_)};
          break;
        default:
          request.comparison = Comparison::clock;
          request.words = {"evalsha", random_.one_in(2) ? sha_of(script) : short_value(), number(), key(), value()};
      }
      return request;
    }
    default: {
      bool clock = false;
      request.words = plain_command(clock);
      if (clock) request.comparison = Comparison::clock;
      return request;
    }
  }
}

RandomRequest RandomRequests::subscriber_command() {
  RandomRequest request;
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
      request.words = {"subscribe"};
      for (std::size_t count = 1 + random_.below(3); count > 0; --count) request.words.push_back(channel());
      break;
    case 3:
      request.words = {"unsubscribe"};
      for (std::size_t count = 1 + random_.below(2); count > 0; --count) request.words.push_back(channel());
      break;
    case 4:
      if (random_.one_in(4)) {
        // In which order it leaves is the server's own choice.
        request.words = {"unsubscribe"};
        request.comparison = Comparison::ignored;
        break;
      }
      [[fallthrough]];
    case 5:
      request.words = {"ping"};
      if (random_.one_in(2)) request.words.push_back(value());
      break;
    case 6: {
      if (scope_ == Scope::locks) return lock_command();
      bool clock = false;
      request.words = plain_command(clock);
      if (clock) request.comparison = Comparison::clock;
      break;
    }
    default: request.words = {random_.pick<std::string>({"reset", "subscribe", "evalsha", "client", "publish"})}; break;
  }
  return request;
}

// This project's scripts. What the clock's value decides is left to fence_script.
RandomRequest RandomRequests::known_script() {
  const struct {
    const Script* script;
    std::size_t keys, arguments;
  } known[] = {
      {&scripts::mutex_release, 1, 1},      {&scripts::mutex_release_announced, 1, 2},
      {&scripts::mutex_renew, 1, 2},        {&scripts::mutex_renew_batch, 3, 6},
      {&scripts::reentrant_acquire, 1, 2},  {&scripts::reentrant_release, 1, 2},
      {&scripts::reentrant_renew, 3, 6},    {&scripts::reentrant_step, 1, 3},
      {&scripts::force_release, 1, 1},      {&scripts::lock_info, 2, 0},
      {&scripts::fenced_set, 2, 2},         {&scripts::server_identity, 0, 0},
      {&scripts::multi_acquire, 3, 2},      {&scripts::multi_release, 3, 2},
      {&scripts::multi_renew, 3, 6},        {&scripts::multi_step, 3, 3},
      {&scripts::multi_remaining, 3, 0},    {&scripts::read_acquire, 1, 3},
      {&scripts::write_acquire, 1, 3},      {&scripts::read_write_step, 1, 3},
      {&scripts::read_write_renew, 3, 6},   {&scripts::read_write_release, 1, 2},
      {&scripts::semaphore_renew, 3, 6},    {&scripts::semaphore_release, 1, 1},
      {&scripts::semaphore_remaining, 1, 0}};  // An acquire counts: semaphore_request() gives it whole numbers.
  const auto& [script, keys, arguments] = known[random_.below(std::size(known))];
  std::vector<std::string> words;
  if (random_.one_in(3))
    words = {"eval", text_of(*script)};
  else
    words = {"evalsha", mixed_case(sha_of(*script), random_)};
  std::size_t key_count = keys;
  std::size_t argument_count = arguments;
  if (random_.one_in(15)) key_count = random_.below(4);
  if (random_.one_in(15)) argument_count = random_.below(4);
  // A wrong count that is taken would make a lease of another word, and that one might end in between.
  words.push_back(random_.one_in(60) ? random_.pick<std::string>({"-1", "abc", "", "100", "01", "9223372036854775808"})
                                     : std::to_string(key_count));
  for (std::size_t index = 0; index < key_count; ++index) words.push_back(key());
  for (std::size_t index = 0; index < argument_count; ++index) {
    if (script == &scripts::multi_renew && index % 3 == 2) {  // A hold of one name, and one of two.
      words.push_back(random_.one_in(20) ? random_.pick<std::string>({"0", "3", "-1", "abc", ""})
                      : index == 2       ? "1"
                                         : "2");
      continue;
    }
    // Where a script wants a lease it mostly gets one.
    const bool lease =
        script == &scripts::mutex_renew || script == &scripts::reentrant_acquire || script == &scripts::multi_acquire ||
                script == &scripts::mutex_renew_batch || script == &scripts::reentrant_renew ||
                script == &scripts::read_acquire || script == &scripts::write_acquire ||
                script == &scripts::read_write_renew || script == &scripts::semaphore_renew
            ? index % 2 == 1
        : script == &scripts::multi_renew ? index % 3 == 1
                                          : (script == &scripts::reentrant_step || script == &scripts::multi_step ||
                                             script == &scripts::read_write_step) &&
                                                index == 2;
    if (lease)
      words.push_back(random_.one_in(20) ? random_.pick<std::string>({"0", "-1", "abc", ""}) : lifetime(false));
    else
      words.push_back(short_value());
  }
  return {words, script == &scripts::server_identity ? Comparison::ignored : Comparison::clock};
}

// Its counters hold the clock: they are keys of their own.
RandomRequest RandomRequests::fence_script() {
  const std::string lock = random_.pick<std::string>({"f0", "f1"});
  const std::string counter = random_.pick<std::string>({"f2", "f3"});
  switch (random_.below(6)) {
    case 0:
      return {
          {"set", counter, random_.pick<std::string>({"9223372036854775807", "9223372036854775000", "-3", "0", "x"})},
          Comparison::clock};
    case 1: return {{"get", counter}, Comparison::clock};
    case 2: return {{"del", lock, random_.one_in(4) ? counter : lock}, Comparison::clock};
    case 3: return {{"eval", text_of(scripts::lock_info), "2", lock, counter}, Comparison::clock};
    default: {
      const Script& script = random_.one_in(2) ? scripts::mutex_acquire_fenced : scripts::fenced_acquire;
      return {{"eval", text_of(script), "2", lock, counter, short_value(), lifetime(false)}, Comparison::clock};
    }
  }
}

// Its sorted sets hold the clock, too. Whatever ends here ends far from anything else, so that a tick decides nothing.
RandomRequest RandomRequests::semaphore_request() {
  const std::string name = random_.pick<std::string>({"s0", "s1", "{s}2"});
  const std::string taken = (name[0] == '{' ? name : "{" + name + "}") + ":timeout";
  const std::string token = random_.pick<std::string>({"a", "b", "c", "d", ""});
  // An end that is over is still one of 13 digits, and another one than those around it.
  const std::uint64_t number = ++lifetimes_;
  const std::string lease =
      random_.one_in(4) ? "-" + std::to_string(number % 800 * 1'000'000'000) : std::to_string(number * 1'000'000'000);
  const auto script = [&](const Script& asked) -> std::vector<std::string> {
    if (random_.one_in(3)) return {"evalsha", sha_of(asked), "1", name};
    return {"eval", text_of(asked), "1", name};
  };
  std::vector<std::string> words;
  switch (random_.below(16)) {
    case 0: words = {"set", name, random_.pick<std::string>({"0", "1", "3", "-1", "x", "9223372036854775807"})}; break;
    case 1: words = {"del", random_.one_in(2) ? name : taken}; break;
    case 2: words = {"incrby", name, random_.pick<std::string>({"0", "-0", "1", "-1", "x"})}; break;
    case 3:
      words = {"zadd", taken,
               random_.one_in(2) ? "1" : std::to_string(9'000'000'000'000 + ++lifetimes_ * 1'000'000'000), token};
      break;
    case 4: words = {random_.pick<std::string>({"zrem", "zscore"}), taken, token}; break;
    case 5: words = {"zrange", taken, "0", random_.pick<std::string>({"0", "-1"}), "withscores"}; break;
    case 6: words = {"zremrangebyscore", taken, "-inf", random_.pick<std::string>({"0", "1", "+inf", "x"})}; break;
    case 7: words = {random_.pick<std::string>({"get", "zcard"}), random_.one_in(2) ? name : taken}; break;
    case 8: words = script(scripts::semaphore_remaining); break;
    case 9:
    case 10:
      words = script(scripts::semaphore_renew);
      words.insert(words.end(), {token, lease});
      break;
    case 11:
    case 12:
      words = script(scripts::semaphore_release);
      words.push_back(token);
      break;
    default:
      words = script(scripts::semaphore_acquire);
      words.insert(words.end(), {token, lease, random_.pick<std::string>({"0", "1", "2", "2", "3"})});
      break;
  }
  return {words, Comparison::clock};
}

// Its waiters and what it gives last 3 s: a name is left behind long before, and what becomes of it is not compared.
RandomRequest RandomRequests::fair_request() {
  const std::string name = "{q" + std::to_string(++fair_requests_ / 25) + "}";
  const std::string queue = "holdfast_queue:" + name;
  const std::string token = random_.one_in(30) ? random_.pick<std::string>({"", "x"})
                                               : random_.pick<std::string>({"a:1", "a:-2", "b:1", "c:9"});
  const auto script = [&](const Script& asked) -> std::vector<std::string> {
    if (random_.one_in(3)) return {"evalsha", sha_of(asked), "1", name, token};
    return {"eval", text_of(asked), "1", name, token};
  };
  std::vector<std::string> words;
  switch (random_.below(16)) {
    case 0: words = {"del", random_.pick<std::string>({name, queue, "holdfast_beat:" + name + ":" + token})}; break;
    case 1: words = {"zpopmin", queue}; break;
    case 2: words = {random_.pick<std::string>({"zrem", "zscore"}), queue, token}; break;
    case 3: words = {"exists", "holdfast_beat:" + name + ":" + token}; break;
    case 4: words = {"zrange", queue, "0", "-1"}; break;
    case 5:
      if (!random_.one_in(8)) return {{"hgetall", name}, Comparison::clock};
      words = {"set", random_.one_in(2) ? name : queue, "x", "px", lifetime(false)};
      break;
    case 6:
    case 7:
    case 8:
    case 9: words = script(scripts::fair_release); break;
    default:
      words = script(scripts::fair_acquire);
      words.insert(words.end(), {lifetime(false), random_.one_in(4) ? "0" : "1", random_.one_in(3) ? "1" : "0"});
      break;
  }
  return {words, Comparison::clock};
}

RandomRequest RandomRequests::lua_script() {
  std::string text;
  if (random_.one_in(3)) text += "local a, b = " + lua_expression(2) + ", " + lua_expression(2) + "\n";
  for (std::size_t count = random_.below(3); count > 0; --count) text += lua_statement(2) + "\n";
  if (random_.one_in(40))
    text += random_.pick<std::string>({"return (", "x = = 1", "local", "end", "return '", "\x1bLua"});
  text += "return " + lua_expression(3);
  RandomRequest request{{"eval", text, "2", key(), key(), short_value(), number()}, Comparison::clock};
  if (random_.one_in(30)) request.words[2] = number();
  return request;
}

std::string RandomRequests::lua_call(int depth) {
  std::string text = random_.one_in(2) ? "redis.call(" : "redis.pcall(";
  if (random_.one_in(12)) {
    if (random_.one_in(3)) return text + ")";
    return text + lua_expression(depth - 1) + "," + lua_expression(depth - 1) + ")";
  }
  // What the clock decides would go into strings and sums, and could not be compared.
  bool clock = false;
  std::vector<std::string> words = plain_command(clock);
  while (clock) words = plain_command(clock);
  if (random_.one_in(20))
    words = {random_.pick<std::string>({"subscribe", "auth", "eval", "client", "script", "wait", "quit"}), "x", "0"};
  // A lifetime of a second would race.
  const bool times = words[0].size() < 12 && words[0].find_first_of("xX") != std::string::npos;
  const bool sets = words[0].size() == 3 && (words[0][0] == 's' || words[0][0] == 'S');
  bool first = true;
  for (const std::string& word : words) {
    if (!first) text += ", ";
    if (!first && !times && !sets && random_.one_in(4))
      text +=
          random_.pick<std::string>({"KEYS[1]", "KEYS[2]", "ARGV[1]", "ARGV[2]", "1", "2.5", "1e15", "-3", "1e300"});
    else
      text += quoted(word);
    first = false;
  }
  return text + ")";
}

std::string RandomRequests::lua_literal() {
  switch (random_.below(8)) {
    case 0:
    case 1:
      return random_.pick<std::string>({"0", "1", "-1", "3.99", "-3.99", "1e15", "1e16", "2^53", "2^53 + 1", "2^63",
                                        "-2^63", "1e300", "0/0", "1/0", "-1/0", "0x10", "0.1", "9007199254740993"});
    case 2: return random_.pick<std::string>({"nil", "true", "false"});
    case 3:
      return random_.pick<std::string>(
          {"KEYS", "ARGV", "KEYS[1]", "KEYS[2]", "KEYS[3]", "ARGV[1]", "ARGV[2]", "#ARGV", "#KEYS"});
    case 4:
      return random_.pick<std::string>({"a",
                                        "redis",
                                        "string",
                                        "os",
                                        "io",
                                        "nosuch",
                                        "_G.nosuch",
                                        "_G[1]",
                                        "print",
                                        "require",
                                        "redis.nosuch",
                                        "redis.LOG_WARNING",
                                        "redis.REPL_ALL",
                                        "_VERSION",
                                        "type(_G)",
                                        "debug",
                                        "package",
                                        "getfenv",
                                        "loadfile",
                                        "redis.call",
                                        "redis.REDIS_VERSION",
                                        "redis.REDIS_VERSION_NUM"});
    default: return quoted(short_value());
  }
}

std::string RandomRequests::lua_expression(int depth) {
  if (depth <= 0) return lua_literal();
  const auto inner = [&] { return lua_expression(depth - 1); };
  switch (random_.below(30)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: return lua_call(depth);
    case 6: return "{" + inner() + ", " + inner() + ", " + inner() + "}";
    case 7: return "{}";
    case 8: return "{ok=" + inner() + "}";
    case 9: return "{err=" + inner() + "}";
    case 10: return random_.pick<std::string>({"{double=", "{big_number=", "{1, x=", "{[2]=", "{[1]="}) + inner() + "}";
    case 11: return "redis.error_reply(" + inner() + ")";
    case 12: return "redis.status_reply(" + inner() + ")";
    case 13: return "redis.sha1hex(" + inner() + ")";
    case 14: return "tonumber(" + inner() + ")";
    case 15: return "type(" + inner() + ")";
    case 16: return "(" + inner() + " .. " + inner() + ")";
    case 17: return "(" + inner() + random_.pick<std::string>({" + ", " - ", " * ", " / ", " % "}) + inner() + ")";
    case 18: return "(" + inner() + random_.pick<std::string>({" == ", " ~= ", " < ", " <= "}) + inner() + ")";
    case 19: return "(" + inner() + random_.pick<std::string>({" and ", " or "}) + inner() + ")";
    case 20: return "not " + inner();
    case 21: return "#" + lua_literal();
    case 22:
      return "tostring(" +
             random_.pick<std::string>({"1", "2.50", "1e15", "1e100", "nil", "true", "'x'", "KEYS[1]", "-0", "2^53"}) +
             ")";
    case 23: return "select('#', pcall(function() return " + inner() + " end))";
    case 24:
      return "({pcall(function() " + lua_statement(depth - 1) + " return " + inner() + " end)})[" +
             random_.pick<std::string>({"1", "2", "3"}) + "]";
    case 25:
      return "string." + random_.pick<std::string>({"sub(", "rep(", "find(", "match(", "format("}) +
             quoted(short_value()) + ", " + random_.pick<std::string>({"1", "0", "'a'", "nil", "-2"}) + ")";
    case 26:
      return random_.pick<std::string>({"unpack({1, 2, 3})",
                                        "math.floor(3.7)",
                                        "math.max(1, 2)",
                                        "table.concat({1, 'a', 2}, '-')",
                                        "table.getn({1, 2})",
                                        "(string.gsub('yellow', 'l', 'L'))",
                                        "string.byte('a')",
                                        "('x'):rep(3)",
                                        "redis.acl_check_cmd('get', 'x')",
                                        "redis.acl_check_cmd('nosuch')",
                                        "redis.replicate_commands()",
                                        "{map={a=1}}",
                                        "{set={a=true}}",
                                        "{map={}}",
                                        "{verbatim_string={format='txt', string='text'}}",
                                        "loadstring('return 7')()",
                                        "select(2, 'a', 'b')",
                                        "rawequal(KEYS, KEYS)",
                                        "coroutine.wrap(function() coroutine.yield(5) end)()",
                                        "(function(...) return select('#', ...) end)(nil, nil)",
                                        "next({})",
                                        "tonumber('0x1F')",
                                        "tonumber('z', 36)",
                                        "tonumber('12', 3)"});
    default: return lua_literal();
  }
}

std::string RandomRequests::lua_statement(int depth) {
  if (depth <= 0) return "";
  const auto inner = [&] { return lua_expression(depth - 1); };
  switch (random_.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: return lua_call(depth);
    case 5: return "local c = " + inner();
    case 6: return "if " + inner() + " then " + lua_statement(depth - 1) + " else return " + inner() + " end";
    case 7: return "for i = 1, 2 do " + lua_statement(depth - 1) + " end";
    case 8:
      return random_.pick<std::string>({"x = 1", "KEYS = {}", "redis.call = 1", "_G.y = 2", "string.sub = nil",
                                        "rawset(_G, 'a', 1)", "setmetatable(_G, {})", "table.insert(redis, 1)",
                                        "KEYS[1] = 'k1'", "ARGV[9] = 'x'", "math = nil"});
    case 9:
      return "error(" +
             random_.pick<std::string>({"'text'", "'ERR text'", "{err='MY err'}", "5", "nil", "'a', 0", "'a', 2",
                                        "redis.error_reply('CODE x y')"}) +
             ")";
    case 10: return "redis.log(" + random_.pick<std::string>({"redis.LOG_DEBUG, 'x'", "1", "'x', 'y'", "9, 'x'"}) + ")";
    case 11:
      return "math.randomseed(" + random_.pick<std::string>({"1", "42", "'x'"}) +
             ") if math.random(1000) == 1 then return math.random() end";
    case 12: return "do return {math.randomseed(7), math.random(100), math.random(5, 9), math.random(1000000)} end";
    case 13: return "assert(" + inner() + ")";
    case 14:
      return "local t = {} for k, v in " + random_.pick<std::string>({"ipairs", "pairs"}) +
             "(ARGV) do t[k] = v end do return t end";
    default: return "local s = " + inner() + " if type(s) == 'table' and s.err then return s.err end";
  }
}

}  // namespace holdfast::sim

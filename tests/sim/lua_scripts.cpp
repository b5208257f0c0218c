// SPDX-License-Identifier: MIT
//
// Lua's errors leave C++ functions by longjmp, so a function that Lua calls owns nothing when it raises: texts are
// built in the engine's own scratch strings or on Lua's stack.
#include "lua_scripts.hpp"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "reply_writer.hpp"
#include "sha1_text.hpp"

namespace holdfast::sim {

struct LuaScripts::Script {
  Sha1Text sha{};
  int reference = 0;  // Of the compiled function, in Lua's registry.
};

namespace {

// Fixed places at the bottom of the main stack: pushed once, never popped.
enum Place : int { place_globals = 1, place_error_handler, place_keys_name, place_arguments_name, place_count };

// The generator behind math.random: drand48's, with the seed that a fresh Redis has.
class Random48 {
 public:
  void seed(std::int32_t value) noexcept {
    state_ = (std::uint64_t{static_cast<std::uint32_t>(value)} << 16 | 0x330e) & mask;
  }
  [[nodiscard]] std::int32_t next() noexcept {
    state_ = (state_ * 0x5deece66dU + 0xb) & mask;
    return static_cast<std::int32_t>(state_ >> 17);
  }

 private:
  static constexpr std::uint64_t mask = (std::uint64_t{1} << 48) - 1;
  std::uint64_t state_ = 0x1234abcd330e;
};

// What a C string holds: up to the first zero byte.
std::string_view c_text(std::string_view text) noexcept { return text.substr(0, text.find('\0')); }

}  // namespace

struct LuaScripts::Engine {
  Engine(ScriptHost& server, ScriptDialect its_dialect) : host(&server), dialect(std::move(its_dialect)) { open(); }
  ~Engine() { lua_close(lua); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  static Engine& of(lua_State* lua) { return *static_cast<Engine*>(lua_touserdata(lua, lua_upvalueindex(1))); }

  // ---- Errors --------------------------------------------------------------

  // Pushes {err = ...}. A text that begins with a dash brings its class along; any other is an ERR.
  static void push_error(lua_State* lua, std::string_view text) {
    std::string_view code = "ERR";
    std::string_view words = c_text(text);
    if (!words.empty() && words[0] == '-') {
      words.remove_prefix(1);
      if (const std::size_t blank = words.find(' '); blank != std::string_view::npos) {
        code = words.substr(0, blank);
        words = words.substr(blank + 1);
      }
    }
    while (!words.empty() && (words.front() == '\r' || words.front() == '\n')) words.remove_prefix(1);
    while (!words.empty() && (words.back() == '\r' || words.back() == '\n')) words.remove_suffix(1);
    lua_createtable(lua, 0, 4);
    lua_pushlstring(lua, code.data(), code.size());
    lua_pushliteral(lua, " ");
    lua_pushlstring(lua, words.data(), words.size());
    lua_concat(lua, 3);
    lua_setfield(lua, -2, "err");
  }

  // Says where an error came from: {err, source, line}. Where a C function raised it, that is its caller.
  static int handle_error(lua_State* lua) {
    lua_settop(lua, 1);
    lua_Debug where{};
    bool known = lua_getstack(lua, 1, &where) == 1 && lua_getinfo(lua, "nSl", &where) != 0;
    if (known && std::strcmp(where.what, "C") == 0)
      known = lua_getstack(lua, 2, &where) == 1 && lua_getinfo(lua, "nSl", &where) != 0;
    if (!lua_istable(lua, 1)) {
      lua_createtable(lua, 0, 3);
      lua_pushliteral(lua, "ERR ");
      lua_getglobal(lua, "tostring");
      lua_pushvalue(lua, 1);
      lua_call(lua, 1, 1);
      lua_concat(lua, 2);
      lua_setfield(lua, -2, "err");
      lua_replace(lua, 1);
    }
    if (known) {
      lua_pushstring(lua, where.source);
      lua_setfield(lua, 1, "source");
      lua_pushinteger(lua, where.currentline);
      lua_setfield(lua, 1, "line");
    }
    return 1;
  }

  static int refuse_write(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

  // Raised inside of a C function, the text says no place.
  static int refuse_raw_write(lua_State* lua) {
    lua_pushliteral(lua, "Attempt to modify a readonly table");
    return lua_error(lua);
  }

  static int refuse_unknown_global(lua_State* lua) {
    if (!lua_isstring(lua, -1))
      return luaL_error(lua, "Second argument to luaProtectedTableError must be a string or number");
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, -1));
  }

  // ---- redis.* -------------------------------------------------------------

  static int redis_call(lua_State* lua) { return of(lua).call(true); }
  static int redis_pcall(lua_State* lua) { return of(lua).call(false); }

  // Reads the arguments into words. False with an error pushed.
  bool read_words() {
    const int count = lua_gettop(lua);
    if (count == 0) {
      push_error(lua, "Please specify at least one argument for this redis lib call");
      return false;
    }
    const auto size = static_cast<std::size_t>(count);
    words.clear();
    if (numbers.size() < size) numbers.resize(size);
    for (int index = 1; index <= count; ++index) {
      const int type = lua_type(lua, index);
      if (type == LUA_TNUMBER) {
        std::array<char, 32>& text = numbers[static_cast<std::size_t>(index - 1)];
        const double number = lua_tonumber(lua, index);
        // Whole numbers are the rule, and quicker this way.
        const auto whole = number > -1e15 && number < 1e15 ? static_cast<std::int64_t>(number) : 0;
        char* end = text.data();
        if (whole != 0 && static_cast<double>(whole) == number)
          end = std::to_chars(text.data(), text.data() + text.size(), whole).ptr;
        else
          end += std::snprintf(text.data(), text.size(), "%.17g", number);
        words.emplace_back(text.data(), static_cast<std::size_t>(end - text.data()));
      } else if (type == LUA_TSTRING) {
        std::size_t length = 0;
        const char* const text = lua_tolstring(lua, index, &length);
        words.emplace_back(text, length);
      } else {
        lua_settop(lua, 0);
        push_error(lua, dialect.valkey ? "Command arguments must be strings or integers"
                                       : "Lua redis lib command arguments must be strings or integers");
        return false;
      }
    }
    return true;
  }

  int call(bool raise) {
    if (!read_words()) return raise ? lua_error(lua) : 1;
    reply.clear();
    // The words are views of what is on the stack: it is cleared after the command.
    host->call_from_script(words, reply);
    lua_settop(lua, 0);
    const char* at = reply.data();
    push_reply(at);
    if (raise && reply[0] == '-') return lua_error(lua);
    return 1;
  }

  // Pushes the reply that begins at `at`.
  void push_reply(const char*& at) {
    luaL_checkstack(lua, 4, "reply");
    const char kind = *at++;
    const char* const end =
        static_cast<const char*>(std::memchr(at, '\r', static_cast<std::size_t>(reply.data() + reply.size() - at)));
    const std::string_view head(at, static_cast<std::size_t>(end - at));
    at = end + 2;
    if (kind == '+') {
      lua_createtable(lua, 0, 1);
      lua_pushlstring(lua, head.data(), head.size());
      lua_setfield(lua, -2, "ok");
      return;
    }
    if (kind == '-') {
      // The dash stands before the line.
      push_error(lua, {head.data() - 1, head.size() + 1});
      lua_pushboolean(lua, 1);
      lua_setfield(lua, -2, "ignore_error_stats_update");
      return;
    }
    std::int64_t number = 0;
    std::from_chars(head.data(), head.data() + head.size(), number);
    if (kind == ':') {
      lua_pushnumber(lua, static_cast<lua_Number>(number));
    } else if (number < 0) {
      lua_pushboolean(lua, 0);
    } else if (kind == '$') {
      lua_pushlstring(lua, at, static_cast<std::size_t>(number));
      at += number + 2;
    } else {
      lua_createtable(lua, static_cast<int>(number), 0);
      for (int index = 1; index <= number; ++index) {
        push_reply(at);
        lua_rawseti(lua, -2, index);
      }
    }
  }

  // pcall of Redis: an error table is handed over as its text.
  static int plain_pcall(lua_State* lua) {
    luaL_checkany(lua, 1);
    const int count = lua_gettop(lua);
    lua_pushboolean(lua, 1);
    lua_insert(lua, 1);
    if (lua_pcall(lua, count - 1, LUA_MULTRET, 0) != 0) {
      lua_remove(lua, 1);
      if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        if (lua_isstring(lua, -1)) lua_replace(lua, -2);
      }
      lua_pushboolean(lua, 0);
      lua_insert(lua, 1);
    }
    return lua_gettop(lua);
  }

  static int redis_sha1hex(lua_State* lua) {
    if (lua_gettop(lua) != 1) {
      push_error(lua, "wrong number of arguments");
      return lua_error(lua);
    }
    std::size_t size = 0;
    const char* const text = lua_tolstring(lua, 1, &size);
    const Sha1Text digits = sha1_text({text == nullptr ? "" : text, text == nullptr ? 0 : size});
    lua_pushlstring(lua, digits.data(), digits.size());
    return 1;
  }

  static bool has_one_text(lua_State* lua) {
    if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) return true;
    push_error(lua, "wrong number or type of arguments");
    return false;
  }
  static int redis_error_reply(lua_State* lua) {
    if (!has_one_text(lua)) return 1;
    if (lua_tostring(lua, 1)[0] != '-') {
      lua_pushliteral(lua, "-");
      lua_insert(lua, 1);
      lua_concat(lua, 2);
    }
    push_error(lua, lua_tostring(lua, 1));
    return 1;
  }
  static int redis_status_reply(lua_State* lua) {
    if (!has_one_text(lua)) return 1;
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
  }
  static int redis_log(lua_State* lua) {
    const char* wrong = nullptr;
    if (lua_gettop(lua) < 2)
      wrong = "redis.log() requires two arguments or more.";
    else if (lua_isnumber(lua, 1) == 0)
      wrong = "First argument must be a number (log level).";
    else if (const double level = lua_tonumber(lua, 1); !(level > -1 && level < 4))
      wrong = "Invalid debug level.";
    if (wrong == nullptr) return 0;
    push_error(lua, wrong);
    return lua_error(lua);
  }
  static int redis_setresp(lua_State* lua) {
    const char* wrong = nullptr;
    if (lua_gettop(lua) != 1)
      wrong = "redis.setresp() requires one argument.";
    else if (lua_tonumber(lua, 1) < 2 || lua_tonumber(lua, 1) >= 3)
      wrong = "RESP version must be 2 or 3.";
    if (wrong == nullptr) return 0;
    push_error(lua, wrong);
    return lua_error(lua);
  }
  static int redis_set_repl(lua_State* lua) {
    const char* wrong = nullptr;
    if (lua_gettop(lua) != 1)
      wrong = "redis.set_repl() requires two arguments.";
    else if (const double flags = lua_tonumber(lua, 1); !(flags > -1 && flags < 4))
      wrong = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
    if (wrong == nullptr) return 0;
    push_error(lua, wrong);
    return lua_error(lua);
  }
  static int redis_replicate_commands(lua_State* lua) {
    lua_pushboolean(lua, 1);
    return 1;
  }
  static int redis_acl_check_cmd(lua_State* lua) {
    Engine& engine = of(lua);
    if (!engine.read_words()) return lua_error(lua);
    const int allowed = engine.host->may_call(engine.words);
    if (allowed < 0) {
      push_error(lua, "Invalid command passed to redis.acl_check_cmd()");
      return lua_error(lua);
    }
    lua_pushboolean(lua, allowed);
    return 1;
  }

  static int math_random(lua_State* lua) {
    const double part = static_cast<double>(of(lua).random.next()) / 2147483647.0;
    switch (lua_gettop(lua)) {
      case 0: lua_pushnumber(lua, part); return 1;
      case 1: {
        const int upper = luaL_checkint(lua, 1);
        luaL_argcheck(lua, 1 <= upper, 1, "interval is empty");
        lua_pushnumber(lua, std::floor(part * upper) + 1);
        return 1;
      }
      case 2: {
        const int lower = luaL_checkint(lua, 1);
        const int upper = luaL_checkint(lua, 2);
        luaL_argcheck(lua, lower <= upper, 2, "interval is empty");
        lua_pushnumber(lua, std::floor(part * (upper - lower + 1)) + lower);
        return 1;
      }
      default: return luaL_error(lua, "wrong number of arguments");
    }
  }
  static int math_randomseed(lua_State* lua) {
    of(lua).random.seed(luaL_checkint(lua, 1));
    return 0;
  }

  // ---- Tables that cannot be written ---------------------------------------

  // Redis's Lua knows read-only tables. Here an empty table stands for each, reads go through it and writes are
  // refused; the few library functions that write past that are wrapped.
  [[nodiscard]] bool is_protected(int index) const {
    const void* const table = lua_topointer(lua, index);
    for (const void* const known : protected_tables)
      if (known == table) return true;
    return false;
  }
  template <lua_CFunction Engine::*original>
  static int guarded(lua_State* lua) {
    Engine& engine = of(lua);
    if (lua_istable(lua, 1) && engine.is_protected(1)) return refuse_raw_write(lua);
    return (engine.*original)(lua);
  }
  template <lua_CFunction Engine::*original>
  void guard(int table, const char* name) {
    lua_getfield(lua, table, name);
    this->*original = lua_tocfunction(lua, -1);
    lua_pop(lua, 1);
    set_function(table, name, guarded<original>);
  }

  // Replaces the table on the top by one that stands for it.
  void protect_top() {
    lua_newtable(lua);
    protected_tables.push_back(lua_topointer(lua, -1));
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_write);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
  }

  // Absolute index of `table`.
  void set_function(int table, const char* name, lua_CFunction function) {
    lua_pushlightuserdata(lua, this);
    lua_pushcclosure(lua, function, 1);
    lua_setfield(lua, table, name);
  }
  void set_number(int table, const char* name, int number) {
    lua_pushinteger(lua, number);
    lua_setfield(lua, table, name);
  }

  void open() {
    lua = luaL_newstate();
    const struct {
      const char* name;
      lua_CFunction open;
    } libraries[] = {{"", luaopen_base},
                     {LUA_TABLIBNAME, luaopen_table},
                     {LUA_STRLIBNAME, luaopen_string},
                     {LUA_MATHLIBNAME, luaopen_math}};
    for (const auto& library : libraries) {
      lua_pushcfunction(lua, library.open);
      lua_pushstring(lua, library.name);
      lua_call(lua, 1, 0);
    }
    lua_settop(lua, 0);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);  // place_globals: the true ones.
    for (const char* const absent : {"dofile", "loadfile", "print", "newproxy", "getfenv", "setfenv"}) {
      lua_pushnil(lua);
      lua_setfield(lua, place_globals, absent);
    }
    lua_pushcfunction(lua, handle_error);
    lua_pushliteral(lua, "KEYS");
    lua_pushliteral(lua, "ARGV");

    lua_pushcfunction(lua, plain_pcall);
    lua_setfield(lua, place_globals, "pcall");
    guard<&Engine::rawset>(place_globals, "rawset");
    guard<&Engine::setmetatable>(place_globals, "setmetatable");
    lua_getfield(lua, place_globals, "table");
    guard<&Engine::table_insert>(place_count, "insert");
    lua_settop(lua, place_count - 1);
    lua_getfield(lua, place_globals, "math");
    set_function(place_count, "random", math_random);
    set_function(place_count, "randomseed", math_randomseed);
    lua_settop(lua, place_count - 1);

    lua_newtable(lua);
    const struct {
      const char* name;
      lua_CFunction function;
    } functions[] = {{"call", redis_call},
                     {"pcall", redis_pcall},
                     {"log", redis_log},
                     {"setresp", redis_setresp},
                     {"sha1hex", redis_sha1hex},
                     {"error_reply", redis_error_reply},
                     {"status_reply", redis_status_reply},
                     {"set_repl", redis_set_repl},
                     {"replicate_commands", redis_replicate_commands},
                     {"acl_check_cmd", redis_acl_check_cmd}};
    for (const auto& [name, function] : functions) set_function(place_count, name, function);
    const struct {
      const char* name;
      int number;
    } numbers_of_redis[] = {{"LOG_DEBUG", 0},   {"LOG_VERBOSE", 1},  {"LOG_NOTICE", 2},
                            {"LOG_WARNING", 3}, {"REPL_NONE", 0},    {"REPL_AOF", 1},
                            {"REPL_SLAVE", 2},  {"REPL_REPLICA", 2}, {"REPL_ALL", 3}};
    for (const auto& [name, number] : numbers_of_redis) set_number(place_count, name, number);
    set_number(place_count, "REDIS_VERSION_NUM", dialect.version_number);
    lua_pushlstring(lua, dialect.version.data(), dialect.version.size());
    lua_setfield(lua, place_count, "REDIS_VERSION");
    lua_setfield(lua, place_globals, "redis");

    for (const char* const name : {"redis", "string", "table", "math", "coroutine"}) {
      lua_getfield(lua, place_globals, name);
      protect_top();
      lua_setfield(lua, place_globals, name);
    }
    // Reading what is not there is an error; the globals that scripts see stand for the true ones.
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, refuse_unknown_global);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, place_globals);
    lua_pushvalue(lua, place_globals);
    protect_top();
    lua_pushvalue(lua, -1);
    lua_setfield(lua, place_globals, "_G");
    lua_replace(lua, LUA_GLOBALSINDEX);
    lua_settop(lua, place_count - 1);
  }

  // ---- Running -------------------------------------------------------------

  void set_array(Place name, std::span<const std::string_view> texts) {
    lua_pushvalue(lua, name);
    lua_createtable(lua, static_cast<int>(texts.size()), 0);
    int index = 0;
    for (const std::string_view text : texts) {
      lua_pushlstring(lua, text.data(), text.size());
      lua_rawseti(lua, -2, ++index);
    }
    lua_rawset(lua, place_globals);
  }

  // Writes the value on the top of the stack as a reply, and pops it.
  void write_value(ReplyWriter& out) {
    if (lua_checkstack(lua, 4) == 0) {
      out.error("ERR reached lua stack limit");
      lua_pop(lua, 1);
      return;
    }
    switch (lua_type(lua, -1)) {
      case LUA_TSTRING: out.bulk(text_at_top()); break;
      case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1) != 0)
          out.integer(1);
        else
          out.null_bulk();
        break;
      case LUA_TNUMBER: out.integer(truncated(lua_tonumber(lua, -1))); break;
      case LUA_TTABLE: write_table(out); break;
      default: out.null_bulk();
    }
    lua_pop(lua, 1);
  }

  // Leaves the table where it is.
  void write_table(ReplyWriter& out) {
    if (push_field("err", LUA_TSTRING)) {
      out.error(c_text(text_at_top()));
      lua_pop(lua, 1);
      return;
    }
    if (push_field("ok", LUA_TSTRING)) {
      out.status(one_line());
      lua_pop(lua, 1);
      return;
    }
    if (push_field("double", LUA_TNUMBER)) {
      out.real(lua_tonumber(lua, -1));
      lua_pop(lua, 1);
      return;
    }
    if (push_field("big_number", LUA_TSTRING)) {
      std::string text(text_at_top());
      for (char& byte : text)
        if (byte == '\r' || byte == '\n') byte = ' ';
      out.bulk(text);
      lua_pop(lua, 1);
      return;
    }
    if (push_field("verbatim_string", LUA_TTABLE)) {
      if (push_field("format", LUA_TSTRING)) {
        lua_pop(lua, 1);
        if (push_field("string", LUA_TSTRING)) {
          out.bulk(text_at_top());
          lua_pop(lua, 2);
          return;
        }
      }
      lua_pop(lua, 1);
    }
    if (push_field("map", LUA_TTABLE)) {
      write_pairs(out, true);
      lua_pop(lua, 1);
      return;
    }
    if (push_field("set", LUA_TTABLE)) {
      write_pairs(out, false);
      lua_pop(lua, 1);
      return;
    }
    // An array ends at the first nil. How long it is shows at its end.
    std::string elements;
    ReplyWriter inner(elements);
    std::size_t count = 0;
    for (int index = 1;; ++index) {
      lua_rawgeti(lua, -1, index);
      if (lua_isnil(lua, -1)) break;
      write_value(inner);
      ++count;
    }
    lua_pop(lua, 1);
    out.array(count);
    out.text() += elements;
  }

  void write_pairs(ReplyWriter& out, bool with_values) {
    std::string elements;
    ReplyWriter inner(elements);
    std::size_t count = 0;
    lua_pushnil(lua);
    while (lua_next(lua, -2) != 0) {
      if (!with_values) lua_pop(lua, 1);
      lua_pushvalue(lua, with_values ? -2 : -1);
      write_value(inner);
      if (with_values) write_value(inner);
      count += with_values ? 2 : 1;
    }
    out.array(count);
    out.text() += elements;
  }

  // Pushes a field of the table on the top if it is of that type, else nothing.
  bool push_field(const char* name, int type) {
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    if (lua_type(lua, -1) == type) return true;
    lua_pop(lua, 1);
    return false;
  }
  [[nodiscard]] std::string_view text_at_top() {
    std::size_t size = 0;
    const char* const text = lua_tolstring(lua, -1, &size);
    return {text, size};
  }
  [[nodiscard]] std::string_view one_line() {
    line.assign(c_text(text_at_top()));
    for (char& byte : line)
      if (byte == '\r' || byte == '\n') byte = ' ';
    return line;
  }
  // A cast of the processor: what does not fit is the smallest number.
  static std::int64_t truncated(double number) noexcept {
    constexpr double limit = 9223372036854775808.0;
    if (!(number >= -limit && number < limit)) return INT64_MIN;
    return static_cast<std::int64_t>(number);
  }

  // The error on the top as a reply; popped.
  void write_error(const Script& script, std::string& out) {
    ReplyWriter writer(out);
    const std::string_view sha(script.sha.data(), script.sha.size());
    if (!lua_istable(lua, -1)) {
      line.assign("ERR Error running script ").append(sha).append(", ");
      line.append((lua_isstring(lua, -1) != 0 ? c_text(text_at_top()) : "execution failure").substr(0, 100));
      writer.error(line);
      lua_pop(lua, 1);
      return;
    }
    line.clear();
    lua_getfield(lua, -1, "err");
    // Redis 7.0.15 crashes where an error is a table without a text.
    line.append(lua_isstring(lua, -1) != 0 ? c_text(text_at_top()) : "ERR unknown error");
    lua_pop(lua, 1);
    lua_getfield(lua, -1, "line");
    lua_getfield(lua, -2, "source");
    if (lua_isstring(lua, -1) != 0 && lua_isstring(lua, -2) != 0) {
      line.append(" script: ");
      if (!dialect.valkey) line.append(sha).append(", ");
      line.append("on ").append(c_text(text_at_top())).append(":");
      lua_pop(lua, 1);
      line.append(c_text(text_at_top())).append(".");
      lua_pop(lua, 1);
    } else {
      lua_pop(lua, 2);
    }
    for (char& byte : line)
      if (byte == '\r' || byte == '\n') byte = ' ';
    out.append("-").append(line).append("\r\n");
    lua_pop(lua, 1);
  }

  ScriptHost* host;
  ScriptDialect dialect;
  lua_State* lua = nullptr;
  Random48 random;
  lua_CFunction rawset = nullptr;
  lua_CFunction setmetatable = nullptr;
  lua_CFunction table_insert = nullptr;
  std::vector<const void*> protected_tables;

  // Scratch that outlives an error's jump.
  std::vector<std::string_view> words;
  std::vector<std::array<char, 32>> numbers;
  std::string reply;
  std::string line;

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, Script, TextHash, std::equal_to<>> by_sha;
  std::unordered_map<std::string, const Script*, TextHash, std::equal_to<>> by_text;  // Spares the hashing.
};

LuaScripts::LuaScripts(ScriptHost& host, ScriptDialect dialect)
    : engine_(std::make_unique<Engine>(host, std::move(dialect))) {}
LuaScripts::~LuaScripts() = default;

const LuaScripts::Script* LuaScripts::find(std::string_view sha) const {
  if (sha.size() != sha1_digits) return nullptr;
  std::array<char, sha1_digits> lower;
  for (std::size_t index = 0; index < sha1_digits; ++index) {
    const char digit = sha[index];
    lower[index] = digit >= 'A' && digit <= 'Z' ? static_cast<char>(digit - 'A' + 'a') : digit;
  }
  const auto found = engine_->by_sha.find(std::string_view(lower.data(), lower.size()));
  return found == engine_->by_sha.end() ? nullptr : &found->second;
}

const LuaScripts::Script* LuaScripts::load(std::string_view text, std::string& error) {
  if (const auto known = engine_->by_text.find(text); known != engine_->by_text.end()) return known->second;
  lua_State* const lua = engine_->lua;
  // A precompiled chunk would go past the parser: to Redis it is text.
  const bool compiled = !text.empty() && text[0] == LUA_SIGNATURE[0];
  if (compiled || luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0) {
    error = "ERR Error compiling script (new function): ";
    error += compiled ? "user_script:1: unexpected symbol near 'char(27)'" : c_text(engine_->text_at_top());
    if (!compiled) lua_pop(lua, 1);
    return nullptr;
  }
  Script script;
  script.sha = sha1_text(text);
  script.reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  const auto [place, fresh] = engine_->by_sha.emplace(std::string(script.sha.data(), script.sha.size()), script);
  engine_->by_text.emplace(std::string(text), &place->second);
  return &place->second;
}

std::string_view LuaScripts::sha(const Script& script) { return {script.sha.data(), script.sha.size()}; }

void LuaScripts::run(const Script& script, std::span<const std::string_view> keys,
                     std::span<const std::string_view> arguments, std::string& reply) {
  Engine& engine = *engine_;
  engine.set_array(place_keys_name, keys);
  engine.set_array(place_arguments_name, arguments);
  lua_rawgeti(engine.lua, LUA_REGISTRYINDEX, script.reference);
  if (lua_pcall(engine.lua, 0, 1, place_error_handler) != 0) {
    engine.write_error(script, reply);
  } else {
    ReplyWriter writer(reply);
    engine.write_value(writer);
  }
}

void LuaScripts::flush() {
  for (const auto& [sha, script] : engine_->by_sha) luaL_unref(engine_->lua, LUA_REGISTRYINDEX, script.reference);
  engine_->by_text.clear();
  engine_->by_sha.clear();
}

}  // namespace holdfast::sim

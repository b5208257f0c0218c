// SPDX-License-Identifier: MIT
//
// LuaScripts runs the scripts of a server as Redis does: in a Lua 5.1 whose globals cannot be written, with redis.call
// and its kin, with Redis's conversions in both directions and its error texts. A script is compiled once.
//
// What differs: cjson, cmsgpack, struct and bit are absent; redis.setresp(3) is refused; pairs(_G) sees nothing;
// precompiled chunks and `#!` lines are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::sim {

// The server that a script calls into.
class ScriptHost {
 public:
  // Executes a command for the running script and appends its reply, RESP2.
  virtual void call_from_script(std::span<const std::string_view> words, std::string& reply) = 0;
  // For redis.acl_check_cmd: 1 allowed, 0 forbidden, -1 unknown.
  virtual int may_call(std::span<const std::string_view> words) = 0;

 protected:
  ~ScriptHost() = default;
};

struct ScriptDialect {
  std::string version;     // redis.REDIS_VERSION.
  int version_number = 0;  // redis.REDIS_VERSION_NUM.
  bool valkey = false;     // Its words, which leave the script's digest out of errors.
};

class LuaScripts {
 public:
  struct Script;

  LuaScripts(ScriptHost& host, ScriptDialect dialect);
  ~LuaScripts();
  LuaScripts(const LuaScripts&) = delete;
  LuaScripts& operator=(const LuaScripts&) = delete;

  // Case does not matter. nullptr if it is not known.
  [[nodiscard]] const Script* find(std::string_view sha) const;
  // Compiles a text, or finds it. nullptr if it does not compile: `error` says why, as an error reply does.
  [[nodiscard]] const Script* load(std::string_view text, std::string& error);
  [[nodiscard]] static std::string_view sha(const Script& script);
  // Runs it and appends its reply.
  void run(const Script& script, std::span<const std::string_view> keys, std::span<const std::string_view> arguments,
           std::string& reply);
  void flush();

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace holdfast::sim

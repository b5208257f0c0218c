// SPDX-License-Identifier: MIT
//
// What a ModelRedis is made of, as its commands see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keyspace.hpp"
#include "lua_scripts.hpp"
#include "model_redis.hpp"
#include "pubsub.hpp"
#include "reply_writer.hpp"

namespace holdfast::sim {

struct Command;

struct Connection {
  ModelRedis::ConnectionId id = 0;
  std::int64_t client_id = 0;
  std::string input;  // The beginning of a request.
  std::string output;
  std::string name;
  int database = 0;
  bool authenticated = false;
  bool subscribed_mode = false;
  bool closed = false;                   // By the server.
  bool closing = false;                  // After this reply.
  bool gone = false;                     // The client has closed its end.
  std::optional<ModelRedis::Wait> wait;  // Until it is answered nothing more is read.
  std::vector<std::string> channels;
  std::vector<std::string> shard_channels;  // By SSUBSCRIBE.
};

// One command under execution.
struct Call {
  ServerState& server;
  Connection& connection;
  const Command& command;
  std::span<const std::string_view> words;
  int database;
  ReplyWriter reply;
  bool in_script;

  [[nodiscard]] std::size_t count() const noexcept { return words.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const noexcept { return words[index]; }
  // The word at `index`, case aside. Words are compared as C strings.
  [[nodiscard]] bool is(std::size_t index, std::string_view lower) const noexcept;

  // The key, or nullptr; an expired one is removed on the way.
  [[nodiscard]] Entry* find(std::string_view key);
  // Its value of that type, a new one where there is no key and `create` is true. False: the error has been sent.
  template <class Value>
  [[nodiscard]] bool get(std::string_view key, Value*& value, bool create = false);
  void erase(std::string_view key);
  // Erases a key whose hash, list or sorted set has become empty.
  void erase_if_empty(std::string_view key);
  // True if told.
  void tell(ModelRedis::EffectKind kind, std::string_view key, std::string_view member = {},
            std::string_view value = {}) const;

  // These read a word as a number; false: the error has been sent.
  [[nodiscard]] bool read(std::string_view text, std::int64_t& number,
                          std::string_view error = "ERR value is not an integer or out of range");
  [[nodiscard]] bool read_score(std::string_view text, double& number);
  void refuse_type() { reply.error("WRONGTYPE Operation against a key holding the wrong kind of value"); }
  void refuse_syntax() { reply.error("ERR syntax error"); }
  void refuse_arity();
  void refuse_expire_time();
};

enum CommandFlag : unsigned {
  flag_write = 1U << 0,
  flag_deny_oom = 1U << 1,
  flag_no_script = 1U << 2,
  flag_loading = 1U << 3,
  flag_stale = 1U << 4,
  flag_no_auth = 1U << 5,
  flag_allow_busy = 1U << 6,
  flag_pubsub_mode = 1U << 7,  // Allowed on a subscribed connection.
  flag_channels = 1U << 8,     // Its words are channels: all of SUBSCRIBE's, the first of PUBLISH's.
  flag_one_channel = 1U << 9,
};

struct Command {
  std::string_view full_name;  // "get", "client|kill".
  int arity = 0;               // Negative: at least so many.
  unsigned flags = 0;
  void (*run)(Call& call) = nullptr;  // nullptr: a container of subcommands.
};

struct ServerState final : ScriptHost {
  explicit ServerState(ModelRedis::Settings its_settings);

  [[nodiscard]] bool is_valkey() const noexcept { return settings.kind == ServerKind::valkey_9_0; }
  [[nodiscard]] std::int64_t now_ms() const noexcept { return now / 1000; }

  // nullptr: there is none. `container` is true where the first word has subcommands.
  [[nodiscard]] const Command* look_up(std::span<const std::string_view> words, bool& container) const;
  void execute(Connection& connection, std::span<const std::string_view> words);
  void call_from_script(std::span<const std::string_view> words, std::string& reply) override;
  int may_call(std::span<const std::string_view> words) override;

  Entry* find_live(int database, std::string_view key);
  void expire_all();
  void tell(const ModelRedis::Effect& effect) const {
    if (observer) observer(effect);
  }
  void push(Connection& connection, std::string_view bytes);
  // To who is subscribed: so many.
  std::size_t publish(const PubSub& channels, std::string_view kind, std::string_view channel,
                      std::string_view payload);
  void leave_channels(Connection& connection);
  void end_shard_channel(Connection& connection, const std::string& channel);
  void close_by_server(Connection& connection);
  [[nodiscard]] std::string_view misconf() const;

  ModelRedis::Settings settings;
  ModelRedis::Faults faults;
  WallMicros now = 0;
  WallMicros started = 0;
  std::string replication_id;
  std::int64_t second_offset = -1;  // Behind which its data are its own; -1: they always were.
  Databases databases = Databases(database_count);
  PubSub pubsub;
  PubSub shard_pubsub;
  std::map<ModelRedis::ConnectionId, Connection> connections;
  std::map<std::int64_t, ModelRedis::ConnectionId> by_client_id;  // Those that the server has.
  ModelRedis::ConnectionId next_connection = 1;
  std::int64_t next_client_id = 1;
  ModelRedis::Observer observer;
  ModelRedis::Gate gate;
  ModelRedis::Bus bus;
  LuaScripts scripts;

  // While a request is executed.
  std::span<const std::string_view> request;
  ModelRedis::ConnectionId request_from = 0;
  std::vector<std::string_view> parsed_words;
  Connection* script_caller = nullptr;
  int script_database = 0;
  bool script_has_written = false;
};

// The commands, in files of their own. Each adds to a list.
[[nodiscard]] std::span<const Command> string_commands() noexcept;
[[nodiscard]] std::span<const Command> conditional_commands() noexcept;  // DELEX and DELIFEQ: of some servers.
[[nodiscard]] std::span<const Command> key_commands() noexcept;
[[nodiscard]] std::span<const Command> hash_commands() noexcept;
[[nodiscard]] std::span<const Command> list_commands() noexcept;
[[nodiscard]] std::span<const Command> sorted_set_commands() noexcept;
[[nodiscard]] std::span<const Command> server_commands() noexcept;

// A letter's case does not matter to names of commands and options.
[[nodiscard]] std::string lower_case(std::string_view text);
// Up to the first zero byte: what a C string holds.
[[nodiscard]] inline std::string_view c_string(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

template <class Value>
bool Call::get(std::string_view key, Value*& value, bool create) {
  value = nullptr;
  Entry* entry = find(key);
  if (entry == nullptr) {
    if (!create) return true;
    entry = &server.databases[static_cast<std::size_t>(database)].create(key);
    entry->value = Value{};
  }
  value = std::get_if<Value>(&entry->value);
  if (value != nullptr) return true;
  refuse_type();
  return false;
}

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
#include "server_state.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "resp_request_parser.hpp"

namespace holdfast::sim {

namespace {

ScriptDialect dialect_of(ServerKind kind) {
  switch (kind) {
    case ServerKind::redis_7_0: return {"7.0.15", 0x0007000f, false};
    case ServerKind::redis_8_4: return {"8.4.0", 0x00080400, false};
    case ServerKind::valkey_9_0: return {"7.2.4", 0x00070204, true};
  }
  return {};
}

char lower(char byte) noexcept { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte; }

bool same(std::string_view text, std::string_view lower_text) noexcept {
  if (text.size() != lower_text.size()) return false;
  for (std::size_t index = 0; index < text.size(); ++index)
    if (lower(text[index]) != lower_text[index]) return false;
  return true;
}

// Names in upper, lower and mixed case, found without a copy.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    std::size_t hash = 14695981039346656037ULL;
    for (const char byte : name) hash = (hash ^ static_cast<unsigned char>(lower(byte))) * 1099511628211ULL;
    return hash;
  }
};
struct NameEqual {
  using is_transparent = void;
  bool operator()(std::string_view left, std::string_view right) const noexcept {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](char a, char b) { return lower(a) == lower(b); });
  }
};
using Table = std::unordered_map<std::string_view, const Command*, NameHash, NameEqual>;

struct Tables {
  Tables() {
    for (const auto& list : {string_commands(), conditional_commands(), key_commands(), hash_commands(),
                             list_commands(), sorted_set_commands(), server_commands()})
      for (const Command& command : list) {
        const std::size_t bar = command.full_name.find('|');
        if (bar == std::string_view::npos)
          top[command.full_name] = &command;
        else
          sub[command.full_name.substr(0, bar)][command.full_name.substr(bar + 1)] = &command;
      }
  }
  Table top;
  std::unordered_map<std::string_view, Table, NameHash, NameEqual> sub;
};
const Tables& tables() {
  static const Tables all;
  return all;
}

bool wrong_arity(const Command& command, std::size_t count) noexcept {
  const auto words = static_cast<int>(count);
  return command.arity > 0 ? words != command.arity : words < -command.arity;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Which part of a command is forbidden.
enum class Permission { granted, command_denied, channel_denied };
Permission permission_of(const ModelRedis::Faults& faults, const Command& command,
                         std::span<const std::string_view> words) {
  if (!faults.forbidden_commands.empty()) {
    const std::string_view name = command.full_name;
    if (contains(faults.forbidden_commands, name) ||
        contains(faults.forbidden_commands, name.substr(0, name.find('|'))))
      return Permission::command_denied;
  }
  if (!faults.forbidden_channels.empty() && (command.flags & (flag_channels | flag_one_channel)) != 0)
    for (std::size_t index = 1; index < words.size(); ++index) {
      if (contains(faults.forbidden_channels, words[index])) return Permission::channel_denied;
      if ((command.flags & flag_one_channel) != 0) break;
    }
  return Permission::granted;
}

// What somebody without the right is told. Redis from 7.2 and Valkey name the user, and say in a script what they say
// outside of it.
std::string denial(Permission denied, ServerKind kind, const Command& command, bool in_script) {
  const std::string name(command.full_name);
  const bool command_denied = denied == Permission::command_denied;
  if (kind != ServerKind::redis_7_0)
    return (in_script ? "ERR ACL failure in script: " : "NOPERM ") +
           (command_denied ? "User default has no permissions to run the '" + name + "' command"
                           : std::string("No permissions to access a channel"));
  if (in_script)
    return std::string("ERR The user executing the script ") +
           (command_denied ? "can't run this command or subcommand"
                           : "can't publish to the channel mentioned in the command");
  return command_denied ? "NOPERM this user has no permissions to run the '" + name + "' command"
                        : "NOPERM this user has no permissions to access one of the channels used as arguments";
}

constexpr std::string_view out_of_memory = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr std::string_view read_only = "READONLY You can't write against a read only replica.";
constexpr std::string_view no_replicas = "NOREPLICAS Not enough good replicas to write.";
constexpr std::string_view master_down =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& byte : result) byte = lower(byte);
  return result;
}

// ---- Call -------------------------------------------------------------------

bool Call::is(std::size_t index, std::string_view lower_word) const noexcept {
  return same(c_string(words[index]), lower_word);
}

Entry* Call::find(std::string_view key) { return server.find_live(database, key); }

void Call::erase(std::string_view key) {
  if (server.databases[static_cast<std::size_t>(database)].erase(key)) tell(ModelRedis::EffectKind::deleted, key);
}

void Call::erase_if_empty(std::string_view key) {
  const Entry* const entry = server.databases[static_cast<std::size_t>(database)].find(key);
  if (entry == nullptr) return;
  bool empty = false;
  if (const auto* hash = std::get_if<HashValue>(&entry->value)) empty = hash->fields.empty();
  if (const auto* list = std::get_if<ListValue>(&entry->value)) empty = list->empty();
  if (const auto* set = std::get_if<SortedSetValue>(&entry->value)) empty = set->members.empty();
  if (empty) erase(key);
}

void Call::tell(ModelRedis::EffectKind kind, std::string_view key, std::string_view member,
                std::string_view value) const {
  if (!server.observer) return;
  const Entry* const entry = server.databases[static_cast<std::size_t>(database)].find(key);
  server.tell({.kind = kind,
               .connection = connection.id,
               .command = command.full_name,
               .request = server.request,
               .database = database,
               .key = key,
               .member = member,
               .value = value,
               .expiry_ms = entry == nullptr ? no_expiry : entry->expiry_ms});
}

bool Call::read(std::string_view text, std::int64_t& number, std::string_view error) {
  if (read_integer(text, number)) return true;
  reply.error(error);
  return false;
}

bool Call::read_score(std::string_view text, double& number) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(copy.c_str(), &end);
  const bool blank = !copy.empty() && (copy[0] == ' ' || (copy[0] >= '\t' && copy[0] <= '\r'));
  const bool out_of_range = errno == ERANGE && (std::isinf(value) || value == 0);
  if (copy.empty() || blank || end != copy.c_str() + copy.size() || out_of_range || std::isnan(value)) {
    reply.error("ERR value is not a valid float");
    return false;
  }
  number = value;
  return true;
}

void Call::refuse_arity() {
  reply.error("ERR wrong number of arguments for '" + std::string(command.full_name) + "' command");
}

void Call::refuse_expire_time() {
  reply.error("ERR invalid expire time in '" + std::string(command.full_name) + "' command");
}

// ---- ServerState ------------------------------------------------------------

ServerState::ServerState(ModelRedis::Settings its_settings)
    : settings(std::move(its_settings)),
      now(settings.now),
      started(settings.now - settings.age),
      replication_id(settings.run_id.rbegin(), settings.run_id.rend()),
      scripts(*this, dialect_of(settings.kind)) {}

const Command* ServerState::look_up(std::span<const std::string_view> words, bool& container) const {
  const Tables& all = tables();
  container = false;
  const auto found = all.top.find(words[0]);
  if (found == all.top.end()) return nullptr;
  const Command* const command = found->second;
  if (command->run == nullptr) {
    container = true;
    if (words.size() == 1) return command;
    const Table& names = all.sub.find(command->full_name)->second;
    const auto inner = names.find(words[1]);
    return inner == names.end() ? nullptr : inner->second;
  }
  if (command->full_name == "delex" && settings.kind != ServerKind::redis_8_4) return nullptr;
  if (command->full_name == "delifeq" && settings.kind != ServerKind::valkey_9_0) return nullptr;
  return command;
}

std::string_view ServerState::misconf() const {
  if (is_valkey())
    return "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands "
           "that may modify the data set are disabled, because this instance is configured to report errors during "
           "writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Valkey logs for "
           "details about the RDB error.";
  return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands "
         "that "
         "may modify the data set are disabled, because this instance is configured to report errors during writes if "
         "RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about "
         "the "
         "RDB error.";
}

// The order of the checks is the server's.
void ServerState::execute(Connection& connection, std::span<const std::string_view> words) {
  request = words;
  request_from = connection.id;
  ReplyWriter reply(connection.output);
  // What a browser sends that was told to talk to us.
  if (same(c_string(words[0]), "host:") || same(c_string(words[0]), "post")) return close_by_server(connection);
  bool container = false;
  const Command* const command = look_up(words, container);
  if (command == nullptr && container) {
    std::string upper(c_string(words[0]));
    for (char& byte : upper)
      if (byte >= 'a' && byte <= 'z') byte = static_cast<char>(byte - 'a' + 'A');
    reply.error("ERR unknown subcommand '" + std::string(c_string(words[1]).substr(0, 128)) + "'. Try " + upper +
                " HELP.");
    return;
  }
  if (command == nullptr && gate && gate(connection.id, words, connection.output)) return;
  if (command == nullptr) {
    std::string arguments;
    for (std::size_t index = 1; index < words.size() && arguments.size() < 128; ++index) {
      const std::size_t room = 128 - arguments.size();
      arguments.append("'").append(c_string(words[index]).substr(0, room)).append("' ");
    }
    std::string line = "ERR unknown command '" + std::string(c_string(words[0]).substr(0, 128)) +
                       "', with args beginning with: " + arguments;
    for (char& byte : line)
      if (byte == '\r' || byte == '\n') byte = ' ';
    reply.error(line);
    return;
  }
  if (wrong_arity(*command, words.size()))
    return reply.error("ERR wrong number of arguments for '" + std::string(command->full_name) + "' command");
  const bool writes = (command->flags & flag_write) != 0;
  if (!settings.password.empty() && !connection.authenticated && (command->flags & flag_no_auth) == 0)
    return reply.error("NOAUTH Authentication required.");
  if (const Permission permission = permission_of(faults, *command, words); permission != Permission::granted)
    return reply.error(denial(permission, settings.kind, *command, false));
  if (gate && gate(connection.id, words, connection.output)) return;
  if (faults.refuses_subscriber() && (command->full_name == "subscribe" || command->full_name == "ssubscribe"))
    return faults.subscribe_closes ? close_by_server(connection) : reply.error(faults.subscribe_error);
  if (faults.out_of_memory && (command->flags & flag_deny_oom) != 0) return reply.error(out_of_memory);
  if (faults.disk_error && (writes || command->full_name == "ping")) return reply.error(misconf());
  if (faults.too_few_replicas && !faults.replica && writes) return reply.error(no_replicas);
  if (faults.replica && writes) return reply.error(read_only);
  if (connection.subscribed_mode && (command->flags & flag_pubsub_mode) == 0)
    return reply.error("ERR Can't execute '" + std::string(command->full_name) +
                       "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context");
  if (faults.replica && faults.link_down && (command->flags & flag_stale) == 0) return reply.error(master_down);
  if (faults.loading && (command->flags & flag_loading) == 0)
    return reply.error(is_valkey() ? "LOADING Valkey is loading the dataset in memory"
                                   : "LOADING Redis is loading the dataset in memory");
  if (faults.busy_script && (command->flags & flag_allow_busy) == 0)
    return reply.error(is_valkey() ? "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
                                     "NOSAVE."
                                   : "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
                                     "NOSAVE.");
  Call call{*this, connection, *command, words, connection.database, reply, false};
  command->run(call);
}

void ServerState::call_from_script(std::span<const std::string_view> words, std::string& text) {
  ReplyWriter reply(text);
  bool container = false;
  const Command* const command = look_up(words, container);
  if (command == nullptr)
    return reply.error(is_valkey() ? "ERR Unknown command called from script"
                                   : "ERR Unknown Redis command called from script");
  if (wrong_arity(*command, words.size()))
    return reply.error(is_valkey() ? "ERR Wrong number of args calling command from script"
                                   : "ERR Wrong number of args calling Redis command from script");
  if ((command->flags & flag_no_script) != 0)
    return reply.error(is_valkey() ? "ERR This Valkey command is not allowed from script"
                                   : "ERR This Redis command is not allowed from script");
  if (faults.replica && faults.link_down && (command->flags & flag_stale) == 0)
    return reply.error("ERR Can not execute the command on a stale replica");
  if (const Permission permission = permission_of(faults, *command, words); permission != Permission::granted)
    return reply.error(denial(permission, settings.kind, *command, true));
  // Each key of a script must be there, whether it was declared or not.
  std::string elsewhere;
  if (gate && gate(script_caller->id, words, elsewhere))
    return reply.error(is_valkey() ? "ERR Attempted to access a non local key in a cluster node"
                                   : "ERR Script attempted to access a non local key in a cluster node");
  // A script that has written once may go on: half of it would be worse.
  const bool writes = (command->flags & flag_write) != 0;
  if (writes && !script_has_written) {
    if (faults.replica) return reply.error(read_only);
    if (faults.disk_error) return reply.error(misconf());
    if (faults.too_few_replicas) return reply.error(no_replicas);
  }
  if (faults.out_of_memory && !script_has_written && (command->flags & flag_deny_oom) != 0)
    return reply.error(out_of_memory);
  if (writes) script_has_written = true;
  Call call{*this, *script_caller, *command, words, script_database, reply, true};
  command->run(call);
}

int ServerState::may_call(std::span<const std::string_view> words) {
  bool container = false;
  const Command* const command = look_up(words, container);
  if (command == nullptr) return -1;
  return permission_of(faults, *command, words) == Permission::granted ? 1 : 0;
}

std::size_t ServerState::publish(const PubSub& channels, std::string_view kind, std::string_view channel,
                                 std::string_view payload) {
  std::string message;
  ReplyWriter writer(message);
  writer.array(3);
  writer.bulk(kind);
  writer.bulk(channel);
  writer.bulk(payload);
  // A copy: who is closed at the output limit leaves the list.
  const std::vector<PubSub::Subscriber> told = channels.subscribers(channel);
  for (const PubSub::Subscriber subscriber : told) push(connections.find(subscriber)->second, message);
  return told.size();
}

Entry* ServerState::find_live(int database, std::string_view key) {
  Keyspace& keys = databases[static_cast<std::size_t>(database)];
  Entry* const entry = keys.find(key);
  if (entry == nullptr) return nullptr;
  if (entry->expiry_ms == no_expiry || now_ms() <= entry->expiry_ms) return entry;
  // A replica waits for its master to delete it; to its clients it is gone.
  if (faults.replica) return nullptr;
  const std::string name(key);
  keys.erase(name);
  tell({.kind = ModelRedis::EffectKind::expired, .database = database, .key = name});
  return nullptr;
}

void ServerState::expire_all() {
  if (faults.replica || faults.loading) return;
  int database = 0;
  for (Keyspace& keys : databases) {
    std::int64_t when = 0;
    for (const std::string* key = keys.first_to_expire(when); key != nullptr && now_ms() > when;
         key = keys.first_to_expire(when)) {
      const std::string name = *key;
      keys.erase(name);
      tell({.kind = ModelRedis::EffectKind::expired, .database = database, .key = name});
    }
    ++database;
  }
}

void ServerState::push(Connection& connection, std::string_view bytes) {
  if (connection.gone || connection.closed) return;
  connection.output += bytes;
  if (connection.output.size() <= settings.subscriber_output_max) return;
  // What it has not taken until now it will never get.
  connection.output.clear();
  close_by_server(connection);
}

void ServerState::leave_channels(Connection& connection) {
  for (const std::string& channel : connection.channels) pubsub.unsubscribe(connection.id, channel);
  connection.channels.clear();
  for (const std::string& channel : connection.shard_channels) shard_pubsub.unsubscribe(connection.id, channel);
  connection.shard_channels.clear();
  connection.subscribed_mode = false;
}

// Its slot has left the server, which says so unasked.
void ServerState::end_shard_channel(Connection& connection, const std::string& channel) {
  shard_pubsub.unsubscribe(connection.id, channel);
  std::erase(connection.shard_channels, channel);
  std::string text;
  ReplyWriter writer(text);
  writer.array(3);
  writer.bulk("sunsubscribe");
  writer.bulk(channel);
  writer.integer(static_cast<std::int64_t>(connection.shard_channels.size()));
  connection.subscribed_mode = !connection.channels.empty() || !connection.shard_channels.empty();
  push(connection, text);
}

void ServerState::close_by_server(Connection& connection) {
  if (connection.closed) return;
  connection.closed = true;
  connection.input.clear();
  leave_channels(connection);
  by_client_id.erase(connection.client_id);
}

}  // namespace holdfast::sim

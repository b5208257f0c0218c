// SPDX-License-Identifier: MIT
//
// Connections, scripts, channels, and the server itself.
#include "server_state.hpp"

namespace holdfast::sim {

namespace {

// ---- Connections ------------------------------------------------------------

void auth(Call& call) {
  if (call.count() > 3) return call.refuse_syntax();
  const std::string& password = call.server.settings.password;
  if (call.count() == 2 && password.empty())
    return call.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  const std::string_view user = call.count() == 2 ? "default" : call[1];
  if (user != "default" || (!password.empty() && call[call.count() - 1] != password))
    return call.reply.error("WRONGPASS invalid username-password pair or user is disabled.");
  call.connection.authenticated = true;
  call.reply.ok();
}

void select(Call& call) {
  std::int64_t index = 0;
  if (!call.read(call[1], index)) return;
  if (index < INT32_MIN || index > INT32_MAX)
    return call.reply.error(
        "ERR value is out of range, value must between "
        "-2147483648 and 2147483647");
  if (index < 0 || index >= database_count) return call.reply.error("ERR DB index is out of range");
  if (call.in_script)
    call.server.script_database = static_cast<int>(index);
  else
    call.connection.database = static_cast<int>(index);
  call.reply.ok();
}

void ping(Call& call) {
  if (call.count() > 2) return call.refuse_arity();
  const bool named = call.count() == 2;
  if (call.connection.subscribed_mode && !call.in_script) {
    call.reply.array(2);
    call.reply.bulk("pong");
    call.reply.bulk(named ? call[1] : "");
  } else if (named) {
    call.reply.bulk(call[1]);
  } else {
    call.reply.status("PONG");
  }
}

void echo(Call& call) { call.reply.bulk(call[1]); }

void quit(Call& call) {
  call.reply.ok();
  call.connection.closing = true;
}

void reset(Call& call) {
  call.server.leave_channels(call.connection);
  call.connection.name.clear();
  call.connection.database = 0;
  call.connection.authenticated = false;
  call.reply.status("RESET");
}

void client_id(Call& call) { call.reply.integer(call.connection.client_id); }

void client_setname(Call& call) {
  for (const char byte : call[2])
    if (byte < '!' || byte > '~')
      return call.reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
  call.connection.name = call[2];
  call.reply.ok();
}

void client_getname(Call& call) {
  if (call.connection.name.empty())
    call.reply.null_bulk();
  else
    call.reply.bulk(call.connection.name);
}

void client_kill(Call& call) {
  // The old form names an address. Connections of a model have none.
  if (call.count() == 3) return call.reply.error("ERR No such client");
  std::int64_t id = 0;
  bool skip_me = true;
  bool by_address = false;
  enum class Kind { any, normal, pubsub, other } kind = Kind::any;
  for (std::size_t index = 2; index < call.count(); index += 2) {
    if (index + 1 == call.count()) return call.refuse_syntax();
    if (call.is(index, "id")) {
      if (!call.read(call[index + 1], id, "ERR client-id should be greater than 0")) return;
      if (id < 1) return call.reply.error("ERR client-id should be greater than 0");
    } else if (call.is(index, "type")) {
      if (call.is(index + 1, "normal"))
        kind = Kind::normal;
      else if (call.is(index + 1, "pubsub"))
        kind = Kind::pubsub;
      else if (call.is(index + 1, "master") || call.is(index + 1, "slave") || call.is(index + 1, "replica"))
        kind = Kind::other;
      else
        return call.reply.error("ERR Unknown client type '" + std::string(c_string(call[index + 1])) + "'");
    } else if (call.is(index, "addr") || call.is(index, "laddr")) {
      by_address = true;
    } else if (call.is(index, "user")) {
      if (call[index + 1] != "default")
        return call.reply.error("ERR No such user '" + std::string(c_string(call[index + 1])) + "'");
    } else if (call.is(index, "skipme")) {
      if (!call.is(index + 1, "yes") && !call.is(index + 1, "no")) return call.refuse_syntax();
      skip_me = call.is(index + 1, "yes");
    } else {
      return call.refuse_syntax();
    }
  }
  std::vector<Connection*> killed;
  for (const auto& [client, connection] : call.server.by_client_id) {
    Connection& candidate = call.server.connections.find(connection)->second;
    if (by_address || (id != 0 && client != id) || (skip_me && &candidate == &call.connection)) continue;
    if (kind == Kind::other || (kind == Kind::pubsub && !candidate.subscribed_mode) ||
        (kind == Kind::normal && candidate.subscribed_mode))
      continue;
    killed.push_back(&candidate);
  }
  for (Connection* const connection : killed) {
    if (connection == &call.connection)
      connection->closing = true;
    else
      call.server.close_by_server(*connection);
  }
  call.reply.integer(static_cast<std::int64_t>(killed.size()));
}

// ---- Scripts ----------------------------------------------------------------

void run_script(Call& call, const LuaScripts::Script& script, std::size_t keys) {
  ServerState& server = call.server;
  if (server.faults.replica && server.faults.link_down)
    return call.reply.error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
  server.script_caller = &call.connection;
  server.script_database = call.database;
  server.script_has_written = false;
  server.scripts.run(script, call.words.subspan(3, keys), call.words.subspan(3 + keys), call.reply.text());
  server.script_caller = nullptr;
}

bool read_key_count(Call& call, std::size_t& keys) {
  std::int64_t count = 0;
  if (!call.read(call[2], count)) return false;
  if (count > static_cast<std::int64_t>(call.count()) - 3) {
    call.reply.error("ERR Number of keys can't be greater than number of args");
    return false;
  }
  if (count < 0) {
    call.reply.error("ERR Number of keys can't be negative");
    return false;
  }
  keys = static_cast<std::size_t>(count);
  return true;
}

void eval(Call& call) {
  std::size_t keys = 0;
  if (!read_key_count(call, keys)) return;
  std::string error;
  const LuaScripts::Script* const script = call.server.scripts.load(call[1], error);
  if (script == nullptr) return call.reply.error(error);
  run_script(call, *script, keys);
}

void evalsha(Call& call) {
  const auto refuse = [&] {
    call.reply.error(call.server.is_valkey() ? "NOSCRIPT No matching script."
                                             : "NOSCRIPT No matching script. Please use EVAL.");
  };
  if (call[1].size() != 40) return refuse();
  std::size_t keys = 0;
  if (!read_key_count(call, keys)) return;
  const LuaScripts::Script* const script = call.server.scripts.find(call[1]);
  if (script == nullptr) return refuse();
  run_script(call, *script, keys);
}

void script_load(Call& call) {
  std::string error;
  const LuaScripts::Script* const script = call.server.scripts.load(call[2], error);
  if (script == nullptr) return call.reply.error(error);
  call.reply.bulk(LuaScripts::sha(*script));
}

void script_exists(Call& call) {
  call.reply.array(call.count() - 2);
  for (std::size_t index = 2; index < call.count(); ++index)
    call.reply.integer(call.server.scripts.find(call[index]) != nullptr ? 1 : 0);
}

void script_flush(Call& call) {
  if (call.count() > 3 || (call.count() == 3 && !call.is(2, "sync") && !call.is(2, "async")))
    return call.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  call.server.scripts.flush();
  call.reply.ok();
}

void script_kill(Call& call) {
  if (!call.server.faults.busy_script) return call.reply.error("NOTBUSY No scripts in execution right now.");
  call.server.faults.busy_script = false;
  call.reply.ok();
}

// ---- Channels ---------------------------------------------------------------

void publish_to(Call& call, const PubSub& pubsub, std::string_view kind) {
  const std::size_t told = call.server.publish(pubsub, kind, call[1], call[2]);
  call.tell(ModelRedis::EffectKind::published, call[1], call[2], std::to_string(told));
  call.reply.integer(static_cast<std::int64_t>(told));
}

void publish(Call& call) {
  publish_to(call, call.server.pubsub, "message");
  if (call.server.bus) call.server.bus(call[1], call[2]);
}
void spublish(Call& call) { publish_to(call, call.server.shard_pubsub, "smessage"); }

void confirm(Call& call, std::string_view kind, const std::string_view* channel) {
  call.reply.array(3);
  call.reply.bulk(kind);
  if (channel == nullptr)
    call.reply.null_bulk();
  else
    call.reply.bulk(*channel);
  const bool of_shard = kind.starts_with("ss") || kind.starts_with("sun");
  call.reply.integer(
      static_cast<std::int64_t>(of_shard ? call.connection.shard_channels.size() : call.connection.channels.size()));
}

void settle_mode(Connection& connection) {
  connection.subscribed_mode = !connection.channels.empty() || !connection.shard_channels.empty();
}

void subscribe(Call& call) {
  for (std::size_t index = 1; index < call.count(); ++index) {
    if (call.server.pubsub.subscribe(call.connection.id, call[index]))
      call.connection.channels.emplace_back(call[index]);
    confirm(call, "subscribe", &call.words[index]);
  }
  call.connection.subscribed_mode = true;
}

void unsubscribe(Call& call) {
  std::vector<std::string>& channels = call.connection.channels;
  const auto leave = [&](std::string_view channel) {
    if (call.server.pubsub.unsubscribe(call.connection.id, channel))
      channels.erase(std::find(channels.begin(), channels.end(), channel));
    confirm(call, "unsubscribe", &channel);
  };
  if (call.count() == 1 && channels.empty()) confirm(call, "unsubscribe", nullptr);
  if (call.count() == 1)
    while (!channels.empty()) leave(std::string(channels.front()));
  for (std::size_t index = 1; index < call.count(); ++index) leave(call[index]);
  settle_mode(call.connection);
}

// Of channels that belong to a slot. Whose slot it is, the gate has looked at.
void ssubscribe(Call& call) {
  for (std::size_t index = 1; index < call.count(); ++index) {
    if (call.server.shard_pubsub.subscribe(call.connection.id, call[index]))
      call.connection.shard_channels.emplace_back(call[index]);
    confirm(call, "ssubscribe", &call.words[index]);
  }
  call.connection.subscribed_mode = true;
}

void sunsubscribe(Call& call) {
  std::vector<std::string>& channels = call.connection.shard_channels;
  const auto leave = [&](std::string_view channel) {
    if (call.server.shard_pubsub.unsubscribe(call.connection.id, channel))
      channels.erase(std::find(channels.begin(), channels.end(), channel));
    confirm(call, "sunsubscribe", &channel);
  };
  if (call.count() == 1 && channels.empty()) confirm(call, "sunsubscribe", nullptr);
  if (call.count() == 1)
    while (!channels.empty()) leave(std::string(channels.front()));
  for (std::size_t index = 1; index < call.count(); ++index) leave(call[index]);
  settle_mode(call.connection);
}

void refuse_subcommand(Call& call, std::string_view container) {
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(c_string(call[1]).substr(0, 128)) + "'. Try " + std::string(container) + " HELP.");
}

// The pattern may be a text or a text and a star: that is what is asked here.
void pubsub_channels(Call& call) {
  if (call.count() > 3) return refuse_subcommand(call, "PUBSUB");
  std::vector<std::string> found = call.server.pubsub.channels();
  if (call.count() == 3) {
    const std::string_view pattern = call[2];
    const bool star = !pattern.empty() && pattern.back() == '*';
    const std::string_view text = star ? pattern.substr(0, pattern.size() - 1) : pattern;
    std::erase_if(found, [&](const std::string& channel) {
      return star ? std::string_view(channel).substr(0, text.size()) != text : channel != text;
    });
  }
  call.reply.array(found.size());
  for (const std::string& channel : found) call.reply.bulk(channel);
}

void pubsub_numsub(Call& call) {
  call.reply.array(2 * (call.count() - 2));
  for (std::size_t index = 2; index < call.count(); ++index) {
    call.reply.bulk(call[index]);
    call.reply.integer(static_cast<std::int64_t>(call.server.pubsub.subscribers(call[index]).size()));
  }
}

void pubsub_numpat(Call& call) { call.reply.integer(0); }

// ---- The server -------------------------------------------------------------

void time(Call& call) {
  call.reply.array(2);
  call.reply.bulk_number(call.server.now / 1'000'000);
  call.reply.bulk_number(call.server.now % 1'000'000);
}

// Without replicas nobody ever acknowledges, and the wait is over at once.
void wait(Call& call) {
  if (call.server.faults.replica)
    return call.reply.error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is "
        "configured to be writable (which is not the default) writes to replicas are just local and are not "
        "propagated.");
  std::int64_t replicas = 0;
  std::int64_t timeout = 0;
  if (!call.read(call[1], replicas)) return;
  if (!call.read(call[2], timeout, "ERR timeout is not an integer or out of range")) return;
  if (timeout < 0) return call.reply.error("ERR timeout is negative");
  if (!call.server.settings.has_replicas || call.in_script) return call.reply.integer(0);
  call.connection.wait = {.replicas = replicas, .timeout_ms = timeout};
}

std::string server_section(const ServerState& server) {
  std::string text = "# Server\r\n";
  const auto line = [&](std::string_view name, std::string_view value) {
    text.append(name).append(":").append(value).append("\r\n");
  };
  switch (server.settings.kind) {
    case ServerKind::redis_7_0: line("redis_version", "7.0.15"); break;
    case ServerKind::redis_8_4: line("redis_version", "8.4.0"); break;
    case ServerKind::valkey_9_0:
      line("redis_version", "7.2.4");
      line("server_name", "valkey");
      line("valkey_version", "9.0.0");
      break;
  }
  const std::int64_t uptime = std::max<std::int64_t>(server.now / 1'000'000 - server.started / 1'000'000, 0);
  line(server.is_valkey() ? "server_mode" : "redis_mode", server.settings.cluster ? "cluster" : "standalone");
  line("arch_bits", "64");
  line("run_id", server.settings.run_id);
  line("server_time_usec", std::to_string(server.now));
  line("uptime_in_seconds", std::to_string(uptime));
  line("uptime_in_days", std::to_string(uptime / 86400));
  return text;
}

void info(Call& call) {
  const auto asked = [&](std::string_view section) {
    if (call.count() == 1) return true;
    for (std::size_t index = 1; index < call.count(); ++index)
      if (call.is(index, section) || call.is(index, "all") || call.is(index, "default") || call.is(index, "everything"))
        return true;
    return false;
  };
  const ServerState& server = call.server;
  std::string text;
  const auto add = [&](const std::string& section) {
    if (!text.empty()) text += "\r\n";
    text += section;
  };
  if (asked("server")) add(server_section(server));
  if (asked("clients")) add("# Clients\r\nconnected_clients:" + std::to_string(server.by_client_id.size()) + "\r\n");
  if (asked("memory")) add("# Memory\r\nmaxmemory_policy:" + server.settings.maxmemory_policy + "\r\n");
  if (asked("persistence"))
    add(std::string("# Persistence\r\nloading:") + (server.faults.loading ? "1" : "0") + "\r\n");
  if (asked("replication")) {
    std::string section = std::string("# Replication\r\nrole:") + (server.faults.replica ? "slave" : "master") + "\r\n";
    if (server.faults.replica)
      section += std::string("master_link_status:") + (server.faults.link_down ? "down" : "up") + "\r\n";
    section += "connected_slaves:0\r\nmaster_replid:" + server.replication_id;
    section += "\r\nmaster_replid2:" + std::string(40, '0');
    section += "\r\nmaster_repl_offset:" + std::to_string(server.now / 1'000'000);
    add(section + "\r\nsecond_repl_offset:" + std::to_string(server.second_offset) + "\r\n");
  }
  if (asked("keyspace")) {
    std::string section = "# Keyspace\r\n";
    int database = 0;
    for (const Keyspace& keys : server.databases) {
      if (keys.size() != 0)
        section += "db" + std::to_string(database) + ":keys=" + std::to_string(keys.size()) + "\r\n";
      ++database;
    }
    add(section);
  }
  call.reply.bulk(text);
}

constexpr unsigned anytime = flag_loading | flag_stale;
constexpr unsigned outside = flag_no_script | anytime;
constexpr unsigned handshake = outside | flag_no_auth | flag_allow_busy;
constexpr Command all[] = {
    {"auth", -2, handshake, auth},
    {"select", 2, anytime, select},
    {"ping", -1, flag_pubsub_mode, ping},
    {"echo", 2, anytime, echo},
    {"quit", -1, handshake | flag_pubsub_mode, quit},
    {"reset", 1, handshake | flag_pubsub_mode, reset},
    {"client", -2, 0, nullptr},
    {"client|id", 2, outside, client_id},
    {"client|setname", 3, outside, client_setname},
    {"client|getname", 2, outside, client_getname},
    {"client|kill", -3, outside, client_kill},
    {"eval", -3, flag_no_script | flag_stale, eval},
    {"evalsha", -3, flag_no_script | flag_stale, evalsha},
    {"script", -2, 0, nullptr},
    {"script|load", 3, flag_no_script | flag_stale, script_load},
    {"script|exists", -3, flag_no_script, script_exists},
    {"script|flush", -2, flag_no_script, script_flush},
    {"script|kill", 2, flag_no_script | flag_allow_busy, script_kill},
    {"publish", 3, anytime | flag_one_channel, publish},
    {"subscribe", -2, outside | flag_pubsub_mode | flag_channels, subscribe},
    {"unsubscribe", -1, outside | flag_pubsub_mode, unsubscribe},
    {"spublish", 3, anytime | flag_one_channel, spublish},
    {"ssubscribe", -2, outside | flag_pubsub_mode | flag_channels, ssubscribe},
    {"sunsubscribe", -1, outside | flag_pubsub_mode, sunsubscribe},
    {"pubsub", -2, 0, nullptr},
    {"pubsub|channels", -2, anytime, pubsub_channels},
    {"pubsub|numsub", -2, anytime, pubsub_numsub},
    {"pubsub|numpat", 2, anytime, pubsub_numpat},
    {"time", 1, anytime, time},
    {"wait", 3, flag_no_script, wait},
    {"info", -1, anytime, info},
};

}  // namespace

std::span<const Command> server_commands() noexcept { return all; }

}  // namespace holdfast::sim

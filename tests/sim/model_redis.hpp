// SPDX-License-Identifier: MIT
//
// ModelRedis is a Redis or Valkey server without sockets, clock or randomness: bytes come in by call, replies go out by
// call, and its owner sets the time. It is whole as far as locks go: requests are parsed with the server's limits, keys
// expire, scripts are run by Lua, published messages wake subscribers, and what it refuses it refuses in the server's
// words. test_model_fidelity.cpp compares it with a real one.
//
// The same calls give the same bytes. Not for several threads. It may use the heap: it is a test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keyspace.hpp"

namespace holdfast::sim {

struct ServerState;

enum class ServerKind : std::uint8_t {
  redis_7_0,   // 7.0.15.
  redis_8_4,   // With DELEX and SET IFEQ.
  valkey_9_0,  // With DELIFEQ and SET IFEQ.
};

// Milliseconds and microseconds since 1970, on the wall clock of this server.
using WallMicros = std::int64_t;

inline constexpr int database_count = 16;
using Databases = std::vector<Keyspace>;

class ModelRedis {
 public:
  struct Settings {
    ServerKind kind = ServerKind::redis_7_0;
    std::string run_id = std::string(40, 'a');
    std::string password = {};  // Empty: none is asked for.
    std::string maxmemory_policy = "noeviction";
    std::size_t clients_max = 10000;
    // A subscriber that has not taken this many bytes is closed, as client-output-buffer-limit pubsub has it.
    std::size_t subscriber_output_max = 32 * 1024 * 1024;
    WallMicros now = 1'700'000'000'000'000;
    WallMicros age = 0;  // How long it has been up by then.
    // Keys that are past their time go when the clock is set. Without, they go when they are touched.
    bool active_expiry = true;
    bool cluster =
        false;  // It says that it is in cluster mode. What that means for keys is its gate's: cluster_model.hpp.
    bool has_replicas = false;  // Its owner answers WAIT in their place.
  };

  // What is wrong with the server. Commands are refused as the server does it; nothing is undone.
  struct Faults {
    bool loading = false;
    bool out_of_memory = false;                        // Used memory is above maxmemory and nothing can be evicted.
    bool replica = false;                              // Read-only.
    bool link_down = false;                            // With replica: replica-serve-stale-data is no.
    bool too_few_replicas = false;                     // min-replicas-to-write.
    bool disk_error = false;                           // The last snapshot failed; stop-writes-on-bgsave-error.
    bool busy_script = false;                          // A script runs; ended by SCRIPT KILL.
    std::size_t other_clients = 0;                     // Connections of somebody else's that count for maxclients.
    std::vector<std::string> forbidden_commands = {};  // Lower case, with subcommand: "del", "client|kill". ACL.
    std::vector<std::string> forbidden_channels = {};
    std::string subscribe_error = {};  // SUBSCRIBE is answered so, the code of the error included, whoever asks.
    bool subscribe_closes = false;     // It is answered by the end of the connection.

    [[nodiscard]] bool refuses_subscriber() const noexcept { return !subscribe_error.empty() || subscribe_closes; }
  };

  enum class EffectKind : std::uint8_t {
    set,      // A string has a new value, with or without expiry.
    deleted,  // By a command, or because the last field or element has gone.
    expired,
    evicted,
    flushed,             // The whole database.
    expiry_changed,      // `expiry_ms`; no_expiry: it stays.
    field_set,           // `member`, `value`.
    field_deleted,       // `member`.
    list_changed,        // `member`: the element that came or went.
    sorted_set_changed,  // `member`; `value` is the score, empty if it went.
    published,           // `key` is the channel, `member` the payload, `value` how many were told.
  };
  // One change, told while it happens. The views live as long as the call.
  struct Effect {
    EffectKind kind = EffectKind::set;
    std::uint64_t connection = 0;                    // Zero: the server's own doing.
    std::string_view command = {};                   // Lower case; inside of a script the inner one.
    std::span<const std::string_view> request = {};  // The words of the request that came over the wire.
    int database = 0;
    std::string_view key = {};
    std::string_view member = {};
    std::string_view value = {};
    std::int64_t expiry_ms = no_expiry;  // Of the key, afterwards.
  };
  using Observer = std::function<void(const Effect&)>;

  using ConnectionId = std::uint64_t;  // Never used again, also after a restart.
  // Asked before each command that the server would run: true where `reply` is the answer, and nothing is run.
  using Gate =
      std::function<bool(ConnectionId connection, std::span<const std::string_view> words, std::string& reply)>;

  // A WAIT that holds its connection up: what is behind it is not read until then.
  struct Wait {
    std::int64_t replicas = 0;
    std::int64_t timeout_ms = 0;
  };

  // Told of each PUBLISH: in a cluster, all nodes have its channels together.
  using Bus = std::function<void(std::string_view channel, std::string_view payload)>;

  explicit ModelRedis(Settings settings);
  ~ModelRedis();
  ModelRedis(const ModelRedis&) = delete;
  ModelRedis& operator=(const ModelRedis&) = delete;

  // A. Connections.
  // Never fails: a client too many finds a line in its output and the connection closed.
  [[nodiscard]] ConnectionId accept();
  // Bytes that have reached the server. Whole commands are executed in their order; the rest is kept.
  // Returns how many commands were executed.
  std::size_t receive(ConnectionId connection, std::string_view bytes);
  std::size_t receive(ConnectionId connection, std::string_view bytes, WallMicros now);
  // Replies and pushes since the last call.
  [[nodiscard]] std::string take_output(ConnectionId connection);
  [[nodiscard]] std::size_t output_size(ConnectionId connection) const;
  // True if there is output, or the connection is closed: what its owner would look at.
  [[nodiscard]] bool wants_attention(ConnectionId connection) const;
  // nullopt: none is held up.
  [[nodiscard]] std::optional<Wait> wait_of(ConnectionId connection) const;
  // So many replicas have what was written. Goes on with what was received meanwhile; returns how many commands were executed.
  std::size_t answer_wait(ConnectionId connection, std::int64_t replicas);
  // Closed by the server: CLIENT KILL, QUIT, the output limit, a protocol error, a restart. What was sent before is
  // still in its output.
  [[nodiscard]] bool closed(ConnectionId connection) const;
  // The client has closed its end and the server does not know yet: bytes that are on their way may still be received,
  // are executed, and their replies go nowhere. CLIENT KILL stops them. For the server it is a client, and a
  // subscriber, until it reads the end.
  void close(ConnectionId connection);
  // The server reads the end of the stream: the connection and its subscriptions are gone.
  void receive_end(ConnectionId connection);

  // B. Time. It may step in both directions. Keys expire.
  void set_now(WallMicros now);
  // The same, and keys that are past their time go, whatever hinders the server at that: loading, or being a replica.
  void expire(WallMicros now);
  [[nodiscard]] WallMicros now() const;
  // When the next key expires: the first instant at which it is gone. nullopt if none does.
  [[nodiscard]] std::optional<WallMicros> next_expiry() const;

  // C. Faults.
  [[nodiscard]] Faults& faults();
  // The process dies and starts again. Connections, subscriptions, scripts and client ids are lost; faults stay.
  enum class Data : bool { lost, kept };
  void restart(Data data, std::string_view run_id);
  // It is a replica no more: its data are those of the master that it had.
  void promote(std::string_view replication_id);
  // As a replica that has been there for so long, and says so.
  void set_age(WallMicros age);
  void flush();
  // False if there was none.
  bool evict(std::string_view key, int database = 0);
  void flush_scripts();
  // As CLIENT KILL from somewhere else.
  void kill(ConnectionId connection);
  // What a replica that lags has: taken now, loaded later. Connections stay.
  [[nodiscard]] Databases copy_data() const;
  void load_data(const Databases& data);
  // The slots of these channels have left it: who was subscribed to one of them by SSUBSCRIBE is told that it is not any more.
  void end_shard_channels(const std::function<bool(std::string_view channel)>& left);

  // Another node has published it. Who is subscribed here hears of it.
  void hear(std::string_view channel, std::string_view payload);

  // D. For checkers: nothing of this changes anything.
  // nullptr if it is not there or its time has passed.
  [[nodiscard]] const Entry* find(std::string_view key, int database = 0) const;
  // Also what has expired and was not looked at since: it is there again where the clock is put back.
  [[nodiscard]] const Entry* find_stored(std::string_view key, int database = 0) const;
  [[nodiscard]] std::vector<std::string> keys(int database = 0) const;
  // By SUBSCRIBE or by SSUBSCRIBE.
  [[nodiscard]] std::vector<ConnectionId> subscribers(std::string_view channel) const;
  // By SUBSCRIBE alone.
  [[nodiscard]] bool hears(std::string_view channel) const;
  [[nodiscard]] std::size_t connection_count() const;
  [[nodiscard]] std::int64_t client_id(ConnectionId connection) const;  // As CLIENT ID says it; 0: unknown.
  [[nodiscard]] const Settings& settings() const;
  void observe(Observer observer);
  void set_gate(Gate gate);
  void set_bus(Bus bus);

 private:
  std::unique_ptr<ServerState> state_;
};

}  // namespace holdfast::sim

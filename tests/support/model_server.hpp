// SPDX-License-Identifier: MIT
//
// ModelServer is a Redis or Valkey as far as a Mutex can tell: keys with tokens and lifetimes, scripts known by their
// SHA-1, connections with bytes in both directions, a clock that its owner sets. It executes one request when it is
// told to, so that every order of events can be had. It is honest: what it answers is what it did, but for the faults
// that it is asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/instant.hpp"
#include "resp_oracle.hpp"
#include "resp_tree.hpp"
#include "scripts.hpp"

namespace holdfast::testing {

enum class ServerRelease : std::uint8_t { redis_6_2, redis_7_0, redis_8_4, valkey_9_0 };

enum class ServerFault : std::uint8_t {
  none,
  loading,
  out_of_memory,
  read_only,
  busy_script,
  cluster_down,
  no_permission,
  unknown_error,           // An error without a class; nothing ran.
  unknown_error_executed,  // The same, and the command ran all the same.
};
inline constexpr int server_fault_count = static_cast<int>(ServerFault::unknown_error_executed) + 1;

class ModelServer {
 public:
  struct Connection {
    std::int64_t id = 0;
    int client = 0;        // Whose it is, for the tests.
    bool open = true;      // The client's end. What is in `inbound` may be executed after it has closed.
    std::string inbound;   // Sent by the client, not executed yet.
    std::string outbound;  // Replies on their way.
  };
  struct Entry {
    std::string value;
    Instant expires;
    bool is_string = true;
  };
  enum class Effect : std::uint8_t {
    set,
    extended,
    deleted,
    delete_refused,         // There was nothing of that token.
    compensation_unserved,  // EVAL of a release met a fault that does not pass by itself.
    killed,                 // CLIENT KILL closed `from`.
  };
  // Told of every effect when it happens. `token` is the one that the request carried.
  using Observer =
      std::function<void(Effect effect, const Connection& from, const std::string& key, const std::string& token)>;

  explicit ModelServer(Observer observer) : observer_(std::move(observer)) {}

  ServerRelease release = ServerRelease::redis_7_0;
  std::string run_id = std::string(40, 'a');
  bool identity_allowed = true;
  bool kill_allowed = true;
  bool native_allowed = true;
  ServerFault fault = ServerFault::none;  // Of the next command that is not part of a handshake.
  Instant now;

  Connection& accept(int client) {
    connections_.push_back({static_cast<std::int64_t>(connections_.size()) + 1, client, true, {}, {}});
    return connections_.back();
  }
  [[nodiscard]] std::deque<Connection>& connections() { return connections_; }

  // The entry of a key that has not expired, or nullptr.
  Entry* find(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    if (found->second.expires <= now) {
      entries_.erase(found);
      return nullptr;
    }
    return &found->second;
  }
  // Somebody who does not keep to the rules.
  void overwrite(const std::string& key, const Entry& entry) { entries_[key] = entry; }
  void flush_scripts() { scripts_.clear(); }

  // Executes the next whole request of a connection. False if there is none.
  bool execute_one(Connection& connection) {
    RespTree request;
    std::size_t size = 0;
    const OracleLimits wide = {.bulk = 1U << 20, .elements = 1U << 10, .reply = 1U << 24};
    if (RespOracle::read(connection.inbound, wide, request, size) != ParseResult::value) return false;
    connection.inbound.erase(0, size);
    std::vector<std::string> words;
    for (const RespTree& item : request.items) words.push_back(item.text);
    const std::string reply = execute(connection, words);
    if (connection.open) connection.outbound += reply;
    return true;
  }

 private:
  static std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  static std::string integer(std::int64_t number) { return ":" + std::to_string(number) + "\r\n"; }
  static std::string error(const std::string& line) { return "-" + line + "\r\n"; }

  // An error out of a script, in the shape of the release.
  [[nodiscard]] std::string script_error(const std::string& sha, const std::string& line) const {
    if (release == ServerRelease::redis_6_2)
      return error("ERR Error running script (call to f_" + sha + "): @user_script:1: @user_script: 1: -" + line);
    return error(line + " script: " + sha + ", on @user_script:1.");
  }

  std::string execute(Connection& connection, const std::vector<std::string>& words) {
    const std::string& name = words[0];
    if (name == "AUTH" || name == "SELECT") return "+OK\r\n";
    if (name == "CLIENT") return client(connection, words);
    const bool is_script = name == "EVAL" || name == "EVALSHA";
    if (name == "EVAL" && ByteView(words[1]) == scripts::server_identity.text) return identity();

    const ServerFault now_fault = fault;
    fault = ServerFault::none;
    const bool passes = now_fault != ServerFault::no_permission && now_fault != ServerFault::unknown_error;
    if (!passes && name == "EVAL" && ByteView(words[1]) == scripts::mutex_release.text)
      observer_(Effect::compensation_unserved, connection, words[3], words[4]);
    switch (now_fault) {
      case ServerFault::none: break;
      case ServerFault::loading: return error("LOADING Redis is loading the dataset in memory");
      case ServerFault::busy_script: return error("BUSY Redis is busy running a script. You can only call SCRIPT KILL");
      case ServerFault::cluster_down: return error("CLUSTERDOWN The cluster is down");
      case ServerFault::unknown_error: return error("ERR something went wrong");
      case ServerFault::unknown_error_executed: run(connection, words); return error("ERR something went wrong");
      case ServerFault::out_of_memory:
      case ServerFault::read_only:
      case ServerFault::no_permission: {
        const bool permission = now_fault == ServerFault::no_permission;
        const std::string line = permission ? "NOPERM this user has no permissions to run the 'x' command"
                                 : now_fault == ServerFault::read_only
                                     ? "READONLY You can't write against a read only replica."
                                     : "OOM command not allowed when used memory > 'maxmemory'.";
        if (!is_script) return error(line);
        if (permission) return script_error(sha_of(words), "ERR The user executing the script can't run this command");
        return script_error(sha_of(words), line);
      }
    }
    return run(connection, words);
  }

  static std::string sha_of(const std::vector<std::string>& words) {
    if (words[0] == "EVALSHA") return words[1];
    return std::string((ByteView(words[1]) == scripts::mutex_renew.text ? scripts::mutex_renew : scripts::mutex_release)
                           .sha.bytes()
                           .string_view());
  }

  std::string run(Connection& connection, const std::vector<std::string>& words) {
    const std::string& name = words[0];
    if (name == "SET") return set(connection, words[1], words[2], std::stoll(words[5]));
    if (name == "PTTL") {
      const Entry* const entry = find(words[1]);
      return integer(entry == nullptr ? -2 : remaining(*entry));
    }
    if (name == "DELEX" && release == ServerRelease::redis_8_4 && native_allowed)
      return compare_and_delete(connection, words[1], words[3], {});
    if (name == "DELIFEQ" && release == ServerRelease::valkey_9_0 && native_allowed)
      return compare_and_delete(connection, words[1], words[2], {});
    if (name != "EVAL" && name != "EVALSHA")
      return error("ERR unknown command '" + name + "', with args beginning with: '" + words[1] + "' ");

    const std::string sha = sha_of(words);
    if (name == "EVALSHA" && scripts_.count(sha) == 0) return error("NOSCRIPT No matching script. Please use EVAL.");
    scripts_.insert(sha);
    if (ByteView(sha) == scripts::mutex_release.sha.bytes())
      return compare_and_delete(connection, words[3], words[4], sha);
    return compare_and_extend(connection, words[3], words[4], std::stoll(words[5]), sha);
  }

  std::string client(Connection& connection, const std::vector<std::string>& words) {
    if (words[1] == "SETNAME") return "+OK\r\n";
    if (words[1] == "ID") return identity_allowed ? integer(connection.id) : error("NOPERM no");
    if (!kill_allowed) return error("NOPERM this user has no permissions to run the 'client|kill' command");
    std::int64_t killed = 0;
    for (Connection& other : connections_) {
      if (other.id != std::stoll(words[3]) || other.id == connection.id) continue;
      other.inbound.clear();
      other.open = false;
      ++killed;
      observer_(Effect::killed, other, {}, {});
    }
    return integer(killed);
  }

  [[nodiscard]] std::string identity() const {
    if (!identity_allowed) return error("NOPERM this user has no permissions to run the 'eval' command");
    const char* const version = release == ServerRelease::redis_6_2   ? "6.2.14"
                                : release == ServerRelease::redis_8_4 ? "8.4.0"
                                : release == ServerRelease::redis_7_0 ? "7.0.15"
                                                                      : "7.2.4";
    return "*4\r\n" + bulk(run_id) + bulk("100") + bulk(version) +
           bulk(release == ServerRelease::valkey_9_0 ? "9.0.0" : "");
  }

  std::string set(const Connection& connection, const std::string& key, const std::string& token,
                  std::int64_t milliseconds) {
    if (find(key) != nullptr) return "$-1\r\n";
    entries_[key] = {token, this_millisecond() + std::chrono::milliseconds(milliseconds)};
    observer_(Effect::set, connection, key, token);
    return "+OK\r\n";
  }

  std::string compare_and_delete(const Connection& connection, const std::string& key, const std::string& token,
                                 const std::string& sha) {
    const Entry* const entry = find(key);
    if (entry == nullptr || entry->value != token || !entry->is_string) {
      observer_(Effect::delete_refused, connection, key, token);
      return entry == nullptr || entry->is_string ? integer(0) : wrong_type(sha);
    }
    entries_.erase(key);
    observer_(Effect::deleted, connection, key, token);
    return integer(1);
  }

  std::string compare_and_extend(const Connection& connection, const std::string& key, const std::string& token,
                                 std::int64_t milliseconds, const std::string& sha) {
    Entry* const entry = find(key);
    if (entry != nullptr && !entry->is_string) return wrong_type(sha);
    if (entry == nullptr || entry->value != token) return integer(0);
    if (remaining(*entry) < milliseconds) {
      entry->expires = this_millisecond() + std::chrono::milliseconds(milliseconds);
      observer_(Effect::extended, connection, key, token);
    }
    return integer(1);
  }

  // Servers count in whole milliseconds of a clock that they cut off: a lifetime ends up to one early, and PTTL says up
  // to one more than is left.
  [[nodiscard]] Instant this_millisecond() const {
    return Instant::from_nanoseconds(now.nanoseconds() / 1'000'000 * 1'000'000);
  }
  [[nodiscard]] std::int64_t remaining(const Entry& entry) const {
    return (entry.expires - this_millisecond()).count() / 1'000'000;
  }

  [[nodiscard]] std::string wrong_type(const std::string& sha) const {
    const std::string line = "WRONGTYPE Operation against a key holding the wrong kind of value";
    return sha.empty() ? error(line) : script_error(sha, line);
  }

  Observer observer_;
  std::deque<Connection> connections_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> scripts_;
};

}  // namespace holdfast::testing

// SPDX-License-Identifier: MIT
//
// ModelServer is a Redis or Valkey as far as a lock can tell: strings and hashes with lifetimes, permits, queues, counters of
// fences, scripts known by their SHA-1, connections with bytes in both directions, a clock that its owner sets. It executes one
// request when it is told to, so that every order of events can be had. It is honest: what it answers is what it did, but
// for the faults that it is asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/instant.hpp"
#include "resp_oracle.hpp"
#include "resp_text.hpp"
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
  // `permits`: both keys of a semaphore. All name the same number, so that it is there from the beginning.
  enum class EntryType : std::uint8_t { string, hash, list, permits };
  // Of a read/write lock. A writer's field is its token alone here: no token is that of a reader, too.
  enum class Mode : std::uint8_t { none, read, write };
  struct Entry {
    std::string value;  // Of a string.
    Instant expires;
    EntryType type = EntryType::string;
    std::map<std::string, std::int64_t> fields;  // Of a hash, and a permit's.
    Mode mode = Mode::none;
    std::map<std::string, Instant>
        own_times;  // Of each reader: a key beside the lock. Of each permit: it is not over until then.

    // The token is the string's value or a field of the hash.
    [[nodiscard]] bool names(const std::string& token) const {
      return type == EntryType::string ? value == token : fields.count(token) != 0;
    }
  };
  enum class Effect : std::uint8_t {
    set,
    given,  // Set for the first in the queue, by a request of somebody else: `token` is not of `from`.
    extended,
    counted,  // A step has set the count of the token's field.
    deleted,
    delete_refused,         // There was nothing of that token.
    compensation_unserved,  // EVAL of a release or a step met a fault that does not pass by itself.
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
  // The last fence of a key; 0 if there was none.
  [[nodiscard]] std::uint64_t fence(const std::string& key) const {
    const auto found = counters_.find(counter_of(key));
    return found == counters_.end() ? 0 : found->second;
  }
  // A renewal that comes over a connection of somebody else, of the watchdog: 1, 0, or -1.
  std::int64_t renew_aside(const Connection& from, const std::string& key, const std::string& token, EntryType type,
                           std::int64_t milliseconds) {
    return extend_one(from, key, token, milliseconds, type);
  }

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
    if (!passes && name == "EVAL" && compensates(words[1]))
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
        // Such a script asks by pcall, and says of each key whether it was refused. PEXPIRE needs no memory.
        if (const Script* const script = script_of(words);
            script != nullptr && renews_many(*script) && (name == "EVAL" || known(*script))) {
          // Asked of one key it says what the server said.
          if (script == &scripts::semaphore_renew && now_fault != ServerFault::out_of_memory) return error(line);
          if (permission) return refused_for_each(std::stoul(words[2]));
          writes_refused_ = now_fault == ServerFault::read_only;
          const std::string reply = run(connection, words);
          writes_refused_ = false;
          return reply;
        }
        if (permission) return script_error(sha_of(words), "ERR The user executing the script can't run this command");
        return script_error(sha_of(words), line);
      }
    }
    return run(connection, words);
  }

  static constexpr const Script* known_scripts[] = {
      &scripts::mutex_release,        &scripts::mutex_release_announced,
      &scripts::mutex_renew,          &scripts::mutex_renew_batch,
      &scripts::mutex_acquire_fenced, &scripts::reentrant_acquire,
      &scripts::fenced_acquire,       &scripts::reentrant_step,
      &scripts::reentrant_release,    &scripts::reentrant_renew,
      &scripts::read_acquire,         &scripts::write_acquire,
      &scripts::read_write_step,      &scripts::read_write_release,
      &scripts::read_write_renew,     &scripts::semaphore_acquire,
      &scripts::semaphore_release,    &scripts::semaphore_renew,
      &scripts::fair_acquire,         &scripts::fair_release,
  };
  // The script that an EVAL or an EVALSHA names; nullptr for one that no holdfast client has.
  static const Script* script_of(const std::vector<std::string>& words) {
    const bool by_text = words[0] == "EVAL";
    for (const Script* const script : known_scripts)
      if (ByteView(words[1]) == (by_text ? script->text : script->sha.bytes())) return script;
    return nullptr;
  }
  static std::string sha_of(const Script& script) { return std::string(script.sha.bytes().string_view()); }
  static std::string sha_of(const std::vector<std::string>& words) {
    const Script* const script = script_of(words);
    return script == nullptr ? std::string(40, '0') : sha_of(*script);
  }
  [[nodiscard]] bool known(const Script& script) const { return scripts_.count(sha_of(script)) != 0; }
  static bool renews_many(const Script& script) {
    return &script == &scripts::reentrant_renew || &script == &scripts::mutex_renew_batch ||
           &script == &scripts::read_write_renew || &script == &scripts::semaphore_renew;
  }
  static bool compensates(const std::string& text) {
    return ByteView(text) == scripts::mutex_release.text || ByteView(text) == scripts::mutex_release_announced.text ||
           ByteView(text) == scripts::reentrant_release.text || ByteView(text) == scripts::reentrant_step.text ||
           ByteView(text) == scripts::read_write_release.text || ByteView(text) == scripts::read_write_step.text ||
           ByteView(text) == scripts::semaphore_release.text || ByteView(text) == scripts::fair_release.text;
  }
  static std::string refused_for_each(std::size_t count) {
    std::string reply = "*" + std::to_string(count) + "\r\n";
    for (; count != 0; --count) reply += integer(-1);
    return reply;
  }
  static std::string counter_of(const std::string& key) {
    return "redisson_lock_token:" + (key.find('{') == std::string::npos ? "{" + key + "}" : key);
  }

  std::string run(Connection& connection, const std::vector<std::string>& words) {
    const std::string& name = words[0];
    if (name == "SET") return set(connection, words[1], words[2], std::stoll(words[5]));
    if (name == "PTTL") {
      const Entry* const entry = find(words[1]);
      return integer(entry == nullptr ? -2 : remaining(*entry));
    }
    if (name == "DELEX" && release == ServerRelease::redis_8_4 && native_allowed)
      return compare_and_delete(connection, words[1], words[3], {}, EntryType::string);
    if (name == "DELIFEQ" && release == ServerRelease::valkey_9_0 && native_allowed)
      return compare_and_delete(connection, words[1], words[2], {}, EntryType::string);
    if (name != "EVAL" && name != "EVALSHA")
      return error("ERR unknown command '" + name + "', with args beginning with: '" + words[1] + "' ");

    const Script* const script = script_of(words);
    if (name == "EVALSHA" && (script == nullptr || !known(*script)))
      return error("NOSCRIPT No matching script. Please use EVAL.");
    if (script == nullptr) return error("ERR a script that nobody knows");
    scripts_.insert(sha_of(*script));
    const std::size_t key_count = std::stoul(words[2]);
    const std::vector<std::string> keys(words.begin() + 3, words.begin() + 3 + static_cast<std::ptrdiff_t>(key_count));
    const std::vector<std::string> arguments(words.begin() + 3 + static_cast<std::ptrdiff_t>(key_count), words.end());
    return run_script(connection, *script, keys, arguments);
  }

  std::string run_script(const Connection& connection, const Script& script, const std::vector<std::string>& keys,
                         const std::vector<std::string>& arguments) {
    const std::string& key = keys[0];
    const std::string& token = arguments[0];
    const std::string sha = sha_of(script);
    if (&script == &scripts::mutex_release || &script == &scripts::mutex_release_announced)
      return compare_and_delete(connection, key, token, sha, EntryType::string);
    if (&script == &scripts::reentrant_release || &script == &scripts::read_write_release)
      return compare_and_delete(connection, key, token, sha, EntryType::hash);
    if (&script == &scripts::semaphore_release)
      return compare_and_delete(connection, key, token, sha, EntryType::permits);
    if (&script == &scripts::mutex_renew) {
      const std::int64_t renewed = extend_one(connection, key, token, std::stoll(arguments[1]), EntryType::string);
      const Entry* const entry = find(key);
      return entry != nullptr && entry->type != EntryType::string ? wrong_type(sha) : integer(renewed);
    }
    if (renews_many(script)) {
      const EntryType type = &script == &scripts::mutex_renew_batch ? EntryType::string
                             : &script == &scripts::semaphore_renew ? EntryType::permits
                                                                    : EntryType::hash;
      std::string reply = "*" + std::to_string(keys.size()) + "\r\n";
      for (std::size_t index = 0; index < keys.size(); ++index)
        reply += integer(
            extend_one(connection, keys[index], arguments[2 * index], std::stoll(arguments[2 * index + 1]), type));
      return reply;
    }
    if (&script == &scripts::reentrant_step || &script == &scripts::read_write_step)
      return step(connection, key, token, std::stoll(arguments[1]), std::stoll(arguments[2]), sha);

    if (&script == &scripts::fair_release) return release_to_next(connection, key, token);

    // The acquires that are scripts.
    if (&script == &scripts::fair_acquire) return take_turn(connection, key, arguments);
    if (&script == &scripts::read_acquire) return let_reader_in(connection, key, arguments);
    if (&script == &scripts::semaphore_acquire) return take_permit(connection, key, arguments, sha);
    if (const Entry* const entry = find(key); entry != nullptr) {
      const bool upgrade = &script == &scripts::write_acquire && entry->own_times.count(arguments[2]) != 0;
      return upgrade ? "+UPGRADE\r\n" : integer(remaining(*entry));
    }
    const EntryType type = &script == &scripts::mutex_acquire_fenced ? EntryType::string : EntryType::hash;
    create(connection, key, token, std::stoll(arguments[1]), type);
    if (&script == &scripts::write_acquire) entries_[key].mode = Mode::write;
    if (&script == &scripts::reentrant_acquire || &script == &scripts::write_acquire) return "+OK\r\n";
    return bulk(std::to_string(next_fence(keys[1])));
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
    return "*6\r\n" + bulk(run_id) + bulk("100") + bulk(version) +
           bulk(release == ServerRelease::valkey_9_0 ? "9.0.0" : "") + bulk(std::string(40, 'c')) + bulk("-1master");
  }

  void create(const Connection& connection, const std::string& key, const std::string& token, std::int64_t milliseconds,
              EntryType type, Effect effect = Effect::set) {
    Entry& entry = entries_[key] = Entry();
    entry.expires = this_millisecond() + std::chrono::milliseconds(milliseconds);
    entry.type = type;
    if (type == EntryType::string)
      entry.value = token;
    else
      entry.fields[token] = 1;
    observer_(effect, connection, key, token);
  }

  std::string set(const Connection& connection, const std::string& key, const std::string& token,
                  std::int64_t milliseconds) {
    if (find(key) != nullptr) return "$-1\r\n";
    create(connection, key, token, milliseconds, EntryType::string);
    return "+OK\r\n";
  }

  // Where nobody is, where readers are, or beside the own write.
  std::string let_reader_in(const Connection& connection, const std::string& key,
                            const std::vector<std::string>& arguments) {
    const std::string& token = arguments[0];
    Entry* const entry = find(key);
    const bool joins =
        entry != nullptr && (entry->mode == Mode::read || (entry->mode == Mode::write && entry->names(arguments[2])));
    if (entry != nullptr && !joins) return integer(remaining(*entry));
    Entry& lock = entries_[key];
    if (!joins) {
      lock.type = EntryType::hash;
      lock.mode = Mode::read;
    }
    lock.fields[token] = 1;
    lock.own_times[token] = this_millisecond() + std::chrono::milliseconds(std::stoll(arguments[1]));
    lock.expires = std::max(lock.expires, lock.own_times[token]);
    observer_(Effect::set, connection, key, token);
    return "+OK\r\n";
  }

  // The first who lives is taken out of the queue. Empty: there is nobody.
  std::string next_of(const std::string& key) {
    Queue& queue = queues_[key];
    while (!queue.waiters.empty()) {
      const std::string next = queue.waiters.front();
      queue.waiters.erase(queue.waiters.begin());
      if (queue.beats[next] > now) return next;
    }
    return {};
  }
  std::string take_turn(const Connection& connection, const std::string& key,
                        const std::vector<std::string>& arguments) {
    const std::string& token = arguments[0];
    const std::chrono::milliseconds lease(std::stoll(arguments[1]));
    Entry* entry = find(key);
    bool ours = entry != nullptr && entry->type == EntryType::hash && entry->names(token);
    if (entry == nullptr) {
      std::string next = next_of(key);
      ours = next.empty() || next == token;
      if (ours) next = token;
      create(connection, key, next, offer_ms, EntryType::hash, ours ? Effect::set : Effect::given);
      entry = find(key);
    }
    if (ours) {
      extend(connection, *entry, key, token, lease.count());
      return arguments[3] == "1" ? bulk(std::to_string(next_fence(counter_of(key)))) : "+OK\r\n";
    }
    Queue& queue = queues_[key];
    if (arguments[2] == "1") {
      queue.beats[token] = now + std::chrono::milliseconds(offer_ms);
      if (std::find(queue.waiters.begin(), queue.waiters.end(), token) == queue.waiters.end())
        queue.waiters.push_back(token);
    }
    return integer(std::min<std::int64_t>(remaining(*entry), 1000));
  }
  std::string release_to_next(const Connection& connection, const std::string& key, const std::string& token) {
    const std::string deleted = compare_and_delete(connection, key, token, {}, EntryType::hash);
    if (deleted != integer(1)) {
      std::erase(queues_[key].waiters, token);
      queues_[key].beats.erase(token);
      return deleted;
    }
    if (find(key) != nullptr) return deleted;
    if (const std::string next = next_of(key); !next.empty())
      create(connection, key, next, offer_ms, EntryType::hash, Effect::given);
    return deleted;
  }
  std::uint64_t next_fence(const std::string& name) {
    std::uint64_t& counter = counters_[name];
    counter = std::max(counter + 1, static_cast<std::uint64_t>(now.nanoseconds() / 1000));
    return counter;
  }

  // Where none is free those whose time is over are taken back, all of them.
  std::string take_permit(const Connection& connection, const std::string& key,
                          const std::vector<std::string>& arguments, const std::string& sha) {
    const std::string& token = arguments[0];
    if (const Entry* const other = find(key); other != nullptr && other->type != EntryType::permits)
      return wrong_type(sha);
    Entry& permits = entries_[key];
    permits.type = EntryType::permits;
    permits.expires = Instant::max();
    if (permits.fields.size() >= std::stoul(arguments[2])) {
      Instant first = Instant::max();
      for (const auto& [holder, until] : permits.own_times) first = std::min(first, until);
      if (!is_over(first)) return integer((end_after(0ms) > first ? Duration(1ms) : first - end_after(0ms)) / 1ms);
      for (const auto& [holder, until] : permits.own_times)
        if (is_over(until)) permits.fields.erase(holder);
      std::erase_if(permits.own_times, [this](const auto& own) { return is_over(own.second); });
    }
    permits.fields[token] = 1;
    permits.own_times[token] = end_after(std::chrono::milliseconds(std::stoll(arguments[1])));
    observer_(Effect::set, connection, key, token);
    return "+OK\r\n";
  }
  // The last instant at which a permit that is asked for now is not over. The script counts in milliseconds that it rounds up, of
  // a clock of microseconds.
  [[nodiscard]] Instant end_after(Duration lease) const {
    const std::int64_t microseconds = now.nanoseconds() / 1000;
    return Instant::from_nanoseconds(((microseconds + 999) / 1000 - 1) * 1'000'000) + lease;
  }
  [[nodiscard]] bool is_over(Instant until) const { return until + std::chrono::microseconds(1) <= now; }

  std::string compare_and_delete(const Connection& connection, const std::string& key, const std::string& token,
                                 const std::string& sha, EntryType type) {
    Entry* const entry = find(key);
    if (entry == nullptr || entry->type != type || !entry->names(token)) {
      observer_(Effect::delete_refused, connection, key, token);
      return entry == nullptr || entry->type == type ? integer(0) : wrong_type(sha);
    }
    const bool read = entry->own_times.erase(token) != 0;
    entry->fields.erase(token);
    const bool is_left = std::any_of(entry->own_times.begin(), entry->own_times.end(),
                                     [this](const auto& own) { return own.second > now; });
    if (entry->mode == Mode::none ? entry->fields.empty() : !is_left && read == (entry->mode == Mode::read))
      entries_.erase(key);
    else if (entry->mode == Mode::write && !read)
      entry->mode = Mode::read;
    observer_(Effect::deleted, connection, key, token);
    return integer(1);
  }

  // 1, or 0 if it is not ours, what has another type included; -1 if it would have to be extended and may not.
  std::int64_t extend_one(const Connection& connection, const std::string& key, const std::string& token,
                          std::int64_t milliseconds, EntryType type) {
    Entry* const entry = find(key);
    if (entry == nullptr || entry->type != type || !entry->names(token)) return 0;
    if (type == EntryType::permits) {
      Instant& until = entry->own_times[token];
      if (until >= end_after(std::chrono::milliseconds(milliseconds))) return 1;
      until = end_after(std::chrono::milliseconds(milliseconds));
      observer_(Effect::extended, connection, key, token);
      return 1;
    }
    if (writes_refused_ && remaining(*entry) < milliseconds) return -1;
    extend(connection, *entry, key, token, milliseconds);
    extend_own_time(*entry, token, milliseconds);
    return 1;
  }
  void extend_own_time(Entry& entry, const std::string& token, std::int64_t milliseconds) const {
    if (const auto own = entry.own_times.find(token); own != entry.own_times.end())
      own->second = this_millisecond() + std::chrono::milliseconds(milliseconds);
  }
  void extend(const Connection& connection, Entry& entry, const std::string& key, const std::string& token,
              std::int64_t milliseconds) {
    if (remaining(entry) >= milliseconds) return;
    entry.expires = this_millisecond() + std::chrono::milliseconds(milliseconds);
    observer_(Effect::extended, connection, key, token);
  }

  std::string step(const Connection& connection, const std::string& key, const std::string& token, std::int64_t count,
                   std::int64_t milliseconds, const std::string& sha) {
    Entry* const entry = find(key);
    if (entry != nullptr && entry->type != EntryType::hash) return wrong_type(sha);
    if (entry == nullptr || !entry->names(token)) return integer(0);
    extend(connection, *entry, key, token, milliseconds);
    extend_own_time(*entry, token, milliseconds);
    entry->fields[token] = count;
    observer_(Effect::counted, connection, key, token);
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

  // Of a fair lock: who waits, by when he came, and until when each is taken to live.
  struct Queue {
    std::vector<std::string> waiters;
    std::map<std::string, Instant> beats;
  };
  static constexpr std::int64_t offer_ms = 3000;

  Observer observer_;
  std::map<std::string, Queue> queues_;
  std::deque<Connection> connections_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint64_t> counters_;
  std::set<std::string> scripts_;
  bool writes_refused_ = false;
};

}  // namespace holdfast::testing

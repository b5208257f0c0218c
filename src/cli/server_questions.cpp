// SPDX-License-Identifier: MIT
#include "server_questions.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "asker.hpp"
#include "exit_codes.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/proto/decimal.hpp"
#include "kind_rights.hpp"

namespace holdfast::cli {

namespace {

using Words = QuestionWords;

bool refuses_channel(const std::string& words) {
  return contains(words, "permissions to access") && contains(words, "channel");
}

// Which key is asked for where no lock is named.
constexpr char probe_key[] = "holdfast_doctor";

// ---- INFO ------------------------------------------------------------------------------------------------------------

// A whole INFO is more than a client's buffers hold.
constexpr char info_script[] =
    "local info, lines = redis.call('INFO'), '' for _, name in ipairs(ARGV) do "
    "local value = string.match(info, '\\n' .. name .. ':([^\\r\\n]*)') "
    "if value then lines = lines .. name .. ':' .. value .. '\\n' end end return lines";
constexpr const char* info_fields[] = {"redis_version",
                                       "valkey_version",
                                       "run_id",
                                       "uptime_in_seconds",
                                       "maxclients",
                                       "connected_clients",
                                       "role",
                                       "master_host",
                                       "master_port",
                                       "master_replid",
                                       "connected_slaves",
                                       "master_repl_offset",
                                       "maxmemory",
                                       "maxmemory_policy",
                                       "used_memory",
                                       "aof_enabled",
                                       "aof_last_write_status",
                                       "rdb_last_bgsave_status"};
// Few at a time: arguments have a limit.
constexpr std::size_t fields_at_once = 10;

bool read_info(Asker& ask, const Words& fields, ServerFacts& facts) {
  for (std::size_t first = 0; first < fields.size(); first += fields_at_once) {
    Words words = {"EVAL", info_script, "0"};
    const std::size_t end = std::min(first + fields_at_once, fields.size());
    words.insert(words.end(), fields.begin() + static_cast<std::ptrdiff_t>(first),
                 fields.begin() + static_cast<std::ptrdiff_t>(end));
    const Answer answer = ask(words);
    if (!answer.is_text()) {
      facts.no_info = answer.status == Status::ok ? "its answer is no text"
                      : answer.error.empty()      ? to_string(answer.status)
                                                  : answer.error;
      facts.info_refused = is_refusal(answer);
      if (is_standstill(answer.status)) {
        facts.refusal = answer.status;
        facts.refusal_words = answer.error;
      }
      return false;
    }
    const std::string& lines = answer.texts[0];
    for (std::size_t begin = 0, line_end = 0; (line_end = lines.find('\n', begin)) != std::string::npos;
         begin = line_end + 1) {
      const std::size_t colon = lines.find(':', begin);
      if (colon < line_end)
        facts.info[lines.substr(begin, colon - begin)] = lines.substr(colon + 1, line_end - colon - 1);
    }
  }
  return true;
}

void read_info(Asker& ask, ServerFacts& facts) {
  if (!read_info(ask, Words(std::begin(info_fields), std::end(info_fields)), facts)) return;
  Words replicas;
  for (std::uint64_t index = 0; index < std::min(facts.number("connected_slaves"), replicas_max); ++index)
    replicas.push_back("slave" + std::to_string(index));
  (void)read_info(ask, replicas, facts);
}

std::optional<std::string> setting(Asker& ask, const char* name) {
  const Answer answer = ask({"CONFIG", "GET", name});
  if (answer.status != Status::ok || answer.texts.size() != 2) return std::nullopt;
  return answer.texts[1];
}

// What matters to locks, beside what INFO has.
constexpr const char* setting_names[] = {"timeout", "tcp-keepalive", "min-replicas-to-write", "cluster-node-timeout",
                                         "cluster-require-full-coverage"};

void read_settings(Asker& ask, ServerFacts& facts) {
  facts.save = setting(ask, "save");
  facts.appendfsync = setting(ask, "appendfsync");
  for (const char* const name : setting_names)
    if (const std::optional<std::string> value = setting(ask, name)) facts.settings[name] = *value;
}

// Whether the server would take a write of a lock now: one whose arguments it refuses after everything else.
void read_readiness(Asker& ask, const std::string& key, ServerFacts& facts) {
  Answer answer = ask({"SET", key, "x", "NX", "XX"});
  if (is_refusal(answer)) answer = ask({"HSET", key, "f", "v", "f"});
  switch (answer.status) {
    case Status::out_of_memory:
    case Status::disk_error:
    case Status::too_few_replicas:
    case Status::busy_script:
    case Status::loading:
    case Status::cluster_down:
    case Status::stale_replica:
      facts.refusal = answer.status;
      facts.refusal_words = answer.error;
      break;
    default: break;  // It would; or something else is found elsewhere.
  }
}

// ---- Rights ----------------------------------------------------------------------------------------------------------

constexpr char key_mark[] = "<key>";

// A command that changes nothing: it finds no key, or its arguments are refused, which comes after the ACL.
struct Probe {
  const char* rule;
  const char* words[6];
  bool only_dry = false;  // There are no such arguments.
  bool of_some = false;   // Not every version has it.
};
constexpr char no_sha[] = "ffffffffffffffffffffffffffffffffffffffff";
constexpr Probe probes[] = {
    {"+eval", {"EVAL", "return 1", "0"}},
    {"+evalsha", {"EVALSHA", no_sha, "0"}},
    {"+set", {"SET", key_mark, "x", "XX"}},
    {"+get", {"GET", key_mark}},
    {"+del", {"DEL", key_mark}},
    {"+delex", {"DELEX", key_mark, "IFEQ", "x"}, false, true},
    {"+delifeq", {"DELIFEQ", key_mark, "x"}, false, true},
    {"+exists", {"EXISTS", key_mark}},
    {"+pexpire", {"PEXPIRE", key_mark, "1000"}},
    {"+pttl", {"PTTL", key_mark}},
    {"+time", {"TIME"}},
    {"+incr", {"INCR", key_mark}, true},
    {"+incrby", {"INCRBY", key_mark, "x"}},
    {"+hexists", {"HEXISTS", key_mark, "f"}},
    {"+hset", {"HSET", key_mark, "f", "v", "f"}},
    {"+hget", {"HGET", key_mark, "f"}},
    {"+hgetall", {"HGETALL", key_mark}},
    {"+hdel", {"HDEL", key_mark, "f"}},
    {"+hkeys", {"HKEYS", key_mark}},
    {"+zadd", {"ZADD", key_mark, "XX", "1", "m"}},
    {"+zcard", {"ZCARD", key_mark}},
    {"+zrange", {"ZRANGE", key_mark, "0", "0"}},
    {"+zrem", {"ZREM", key_mark, "m"}},
    {"+zremrangebyscore", {"ZREMRANGEBYSCORE", key_mark, "0", "0"}},
    {"+zscore", {"ZSCORE", key_mark, "m"}},
    {"+zpopmin", {"ZPOPMIN", key_mark}},
    {"+publish", {"PUBLISH", "redisson_lock__channel:{<key>}", "x"}},
    {"+subscribe", {"SUBSCRIBE", "redisson_lock__channel:{<key>}"}, true},
    {"+unsubscribe", {"UNSUBSCRIBE", "redisson_lock__channel:{<key>}"}, true},
    {"+spublish", {"SPUBLISH", "redisson_lock__channel:{<key>}", "x"}, false, true},
    {"+ssubscribe", {"SSUBSCRIBE", "redisson_lock__channel:{<key>}"}, true, true},
    {"+sunsubscribe", {"SUNSUBSCRIBE", "redisson_lock__channel:{<key>}"}, true, true},
    {"+ping", {"PING"}},
    {"+info", {"INFO", "nothing"}},
    {"+client|id", {"CLIENT", "ID"}},
    {"+client|setname", {"CLIENT", "SETNAME", "no name has spaces"}},
    {"+client|kill", {"CLIENT", "KILL", "ID", "1"}, true},
    {wait_right, {"WAIT", "0", "0"}},  // For no replica, so for no time.
};

bool is_in(const char* list, const std::string& rule) {
  const Words rules = rules_of(list);
  return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

Words words_of(const Probe& probe, const std::string& key) {
  Words words;
  for (const char* const word : probe.words) {
    if (word == nullptr) break;
    std::string text = word;
    if (const std::size_t at = text.find(key_mark); at != std::string::npos) text.replace(at, sizeof key_mark - 1, key);
    words.push_back(text);
  }
  return words;
}

enum class Verdict : std::uint8_t { allowed, refused, absent, unknown };

// What a command that was tried says of the right to it: any other error comes after the ACL.
Verdict verdict_on(const Answer& answer) {
  if (refuses_command(answer.error)) return Verdict::refused;
  if (answer.status == Status::unknown_command) return Verdict::absent;
  if (is_absence(answer.status) || answer.status == Status::protocol_error || is_standstill(answer.status))
    return Verdict::unknown;
  return Verdict::allowed;
}
// And the answer to ACL DRYRUN.
Verdict dry_verdict_on(const Answer& answer) {
  if (answer.status == Status::server_error && contains(answer.error, "not found")) return Verdict::absent;
  if (!answer.is_text()) return Verdict::unknown;
  return refuses_command(answer.texts[0]) ? Verdict::refused : Verdict::allowed;
}

// What it needs of this kind's keys and channels. A key that is named by a script is looked at before the script runs.
void read_patterns(Asker& ask, const Lock& lock, bool dry, ServerFacts& facts) {
  for (const KindRights& rights : kind_rights) {
    if (rights.kind != lock.kind) continue;
    for (const std::string& pattern : rules_of(rights.needed)) {
      if (pattern.front() != '~') continue;
      const NamedPattern key = named(pattern, lock.name);
      const Answer touched = ask({"EVAL", "return 1", "1", key.example});
      if (touched.status == Status::no_permission && !refuses_command(touched.error))
        facts.keys_refused.push_back(key.rule);
    }
    // A message of ours would wake somebody, so none is sent.
    for (const std::string& pattern : rules_of(rights.optional)) {
      if (pattern.front() != '&' || !dry) continue;
      const NamedPattern channel = named(pattern, lock.name);
      // A fair lock's own is of a client, and of all nodes; the others are the slot's.
      const bool of_slot = facts.set_up.kind == SetUp::cluster && pattern != fair_pattern;
      Answer answer = ask({"ACL", "DRYRUN", facts.user, of_slot ? "SPUBLISH" : "PUBLISH", channel.example, "x"});
      if (of_slot && dry_verdict_on(answer) != Verdict::allowed)  // Of no use, or an old version.
        answer = ask({"ACL", "DRYRUN", facts.user, "PUBLISH", channel.example, "x"});
      if (answer.is_text() && refuses_channel(answer.texts[0])) facts.channels_refused.push_back(channel.rule);
    }
  }
}

void read_rights(Asker& ask, const Lock& lock, ServerFacts& facts) {
  const Answer user = ask({"ACL", "WHOAMI"});
  if (user.is_text()) facts.user = user.texts[0];
  const auto dry_run = [&](Words words) {
    words.insert(words.begin(), {"ACL", "DRYRUN", facts.user});
    return ask(words);
  };
  const bool dry = !facts.user.empty() && dry_run({"PING"}).status == Status::ok;

  const std::string key = lock.name.empty() ? probe_key : lock.name;
  const std::string own = "holdfast_doctor:" + std::to_string(Client::now().nanoseconds());
  std::map<std::string, Verdict> verdicts;
  for (const Probe& probe : probes) {
    if (facts.set_up.kind != SetUp::cluster && is_in(cluster_rights, probe.rule)) continue;
    if (!lock.with_acks && is_in(wait_right, probe.rule)) continue;
    Verdict verdict = Verdict::unknown;
    if (dry)
      verdict = dry_verdict_on(dry_run(words_of(probe, key)));
    else if (!probe.only_dry)
      verdict = verdict_on(ask(words_of(probe, own)));
    if (verdict == Verdict::absent && probe.of_some) verdict = Verdict::allowed;
    if (verdict == Verdict::unknown) facts.unchecked.emplace_back(probe.rule);
    verdicts[probe.rule] = verdict;
  }
  const auto judge = [&](const std::string& rule, bool needed, Kind kind) {
    const auto found = verdicts.find(rule);
    if (found == verdicts.end()) return;  // A pattern.
    if (found->second == Verdict::refused) facts.missing.push_back({rule, needed, kind});
    if (found->second == Verdict::absent) facts.absent.push_back({rule, needed, kind});
  };
  for (const KindRights& rights : kind_rights) {
    for (const std::string& rule : rules_of(rights.needed)) judge(rule, true, rights.kind);
    // Who is found by others is asked who it is.
    const bool found_by_others = facts.set_up.kind != SetUp::alone;
    for (const std::string& rule : rules_of(rights.optional))
      judge(rule, found_by_others && rule == identity_right, rights.kind);
    if (facts.set_up.kind == SetUp::cluster)
      for (const std::string& rule : rules_of(cluster_rights)) judge(rule, false, rights.kind);
  }
  facts.wait_refused = verdicts[wait_right] == Verdict::refused;
  facts.wait_absent = verdicts[wait_right] == Verdict::absent;
  if (!lock.name.empty()) read_patterns(ask, lock, dry, facts);
}

}  // namespace

void ask_facts(ClientBase& client, const Lock& lock, ServerFacts& facts) {
  Asker ask(client, facts.silent, Client::now() + questions_time_max);
  read_info(ask, facts);
  // It refuses whatever is asked.
  if (is_standstill(facts.refusal)) return;
  read_settings(ask, facts);
  read_readiness(ask, lock.name.empty() ? probe_key : lock.name, facts);
  if (is_standstill(facts.refusal)) return;
  read_rights(ask, lock, facts);
}

void ask_time(ClientBase& client, ServerFacts& facts) {
  // Its microseconds, and ours beside them, are numbers of 63 bits; nanoseconds, too.
  constexpr std::uint64_t seconds_max = 9'000'000'000;
  constexpr std::uint64_t microseconds_max = 999'999;
  if (facts.silent) return;
  TimePair pair;
  pair.sent = Client::now();
  const Answer answer = Asker(client, facts.silent, Instant::max())({"TIME"});
  pair.received = Client::now();
  facts.time_refused = answer.status == Status::no_permission;
  if (is_standstill(answer.status)) {
    facts.refusal = answer.status;
    facts.refusal_words = answer.error;
  }
  std::uint64_t seconds = 0;
  std::uint64_t microseconds = 0;
  if (answer.status != Status::ok || answer.texts.size() != 2 ||
      !read_decimal(ByteView(std::string_view(answer.texts[0])), seconds_max, seconds) ||
      !read_decimal(ByteView(std::string_view(answer.texts[1])), microseconds_max, microseconds))
    return;
  pair.server_microseconds = static_cast<std::int64_t>(seconds * 1'000'000 + microseconds);
  facts.times.push_back(pair);
}

}  // namespace holdfast::cli

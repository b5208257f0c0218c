// SPDX-License-Identifier: MIT
#include "server_questions.hpp"

#include <cstdlib>
#include <iterator>
#include <vector>

#include "holdfast/core/node_task.hpp"

namespace holdfast::cli {

namespace {

using Words = std::vector<std::string>;

struct Answer {
  Status status = Status::ok;
  std::string error;               // The server's words.
  std::vector<std::string> texts;  // Of a reply, or of each of its elements.
};

class PlainQuestion : public Question {
 public:
  explicit PlainQuestion(const Words& words) : Question{put, take_reply, conclude} {
    for (const std::string& word : words) arguments_.emplace_back(ByteView(std::string_view(word)));
  }
  std::vector<std::string> texts;

 private:
  static Status put(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept {
    const auto& arguments = static_cast<PlainQuestion&>(self).arguments_;
    return node.ask(Arguments(arguments.data(), arguments.size()), tag, now);
  }
  static std::string text_of(const RespValue& value) {
    if (value.is(RespKind::integer)) return std::to_string(value.integer());
    return value.is(RespKind::bulk) || value.is(RespKind::simple) ? std::string(value.text().string_view()) : "";
  }
  static bool take_reply(Question& self, const RespValue& reply) noexcept {
    auto& texts = static_cast<PlainQuestion&>(self).texts;
    texts.clear();
    if (!reply.is(RespKind::array)) texts.push_back(text_of(reply));
    for (std::uint32_t index = 0; reply.is(RespKind::array) && index < reply.count(); ++index)
      texts.push_back(text_of(reply.at(index)));
    return true;
  }
  static bool conclude(Question&, Status&) noexcept { return false; }

  std::vector<Argument> arguments_;
};

Answer ask(Client& client, const Words& words) {
  PlainQuestion question(words);
  Answer answer;
  answer.status = client.put(question);
  if (answer.status != Status::ok) answer.error = std::string(client.error_text().string_view());
  answer.texts = std::move(question.texts);
  return answer;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// ---- INFO ------------------------------------------------------------------------------------------------------------

// A whole INFO is more than a client's buffers hold.
constexpr char info_script[] =
    "local info, lines = redis.call('INFO'), '' for _, name in ipairs(ARGV) do "
    "local value = string.match(info, '\\n' .. name .. ':([^\\r\\n]*)') "
    "if value then lines = lines .. name .. ':' .. value .. '\\n' end end return lines";
// Few a time: arguments have a limit.
constexpr const char* info_fields[][12] = {
    {"redis_version", "valkey_version", "run_id", "uptime_in_seconds", "maxclients", "connected_clients", "role",
     "master_host", "master_port", "master_replid", "master_link_status", "connected_slaves"},
    {"slave0", "slave1", "slave2", "master_repl_offset", "maxmemory", "maxmemory_policy", "used_memory", "aof_enabled",
     "aof_last_write_status", "rdb_last_bgsave_status", "evicted_keys", "second_repl_offset"}};

void read_info(Client& client, ServerFacts& facts) {
  for (const auto& names : info_fields) {
    Words words = {"EVAL", info_script, "0"};
    words.insert(words.end(), std::begin(names), std::end(names));
    const Answer answer = ask(client, words);
    if (answer.status != Status::ok || answer.texts.size() != 1) return;
    const std::string& lines = answer.texts[0];
    for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::size_t colon = lines.find(':', begin);
      if (colon < end) facts.info[lines.substr(begin, colon - begin)] = lines.substr(colon + 1, end - colon - 1);
    }
  }
}

std::optional<std::string> setting(Client& client, const char* name) {
  const Answer answer = ask(client, {"CONFIG", "GET", name});
  if (answer.status != Status::ok || answer.texts.size() != 2) return std::nullopt;
  return answer.texts[1];
}

// ---- Rights ----------------------------------------------------------------------------------------------------------

constexpr char key_mark[] = "<key>";

// A command with arguments that do nothing to a key that is not there.
struct Probe {
  const char* rule;
  const char* words[6];
  bool creates = false;  // Unless the key is a string that is no number.
  bool only_dry = false;
};
constexpr char no_sha[] = "ffffffffffffffffffffffffffffffffffffffff";
constexpr Probe probes[] = {
    {"+eval", {"EVAL", "return 1", "0"}},
    {"+evalsha", {"EVALSHA", no_sha, "0"}},
    {"+set", {"SET", key_mark, "x", "XX"}},
    {"+get", {"GET", key_mark}},
    {"+del", {"DEL", key_mark}},
    {"+exists", {"EXISTS", key_mark}},
    {"+pexpire", {"PEXPIRE", key_mark, "1000"}},
    {"+pttl", {"PTTL", key_mark}},
    {"+time", {"TIME"}},
    {"+incr", {"INCR", key_mark}, true},
    {"+incrby", {"INCRBY", key_mark, "1"}, true},
    {"+hexists", {"HEXISTS", key_mark, "f"}},
    {"+hset", {"HSET", key_mark, "f", "1"}, true},
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
    {"+subscribe", {"SUBSCRIBE", "redisson_lock__channel:{<key>}"}, false, true},
    {"+info", {"INFO", "nothing"}},
    {"+client|id", {"CLIENT", "ID"}},
    {"+client|kill", {"CLIENT", "KILL", "ID", "1"}, false, true},
};

// As proto/interop.md has them. Each list is of rules, with spaces between them.
struct KindRights {
  Kind kind;
  const char* needed;
  const char* optional;
};
constexpr KindRights kind_rights[] = {
    {Kind::mutex, "+set +eval +evalsha +get +del +pexpire +pttl", "+publish +subscribe +info +client|id +client|kill"},
    {Kind::reentrant, "+eval +evalsha +hexists +hset +hdel +pexpire +pttl",
     "+publish +subscribe +info +client|id +client|kill"},
    {Kind::fenced, "+eval +evalsha +hexists +hset +hdel +pexpire +pttl +incr +get +set +time",
     "+publish +subscribe +info +client|id +client|kill"},
    {Kind::fair,
     "+eval +evalsha +hexists +hset +hdel +pexpire +pttl +exists +hkeys +set +del +time +zadd +zrem +zscore +zpopmin",
     "+publish +subscribe +info +client|id +client|kill"},
    {Kind::read, "+eval +evalsha +exists +hexists +hset +hdel +hget +hgetall +set +del +pexpire +pttl",
     "+publish +subscribe +info +client|id +client|kill"},
    {Kind::write, "+eval +evalsha +exists +hexists +hset +hdel +hget +hgetall +set +del +pexpire +pttl",
     "+publish +subscribe +info +client|id +client|kill"},
    {Kind::semaphore,
     "+eval +evalsha +exists +get +set +incrby +time +zadd +zcard +zrange +zrem +zremrangebyscore +zscore",
     "+publish +subscribe +info +client|id +client|kill"},
};

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

enum class Verdict : std::uint8_t { allowed, refused, unknown };

// By the words of Redis and Valkey, of all versions with an ACL. That a key or a channel is refused is no matter of the command.
Verdict verdict_on(const std::string& words) {
  if (!contains(words, "permissions to run")) return Verdict::allowed;
  return Verdict::refused;
}

void read_rights(Client& client, const std::string& name, ServerFacts& facts) {
  const Answer user = ask(client, {"ACL", "WHOAMI"});
  if (user.status == Status::ok && user.texts.size() == 1) facts.user = user.texts[0];
  const auto dry_run = [&](Words words) {
    words.insert(words.begin(), {"ACL", "DRYRUN", facts.user});
    return ask(client, words);
  };
  const bool dry = !facts.user.empty() && dry_run({"PING"}).status == Status::ok;

  const std::string key = name.empty() ? "holdfast_doctor" : name;
  const std::string own = "holdfast_doctor:" + std::to_string(Client::now().nanoseconds());
  bool string_there = false;
  if (!dry) {
    const Answer set = ask(client, {"SET", own + ":x", "x", "NX", "PX", "1000"});
    string_there = set.status == Status::ok;
  }
  std::map<std::string, Verdict> verdicts;
  for (const Probe& probe : probes) {
    Verdict& verdict = verdicts[probe.rule];
    verdict = Verdict::unknown;
    if (dry) {
      const Answer answer = dry_run(words_of(probe, key));
      verdict = verdict_on(answer.status == Status::ok && !answer.texts.empty() ? answer.texts[0] : "");
    } else if (!probe.only_dry && (!probe.creates || string_there)) {
      verdict = verdict_on(ask(client, words_of(probe, probe.creates ? own + ":x" : own)).error);
    }
    if (verdict == Verdict::unknown) facts.unchecked.emplace_back(probe.rule);
  }
  if (string_there) (void)ask(client, {"DEL", own + ":x"});
  for (const KindRights& rights : kind_rights)
    for (const bool needed : {true, false}) {
      const std::string list = std::string(needed ? rights.needed : rights.optional) + " ";
      for (std::size_t begin = 0, end = 0; (end = list.find(' ', begin)) != std::string::npos; begin = end + 1) {
        const std::string rule = list.substr(begin, end - begin);
        if (verdicts[rule] == Verdict::refused) facts.missing.push_back({rule, needed, rights.kind});
      }
    }
  if (!name.empty()) {
    const Answer touched = ask(client, {"EVAL", "return 1", "1", name});
    facts.name_refused = touched.status == Status::no_permission && !contains(touched.error, "permissions to run");
  }
}

}  // namespace

void ask_facts(Client& client, const std::string& name, ServerFacts& facts) {
  read_info(client, facts);
  facts.save = setting(client, "save");
  facts.appendfsync = setting(client, "appendfsync");
  read_rights(client, name, facts);
}

bool ask_time(Client& client, TimePair& pair) {
  pair.sent = Client::now();
  const Answer answer = ask(client, {"TIME"});
  pair.received = Client::now();
  if (answer.status != Status::ok || answer.texts.size() != 2) return false;
  pair.server_microseconds = std::strtoll(answer.texts[0].c_str(), nullptr, 10) * 1'000'000 +
                             std::strtoll(answer.texts[1].c_str(), nullptr, 10);
  return true;
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
#include "key_reader.hpp"

#include "holdfast/core/node_task.hpp"
#include "holdfast/limits.hpp"

namespace holdfast::cli {

namespace {

// ARGV: `scan`, the cursor, how many keys, the pattern or nothing, `shape` where only what may be a lock is wanted; or `read` and
// the names, each behind its size. Then how many records and texts of a list are told. Returns the cursor, how many keys were
// left out, how many were refused, and a record per key: see take_key().
constexpr char script[] = R"(
local names, cursor, left, refused, shape = {}, '0', 0, 0, ARGV[5] == 'shape'
local records_max, told_max = tonumber(ARGV[6]), tonumber(ARGV[7])
if ARGV[1] == 'scan' then
local found
if ARGV[4] == '' then found = redis.call('SCAN', ARGV[2], 'COUNT', ARGV[3])
else found = redis.call('SCAN', ARGV[2], 'MATCH', ARGV[4], 'COUNT', ARGV[3]) end
cursor, names = found[1], found[2]
else
local at, text = 1, ARGV[2]
while at <= #text do
local colon = string.find(text, ':', at, true)
local size = tonumber(string.sub(text, at, colon - 1))
names[#names + 1] = string.sub(text, colon + 1, colon + size)
at = colon + size + 1
end
end
local now
local function braced(name) return string.find(name, '{', 1, true) and name or '{' .. name .. '}' end
local function number(reply) return type(reply) == 'number' and reply or 0 end
local function list(reply) return type(reply) == 'table' and not reply.err and reply or {} end
local function cut(text, size) return type(text) == 'string' and string.sub(text, 1, size) or '' end
local function read_permits(name, record)
local set = braced(name) .. ':timeout'
if number(redis.pcall('ZCARD', set)) == 0 then return end
if not now then
local time = redis.call('TIME')
now = math.ceil(time[1] * 1000 + time[2] / 1000)
end
local from = '(' .. string.format('%d', now)
record.taken = number(redis.pcall('ZCOUNT', set, from, '+inf'))
local live = list(redis.pcall('ZRANGEBYSCORE', set, from, '+inf', 'WITHSCORES', 'LIMIT', 0, told_max))
for index = 1, #live, 2 do
record[#record + 1] = cut(live[index], 64)
record[#record + 1] = string.format('%d', math.max(0, live[index + 1] - now))
end
end
local function read_hash(name, record)
record.size = number(redis.pcall('HLEN', name))
if record.size > 64 or shape and record.size > told_max then
record.text = cut(redis.pcall('HGET', name, 'mode'), 16)
if record.size > 64 or record.text == '' then return record.text ~= '' end
end
local fields = list(redis.pcall('HKEYS', name))
for _, field in ipairs(fields) do
if field == 'mode' then record.text = cut(redis.pcall('HGET', name, field), 16) end
end
for _, field in ipairs(fields) do
local mine = field ~= 'mode' and (record.text ~= 'write' or string.sub(field, -6) == ':write')
if mine and shape and not string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:') then return false end
if mine and #record < 2 * told_max then
record[#record + 1] = cut(field, 70)
record[#record + 1] = cut(redis.pcall('HGET', name, field), 20)
end
end
return true
end
local function read(name)
local kind = redis.pcall('TYPE', name)
if kind.err then
refused = refused + 1
return
end
kind = kind.ok
if kind == 'zset' and shape and string.sub(name, -8) == ':timeout' then
name = string.sub(name, 1, -9)
name = string.match(name, '^{([^{}]*)}$') or name
kind = redis.pcall('TYPE', name).ok
if kind ~= 'string' then return end
end
local record = {size = 0, text = '', taken = 0}
local waiting, waiters = 0, {}
if kind == 'string' then
record.text = cut(redis.pcall('GETRANGE', name, 0, 127), 128)
record.size = #record.text
if shape and record.size > 64 then return end
if record.size == 128 then record.size = number(redis.pcall('STRLEN', name)) end
if string.find(record.text, '^%-?%d+$') then read_permits(name, record) end
elseif kind == 'hash' then
if not read_hash(name, record) and shape then return end
elseif shape and kind ~= 'none' then
return
end
if kind == 'hash' and record.text == '' or kind == 'none' then
local queue = 'holdfast_queue:' .. braced(name)
waiting = number(redis.pcall('ZCARD', queue))
if waiting > 0 then waiters = list(redis.pcall('ZRANGE', queue, 0, told_max - 1)) end
end
local reply = {name, kind, number(redis.pcall('PTTL', name)), record.size, record.text, record.taken, waiting, #record / 2}
for _, text in ipairs(record) do reply[#reply + 1] = text end
for _, text in ipairs(waiters) do reply[#reply + 1] = cut(text, 64) end
return reply
end
local reply = {cursor, 0, 0}
for _, name in ipairs(names) do
if #name <= 256 then
if #reply - 3 < records_max then reply[#reply + 1] = read(name) else left = left + 1 end
end
end
reply[2], reply[3] = left, refused
return reply
)";

constexpr std::uint32_t fields_before_lists = 8;
// A name, a type, a string's beginning or a mode, of each list its texts, and five numbers.
constexpr std::size_t record_elements_max = 1 + fields_before_lists + 2 * told_max + told_max;
constexpr std::size_t bulk_overhead = 16;
constexpr std::size_t record_size_max =
    key_size_max + 16 + 128 + told_max * (70 + 20) + told_max * 64 + record_elements_max * bulk_overhead + 5 * 20;
constexpr std::size_t reply_elements_max = 4 + records_max * record_elements_max;
constexpr std::size_t watch_reply_size_max = 128 + records_max * record_size_max;
static_assert(watch_reply_size_max < 1024 * 1024, "a reply takes less than a megabyte, whatever the keys are");
static_assert(question_keys_max <= records_max, "all that is read by its name fits");
constexpr std::size_t names_size_max = question_keys_max * (key_size_max + 4);
constexpr std::size_t watch_request_size_max = sizeof script + names_size_max + key_size_max + 256;

constexpr std::size_t cursor_size_max = 20;

std::string text_of(const RespValue& value) { return std::string(value.text().string_view()); }

// False: it is no record of the script.
bool take_key(const RespValue& record, KeyFacts& key) {
  if (record.count() < fields_before_lists) return false;
  for (const std::uint32_t index : {0U, 1U, 4U})
    if (!record.at(index).is(RespKind::bulk)) return false;
  for (const std::uint32_t index : {2U, 3U, 5U, 6U, 7U})
    if (!record.at(index).is(RespKind::integer)) return false;
  for (const std::uint32_t index : {3U, 5U, 6U, 7U})
    if (record.at(index).integer() < 0) return false;
  key.name = text_of(record.at(0));
  key.type = text_of(record.at(1));
  key.remaining = record.at(2).integer();
  key.size = static_cast<std::uint64_t>(record.at(3).integer());
  key.text = text_of(record.at(4));
  key.taken = static_cast<std::uint64_t>(record.at(5).integer());
  key.waiting = static_cast<std::uint64_t>(record.at(6).integer());
  const std::int64_t holders = record.at(7).integer();
  if (holders > static_cast<std::int64_t>(told_max)) return false;
  const std::uint32_t waiters_begin = fields_before_lists + 2 * static_cast<std::uint32_t>(holders);
  if (record.count() < waiters_begin || record.count() > waiters_begin + told_max) return false;
  for (std::uint32_t index = fields_before_lists; index < record.count(); ++index) {
    if (!record.at(index).is(RespKind::bulk)) return false;
    if (index >= waiters_begin)
      key.waiters.push_back(text_of(record.at(index)));
    else if ((index - fields_before_lists) % 2 == 0)
      key.holders.emplace_back(text_of(record.at(index)), text_of(record.at(index + 1)));
  }
  return true;
}

class KeyQuestion : public Question {
 public:
  KeyQuestion(const std::vector<std::string>& words, KeyReader::Answer& answer, std::string& cursor)
      : Question{put, take_reply, conclude}, words_(words), answer_(answer), cursor_(cursor) {
    for (const std::string& word : words_) arguments_.emplace_back(ByteView(std::string_view(word)));
  }

 private:
  static Status put(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept {
    const auto& arguments = static_cast<KeyQuestion&>(self).arguments_;
    return node.ask(Arguments(arguments.data(), arguments.size()), tag, now);
  }
  static bool take_reply(Question& self, const RespValue& reply) noexcept {
    auto& question = static_cast<KeyQuestion&>(self);
    if (reply.count() < 3 || !reply.at(0).is(RespKind::bulk) || reply.at(0).text().size() > cursor_size_max)
      return false;
    for (const std::uint32_t index : {1U, 2U})
      if (!reply.at(index).is(RespKind::integer) || reply.at(index).integer() < 0) return false;
    KeyReader::Answer answer;
    answer.left_out = static_cast<std::uint64_t>(reply.at(1).integer());
    answer.refused = static_cast<std::uint64_t>(reply.at(2).integer());
    for (std::uint32_t index = 3; index < reply.count(); ++index)
      if (!take_key(reply.at(index), answer.keys.emplace_back())) return false;
    question.cursor_ = text_of(reply.at(0));
    answer.last = question.cursor_ == "0";
    question.answer_ = std::move(answer);
    return true;
  }
  static bool conclude(Question&, Status&) noexcept { return false; }

  const std::vector<std::string>& words_;
  KeyReader::Answer& answer_;
  std::string& cursor_;
  std::vector<Argument> arguments_;
};

using Buffers =
    ClientBuffersOf<NodeBuffersOf<SessionBuffersOf<reply_elements_max, watch_reply_size_max, watch_request_size_max>,
                                  config_texts_size_max, addresses_max>>;

}  // namespace

class KeyReader::Place : public ClientWith<Buffers> {};

KeyReader::KeyReader() : place_(std::make_unique<Place>()) {}
KeyReader::~KeyReader() = default;

ClientBase& KeyReader::client() noexcept { return *place_; }

Status KeyReader::connect(const ClientConfig& config) { return place_->connect(config); }

Status KeyReader::scan(const std::string& pattern, bool by_shape, Answer& answer) {
  const std::vector<std::string> words = {"EVAL",
                                          script,
                                          "0",
                                          "scan",
                                          cursor_,
                                          std::to_string(question_keys_max),
                                          pattern,
                                          by_shape ? "shape" : "",
                                          std::to_string(records_max),
                                          std::to_string(told_max)};
  KeyQuestion question(words, answer, cursor_);
  return place_->put(question);
}

Status KeyReader::read(const std::vector<std::string>& names, Answer& answer) {
  HOLDFAST_ASSERT(names.size() <= question_keys_max);
  std::string packed;
  for (const std::string& name : names) packed += std::to_string(name.size()) + ":" + name;
  const std::vector<std::string> words = {
      "EVAL", script, "0", "read", packed, "", "", "", std::to_string(records_max), std::to_string(told_max)};
  std::string no_cursor;
  KeyQuestion question(words, answer, no_cursor);
  return place_->put(question);
}

}  // namespace holdfast::cli

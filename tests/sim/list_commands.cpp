// SPDX-License-Identifier: MIT
//
// Lists: the queues of fair locks.
#include "server_state.hpp"

namespace holdfast::sim {

namespace {

using Effect = ModelRedis::EffectKind;

void push_elements(Call& call, bool front, bool only_if_there) {
  ListValue* list = nullptr;
  if (!call.get(call[1], list, !only_if_there)) return;
  if (list == nullptr) return call.reply.integer(0);
  for (std::size_t index = 2; index < call.count(); ++index) {
    if (front)
      list->emplace_front(call[index]);
    else
      list->emplace_back(call[index]);
    call.tell(Effect::list_changed, call[1], call[index]);
  }
  call.reply.integer(static_cast<std::int64_t>(list->size()));
}
void lpush(Call& call) { push_elements(call, true, false); }
void rpush(Call& call) { push_elements(call, false, false); }
void lpushx(Call& call) { push_elements(call, true, true); }
void rpushx(Call& call) { push_elements(call, false, true); }

void pop_elements(Call& call, bool front) {
  if (call.count() > 3) return call.refuse_arity();
  const bool counted = call.count() == 3;
  std::int64_t wanted = 1;
  if (counted) {
    if (!call.read(call[2], wanted, "ERR value is out of range, must be positive")) return;
    if (wanted < 0) return call.reply.error("ERR value is out of range, must be positive");
  }
  ListValue* list = nullptr;
  if (!call.get(call[1], list)) return;
  if (list == nullptr) return counted ? call.reply.null_array() : call.reply.null_bulk();
  const auto size = static_cast<std::int64_t>(list->size());
  if (counted) call.reply.array(static_cast<std::size_t>(std::min(wanted, size)));
  for (std::int64_t popped = std::min(wanted, size); popped > 0; --popped) {
    const std::string element = front ? list->front() : list->back();
    if (front)
      list->pop_front();
    else
      list->pop_back();
    call.reply.bulk(element);
    call.tell(Effect::list_changed, call[1], element);
  }
  call.erase_if_empty(call[1]);
}
void lpop(Call& call) { pop_elements(call, true); }
void rpop(Call& call) { pop_elements(call, false); }

void llen(Call& call) {
  ListValue* list = nullptr;
  if (call.get(call[1], list)) call.reply.integer(static_cast<std::int64_t>(list == nullptr ? 0 : list->size()));
}

// Counts from the end where it is negative. False: outside.
bool place(const ListValue& list, std::int64_t& index) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (index < 0) index += size;
  return index >= 0 && index < size;
}

void lindex(Call& call) {
  ListValue* list = nullptr;
  if (!call.get(call[1], list)) return;
  if (list == nullptr) return call.reply.null_bulk();
  std::int64_t index = 0;
  if (!call.read(call[2], index)) return;
  if (!place(*list, index)) return call.reply.null_bulk();
  call.reply.bulk((*list)[static_cast<std::size_t>(index)]);
}

void lset(Call& call) {
  ListValue* list = nullptr;
  if (!call.get(call[1], list)) return;
  if (list == nullptr) return call.reply.error("ERR no such key");
  std::int64_t index = 0;
  if (!call.read(call[2], index)) return;
  if (!place(*list, index)) return call.reply.error("ERR index out of range");
  (*list)[static_cast<std::size_t>(index)] = call[3];
  call.tell(Effect::list_changed, call[1], call[3]);
  call.reply.ok();
}

// Where a range begins and how long it is.
void clip(std::int64_t size, std::int64_t& start, std::int64_t& length, std::int64_t end) {
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::max<std::int64_t>(start, 0);
  end = std::min(end, size - 1);
  length = start > end ? 0 : end - start + 1;
}

void lrange(Call& call) {
  std::int64_t start = 0;
  std::int64_t end = 0;
  if (!call.read(call[2], start) || !call.read(call[3], end)) return;
  ListValue* list = nullptr;
  if (!call.get(call[1], list)) return;
  std::int64_t length = 0;
  if (list != nullptr) clip(static_cast<std::int64_t>(list->size()), start, length, end);
  call.reply.array(static_cast<std::size_t>(length));
  for (std::int64_t index = start; index < start + length; ++index)
    call.reply.bulk((*list)[static_cast<std::size_t>(index)]);
}

void ltrim(Call& call) {
  std::int64_t start = 0;
  std::int64_t end = 0;
  if (!call.read(call[2], start) || !call.read(call[3], end)) return;
  ListValue* list = nullptr;
  if (!call.get(call[1], list)) return;
  if (list != nullptr) {
    std::int64_t length = 0;
    clip(static_cast<std::int64_t>(list->size()), start, length, end);
    ListValue kept;
    for (std::int64_t index = start; index < start + length; ++index)
      kept.push_back((*list)[static_cast<std::size_t>(index)]);
    list->swap(kept);
    call.tell(Effect::list_changed, call[1]);
    call.erase_if_empty(call[1]);
  }
  call.reply.ok();
}

void lrem(Call& call) {
  std::int64_t wanted = 0;
  if (!call.read(call[2], wanted)) return;
  ListValue* list = nullptr;
  if (!call.get(call[1], list)) return;
  if (list == nullptr) return call.reply.integer(0);
  // From the end where the count is negative; all of them where it is zero.
  const bool backwards = wanted < 0;
  const std::uint64_t most = wanted == 0 ? list->size()
                                         : (backwards ? std::uint64_t{0} - static_cast<std::uint64_t>(wanted)
                                                      : static_cast<std::uint64_t>(wanted));
  if (backwards) std::reverse(list->begin(), list->end());
  std::uint64_t removed = 0;
  std::erase_if(*list, [&](const std::string& element) {
    if (removed == most || element != call[3]) return false;
    ++removed;
    return true;
  });
  if (backwards) std::reverse(list->begin(), list->end());
  for (std::uint64_t told = 0; told < removed; ++told) call.tell(Effect::list_changed, call[1], call[3]);
  call.erase_if_empty(call[1]);
  call.reply.integer(static_cast<std::int64_t>(removed));
}

constexpr unsigned writes = flag_write | flag_deny_oom;
constexpr Command all[] = {
    {"lpush", -3, writes, lpush},   {"rpush", -3, writes, rpush},    {"lpushx", -3, writes, lpushx},
    {"rpushx", -3, writes, rpushx}, {"lpop", -2, flag_write, lpop},  {"rpop", -2, flag_write, rpop},
    {"llen", 2, 0, llen},           {"lindex", 3, 0, lindex},        {"lset", 4, writes, lset},
    {"lrange", 4, 0, lrange},       {"ltrim", 4, flag_write, ltrim}, {"lrem", 4, flag_write, lrem},
};

}  // namespace

std::span<const Command> list_commands() noexcept { return all; }

}  // namespace holdfast::sim

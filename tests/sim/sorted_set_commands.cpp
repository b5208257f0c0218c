// SPDX-License-Identifier: MIT
//
// Sorted sets: timeouts of fair locks, leases of permits.
#include <cmath>
#include <cstdlib>

#include "resp_request_parser.hpp"
#include "server_state.hpp"

namespace holdfast::sim {

namespace {

using Effect = ModelRedis::EffectKind;
using Member = SortedSetValue::Member;

std::string score_text(double score) {
  std::string text;
  ReplyWriter(text).real(score);
  return text.substr(text.find('\n') + 1, text.size() - text.find('\n') - 3);
}

// In a small set whole scores are kept as integers: minus zero becomes zero.
double kept_score(double score) { return score == 0 ? 0 : score; }

struct AddOptions {
  bool nx = false, xx = false, gt = false, lt = false, changed = false, increment = false;
};

void add_members(Call& call, std::size_t first, const AddOptions& options) {
  const std::size_t words = call.count() - first;
  if (words % 2 != 0 || words == 0) return call.refuse_syntax();
  if (options.nx && options.xx) return call.reply.error("ERR XX and NX options at the same time are not compatible");
  if ((options.gt && options.nx) || (options.lt && options.nx) || (options.gt && options.lt))
    return call.reply.error("ERR GT, LT, and/or NX options at the same time are not compatible");
  if (options.increment && words > 2)
    return call.reply.error("ERR INCR option supports a single increment-element pair");
  std::vector<double> scores(words / 2);
  for (std::size_t index = 0; index < scores.size(); ++index)
    if (!call.read_score(call[first + 2 * index], scores[index])) return;

  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set, !options.xx)) return;
  std::int64_t added = 0;
  std::int64_t updated = 0;
  bool processed = false;
  double result = 0;
  for (std::size_t index = 0; set != nullptr && index < scores.size(); ++index) {
    const std::string_view name = call[first + 1 + 2 * index];
    double score = scores[index];
    const Member* const member = set->find(name);
    if (member == nullptr) {
      if (options.xx) continue;
      set->insert(name, kept_score(score));
      ++added;
    } else {
      if (options.nx) continue;
      const double current = member->score;
      if (options.increment) score += current;
      if (std::isnan(score)) return call.reply.error("ERR resulting score is not a number (NaN)");
      if ((options.lt && score >= current) || (options.gt && score <= current)) continue;
      if (score != current) {
        set->erase(name);
        set->insert(name, kept_score(score));
        ++updated;
      }
    }
    processed = true;
    result = score;
    call.tell(Effect::sorted_set_changed, call[1], name, call.server.observer ? score_text(score) : std::string());
  }
  if (!options.increment) return call.reply.integer(options.changed ? added + updated : added);
  if (processed)
    call.reply.real(result);
  else
    call.reply.null_bulk();
}

// ZINCRBY reads the options, too.
void read_options_and_add(Call& call, AddOptions options) {
  std::size_t index = 2;
  for (; index < call.count(); ++index) {
    if (call.is(index, "nx"))
      options.nx = true;
    else if (call.is(index, "xx"))
      options.xx = true;
    else if (call.is(index, "ch"))
      options.changed = true;
    else if (call.is(index, "incr"))
      options.increment = true;
    else if (call.is(index, "gt"))
      options.gt = true;
    else if (call.is(index, "lt"))
      options.lt = true;
    else
      break;
  }
  add_members(call, index, options);
}
void zadd(Call& call) { read_options_and_add(call, {}); }
void zincrby(Call& call) { read_options_and_add(call, {.increment = true}); }

void zrem(Call& call) {
  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  std::int64_t removed = 0;
  for (std::size_t index = 2; set != nullptr && index < call.count(); ++index)
    if (set->erase(call[index])) {
      ++removed;
      call.tell(Effect::sorted_set_changed, call[1], call[index]);
    }
  call.erase_if_empty(call[1]);
  call.reply.integer(removed);
}

void pop(Call& call, bool last) {
  if (call.count() > 3) return call.refuse_syntax();
  std::int64_t most = 1;
  if (call.count() == 3 && (!read_integer(call[2], most) || most < 0))
    return call.reply.error("ERR value is out of range, must be positive");
  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  const std::size_t size = set == nullptr ? 0 : set->members.size();
  const std::size_t count = std::min(static_cast<std::size_t>(most), size);
  call.reply.array(2 * count);
  for (std::size_t index = 0; index < count; ++index) {
    const auto place = last ? set->members.end() - 1 : set->members.begin();
    const Member member = *place;
    set->members.erase(place);
    call.tell(Effect::sorted_set_changed, call[1], member.name);
    call.reply.bulk(member.name);
    call.reply.real(member.score);
  }
  if (count != 0) call.erase_if_empty(call[1]);
}
void zpopmin(Call& call) { pop(call, false); }
void zpopmax(Call& call) { pop(call, true); }

void zscore(Call& call) {
  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  const Member* const member = set == nullptr ? nullptr : set->find(call[2]);
  if (member == nullptr)
    call.reply.null_bulk();
  else
    call.reply.real(member->score);
}

void zcard(Call& call) {
  SortedSetValue* set = nullptr;
  if (call.get(call[1], set)) call.reply.integer(static_cast<std::int64_t>(set == nullptr ? 0 : set->members.size()));
}

void zrank(Call& call) {
  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  const Member* const member = set == nullptr ? nullptr : set->find(call[2]);
  if (member == nullptr)
    call.reply.null_bulk();
  else
    call.reply.integer(member - set->members.data());
}

struct ScoreRange {
  double lowest = 0, highest = 0;
  bool above = false, below = false;  // The ends do not belong to it.

  [[nodiscard]] bool not_below(double score) const noexcept { return above ? score > lowest : score >= lowest; }
  [[nodiscard]] bool not_above(double score) const noexcept { return below ? score < highest : score <= highest; }
  [[nodiscard]] bool contains(double score) const noexcept { return not_below(score) && not_above(score); }
  [[nodiscard]] bool empty() const noexcept { return lowest > highest || (lowest == highest && (above || below)); }
};
bool read_bound(std::string_view text, double& bound, bool& open) {
  const std::string copy(text);
  open = copy[0] == '(';
  const char* const begin = copy.c_str() + (open ? 1 : 0);
  char* end = nullptr;
  bound = std::strtod(begin, &end);
  return *end == '\0' && !std::isnan(bound);
}
bool read_range(Call& call, std::string_view lowest, std::string_view highest, ScoreRange& range) {
  if (read_bound(lowest, range.lowest, range.above) && read_bound(highest, range.highest, range.below)) return true;
  call.reply.error("ERR min or max is not a float");
  return false;
}

struct TextRange {
  struct Bound {
    int infinite = 0;  // -1: before, 1: after everything.
    bool open = false;
    std::string_view text;
  };
  Bound lowest, highest;

  [[nodiscard]] static bool read(std::string_view text, Bound& bound) noexcept {
    if (text.empty()) return false;
    const bool alone = text.size() == 1 || text[1] == '\0';
    if ((text[0] == '+' || text[0] == '-') && alone) {
      bound.infinite = text[0] == '+' ? 1 : -1;
      bound.open = true;
      return true;
    }
    bound.open = text[0] == '(';
    bound.text = text.substr(1);
    return text[0] == '(' || text[0] == '[';
  }
  [[nodiscard]] bool above_lowest(std::string_view name) const noexcept {
    if (lowest.infinite != 0) return lowest.infinite < 0;
    return lowest.open ? name > lowest.text : name >= lowest.text;
  }
  [[nodiscard]] bool below_highest(std::string_view name) const noexcept {
    if (highest.infinite != 0) return highest.infinite > 0;
    return highest.open ? name < highest.text : name <= highest.text;
  }
  [[nodiscard]] bool empty() const noexcept {
    if (lowest.infinite != 0 && lowest.infinite == highest.infinite) return true;
    if (lowest.infinite < 0 || highest.infinite > 0) return false;
    if (lowest.infinite > 0 || highest.infinite < 0) return true;
    return lowest.text > highest.text || (lowest.text == highest.text && (lowest.open || highest.open));
  }
};

enum class RangeBy { automatic, rank, score, text };

void reply_members(Call& call, const std::vector<const Member*>& members, bool with_scores) {
  call.reply.array(with_scores ? 2 * members.size() : members.size());
  for (const Member* const member : members) {
    call.reply.bulk(member->name);
    if (with_scores) call.reply.real(member->score);
  }
}

// ZRANGE and those that it replaces.
void range_of(Call& call, RangeBy by, bool reverse, bool fixed_direction) {
  bool with_scores = false;
  std::int64_t offset = 0;
  std::int64_t limit = -1;
  const bool fixed_kind = by != RangeBy::automatic;
  for (std::size_t index = 4; index < call.count(); ++index) {
    if (call.is(index, "withscores")) {
      with_scores = true;
    } else if (call.is(index, "limit") && index + 2 < call.count()) {
      if (!call.read(call[index + 1], offset) || !call.read(call[index + 2], limit)) return;
      index += 2;
    } else if (!fixed_direction && !reverse && call.is(index, "rev")) {
      reverse = true;
    } else if (!fixed_kind && by == RangeBy::automatic && call.is(index, "bylex")) {
      by = RangeBy::text;
    } else if (!fixed_kind && by == RangeBy::automatic && call.is(index, "byscore")) {
      by = RangeBy::score;
    } else {
      return call.refuse_syntax();
    }
  }
  if (by == RangeBy::automatic) by = RangeBy::rank;
  if (limit != -1 && by == RangeBy::rank)
    return call.reply.error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  if (with_scores && by == RangeBy::text)
    return call.reply.error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  const bool swapped = reverse && by != RangeBy::rank;
  const std::string_view first = call[swapped ? 3 : 2];
  const std::string_view last = call[swapped ? 2 : 3];
  std::int64_t start = 0;
  std::int64_t end = 0;
  ScoreRange scores;
  TextRange texts;
  if (by == RangeBy::rank && (!call.read(first, start) || !call.read(last, end))) return;
  if (by == RangeBy::score && !read_range(call, first, last, scores)) return;
  if (by == RangeBy::text && (!TextRange::read(first, texts.lowest) || !TextRange::read(last, texts.highest)))
    return call.reply.error("ERR min or max not valid string range item");

  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  std::vector<const Member*> found;
  if (set == nullptr) return reply_members(call, found, with_scores);
  std::vector<const Member*> all;
  for (const Member& member : set->members) all.push_back(&member);
  if (reverse) std::reverse(all.begin(), all.end());
  const auto size = static_cast<std::int64_t>(all.size());
  if (by == RangeBy::rank) {
    if (start < 0) start += size;
    if (end < 0) end += size;
    start = std::max<std::int64_t>(start, 0);
    end = std::min(end, size - 1);
    for (std::int64_t index = start; index <= end; ++index) found.push_back(all[static_cast<std::size_t>(index)]);
  } else {
    // The server looks for the first member inside of both ends and stops at the first that is beyond. Where scores
    // differ and it is asked for names, that is not all of them.
    const auto reached = [&](const Member& member) {
      if (by == RangeBy::score) return reverse ? scores.not_above(member.score) : scores.not_below(member.score);
      return reverse ? texts.below_highest(member.name) : texts.above_lowest(member.name);
    };
    const auto passed = [&](const Member& member) {
      if (by == RangeBy::score) return reverse ? !scores.not_below(member.score) : !scores.not_above(member.score);
      return reverse ? !texts.above_lowest(member.name) : !texts.below_highest(member.name);
    };
    const bool none = by == RangeBy::score ? scores.empty()
                                           : texts.empty() || !texts.above_lowest(set->members.back().name) ||
                                                 !texts.below_highest(set->members.front().name);
    auto member =
        none ? all.end() : std::find_if(all.begin(), all.end(), [&](const Member* it) { return reached(*it); });
    for (; member != all.end() && !passed(**member); ++member) found.push_back(*member);
    // A negative offset skips until nothing is left, a negative limit takes all.
    const auto matched = static_cast<std::int64_t>(found.size());
    const std::int64_t skipped = offset < 0 ? matched : std::min(offset, matched);
    found.erase(found.begin(), found.begin() + skipped);
    if (limit >= 0 && limit < static_cast<std::int64_t>(found.size())) found.resize(static_cast<std::size_t>(limit));
  }
  reply_members(call, found, with_scores);
}
void zrange(Call& call) { range_of(call, RangeBy::automatic, false, false); }
void zrangebyscore(Call& call) { range_of(call, RangeBy::score, false, true); }
void zrevrangebyscore(Call& call) { range_of(call, RangeBy::score, true, true); }

void zcount(Call& call) {
  ScoreRange range;
  if (!read_range(call, call[2], call[3], range)) return;
  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  std::int64_t count = 0;
  if (set != nullptr)
    count = std::count_if(set->members.begin(), set->members.end(),
                          [&](const Member& member) { return range.contains(member.score); });
  call.reply.integer(count);
}

void zremrangebyscore(Call& call) {
  ScoreRange range;
  if (!read_range(call, call[2], call[3], range)) return;
  SortedSetValue* set = nullptr;
  if (!call.get(call[1], set)) return;
  std::int64_t removed = 0;
  if (set != nullptr)
    removed = static_cast<std::int64_t>(std::erase_if(set->members, [&](const Member& member) {
      if (!range.contains(member.score)) return false;
      call.tell(Effect::sorted_set_changed, call[1], member.name);
      return true;
    }));
  call.erase_if_empty(call[1]);
  call.reply.integer(removed);
}

constexpr unsigned writes = flag_write | flag_deny_oom;
constexpr Command all_commands[] = {
    {"zadd", -4, writes, zadd},
    {"zincrby", 4, writes, zincrby},
    {"zrem", -3, flag_write, zrem},
    {"zpopmin", -2, flag_write, zpopmin},
    {"zpopmax", -2, flag_write, zpopmax},
    {"zscore", 3, 0, zscore},
    {"zcard", 2, 0, zcard},
    {"zrank", 3, 0, zrank},
    {"zcount", 4, 0, zcount},
    {"zrange", -4, 0, zrange},
    {"zrangebyscore", -4, 0, zrangebyscore},
    {"zrevrangebyscore", -4, 0, zrevrangebyscore},
    {"zremrangebyscore", 4, flag_write, zremrangebyscore},
};

}  // namespace

std::span<const Command> sorted_set_commands() noexcept { return all_commands; }

}  // namespace holdfast::sim

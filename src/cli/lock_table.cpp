// SPDX-License-Identifier: MIT
#include "lock_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <tuple>

#include "json.hpp"
#include "lock_sight.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t gap = 2;             // Between columns.
constexpr std::size_t lock_width_min = 8;  // Below that columns are left out, the last ones first.
constexpr std::size_t head_lines = 3;      // The server, the sums, the names of the columns.

using Cells = std::array<std::string, 8>;
enum Column : std::size_t { lock, kind, holder, left, waits, rate, renewals, since };
// What each costs, in the order in which they are given up from the end.
constexpr std::array<std::size_t, 8> widths = {0, 9, 24, 7, 5, 6, 8, 7};
const Cells titles = {"LOCK", "KIND", "HOLDER", "LEFT", "WAITS", "HAND/S", "RENEWALS", "SEEN"};
constexpr std::array<bool, 8> to_the_right = {false, false, false, true, true, true, true, true};

std::string cut(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return width < 3 ? text.substr(0, width) : text.substr(0, width - 2) + "..";
}

std::string line_of(const Cells& cells, std::size_t columns, std::size_t lock_width) {
  std::string line;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t width = column == Column::lock ? lock_width : widths[column];
    const std::string text = cut(cells[column], width);
    const std::string blank(width - text.size(), ' ');
    if (column != 0) line.append(gap, ' ');
    line += to_the_right[column] ? blank + text : text + blank;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

const char* kind_text(const LockEntry& entry) noexcept {
  if (entry.form == LockForm::other) return "no lock";
  return entry.form == LockForm::free ? "" : to_string(entry.form);
}

std::string holder_text(const LockEntry& entry) {
  if (entry.form == LockForm::other) return "";
  if (!entry.held()) return "free";
  std::string text = entry.holds.empty() ? "?" : short_holder(entry.holds.front().holder);
  if (entry.form == LockForm::semaphore) return std::to_string(entry.owners) + " of " + std::to_string(entry.permits);
  if (entry.two_holders) return "TWO: " + text;
  if (entry.owners > 1) text += " +" + std::to_string(entry.owners - 1);
  return text;
}

std::string left_text(const LockEntry& entry, Instant now) {
  if (!entry.held() || entry.holds.empty()) return "";
  if (entry.no_expiry) return "no TTL";
  Instant soonest = Instant::max();
  for (const Hold& hold : entry.holds)
    soonest = std::min(soonest, hold.ends_until, [](Instant one, Instant other) { return one < other; });
  return soonest > now ? age_text(soonest - now) : "over";
}

Cells cells_of(const std::string& name, const LockEntry& entry, double hand_offs, Instant now) {
  Cells cells;
  cells[lock] = escaped(name);
  cells[kind] = kind_text(entry);
  cells[holder] = holder_text(entry);
  cells[left] = left_text(entry, now);
  cells[waits] = entry.waiting == 0 ? "" : std::to_string(entry.waiting);
  cells[rate] = hand_offs == 0 ? "" : fixed_text(hand_offs, 1);
  cells[renewals] = entry.renewals == 0 ? "" : std::to_string(entry.renewals);
  if (!entry.holds.empty()) cells[since] = age_text(now - entry.holds.front().since);
  return cells;
}

std::string sums_text(const Logbook& book, const TableHead& head, Instant now) {
  std::size_t held = 0;
  std::size_t endless = 0;
  std::size_t two = 0;
  std::uint64_t waiting = 0;
  for (const auto& [name, entry] : book.locks()) {
    held += entry.held() ? 1U : 0U;
    endless += entry.no_expiry ? 1U : 0U;
    two += entry.two_holders ? 1U : 0U;
    waiting += entry.waiting;
  }
  std::string text = std::to_string(held) + " held, " + std::to_string(waiting) + " waiting, " +
                     fixed_text(book.hand_offs_per_second(now), 1) + " hand-offs/s";
  if (two != 0) text += "; DANGER: " + std::to_string(two) + " with two holders";
  if (endless != 0) text += "; DANGER: " + std::to_string(endless) + " without a TTL";
  if (const std::string limits = limits_text(book, head); !limits.empty()) text += "; " + limits;
  if (head.scans && !head.swept) text += "; not all keys have been seen yet";
  if (head.swept) text += "; all keys seen within " + age_text(head.sweep);
  return text;
}

}  // namespace

std::string age_text(Duration duration) {
  const double seconds = std::chrono::duration<double>(std::max(duration, Duration::zero())).count();
  if (seconds < 9.95) return fixed_text(seconds, 1) + " s";
  if (seconds < 120) return fixed_text(seconds, 0) + " s";
  if (seconds < 2 * 3600.0) return std::to_string(static_cast<std::int64_t>(seconds / 60)) + " min";
  if (seconds < 2 * 86400.0) return std::to_string(static_cast<std::int64_t>(seconds / 3600)) + " h";
  return std::to_string(static_cast<std::int64_t>(seconds / 86400)) + " d";
}

std::string limits_text(const Logbook& book, const TableHead& head) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* words) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + words;
  };
  add(book.not_followed(), " locks more are not followed");
  add(head.refused, " keys are refused to this user");
  add(head.left_out, " keys are left out");
  return text;
}

Table table_of(const Logbook& book, const TableHead& head, WindowSize size, Instant now) {
  Table table;
  const auto add = [&](const std::string& line) {
    if (table.lines.size() < size.rows) table.lines.push_back(cut(line, size.columns));
  };
  add("holdfast watch: " + head.scope + " on " + head.server);
  if (book.silence().empty())
    add(sums_text(book, head, now));
  else
    add("NO ANSWER for " + age_text(now - book.silent_since()) + ", asked again within " + age_text(head.retry) + ": " +
        escaped(book.silence()));

  std::size_t columns = titles.size();
  const auto needed = [&] {
    std::size_t sum = 0;
    for (std::size_t column = 1; column < columns; ++column) sum += gap + widths[column];
    return sum;
  };
  while (columns > 1 && needed() + lock_width_min > size.columns) --columns;
  const std::size_t lock_width = size.columns - std::min(needed(), size.columns);
  add(line_of(titles, columns, lock_width));

  struct Row {
    const std::string* name;
    const LockEntry* entry;
    double rate;
  };
  std::vector<Row> rows;
  rows.reserve(book.locks().size());
  for (const auto& [name, entry] : book.locks()) rows.push_back({&name, &entry, book.hand_offs_per_second(entry, now)});
  const std::size_t room = size.rows - std::min(size.rows, head_lines);
  const std::size_t shown = rows.size() <= room ? rows.size() : room - std::min<std::size_t>(room, 1);
  // By name where nothing else tells them apart, so that rows do not change places.
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(),
                    [](const Row& one, const Row& other) {
                      const auto rank = [](const Row& row) {
                        return std::tuple(!row.entry->in_danger(), row.entry->waiting == 0, row.rate == 0,
                                          !row.entry->held());
                      };
                      if (rank(one) != rank(other)) return rank(one) < rank(other);
                      return *one.name < *other.name;
                    });
  for (std::size_t index = 0; index < shown; ++index) {
    table.names.push_back(*rows[index].name);
    add(line_of(cells_of(*rows[index].name, *rows[index].entry, rows[index].rate, now), columns, lock_width));
  }
  if (shown < rows.size()) add("and " + std::to_string(rows.size() - shown) + " more");
  if (rows.empty()) add("no lock is held");
  return table;
}

// ---- One change ------------------------------------------------------------------------------------------------------

std::string time_text(std::int64_t since_epoch) {
  const std::int64_t milliseconds = since_epoch / 1'000'000;
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  (void)::gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[16];
  (void)std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(milliseconds % 1000));
  return std::string(text, size) + fraction;
}

std::string change_line(const Change& change, const std::string& time) {
  std::string text = time + " " + to_string(change.kind);
  if (!change.lock.empty()) text += " " + escaped(change.lock);
  const auto who = [&] { return std::string(to_string(change.form)) + " " + short_holder(change.holder); };
  const auto left = [&] {
    return change.remaining == Duration::max() ? std::string(", no TTL")
                                               : ", " + seconds_text(change.remaining) + " s left";
  };
  const auto over = [&] {
    return ", seen for " + seconds_text(change.held) + " s, " + std::to_string(change.renewals) +
           (change.renewals == 1 ? " renewal" : " renewals");
  };
  switch (change.kind) {
    case ChangeKind::found:
    case ChangeKind::acquired: return text + ": " + who() + left();
    case ChangeKind::handed_over:
      return text + ": " + who() + " after " + short_holder(change.before) + over() + left();
    case ChangeKind::released: return text + ": " + who() + over();
    case ChangeKind::ended: return text + ": " + who() + over() + "; released, or its lease ran out";
    case ChangeKind::ran_out: return text + ": " + who() + over() + "; its lease ran out, so its holder has lost it";
    case ChangeKind::stolen:
      if (change.over) return text + ": " + who() + " wrote over " + short_holder(change.before) + over() + left();
      return text + ": " + who() + " beside " + short_holder(change.before) + "; two hold it";
    case ChangeKind::cut_short: return text + ": " + who() + left() + ", less than it was promised";
    case ChangeKind::waiting:
      text += ": " + std::to_string(change.waiting) + " in the queue";
      if (!change.waiters.empty()) text += ", first";
      for (const std::string& waiter : change.waiters) text += " " + short_holder(waiter);
      return text;
    case ChangeKind::no_expiry: return text + ": " + who() + "; without a TTL it stays for ever if its holder goes";
    case ChangeKind::no_lock: return text + ": the key is there, and is no lock";
    case ChangeKind::free: return text;
    case ChangeKind::silent: return text + ": " + escaped(change.text);
    case ChangeKind::answers: return text + " after " + seconds_text(change.held) + " s";
  }
  return text;
}

std::string change_json(const Change& change, const std::string& time) {
  JsonObject object;
  object.add("time", time);
  object.add("event", std::string_view(to_string(change.kind)));
  const auto add_text = [&](const char* name, const std::string& bytes) {
    if (!bytes.empty()) object.add(name, escaped(bytes));
  };
  add_text("lock", change.lock);
  if (!change.lock.empty()) object.add("kind", std::string_view(to_string(change.form)));
  add_text("holder", change.holder);
  add_text("before", change.before);
  const bool has_remaining = change.kind == ChangeKind::found || change.kind == ChangeKind::acquired ||
                             change.kind == ChangeKind::handed_over || change.kind == ChangeKind::stolen ||
                             change.kind == ChangeKind::cut_short || change.kind == ChangeKind::no_expiry;
  if (has_remaining)
    object.add_raw("remaining", change.remaining == Duration::max() ? "null" : seconds_text(change.remaining));
  const bool is_over = change.kind == ChangeKind::released || change.kind == ChangeKind::ended ||
                       change.kind == ChangeKind::ran_out || change.kind == ChangeKind::handed_over || change.over;
  if (is_over || change.kind == ChangeKind::answers) object.add_number("seconds", seconds_text(change.held));
  if (is_over) object.add_number("renewals", std::to_string(change.renewals));
  if (change.kind == ChangeKind::waiting) {
    object.add_number("waiting", std::to_string(change.waiting));
    std::string waiters;
    for (const std::string& waiter : change.waiters)
      waiters += (waiters.empty() ? "" : ", ") + json_string(escaped(waiter));
    object.add_raw("waiters", "[" + waiters + "]");
  }
  add_text("why", change.text);
  return object.text();
}

}  // namespace holdfast::cli

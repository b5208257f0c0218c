// SPDX-License-Identifier: MIT
//
// What a watcher shows of a Logbook: a table that fits into a window, and a line per change, for people or as JSON. All text is
// printable ASCII. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/instant.hpp"
#include "logbook.hpp"

namespace holdfast::cli {

struct WindowSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

// What stands above the table.
struct TableHead {
  std::string server{};               // Printable.
  std::string scope{};                // Which locks: printable.
  Duration sweep = Duration::zero();  // How long it took to look at all keys; zero: not done yet, or not needed.
  std::uint64_t left_out = 0;         // Keys of the last sweep that were not looked at.
  std::uint64_t refused = 0;          // Those that the user may not look at.
  Duration retry = Duration::zero();  // A silent server is asked again after that.
  bool scans = false;                 // All keys are looked at,
  bool swept = false;                 // and have been once.
};

struct Table {
  std::vector<std::string> lines;  // Exactly size.rows or fewer, none longer than size.columns.
  std::vector<std::string> names;  // Of the locks that have a row.
};
// The locks that matter most come first: dangers, waiters, hand-offs.
[[nodiscard]] Table table_of(const Logbook& book, const TableHead& head, WindowSize size, Instant now);

// "2026-11-25T13:20:43.123Z" of nanoseconds since 1970.
[[nodiscard]] std::string time_text(std::int64_t since_epoch);

// What is not seen of the keys: how many, and why. Empty: nothing.
[[nodiscard]] std::string limits_text(const Logbook& book, const TableHead& head);

// One change, without the end of the line. `time` is a time_text().
[[nodiscard]] std::string change_line(const Change& change, const std::string& time);
[[nodiscard]] std::string change_json(const Change& change, const std::string& time);

// "4.2 s", "95 s", "14 min", "5 h", "3 d": at most six characters up to some hundred years.
[[nodiscard]] std::string age_text(Duration duration);

}  // namespace holdfast::cli

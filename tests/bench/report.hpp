// SPDX-License-Identifier: MIT
//
// Report collects paired ratios, and figures that stand by themselves, and prints them as a table, as JSON and (the
// ratios) as an SVG plot.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "paired_rounds.hpp"

namespace bench {

enum class BoundKind : unsigned char {
  none,
  ratio_at_most,
  ratio_at_least,
  nanoseconds_at_most,
  value_at_most,
  value_at_least,
};

// What has been promised.
struct Bound {
  BoundKind kind = BoundKind::none;
  double value = 0;
};
inline Bound at_most(double ratio) { return {BoundKind::ratio_at_most, ratio}; }
inline Bound at_least(double ratio) { return {BoundKind::ratio_at_least, ratio}; }
inline Bound at_most_nanoseconds(double nanoseconds) { return {BoundKind::nanoseconds_at_most, nanoseconds}; }
// Of a figure.
inline Bound value_at_most(double value) { return {BoundKind::value_at_most, value}; }
inline Bound value_at_least(double value) { return {BoundKind::value_at_least, value}; }

struct Row {
  std::string group;      // What was measured, and under which condition.
  std::string name;       // Whose time is the numerator,
  std::string reference;  // and whose the denominator.
  Spread nanoseconds;     // Of `name`, an operation.
  Spread ratio;
  Bound bound;
  std::size_t rounds = 0;

  [[nodiscard]] bool bound_met() const;
};

// What was counted, or measured once; or the median of so many rounds.
struct Figure {
  std::string group;
  std::string name;
  double value = 0;
  std::string unit;
  Bound bound{};           // Of the value.
  std::size_t rounds = 0;  // 0: once.
  double p10 = 0;          // Of the rounds.
  double p90 = 0;

  [[nodiscard]] bool bound_met() const;
};

class Report {
 public:
  explicit Report(std::string title) : title_(std::move(title)) {}

  // One row out of finished rounds.
  void add(const std::string& group, const PairedRounds& rounds, const std::string& name, const std::string& reference,
           Bound bound = {});
  void add(Figure figure) { figures_.push_back(std::move(figure)); }
  // Prints the rows and then the figures that were added since the last call, below a heading for each group.
  void print_new_rows(std::FILE* out);
  [[nodiscard]] std::size_t missed() const;

  // False, with a message on stderr, if the file cannot be written.
  [[nodiscard]] bool write_json(const std::string& path) const;
  // One line a row: the median ratio as a dot, the 10th and 90th percentile as whiskers, the bound as a tick, on a
  // logarithmic axis.
  [[nodiscard]] bool write_svg(const std::string& path) const;

 private:
  std::string title_;
  std::vector<Row> rows_;
  std::vector<Figure> figures_;
  std::size_t printed_ = 0;
  std::size_t figures_printed_ = 0;
};

}  // namespace bench

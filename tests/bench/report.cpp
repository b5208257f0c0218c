// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace bench {

namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

File open_for_writing(const std::string& path) {
  File file(std::fopen(path.c_str(), "w"));
  if (file == nullptr) std::perror(path.c_str());
  return file;
}

// Nanoseconds with a unit that leaves one to three digits before the point.
std::string time_text(double nanoseconds) {
  char text[32];
  if (nanoseconds < 1e3)
    (void)std::snprintf(text, sizeof text, "%.2f ns", nanoseconds);
  else if (nanoseconds < 1e6)
    (void)std::snprintf(text, sizeof text, "%.2f us", nanoseconds / 1e3);
  else
    (void)std::snprintf(text, sizeof text, "%.2f ms", nanoseconds / 1e6);
  return text;
}

// The name in JSON.
const char* kind_text(BoundKind kind) {
  switch (kind) {
    case BoundKind::none: break;
    case BoundKind::ratio_at_most: return "ratio_at_most";
    case BoundKind::ratio_at_least: return "ratio_at_least";
    case BoundKind::nanoseconds_at_most: return "nanoseconds_at_most";
    case BoundKind::value_at_most: return "value_at_most";
    case BoundKind::value_at_least: return "value_at_least";
  }
  return "none";
}

std::string bound_text(const Bound& bound, bool met) {
  if (bound.kind == BoundKind::none) return "";
  const bool least = bound.kind == BoundKind::ratio_at_least || bound.kind == BoundKind::value_at_least;
  const bool value = bound.kind == BoundKind::value_at_most || bound.kind == BoundKind::value_at_least;
  char text[48];
  (void)std::snprintf(text, sizeof text, value ? "%s %.6g%s %s" : "%s %.2f%s %s", least ? ">=" : "<=", bound.value,
                      bound.kind == BoundKind::nanoseconds_at_most ? " ns" : "", met ? "met" : "MISSED");
  return text;
}

// The members that say what was promised, for the end of a JSON object.
void write_promise(std::FILE* file, const Bound& bound, bool met) {
  if (bound.kind == BoundKind::none) return;
  (void)std::fprintf(file, ",\n   \"promise\": {\"%s\": %.3f, \"met\": %s}", kind_text(bound.kind), bound.value,
                     met ? "true" : "false");
}

// For JSON strings and XML text alike our names need no more than this.
std::string escaped(const std::string& text, bool xml) {
  std::string result;
  for (const char byte : text) {
    if (xml && byte == '&')
      result += "&amp;";
    else if (xml && byte == '<')
      result += "&lt;";
    else if (xml && byte == '>')
      result += "&gt;";
    else if (!xml && (byte == '"' || byte == '\\'))
      (result += '\\') += byte;
    else if (static_cast<unsigned char>(byte) >= ' ')
      result += byte;
  }
  return result;
}

// 0.1, 0.2, 0.5, 1, 2, 5, 10, ...: what stands at the axis' lines.
std::vector<double> axis_marks(double low, double high) {
  std::vector<double> marks;
  for (double decade = 1e-3; decade < 1e5; decade *= 10)
    for (const double step : {1.0, 2.0, 5.0})
      if (decade * step >= low && decade * step <= high) marks.push_back(decade * step);
  return marks;
}

}  // namespace

bool Row::bound_met() const {
  switch (bound.kind) {
    case BoundKind::none: return true;
    case BoundKind::ratio_at_most: return ratio.median <= bound.value;
    case BoundKind::ratio_at_least: return ratio.median >= bound.value;
    case BoundKind::nanoseconds_at_most: return nanoseconds.median <= bound.value;
    case BoundKind::value_at_most:
    case BoundKind::value_at_least: break;  // A figure's.
  }
  return false;
}

bool Figure::bound_met() const {
  switch (bound.kind) {
    case BoundKind::none: return true;
    case BoundKind::value_at_most: return value <= bound.value;
    case BoundKind::value_at_least: return value >= bound.value;
    case BoundKind::ratio_at_most:
    case BoundKind::ratio_at_least:
    case BoundKind::nanoseconds_at_most: break;  // A row's.
  }
  return false;
}

void Report::add(const std::string& group, const PairedRounds& rounds, const std::string& name,
                 const std::string& reference, Bound bound) {
  rows_.push_back(
      {group, name, reference, rounds.nanoseconds(name), rounds.ratio(name, reference), bound, rounds.round_count()});
}

void Report::print_new_rows(std::FILE* out) {
  for (; printed_ < rows_.size(); ++printed_) {
    const Row& row = rows_[printed_];
    if (printed_ == 0 || rows_[printed_ - 1].group != row.group) {
      (void)std::fprintf(out, "\n%s (%zu rounds)\n", row.group.c_str(), row.rounds);
      (void)std::fprintf(out, "  %-24s %10s  %-24s %7s %7s %7s  %s\n", "", "median", "ratio to", "median", "p10", "p90",
                         "promise");
    }
    (void)std::fprintf(out, "  %-24s %10s  %-24s %7.3f %7.3f %7.3f  %s\n", row.name.c_str(),
                       time_text(row.nanoseconds.median).c_str(), row.reference.c_str(), row.ratio.median,
                       row.ratio.p10, row.ratio.p90, bound_text(row.bound, row.bound_met()).c_str());
  }
  for (; figures_printed_ < figures_.size(); ++figures_printed_) {
    const Figure& figure = figures_[figures_printed_];
    if (figures_printed_ == 0 || figures_[figures_printed_ - 1].group != figure.group)
      (void)std::fprintf(out, "\n%s\n", figure.group.c_str());
    (void)std::fprintf(out, "  %-48s %12.6g %-12s %s\n", figure.name.c_str(), figure.value, figure.unit.c_str(),
                       bound_text(figure.bound, figure.bound_met()).c_str());
  }
  (void)std::fflush(out);
}

std::size_t Report::missed() const {
  const auto is_missed = [](const auto& it) { return !it.bound_met(); };
  return static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.end(), is_missed) +
                                  std::count_if(figures_.begin(), figures_.end(), is_missed));
}

bool Report::write_json(const std::string& path) const {
  const File file = open_for_writing(path);
  if (file == nullptr) return false;
  (void)std::fprintf(file.get(), "{\"title\": \"%s\", \"rows\": [", escaped(title_, false).c_str());
  const char* separator = "\n";
  for (const Row& row : rows_) {
    (void)std::fprintf(file.get(),
                       "%s  {\"group\": \"%s\", \"name\": \"%s\", \"reference\": \"%s\", \"rounds\": %zu,\n"
                       "   \"nanoseconds\": {\"median\": %.4f, \"p10\": %.4f, \"p90\": %.4f},\n"
                       "   \"ratio\": {\"median\": %.5f, \"p10\": %.5f, \"p90\": %.5f}",
                       separator, escaped(row.group, false).c_str(), escaped(row.name, false).c_str(),
                       escaped(row.reference, false).c_str(), row.rounds, row.nanoseconds.median, row.nanoseconds.p10,
                       row.nanoseconds.p90, row.ratio.median, row.ratio.p10, row.ratio.p90);
    write_promise(file.get(), row.bound, row.bound_met());
    (void)std::fputs("}", file.get());
    separator = ",\n";
  }
  (void)std::fputs("\n], \"figures\": [", file.get());
  separator = "\n";
  for (const Figure& figure : figures_) {
    (void)std::fprintf(file.get(), "%s  {\"group\": \"%s\", \"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"",
                       separator, escaped(figure.group, false).c_str(), escaped(figure.name, false).c_str(),
                       figure.value, escaped(figure.unit, false).c_str());
    if (figure.rounds != 0)
      (void)std::fprintf(file.get(), ",\n   \"rounds\": %zu, \"p10\": %.6g, \"p90\": %.6g", figure.rounds, figure.p10,
                         figure.p90);
    write_promise(file.get(), figure.bound, figure.bound_met());
    (void)std::fputs("}", file.get());
    separator = ",\n";
  }
  (void)std::fputs("\n]}\n", file.get());
  return std::ferror(file.get()) == 0;
}

bool Report::write_svg(const std::string& path) const {
  const File file = open_for_writing(path);
  if (file == nullptr) return false;

  constexpr double width = 960, plot_left = 360, plot_right = 820, row_height = 20, heading_height = 30, top = 50;
  double low = 0.9, high = 1.1, height = top;
  const std::string* group = nullptr;
  for (const Row& row : rows_) {
    low = std::min(low, row.ratio.p10);
    high = std::max(high, row.ratio.p90);
    height += row_height;
    if (group == nullptr || *group != row.group) height += heading_height;
    group = &row.group;
  }
  height += 40;
  low /= 1.05;
  high *= 1.05;
  const auto x = [&](double ratio) {
    return plot_left + (plot_right - plot_left) * std::log(ratio / low) / std::log(high / low);
  };

  std::FILE* const out = file.get();
  (void)std::fprintf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
                     "font-size=\"12\" fill=\"#222\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                     width, height);
  (void)std::fprintf(out, "<text x=\"16\" y=\"26\" font-size=\"16\">%s</text>\n", escaped(title_, true).c_str());
  for (const double mark : axis_marks(low, high)) {
    (void)std::fprintf(out,
                       "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.1f\" stroke=\"%s\"/>"
                       "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#666\">%g</text>\n",
                       x(mark), x(mark), top, height - 34, mark == 1.0 ? "#888" : "#e4e4e4", x(mark), height - 18,
                       mark);
  }

  double y = top;
  group = nullptr;
  for (const Row& row : rows_) {
    if (group == nullptr || *group != row.group) {
      y += heading_height;
      (void)std::fprintf(out, "<text x=\"16\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", y - 8,
                         escaped(row.group, true).c_str());
    }
    group = &row.group;
    const double middle = y + row_height / 2;
    (void)std::fprintf(out, "<text x=\"24\" y=\"%.1f\">%s <tspan fill=\"#666\">to %s</tspan></text>\n", middle + 4,
                       escaped(row.name, true).c_str(), escaped(row.reference, true).c_str());
    const bool ratio_bound = row.bound.kind == BoundKind::ratio_at_most || row.bound.kind == BoundKind::ratio_at_least;
    if (ratio_bound && row.bound.value >= low && row.bound.value <= high)
      (void)std::fprintf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#c60\"/>\n",
                         x(row.bound.value), x(row.bound.value), middle - 8, middle + 8);
    const char* const color = row.bound_met() ? "#06c" : "#c00";
    (void)std::fprintf(out,
                       "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>"
                       "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>"
                       "<text x=\"%.0f\" y=\"%.1f\">%.3f</text>\n",
                       x(row.ratio.p10), x(row.ratio.p90), middle, middle, color, x(row.ratio.median), middle, color,
                       plot_right + 20, middle + 4, row.ratio.median);
    y += row_height;
  }
  (void)std::fputs("</svg>\n", out);
  return std::ferror(out) == 0;
}

}  // namespace bench

// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace holdfast::sim {

namespace {

using Pixels = std::int64_t;

constexpr Pixels width = 1500;
constexpr Pixels left = 100;
constexpr Pixels right = 30;
constexpr Pixels row_height = 20;
constexpr Pixels label_height = 11;
constexpr int label_rows_max = 6;
constexpr std::size_t title_letters = 190;
constexpr std::size_t steps_max = 40;
constexpr std::size_t bars_max = 40;

const char* const red = "#cc0000";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) switch (byte) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += byte;
    }
  return out;
}

std::string number(std::int64_t value) { return std::to_string(value); }
// At 11 pixels.
Pixels width_of(const std::string& text) { return static_cast<Pixels>(text.size()) * 13 / 2 + 8; }

std::string text_at(Pixels x, Pixels y, std::string_view text, std::string_view more = {}) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + std::string(more) + ">" + escaped(text) +
         "</text>\n";
}

std::string rectangle(Pixels x, Pixels y, Pixels wide, Pixels high, std::string_view more) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(wide) + "\" height=\"" +
         number(high) + "\" " + std::string(more) + "/>\n";
}

std::string upright(Pixels x, Pixels from, Pixels until, std::string_view more) {
  return "<line x1=\"" + number(x) + "\" x2=\"" + number(x) + "\" y1=\"" + number(from) + "\" y2=\"" + number(until) +
         "\" " + std::string(more) + "/>\n";
}

std::string mark(Pixels x, Pixels y) {
  return "<path d=\"M" + number(x) + " " + number(y) + " l4 -7 l-8 0 z\" fill=\"#dd7700\"/>\n";
}

// Clients by their number, then the network, then the servers.
std::pair<int, long> order_of(const std::string& lane) {
  const std::size_t digits = lane.find_first_of("0123456789");
  const long index = digits == std::string::npos ? 0 : std::strtol(lane.c_str() + digits, nullptr, 10);
  return {lane.starts_with("client") ? 0 : lane == "network" ? 1 : 2, index};
}

struct LaneOrder {
  bool operator()(const std::string& one, const std::string& other) const {
    return std::make_pair(order_of(one), one) < std::make_pair(order_of(other), other);
  }
};

bool mentions(const std::string& text, const std::string& lane) {
  for (std::size_t at = text.find(lane); at != std::string::npos; at = text.find(lane, at + 1)) {
    const std::size_t end = at + lane.size();
    if (end == text.size() || std::isdigit(static_cast<unsigned char>(text[end])) == 0) return true;
  }
  return false;
}

struct Bar {
  const Trace::Item* item;
  int row;
};
// Marks that stand too close to each other have one label.
struct Label {
  std::string text;
  Pixels x;
  int count;
  int row;
};
// What a client did or was answered.
struct Step {
  std::string text;
  SimTime at;
  int row;
};
struct Lane {
  Pixels top = 0;   // Of its labels.
  Pixels base = 0;  // Where its marks point to and its bars begin.
  int label_rows = 0;
  int rows = 0;
  std::vector<Bar> bars;
  std::vector<Label> labels;
  std::vector<Pixels> marks;
  int step_rows = 0;
  std::vector<Step> steps;
};

// Of a line of the trace, e.g. "send 3 12 | *3 $3 DEL ...": "> DEL" in the lane of client 3. Empty for all others.
struct StepLine {
  std::string lane;
  std::string text;
};
StepLine step_of(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  std::string who;
  std::string word;
  words >> what;
  if (what == "post" || what == "last") words >> word;
  words >> who;
  if (what == "send" || what == "arrive") {
    const std::size_t bar = line.find("| ");
    if (bar == std::string::npos) return {};
    std::istringstream bytes(line.substr(bar + 2));
    while (bytes >> word && (word[0] == '*' || word[0] == '$')) {
      if (word == "$-1") break;
    }
    return {"client " + who, (what == "send" ? "\u2193 " : "\u2191 ") + word.substr(0, 24)};
  }
  static constexpr const char* calls[] = {"try", "acquire", "release", "post", "renew", "last", "start"};
  if (std::find(std::begin(calls), std::end(calls), what) == std::end(calls)) return {};
  const std::size_t bar = line.find("| ");
  return {"client " + who, what + (bar == std::string::npos ? "" : ": " + line.substr(bar + 2))};
}

class Timeline {
 public:
  Timeline(Trace& trace, const TimelineTitle& title) : trace_(trace), title_(title) { choose_span(); }

  std::string draw() {
    for (const Trace::Item& item : trace_.items())
      if (item.lane != "checkers" && item.until >= from_ && item.at <= until_) put(item);
    // Whoever is in the violation is shown, and what it did last.
    for (const std::string& name : mentioned_) lanes_[name];
    take_steps();
    for (auto& [name, lane] : lanes_) arrange(lane);
    Pixels y = header_height;
    for (auto& [name, lane] : lanes_) {
      lane.top = y;
      lane.base = y + 6 + lane.label_rows * label_height + 9;
      y = lane.base + std::max(1, lane.rows) * row_height + lane.step_rows * label_height + 6;
    }
    bottom_ = y;
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
                      number(bottom_ + 50) + "\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"11\">\n" +
                      rectangle(0, 0, width, bottom_ + 50, "fill=\"white\"");
    svg += axis();
    std::string texts;
    for (const auto& [name, lane] : lanes_) svg += draw_lane(name, lane, texts);
    // What comes behind the violation has not happened, and is only believed or leased.
    const Pixels end = place(title_.at);
    svg += rectangle(end, header_height, width - right - end, bottom_ - header_height,
                     "fill=\"white\" fill-opacity=\"0.6\"");
    svg += upright(end, header_height - 6, bottom_, "stroke=\"" + std::string(red) + "\" stroke-width=\"2\"");
    svg += texts;
    svg += header();
    return svg + "</svg>\n";
  }

 private:
  static constexpr Pixels header_height = 96;

  Pixels place(SimTime at) const {
    return left +
           static_cast<Pixels>((std::clamp(at, from_, until_) - from_) * (width - left - right) / (until_ - from_));
  }

  // From the beginning of the holds in question to the end of what they promise: the last of each who is mentioned.
  void choose_span() {
    std::map<std::string, const Trace::Item*> last;
    for (const bool mentioned : {true, false}) {
      for (const Trace::Item& item : trace_.items()) {
        if (!item.hold || item.at > title_.at || item.at < title_.at - title_.longest) continue;
        if (mentioned ? !mentions(title_.text, item.lane) : item.until < title_.at) continue;
        last[item.lane] = &item;
      }
      if (!last.empty()) break;
    }
    SimTime from = title_.at;
    SimTime until = title_.at;
    for (const auto& [lane, item] : last) {
      from = std::min(from, item->at);
      if (item->until != never) until = std::max(until, item->until);
    }
    for (const Trace::Line& line : trace_.lines()) {
      const std::string lane = step_of(line.text).lane;
      if (!lane.empty() && mentions(title_.text, lane)) mentioned_.insert(lane);
    }
    const SimTime before = std::max<SimTime>(title_.at - from, 10 * microsecond);
    from_ = std::max<SimTime>(0, title_.at - before - before / 4);
    // And no more than a person reads.
    std::size_t bars = 0;
    for (std::size_t index = trace_.items().size(); index > 0; --index) {
      const Trace::Item& item = trace_.items()[index - 1];
      if (!item.hold || item.at < from_ || ++bars <= bars_max) continue;
      from_ = item.at;
      break;
    }
    const SimTime behind = std::clamp(until - title_.at, before / 8, before / 2);
    until_ = title_.at + behind + behind / 10 + 1;
  }

  void take_steps() {
    const std::vector<Trace::Line>& lines = trace_.lines();
    std::size_t taken = 0;
    for (std::size_t index = lines.size(); index > 0 && taken < steps_max; --index) {
      const Trace::Line& line = lines[index - 1];
      if (line.at < from_) break;
      const StepLine step = step_of(line.text);
      if (!mentioned_.contains(step.lane)) continue;
      lanes_[step.lane].steps.push_back({step.text, line.at, 0});
      ++taken;
    }
  }

  void put(const Trace::Item& item) {
    Lane& lane = lanes_[item.lane];
    if (item.until == item.at && !item.hold) {
      const Pixels x = place(item.at);
      lane.marks.push_back(x);
      for (Label& label : lane.labels) {
        if (label.text != item.label || std::abs(label.x - x) > width_of(item.label) + 20) continue;
        ++label.count;
        return;
      }
      lane.labels.push_back({item.label, x, 1, 0});
    } else {
      lane.bars.push_back({&item, 0});
    }
  }

  // With the end of what is still believed or leased.
  std::string text_of(const Trace::Item& item) const {
    return item.hold && item.until > title_.at
               ? item.label + (item.until == never ? " for ever" : " until " + time_text(item.until))
               : item.label;
  }
  static std::string text_of(const Label& label) {
    return label.count == 1 ? label.text : label.text + " \u00d7" + std::to_string(label.count);
  }

  // Each label and each bar stands in the first row in which it has room.
  void arrange(Lane& lane) {
    std::sort(lane.labels.begin(), lane.labels.end(), [](const Label& a, const Label& b) { return a.x < b.x; });
    std::vector<Pixels> ends;
    for (Label& label : lane.labels) {
      label.row = row_for(ends, label.x - 4, label.x + width_of(text_of(label)) - 4, label_rows_max);
      lane.label_rows = std::max(lane.label_rows, label.row + 1);
    }
    std::stable_sort(lane.bars.begin(), lane.bars.end(),
                     [](const Bar& a, const Bar& b) { return a.item->at < b.item->at; });
    ends.clear();
    for (Bar& bar : lane.bars) {
      const Pixels x = place(bar.item->at);
      const Pixels end = std::max(place(bar.item->until), x + 3);
      const Pixels label = width_of(text_of(*bar.item));
      bar.row = row_for(ends, x, end - x < label ? end + label : end + 1, INT32_MAX);
      lane.rows = std::max(lane.rows, bar.row + 1);
    }
    std::reverse(lane.steps.begin(), lane.steps.end());  // They were taken from the end.
    ends.clear();
    for (Step& step : lane.steps) {
      const Pixels x = place(step.at);
      step.row = row_for(ends, x, x + width_of(step.text), label_rows_max);
      lane.step_rows = std::max(lane.step_rows, step.row + 1);
    }
  }

  // -1 where none of so many has room.
  static int row_for(std::vector<Pixels>& ends, Pixels from, Pixels until, int most) {
    for (std::size_t row = 0; row < static_cast<std::size_t>(most); ++row) {
      if (row == ends.size()) ends.push_back(0);
      if (ends[row] > from) continue;
      ends[row] = until;
      return static_cast<int>(row);
    }
    return -1;
  }

  // Texts come last, on what is pale.
  std::string draw_lane(const std::string& name, const Lane& lane, std::string& texts) const {
    std::string svg = "<line x1=\"0\" x2=\"" + number(width) + "\" y1=\"" + number(lane.top) + "\" y2=\"" +
                      number(lane.top) + "\" stroke=\"#bbbbbb\"/>\n";
    texts += text_at(8, lane.base + 14, name, "font-weight=\"bold\" font-size=\"13\"");
    for (const Bar& bar : lane.bars) svg += draw_bar(bar, lane.base + bar.row * row_height, name, texts);
    for (const Pixels x : lane.marks) svg += mark(x, lane.base);
    for (const Label& label : lane.labels) {
      if (label.row < 0) continue;
      const Pixels y = lane.base - 9 - label.row * label_height;
      svg += upright(label.x, y, lane.base - 7, "stroke=\"#eebb88\"");
      texts += text_at(label.x + 2, y, text_of(label), "font-size=\"10\" fill=\"#994400\"");
    }
    const Pixels under = lane.base + std::max(1, lane.rows) * row_height;
    for (const Step& step : lane.steps) {
      const Pixels x = place(step.at);
      const Pixels y = under + (step.row < 0 ? 0 : step.row) * label_height;
      svg += upright(x, under - 3, y + 8, "stroke=\"#99aacc\"");
      if (step.row >= 0) texts += text_at(x + 2, y + 8, step.text, "font-size=\"10\" fill=\"#334488\"");
    }
    return svg;
  }

  // A client's belief is full, a server's key is framed; each name of a lock has its colour.
  std::string draw_bar(const Bar& bar, Pixels y, const std::string& lane, std::string& texts) const {
    const Trace::Item& item = *bar.item;
    const Pixels x = place(item.at);
    const Pixels wide = std::max<Pixels>(place(item.until) - x, 3);
    const std::string colour = item.hold ? colour_of(item.label) : "#999999";
    const bool belief = lane.starts_with("client");
    std::string look = "fill=\"" + colour + "\" stroke=\"" + colour + "\" ";
    if (!item.hold) look += "fill-opacity=\"0.35\" stroke-dasharray=\"3 2\"";
    if (item.hold && !belief) look += "fill-opacity=\"0.2\" stroke-width=\"2\"";
    // What does not fit stands beside it.
    const std::string label = text_of(item);
    const bool inside = width_of(label) <= wide;
    const bool white = item.hold && belief && inside && x + width_of(label) <= place(title_.at);
    const bool before = !inside && x + wide + 3 + width_of(label) > width;
    const std::string look_of_text =
        std::string(white ? "fill=\"white\"" : "fill=\"black\"") + (before ? " text-anchor=\"end\"" : "");
    texts += text_at(inside ? x + 4 : before ? x - 3 : x + wide + 3, y + 14, label, look_of_text);
    return rectangle(x, y + 2, wide, row_height - 5, look);
  }

  // The name's, which stands before the grant.
  std::string colour_of(const std::string& label) const {
    static constexpr const char* colours[] = {"#4477aa", "#228833", "#aa3377", "#997700", "#117777", "#774422"};
    const std::size_t digit = label.find_first_of("0123456789");
    return colours[digit == std::string::npos ? 0 : static_cast<std::size_t>(label[digit] - '0') % 6];
  }

  std::string axis() const {
    const SimTime span = until_ - from_;
    SimTime step = 1;
    for (int turn = 0; span / step > 12; ++turn) step = turn % 3 == 1 ? step / 2 * 5 : step * 2;
    int digits = 9;
    for (SimTime unit = 1; digits > 0 && step % (unit * 10) == 0; unit *= 10) --digits;
    std::string svg;
    for (SimTime at = (from_ + step - 1) / step * step; at <= until_; at += step) {
      const Pixels x = place(at);
      svg += upright(x, header_height, bottom_ + 4, "stroke=\"#e8e8e8\"");
      std::string text = time_text(at);
      text.resize(text.size() - (digits == 0 ? 10 : 9 - static_cast<std::size_t>(digits)));
      svg += text_at(x, bottom_ + 18, text, "text-anchor=\"middle\" fill=\"#555555\"");
    }
    return svg + text_at((left + width) / 2, bottom_ + 38, "true time since the world began, in seconds",
                         "text-anchor=\"middle\" fill=\"#555555\"");
  }

  std::string header() const {
    std::string svg = text_at(8, 20, "sim " + title_.world, "font-size=\"12\" fill=\"#555555\"");
    const std::string text = title_.checker + ": " + title_.text;
    svg += text_at(8, 40, text.size() > title_letters ? text.substr(0, title_letters) + " ..." : text,
                   "font-size=\"14\" font-weight=\"bold\" fill=\"" + std::string(red) + "\"");
    Pixels x = 8;
    const auto legend = [&](const std::string& sample, Pixels wide, const std::string& says) {
      svg += sample + text_at(x + wide + 5, 64, says);
      x += wide + width_of(says) + 18;
    };
    legend(rectangle(x, 53, 30, 14, "fill=\"#4477aa\""), 30, "a client believes to hold it: lock, grant, fence");
    legend(rectangle(x, 53, 30, 14, "fill=\"#4477aa\" stroke=\"#4477aa\" stroke-width=\"2\" fill-opacity=\"0.2\""), 30,
           "the server has the key, to the end of its lease");
    legend(rectangle(x, 53, 30, 14, "fill=\"#999999\" stroke=\"#999999\" fill-opacity=\"0.35\""), 30, "stopped");
    legend(mark(x + 6, 65), 12, "fault");
    legend(upright(x + 2, 52, 68, "stroke=\"" + std::string(red) + "\" stroke-width=\"2\""), 6,
           "the violation; pale: not come yet");
    legend(text_at(x, 64, "\u2193 \u2191", "fill=\"#334488\""), 20, "sent, received; what a call answered");
    const std::string when = time_text(title_.at) + " s";
    const Pixels end = place(title_.at);
    return svg + text_at(end, header_height - 10, title_.checker + " at " + when,
                         std::string(end > width / 2 ? "text-anchor=\"end\"" : "") + " font-weight=\"bold\" fill=\"" +
                             red + "\"");
  }

  Trace& trace_;
  const TimelineTitle& title_;
  SimTime from_ = 0;
  SimTime until_ = 1;
  Pixels bottom_ = 0;
  std::map<std::string, Lane, LaneOrder> lanes_;
  std::set<std::string> mentioned_;  // Clients of which the violation speaks.
};

}  // namespace

std::string timeline_svg(Trace& trace, const TimelineTitle& title) { return Timeline(trace, title).draw(); }

}  // namespace holdfast::sim

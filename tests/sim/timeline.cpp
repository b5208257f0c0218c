// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace holdfast::sim {

namespace {

constexpr std::int64_t width = 1400;
constexpr std::int64_t left = 110;
constexpr std::int64_t lane_height = 44;
constexpr std::int64_t top = 60;

std::string escaped(const std::string& text) {
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

// Locks are told apart by their colour.
std::string colour_of(const std::string& label) {
  static constexpr const char* colours[] = {"#4477aa", "#228833", "#aa3377", "#ccbb44", "#66ccee", "#ee6677"};
  std::uint32_t sum = 0;
  for (const char byte : label) sum = sum * 31 + static_cast<unsigned char>(byte);
  return colours[sum % 6];
}

}  // namespace

std::string timeline_svg(Trace& trace, SimTime from, SimTime until, const std::string& title) {
  const SimTime span = std::max<SimTime>(until - from, 1);
  const auto place = [&](SimTime at) {
    const SimTime inside = std::clamp(at, from, until) - from;
    __extension__ using Wide = __int128;
    return left + static_cast<std::int64_t>(Wide{inside} * (width - left - 20) / span);
  };
  std::map<std::string, std::int64_t> lanes;
  for (const Trace::Item& item : trace.items())
    if (item.until >= from && item.at <= until) lanes.emplace(item.lane, 0);
  std::int64_t y = top;
  for (auto& [name, lane] : lanes) {
    lane = y;
    y += lane_height;
  }
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
                    number(y + 40) + "\" font-family=\"sans-serif\" font-size=\"11\">\n";
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"22\" font-size=\"15\">" +
         escaped(title) + "</text>\n";
  for (const auto& [name, lane] : lanes) {
    svg += "<line x1=\"" + number(left) + "\" x2=\"" + number(width - 20) + "\" y1=\"" + number(lane + 22) +
           "\" y2=\"" + number(lane + 22) + "\" stroke=\"#cccccc\"/>";
    svg += "<text x=\"10\" y=\"" + number(lane + 26) + "\">" + escaped(name) + "</text>\n";
  }
  for (int tick = 0; tick <= 10; ++tick) {
    const SimTime at = from + span / 10 * tick;
    svg += "<text x=\"" + number(place(at)) + "\" y=\"" + number(y + 20) +
           "\" text-anchor=\"middle\" fill=\"#666666\">" + time_text(at) + "</text>\n";
  }
  // Bars first, so that marks stand on them.
  for (const bool marks : {false, true})
    for (const Trace::Item& item : trace.items()) {
      if (item.until < from || item.at > until) continue;
      const std::int64_t lane = lanes[item.lane];
      const std::int64_t x = place(item.at);
      const std::int64_t wide = std::max<std::int64_t>(place(item.until) - x, 2);
      if (item.until != item.at && !marks) {
        svg += "<rect x=\"" + number(x) + "\" y=\"" + number(lane + (item.hold ? 14 : 30)) + "\" width=\"" +
               number(wide) + "\" height=\"" + (item.hold ? "16" : "6") + "\" fill=\"" +
               (item.hold ? colour_of(item.label) : std::string("#999999")) + "\" fill-opacity=\"0.75\"><title>" +
               escaped(item.label + " " + time_text(item.at) + " to " + time_text(item.until)) + "</title></rect>\n";
        if (item.hold && wide > 50)
          svg += "<text x=\"" + number(x + 4) + "\" y=\"" + number(lane + 26) + "\" fill=\"white\">" +
                 escaped(item.label) + "</text>\n";
      } else if (item.until == item.at && marks) {
        svg += "<path d=\"M" + number(x) + " " + number(lane + 12) + " l5 -9 l-10 0 z\" fill=\"" +
               (item.lane == "checkers" ? "#000000" : "#cc3311") + "\"><title>" +
               escaped(item.label + " " + time_text(item.at)) + "</title></path>\n";
        svg += "<text x=\"" + number(x) + "\" y=\"" + number(lane + 1) + "\" font-size=\"8\" text-anchor=\"middle\">" +
               escaped(item.label) + "</text>\n";
      }
    }
  return svg + "</svg>\n";
}

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "lock_sight.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

// The drawing, in pixels.
constexpr double label_width = 320;
constexpr double plot_width = 960;
constexpr double margin = 16;
constexpr double head_height = 84;
constexpr double lane_height = 18;
constexpr double bar_height = 12;
constexpr double bar_width_min = 1.5;  // A short hold is seen, too.
constexpr double mark_size = 5;
constexpr int ticks_wanted = 8;
constexpr std::size_t label_size_max = 40;

// Told apart also by who sees no red and green.
constexpr const char* colours[] = {"#4e79a7", "#f28e2b", "#76b7b2", "#59a14f",
                                   "#edc948", "#b07aa1", "#9c755f", "#bab0ac"};

std::string number(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// Of printable ASCII: what means nothing to XML.
std::string xml(const std::string& printable) {
  std::string text;
  for (const char byte : printable) switch (byte) {
      case '&': text += "&amp;"; break;
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      case '"': text += "&quot;"; break;
      case '\'': text += "&#39;"; break;
      default: text += byte;
    }
  return text;
}

// Before it is made XML, so that no entity is cut.
std::string cut(const std::string& text) {
  return text.size() <= label_size_max ? text : text.substr(0, label_size_max - 2) + "..";
}

const char* colour_of(const std::string& holder) {
  const std::string client = client_of(holder);
  const std::uint32_t hash = std::accumulate(
      client.begin(), client.end(), 2166136261U,
      [](std::uint32_t sum, char byte) { return (sum ^ static_cast<unsigned char>(byte)) * 16777619U; });
  return colours[hash % std::size(colours)];
}

// 1, 2 or 5 times a power of ten, in seconds.
double tick_step(double seconds) {
  const double raw = std::max(seconds / ticks_wanted, 0.001);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// A list of attributes and a title of printable ASCII are all that an element has here.
std::string element(const std::string& name_and_attributes, const std::string& title) {
  const std::string name = name_and_attributes.substr(0, name_and_attributes.find(' '));
  return "<" + name_and_attributes + "><title>" + xml(title) + "</title></" + name + ">\n";
}

std::string text_at(double x, double y, const std::string& attributes, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + attributes + ">" + xml(text) + "</text>\n";
}

}  // namespace

// ---- What was seen ---------------------------------------------------------------------------------------------------

std::size_t Timeline::lane_of(const std::string& lock, const std::string& holder) {
  std::string client = client_of(holder);
  if (const auto found = lane_places_.find({lock, client}); found != lane_places_.end()) return found->second;
  std::size_t& of_lock = lanes_of_lock_[lock];
  if (of_lock >= lanes_per_lock_max - 1) {
    client.clear();
    if (const auto found = lane_places_.find({lock, client}); found != lane_places_.end()) return found->second;
  }
  if (lanes_.size() >= lanes_max) return nowhere;
  ++of_lock;
  lanes_.push_back({lock, client.empty() ? std::string() : holder});
  lane_places_.emplace(Place(lock, client), lanes_.size() - 1);
  return lanes_.size() - 1;
}

bool Timeline::has_room() noexcept {
  if (bars_.size() + points_.size() + silences_.size() < drawn_max) return true;
  ++dropped_;
  return false;
}

void Timeline::begin(const std::string& lock, const std::string& holder, Instant at, bool waits) {
  auto& open = waits ? waiting_ : held_;
  if (open.count({lock, holder}) != 0 || !has_room()) return;
  const std::size_t lane = lane_of(lock, holder);
  if (lane == nowhere) {
    ++dropped_;
    return;
  }
  open.emplace(Place(lock, holder), bars_.size());
  bars_.push_back({.lane = lane, .begin = at, .holder = holder, .waits = waits});
}

void Timeline::end(const std::string& lock, const std::string& holder, const Change& change, const char* how,
                   bool waits) {
  auto& open = waits ? waiting_ : held_;
  const auto found = open.find({lock, holder});
  if (found == open.end()) return;
  Bar& bar = bars_[found->second];
  bar.end = change.at;
  bar.how = how;
  bar.renewals = change.renewals;
  open.erase(found);
}

void Timeline::mark(const std::string& lock, const std::string& holder, Instant at, Mark mark, std::string text) {
  if (!has_room()) return;
  const std::size_t lane = lane_of(lock, holder);
  if (lane == nowhere)
    ++dropped_;
  else
    points_.push_back({lane, at, mark, std::move(text)});
}

void Timeline::note_waiters(const Change& change) {
  std::vector<std::string> over;
  for (auto at = waiting_.lower_bound({change.lock, ""}); at != waiting_.end() && at->first.first == change.lock; ++at)
    if (std::find(change.waiters.begin(), change.waiters.end(), at->first.second) == change.waiters.end())
      over.push_back(at->first.second);
  for (const std::string& waiter : over) end(change.lock, waiter, change, "waited", true);
  for (const std::string& waiter : change.waiters) begin(change.lock, waiter, change.at, true);
}

void Timeline::handle_change(const Change& change) {
  switch (change.kind) {
    case ChangeKind::found:
    case ChangeKind::acquired: begin(change.lock, change.holder, change.at, false); return;
    case ChangeKind::handed_over:
      end(change.lock, change.before, change, "handed over", false);
      begin(change.lock, change.holder, change.at, false);
      return;
    case ChangeKind::released: end(change.lock, change.holder, change, "released", false); return;
    case ChangeKind::ended: end(change.lock, change.holder, change, "released, or run out", false); return;
    case ChangeKind::ran_out:
      end(change.lock, change.holder, change, "lost: its lease ran out", false);
      mark(change.lock, change.holder, change.at, Mark::loss, "lost: its lease ran out");
      return;
    case ChangeKind::stolen:
      if (change.over) end(change.lock, change.before, change, "stolen", false);
      begin(change.lock, change.holder, change.at, false);
      mark(change.lock, change.holder, change.at, Mark::steal, "stolen from " + short_holder(change.before));
      return;
    case ChangeKind::cut_short: mark(change.lock, change.holder, change.at, Mark::cut_short, "cut short"); return;
    case ChangeKind::no_expiry: mark(change.lock, change.holder, change.at, Mark::no_expiry, "no TTL"); return;
    case ChangeKind::waiting: note_waiters(change); return;
    case ChangeKind::silent:
      if (has_room()) silences_.push_back({change.at});
      return;
    case ChangeKind::answers:
      if (!silences_.empty()) silences_.back().end = change.at;
      return;
    case ChangeKind::no_lock:
    case ChangeKind::free: return;
  }
}

// ---- The drawing -----------------------------------------------------------------------------------------------------

std::string Timeline::svg(const std::string& title, Instant now) const {
  const double seconds = std::max(seconds_of(now - start_), 0.001);
  const double left = margin + label_width;
  const auto x_of = [&](Instant at) {
    return left + std::clamp(seconds_of(at - start_) / seconds, 0.0, 1.0) * plot_width;
  };
  // The lanes of one lock stand together, in the order in which locks were seen.
  std::vector<std::size_t> order(lanes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::map<std::string, std::size_t> first;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) first.emplace(lanes_[lane].lock, lane);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return first.at(lanes_[one].lock) < first.at(lanes_[other].lock);
  });
  std::vector<double> tops(lanes_.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    tops[order[place]] = head_height + static_cast<double>(place) * lane_height;

  const double bottom = head_height + static_cast<double>(std::max<std::size_t>(lanes_.size(), 1)) * lane_height;
  const double width = left + plot_width + margin;
  const double height = bottom + 3 * lane_height;
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                     number(width) + "\" height=\"" + number(height) + "\" viewBox=\"0 0 " + number(width) + " " +
                     number(height) + "\" font-family=\"sans-serif\" font-size=\"11\">\n";
  text += "<title>" + xml(escaped(title)) + "</title>\n";
  text += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  text += text_at(margin, 24, " font-size=\"15\"", escaped(title));
  // What the signs mean.
  const auto sign = [](Mark kind, double x, double y, const std::string& words) {
    const std::string across = number(mark_size);
    const std::string at = number(x) + " " + number(y);
    switch (kind) {
      case Mark::loss:
        return element("path class=\"loss\" stroke=\"#d00000\" stroke-width=\"2.5\" d=\"M" + at + " m-" + across +
                           " -" + across + " l10 10 m0 -10 l-10 10\"",
                       words);
      case Mark::steal:
        return element("path class=\"steal\" fill=\"#8000a0\" d=\"M" + at + " m0 -7 l7 13 h-14 z\"", words);
      case Mark::cut_short:
        return element("path class=\"cut\" fill=\"#d06000\" d=\"M" + at + " m0 -6 l6 6 l-6 6 l-6 -6 z\"", words);
      case Mark::no_expiry:
        return element("circle class=\"endless\" cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + across +
                           "\" fill=\"none\" stroke=\"#d00000\" stroke-width=\"2\"",
                       words);
    }
    return std::string();
  };
  double x = margin + mark_size;
  const double legend = 46;
  text += "<rect x=\"" + number(x - mark_size) + "\" y=\"" + number(legend - bar_height / 2) +
          "\" width=\"24\" height=\"12\" fill=\"#4e79a7\"/>\n" + text_at(x + 26, legend + 4, "", "held");
  text += "<rect x=\"" + number(x + 70) + "\" y=\"" + number(legend - 2) +
          "\" width=\"24\" height=\"4\" fill=\"#808080\"/>\n" + text_at(x + 100, legend + 4, "", "waits");
  x += 160;
  for (const auto& [kind, words] : {std::pair(Mark::loss, "lost"), std::pair(Mark::steal, "stolen"),
                                    std::pair(Mark::cut_short, "cut short"), std::pair(Mark::no_expiry, "no TTL")}) {
    text += sign(kind, x, legend, words) + text_at(x + 12, legend + 4, "", words);
    x += 90;
  }
  text += "<rect x=\"" + number(x) + "\" y=\"" + number(legend - bar_height / 2) +
          "\" width=\"24\" height=\"12\" fill=\"#e8e8e8\"/>\n" + text_at(x + 30, legend + 4, "", "no answer");

  for (const Silence& silence : silences_)
    text += element("rect class=\"silence\" x=\"" + number(x_of(silence.begin)) + "\" y=\"" + number(head_height) +
                        "\" width=\"" + number(x_of(std::min(silence.end, now)) - x_of(silence.begin)) +
                        "\" height=\"" + number(bottom - head_height) + "\" fill=\"#e8e8e8\"",
                    "the server did not answer");
  const double step = tick_step(seconds);
  const int digits = step < 1 ? static_cast<int>(std::ceil(-std::log10(step))) : 0;
  for (int tick = 0; tick * step <= seconds * 1.0001; ++tick) {
    char label[32];
    (void)std::snprintf(label, sizeof label, "%.*f s", digits, tick * step);
    const double at = left + tick * step / seconds * plot_width;
    text += "<path stroke=\"#cccccc\" d=\"M" + number(at) + " " + number(head_height - 4) + " V" + number(bottom) +
            "\"/>\n";
    text += text_at(at, head_height - 8, " text-anchor=\"middle\" fill=\"#606060\"", label);
  }

  std::string lock_before;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Lane& lane = lanes_[order[place]];
    const double top = tops[order[place]];
    if (place == 0 || lane.lock != lock_before)
      text += "<path stroke=\"#808080\" d=\"M" + number(margin) + " " + number(top) + " H" + number(left + plot_width) +
              "\"/>\n" + text_at(margin, top + 13, " font-weight=\"bold\"", cut(escaped(lane.lock)));
    lock_before = lane.lock;
    const std::string label = lane.holder.empty() ? "others" : short_holder(client_of(lane.holder));
    text += text_at(left - 6, top + 13, " text-anchor=\"end\" fill=\"#404040\"", label);
  }
  for (const Bar& bar : bars_) {
    const double begin = x_of(bar.begin);
    const Instant over = std::min(bar.end, now);
    const double bar_width = std::max(x_of(over) - begin, bar_width_min);
    const double tall = bar.waits ? 4 : bar_height;
    const std::string what = bar.waits ? (bar.end == Instant::max() ? "waits" : "waited") : bar.how;
    text += element("rect class=\"" + std::string(bar.waits ? "wait" : "hold") + "\" x=\"" + number(begin) + "\" y=\"" +
                        number(tops[bar.lane] + (lane_height - tall) / 2) + "\" width=\"" + number(bar_width) +
                        "\" height=\"" + number(tall) + "\" fill=\"" + (bar.waits ? "#808080" : colour_of(bar.holder)) +
                        "\" stroke=\"#ffffff\" stroke-width=\"0.5\"",
                    escaped(lanes_[bar.lane].lock) + ", " + short_holder(bar.holder) + ": " + what + ", " +
                        seconds_text(over - bar.begin) + " s from " + seconds_text(bar.begin - start_) + " s on" +
                        (bar.waits ? "" : ", " + std::to_string(bar.renewals) + " renewals"));
  }
  for (const Point& point : points_)
    text +=
        sign(point.mark, x_of(point.at), tops[point.lane] + lane_height / 2,
             escaped(lanes_[point.lane].lock) + ": " + point.text + ", at " + seconds_text(point.at - start_) + " s");
  if (lanes_.empty()) text += text_at(left + 8, head_height + 13, " fill=\"#606060\"", "no lock was held");
  if (dropped_ != 0)
    text += text_at(margin, bottom + 20, " class=\"left-out\"",
                    std::to_string(dropped_) + " more are not drawn: there are bounds of " + std::to_string(lanes_max) +
                        " lanes, and of " + std::to_string(drawn_max) + " bars and marks");
  return text + "</svg>\n";
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
//
// Timeline keeps what a watcher saw, and draws it: a lane per lock and holder, a bar per hold, marks for waits, losses and steals.
// It is fed with the changes of a Logbook. What goes beyond its bounds is counted, and the drawing says so. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/instant.hpp"
#include "logbook.hpp"

namespace holdfast::cli {

// A drawing that a browser opens: so many lanes are some 6,000 pixels.
inline constexpr std::size_t lanes_max = 300;
// Of one lock. Each hold of a mutex has a token of its own: those beyond share a last lane.
inline constexpr std::size_t lanes_per_lock_max = 16;
// Bars and marks: some 5 MB.
inline constexpr std::size_t drawn_max = 20'000;

class Timeline {
 public:
  explicit Timeline(Instant start) noexcept : start_(start) {}

  void handle_change(const Change& change);
  // The whole drawing at that instant; `title` is of any bytes.
  [[nodiscard]] std::string svg(const std::string& title, Instant now) const;

 private:
  enum class Mark : std::uint8_t { loss, steal, cut_short, no_expiry };
  struct Bar {
    std::size_t lane = 0;
    Instant begin{};
    Instant end = Instant::max();  // It is open.
    std::string holder{};
    std::string how = "held on";
    std::uint64_t renewals = 0;
    bool waits = false;
  };
  struct Point {
    std::size_t lane = 0;
    Instant at{};
    Mark mark = Mark::loss;
    std::string text{};
  };
  struct Lane {
    std::string lock{};
    std::string holder{};  // Empty: those of all that have none of their own.
  };
  struct Silence {
    Instant begin{};
    Instant end = Instant::max();
  };
  using Place = std::pair<std::string, std::string>;  // Lock and holder.

  static constexpr std::size_t nowhere = SIZE_MAX;

  [[nodiscard]] std::size_t lane_of(const std::string& lock, const std::string& holder);
  [[nodiscard]] bool has_room() noexcept;
  void begin(const std::string& lock, const std::string& holder, Instant at, bool waits);
  void end(const std::string& lock, const std::string& holder, const Change& change, const char* how, bool waits);
  void mark(const std::string& lock, const std::string& holder, Instant at, Mark mark, std::string text);
  void note_waiters(const Change& change);

  Instant start_;
  std::vector<Lane> lanes_;
  std::map<Place, std::size_t> lane_places_;  // By the holder's client.
  std::map<std::string, std::size_t> lanes_of_lock_;
  std::vector<Bar> bars_;
  std::map<Place, std::size_t> held_;     // The open bar of each hold,
  std::map<Place, std::size_t> waiting_;  // and of each wait.
  std::vector<Point> points_;
  std::vector<Silence> silences_;
  std::uint64_t dropped_ = 0;
};

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
//
// Trace is all that happened in a world: a hash of every event, and, where somebody wants to read them, the events as
// text and what a timeline is drawn of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

using SimTime = std::int64_t;  // Nanoseconds of true time since the world began.
inline constexpr SimTime microsecond = 1'000;
inline constexpr SimTime millisecond = 1'000'000;
inline constexpr SimTime second = 1'000'000'000;
inline constexpr SimTime never = INT64_MAX;

class Trace {
 public:
  struct Line {
    SimTime at;
    std::string text;
  };
  // What stands in a lane of the timeline: a bar from `at` to `until`, or a mark where they are equal.
  struct Item {
    std::string lane;
    std::string label;
    SimTime at;
    SimTime until;
    bool hold;
  };

  explicit Trace(bool recorded) : recorded_(recorded) {}

  [[nodiscard]] bool recorded() const noexcept { return recorded_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::vector<Line>& lines() const noexcept { return lines_; }
  [[nodiscard]] std::vector<Item>& items() noexcept { return items_; }

  // `what` is a word, `who` and `detail` numbers, `bytes` what was moved or said.
  void add(SimTime at, std::string_view what, std::uint64_t who = 0, std::uint64_t detail = 0,
           std::string_view bytes = {}) {
    ++size_;
    mix(static_cast<std::uint64_t>(at));
    mix(who);
    mix(detail);
    mix(what);
    mix(bytes);
    if (recorded_) record(at, what, who, detail, bytes);
  }

 private:
  // FNV-1a, by words.
  void mix(std::uint64_t word) noexcept {
    hash_ = (hash_ ^ word) * 0x100000001b3;
    hash_ ^= hash_ >> 29;
  }
  void mix(std::string_view bytes) noexcept {
    std::uint64_t word = bytes.size();
    for (const char byte : bytes) word = (word ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    mix(word);
  }
  void record(SimTime at, std::string_view what, std::uint64_t who, std::uint64_t detail, std::string_view bytes);

  bool recorded_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  std::uint64_t size_ = 0;
  std::vector<Line> lines_;
  std::vector<Item> items_;
};

// "12.345678901" seconds.
[[nodiscard]] std::string time_text(SimTime at);
// Bytes that a person can read: what is no letter is escaped, and the middle of what is long left out.
[[nodiscard]] std::string bytes_text(std::string_view bytes, std::size_t size_max = 160);

}  // namespace holdfast::sim

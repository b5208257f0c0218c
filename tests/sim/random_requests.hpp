// SPDX-License-Identifier: MIT
//
// RandomRequests writes commands as nobody would: every command of the model with odd words, odd counts of words and
// odd numbers, on a few keys, so that types collide; this project's scripts with odd arguments; and Lua that exercises
// conversions and errors. A seed decides all of it, for one compiler: the order in which it evaluates arguments counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random_source.hpp"

namespace holdfast::sim {

// How two servers' replies to it are compared.
enum class Comparison : std::uint8_t {
  exact,
  clock,      // Large numbers may differ by what a clock moves.
  unordered,  // The elements of an array in any order.
  ignored,    // The kind of reply alone.
};

struct RandomRequest {
  std::vector<std::string> words;
  Comparison comparison = Comparison::exact;
};

class RandomRequests {
 public:
  enum class Scope : std::uint8_t {
    everything,
    locks,  // What locks are made of: where a server's words for all that is odd are not modelled.
  };
  explicit RandomRequests(std::uint64_t seed, Scope scope = Scope::everything) : random_(seed), scope_(scope) {}

  [[nodiscard]] RandomRequest command();             // For an ordinary connection.
  [[nodiscard]] RandomRequest subscriber_command();  // For one that subscribes.
  [[nodiscard]] std::string key();
  [[nodiscard]] RandomSource& random() { return random_; }

 private:
  [[nodiscard]] std::string value();
  [[nodiscard]] std::string element();
  [[nodiscard]] std::string short_value();
  [[nodiscard]] std::string number();
  [[nodiscard]] std::string lifetime(bool seconds);
  [[nodiscard]] std::string score();
  [[nodiscard]] std::string bound();
  [[nodiscard]] std::string channel();
  [[nodiscard]] RandomRequest lock_command();
  [[nodiscard]] RandomRequest known_script();
  [[nodiscard]] RandomRequest fence_script();
  [[nodiscard]] RandomRequest semaphore_request();
  [[nodiscard]] RandomRequest fair_request();
  [[nodiscard]] RandomRequest lua_script();
  [[nodiscard]] std::string lua_statement(int depth);
  [[nodiscard]] std::string lua_expression(int depth);
  [[nodiscard]] std::string lua_literal();
  [[nodiscard]] std::string lua_call(int depth);
  [[nodiscard]] std::vector<std::string> plain_command(bool& clock);

  RandomSource random_;
  Scope scope_;
  std::uint64_t lifetimes_ = 0;
  std::uint64_t fair_requests_ = 0;
};

}  // namespace holdfast::sim

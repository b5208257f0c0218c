// SPDX-License-Identifier: MIT
//
// The life of a hold on N nodes, whole. A pair that is not listed is illegal: the machine asserts. proto/redlock.md draws it.
#pragma once

#include <cstdint>

#include "holdfast/core/quorum_machine.hpp"

namespace holdfast {

enum class QuorumInput : std::uint8_t {
  acquire,   // The application asks for the lock.
  elected,   // A majority has granted a fenced lock. Its fence is to be written.
  granted,   // A majority has granted it, and written its fence.
  denied,    // A majority cannot be had any more, or not in time, or is not wanted any more.
  renewed,   // A majority has confirmed.
  doubted,   // A round failed, a node said "not yours", or a confirmation is overdue; valid_until has not passed.
  ended,     // valid_until has passed, or a majority said "not yours".
  release,   // The application lets go.
  released,  // It is known what came of that, or nobody waits for it any more.
  forget,    // The hold is another process's.
};

struct QuorumTransition {
  QuorumState from;
  QuorumInput input;
  QuorumState to;
};

inline constexpr QuorumTransition quorum_transitions[] = {
    {QuorumState::idle, QuorumInput::acquire, QuorumState::acquiring},
    {QuorumState::idle, QuorumInput::forget, QuorumState::idle},
    {QuorumState::acquiring, QuorumInput::elected, QuorumState::fencing},
    {QuorumState::acquiring, QuorumInput::granted, QuorumState::held},
    {QuorumState::acquiring, QuorumInput::denied, QuorumState::idle},
    {QuorumState::acquiring, QuorumInput::forget, QuorumState::idle},
    {QuorumState::fencing, QuorumInput::granted, QuorumState::held},
    {QuorumState::fencing, QuorumInput::denied, QuorumState::idle},
    {QuorumState::fencing, QuorumInput::forget, QuorumState::idle},
    {QuorumState::held, QuorumInput::renewed, QuorumState::held},
    {QuorumState::held, QuorumInput::doubted, QuorumState::at_risk},
    {QuorumState::held, QuorumInput::ended, QuorumState::lost},
    {QuorumState::held, QuorumInput::release, QuorumState::releasing},
    {QuorumState::held, QuorumInput::forget, QuorumState::idle},
    {QuorumState::at_risk, QuorumInput::renewed, QuorumState::held},
    {QuorumState::at_risk, QuorumInput::doubted, QuorumState::at_risk},
    {QuorumState::at_risk, QuorumInput::ended, QuorumState::lost},
    {QuorumState::at_risk, QuorumInput::release, QuorumState::releasing},
    {QuorumState::at_risk, QuorumInput::forget, QuorumState::idle},
    {QuorumState::releasing, QuorumInput::released, QuorumState::idle},
    {QuorumState::releasing, QuorumInput::forget, QuorumState::idle},
    // A lost reentrant hold is unwound first.
    {QuorumState::lost, QuorumInput::acquire, QuorumState::acquiring},
    {QuorumState::lost, QuorumInput::forget, QuorumState::idle},
};

inline constexpr int quorum_state_count = static_cast<int>(QuorumState::lost) + 1;
inline constexpr int quorum_input_count = static_cast<int>(QuorumInput::forget) + 1;

// The list above as a table to look up: the next state, or illegal.
struct QuorumTransitionTable {
  static constexpr std::uint8_t illegal = 0xff;
  std::uint8_t next[quorum_state_count][quorum_input_count];

  consteval QuorumTransitionTable() noexcept : next() {
    for (auto& row : next)
      for (std::uint8_t& cell : row) cell = illegal;
    for (const QuorumTransition& transition : quorum_transitions)
      next[static_cast<int>(transition.from)][static_cast<int>(transition.input)] =
          static_cast<std::uint8_t>(transition.to);
  }
  [[nodiscard]] constexpr bool lists(QuorumState from, QuorumInput input) const noexcept {
    return next[static_cast<int>(from)][static_cast<int>(input)] != illegal;
  }
};
inline constexpr QuorumTransitionTable quorum_transition_table;

// ---- What the table keeps ----------------------------------------------------------------------------------------

// No pair is listed twice.
static_assert([] {
  int cells = 0;
  for (const auto& row : quorum_transition_table.next)
    for (const std::uint8_t cell : row) cells += cell != QuorumTransitionTable::illegal;
  return cells == sizeof quorum_transitions / sizeof quorum_transitions[0];
}());
static_assert(
    [] {
      for (const QuorumTransition& each : quorum_transitions) {
        const bool holds = each.from == QuorumState::held || each.from == QuorumState::at_risk;
        const bool keeps = each.to == QuorumState::held || each.to == QuorumState::at_risk;
        if (keeps && !holds && each.input != QuorumInput::granted) return false;
        if (each.to == QuorumState::lost && !holds) return false;
        if (each.to == QuorumState::releasing && !holds) return false;
        if (each.from == each.to && !holds && each.input != QuorumInput::forget) return false;
      }
      return true;
    }(),
    "a hold begins by a grant alone; what is lost or released was held; lost is final; each step leads on");
static_assert(
    [] {
      for (int state = 0; state < quorum_state_count; ++state) {
        const auto from = static_cast<QuorumState>(state);
        const bool holds = from == QuorumState::held || from == QuorumState::at_risk;
        for (const QuorumInput input :
             {QuorumInput::renewed, QuorumInput::doubted, QuorumInput::ended, QuorumInput::release})
          if (quorum_transition_table.lists(from, input) != holds) return false;
        const bool asks = from == QuorumState::acquiring || from == QuorumState::fencing;
        if (quorum_transition_table.lists(from, QuorumInput::denied) != asks ||
            quorum_transition_table.lists(from, QuorumInput::granted) != asks ||
            !quorum_transition_table.lists(from, QuorumInput::forget))
          return false;
      }
      return true;
    }(),
    "every hold can be renewed, doubted, ended and released; every attempt granted and denied; everything forgotten");

}  // namespace holdfast

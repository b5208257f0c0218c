// SPDX-License-Identifier: MIT
//
// The life of a hold, whole. A pair that is not listed is illegal: the machine asserts. proto/lock.md draws it.
#pragma once

#include <cstdint>

#include "holdfast/core/lock_machine.hpp"

namespace holdfast {

enum class LockInput : std::uint8_t {
  acquire,      // The application asks for the lock.
  granted,      // A reply granted it, in time.
  denied,       // Busy, or an error that proves that nothing ran.
  unclear,      // The reply was lost, came too late or proves nothing: we may hold it.
  renewed,      // A renewal was confirmed before valid_until.
  doubted,      // A renewal failed, was lost or is overdue; valid_until has not passed.
  disowned,     // The server said: not yours.
  expired,      // valid_until has passed.
  release,      // The application lets go.
  released,     // The server confirmed, or said that there was nothing to release.
  compensated,  // The compensating release was confirmed.
};

struct LockTransition {
  LockState from;
  LockInput input;
  LockState to;
};

inline constexpr LockTransition lock_transitions[] = {
    {LockState::idle, LockInput::acquire, LockState::acquiring},
    {LockState::acquiring, LockInput::granted, LockState::held},
    {LockState::acquiring, LockInput::denied, LockState::idle},
    {LockState::acquiring, LockInput::unclear, LockState::unknown},
    {LockState::held, LockInput::renewed, LockState::held},
    {LockState::held, LockInput::doubted, LockState::at_risk},
    {LockState::held, LockInput::disowned, LockState::lost},
    {LockState::held, LockInput::expired, LockState::lost},
    {LockState::held, LockInput::release, LockState::releasing},
    {LockState::at_risk, LockInput::renewed, LockState::held},
    {LockState::at_risk, LockInput::doubted, LockState::at_risk},
    {LockState::at_risk, LockInput::disowned, LockState::lost},
    {LockState::at_risk, LockInput::expired, LockState::lost},
    {LockState::at_risk, LockInput::release, LockState::releasing},
    {LockState::releasing, LockInput::released, LockState::idle},
    {LockState::releasing, LockInput::unclear, LockState::unknown},
    // The release is on its way on the same connection; the next attempt follows it.
    {LockState::releasing, LockInput::acquire, LockState::acquiring},
    {LockState::unknown, LockInput::compensated, LockState::idle},
    {LockState::unknown, LockInput::acquire, LockState::acquiring},
    {LockState::lost, LockInput::compensated, LockState::idle},
    {LockState::lost, LockInput::acquire, LockState::acquiring},
};

inline constexpr int lock_state_count = static_cast<int>(LockState::lost) + 1;
inline constexpr int lock_input_count = static_cast<int>(LockInput::compensated) + 1;

// The list above as a table to look up: the next state, or illegal.
struct LockTransitionTable {
  static constexpr std::uint8_t illegal = 0xff;
  std::uint8_t next[lock_state_count][lock_input_count];

  consteval LockTransitionTable() noexcept : next() {
    for (auto& row : next)
      for (std::uint8_t& cell : row) cell = illegal;
    for (const LockTransition& transition : lock_transitions)
      next[static_cast<int>(transition.from)][static_cast<int>(transition.input)] =
          static_cast<std::uint8_t>(transition.to);
  }
};
inline constexpr LockTransitionTable lock_transition_table;

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// Asks in mutated code whether its change is in force. mutate.py includes it ahead of each copy that it makes.
#pragma once

namespace holdfast::mutation {

inline constexpr int count_max = 1 << 17;
extern int chosen;  // 0: none, the code is as it was written.
extern unsigned char reached[count_max];

}  // namespace holdfast::mutation

inline bool mutated(int mutant) noexcept {
  holdfast::mutation::reached[mutant] = 1;
  return mutant == holdfast::mutation::chosen;
}

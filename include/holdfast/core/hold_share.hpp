// SPDX-License-Identifier: MIT
//
// Lock objects of one owner, kind and name are handles of one hold. HoldShare is what one handle has acquired of it and
// HoldTally what all of them have in common, so that a handle that goes releases what it acquired, and nothing else.
//
// Invariant: the shares of the present grant, less the debt, are what the machine counts.   Not thread-safe: one owner.
#pragma once

#include <cstdint>

#include "holdfast/proto/language.hpp"

namespace holdfast {

class HoldShare;

class HoldTally {
 public:
  // A handle with this share goes.
  void leave(const HoldShare& share) noexcept;
  // The releases that handles which are gone have left to make: the caller makes them. Those that other handles have made for
  // them are settled.
  [[nodiscard]] std::uint32_t take_due() noexcept {
    if (debt_ >= 0) return 0;
    const std::int32_t due = -debt_;
    debt_ = 0;
    return static_cast<std::uint32_t>(due);
  }

 private:
  friend class HoldShare;

  std::uint32_t grant_ = 0;  // Counts outermost grants: what a handle has acquired of an earlier one is over.
  std::int32_t debt_ = 0;  // Releases through handles that had acquired nothing themselves, less what take_due() tells.
};

class HoldShare {
 public:
  // Its handle has acquired, and the machine counts so much now; zero where a callback has released it again.
  void count_in(HoldTally& tally, std::uint32_t count) noexcept {
    if (count <= 1) {  // Nothing else that was acquired is left.
      ++tally.grant_;
      tally.debt_ = 0;
    }
    if (grant_ != tally.grant_) acquired_ = 0;
    grant_ = tally.grant_;
    if (count != 0) ++acquired_;
  }
  // Its handle has released once.
  void count_out(HoldTally& tally) noexcept {
    if (grant_ == tally.grant_ && acquired_ != 0)
      --acquired_;
    else
      ++tally.debt_;
  }

 private:
  friend class HoldTally;

  std::uint32_t grant_ = 0;     // Of which grant the handle has acquired
  std::uint32_t acquired_ = 0;  // so often what it has not released.
};

inline void HoldTally::leave(const HoldShare& share) noexcept {
  if (share.grant_ == grant_) debt_ -= static_cast<std::int32_t>(share.acquired_);
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// HoldOwner is what every Owner is, however many holds it has places for: a function that makes locks for any owner takes one.
// A hold is in its owner's storage for as long as there are lock objects of its kind and name: the handles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/detail/hold_record.hpp"

namespace holdfast {

// A hold, and what its handles have in common. What the handles have acquired, together and of the present grant, less `debt`
// is what the machine counts.
class OwnedHold : public HoldRecord {
 public:
  using HoldRecord::HoldRecord;

  std::uint32_t grant = 0;  // Counts outermost grants: what a handle has acquired of an earlier one is over.
  std::uint32_t debt = 0;   // Releases through handles that had acquired nothing themselves.
};

class HoldOwner {
 public:
  HoldOwner(const HoldOwner&) = delete;
  HoldOwner& operator=(const HoldOwner&) = delete;

  [[nodiscard]] Client& client() const noexcept { return *client_; }

 protected:
  struct Place {
    Place() noexcept {}
    ~Place() noexcept {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    union {
      OwnedHold hold;  // While there are handles.
    };
    std::uint32_t handles = 0;
  };
  static_assert(sizeof(Place) <= 640, "promised: a hold in its owner's storage");

  HoldOwner(Client& client, Place* places, std::size_t count) noexcept
      : client_(&client), places_(places), count_(static_cast<std::uint32_t>(count)) {}
  ~HoldOwner() = default;

 private:
  friend class OwnedLock;

  // One handle more of the hold of this kind and name, which begins with `timing` if there is none. nullptr: no place is free.
  [[nodiscard]] OwnedHold* enter(const LockKind& kind, Key key, const LockTiming& timing,
                                 const HoldRecord::Ways& ways) noexcept;
  // One handle less, which has acquired so often what was not released.
  void leave(OwnedHold& hold, std::uint32_t acquired) noexcept;

  Client* client_;
  Place* places_;
  std::uint32_t count_;
};

}  // namespace holdfast

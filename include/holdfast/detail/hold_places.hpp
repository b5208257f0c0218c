// SPDX-License-Identifier: MIT
//
// HoldPlaces are an owner's places for its holds, whatever the client: a hold is in one for as long as there are lock objects
// of its kind and name, its handles. A Hold has a machine(), leave(share) for a handle that goes while others stay, and a
// destructor that posts the release of all that is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "holdfast/core/hold_share.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/key.hpp"

namespace holdfast {

template <class Hold>
class HoldPlace {
 public:
  HoldPlace() noexcept {}
  ~HoldPlace() noexcept {}
  HoldPlace(const HoldPlace&) = delete;
  HoldPlace& operator=(const HoldPlace&) = delete;

  [[nodiscard]] bool empty() const noexcept { return handles_ == 0; }

  // One handle less, which has this share. REQUIRES: the hold is in a place.
  static void leave(Hold& hold, const HoldShare& share) noexcept {
    HoldPlace& place = reinterpret_cast<HoldPlace&>(hold);  // Which it begins.
    if (--place.handles_ == 0)
      std::destroy_at(&hold);
    else
      hold.leave(share);
  }

 private:
  template <class>
  friend class HoldPlaces;

  union {
    Hold hold_;  // While there are handles.
  };
  std::uint32_t handles_ = 0;
};

template <class Hold>
class HoldPlaces {
 public:
  using Place = HoldPlace<Hold>;

  HoldPlaces(Place* places, std::size_t count) noexcept : places_(places), count_(static_cast<std::uint32_t>(count)) {}

  // One handle more of the hold of this kind and name. Where there is none it is made, of all that is given here. nullptr: no
  // place is free.
  template <class Client, class... Rest>
  [[nodiscard]] Hold* enter(Client& client, const LockKind& kind, Key key, const Rest&... rest) noexcept {
    Place* free = nullptr;
    for (Place* place = places_; place != places_ + count_; ++place) {
      if (place->handles_ == 0) {
        if (free == nullptr) free = place;
        continue;
      }
      const auto& machine = place->hold_.machine();
      if (&machine.kind() != &kind || machine.key().bytes() != key.bytes()) continue;
      ++place->handles_;
      return &place->hold_;
    }
    if (free == nullptr) return nullptr;
    std::construct_at(&free->hold_, client, kind, key, rest...);
    free->handles_ = 1;
    return &free->hold_;
  }

 private:
  Place* places_;
  std::uint32_t count_;
};

// So many of them, in an owner itself.
template <class Hold, std::size_t count>
class HoldStorage {
 public:
  HoldStorage() noexcept = default;
  // An assertion says where a lock is left of an owner that goes.
  ~HoldStorage() {
    for (const HoldPlace<Hold>& place : places) HOLDFAST_ASSERT(place.empty());
  }

  HoldPlace<Hold> places[count];

 private:
  static_assert(count >= 1 && count <= owner_holds_max);
};

}  // namespace holdfast

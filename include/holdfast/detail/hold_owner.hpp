// SPDX-License-Identifier: MIT
//
// HoldOwner is what every Owner is, however many holds it has places for: a function that makes locks for any owner takes one.
// A hold is in its owner's storage for as long as there are lock objects of its kind and name: the handles.
#pragma once

#include <cstddef>

#include "holdfast/client.hpp"
#include "holdfast/core/hold_share.hpp"
#include "holdfast/detail/hold_places.hpp"
#include "holdfast/detail/hold_record.hpp"

namespace holdfast {

// A hold, and what its handles have in common.
class OwnedHold : public HoldRecord {
 public:
  using HoldRecord::HoldRecord;

  // A handle goes, and others stay.
  void leave(const HoldShare& share) noexcept {
    tally.leave(share);
    post_releases(tally.take_due());
  }

  HoldTally tally;
};

class HoldOwner {
 public:
  HoldOwner(const HoldOwner&) = delete;
  HoldOwner& operator=(const HoldOwner&) = delete;

  [[nodiscard]] ClientBase& client() const noexcept { return *client_; }

 protected:
  using Place = HoldPlace<OwnedHold>;
  static_assert(sizeof(Place) <= 640, "promised: a hold in its owner's storage");

  HoldOwner(ClientBase& client, Place* places, std::size_t count) noexcept : client_(&client), places_(places, count) {}
  ~HoldOwner() = default;

 private:
  friend class OwnedLock;

  ClientBase* client_;
  HoldPlaces<OwnedHold> places_;
};

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// The map of slots has a place for each slot: what is written there is read there, and no other slot's place changes. A connection
// that goes elsewhere takes all of its slots along, and none of another's.
//
// BOUND   every two slots; every two numbers of connections, over a map in which each number has slots
// WAY     enumeration
// BROKEN  include/holdfast/core/slot_routes.hpp: `noexcept { return numbers_[slot]; }` => `noexcept { return numbers_[slot / 2]; }`
// BROKEN  include/holdfast/core/slot_routes.hpp: `{ numbers_[slot] = number; }` => `{ numbers_[slot & 0x1fff] = number; }`
// BROKEN  include/holdfast/core/slot_routes.hpp: `if (number == from) number = to;` => `if (number >= from) number = to;`
// BROKEN  include/holdfast/core/slot_routes.hpp: `{ redirect(gone, 0); }` => `{ redirect(gone, gone); }`
#include "holdfast/core/slot_routes.hpp"
#include "proof.hpp"

using namespace holdfast;

namespace {

constexpr std::uint16_t numbers = cluster_masters_max + 1;

std::uint8_t number_of(std::uint16_t slot) { return static_cast<std::uint8_t>(slot * 7 % numbers); }

void spread(SlotRoutes& routes) {
  for (std::uint16_t slot = 0; slot < cluster_slots; ++slot) routes.lead(slot, number_of(slot));
}

void claim_moved(const SlotRoutes& routes, std::uint16_t from, std::uint16_t to) {
  for (std::uint16_t slot = 0; slot < cluster_slots; ++slot)
    claim(routes.at(slot) == (number_of(slot) == from ? to : number_of(slot)));
}

}  // namespace

void prove() noexcept {
  static SlotRoutes routes;
  for (std::uint16_t slot = 0; slot < cluster_slots; ++slot) {
    routes.lead(slot, 1);
    for (std::uint16_t other = 0; other < cluster_slots; ++other) claim(routes.at(other) == (other == slot ? 1 : 0));
    routes.lead(slot, 0);
  }
  for (std::uint8_t from = 0; from < numbers; ++from) {
    for (std::uint8_t to = 0; to < numbers; ++to) {
      spread(routes);
      routes.redirect(from, to);
      claim_moved(routes, from, to);
    }
    spread(routes);
    routes.forget(from);
    claim_moved(routes, from, 0);
  }
  routes.forget();
  for (std::uint16_t slot = 0; slot < cluster_slots; ++slot) claim(routes.at(slot) == 0);
}

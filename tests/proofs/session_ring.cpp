// SPDX-License-Identifier: MIT
//
// The ring of requests in flight: each entry that is in it has a place of its own inside the storage, the oldest one leaves, and
// what is always so of the ring (Session::invariants()) is so afterwards, which makes this true for any number of steps.
//
// BOUND   rings of up to 64 entries, every place of the oldest, every number of entries
// UNWIND  2
// BROKEN  include/holdfast/core/session.hpp: `place < storage_.in_flight_count ? place`
//         => `place <= storage_.in_flight_count ? place`
// BROKEN  include/holdfast/core/session.hpp: `if (++first_ == storage_.in_flight_count) first_ = 0;` => `++first_;`
#include <chrono>
#include <cstring>
#include <string_view>
#include <type_traits>

#define private public  // The ring has no other door: a request and its reply would bring in the whole session.
#include "holdfast/core/session.hpp"
#undef private
#include "proof.hpp"

using namespace holdfast;

void prove() noexcept {
  constexpr std::uint32_t size_max = 64;
  static Session::InFlight entries[size_max];
  const std::uint32_t size = any_u32();
  assume(size >= 1 && size <= size_max);
  auto& session = *reinterpret_cast<Session*>(any_bytes(sizeof(Session)));
  session.storage_.in_flight = entries + (size_max - size);  // Behind the last entry there is nothing.
  session.storage_.in_flight_count = size;
  const std::uint32_t first = any_u32();
  const std::uint32_t count = any_u32();
  assume(first < size && count >= 1 && count <= size);
  session.first_ = first;
  session.count_ = count;
  const std::uint32_t index = any_u32();
  const std::uint32_t other = any_u32();
  assume(index < count && other < count && index != other);
  const Session::InFlight* const entry = &session.at(index);
  claim(entry >= session.storage_.in_flight && entry < entries + size_max);
  claim(entry != &session.at(other));
  claim(entry->purpose == 0);  // It is read.
  session.pop();
  claim(session.first_ < size && session.count_ == count - 1);
  if (index != 0) claim(&session.at(index - 1) == entry);
}

// SPDX-License-Identifier: MIT
//
// What is to be taken back is kept whole: whatever is kept, sent, answered, put off, lost and dropped, in any order, each place has
// its own bytes of the storage, each key and token is the one that was given, none is forgotten or sent twice, and what was
// reserved finds its place. The list that this is compared with is kept by the few rules at the head of compensations.hpp.
//
// BOUND   every program of up to 7 of 17 steps; three places, three holds; keys of 1, of 2 and of the most bytes; two sizes of storage
// WAY     enumeration
// BROKEN  src/core/compensations.cpp: `std::memmove(gap, gap + slot.key_size, kept_bytes_ - slot.key_begin);` => ``
// BROKEN  src/core/compensations.cpp: `other->key_begin > slot.key_begin) other` => `other->key_begin >= kept_bytes_) other`
// BROKEN  src/core/compensations.cpp: `if (slot.state == State::superseded) return free_slot(slot);` => ``
// BROKEN  src/core/compensations.cpp: `if (slot.state == State::waiting) --waiting_;` => ``
// BROKEN  include/holdfast/core/compensations.hpp: `kept_ + reserved_ < slot_count_ &&` => `kept_ < slot_count_ &&`
// BROKEN  include/holdfast/core/compensations.hpp: `kept_bytes_ + (reserved_ + 1) * key_size_max` => `kept_bytes_ + key_size_max`
#include "src/core/compensations.cpp"

#include <cstring>
#include <new>

#include "proof.hpp"

using namespace holdfast;

namespace {

constexpr std::size_t places = 3;
constexpr std::size_t depth_max = 7;
constexpr std::size_t sizes[] = {key_size_max + 4, 3 * key_size_max};
using Slot = Compensations::Slot;
using State = Compensations::State;

// A place tells which hold it is for. Nothing is encoded.
void fill(CommandLine&, const LockKind&, Operation, RequestForm, const HoldView&) noexcept {}
constexpr LockKind kind{.name = "",
                        .fill = fill,
                        .decode = nullptr,
                        .renew_batch = nullptr,
                        .announcement = nullptr,
                        .token = TokenSource::random,
                        .native_release = false,
                        .reentrant = true,
                        .fenced = false,
                        .tells_remaining = false,
                        .ask_remaining = nullptr};

char longest[key_size_max];
const ByteView keys[] = {ByteView("k"), ByteView("ke"), {longest, key_size_max}};
const Token tokens[] = {Token(ByteView("00000000000000000000000000000000")),
                        Token(ByteView("11111111111111111111111111111111")),
                        Token(ByteView("22222222222222222222222222222222"))};

struct World {
  Slot slots[places];
  char bytes[3 * key_size_max];
  std::size_t size;  // So many of them are there.
  alignas(Compensations) unsigned char object[sizeof(Compensations)];
  Instant now;
  // What should be kept: each hold at most once in force, and once more in flight after something newer spoke for it.
  struct Expected {
    std::uint8_t hold;
    std::uint8_t count;
    State state;
    bool there;
  } expected[places];
  std::uint32_t reserved;

  Compensations& all() { return *reinterpret_cast<Compensations*>(object); }
};

// Its places and bytes stand where they stood: a copy is put back over them.
World world;

std::uint8_t hold_of(const Slot& slot) {
  for (std::uint8_t hold = 0; hold < 3; ++hold)
    if (slot.token.bytes() == tokens[hold].bytes()) return hold;
  claim(false);
  return 0;
}

void check() {
  Compensations& all = world.all();
  claim(all.invariants());
  std::uint32_t kept = 0;
  for (std::size_t place = 0; place < places; ++place) {
    const Slot& slot = world.slots[place];
    const World::Expected& expected = world.expected[place];
    claim((slot.state != State::free) == expected.there);
    if (!expected.there) continue;
    ++kept;
    claim(slot.state == expected.state && slot.count == expected.count);
    claim(hold_of(slot) == expected.hold && all.key_of(slot) == keys[expected.hold]);
  }
  claim(all.pending() == kept && all.reserved() == world.reserved);
}

bool room() {  // By the promise: one more of the longest key beside what is kept and what is reserved.
  std::size_t used = 0;
  std::uint32_t kept = 0;
  for (const World::Expected& it : world.expected)
    if (it.there) used += keys[it.hold].size(), ++kept;
  return kept + world.reserved < places && used + (world.reserved + 1) * key_size_max <= world.size;
}

void supersede(std::uint8_t hold) {
  for (World::Expected& it : world.expected) {
    if (!it.there || it.hold != hold) continue;
    if (it.state == State::in_flight)
      it.state = State::superseded;
    else if (it.state != State::superseded)
      it.there = false;
  }
}

bool keep(std::uint8_t hold, std::uint8_t count, bool was_reserved) {
  Compensations& all = world.all();
  if (was_reserved) {
    if (world.reserved == 0) return false;
    all.unreserve();
    --world.reserved;
  }
  const bool expected = room();
  claim(all.has_room() == expected);
  const Status status = all.add({}, {&kind, Key(keys[hold]), &tokens[hold], count, 1000});
  claim((status == Status::ok) == expected);
  claim(!was_reserved || expected);  // What was reserved finds its place.
  if (!expected) return true;
  supersede(hold);
  for (World::Expected& it : world.expected) {
    if (it.there) continue;
    it = {hold, count, State::waiting, true};
    break;
  }
  return true;
}

bool send(bool second) {
  CommandLine line({nullptr, 0});
  Slot* slot = world.all().poll_transmit(nullptr, world.now, line);
  if (slot != nullptr && second) slot = world.all().poll_transmit(slot, world.now, line);
  // What was put off and is due waits from the moment on at which it was looked at.
  std::size_t passed = 0;
  World::Expected* expected = nullptr;
  const bool any = world.all().unsent();
  for (std::size_t place = 0; any && place < places && expected == nullptr; ++place) {
    World::Expected& it = world.expected[place];
    if (it.there && it.state == State::deferred && world.slots[place].not_before <= world.now)
      it.state = State::waiting;
    if (it.there && it.state == State::waiting && passed++ == (second ? 1U : 0U)) expected = &it;
  }
  claim((slot == nullptr) == (expected == nullptr));
  if (slot == nullptr) return false;
  claim(slot == &world.slots[expected - world.expected]);
  world.all().handle_sent(*slot);
  expected->state = State::in_flight;
  return true;
}

enum class Answer : std::uint8_t { confirmed, busy, by_name, lost, refused };

bool answer(bool last, Answer what) {
  std::size_t place = places;
  for (std::size_t it = 0; it < places; ++it)
    if (world.slots[it].carried() && (place == places || last)) place = it;
  if (place == places) return false;
  Slot& slot = world.slots[place];
  World::Expected& expected = world.expected[place];
  const bool old = expected.state == State::superseded;
  switch (what) {
    case Answer::confirmed:
      world.all().handle_reply(slot, Status::ok, false, world.now);
      expected.there = false;
      return true;
    case Answer::busy:
      world.all().handle_reply(slot, Status::loading, false, world.now);
      expected.state = State::deferred;
      break;
    case Answer::by_name:
      world.all().handle_reply(slot, Status::server_error, true, world.now);
      expected.state = State::waiting;
      break;
    case Answer::lost:
      world.all().handle_lost(slot);
      expected.state = State::waiting;
      break;
    case Answer::refused:
      world.all().handle_reply(slot, Status::server_error, false, world.now);
      expected.there = false;
      break;
  }
  if (old) expected.there = false;
  return true;
}

bool take_step(int step) {
  switch (step) {
    case 0: return keep(0, 0, false);
    case 1: return keep(1, 0, false);
    case 2: return keep(2, 0, false);
    case 3: return keep(0, 1, false);
    case 4: return keep(2, 1, true);
    case 5: return keep(1, 1, true);
    case 6: return send(false);
    case 7: return send(true);
    case 8: return answer(false, Answer::confirmed);
    case 9: return answer(true, Answer::confirmed);
    case 10: return answer(false, Answer::busy);
    case 11: return answer(true, Answer::by_name);
    case 12: return answer(false, Answer::lost);
    case 13: return answer(true, Answer::refused);
    case 14:
      if (!room()) return false;
      world.all().reserve();
      ++world.reserved;
      return true;
    case 15: world.now = world.now + Duration(std::chrono::seconds(3)); return true;
    default:
      world.all().clear();
      for (World::Expected& it : world.expected) it.there = false;
      return true;
  }
}

void follow(std::size_t depth) {
  check();
  if (depth == depth_max) return;
  const World before = world;
  for (int step = 0; step < 17; ++step) {
    if (take_step(step)) follow(depth + 1);
    std::memcpy(static_cast<void*>(&world), &before, sizeof world);
  }
}

}  // namespace

void prove() noexcept {
  std::memset(longest, 'l', sizeof longest);
  for (const std::size_t size : sizes) {
    std::memset(static_cast<void*>(&world), 0, sizeof world);
    world.size = size;
    world.now = Instant::from_nanoseconds(1'000'000'000);
    new (world.object) Compensations(world.slots, places, {world.bytes, size});
    follow(0);
  }
}

// SPDX-License-Identifier: MIT
//
// The bytes that wait to be sent: what was committed leaves unchanged, in its order, each byte once, whatever the socket takes at a
// time; none of a request that must not leave without a look leaves before handle_drained(); and nothing counts as the reply to a
// request that has not left as a whole. What is assumed of the buffer before a step is so afterwards, which makes this true for
// any number of steps. The bytes themselves are not looked at, so that any that differ stand for all.
//
// BOUND   buffers of up to 24 bytes, every place of what is unsent and of what needs a look, every length taken, added or dropped
// WAY     enumeration
// BROKEN  src/core/session.cpp: `guarded_end_ = guarded_end_ > transmit_begin_ ? guarded_end_ - transmit_begin_ : 0;` => ``
// BROKEN  src/core/session.cpp: `  transmit_end_ -= transmit_begin_;` => ``
// BROKEN  src/core/session.cpp: `transmit_begin_, transmit_end_ - transmit_begin_);` => `transmit_begin_, transmit_begin_);`
// BROKEN  src/core/session.cpp: `guarded_end_ = transmit_end_;` => `guarded_end_ = transmit_begin_;`
// BROKEN  src/core/session.cpp: `    transmit_end_ -= static_cast<std::uint32_t>(size);` => ``
// BROKEN  src/core/session.cpp: `entry.first_byte = stream_end_;` => `entry.first_byte = stream_end_ + size;`
// BROKEN  include/holdfast/core/session.hpp: `return end + (transmit_end_ - transmit_begin_) <= stream_end_;` => `return true;`
// BROKEN  include/holdfast/core/session.hpp: `return guarded_end_ > transmit_begin_ && !drained_`
//         => `return guarded_end_ > 0 && !drained_`
// BROKEN  include/holdfast/core/session.hpp: `return {storage_.transmit.data + transmit_begin_,`
//         => `drained_ = true; return {storage_.transmit.data + transmit_begin_,`
#include <chrono>
#include <cstring>
#include <string_view>
#include <type_traits>

#define private public  // The buffer has no other door: a request and its reply would bring in the whole session.
#include "src/core/session.cpp"
#undef private
#include "proof.hpp"
#include "proto/resp_encoder.cpp"
#include "src/core/compensations.cpp"

using namespace holdfast;

namespace {

constexpr std::uint32_t size_max = 24;
constexpr std::uint64_t gone = 1000;  // So many bytes of the stream have left before.

char bytes[size_max];
Session::InFlight entries[3];
alignas(Session) unsigned char object[sizeof(Session)];

// What is unsent, by the buffer's own places: `guarded` of its bytes must not leave without a look.
struct State {
  std::uint32_t size;
  std::uint32_t begin;
  std::uint32_t unsent;
  std::uint32_t guarded;
  bool drained;

  [[nodiscard]] Session& stand() const noexcept {
    std::memset(object, 0, sizeof object);
    auto& session = *reinterpret_cast<Session*>(object);
    for (std::uint32_t at = 0; at < size_max; ++at) bytes[at] = static_cast<char>('A' + at);
    session.storage_ = {{bytes, size}, entries, 3};
    session.state_ = SessionState::ready;
    session.transmit_begin_ = begin;
    session.transmit_end_ = begin + unsent;
    session.guarded_end_ = guarded != 0 ? begin + guarded : begin / 2;  // Any place that has left.
    session.stream_end_ = gone + unsent;
    session.drained_ = drained;
    return session;
  }
  // After a step that has taken `taken` bytes away and appended `more`, each of them an x.
  void expect(const Session& session, std::uint32_t taken, std::uint32_t more, std::uint32_t needing) const noexcept {
    const std::uint32_t waiting = session.transmit_end_ - session.transmit_begin_;
    claim(session.transmit_begin_ <= session.transmit_end_ && session.transmit_end_ <= size);
    claim(session.guarded_end_ <= session.transmit_end_ && session.stream_end_ == gone + unsent + more);
    claim(waiting == unsent - taken + more);
    const bool any = session.guarded_end_ > session.transmit_begin_;
    claim((any ? session.guarded_end_ - session.transmit_begin_ : 0) == needing);
    for (std::uint32_t at = 0; at < unsent - taken; ++at)
      claim(bytes[session.transmit_begin_ + at] == static_cast<char>('A' + begin + taken + at));
    for (std::uint32_t at = unsent - taken; at < waiting; ++at) claim(bytes[session.transmit_begin_ + at] == 'x');
    for (std::uint32_t at = size; at < size_max; ++at) claim(bytes[at] == static_cast<char>('A' + at));
  }
};

// The socket is to take something: all of it, or nothing before a look. One look is good once.
void poll(const State& state) {
  Session& session = state.stand();
  const ByteView out = session.poll_transmit(Instant());
  claim(out.empty() == (state.unsent == 0 || (state.guarded != 0 && !state.drained)));
  claim(out.empty() || (out.data() == bytes + state.begin && out.size() == state.unsent && !session.drained_));
  state.expect(session, 0, 0, state.guarded);
}

void take(const State& state, std::uint32_t taken) {
  Session& session = state.stand();
  session.handle_transmitted(taken);
  state.expect(session, taken, 0, state.guarded > taken ? state.guarded - taken : 0);
}

void commit(const State& state, std::uint32_t more, Operation operation) {
  Session& session = state.stand();
  claim(session.has_room(false, more));
  const Session::Place place = session.open(false);
  claim(place.space.size == state.size - state.unsent && place.space.data == bytes + state.unsent);
  state.expect(session, 0, 0, state.guarded);
  std::memset(place.space.data, 'x', more);
  *place.request = Request();
  place.request->tag.operation = operation;
  session.commit(*place.request, more, Instant());
  state.expect(session, 0, more, lets_go(operation) ? state.guarded : state.unsent + more);
  claim(session.drained_ == (lets_go(operation) && state.drained));
  claim(session.count_ == 1 && entries[0].first_byte == gone + state.unsent);
}

// What was written last is dropped: compensations, which need no look.
void drop(const State& state, std::uint32_t dropped) {
  Session& session = state.stand();
  session.count_ = 1;
  entries[0].first_byte = session.stream_end_ - dropped;
  entries[0].purpose = static_cast<std::uint8_t>(Session::Purpose::compensation);
  session.forget_compensations();
  claim(session.stream_end_ == gone + state.unsent - dropped && session.count_ == 0);
  State{state.size, state.begin, state.unsent - dropped, state.guarded, state.drained}.expect(session, 0, 0,
                                                                                              state.guarded);
}

// Something has come. The oldest request began at `first`, and the next one, if there is one, at `second`.
void reply(const State& state, std::uint64_t first, std::uint64_t second) {
  Session& session = state.stand();
  const std::uint64_t end = gone + state.unsent;
  entries[0].first_byte = first;
  entries[1].first_byte = second;
  session.count_ = second < end ? 2 : 1;
  claim(session.oldest_sent() == ((second < end ? second : end) <= gone));
}

void step(const State& state) {
  poll(state);
  for (std::uint32_t taken = 0; taken <= state.unsent; ++taken) take(state, taken);
  for (std::uint32_t more = 1; more <= state.size - state.unsent; ++more)
    for (const Operation operation : {Operation::acquire, Operation::release}) commit(state, more, operation);
  for (std::uint32_t dropped = 1; dropped <= state.unsent - state.guarded; ++dropped) drop(state, dropped);
  const std::uint64_t end = gone + state.unsent;
  for (std::uint64_t second = gone - 2; second <= end; ++second)
    for (std::uint64_t first = gone - 3; first < second; ++first) reply(state, first, second);
}

}  // namespace

void prove() noexcept {
  for (std::uint32_t size = 1; size <= size_max; ++size)
    for (std::uint32_t begin = 0; begin <= size; ++begin)
      for (std::uint32_t unsent = 0; unsent <= size - begin; ++unsent)
        for (std::uint32_t guarded = 0; guarded <= unsent; ++guarded)
          for (const bool drained : {false, true}) step({size, begin, unsent, guarded, drained});
}

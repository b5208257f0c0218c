// SPDX-License-Identifier: MIT
//
// A Mutex on a microcontroller: session and lock machine alone, bytes and time come from elsewhere. What it carries is
// measured by ./dev size.
#include <holdfast/core/lock_machine.hpp>
#include <holdfast/core/mutex_kind.hpp>
#include <holdfast/core/session.hpp>

// The transport and the clock, which are the board's.
extern "C" {
std::size_t board_receive(char* into, std::size_t size);
std::size_t board_send(const char* from, std::size_t size);
std::int64_t board_nanoseconds();
void board_random(unsigned char* into, std::size_t size);
}

namespace {

using namespace holdfast;

SessionBuffers buffers;
Session session(SessionSettings(), SessionBuffers::storage_of(&buffers));
LockMachine machine(mutex_kind);

void settle() {
  if (machine.wants_request()) {
    const Session::Place place = session.open(machine.request_compensated());
    std::size_t size = 0;
    if (place.request != nullptr && machine.poll_request(place.space, *place.request, size) == Status::ok) {
      place.request->tag.requester = &machine;
      session.commit(*place.request, size, Instant::from_nanoseconds(board_nanoseconds()));
    } else {
      machine.refuse_request(Status::not_connected, Instant::from_nanoseconds(board_nanoseconds()));
    }
  }
  ReplyTag tag;
  Compensation compensation;
  if (machine.poll_compensation(tag, compensation)) {
    tag.requester = &machine;
    (void)session.compensate(tag, compensation);
  }
  while (machine.poll_event() != LockEvent::none) {}
}

void receive(Instant now) {
  const MutableBytes space = session.receive_space();
  const std::size_t count = board_receive(space.data, space.size);
  if (count == 0) return session.handle_drained();
  session.handle_received(count, now);
  Reply reply;
  while (session.poll_reply(reply, now)) machine.handle_reply(reply, now);
}

void turn() {
  const Instant now = Instant::from_nanoseconds(board_nanoseconds());
  receive(now);
  session.handle_timeout(now);
  machine.handle_timeout(now);
  settle();
  if (session.wants_look()) receive(now);
  const ByteView bytes = session.poll_transmit(now);
  session.handle_transmitted(board_send(bytes.data(), bytes.size()));
}

}  // namespace

int main() {
  Instant now = Instant::from_nanoseconds(board_nanoseconds());
  session.handle_connected(now, now + std::chrono::seconds(2));
  while (!session.ready()) turn();
  unsigned char random[token_random_size];
  board_random(random, sizeof random);
  if (machine.configure(Key("k"), {}) != Status::ok) return 1;
  if (machine.acquire(Token::from_random(random), now, now + std::chrono::seconds(1)) != Status::ok) return 2;
  while (machine.waiting()) turn();
  now = Instant::from_nanoseconds(board_nanoseconds());
  if (machine.renewal_due() <= now && machine.renew(now, now + std::chrono::seconds(1)) != Status::ok) return 3;
  if (machine.release(NativeDelete::none, false, now, now + std::chrono::seconds(1)) != Status::ok) return 4;
  while (machine.waiting()) turn();
  return machine.status() == Status::ok ? 0 : 5;
}

// SPDX-License-Identifier: MIT
//
// A task that takes a lock on FreeRTOS with FreeRTOS+TCP: what one writes to run holdfast where there is no POSIX. It has a
// clock, a transport, random bytes and a loop. All memory is static, and nothing of libstdc++ is wanted but headers.
//
//     xTaskCreateStatic(lock_task, "lock", 1024, &task, 1, stack, &control_block);
//
// Of these 4 KiB of stack the deepest call of holdfast, at the end of a handshake, takes 2.2. On the host the functions of
// FreeRTOS are a shim, freertos_on_posix.cpp, so that this very task runs in our tests:
//
//     freertos_transport ADDRESS PORT KEY
//
// Exit codes: 0 all well, 64 usage, 69 no server, 75 the lock is somebody else's, 79 lost or unclear.
//
// lwIP's sockets differ in three points, all in Transport: the timeouts (SO_RCVTIMEO, with LWIP_SO_RCVTIMEO) are in
// milliseconds, lwip_recv() answers -1 with EWOULDBLOCK for "nothing yet", and 0 when the peer has closed.
#if __has_include("FreeRTOS_Sockets.h")
#include "FreeRTOS.h"
#include "FreeRTOS_Sockets.h"
#include "task.h"
#else
#include "freertos_shapes.hpp"
#endif

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/session.hpp"

using namespace holdfast;

// What the task is told, and what it answers.
struct LockingTask {
  freertos_sockaddr server;
  const char* key;
  Status outcome;  // ok: held, worked, released.
};

// The board's: where its lines go. No format run, so no printf() of newlib with its heap.
extern "C" void board_log(TickType_t at, const char* what, const char* detail);
extern "C" void lock_task(void* parameters);

namespace {

// ---- Time --------------------------------------------------------------------------------------------------------

constexpr Duration tick = Duration(1s) / configTICK_RATE_HZ;
static_assert(tick * configTICK_RATE_HZ == Duration(1s), "a tick is whole nanoseconds");

constexpr Duration lease = 3s;
// Two readings may be a whole tick apart in truth and equal by the counter, so a hold could look valid for a tick longer
// than it is: a tick is added to the drift. The rest of the drift is lease / 100, the error of the board's clock beside the
// server's: a crystal is far better, an internal RC oscillator may be worse and needs more.
constexpr LockTiming timing = {.lease = lease, .drift = drift_of(lease) + tick};
static_assert(timing.valid());

// The tick counter as an Instant. It has 32 bits and starts again at 0 after 2^32 ticks, 49.7 days at 1 kHz: an Instant made
// of it directly would jump back then, and a hold would look valid for 49 days. The difference of two readings, modulo 2^32,
// is right across that, as long as they are less than 2^32 ticks apart; the loop below reads every second. (With 16-bit
// ticks, 65 seconds at 1 kHz, it is still right.)
//
// The counter must go on while a lock is held. Tickless idle corrects it when the core wakes; a deeper sleep that stops it
// does not: there add what a real-time clock says has passed, or take every hold for lost on waking.
//
// One task's: reading is a change.
class TickClock {
 public:
  [[nodiscard]] Instant now() {
    const TickType_t reading = xTaskGetTickCount();
    ticks_ += static_cast<TickType_t>(reading - last_);
    last_ = reading;
    return Instant::from_nanoseconds(static_cast<std::int64_t>(ticks_) * tick.count());  // For 292 years.
  }
  [[nodiscard]] std::uint32_t overflows() const { return static_cast<std::uint32_t>(ticks_ >> 32); }

 private:
  std::uint64_t ticks_ = 0;
  TickType_t last_ = 0;
};

// Upwards: who wakes too early only asks again. A second at most, so that the clock is read often enough.
TickType_t ticks_until(Instant then, Instant now) {
  if (then <= now) return 0;
  const Duration left = then - now < sleep_max ? then - now : sleep_max;
  return static_cast<TickType_t>((left + tick - Duration(1)) / tick);
}

// ---- Bytes -------------------------------------------------------------------------------------------------------

// A connection. Its calls wait no longer than they are told.
class Transport {
 public:
  [[nodiscard]] bool connect(freertos_sockaddr& server, TickType_t timeout) {
    socket_ = FreeRTOS_socket(FREERTOS_AF_INET, FREERTOS_SOCK_STREAM, FREERTOS_IPPROTO_TCP);
    if (socket_ == FREERTOS_INVALID_SOCKET) return false;
    set_timeout(FREERTOS_SO_RCVTIMEO, timeout);  // Of the connect, too.
    set_timeout(FREERTOS_SO_SNDTIMEO, send_timeout);
    if (FreeRTOS_connect(socket_, &server, sizeof server) == 0) return true;
    close();
    return false;
  }
  // Bytes received, 0 for none in time; below 0 the connection is gone.
  [[nodiscard]] BaseType_t receive(MutableBytes space, TickType_t timeout) {
    set_timeout(FREERTOS_SO_RCVTIMEO, timeout);
    const BaseType_t count = FreeRTOS_recv(socket_, space.data, space.size, 0);
    return count == -pdFREERTOS_ERRNO_EWOULDBLOCK || count == -pdFREERTOS_ERRNO_EINTR ? 0 : count;
  }
  // Bytes taken, of which 0 are none in time; below 0 the connection is gone.
  [[nodiscard]] BaseType_t send(ByteView bytes) {
    const BaseType_t count = FreeRTOS_send(socket_, bytes.data(), bytes.size(), 0);
    return count == -pdFREERTOS_ERRNO_ENOSPC || count == -pdFREERTOS_ERRNO_EWOULDBLOCK ? 0 : count;
  }
  void close() {
    if (socket_ != FREERTOS_INVALID_SOCKET) (void)FreeRTOS_closesocket(socket_);
    socket_ = FREERTOS_INVALID_SOCKET;
  }

 private:
  // A request is small beside any send buffer: room comes soon, or the peer is dead.
  static constexpr TickType_t send_timeout = configTICK_RATE_HZ / 10;

  void set_timeout(std::int32_t which, TickType_t ticks) {
    (void)FreeRTOS_setsockopt(socket_, 0, which, &ticks, sizeof ticks);
  }

  Socket_t socket_ = FREERTOS_INVALID_SOCKET;
};

// A token is fresh for every acquire, and nobody can guess it.
bool draw_token(Token& token) {
  unsigned char random[token_random_size];
  for (std::size_t at = 0; at < sizeof random; at += sizeof(std::uint32_t)) {
    std::uint32_t number = 0;
    if (xApplicationGetRandomNumber(&number) != pdTRUE) return false;
    std::memcpy(random + at, &number, sizeof number);
  }
  token = Token::from_random(random);
  return true;
}

// ---- Memory ------------------------------------------------------------------------------------------------------

// SessionBuffers has 10 KiB, for what a pool of locks leaves behind. One Mutex gets along
// with less: the longest reply is an error line, the largest array the server's identity, and of compensations one may wait
// while the next attempt reserves another. A reply beyond that would fail the session, not overflow.
struct Memory {
  char receive[1024];
  RespValue nodes[8];
  char transmit[transmit_size_max];
  Session::InFlight in_flight[10];
  Session::CompensationSlot compensations[2];
  char compensation_keys[2 * key_size_max];
};
static_assert(sizeof(Memory::receive) >= line_size_max + 3);
static_assert(sizeof(Memory) + sizeof(Session) + sizeof(LockMachine) <= 7 * 1024, "what this task takes of RAM");

// They view each other as long as either lives, so they live for ever.
Memory memory;
Session session({.client_name = "freertos"},
                {.receive = {memory.receive, sizeof memory.receive},
                 .nodes = memory.nodes,
                 .node_count = sizeof memory.nodes / sizeof memory.nodes[0],
                 .transmit = {memory.transmit, sizeof memory.transmit},
                 .in_flight = memory.in_flight,
                 .in_flight_count = 10,
                 .compensations = memory.compensations,
                 .compensation_count = 2,
                 .compensation_keys = {memory.compensation_keys, sizeof memory.compensation_keys}});
LockMachine machine(mutex_kind);
TickClock tick_clock;
Transport transport;

// ---- The loop ----------------------------------------------------------------------------------------------------

constexpr Duration request_timeout = 500ms;
constexpr Duration connect_timeout = 1s;
constexpr Duration work_time = 2500ms;  // Longer than a third of the lease, so that it renews.
constexpr int connections_max = 3;

struct Progress {
  bool asked = false;
  bool told_overflow = false;
  Instant work_until;
  Status outcome = Status::ok;
};
Progress progress;

void say(const char* what, const char* detail = "") { board_log(xTaskGetTickCount(), what, detail); }

void fail(Status why) {
  if (progress.outcome == Status::ok) progress.outcome = why;
}

void hear(LockEvent event, Instant now) {
  switch (event) {
    case LockEvent::none: return;
    case LockEvent::granted:
      say("granted");
      progress.work_until = now + work_time;
      return;
    case LockEvent::renewed: say("renewed"); return;
    case LockEvent::at_risk: say("at risk", to_string(machine.status())); return;
    case LockEvent::denied: say("denied", to_string(machine.status())); break;
    case LockEvent::unclear: say("unclear, and taken back", to_string(machine.status())); break;
    case LockEvent::lost: say("lost"); break;
    case LockEvent::released: say("released", to_string(machine.status())); break;
    case LockEvent::protocol_doubt:
      session.fail(Status::protocol_error, "a reply of another shape than asked for");
      return;
  }
  fail(machine.status());
}

// After every input and every command: what the machine has to say.
void settle(Instant now) {
  while (machine.has_output()) {
    ReplyTag tag;
    Compensation compensation;
    if (machine.poll_compensation(tag, compensation)) {
      tag.requester = &machine;
      (void)session.compensate(tag, compensation);  // Without a place for it, the lease ends the hold.
    }
    if (machine.wants_request()) {
      const Session::Place place = session.open(machine.request_compensated());
      std::size_t size = 0;
      if (place.request != nullptr && machine.poll_request(place.space, *place.request, size) == Status::ok) {
        place.request->tag.requester = &machine;
        session.commit(*place.request, size, now);
      } else {
        machine.refuse_request(session.ready() ? Status::too_many_requests : Status::not_connected, now);
      }
    }
    for (LockEvent event = machine.poll_event(); event != LockEvent::none; event = machine.poll_event())
      hear(event, now);
  }
}

void dispatch(Instant now) {
  Reply reply;
  while (session.poll_reply(reply, now)) {
    machine.handle_reply(reply, now);
    settle(now);
  }
}

void acquire(Instant now) {
  progress.asked = true;
  Token token;
  Status status = Status::no_entropy;
  if (draw_token(token)) status = machine.acquire(token, now, now + request_timeout);
  if (status != Status::ok) fail(status);
}

// What is to be done now.
void advance(Instant now) {
  switch (machine.state()) {
    case LockState::idle:
      if (!progress.asked && session.ready()) acquire(now);
      return;
    case LockState::held:
    case LockState::at_risk: break;
    case LockState::acquiring:
    case LockState::releasing:
    case LockState::unknown:
    case LockState::lost: return;  // The session's next reply or deadline goes on from there.
  }
  // Here the work: short beside the lease, and only while machine.held(tick_clock.now()).
  if (machine.waiting()) return;
  if (now >= progress.work_until)
    (void)machine.release(session.identity().native_delete, false, now, now + request_timeout);
  else if (now >= machine.renewal_due())
    (void)machine.renew(now, now + request_timeout);  // Also without a connection: the next attempt is put off.
}

// When the machine or its holder has something to do.
Instant due() {
  const Instant told = machine.poll_timeout();
  const bool held = machine.state() == LockState::held || machine.state() == LockState::at_risk;
  if (!held || machine.waiting())
    return told;  // While it waits, advance() does nothing: what is overdue would only spin.
  return earlier(earlier(told, machine.renewal_due()), progress.work_until);
}

bool finished(Instant now) {
  return progress.asked && !machine.waiting() && !machine.held(now) && session.compensations_pending() == 0;
}

// What lies in the socket is no answer to what leaves now: it is received first. False when the connection is gone.
bool look(Instant now) {
  while (session.wants_look()) {
    const MutableBytes space = session.receive_space();
    if (space.size == 0) return false;
    const BaseType_t count = transport.receive(space, 0);
    if (count < 0) return false;
    if (count == 0) {
      session.handle_drained();
      continue;
    }
    session.handle_received(static_cast<std::size_t>(count), now);
    dispatch(now);
  }
  return true;
}

// Judges the time and sends what there is to be sent. False when the connection is gone.
bool turn(Instant now) {
  session.handle_timeout(now);
  dispatch(now);
  machine.handle_timeout(now);
  settle(now);
  advance(now);
  settle(now);
  for (;;) {
    if (!look(now)) return false;
    const ByteView bytes = session.poll_transmit(now);
    if (bytes.empty()) break;
    const BaseType_t count = transport.send(bytes);
    if (count < 0) return false;
    if (count == 0) break;  // The rest goes out in the next turn.
    session.handle_transmitted(static_cast<std::size_t>(count));
  }
  return session.state() != SessionState::failed;
}

// Waits until a byte comes or something is due, and receives all that has come by `now`, which it reads: so no deadline is
// judged before what arrived in time. False when the connection is gone.
bool receive(Instant& now) {
  TickType_t timeout = ticks_until(earlier(due(), session.poll_timeout()), now);
  if (session.unsent() && timeout > 1) timeout = 1;
  for (bool waited = false;; waited = true, timeout = 0) {
    const MutableBytes space = session.receive_space();
    if (space.size == 0) return false;
    const BaseType_t count = transport.receive(space, timeout);
    if (count < 0) return false;
    if (count == 0 && waited) return true;
    now = tick_clock.now();
    if (count == 0) continue;  // Not even said to the session: it would take it for a sign of life.
    session.handle_received(static_cast<std::size_t>(count), now);
    dispatch(now);
  }
}

void serve_connection() {
  Instant now = tick_clock.now();
  session.handle_connected(now, now + connect_timeout);
  while (turn(now) && !finished(now) && receive(now)) {
    if (tick_clock.overflows() == 0 || progress.told_overflow) continue;
    progress.told_overflow = true;
    say("the tick counter has started again at 0");
  }
  transport.close();
  session.handle_closed();
  dispatch(tick_clock.now());  // Each request in flight has its outcome now. The hold goes on as long as it is valid.
}

}  // namespace

extern "C" void lock_task(void* parameters) {
  LockingTask& task = *static_cast<LockingTask*>(parameters);
  if (machine.configure(Key(ByteView(std::string_view(task.key))), timing) != Status::ok) {
    fail(Status::invalid_argument);
    progress.asked = true;
  }
  for (int left = connections_max; left != 0 && !finished(tick_clock.now()); --left) {
    if (transport.connect(task.server, ticks_until(Instant() + connect_timeout, Instant()))) {
      say("connected");
      serve_connection();
    }
    if (finished(tick_clock.now())) break;
    say("no connection", to_string(session.failure()));
    vTaskDelay(configTICK_RATE_HZ / 10);
    machine.handle_timeout(tick_clock.now());
    settle(tick_clock.now());
  }
  if (!finished(tick_clock.now())) fail(Status::not_connected);  // What is held ends by its lease.
  task.outcome = progress.outcome;
  vTaskDelete(nullptr);  // No task returns.
}

// ---- The host's main ---------------------------------------------------------------------------------------------

#ifdef __unix__
#include <arpa/inet.h>

#include <cstdio>
#include <cstdlib>

void board_log(TickType_t at, const char* what, const char* detail) {
  std::printf("tick %10u  %s%s%s\n", at, what, *detail == '\0' ? "" : ": ", detail);
}

int main(int argument_count, char** arguments) {
  LockingTask task{};
  task.server.sin_family = FREERTOS_AF_INET;
  if (argument_count != 4 || ::inet_pton(AF_INET, arguments[1], &task.server.sin_addr) != 1) {
    std::fprintf(stderr, "usage: freertos_transport ADDRESS PORT KEY\n");
    return 64;
  }
  task.server.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(arguments[2], nullptr, 10)));
  task.key = arguments[3];
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  lock_task(&task);
  std::printf("outcome: %s\n", to_string(task.outcome));
  if (task.outcome == Status::ok) return 0;
  if (task.outcome == Status::invalid_argument) return 64;
  if (task.outcome == Status::not_connected) return 69;
  return task.outcome == Status::lock_busy ? 75 : 79;
}
#endif

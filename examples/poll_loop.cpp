// SPDX-License-Identifier: MIT
//
// The core without the client: one socket, one poll(2), a Session and three LockMachines. It is all that a driver has to
// do: move bytes and time, and do what the machines ask for.
//
//     poll_loop HOST PORT KEY
//     poll_loop SOCKET-PATH KEY
//
// It takes KEY and KEY/second as a Mutex and KEY/nested as a reentrant lock, that one twice, at once over one connection;
// works while it holds them, renews them at a third of the lease, and lets them go. A connection that is lost is made anew
// once. The linker takes what is below the I/O line and nothing of src/posix: tests/live/test_examples.cpp looks.
//
// Exit codes: 0 all well, 64 usage, 69 no server, 71 no random bytes, 75 a lock is somebody else's, 79 lost or unclear.
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/core/session.hpp"

using namespace holdfast;

namespace {

constexpr Duration lease = 3s;
constexpr Duration request_timeout = 500ms;  // Far below the lease: there is time to try a renewal again.
constexpr Duration connect_timeout = 1s;
constexpr int steps = 6;
constexpr Duration step_interval = 500ms;

enum ExitCode { all_well = 0, usage = 64, no_server = 69, no_random = 71, busy = 75, lost = 79 };

// A clock that goes on while the machine is suspended: leases do, too.
Instant read_clock() {
  timespec time{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return Instant::from_nanoseconds(static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec);
}

// Fresh for every acquire. Redisson writes `uuid:thread` into the hash of a reentrant lock, and accepts any field.
bool draw_token(Token& token) {
  unsigned char random[token_random_size];
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) return false;
  token = Token::from_random(random);
  return true;
}

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// One lock, and what we mean to do with it. It outlives its session's connections, which view its machine.
struct Lock {
  Lock(const LockKind& kind, const char* name_suffix) : machine(kind), suffix(name_suffix) {}

  LockMachine machine;
  const char* suffix;
  bool asked = false;
  bool nested = false;  // Of a reentrant lock: acquired once more.
  int steps_left = steps;
  Instant next_step = Instant::max();
};

class Loop {
 public:
  explicit Loop(const Address& address) : address_(address) {}
  ~Loop() { close(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  bool configure(const char* key);
  int run();

 private:
  bool connect();
  void close();
  void wait();
  void receive();
  void dispatch();
  void transmit();
  void advance(Lock& lock);
  void settle(Lock& lock);
  void submit(Lock& lock);
  void hear(Lock& lock, LockEvent event);
  void acquire(Lock& lock);
  [[nodiscard]] Instant due(const Lock& lock) const;
  [[nodiscard]] bool finished() const;
  void print_time() const { std::printf("%7.3f s  ", static_cast<double>((now_ - start_).count()) / 1e9); }
  void begin_line(const Lock& lock) const {
    const ByteView key = lock.machine.key().bytes();
    print_time();
    std::printf("%.*s: ", static_cast<int>(key.size()), key.data());
  }
  void note(ExitCode code) {
    if (code > result_) result_ = code;  // They grow with what they mean.
  }

  Address address_;
  int socket_ = -1;
  int connections_ = 0;
  int result_ = all_well;
  bool closed_by_peer_ = false;
  Instant start_ = read_clock();
  Instant now_ = start_;
  SessionBuffers buffers_;
  Session session_{{.client_name = "poll_loop"}, buffers_.storage()};
  Lock locks_[3] = {{mutex_kind, ""}, {mutex_kind, "/second"}, {reentrant_kind, "/nested"}};
};

bool Loop::configure(const char* key) {
  for (Lock& lock : locks_) {
    char name[2 * key_size_max];
    const int size = std::snprintf(name, sizeof name, "%s%s", key, lock.suffix);
    // What is too long is refused below; snprintf() says how long it would have been.
    const ByteView bytes(name, size < static_cast<int>(sizeof name) ? static_cast<std::size_t>(size) : sizeof name);
    if (lock.machine.configure(Key(bytes), {.lease = lease}) != Status::ok) return false;
  }
  return true;
}

// ---- The socket --------------------------------------------------------------------------------------------------

bool Loop::connect() {
  ++connections_;
  socket_ = ::socket(address_.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return false;
  int error = 0;
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address_.bytes), address_.size) != 0) error = errno;
  if (error == EINPROGRESS) {
    pollfd entry = {.fd = socket_, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (::poll(&entry, 1, static_cast<int>(connect_timeout / 1ms)) == 1)
      (void)::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  now_ = read_clock();
  print_time();
  std::printf("%s\n", error == 0 ? "connected" : std::strerror(error));
  if (error != 0) {
    close();
    return false;
  }
  // The session is closed, and every reply has been polled: it may begin anew.
  session_.handle_connected(now_, now_ + connect_timeout);
  transmit();
  return true;
}

void Loop::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  closed_by_peer_ = false;
}

// Sleeps until something arrives or is due; never longer than a second, since timers stand still in suspend.
void Loop::wait() {
  Instant until = earlier(now_ + sleep_max, session_.poll_timeout());
  for (const Lock& lock : locks_) until = earlier(until, due(lock));
  const Duration left = until > now_ ? until - now_ : Duration::zero();
  const auto milliseconds = static_cast<int>((left + 1ms - 1ns) / 1ms);  // Upwards: too early would spin.
  pollfd entry = {.fd = socket_, .events = POLLIN, .revents = 0};
  if (session_.unsent()) entry.events = POLLIN | POLLOUT;
  (void)::poll(&entry, 1, milliseconds);  // Whatever it says, clock and socket are asked.
  now_ = read_clock();
}

void Loop::receive() {
  for (;;) {
    const MutableBytes space = session_.receive_space();
    if (space.size == 0) return;  // The session has failed.
    const ssize_t count = ::recv(socket_, space.data, space.size, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      closed_by_peer_ = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      session_.handle_drained();
      return;
    }
    now_ = read_clock();
    session_.handle_received(static_cast<std::size_t>(count), now_);
    dispatch();
  }
}

void Loop::transmit() {
  for (;;) {
    if (session_.wants_look()) receive();  // What lies in the socket is no answer to what leaves now.
    const ByteView bytes = session_.poll_transmit(now_);
    if (bytes.empty()) return;
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // Full: poll() tells when there is room. Broken: so does the next receive.
    session_.handle_transmitted(static_cast<std::size_t>(count));
  }
}

// ---- Between session and machines --------------------------------------------------------------------------------

void Loop::dispatch() {
  Reply reply;
  while (session_.poll_reply(reply, now_)) {
    Lock& lock = *static_cast<Lock*>(reply.tag.requester);
    lock.machine.handle_reply(reply, now_);
    settle(lock);
  }
}

// After each input and each command: what the machine has to say.
void Loop::settle(Lock& lock) {
  LockMachine& machine = lock.machine;
  while (machine.has_output()) {
    ReplyTag tag;
    Compensation compensation;
    if (machine.poll_compensation(tag, compensation)) {
      tag.requester = &lock;
      (void)session_.compensate(tag, compensation);  // Without a place for it, the lease ends the hold.
    }
    if (machine.wants_request()) submit(lock);
    for (LockEvent event = machine.poll_event(); event != LockEvent::none; event = machine.poll_event())
      hear(lock, event);
  }
}

void Loop::submit(Lock& lock) {
  const Session::Place place = session_.open(lock.machine.request_compensated());
  std::size_t size = 0;
  if (place.request == nullptr || lock.machine.poll_request(place.space, *place.request, size) != Status::ok) {
    lock.machine.refuse_request(session_.ready() ? Status::too_many_requests : Status::not_connected, now_);
    return;
  }
  place.request->tag.requester = &lock;
  session_.commit(*place.request, size, now_);
}

void Loop::hear(Lock& lock, LockEvent event) {
  const LockMachine& machine = lock.machine;
  const double left = static_cast<double>((machine.valid_until() - now_).count()) / 1e9;
  begin_line(lock);
  switch (event) {
    case LockEvent::none: break;
    case LockEvent::granted:
      std::printf("granted, held %u times, for %.3f s\n", machine.count(), left);
      if (machine.count() == 1) lock.next_step = now_;
      break;
    case LockEvent::denied:
      std::printf("denied: %s\n", to_string(machine.status()));
      if (machine.count() == 0) note(busy);
      break;
    case LockEvent::unclear:
      std::printf("unclear, and taken back: %s\n", to_string(machine.status()));
      note(lost);
      break;
    case LockEvent::renewed: std::printf("renewed, for %.3f s\n", left); break;
    case LockEvent::at_risk: std::printf("at risk: %s; for %.3f s yet\n", to_string(machine.status()), left); break;
    case LockEvent::lost:
      std::printf("lost\n");
      note(lost);
      break;
    case LockEvent::released:
      std::printf("released: %s, held %u times\n", to_string(machine.status()), machine.count());
      if (machine.status() != Status::ok) note(lost);
      break;
    case LockEvent::protocol_doubt:
      std::printf("a reply that cannot be\n");
      session_.fail(Status::protocol_error, "a reply of another shape than asked for");
      break;
  }
}

// ---- What we want of a lock --------------------------------------------------------------------------------------

void Loop::acquire(Lock& lock) {
  lock.asked = true;
  Token token;
  if (draw_token(token))
    (void)lock.machine.acquire(token, now_, now_ + request_timeout);  // From idle it cannot be refused.
  else
    note(no_random);
}

void Loop::advance(Lock& lock) {
  LockMachine& machine = lock.machine;
  switch (machine.state()) {
    case LockState::idle:
      if (!lock.asked && session_.ready()) acquire(lock);
      return;
    case LockState::held:
    case LockState::at_risk: break;
    case LockState::acquiring:
    case LockState::releasing:  // The session answers, at the request's deadline at the latest.
    case LockState::unknown:
    case LockState::lost: return;  // The compensation ends it.
  }
  // held() before every step that must not happen twice.
  if (lock.steps_left != 0 && now_ >= lock.next_step && machine.held(now_)) {
    begin_line(lock);
    std::printf("step %d of %d\n", steps - --lock.steps_left, steps);
    lock.next_step = now_ + step_interval;
  }
  if (machine.waiting()) return;  // One request at a time.
  const Instant deadline = now_ + request_timeout;
  // What these refuse, a hold that has just ended, the machine tells by its events.
  if (machine.kind().reentrant && !lock.nested) {
    lock.nested = true;
    (void)machine.reenter(now_, deadline);
  } else if (lock.steps_left == 0 && machine.count() > 1) {
    (void)machine.step_down(false, now_, deadline);
  } else if (lock.steps_left == 0) {
    (void)machine.release(session_.identity().native_delete, false, now_, deadline);
  } else if (now_ >= machine.renewal_due()) {
    (void)machine.renew(now_, deadline);  // Also without a connection: the machine puts the next attempt off.
  }
}

// When advance() has something to do again, or time has to be judged.
Instant Loop::due(const Lock& lock) const {
  const Instant told = lock.machine.poll_timeout();
  if (lock.machine.state() != LockState::held && lock.machine.state() != LockState::at_risk) return told;
  const Instant next = earlier(told, lock.machine.renewal_due());
  return lock.steps_left == 0 ? next : earlier(next, lock.next_step);
}

bool Loop::finished() const {
  for (const Lock& lock : locks_)
    if (!lock.asked || lock.machine.waiting() || lock.machine.held(now_)) return false;
  return session_.compensations_pending() == 0;
}

int Loop::run() {
  if (!connect()) return no_server;
  while (!finished()) {
    wait();
    receive();  // What has arrived is read before any deadline is judged.
    session_.handle_timeout(now_);
    dispatch();
    for (Lock& lock : locks_) {
      lock.machine.handle_timeout(now_);
      settle(lock);
      advance(lock);
      settle(lock);
    }
    transmit();
    if (!closed_by_peer_ && session_.state() != SessionState::failed) continue;

    close();
    session_.handle_closed();
    print_time();
    const ByteView text = session_.failure_text();
    std::printf("connection lost: %s %.*s\n", to_string(session_.failure()), static_cast<int>(text.size()),
                text.data());
    dispatch();  // Each request in flight has its outcome now. Holds go on as long as they are valid.
    if (connections_ == 2 || !connect()) {
      std::printf("No server: what is held ends by its lease.\n");
      return no_server;
    }
  }
  return result_;
}

// ---- The program -------------------------------------------------------------------------------------------------

int print_usage(std::FILE* to, int code) {
  std::fprintf(to,
               "usage: poll_loop HOST PORT KEY\n"
               "       poll_loop SOCKET-PATH KEY\n"
               "Takes KEY, KEY/second and KEY/nested, works for some seconds, and lets them go.\n"
               "exit codes: 0 all well, 64 usage, 69 no server, 71 no random bytes, 75 a lock is somebody else's,\n"
               "            79 lost or unclear\n");
  return code;
}

bool resolve(const char* host, const char* port, Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, port, &hints, &found) != 0) return false;
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);  // The first will do here.
  address.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return true;
}

bool use_path(const char* path, Address& address) {
  sockaddr_un local{};
  const std::size_t size = std::strlen(path) + 1;
  if (size > sizeof local.sun_path) return false;
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, path, size);
  std::memcpy(&address.bytes, &local, sizeof local);
  address.size = sizeof local;
  return true;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count == 2 && std::strcmp(arguments[1], "--help") == 0) return print_usage(stdout, all_well);
  if (argument_count != 3 && argument_count != 4) return print_usage(stderr, usage);
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Address address;
  const bool local = argument_count == 3;
  if (!(local ? use_path(arguments[1], address) : resolve(arguments[1], arguments[2], address))) {
    std::fprintf(stderr, "poll_loop: no such address: %s\n", arguments[1]);
    return no_server;
  }
  Loop loop(address);
  if (!loop.configure(arguments[argument_count - 1])) {
    std::fprintf(stderr, "poll_loop: a key has 1 to %zu bytes, with what is added here\n", key_size_max);
    return usage;
  }
  return loop.run();
}

// SPDX-License-Identifier: MIT
//
// Theorem: whatever waiters, the clock and the network do, in whatever order and pieces, with a server that is honest:
//   1. A connection fails by silence only.
//   2. A waiter is confirmed only while the server has its channel subscribed, refused only while it has not; and it is
//      the one or the other once all bytes are delivered. Then the server has no other channel subscribed.
//   3. No wake is lost: those who are woken are those of a simple model. 0 wakes the first of the channel's queue who is
//      not woken, 1 wakes all; who was confirmed and is so again on another connection is woken; who leaves without the
//      lock, woken or with a wake that no answer has settled, wakes the first who is not.
// And whatever a server sends:
//   4. What the table of waiters says of itself is so. This and the above with a small table and with a large one.
//   5. A failed or closed subscriber sends nothing, reads nothing, confirms nobody and asks for no timer; an open one
//      does not spin. No assertion of the library fails.
//
// Input: a program. Each step is a letter and a parameter, a digit or any byte:
//   e n  enter for lock n    s n  transmit n + 1 bytes, S all      c    connect       w    judge timeouts
//   t n  waiter n tries      v n  the server reads n + 1 commands  k    close         + n  time passes
//   d n  its try is settled  r n  receive n + 1 bytes, R all       a n  the ACL for the channel of lock n changes
//   l n  leaves, L n with    p n  publish: channel n modulo 4, payload n / 4
//   x n  the next n bytes of the input, from the server, raw       y    S, v and R    Z    forget all, as after a fork
// Spaces and line ends between steps are nothing.
#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "holdfast/core/subscriber.hpp"
#include "resp_oracle.hpp"
#include "resp_text.hpp"
#include "resp_tree.hpp"
#include "theorem.hpp"
#include "wire_pieces.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr std::size_t steps_max = 500;
constexpr std::size_t lock_count = 4;

// Two short names, one with a tag of its own, and two as long as they may be.
std::string lock_name(std::size_t lock) {
  if (lock == 0) return "k";
  if (lock == 1) return "{tag}k";
  return std::string(key_size_max, static_cast<char>('a' + lock));
}
std::string channel_name(std::size_t lock) {
  return lock == 1 ? "redisson_lock__channel:{tag}k" : "redisson_lock__channel:{" + lock_name(lock) + "}";
}

// One connection as an honest server sees it.
struct Server {
  struct Published {
    std::size_t end;  // Its place in the stream of all bytes written.
    std::string channel;
    std::string payload;
  };
  std::string inbound;
  std::string outbound;
  std::size_t written = 0;
  std::size_t read = 0;              // Of what was written, by the client.
  std::set<std::string> asked;       // A SUBSCRIBE came, and no UNSUBSCRIBE since.
  std::set<std::string> subscribed;  // And the ACL allowed it.
  std::deque<Published> published;
  bool honest = true;

  void write(const std::string& bytes) {
    outbound += bytes;
    written += bytes.size();
  }
  void publish(const std::string& channel, const std::string& payload) {
    if (!subscribed.contains(channel)) return;
    write("*3\r\n" + bulk("message") + bulk(channel) + bulk(payload));
    published.push_back({written, channel, payload});
  }
  // False: there is no whole command.
  bool execute(const std::set<std::string>& denied) {
    RespTree command;
    std::size_t size = 0;
    const OracleLimits wide = {.bulk = 1U << 20, .reply = 1U << 20};
    const ParseResult result = RespOracle::read(inbound, wide, command, size);
    HOLDFAST_THEOREM(result != ParseResult::invalid, show_bytes(inbound));
    if (result == ParseResult::need_more) return false;
    inbound.erase(0, size);
    const std::string& name = command.items[0].text;
    const std::string argument = command.items.size() > 1 ? command.items[1].text : "";
    if (name == "AUTH") {
      write("+OK\r\n");
    } else if (name == "CLIENT") {
      write("-ERR unknown command\r\n");
    } else if (name == "SUBSCRIBE") {
      asked.insert(argument);
      if (denied.contains(argument)) {
        write("-NOPERM this user has no permissions to access one of the channels used as arguments\r\n");
      } else {
        subscribed.insert(argument);
        write("*3\r\n" + bulk("subscribe") + bulk(argument) + ":" + std::to_string(subscribed.size()) + "\r\n");
      }
    } else if (name == "UNSUBSCRIBE") {
      HOLDFAST_THEOREM(asked.erase(argument) == 1, argument + " was not asked for");
      subscribed.erase(argument);
      write("*3\r\n" + bulk("unsubscribe") + bulk(argument) + ":" + std::to_string(subscribed.size()) + "\r\n");
    } else {
      HOLDFAST_THEOREM(name == "PING", name);
      write(subscribed.empty() ? "+PONG\r\n" : "*2\r\n" + bulk("pong") + bulk(""));
    }
    return true;
  }
};

// One waiter as it sees itself.
struct Waiting {
  Subscriber::Waiter* waiter;
  std::string channel;
  bool woken = false;
  bool owes = false;
  bool known = false;     // Confirmed or refused on this connection.
  bool missed = false;    // Confirmed or refused on an earlier one, and not yet on this one.
  bool doubtful = false;  // It came when the connection had failed: whether it is woken by the next does not matter.
};

class World {
 public:
  explicit World(std::size_t places)
      : waiters_(places), subscriber_({.user = "u", .password = "p", .client_name = "n"}, storage()) {}

  void run(std::string_view program) {
    rest_ = program;
    for (std::size_t step = 0; step < steps_max && !rest_.empty(); ++step) {
      const char letter = next();
      if (letter == ' ' || letter == '\n') continue;
      const auto raw = static_cast<std::uint8_t>(next());
      this->step(letter, raw >= '0' && raw <= '9' ? static_cast<std::size_t>(raw - '0') : raw);
      check();
    }
    settle();
    // One more connection: everybody is known to it, and nobody who has left.
    close();
    connect();
    settle();
    while (!queue_.empty()) leave(0, false);
    settle();
    HOLDFAST_THEOREM(server_.subscribed.empty(), trace_);
    HOLDFAST_THEOREM(subscriber_.poll_timeout() == Instant::max(), trace_);
  }

 private:
  char next() { return next_byte(rest_); }

  void step(char letter, std::size_t n) {
    static constexpr char letters[] = "etdlLckwsSvrRpa+xyZ";
    letter = letter_of(letter, letters);
    trace_ += letter + std::to_string(n) + " ";
    switch (letter) {
      case 'e': enter(n % lock_count); break;
      case 't': begin_try(n); break;
      case 'd': end_try(n); break;
      case 'l': leave(n, false); break;
      case 'L': leave(n, true); break;
      case 'c': connect(); break;
      case 'k': close(); break;
      case 'w': judge(); break;
      case 's': transmit(n + 1); break;
      case 'S': transmit(SIZE_MAX); break;
      case 'v':
        for (std::size_t count = 0; count <= n && server_.execute(denied_); ++count) continue;
        break;
      case 'r': receive(n + 1); break;
      case 'R': receive(SIZE_MAX); break;
      case 'p': {
        static const char* const payloads[] = {"0", "0", "1", "2", "", "00"};
        server_.publish(channel_name(n % lock_count), payloads[n / lock_count % 6]);
        break;
      }
      case 'a': {
        const std::string channel = channel_name(n % lock_count);
        if (!denied_.erase(channel)) denied_.insert(channel);
        break;
      }
      case '+': now_ = now_ + duration(n); break;
      case 'x': {
        const std::string bytes(rest_.substr(0, n));
        rest_.remove_prefix(bytes.size());
        trace_ += show_bytes(bytes) + " ";
        if (bytes.empty() || subscriber_.state() == SubscriberState::closed) break;
        server_.honest = false;
        server_.write(bytes);
        break;
      }
      case 'y':
        transmit(SIZE_MAX);
        while (server_.execute(denied_)) continue;
        receive(SIZE_MAX);
        break;
      case 'Z':
        subscriber_.forget();
        queue_.clear();
        server_ = {};
        break;
    }
  }

  static Duration duration(std::size_t n) {
    static constexpr Duration durations[] = {1ms, 100ms, 1s, 2s, 3s, 5s, 10s, 11s, 60s, 24h};
    return durations[n % 10];
  }

  // ---- Waiters

  void enter(std::size_t lock) {
    const std::string name = lock_name(lock);
    Subscriber::Waiter* const waiter = subscriber_.enter(redisson_announcement, Key(ByteView(name)), now_);
    if (waiter == nullptr) return;
    for (const Waiting& other : queue_) HOLDFAST_THEOREM(other.waiter != waiter, trace_);
    queue_.push_back({waiter, channel_name(lock)});
    queue_.back().doubtful = subscriber_.state() == SubscriberState::failed;
  }
  void begin_try(std::size_t n) {
    if (queue_.empty()) return;
    Waiting& waiting = queue_[n % queue_.size()];
    subscriber_.begin_try(*waiting.waiter);
    waiting.owes = waiting.owes || waiting.woken;
    waiting.woken = false;
  }
  void end_try(std::size_t n) {
    if (queue_.empty()) return;
    Waiting& waiting = queue_[n % queue_.size()];
    subscriber_.end_try(*waiting.waiter);
    waiting.owes = false;
  }
  void leave(std::size_t n, bool with_lock) {
    if (queue_.empty()) return;
    const auto place = queue_.begin() + static_cast<std::ptrdiff_t>(n % queue_.size());
    const Waiting waiting = *place;
    queue_.erase(place);
    subscriber_.leave(*waiting.waiter, with_lock);
    if (!with_lock && (waiting.woken || waiting.owes)) wake(waiting.channel, false);
    check_waiters();
  }
  void wake(const std::string& channel, bool all) {
    for (Waiting& waiting : queue_) {
      if (waiting.channel != channel || waiting.woken) continue;
      waiting.woken = true;
      if (!all) return;
    }
  }

  // ---- The driver

  void connect() {
    if (subscriber_.state() != SubscriberState::closed) return;
    server_ = {};
    for (Waiting& waiting : queue_) waiting.known = false;
    subscriber_.handle_connected(now_);
  }
  void close() {
    if (subscriber_.state() == SubscriberState::closed) return;
    subscriber_.handle_closed();
    for (Waiting& waiting : queue_) {
      waiting.missed = waiting.missed || waiting.known;
      waiting.known = false;
    }
    server_ = {};
  }
  void judge() {
    subscriber_.handle_timeout(now_);
    const SubscriberState state = subscriber_.state();
    HOLDFAST_THEOREM(state != SubscriberState::open || subscriber_.poll_timeout() > now_, trace_);
    if (state == SubscriberState::failed && server_.honest)
      HOLDFAST_THEOREM(subscriber_.failure() == Status::timed_out, trace_);
  }
  void transmit(std::size_t limit) {
    while (transmit_piece(subscriber_, now_, server_.inbound, limit)) {}
  }
  // One byte at a time, so that what the subscriber does belongs to one value.
  void receive(std::size_t limit) {
    const std::size_t count = std::min(limit, server_.outbound.size());
    for (std::size_t index = 0; index < count && subscriber_.state() == SubscriberState::open; ++index) {
      const MutableBytes space = subscriber_.receive_space();
      HOLDFAST_THEOREM(space.size != 0, trace_);
      *space.data = server_.outbound[index];
      subscriber_.handle_received(1, now_);
      ++server_.read;
      if (!server_.published.empty() && server_.published.front().end == server_.read) {
        const Server::Published& published = server_.published.front();
        if (server_.honest && (published.payload == "0" || published.payload == "1"))
          wake(published.channel, published.payload == "1");
        server_.published.pop_front();
      }
      HOLDFAST_THEOREM(!server_.honest || subscriber_.state() == SubscriberState::open,
                       trace_ + std::string(subscriber_.failure_text().string_view()));
      check_waiters();
    }
    server_.outbound.erase(0, count);
  }
  // All bytes are delivered.
  void settle() {
    if (subscriber_.state() != SubscriberState::open || !server_.honest) return;
    for (int round = 0; round < 8; ++round) step('y', 0);
    HOLDFAST_THEOREM(subscriber_.poll_transmit(now_).empty() && server_.outbound.empty(), trace_);
    std::set<std::string> wanted;
    for (const Waiting& waiting : queue_) {
      const bool confirmed = subscriber_.confirmed(*waiting.waiter);
      HOLDFAST_THEOREM(confirmed != subscriber_.refused(*waiting.waiter), trace_ + waiting.channel);
      if (confirmed) wanted.insert(waiting.channel);
    }
    HOLDFAST_THEOREM(wanted == server_.subscribed, trace_);
  }

  // ---- What must be so

  void check_waiters() {
    for (Waiting& waiting : queue_) {
      const Subscriber::Waiter& waiter = *waiting.waiter;
      const bool confirmed = subscriber_.confirmed(waiter);
      if (!server_.honest) {
        // What a liar says is as it may be; the model goes on from there.
        waiting.woken = subscriber_.woken(waiter);
        waiting.known = waiting.known || confirmed || subscriber_.refused(waiter);
        if (confirmed) waiting.missed = false;
        continue;
      }
      if (confirmed) {
        HOLDFAST_THEOREM(server_.subscribed.contains(waiting.channel), trace_ + waiting.channel);
        if (waiting.missed) waiting.woken = true;
        if (waiting.doubtful) waiting.woken = subscriber_.woken(waiter);
        waiting.doubtful = false;
        waiting.missed = false;
        waiting.known = true;
      } else if (subscriber_.state() == SubscriberState::open && subscriber_.refused(waiter)) {
        HOLDFAST_THEOREM(!server_.subscribed.contains(waiting.channel), trace_ + waiting.channel);
        waiting.known = true;
      }
      HOLDFAST_THEOREM(subscriber_.woken(waiter) == waiting.woken, trace_ + waiting.channel);
    }
  }
  void check() {
    const SubscriberState state = subscriber_.state();
    HOLDFAST_THEOREM((subscriber_.failure() == Status::ok) == (state == SubscriberState::open), trace_);
    HOLDFAST_THEOREM(subscriber_.has_waiters() == !queue_.empty(), trace_);
    HOLDFAST_THEOREM(queue_.size() <= waiters_.size(), trace_);
    HOLDFAST_THEOREM(subscriber_.invariants(), trace_);
    check_waiters();
    if (state == SubscriberState::open) return;
    HOLDFAST_THEOREM(subscriber_.poll_transmit(now_).empty(), trace_);
    HOLDFAST_THEOREM(subscriber_.receive_space().size == 0, trace_);
    HOLDFAST_THEOREM(subscriber_.poll_timeout() == Instant::max(), trace_);
    for (const Waiting& waiting : queue_) HOLDFAST_THEOREM(!subscriber_.confirmed(*waiting.waiter), trace_);
  }

  Subscriber::Storage storage() {
    Subscriber::Storage storage = buffers_.storage();
    storage.waiters = waiters_.data();
    storage.waiter_count = waiters_.size();
    return storage;
  }

  SubscriberBuffers buffers_;
  std::vector<Subscriber::Waiter> waiters_;
  Subscriber subscriber_;
  Instant now_ = Instant::from_nanoseconds(1'000'000'000'000);
  std::string_view rest_;
  Server server_;  // Of this connection.
  std::set<std::string> denied_;
  std::vector<Waiting> queue_;  // By age.
  std::string trace_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const std::size_t places : {waiters_max, std::size_t{61}})
    World(places).run({reinterpret_cast<const char*>(data), size});
  return 0;
}

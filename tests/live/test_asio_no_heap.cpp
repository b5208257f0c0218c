// SPDX-License-Identifier: MIT
//
// A loop of one thread with eight clients on it does not allocate behind their start: neither over what is usual nor over
// what goes wrong. What the tokens and handlers of users take is theirs.
#include "asio_fixture.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <deque>

#include "hands.hpp"
#include "heap_trap.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr std::size_t clients_max = 8;

// Everything below does without the heap itself. A step that fails leaves its number.
class Loop {
 public:
  explicit Loop(const std::string& url) {
    config_ = AsioWorld::patient_config(url);
    config_.request_timeout = 500ms;
    config_.stall_timeout = 2s;
    for (std::size_t index = 0; index < clients_max; ++index) clients_.emplace_back(loop_.get_executor());
  }

  [[nodiscard]] AsyncClient& client(std::size_t index) { return clients_[index]; }
  [[nodiscard]] asio::io_context& context() { return loop_; }

  template <class Condition>
  bool runs_until(Condition&& condition) {
    return ::runs_until(loop_, condition);
  }
  template <class Start>
  Status outcome_of(Start&& start) {
    Outcome outcome;
    start(outcome.handler());
    return runs_until([&] { return outcome.done(); }) ? outcome.status : Status::outcome_unknown;
  }
  Status acquire(AsyncLock& lock, Duration wait = Duration::zero()) {
    return outcome_of([&](auto handler) { lock.async_acquire(wait, handler); });
  }
  Status renew(AsyncLock& lock) {
    return outcome_of([&](auto handler) { lock.async_renew(handler); });
  }
  Status release(AsyncLock& lock) {
    return outcome_of([&](auto handler) { lock.async_release(handler); });
  }
  void connect_all() {
    for (AsyncClient& client : clients_)
      expect(Status::ok, outcome_of([&](auto handler) { client.async_connect(config_, handler); }));
  }
  void run_for(Duration duration) { ::run_for(loop_, duration); }
  bool all_connected() {
    for (AsyncClient& client : clients_)
      if (!client.connected()) return false;
    return true;
  }

  void expect(bool good) {
    ++step_;
    if (!good && failed_ == 0) failed_ = step_;
  }
  void expect(Status expected, Status actual) {
    expect(expected == actual);
    if (failed_ == step_ && actual_ == Status::ok) actual_ = actual;
  }
  [[nodiscard]] int failed() const { return failed_; }
  [[nodiscard]] Status actual() const { return actual_; }

 private:
  asio::io_context loop_{1};
  ClientConfig config_;
  std::deque<AsyncClient> clients_;
  int step_ = 0;
  int failed_ = 0;
  Status actual_ = Status::ok;
};

// Numbers of what another thread does to the server.
enum Deed { none, kill_all, flush_scripts, put_text, delete_keys, put_holder, stop, start, pause, resume };

void do_deed(RedisServer& server, int deed) {
  switch (deed) {
    case kill_all:
      server.command("CLIENT KILL TYPE normal SKIPME yes");
      server.command("CLIENT KILL TYPE pubsub");
      return;
    case flush_scripts: server.command("SCRIPT FLUSH"); return;
    case put_text: server.command("SET text text"); return;
    case delete_keys: server.command("FLUSHALL"); return;
    case put_holder:
      server.command("HSET hash somebody 1");
      server.command("SET mutex somebody");
      return;
    case stop: server.stop(); return;
    case start: server.start(); return;
    case pause: server.pause(); return;
    case resume: server.resume(); return;
    default: return;
  }
}

// Signals keep the memory that their first slot took.
struct Slots {
  asio::cancellation_signal signal;
  asio::cancellation_signal lost;
  int signalled = 0;
};

template <class Hand>
void usual_round(Loop& loop, Hand& hands, Slots& slots) {
  // Each client by itself, and all at once.
  for (std::size_t index = 0; index < clients_max; ++index) {
    AsyncMutex mutex(loop.client(index), "alone", {.lease = 20s});
    loop.expect(Status::ok, loop.acquire(mutex));
    loop.expect(Status::ok, loop.renew(mutex));
    loop.expect(Status::ok, loop.release(mutex));
    loop.expect(Status::ok, loop.acquire(mutex, 1s));
    loop.expect(Status::ok, mutex.post_release());
    Sole<AsyncFencedLock> fenced(loop.client(index), "fenced", {.lease = 20s});
    loop.expect(Status::ok, loop.acquire(fenced));
    loop.expect(Status::ok, loop.acquire(fenced));
    loop.expect(Status::ok, loop.release(fenced));
    Duration remaining{};
    loop.expect(Status::ok,
                loop.outcome_of([&](auto handler) { fenced.async_remaining_on_server(remaining, handler); }));
    loop.expect(Status::ok, loop.release(fenced));
  }
  // A wait by push, and one by poll, that are granted by a release.
  {
    Sole<AsyncReentrantLock> lock(loop.client(0), "pushed", {.lease = 20s});
    Sole<AsyncReentrantLock> waiting(loop.client(1), "pushed", {.lease = 20s});
    AsyncMutex mutex(loop.client(0), "polled", {.lease = 20s});
    AsyncMutex polling(loop.client(1), "polled", {.lease = 20s});
    loop.expect(Status::ok, loop.acquire(lock));
    loop.expect(Status::ok, loop.acquire(mutex));
    Outcome pushed;
    Outcome polled;
    waiting.async_acquire(wait_forever, pushed.handler());
    polling.async_acquire(wait_forever, polled.handler());
    loop.run_for(30ms);
    loop.expect(pushed.calls == 0 && polled.calls == 0);
    loop.expect(Status::ok, loop.release(lock));
    loop.expect(Status::ok, loop.release(mutex));
    loop.expect(loop.runs_until([&] { return pushed.done() && polled.done(); }));
    loop.expect(Status::ok, pushed.status);
    loop.expect(Status::ok, polled.status);
  }
  // Holds that are kept, on every client at the same time.
  {
    struct Kept {
      explicit Kept(AsyncClient& client, ByteView key) : lock(client, key, {.lease = 900ms}) {}
      AsyncMutex lock;
    };
    Kept kept[] = {Kept(loop.client(0), "kept0"), Kept(loop.client(1), "kept1"), Kept(loop.client(2), "kept2"),
                   Kept(loop.client(3), "kept3"), Kept(loop.client(4), "kept4"), Kept(loop.client(5), "kept5"),
                   Kept(loop.client(6), "kept6"), Kept(loop.client(7), "kept7")};
    for (Kept& it : kept) {
      loop.expect(Status::ok, it.lock.keep({.keep = Keep::always}));
      loop.expect(Status::ok, loop.acquire(it.lock));
    }
    const std::uint64_t calls = loop.client(7).renewal_calls();
    loop.expect(loop.runs_until([&] { return loop.client(7).renewal_calls() >= calls + 2; }));
    for (Kept& it : kept) loop.expect(it.lock.held());
  }
  // Waits that end by a deadline, a slot, and the lock's end; and a hold that ends by itself.
  hands.perform(put_holder);
  {
    Sole<AsyncReentrantLock> hash(loop.client(2), "hash", {.lease = 20s});
    AsyncMutex mutex(loop.client(3), "mutex", {.lease = 20s});
    loop.expect(Status::lock_busy, loop.acquire(hash, 20ms));
    loop.expect(Status::lock_busy, loop.acquire(mutex, 20ms));
    Outcome outcome;
    hash.async_acquire(wait_forever, asio::bind_cancellation_slot(slots.signal.slot(), outcome.handler()));
    loop.run_for(5ms);
    slots.signal.emit(asio::cancellation_type::terminal);
    loop.expect(loop.runs_until([&] { return outcome.done(); }));
    loop.expect(Status::cancelled, outcome.status);
    Outcome dropped;
    {
      AsyncMutex brief(loop.client(4), "mutex", {.lease = 20s});
      brief.async_acquire(wait_forever, dropped.handler());
      loop.run_for(5ms);
    }
    loop.expect(loop.runs_until([&] { return dropped.done(); }));
    AsyncMutex lost(loop.client(5), "lost", {.lease = 200ms});
    lost.set_lost_signal(&slots.lost);
    loop.expect(Status::ok, loop.acquire(lost));
    loop.expect(Status::lock_lost, loop.outcome_of([&](auto handler) { lost.async_wait_lost(handler); }));
    loop.expect(Status::lock_lost, loop.release(lost));
  }
  hands.perform(delete_keys);
}

template <class Hand>
void round_of_failures(Loop& loop, Hand& hands) {
  AsyncMutex mutex(loop.client(0), "m", {.lease = 20s});
  Sole<AsyncReentrantLock> hash(loop.client(1), "h", {.lease = 20s});
  Sole<AsyncReentrantLock> text(loop.client(2), "text", {.lease = 20s});
  Sole<AsyncReentrantLock> waiting(loop.client(3), "h", {.lease = 20s});
  AsyncMutex kept(loop.client(4), "kept", {.lease = 2s});
  loop.expect(Status::ok, kept.keep({.keep = Keep::always}));
  loop.expect(Status::ok, loop.acquire(kept));
  loop.expect(Status::not_held, loop.release(mutex));
  loop.expect(Status::not_held, loop.renew(hash));
  loop.expect(Status::invalid_argument, loop.acquire(mutex, -1s));
  hands.perform(put_text);
  loop.expect(loop.acquire(text) != Status::ok);
  hands.perform(flush_scripts);
  loop.expect(Status::ok, loop.acquire(mutex));
  loop.expect(Status::ok, loop.acquire(hash));
  loop.expect(Status::ok, loop.renew(hash));
  Outcome waited;
  waiting.async_acquire(wait_forever, waited.handler());
  loop.run_for(20ms);
  // Every connection goes, those of subscriptions too, and comes again.
  hands.perform(kill_all);
  loop.expect(loop.runs_until([&] { return !loop.all_connected(); }));
  loop.expect(loop.runs_until([&] { return loop.all_connected(); }));
  loop.expect(Status::ok, loop.renew(mutex));
  loop.expect(Status::ok, loop.release(mutex));
  loop.expect(Status::ok, loop.release(hash));
  loop.expect(loop.runs_until([&] { return waited.done(); }));
  loop.expect(Status::ok, waited.status);
  loop.expect(Status::ok, loop.release(waiting));
  // A server that does not answer, and one that is not there.
  hands.perform(pause);
  loop.expect(Status::timed_out, loop.acquire(mutex));
  hands.perform(resume);
  loop.expect(loop.runs_until([&] { return loop.client(0).compensations_pending() == 0; }));
  hands.perform(stop);
  loop.expect(loop.runs_until([&] { return !loop.all_connected(); }));
  loop.expect(loop.acquire(mutex) != Status::ok);
  loop.run_for(50ms);
  hands.perform(start);
  loop.expect(loop.runs_until([&] { return loop.all_connected(); }));
  loop.expect(Status::ok, loop.acquire(mutex, 5s));
  loop.expect(Status::ok, loop.release(mutex));
  (void)loop.release(kept);
  hands.perform(delete_keys);
}

}  // namespace

TEST_ON_SERVER(test_a_loop_of_clients_should_not_allocate) {
  prove_that_the_trap_works();
  // One for all: a server goes with the thread that started it.
  Hands hands([&](int deed) { do_deed(server, deed % 100); });
  // A number that was done is no news to them.
  struct Numbered {
    decltype(hands)& them;
    int turn = 0;
    void perform(Deed deed) { them.perform((turn += 100) + deed); }
  } numbered{hands};
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    TEST_MESSAGE("url " << url);
    Loop loop(url);
    Slots slots;
    slots.lost.slot().assign([&slots](asio::cancellation_type) { ++slots.signalled; });
    loop.connect_all();
    // What Asio takes once: its tables of timers and descriptors.
    usual_round(loop, numbered, slots);
    round_of_failures(loop, numbered);
    TEST_MESSAGE("in the first round: " << std::string(to_string(loop.actual())));
    TEST_ASSERT_EQUAL(0, loop.failed());
    std::uint64_t usual = 0;
    std::uint64_t failing = 0;
    {
      HeapTrap trap;
      usual_round(loop, numbered, slots);
      usual = trap.count();
      round_of_failures(loop, numbered);
      failing = trap.count() - usual;
    }
    TEST_MESSAGE("in the second round: " << std::string(to_string(loop.actual())));
    TEST_ASSERT_EQUAL(0, loop.failed());
    TEST_ASSERT_EQUAL(2, slots.signalled);
    TEST_ASSERT_EQUAL(0U, usual);
    TEST_ASSERT_EQUAL(0U, failing);
  }
}

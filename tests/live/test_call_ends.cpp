// SPDX-License-Identifier: MIT
//
// Every call of the blocking client ends: by its bound, by cancel() at whatever step it is, and without turning meanwhile.
// No step of it, a connect or a question to the resolver, keeps another hold from its renewal or its news of loss.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/holdfast.hpp"
#include "live_fixture.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

// ---- A network that takes its time -------------------------------------------------------------------------------

namespace {

std::atomic<int> connects_to_nowhere = 0;  // So many of the next connects over TCP never come about.
std::atomic<bool> resolver_waits = false;
std::atomic<int> questions = 0;
thread_local bool writes_late = false;
thread_local int sleeps = 0;
std::atomic<bool> late_write_goes = false;
std::atomic<bool> late_write_waits = false;
sockaddr_in nowhere{};

}  // namespace

extern "C" {
int __real_connect(int, const sockaddr*, socklen_t);
int __wrap_connect(int descriptor, const sockaddr* address, socklen_t size) {
  if (address->sa_family == AF_INET && connects_to_nowhere > 0) {
    --connects_to_nowhere;
    return __real_connect(descriptor, reinterpret_cast<const sockaddr*>(&nowhere), sizeof nowhere);
  }
  return __real_connect(descriptor, address, size);
}
int __real_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
int __wrap_getaddrinfo(const char*, const char* service, const addrinfo* hints, addrinfo** found) {
  ++questions;
  while (resolver_waits) breathe(5ms);
  return __real_getaddrinfo("127.0.0.1", service, hints, found);
}
int __real_ppoll(pollfd*, nfds_t, const timespec*, const sigset_t*);
int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* limit, const sigset_t* mask) {
  ++sleeps;
  return __real_ppoll(entries, count, limit, mask);
}
ssize_t __real_write(int, const void*, std::size_t);
ssize_t __wrap_write(int descriptor, const void* bytes, std::size_t size) {
  if (writes_late) {
    late_write_waits = true;
    while (!late_write_goes) breathe(1ms);
  }
  return __real_write(descriptor, bytes, size);
}
}

static void setUp() {
  connects_to_nowhere = 0;
  resolver_waits = false;
  questions = 0;
  writes_late = false;
  late_write_goes = false;
  late_write_waits = false;
}
static void tearDown() {
  resolver_waits = false;
  late_write_goes = true;
}

namespace {

// Accepts nobody: its queue is full, and whoever connects waits.
struct Nowhere {
  Nowhere() {
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    TEST_ASSERT_EQUAL(0, ::bind(listener, reinterpret_cast<sockaddr*>(&address), size));
    TEST_ASSERT_EQUAL(0, ::listen(listener, 0));
    TEST_ASSERT_EQUAL(0, ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size));
    for (int& filler : fillers) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      (void)__real_connect(filler, reinterpret_cast<sockaddr*>(&address), size);
    }
    nowhere = address;
  }
  ~Nowhere() {
    for (const int filler : fillers) ::close(filler);
    ::close(listener);
  }
  int listener;
  int fillers[4];
};

ClientConfig config_of(const std::string& url) {
  ClientConfig config = config_for(url);
  config.request_timeout = 500ms;
  config.stall_timeout = 20s;
  config.connect_timeout = 10s;
  return config;
}

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

// A call on a thread of its own, which is cancelled once it is where the test wants it.
struct Running {
  explicit Running(std::function<Status()> call)
      : thread([this, call = std::move(call)] {
          outcome = call();
          ended_at = Client::now();
          ended = true;
        }) {}
  ~Running() {
    if (thread.joinable()) thread.join();
  }
  // How long it went on after cancel().
  Duration cancel(Client& client) {
    const Instant cancelled_at = Client::now();
    client.cancel();
    TEST_ASSERT_TRUE(comes([&] { return ended.load(); }, 30s));
    thread.join();
    TEST_ASSERT_EQUAL(Status::cancelled, outcome);
    return ended_at - cancelled_at;
  }
  Status outcome = Status::ok;
  Instant ended_at;
  std::atomic<bool> ended = false;
  std::thread thread;
};

// A loaded machine is late; a step that waits for something else takes seconds.
constexpr Duration at_once = 400ms;

}  // namespace

// ---- cancel() ----------------------------------------------------------------------------------------------------

// Another call is not ended by it, and what the cancelled one may have acquired is taken back.
TEST_ON_SERVER(test_cancel_should_end_a_call_that_waits_for_a_reply_and_no_later_one) {
  struct Step {
    const char* name;
    bool held;
    std::function<Status(Mutex&)> call;
  };
  const Step steps[] = {{"try_acquire", false, [](Mutex& lock) { return lock.try_acquire(); }},
                        {"acquire", false, [](Mutex& lock) { return lock.acquire(20s); }},
                        {"renew", true, [](Mutex& lock) { return lock.renew(); }},
                        {"is_locked", false, [](Mutex& lock) {
                           bool locked = false;
                           return lock.is_locked(locked);
                         }}};
  for (const Step& step : steps) {
    TEST_MESSAGE(step.name);
    Proxy proxy(proxy_path(server), server.socket_path());
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(proxy.url())));
    Mutex lock(client, "k", {.lease = 60s});
    if (step.held) TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    proxy.hold_replies_of(Proxy::all);
    const std::int64_t before = proxy.requested(0);
    Running running([&] { return step.call(lock); });
    TEST_ASSERT_TRUE(comes([&] { return proxy.requested(0) > before; }));
    TEST_ASSERT_TRUE(running.cancel(client) < 500ms + at_once);
    proxy.hold_replies_of(Proxy::none);
    if (step.held) TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_SERVER(test_cancel_should_end_connect_at_once_in_the_handshake) {
  Proxy proxy(proxy_path(server), server.socket_path());
  proxy.hold_replies_of(Proxy::all);
  Client client;
  Running running([&] { return client.connect(config_of(proxy.url())); });
  TEST_ASSERT_TRUE(comes([&] { return proxy.requested(0) != 0; }));
  TEST_ASSERT_TRUE(running.cancel(client) < at_once);
  proxy.hold_replies_of(Proxy::none);
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
}

TEST_ON_SERVER(test_cancel_should_end_an_attempt_that_dials_at_once) {
  const Nowhere never;
  connects_to_nowhere = 1;
  Client client;
  Running running([&] { return client.connect(config_of(server.tcp_url())); });
  TEST_ASSERT_TRUE(comes([&] { return connects_to_nowhere == 0; }));
  TEST_ASSERT_TRUE(running.cancel(client) < at_once);
}

TEST_ON_SERVER(test_cancel_should_end_a_wait_for_a_server_that_is_down_at_once) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.unix_url())));
  server.stop();
  Mutex lock(client, "k");
  Running running([&] { return lock.acquire(30s); });
  TEST_ASSERT_TRUE(comes([&] { return !client.connected(); }));
  TEST_ASSERT_TRUE(running.cancel(client) < at_once);
  server.start();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
}

TEST_ON_SERVER(test_cancel_should_end_a_wait_whose_subscription_never_comes_about_at_once) {
  const Nowhere never;
  Client holder;
  TEST_ASSERT_EQUAL(Status::ok, holder.connect(config_of(server.unix_url())));
  Owner holders(holder);
  ReentrantLock held(holders, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, held.try_acquire());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.tcp_url())));
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 60s});
  connects_to_nowhere = 1;
  Running running([&] { return lock.acquire(30s); });
  TEST_ASSERT_TRUE(comes([&] { return connects_to_nowhere == 0; }));
  TEST_ASSERT_TRUE(running.cancel(client) < at_once);
  TEST_ASSERT_EQUAL(Status::ok, held.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
}

// A release goes on; what was cancelled before it is the next call's.
TEST_ON_SERVER(test_cancel_before_a_release_should_end_the_call_after_it) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.unix_url())));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  client.cancel();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(5s));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
}

// Nor does what a client does beside calls take it.
TEST_ON_SERVER(test_cancel_before_a_tend_should_end_the_call_after_it) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.unix_url())));
  Mutex lock(client, "k", {.lease = 20s});
  client.cancel();
  (void)client.tend();
  TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(5s));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
}

// ---- What is left ------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_what_has_ended_should_leave_no_descriptor_open) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  server.command("HSET k somebody 1");
  server.command("PEXPIRE k 60000");
  for (int round = 0; round < 3; ++round) {
    Client client;
    const std::string url = "redis://localhost:" + std::to_string(server.port());  // A resolver, too.
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(url)));
    WatchdogPlaces<1> places;
    Watchdog watchdog(places.storage());
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
    Owner owner(client);
    ReentrantLock lock(owner, "k");
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(50ms));
    Quorum<1> quorum;
    const ByteView urls[] = {ByteView(url)};
    TEST_ASSERT_EQUAL(Status::ok, quorum.connect(urls, 1, {.restart_guard = false}));
  }
  TEST_ASSERT_TRUE(comes([&] { return descriptors() == before; }));
}

// ---- Without turning ---------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_wait_after_a_cancel_should_sleep) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.unix_url())));
  server.command("SET k somebody PX 60000");
  Mutex lock(client, "k");
  // The call takes the cancel before its byte is in the pipe, where it is left.
  std::jthread canceller([&] {
    writes_late = true;
    client.cancel();
  });
  TEST_ASSERT_TRUE(comes([&] { return late_write_waits.load(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, lock.try_acquire());
  late_write_goes = true;
  canceller.join();
  const int before = sleeps;
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(1s));
  TEST_ASSERT_TRUE(sleeps - before < 200);
}

TEST_ON_SERVER(test_a_refused_subscription_should_be_tried_again_less_and_less_often, "--rename-command", "SUBSCRIBE",
               "") {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.unix_url())));
  server.command("HSET k somebody 1");
  server.command("PEXPIRE k 60000");
  Owner owner(client);
  ReentrantLock lock(owner, "k");
  const auto connections = [&] {
    const std::string info = server.command("INFO stats");
    const std::string name = "total_connections_received:";
    return std::stol(info.substr(info.find(name) + name.size()));
  };
  const long before = connections();
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(2s));
  TEST_ASSERT_TRUE(connections() - before <=
                   14);  // Pauses of 10 ms, doubled each time, the test's own question included.
}

// ---- One bound ---------------------------------------------------------------------------------------------------

// The server falls silent, or the connection is cut and none comes about, while somebody waits. Each case has a server side
// and a thread of its own, so that they wait beside each other.
struct Silence {
  static constexpr Duration wait = 2500ms;
  static constexpr Duration timeout = 2s;

  Silence(const RedisServer& where, bool by_push, bool cut, int number)
      : server(where),
        pushed(by_push),
        reconnecting(cut),
        key("k" + std::to_string(number)),
        proxy(proxy_path(where) + std::to_string(number), where.socket_path()) {
    server.command((pushed ? "HSET " : "SET ") + key + (pushed ? " somebody 1" : " somebody"));
    server.command("PEXPIRE " + key + " 60000");
    ClientConfig config = config_of(proxy.url());
    config.request_timeout = timeout;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    start = Client::now();
    running = std::make_unique<Running>([this] { return pushed ? waited->acquire(wait) : polled->acquire(wait); });
  }
  void fall_silent() {
    if (reconnecting) proxy.delay_new(60s);
    if (reconnecting) {
      proxy.cut_after(0);
    } else {
      proxy.hold_requests_of(0);
      proxy.hold_replies_of(0);
    }
  }
  void check() {
    TEST_MESSAGE("pushed: " << pushed << ", reconnecting: " << reconnecting);
    TEST_ASSERT_TRUE(comes([&] { return running->ended.load(); }, 30s));
    TEST_ASSERT_TRUE(running->outcome != Status::ok);
    TEST_ASSERT_TRUE(running->ended_at - start < wait + timeout + at_once);
    proxy.hold(false);
  }
  // Shortly before its time is over a waiter is sent into an attempt that nobody answers.
  void wake() { server.command("PUBLISH redisson_lock__channel:{" + key + "} 0"); }

  const RedisServer& server;
  bool pushed;
  bool reconnecting;
  std::string key;
  Proxy proxy;
  Client client;
  Owner owner{client};
  std::unique_ptr<ReentrantLock> waited = std::make_unique<ReentrantLock>(owner, key);
  std::unique_ptr<Mutex> polled = std::make_unique<Mutex>(client, key);
  Instant start;
  std::unique_ptr<Running> running;
};

TEST_ON_SERVER(test_acquire_should_end_by_its_wait_and_one_request_timeout_when_the_server_falls_silent) {
  Silence silences[] = {
      {server, false, false, 0}, {server, false, true, 1}, {server, true, false, 2}, {server, true, true, 3}};
  const Instant until = Client::now() + 300ms;
  TEST_ASSERT_TRUE(comes([&] { return Client::now() > until; }));
  for (Silence& silence : silences) silence.fall_silent();
  TEST_ASSERT_TRUE(comes([&] { return Client::now() > until + 1900ms; }));
  for (Silence& silence : silences) silence.wake();
  for (Silence& silence : silences) silence.check();
}

// ---- The right of way --------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_kept_hold_should_outlive_a_subscription_that_never_comes_about) {  // [rule 18]
  const Nowhere never;
  server.command("HSET other somebody 1");
  server.command("PEXPIRE other 60000");
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(server.tcp_url())));
  Owner owner(client);
  ReentrantLock kept(owner, "kept", {.lease = 900ms});
  TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  ReentrantLock waited(owner, "other");
  connects_to_nowhere = 1000;
  TEST_ASSERT_EQUAL(Status::lock_busy, waited.acquire(3s));
  TEST_ASSERT_TRUE(kept.held());
}

TEST_ON_SERVER(test_many_kept_holds_should_outlive_a_connection_that_is_slow_to_come_back) {  // [rule 18]
  constexpr std::size_t count = 300;
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of(proxy.url())));
  auto places = std::make_unique<WatchdogPlaces<count>>();
  auto watchdog = std::make_unique<Watchdog>(places->storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog->start(client));
  std::vector<std::unique_ptr<Mutex>> locks;
  for (std::size_t index = 0; index < count; ++index) {
    locks.push_back(std::make_unique<Mutex>(client, "k" + std::to_string(index), LockTiming{.lease = 3s}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->try_acquire());
    breathe(3ms);  // One comes to its turn soon after the other, at all times.
  }
  proxy.delay_new(200ms);
  const int before = proxy.connections();
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() > before; }));
  const Instant until = Client::now() + 4s;
  TEST_ASSERT_TRUE(comes([&] { return Client::now() > until; }));
  for (const auto& lock : locks) TEST_ASSERT_TRUE(lock->held());
  locks.clear();
}

// ---- A resolver that takes its time ------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_loss_should_be_told_in_time_while_the_resolver_is_asked) {  // [rule 18]
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_of("redis://somewhere:" + std::to_string(server.port()))));
  auto places = std::make_unique<WatchdogPlaces<4>>();
  auto watchdog = std::make_unique<Watchdog>(places->storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog->start(client));
  std::atomic<bool> lost = false;
  Mutex lock(client, "k", {.lease = 900ms});
  TEST_ASSERT_EQUAL(Status::ok,
                    lock.keep({.keep = Keep::always,
                               .on_lost = [](void* flag) noexcept { *static_cast<std::atomic<bool>*>(flag) = true; },
                               .context = &lost}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return watchdog->calls() != 0; }));
  resolver_waits = true;
  const int before = questions;
  server.stop();
  const Instant stopped = Client::now();
  TEST_ASSERT_TRUE(comes([&] { return questions > before; }));
  TEST_ASSERT_TRUE(comes([&] { return lost.load(); }, 900ms + at_once));
  TEST_ASSERT_TRUE(Client::now() - stopped < 900ms + at_once);
  watchdog->stop();  // It does not wait for the answer, either.
  TEST_ASSERT_TRUE(Client::now() - stopped < 900ms + 2 * at_once);
  resolver_waits = false;
  server.start();
}

TEST_ON_SERVER(test_a_quorum_should_not_wait_for_a_resolver) {
  RedisServer second(server.binary());
  resolver_waits = true;
  Quorum<3> quorum;
  const std::string by_name = "redis://somewhere:" + std::to_string(server.port());
  const std::string first = server.unix_url();
  const std::string other = second.unix_url();
  const ByteView urls[] = {first, other, by_name};
  const Instant start = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, quorum.connect(urls, 3, {.restart_guard = false}));
  RedlockMutex<3> lock(quorum, "k", {.lease = 5s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(Client::now() - start < 1500ms + at_once);
  TEST_ASSERT_EQUAL(1, questions);
  resolver_waits = false;
}

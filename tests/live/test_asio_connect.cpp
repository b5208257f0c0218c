// SPDX-License-Identifier: MIT
//
// How the Asio client comes to its connections: a resolver that takes its time, and servers that refuse subscriptions.
#include "asio_fixture.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "talk.hpp"

using namespace holdfast;

namespace {

// The host slow.test is found when the test says so.
struct SlowName {
  std::mutex mutex;
  std::condition_variable changed;
  bool answers = false;
  bool known = true;
  int asked = 0;
  int waiting = 0;
  int waiting_most = 0;

  int ask() {
    std::unique_lock lock(mutex);
    ++asked;
    if (++waiting > waiting_most) waiting_most = waiting;
    changed.wait(lock, [this] { return answers; });
    --waiting;
    return known ? 0 : EAI_NONAME;
  }
  void answer() {
    const std::lock_guard lock(mutex);
    answers = true;
    changed.notify_all();
  }
  int questions() {
    const std::lock_guard lock(mutex);
    return asked;
  }
};
std::unique_ptr<SlowName> slow_name;

// A loop that ends waits for its resolver: also at the end of a test that has failed.
struct SlowLoop : asio::io_context {
  ~SlowLoop() { slow_name->answer(); }
};

}  // namespace

extern "C" {
int __real_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
int __wrap_getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  if (host == nullptr || std::strcmp(host, "slow.test") != 0) return __real_getaddrinfo(host, port, hints, found);
  if (const int error = slow_name->ask(); error != 0) return error;
  return __real_getaddrinfo("127.0.0.1", port, hints, found);
}
}

// How often somebody was connected to by TCP.
static std::atomic<int> dials = 0;
extern "C" {
int __real_connect(int, const sockaddr*, socklen_t);
int __wrap_connect(int socket, const sockaddr* address, socklen_t size) {
  const int result = __real_connect(socket, address, size);
  if (address->sa_family == AF_INET) ++dials;
  return result;
}
}

static void setUp() { slow_name = std::make_unique<SlowName>(); }
static void tearDown() {}

namespace {

ClientConfig slow_config(const RedisServer& server, Duration connect_timeout) {
  ClientConfig config = AsioWorld::patient_config("redis://slow.test:" + std::to_string(server.port()));
  config.connect_timeout = connect_timeout;
  return config;
}

// A server that holds every lock, and answers a SUBSCRIBE as it is told to. It moves its bytes in move().
class Refuser {
 public:
  enum class Way { error, end, grant_and_end, grant };
  explicit Refuser(Way way, std::string line = {}) : way_(way), line_(std::move(line)) {}

  [[nodiscard]] std::string url() const { return talk_.url(); }
  [[nodiscard]] std::size_t connections() { return talk_.connections(); }
  [[nodiscard]] bool granted() const { return granted_; }
  void set_way(Way way) { way_ = way; }

  void move() {
    for (std::size_t number = 0; number < talk_.connections(); ++number) {
      for (const char* const word : {"SETNAME", "master_replid", "\r\nEVALSHA\r\n", "SUBSCRIBE"})
        while (talk_.hears(number, word)) answer(number, word);
    }
  }

 private:
  void answer(std::size_t number, const std::string& word) {
    if (word == "SETNAME") return talk_.say(number, "+OK\r\n");
    if (word == "master_replid") return talk_.say(number, ":7\r\n-ERR unknown command\r\n");
    if (word != "SUBSCRIBE") return talk_.say(number, ":60000\r\n");
    if (way_ == Way::error) talk_.say(number, line_ + "\r\n");
    if (way_ == Way::grant || way_ == Way::grant_and_end) {
      talk_.say(number, "*3\r\n$9\r\nsubscribe\r\n$26\r\nredisson_lock__channel:{k}\r\n:1\r\n");
      granted_ = way_ == Way::grant;
    }
    if (way_ == Way::end || way_ == Way::grant_and_end) talk_.hang_up(number);
  }

  Talk talk_;
  Way way_;
  std::string line_;
  bool granted_ = false;
};

}  // namespace

namespace {

// The one node of a cluster, which holds every lock. It accepts when it is told to; whoever comes while one waits for that, waits
// with his SYN.
class SlowNode {
 public:
  SlowNode() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    if (::bind(listener_, where(), size) != 0 || ::listen(listener_, 0) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size) != 0)
      throw std::runtime_error("nobody can listen");
  }
  ~SlowNode() {
    for (const int caller : callers_) ::close(caller);
    if (idler_ >= 0) ::close(idler_);
    ::close(listener_);
  }
  SlowNode(const SlowNode&) = delete;
  SlowNode& operator=(const SlowNode&) = delete;

  [[nodiscard]] std::string host() const { return "slow.test:" + std::to_string(::ntohs(address_.sin_port)); }
  // One that waits to be accepted, and says nothing.
  void fill() {
    idler_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT_EQUAL(0, ::connect(idler_, where(), sizeof address_));
  }
  // Callers so far.
  std::size_t accept() {
    for (int caller = -1; (caller = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
      callers_.push_back(caller);
    return callers_.size();
  }
  // The caller has said this since the last time that he was asked.
  [[nodiscard]] bool hears(std::size_t number, const char* words) {
    char bytes[4096];
    for (ssize_t count = 0; (count = ::recv(callers_[number], bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      heard_.append(bytes, static_cast<std::size_t>(count));
    const std::size_t at = heard_.find(words);
    if (at == std::string::npos) return false;
    heard_.erase(0, at);
    return true;
  }
  void say(std::size_t number, const std::string& words) {
    TEST_ASSERT_EQUAL(static_cast<ssize_t>(words.size()),
                      ::send(callers_[number], words.data(), words.size(), MSG_NOSIGNAL));
  }
  void introduce(std::size_t number) {
    say(number, "+OK\r\n:7\r\n*6\r\n$40\r\n" + std::string(40, 'f') +
                    "\r\n$3\r\n100\r\n$6\r\n7.0.15\r\n$0\r\n\r\n$40\r\n" + std::string(40, '0') +
                    "\r\n$15\r\n-1clustermaster\r\n");
  }
  void hang_up(std::size_t number) { ::shutdown(callers_[number], SHUT_RDWR); }
  [[nodiscard]] bool is_left_by(std::size_t number) {
    char byte = 0;
    return ::recv(callers_[number], &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  [[nodiscard]] const sockaddr* where() const { return reinterpret_cast<const sockaddr*>(&address_); }

  int listener_;
  int idler_ = -1;
  sockaddr_in address_{};
  std::vector<int> callers_;
  std::string heard_;
};

}  // namespace

// ---- Names -------------------------------------------------------------------------------------------------------

// [issue 10, 11] The deadline is the attempt's, and not the question's: that is asked once, and its answer is used.
TEST_ON_SERVER(test_the_answer_of_a_late_resolver_should_be_used) {
  SlowLoop loop;
  AsyncClient client(loop.get_executor());
  Outcome connected;
  const Instant start = Client::now();
  client.async_connect(slow_config(server, 50ms), connected.handler());
  AsyncMutex lock(client, "k", {.lease = 60s});
  Outcome acquired;
  lock.async_acquire(wait_forever, acquired.handler());
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return connected.done(); }));
  TEST_ASSERT_EQUAL(Status::name_not_resolved, connected.status);
  TEST_ASSERT_TRUE(Client::now() - start >= 50ms);
  // Every attempt that waits for the answer in vain says so.
  AsyncMutex impatient(client, "k", {.lease = 60s});
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Instant asked_at = Client::now();
    TEST_ASSERT_EQUAL(Status::name_not_resolved, acquire(loop, impatient));
    TEST_ASSERT_TRUE(Client::now() - asked_at < 3s);
    run_for(loop, 100ms);
  }
  TEST_ASSERT_EQUAL(1, slow_name->questions());
  TEST_ASSERT_EQUAL(0, acquired.calls);
  slow_name->answer();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return acquired.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, acquired.status);
  TEST_ASSERT_TRUE(client.connected());
  TEST_ASSERT_EQUAL(1, slow_name->questions());
  TEST_ASSERT_EQUAL(Status::ok, release(loop, lock));
}

// The attempt that waits for it has its whole time still, once the answer has come.
TEST_ON_SERVER(test_the_time_of_the_resolver_should_not_be_that_of_the_attempt) {
  SlowLoop loop;
  AsyncClient client(loop.get_executor());
  Outcome connected;
  client.async_connect(slow_config(server, 2s), connected.handler());
  std::thread resolver([] {
    breathe(1900ms);
    slow_name->answer();
  });
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return connected.done(); }));
  resolver.join();
  TEST_ASSERT_EQUAL(Status::ok, connected.status);
  TEST_ASSERT_EQUAL(1, slow_name->questions());
}

TEST_ON_SERVER(test_a_name_that_is_not_there_should_be_asked_for_again_and_again_but_not_in_a_hurry) {
  slow_name->known = false;
  slow_name->answer();
  SlowLoop loop;
  AsyncClient client(loop.get_executor());
  TEST_ASSERT_EQUAL(Status::name_not_resolved, connect(loop, client, slow_config(server, 5s)));
  AsyncMutex lock(client, "k", {.lease = 60s});
  Outcome acquired;
  lock.async_acquire(wait_forever, acquired.handler());
  run_for(loop, 500ms);
  TEST_ASSERT_TRUE(slow_name->questions() >= 2 && slow_name->questions() <= 10);
  slow_name->known = true;
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return acquired.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, acquired.status);
  TEST_ASSERT_EQUAL(1, slow_name->waiting_most);
}

// A server that comes back is found where it was, also while the resolver thinks about it.
TEST_ON_SERVER(test_a_known_address_should_not_wait_for_a_slow_resolver) {
  slow_name->answer();
  SlowLoop loop;
  AsyncClient client(loop.get_executor());
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, client, slow_config(server, 50ms)));
  AsyncMutex lock(client, "k", {.lease = 60s});
  slow_name->answers = false;
  server.stop();
  Outcome acquired;
  lock.async_acquire(wait_forever, acquired.handler());
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return slow_name->questions() == 2; }));
  run_for(loop, 300ms);
  server.start();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return acquired.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, acquired.status);
  TEST_ASSERT_EQUAL(2, slow_name->questions());
  slow_name->answer();
  run_for(loop, 50ms);
  TEST_ASSERT_TRUE(client.connected());
  TEST_ASSERT_EQUAL(Status::ok, release(loop, lock));
}

// What is found out for nobody any more is not taken for something else.
TEST_ON_SERVER(test_a_late_answer_should_not_disturb_another_configuration) {
  SlowLoop loop;
  std::optional<AsyncClient> client(std::in_place, loop.get_executor());
  Outcome first;
  client->async_connect(slow_config(server, 50ms), first.handler());
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return first.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, *client, AsioWorld::patient_config(server.unix_url())));
  slow_name->answer();
  AsyncMutex lock(*client, "k", {.lease = 60s});
  run_for(loop, 50ms);
  TEST_ASSERT_TRUE(client->connected());
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, lock));
  TEST_ASSERT_EQUAL(Status::ok, release(loop, lock));
  // Nor somebody who has gone.
  slow_name->answers = false;
  client->async_connect(slow_config(server, 50ms), [](std::error_code) {});
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return slow_name->questions() == 2; }));
  client.reset();
  slow_name->answer();
  loop.restart();
  loop.run();
}

// A connection for subscriptions that comes about when its client is on its way to another host, or to the same one anew, and does
// not know its address yet: nothing of that one's is right for it.
TEST(test_a_subscription_that_connects_late_should_not_disturb_a_client_that_looks_for_its_server) {
  slow_name->answer();
  SlowNode node;
  Cluster cluster({.hosts = node.host(), .name = "k"});
  ClientConfig config;
  config.topology = &cluster;
  config.connect_timeout = config.request_timeout = 20s;
  SlowLoop loop;
  AsyncClient client(loop.get_executor());
  client.async_connect(config, [](std::error_code) {});
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return node.accept() == 1 && node.hears(0, "run_id"); }));
  node.introduce(0);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return client.connected(); }));
  Sole<AsyncReentrantLock> lock(client, "k", LockTiming{.lease = 60s});
  Outcome acquired;
  lock.async_acquire(wait_forever, acquired.handler());
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return node.hears(0, "EVALSHA"); }));
  node.fill();
  const int before = dials;
  node.say(0, ":60000\r\n");
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return dials == before + 1; }));
  {
    const std::lock_guard guard(slow_name->mutex);
    slow_name->answers = false;
  }
  const int asked = slow_name->questions();
  node.hang_up(0);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return slow_name->questions() == asked + 1; }));
  // The idle one, and then that for subscriptions.
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return node.accept() == 3; }));
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return node.is_left_by(2); }));
  slow_name->answer();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return node.accept() == 4 && node.hears(3, "run_id"); }));
  node.introduce(3);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return client.connected(); }));
}

// ---- Subscriptions -----------------------------------------------------------------------------------------------

// [issue 10, 16] A server that answers, but not with a subscription, is left alone for longer and longer.
TEST(test_a_refused_subscription_should_be_tried_again_less_and_less_often) {
  std::deque<Refuser> servers;
  servers.emplace_back(Refuser::Way::error, "-BUSY Redis is busy running a script.");
  servers.emplace_back(Refuser::Way::error, "-LOADING Redis is loading the dataset in memory");
  servers.emplace_back(Refuser::Way::error, "-ERR unknown command 'SUBSCRIBE'");
  servers.emplace_back(Refuser::Way::end);
  servers.emplace_back(Refuser::Way::grant_and_end);
  asio::io_context loop;
  std::deque<AsyncClient> clients;
  std::deque<Sole<AsyncReentrantLock>> locks;
  std::deque<Outcome> outcomes;
  const auto all = [&](auto condition) {
    return runs_until(loop, [&] {
      bool good = true;
      for (Refuser& server : servers) {
        server.move();
        good = good && condition(server);
      }
      return good;
    });
  };
  for (Refuser& server : servers) {
    AsyncClient& client = clients.emplace_back(loop.get_executor());
    client.async_connect(AsioWorld::patient_config(server.url()), [](std::error_code) {});
    for (int waiter = 0; waiter < 10; ++waiter) {
      locks.emplace_back(client, "k", LockTiming{.lease = 60s});
      locks.back().async_acquire(wait_forever, outcomes.emplace_back().handler());
    }
  }
  const Instant until = Client::now() + 2s;
  TEST_ASSERT_TRUE(all([&](Refuser&) { return Client::now() >= until; }));
  for (Refuser& server : servers) {
    TEST_MESSAGE("connections " << server.connections());
    TEST_ASSERT_TRUE(server.connections() >= 4);  // It is not given up either,
    TEST_ASSERT_TRUE(server.connections() <= 14);
    server.set_way(Refuser::Way::grant);
  }
  TEST_ASSERT_TRUE(all([](const Refuser& server) { return server.granted(); }));  // and found when it is well again.
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(0, outcome.calls);
}

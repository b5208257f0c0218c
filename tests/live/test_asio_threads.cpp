// SPDX-License-Identifier: MIT
//
// A loop that four threads run: the client lives on a strand, and its locks are used from all threads. For TSan.
#include "asio_fixture.hpp"

#include <asio/bind_executor.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/use_future.hpp>
#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// A loop and its threads, a strand, and what is done on it.
class Threads {
 public:
  explicit Threads(int count) : work_(asio::make_work_guard(loop_)), strand_(asio::make_strand(loop_)) {
    for (int index = 0; index < count; ++index) runners_.emplace_back([this] { loop_.run(); });
  }
  ~Threads() {
    work_.reset();
    for (std::thread& runner : runners_) runner.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  [[nodiscard]] const asio::strand<asio::io_context::executor_type>& strand() const { return strand_; }

  // Does it on the strand, and waits until it is done.
  template <class Work>
  void on_strand(Work&& work) {
    std::promise<void> done;
    asio::post(strand_, [&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  // The outcome of what is started on the strand.
  template <class Start>
  Status outcome_of(Start&& start) {
    std::promise<Status> outcome;
    asio::post(strand_, [&] { start([&](std::error_code error) { outcome.set_value(to_status(error)); }); });
    return outcome.get_future().get();
  }

 private:
  asio::io_context loop_{4};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::strand<asio::io_context::executor_type> strand_;
  std::vector<std::thread> runners_;
};

// A future without an exception, whose count of references TSan does not see.
const auto future_status = asio::use_future([](std::error_code error) { return to_status(error); });

}  // namespace

TEST_ON_SERVER(test_locks_should_be_used_from_any_thread) {
  Threads threads(4);
  std::optional<AsyncClient> client;
  std::deque<Sole<AsyncReentrantLock>> shared;
  std::deque<AsyncMutex> own;
  std::optional<AsyncMutex> brief;  // It is renewed all the time.
  constexpr std::size_t users = 4;
  threads.on_strand([&] {
    client.emplace(threads.strand());
    brief.emplace(*client, "brief", LockTiming{.lease = 200ms});
    TEST_ASSERT_EQUAL(Status::ok, brief->keep({.keep = Keep::always}));
    for (std::size_t user = 0; user < users; ++user) {
      shared.emplace_back(*client, "shared", LockTiming{.lease = 30s});
      own.emplace_back(*client, ByteView("own" + std::to_string(user)), LockTiming{.lease = 3s});
      TEST_ASSERT_EQUAL(Status::ok, own.back().keep({.keep = Keep::always, .liveness = 10s}));
    }
  });
  // Questions of any thread, from before the first connection on.
  std::atomic<bool> done = false;
  std::atomic<int> answers = 0;
  std::thread watcher([&] {
    while (!done) {
      for (std::size_t user = 0; user < users; ++user) {
        answers += shared[user].held() || own[user].held() ? 1 : 0;
        answers += own[user].at_risk() ? 1 : 0;
        answers += own[user].remaining() > 0s && own[user].valid_until() > Client::now() ? 1 : 0;
        own[user].tick();
      }
      breathe(200us);
    }
  });
  const ClientConfig config = AsioWorld::patient_config(server.unix_url());
  const Status connected = threads.outcome_of([&](auto handler) { client->async_connect(config, handler); });
  std::atomic<int> inside = 0;
  std::atomic<int> failures = connected == Status::ok ? 0 : 1;
  std::vector<std::thread> workers;
  for (std::size_t user = 0; user < users; ++user)
    workers.emplace_back([&, user] {
      const auto mine = on_any_thread(own[user]);
      const auto ours = on_any_thread(shared[user]);
      const auto expect = [&](Status expected, Status actual) { failures += expected == actual ? 0 : 1; };
      for (int round = 0; round < 10; ++round) {
        expect(Status::ok, mine.async_try_acquire(future_status).get());
        expect(Status::ok, ours.async_acquire(patience, future_status).get());
        failures += inside.fetch_add(1) == 0 ? 0 : 1;
        expect(Status::ok, ours.async_renew(future_status).get());
        inside.fetch_sub(1);
        expect(Status::ok, ours.async_release(future_status).get());
        expect(Status::not_held, ours.async_release(future_status).get());
        expect(Status::ok, mine.async_release(future_status).get());
      }
    });
  std::uint64_t renewals = 0;
  const bool renewed = comes([&] {
    if (!brief->held()) (void)on_any_thread(*brief).async_try_acquire(future_status).get();
    threads.on_strand([&] { renewals = client->renewal_calls(); });
    return renewals >= 2;
  });
  for (std::thread& worker : workers) worker.join();
  done = true;
  watcher.join();
  threads.on_strand([&] {
    brief.reset();
    own.clear();
    shared.clear();
    client.reset();
  });
  TEST_ASSERT_TRUE(renewed);
  TEST_ASSERT_EQUAL(0, failures);
  TEST_ASSERT_TRUE(answers > 0);
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}

// What waits when the locks and the client go is told so on other threads.
TEST_ON_SERVER(test_a_client_should_go_while_other_threads_wait) {
  Threads threads(4);
  server.command("SET busy somebody");
  server.command("HSET hash somebody 1");
  for (int round = 0; round < 5; ++round) {
    TEST_MESSAGE("round " << round);
    auto client = std::make_unique<AsyncClient>(threads.strand());
    auto mutex = std::make_unique<AsyncMutex>(*client, "busy");
    auto hash = std::make_unique<Sole<AsyncReentrantLock>>(*client, "hash");
    auto held = std::make_unique<AsyncMutex>(*client, "held", LockTiming{.lease = 30s});
    const ClientConfig config = AsioWorld::patient_config(server.tcp_url());
    TEST_ASSERT_EQUAL(Status::ok, threads.outcome_of([&](auto handler) { client->async_connect(config, handler); }));
    TEST_ASSERT_EQUAL(Status::ok, on_any_thread(*held).async_acquire(1s, future_status).get());
    std::future<Status> waits[] = {on_any_thread(*mutex).async_acquire(wait_forever, future_status),
                                   on_any_thread(*hash).async_acquire(wait_forever, future_status),
                                   on_any_thread(*held).async_wait_lost(future_status)};
    breathe(std::chrono::milliseconds(4 * round));
    if (round % 2 == 0)
      threads.on_strand([&] {
        mutex.reset();
        hash.reset();
        held.reset();
        client.reset();
      });
    else
      threads.on_strand([&] {
        client.reset();
        mutex.reset();
        hash.reset();
        held.reset();
      });
    TEST_ASSERT_EQUAL(Status::cancelled, waits[0].get());
    TEST_ASSERT_EQUAL(Status::cancelled, waits[1].get());
    const Status lost = waits[2].get();
    TEST_ASSERT_TRUE(lost == Status::cancelled || lost == Status::ok);
    TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS held") == "0"; }));
  }
}

// A handler of another loop's, with that loop's thread.
TEST_ON_SERVER(test_a_handler_should_come_home_to_its_own_thread) {
  Threads threads(4);
  std::optional<AsyncClient> client;
  std::optional<AsyncMutex> lock;
  threads.on_strand([&] {
    client.emplace(threads.strand());
    lock.emplace(*client, "k", LockTiming{.lease = 30s});
  });
  const ClientConfig config = AsioWorld::patient_config(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, threads.outcome_of([&](auto handler) { client->async_connect(config, handler); }));
  asio::io_context home;
  for (int round = 0; round < 20; ++round) {
    Outcome acquired;
    Outcome released;
    std::thread::id thread;
    on_any_thread(*lock).async_acquire(
        patience, asio::bind_executor(home.get_executor(), [&](std::error_code error) {
          acquired.handler()(error);
          thread = std::this_thread::get_id();
          on_any_thread(*lock).async_release(asio::bind_executor(home.get_executor(), released.handler()));
        }));
    home.restart();
    home.run();  // It has work until both are told.
    TEST_ASSERT_EQUAL(Status::ok, acquired.status);
    TEST_ASSERT_EQUAL(1, released.calls);
    TEST_ASSERT_EQUAL(Status::ok, released.status);
    TEST_ASSERT_TRUE(thread == std::this_thread::get_id());
  }
  threads.on_strand([&] {
    lock.reset();
    client.reset();
  });
}

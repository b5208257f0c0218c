// SPDX-License-Identifier: MIT
#include "flight_contenders.hpp"

#include <hiredis/async.h>
#include <poll.h>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "holdfast/asio.hpp"
#include "holdfast/holdfast.hpp"
#include "pair_requests.hpp"
#include "raw_client.hpp"

namespace bench {

namespace {

void await_events(int descriptor, bool writing) {
  pollfd waiting = {.fd = descriptor, .events = static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), .revents = 0};
  constexpr int patience = 5000;
  expect(::poll(&waiting, 1, patience) == 1, "nothing comes from the server");
}

// How many pairs of a run have begun, and how many are done.
struct Progress {
  std::size_t wanted = 0;
  std::size_t begun = 0;
  std::size_t done = 0;
};

}  // namespace

// ---- Raw ---------------------------------------------------------------------------------------------------------

namespace {

class RawFlight {
 public:
  explicit RawFlight(const Flight& flight) : socket_(flight.address) {
    load_script(socket_, holdfast::scripts::mutex_release);
    for (std::size_t index = 0; index < flight.in_flight; ++index) {
      const std::string key = next_key();
      keys_.push_back({PreparedRequest(set_arguments(key)), PreparedRequest(release_arguments(flight.release, key))});
    }
    ring_.resize(flight.in_flight);
  }

  void run(std::size_t count) {
    progress_ = {.wanted = count};
    first_ = asked_ = 0;
    for (std::uint32_t key = 0; key < keys_.size() && progress_.begun < count; ++key) acquire(key);
    send();
    while (progress_.done < count) {
      await_events(socket_.descriptor(), !unsent_.empty());
      receive();
      send();
    }
  }

 private:
  struct Key {
    PreparedRequest acquire;
    PreparedRequest release;
    const char* token = nullptr;
  };
  struct Asked {
    std::uint32_t key;
    bool releases;
  };

  void acquire(std::uint32_t key) {
    ++progress_.begun;
    keys_[key].token = tokens_.next();
    unsent_ += keys_[key].acquire.with_token(keys_[key].token);
    note(key, false);
  }
  void release(std::uint32_t key) {
    unsent_ += keys_[key].release.with_token(keys_[key].token);
    note(key, true);
  }
  void note(std::uint32_t key, bool releases) {
    ring_[asked_] = {key, releases};
    if (++asked_ == ring_.size()) asked_ = 0;
  }

  // Each line is a reply, to whoever has waited longest.
  void receive() {
    char bytes[16 * 1024];
    const ssize_t count = ::recv(socket_.descriptor(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    expect(count > 0, "no reply");
    for (ssize_t at = 0; at < count; ++at) {
      if (bytes[at] != '\n') continue;
      const Asked answered = ring_[first_];
      if (++first_ == ring_.size()) first_ = 0;
      if (!answered.releases) {
        release(answered.key);
      } else {
        ++progress_.done;
        if (progress_.begun < progress_.wanted) acquire(answered.key);
      }
    }
  }

  void send() {
    if (unsent_.empty()) return;
    const ssize_t count = ::send(socket_.descriptor(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) return;
    expect(count > 0, "cannot send");
    unsent_.erase(0, static_cast<std::size_t>(count));
  }

  RawSocket socket_;
  std::vector<Key> keys_;
  std::vector<Asked> ring_;  // Those that are answered next, in their order.
  std::size_t first_ = 0;
  std::size_t asked_ = 0;
  TokenTable tokens_;
  std::string unsent_;
  Progress progress_;
};

}  // namespace

PairedRounds::Run raw_flight(const Flight& flight) {
  return [raw = std::make_shared<RawFlight>(flight)](std::size_t count) { raw->run(count); };
}

// ---- hiredis -----------------------------------------------------------------------------------------------------

namespace {

class HiredisFlight {
 public:
  explicit HiredisFlight(const Flight& flight)
      : context_(flight.address.socket_path.empty() ? redisAsyncConnect("127.0.0.1", flight.address.port)
                                                    : redisAsyncConnectUnix(flight.address.socket_path.c_str())) {
    expect(context_ != nullptr && context_->err == 0, "hiredis cannot connect to the server");
    RawSocket socket(flight.address);
    load_script(socket, holdfast::scripts::mutex_release);
    context_->ev.data = this;
    context_->ev.addRead = [](void*) {};  // It always reads.
    context_->ev.addWrite = [](void* flight_of) { static_cast<HiredisFlight*>(flight_of)->writing_ = true; };
    context_->ev.delWrite = [](void* flight_of) { static_cast<HiredisFlight*>(flight_of)->writing_ = false; };
    writing_ = true;  // Which is how it learns that it is connected.
    for (std::size_t index = 0; index < flight.in_flight; ++index) {
      const std::string key = next_key();
      keys_.emplace_back(*this, set_arguments(key), release_arguments(flight.release, key));
    }
  }
  ~HiredisFlight() { redisAsyncFree(context_); }
  HiredisFlight(const HiredisFlight&) = delete;
  HiredisFlight& operator=(const HiredisFlight&) = delete;

  void run(std::size_t count) {
    progress_ = {.wanted = count};
    for (Key& key : keys_)
      if (progress_.begun < count) acquire(key);
    while (progress_.done < count) {
      if (writing_) redisAsyncHandleWrite(context_);
      await_events(context_->c.fd, writing_);
      redisAsyncHandleRead(context_);
    }
  }

 private:
  struct Key {
    Key(HiredisFlight& its_flight, std::vector<std::string> acquiring, std::vector<std::string> releasing)
        : flight(&its_flight), acquire(std::move(acquiring)), release(std::move(releasing)) {}
    HiredisFlight* flight;
    ArgumentVectors acquire;
    ArgumentVectors release;
    const char* token = nullptr;
  };

  void ask(Key& key, ArgumentVectors& arguments, redisCallbackFn* callback) {
    arguments.set_token(key.token);
    expect(redisAsyncCommandArgv(context_, callback, &key, arguments.count(), arguments.pointers(),
                                 arguments.sizes()) == REDIS_OK,
           "hiredis refuses a command");
  }
  void acquire(Key& key) {
    ++progress_.begun;
    key.token = tokens_.next();
    ask(key, key.acquire, [](redisAsyncContext*, void* reply, void* its_key) {
      expect(reply != nullptr && static_cast<redisReply*>(reply)->type == REDIS_REPLY_STATUS, "hiredis: not acquired");
      Key& granted = *static_cast<Key*>(its_key);
      granted.flight->release(granted);
    });
  }
  void release(Key& key) {
    ask(key, key.release, [](redisAsyncContext*, void* reply, void* its_key) {
      // On the way down everything that waits is called with nothing.
      if (reply == nullptr) return;
      expect(static_cast<redisReply*>(reply)->type == REDIS_REPLY_INTEGER, "hiredis: not released");
      HiredisFlight& flight = *static_cast<Key*>(its_key)->flight;
      ++flight.progress_.done;
      if (flight.progress_.begun < flight.progress_.wanted) flight.acquire(*static_cast<Key*>(its_key));
    });
  }

  redisAsyncContext* context_;
  std::deque<Key> keys_;
  TokenTable tokens_;
  bool writing_ = false;
  Progress progress_;
};

}  // namespace

PairedRounds::Run hiredis_flight(const Flight& flight) {
  return [pairs = std::make_shared<HiredisFlight>(flight)](std::size_t count) { pairs->run(count); };
}

// ---- holdfast ----------------------------------------------------------------------------------------------------

namespace {

void expect_ok(const std::error_code& error) {
  if (error) [[unlikely]]
    throw std::system_error(error, "holdfast");
}

class HoldfastFlight {
 public:
  explicit HoldfastFlight(const Flight& flight)
      : client_(loop_.get_executor(),
                // Each acquire keeps a second place, for its compensation.
                {.operations = flight.in_flight + 1, .requests = 2 * flight.in_flight + 2, .kept = 0}) {
    holdfast::ClientConfig config;
    config.port = static_cast<std::uint16_t>(flight.address.port);
    config.socket_path.assign(flight.address.socket_path);
    config.request_timeout = config.stall_timeout = std::chrono::seconds(20);  // A busy machine is no failure.
    client_.async_connect(config, [this](std::error_code error) {
      expect_ok(error);
      loop_.stop();
    });
    loop_.run();
    for (std::size_t index = 0; index < flight.in_flight; ++index)
      locks_.emplace_back(client_, next_key(), holdfast::LockTiming{.lease = std::chrono::seconds(30)});
  }

  void run_callbacks(std::size_t count) {
    begin(count);
    for (holdfast::AsyncMutex& lock : locks_)
      if (progress_.begun < count) acquire(lock);
    loop_.run();
  }

  void run_coroutines(std::size_t count) {
    begin(count);
    for (holdfast::AsyncMutex& lock : locks_)
      asio::co_spawn(loop_, work(lock), [](const std::exception_ptr& failure) {
        if (failure != nullptr) std::rethrow_exception(failure);
      });
    loop_.run();
  }

 private:
  void begin(std::size_t count) {
    progress_ = {.wanted = count};
    loop_.restart();
  }
  void note_done() {
    if (++progress_.done == progress_.wanted) loop_.stop();
  }

  void acquire(holdfast::AsyncMutex& lock) {
    ++progress_.begun;
    lock.async_try_acquire([this, &lock](std::error_code error) {
      expect_ok(error);
      lock.async_release([this, &lock](std::error_code failure) {
        expect_ok(failure);
        note_done();
        if (progress_.begun < progress_.wanted) acquire(lock);
      });
    });
  }

  asio::awaitable<void> work(holdfast::AsyncMutex& lock) {
    while (progress_.begun < progress_.wanted) {
      ++progress_.begun;
      co_await lock.async_try_acquire(asio::use_awaitable);
      co_await lock.async_release(asio::use_awaitable);
      note_done();
    }
  }

  asio::io_context loop_{1};
  holdfast::AsyncClient client_;
  std::deque<holdfast::AsyncMutex> locks_;
  Progress progress_;
};

}  // namespace

PairedRounds::Run callback_flight(const Flight& flight) {
  return [pairs = std::make_shared<HoldfastFlight>(flight)](std::size_t count) { pairs->run_callbacks(count); };
}

PairedRounds::Run coroutine_flight(const Flight& flight) {
  return [pairs = std::make_shared<HoldfastFlight>(flight)](std::size_t count) { pairs->run_coroutines(count); };
}

std::string default_release(const Address& address) {
  holdfast::Client client;
  holdfast::ClientConfig config;
  config.port = static_cast<std::uint16_t>(address.port);
  config.socket_path.assign(address.socket_path);
  if (client.connect(config) != holdfast::Status::ok) throw std::runtime_error("cannot connect");
  switch (client.server().native_delete) {
    case holdfast::NativeDelete::none: break;
    case holdfast::NativeDelete::delex: return "DELEX";
    case holdfast::NativeDelete::delifeq: return "DELIFEQ";
  }
  return "script";
}

}  // namespace bench

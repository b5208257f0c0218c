// SPDX-License-Identifier: MIT
//
// The Asio client behind the names and signatures of the blocking one, so that one suite of tests is run over both. A call
// starts the operation on a loop of the client's own and runs the loop until the operation is completed; between two calls
// nothing runs, as with the blocking client. tend() takes a turn. A watchdog is a thread that runs the loop, and calls go to
// that thread meanwhile; with HOLDFAST_LOOP_THREAD in the environment every loop has one from the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/fair_kind.hpp"
#include "holdfast/core/inquiry.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/read_write_kind.hpp"
#include "holdfast/core/semaphore_kind.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/status.hpp"

namespace asio {
class io_context;
}
namespace holdfast {
class AsyncClient;
class AsyncHoldOwner;
class AsyncLock;
class AsyncReadWriteLock;
}  // namespace holdfast

namespace async_face {

using Handler = std::function<void(std::error_code)>;

// An io_context, and who runs it.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Starts an operation and runs the loop, or waits for its thread, until the handler is called.
  [[nodiscard]] holdfast::Status complete(const std::function<void(Handler)>& start);
  // Where the loop runs, and done when this returns.
  void call(const std::function<void()>& function);
  // Soon, by whoever runs the loop. Any thread.
  void post(std::function<void()> function);
  // What can be done without waiting, where no thread does it.
  void poll();
  void start_thread();
  void stop_thread();
  [[nodiscard]] asio::io_context& context() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

class Watchdog;

class Client {
 public:
  Client();
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] holdfast::Status connect(const holdfast::ClientConfig& config);
  [[nodiscard]] holdfast::Status connect(holdfast::BytesArgument url);
  void close();
  [[nodiscard]] bool connected() const;
  [[nodiscard]] holdfast::ClientConfig config() const;
  [[nodiscard]] const holdfast::ServerIdentity& server() const;
  [[nodiscard]] std::size_t compensations_pending() const;
  [[nodiscard]] holdfast::Stats stats() const;
  [[nodiscard]] holdfast::ByteView error_text() const;
  [[nodiscard]] int system_error_number() const;
  [[nodiscard]] holdfast::ConfigProblem problem() const;
  [[nodiscard]] std::size_t kept() const;
  [[nodiscard]] std::uint64_t renewal_calls() const;
  // When to call again is soon while there is something to keep: the loop knows, and does not say.
  holdfast::Instant tend();
  void cancel();
  void watch_sentinels();
  void attach(Watchdog* watchdog);
  [[nodiscard]] static holdfast::Instant now() noexcept { return holdfast::Client::now(); }

  [[nodiscard]] Loop& loop() const { return loop_; }
  [[nodiscard]] holdfast::AsyncClient& inside() const { return *client_; }

 private:
  [[nodiscard]] Handler noting_why(Handler handler);

  mutable Loop loop_;
  std::unique_ptr<holdfast::AsyncClient> client_;
  mutable std::string text_;
  std::string why_not_connected_;  // What the last connect() said.
};

[[nodiscard]] holdfast::Status inspect(Client& client, holdfast::Key key, holdfast::LockInfo& info);
[[nodiscard]] holdfast::Status inspect_queue(Client& client, holdfast::Key key, holdfast::LockQueue& queue);
[[nodiscard]] holdfast::Status force_release(Client& client, holdfast::Key key, bool& released);
[[nodiscard]] holdfast::Status fenced_set(Client& client, holdfast::Key resource, std::uint64_t fence,
                                          holdfast::BytesArgument value, bool& written);

class HoldOwner {
 public:
  static constexpr std::size_t holds_max = 64;

  HoldOwner(const HoldOwner&) = delete;
  HoldOwner& operator=(const HoldOwner&) = delete;
  [[nodiscard]] Client& client() const { return *client_; }
  [[nodiscard]] holdfast::AsyncHoldOwner& inside() const { return *owner_; }

 protected:
  // There are as many places as are asked for, where that is 1, 2 or the default.
  HoldOwner(Client& client, std::size_t holds);
  ~HoldOwner();

 private:
  Client* client_;
  std::shared_ptr<holdfast::AsyncHoldOwner> owner_;
};

template <std::size_t holds>
class OwnerOf : public HoldOwner {
 public:
  static_assert(holds <= holds_max);
  explicit OwnerOf(Client& client) : HoldOwner(client, holds) {}
};

class Owner : public OwnerOf<holdfast::owner_holds_default> {
 public:
  using OwnerOf::OwnerOf;
};

class BlockingLock {
 public:
  BlockingLock(const BlockingLock&) = delete;
  BlockingLock& operator=(const BlockingLock&) = delete;

  [[nodiscard]] holdfast::Status configuration() const;
  [[nodiscard]] holdfast::Status keep(const holdfast::KeepOptions& options);
  void tick();
  [[nodiscard]] holdfast::Status try_acquire();
  [[nodiscard]] holdfast::Status acquire(holdfast::Duration wait);
  [[nodiscard]] holdfast::Status renew();
  [[nodiscard]] holdfast::Status renew(holdfast::Duration timeout);
  [[nodiscard]] holdfast::Status release();
  holdfast::Status post_release();
  [[nodiscard]] holdfast::Status forget_loss();
  [[nodiscard]] bool held() const;
  [[nodiscard]] holdfast::Instant valid_until() const;
  [[nodiscard]] holdfast::Duration remaining() const;
  [[nodiscard]] bool at_risk() const;
  [[nodiscard]] holdfast::Instant renewal_due() const;
  [[nodiscard]] std::uint32_t hold_count() const;
  [[nodiscard]] holdfast::Status is_locked(bool& locked);
  [[nodiscard]] holdfast::Status remaining_on_server(holdfast::Duration& remaining);
  [[nodiscard]] holdfast::Key key() const;
  [[nodiscard]] const holdfast::Token& token() const;
  [[nodiscard]] Client& client() const { return *client_; }

 protected:
  using Make = std::function<std::shared_ptr<holdfast::AsyncLock>(holdfast::AsyncClient&)>;
  BlockingLock(Client& client, const Make& make);
  ~BlockingLock();

  Client* client_;
  std::shared_ptr<holdfast::AsyncLock> lock_;
};

class Mutex : public BlockingLock {
 public:
  Mutex(Client& client, holdfast::BytesArgument key, const holdfast::LockTiming& timing = {},
        const holdfast::MutexOptions& options = {});
  [[nodiscard]] std::uint64_t fence() const;
};

class Semaphore : public BlockingLock {
 public:
  Semaphore(Client& client, holdfast::BytesArgument key, std::uint32_t permits,
            const holdfast::LockTiming& timing = {});
};

class ReentrantLock : public BlockingLock {
 public:
  ReentrantLock(HoldOwner& owner, holdfast::BytesArgument key, const holdfast::LockTiming& timing = {});
};

class FairLock : public BlockingLock {
 public:
  FairLock(HoldOwner& owner, holdfast::BytesArgument key, const holdfast::LockTiming& timing = {},
           const holdfast::FairOptions& options = {});
  [[nodiscard]] std::uint64_t fence() const;
};

class FencedLock : public BlockingLock {
 public:
  FencedLock(HoldOwner& owner, holdfast::BytesArgument key, const holdfast::LockTiming& timing = {});
  [[nodiscard]] std::uint64_t fence() const;
};

class MultiLock : public BlockingLock {
 public:
  MultiLock(HoldOwner& owner, const holdfast::ByteView* names, std::size_t count,
            const holdfast::LockTiming& timing = {});
  template <std::size_t count>
  MultiLock(HoldOwner& owner, const holdfast::BytesArgument (&names)[count], const holdfast::LockTiming& timing = {})
      : MultiLock(owner, std::vector<holdfast::ByteView>(names, names + count).data(), count, timing) {}
  template <holdfast::BytesElement Text, std::size_t count>
  MultiLock(HoldOwner& owner, Text (&names)[count], const holdfast::LockTiming& timing = {})
      : MultiLock(owner, std::vector<holdfast::ByteView>(names, names + count).data(), count, timing) {}
  [[nodiscard]] holdfast::ByteView name(std::size_t index) const;
};

class ReadWriteLock {
 public:
  class Side : public BlockingLock {
   private:
    friend class ReadWriteLock;
    using BlockingLock::BlockingLock;
  };
  ReadWriteLock(HoldOwner& owner, holdfast::BytesArgument key, const holdfast::ReadWriteTiming& timing = {});
  [[nodiscard]] Side& read() { return read_; }
  [[nodiscard]] Side& write() { return write_; }

 private:
  std::shared_ptr<holdfast::AsyncReadWriteLock> lock_;  // Until a side has it.
  Side read_;
  Side write_;
};

// A thread for the loop of each client. How many holds a client keeps is its own affair.
template <std::size_t count>
struct WatchdogPlaces {
  [[nodiscard]] std::size_t storage() const { return count; }
};

class Watchdog {
 public:
  explicit Watchdog(std::size_t) {}
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  [[nodiscard]] holdfast::Status start(Client& client);
  void stop();
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::uint64_t calls() const;

 private:
  friend class Client;
  std::vector<Client*> clients_;
};

}  // namespace async_face

// SPDX-License-Identifier: MIT
//
// Handoff measures how long a lock takes from one client to another that waits for it: from the call of release() on the
// one to the return of acquire() on the other. The waiter is a thread of its own, and is asleep when the clock starts:
// subscribed, tried, and settled.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>

#include "address.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"

namespace bench {

// Two clients of one lock, each with connections of its own. What fails throws std::runtime_error.
class HandoffClients {
 public:
  virtual ~HandoffClients() = default;
  // The holder's: takes the lock, and lets go of it.
  virtual void hold() = 0;
  virtual void release() = 0;
  // The waiter's, on another thread: waits until the lock is granted, and lets go of it.
  virtual void wait() = 0;
  virtual void give_back() = 0;
  // The server has its subscription, and counts it among those who wait.
  [[nodiscard]] virtual bool listens(RawConnection& server) const = 0;
};

// The limit: precomputed bytes over blocking sockets. The waiter subscribes and tries, then blocks in a receive on its
// subscription, and tries when that returns. Scripts and channel are those of the kind that it stands beside.
std::unique_ptr<HandoffClients> raw_mutex_clients(const Address& address);
std::unique_ptr<HandoffClients> raw_reentrant_clients(const Address& address);
// holdfast: Mutex with {.announce = true}, ReentrantLock, and FairLock, whose release gives the lock to the waiter.
std::unique_ptr<HandoffClients> mutex_clients(const Address& address);
std::unique_ptr<HandoffClients> reentrant_clients(const Address& address);
std::unique_ptr<HandoffClients> fair_clients(const Address& address);

// Nanoseconds.
struct HandoffCost {
  double time;  // From release() to the grant.
  double work;  // What client and server had of the processors until both calls had returned.
};

class Handoff {
 public:
  // The waiter's thread has the calling one's place and policy.
  Handoff(std::unique_ptr<HandoffClients> clients, const RedisServer& server);
  ~Handoff();
  Handoff(const Handoff&) = delete;
  Handoff& operator=(const Handoff&) = delete;

  // The holder takes the lock, and the waiter falls asleep over it.
  void begin();
  // The lock is handed over and given back. REQUIRES: begin() was called.
  HandoffCost finish();
  HandoffCost once() {
    begin();
    return finish();
  }

 private:
  struct Look {
    bool asleep;
    std::string switches;  // How often the thread has run, in the kernel's words.
    bool operator==(const Look&) const = default;
  };

  void serve();
  void await_subscription();
  void await_sleep();
  [[nodiscard]] Look look() const;

  std::unique_ptr<HandoffClients> clients_;
  RawConnection server_;
  pid_t server_process_;
  std::binary_semaphore go_{0};
  std::binary_semaphore granted_{0};
  std::binary_semaphore give_back_{0};
  std::binary_semaphore done_{0};
  bool stopping_ = false;
  Clock::time_point granted_at_;
  std::exception_ptr failure_;
  int thread_id_ = 0;
  std::thread thread_;
};

}  // namespace bench

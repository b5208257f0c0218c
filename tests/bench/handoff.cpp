// SPDX-License-Identifier: MIT
#include "handoff.hpp"

#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cpu_time.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast_party.hpp"
#include "raw_client.hpp"
#include "scripts.hpp"

namespace bench {

namespace {

// Longer than any delay of a waiter that is about to try: who has not run for so long is settled.
constexpr std::chrono::milliseconds breath{3};
static_assert(breath > holdfast::retry_delay_min);
// What a waiter does before it is settled takes different waiters differently long. All get so long, so that what runs
// next finds caches and cores equally cold.
constexpr std::chrono::milliseconds settling{8};
constexpr std::chrono::seconds patience{10};

std::string channel_of(const std::string& key) {
  const holdfast::DerivedName name(holdfast::channel_prefix, holdfast::Key(holdfast::ByteView(key)));
  return std::string(name.bytes().string_view());
}

bool has_listener(RawConnection& server, const std::string& channel) {
  return server.command({"PUBSUB", "NUMSUB", channel}) == channel + " 1";
}

// ---- Raw sockets -------------------------------------------------------------------------------------------------

// What goes over the wire, without tokens.
struct RawRequests {
  std::vector<std::string> acquire;
  std::vector<std::string> release;
  std::vector<const holdfast::Script*> scripts;
};

RawRequests mutex_requests(const std::string& key) {
  const holdfast::Script& release = holdfast::scripts::mutex_release_announced;
  const std::string token = PreparedRequest::token_placeholder();
  return {{"SET", key, token, "NX", "PX", "30000"},
          {"EVALSHA", std::string(release.sha.bytes().string_view()), "1", key, token, channel_of(key)},
          {&release}};
}

RawRequests reentrant_requests(const std::string& key) {
  const holdfast::Script& acquire = holdfast::scripts::reentrant_acquire;
  const holdfast::Script& release = holdfast::scripts::reentrant_release;
  const std::string owner = PreparedRequest::token_placeholder();
  return {{"EVALSHA", std::string(acquire.sha.bytes().string_view()), "1", key, owner, "30000"},
          {"EVALSHA", std::string(release.sha.bytes().string_view()), "1", key, owner, channel_of(key)},
          {&acquire, &release}};
}

// One side's command connection.
struct RawParty {
  RawParty(const Address& address, const RawRequests& requests)
      : socket(address), acquire_request(requests.acquire), release_request(requests.release) {
    for (const holdfast::Script* const script : requests.scripts) load_script(socket, *script);
  }

  void acquire() {
    socket.send(acquire_request.with_token(tokens.next()));
    socket.expect_reply(acquired);
  }
  void release() {
    socket.send(release_request.with_token(tokens.current()));
    socket.expect_reply(released);
  }

  RawSocket socket;
  PreparedRequest acquire_request;
  PreparedRequest release_request;
  TokenTable tokens;
};

std::string bulk(std::string_view text) {
  return std::string("$").append(std::to_string(text.size())).append("\r\n").append(text).append("\r\n");
}

class RawClients : public HandoffClients {
 public:
  RawClients(const Address& address, const std::string& key, const RawRequests& requests)
      : channel_(channel_of(key)),
        subscribe_(encoded({"SUBSCRIBE", channel_})),
        unsubscribe_(encoded({"UNSUBSCRIBE", channel_})),
        subscribed_("*3\r\n" + bulk("subscribe") + bulk(channel_) + ":1\r\n"),
        unsubscribed_("*3\r\n" + bulk("unsubscribe") + bulk(channel_) + ":0\r\n"),
        message_("*3\r\n" + bulk("message") + bulk(channel_) + bulk("0")),
        holder_(address, requests),
        waiter_(address, requests),
        subscription_(address) {}

  void hold() override { holder_.acquire(); }
  void release() override { holder_.release(); }
  void wait() override {
    subscription_.send(subscribe_);
    subscription_.expect_reply(subscribed_);
    waiter_.socket.send(waiter_.acquire_request.with_token(waiter_.tokens.next()));
    waiter_.socket.expect_line();  // Busy: nil, or the time that is left.
    subscription_.expect_reply(message_);
    waiter_.acquire();
  }
  void give_back() override {
    subscription_.send(unsubscribe_);
    subscription_.expect_reply(unsubscribed_);
    waiter_.release();
  }
  [[nodiscard]] bool listens(RawConnection& server) const override { return has_listener(server, channel_); }

 private:
  std::string channel_;
  std::string subscribe_;
  std::string unsubscribe_;
  std::string subscribed_;
  std::string unsubscribed_;
  std::string message_;
  RawParty holder_;
  RawParty waiter_;
  RawSocket subscription_;
};

// ---- holdfast ----------------------------------------------------------------------------------------------------

template <class Party>
class HoldfastClients : public HandoffClients {
 public:
  HoldfastClients(const Address& address, const std::string& key)
      : channel_(channel_of(key)), holder_(key), waiter_(key) {
    holder_.connect(address);
    waiter_.connect(address);
  }

  void hold() override { holder_.expect_ok(holder_.lock.try_acquire()); }
  void release() override { holder_.expect_ok(holder_.lock.release()); }
  void wait() override { waiter_.expect_ok(waiter_.lock.acquire(patience)); }
  void give_back() override { waiter_.expect_ok(waiter_.lock.release()); }
  [[nodiscard]] bool listens(RawConnection& server) const override { return has_listener(server, channel_); }

 private:
  std::string channel_;
  Party holder_;
  Party waiter_;
};

// The waiter listens to a channel of its client, and stays subscribed; that it waits is what the queue says.
class FairClients : public HoldfastClients<OwnedParty<holdfast::FairLock>> {
 public:
  FairClients(const Address& address, const std::string& key)
      : HoldfastClients(address, key), queue_("holdfast_queue:{" + key + "}") {}
  [[nodiscard]] bool listens(RawConnection& server) const override {
    return server.command({"ZCARD", queue_}) == "1" && !server.command("PUBSUB CHANNELS holdfast_fair:*").empty();
  }

 private:
  std::string queue_;
};

}  // namespace

std::unique_ptr<HandoffClients> raw_mutex_clients(const Address& address) {
  const std::string key = next_key();
  return std::make_unique<RawClients>(address, key, mutex_requests(key));
}
std::unique_ptr<HandoffClients> raw_reentrant_clients(const Address& address) {
  const std::string key = next_key();
  return std::make_unique<RawClients>(address, key, reentrant_requests(key));
}
std::unique_ptr<HandoffClients> mutex_clients(const Address& address) {
  return std::make_unique<HoldfastClients<MutexParty<true>>>(address, next_key());
}
std::unique_ptr<HandoffClients> reentrant_clients(const Address& address) {
  return std::make_unique<HoldfastClients<OwnedParty<holdfast::ReentrantLock>>>(address, next_key());
}
std::unique_ptr<HandoffClients> fair_clients(const Address& address) {
  return std::make_unique<FairClients>(address, next_key());
}

// ---- The measurement ---------------------------------------------------------------------------------------------

Handoff::Handoff(std::unique_ptr<HandoffClients> clients, const RedisServer& server)
    : clients_(std::move(clients)),
      server_(server.socket_path()),
      server_process_(server.pid()),
      thread_([this] { serve(); }) {
  done_.acquire();  // Its thread id is known.
}

Handoff::~Handoff() {
  stopping_ = true;
  go_.release();
  thread_.join();
}

// The waiter's thread.
void Handoff::serve() {
  thread_id_ = ::gettid();
  for (;;) {
    done_.release();
    go_.acquire();
    if (stopping_) return;
    try {
      clients_->wait();
      granted_at_ = Clock::now();
    } catch (...) {
      failure_ = std::current_exception();
    }
    granted_.release();
    give_back_.acquire();
    try {
      if (failure_ == nullptr) clients_->give_back();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
}

void Handoff::begin() {
  clients_->hold();
  const Clock::time_point settled = Clock::now() + settling;
  go_.release();
  await_subscription();
  std::this_thread::sleep_until(settled);
  await_sleep();
}

HandoffCost Handoff::finish() {
  const auto work = [this] { return cpu_time(CLOCK_PROCESS_CPUTIME_ID) + cpu_time_of(server_process_); };
  const std::chrono::nanoseconds work_before = work();
  const Clock::time_point begin = Clock::now();
  clients_->release();
  granted_.acquire();
  const std::chrono::duration<double, std::nano> worked = work() - work_before;
  give_back_.release();
  done_.acquire();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return {std::chrono::duration<double, std::nano>(granted_at_ - begin).count(), worked.count()};
}

void Handoff::await_subscription() {
  const Clock::time_point end = Clock::now() + patience;
  while (!clients_->listens(server_)) {
    if (Clock::now() > end) throw std::runtime_error("the waiter does not subscribe");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Handoff::await_sleep() {
  const Clock::time_point end = Clock::now() + patience;
  Look before = look();
  for (;;) {
    std::this_thread::sleep_for(breath);
    Look now = look();
    if (now.asleep && now == before) return;
    if (Clock::now() > end) throw std::runtime_error("the waiter does not fall asleep");
    before = std::move(now);
  }
}

Handoff::Look Handoff::look() const {
  std::ifstream status("/proc/self/task/" + std::to_string(thread_id_) + "/status");
  Look result{false, {}};
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("State:\tS", 0) == 0) result.asleep = true;
    if (line.find("ctxt_switches:") != std::string::npos) result.switches += line;
  }
  return result;
}

}  // namespace bench

// SPDX-License-Identifier: MIT
#include "holdfast/sentinel_watch.hpp"

#include <poll.h>
#include <pthread.h>

#include "addresses.hpp"
#include "holdfast/client.hpp"
#include "holdfast/core/master_search.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/watchdog.hpp"
#include "poll_sockets.hpp"
#include "wait_for.hpp"

namespace holdfast {

constinit const Topology::Table SwitchWatch::ways = {
    start,   HostSearch::steer, literal_address, accept,  number_of,           name_of, hosts_of, password_of,
    nullptr, nullptr,           nullptr,         nullptr, MasterSearch::serves};

SentinelWatch::SentinelWatch(Connection& connection, Watchdog* watchdog) noexcept
    : Lookout(sleep_until_news),
      connection_(connection),
      watchdog_(watchdog),
      lane_(SwitchWatch::Buffers::storage_of(&buffers_)) {
  HOLDFAST_ASSERT(connection.lookout() == nullptr);
  lane_.use(connection.random(), &resolver_);
  connection.set_lookout(this, true);
}

SentinelWatch::SentinelWatch(ClientBase& client) noexcept : SentinelWatch(client.connection(), nullptr) {}

SentinelWatch::SentinelWatch(Watchdog& watchdog) noexcept : SentinelWatch(watchdog.home_.connection(), &watchdog) {
  HOLDFAST_ASSERT(!watchdog.running());
}

SentinelWatch::~SentinelWatch() {
  if (watchdog_ != nullptr) watchdog_->stop();
  connection_.set_lookout(nullptr, false);
}

// ---- The lane ----------------------------------------------------------------------------------------------------

// False: there is nobody to be heard. A configuration changes only while the connection is none.
bool SentinelWatch::follow() noexcept {
  const std::uint32_t incarnation = connection_.random().incarnation();
  if (incarnation != incarnation_) {  // It is the parent's.
    lane_.forget();
    resolver_.forget();
    follows_ = false;
    incarnation_ = incarnation;
  }
  if (follows_ && (connection_.ready() || news_.follows(connection_))) return true;
  if (!SwitchWatch::wanted_by(connection_)) {
    if (follows_) hang_up();
    follows_ = false;
    return false;
  }
  if (lane_.configured()) hang_up();
  resolver_.forget();
  lane_.configure(news_.follow(connection_));
  follows_ = true;
  return true;
}

void SentinelWatch::work() noexcept {
  lane_.set_now(connection_.now());
  if (lane_.now() == Instant::max() || !follow()) return;
  resolver_.poll(lane_);
  if (lane_.dialling() && wait_for(lane_.socket(), POLLOUT, Duration::zero()) > 0) lane_.finish_dial();
  receive();
  if (wants_lane()) lane_.dial();
  if (lane_.handle_ready(lane_.now())) news_.handle_ready(lane_.now());
  news_.work(lane_, lane_.now(), connection_.random().number());
  if (!lane_.open()) return;
  if (lane_.session().wants_look()) receive();
  lane_.transmit();
  if (lane_.session().state() == SessionState::failed) hang_up();
}

// All that has come, up to a bound: a flood must not keep a call from its work.
void SentinelWatch::receive() noexcept {
  constexpr int receives_max = 16;
  auto received = Connection::Received::bytes;
  for (int left = receives_max; lane_.open() && received == Connection::Received::bytes && left != 0; --left) {
    received = lane_.look();
    Reply reply;
    while (lane_.session().poll_reply(reply, lane_.now())) {}  // Nobody waits for one.
    if (lane_.handle_ready(lane_.now())) news_.handle_ready(lane_.now());
  }
  if (!lane_.open()) return;
  lane_.session().handle_timeout(lane_.now());
  if (received == Connection::Received::closed || lane_.session().state() == SessionState::failed) hang_up();
}

void SentinelWatch::hang_up() noexcept {
  lane_.close_transport();
  Reply reply;
  while (lane_.session().poll_reply(reply, lane_.now())) {}
  news_.handle_closed(lane_);
}

// True: the connection is to be closed.
bool SentinelWatch::doubt() noexcept {
  if (!follows_) return false;
  const Instant now = connection_.now();
  if (watchdog_ == nullptr) return news_.doubt(lane_, connection_, now, connection_.random().number());
  // Its thread sleeps without the lock.
  ::pthread_mutex_lock(&watchdog_->mutex_);
  const bool doubted = news_.doubt(lane_, connection_, now, connection_.random().number());
  if (doubted) watchdog_->home_.schedule().hasten(now);
  ::pthread_mutex_unlock(&watchdog_->mutex_);
  return doubted;
}

Instant SentinelWatch::timeout() const noexcept {
  if (!follows_) return Instant::max();
  if (lane_.pending()) return Instant();
  const Instant next = news_.poll_timeout(lane_, connection_);
  return wants_lane() ? earlier(next, lane_.timeout()) : next;
}

// ---- What its connection calls -----------------------------------------------------------------------------------

Ready SentinelWatch::sleep_until_news(Connection& connection, WakePipe& wake, Instant then, int extra,
                                      int extra_events) noexcept {
  auto& self = *static_cast<SentinelWatch*>(connection.lookout());
  Connection& lane = self.lane_;
  connection.set_now(read_clock());
  self.work();
  then = self.doubt() ? Instant() : earlier(then, self.timeout());
  pollfd entry = lane.socket() < 0 ? entry_of(self.resolver_.descriptor()) : entry_of(lane);
  const Ready ready = poll_with(connection, wake, then, extra, extra_events, entry);
  if (entry.revents == 0) return ready;
  self.work();
  (void)self.doubt();
  return ready;
}

}  // namespace holdfast

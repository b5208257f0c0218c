// SPDX-License-Identifier: MIT
#include "holdfast/detail/watchdog_lane.hpp"

#include <cstring>

#include "holdfast/detail/watchdog_branches.hpp"

namespace holdfast {

WatchdogLane::WatchdogLane(const RenewalSchedule::Host& host, const RenewalSchedule::Storage& storage) noexcept
    : schedule_(host, storage, request_timeout_default), connection_(Buffers::storage_of(&buffers_)) {}

void WatchdogLane::configured() noexcept {
  connection_.dialer().set_pause_max(reconnect_kept_max);  // A hold of a short lease does not outlive a long pause.
  resolver_.forget();
  schedule_.set_request_timeout(connection_.config().request_timeout);
  schedule_.set_witness(connection_.config().meter);
}

bool WatchdogLane::is_at(const ServerIdentity& server) const noexcept {
  return server.run_id_known && std::memcmp(server.run_id, run_id_, run_id_size) == 0;
}

bool WatchdogLane::compare(const ServerIdentity& server) noexcept {
  reconnect_ = reconnect_ || (server.run_id_known && run_id_[0] != '\0' && !is_at(server));
  return reconnect_;
}

void WatchdogLane::stop(Instant now) noexcept {
  connection_.set_now(now);
  connection_.close_transport();
  take_replies();
  connection_.dialer().abandon();
  resolver_.forget();
}

// ---- A turn ------------------------------------------------------------------------------------------------------

void WatchdogLane::work(Instant now) noexcept {
  connection_.set_now(now);
  connect();
  take_replies();
  schedule_.handle_timeout(connection_.now());
}

// No step of it waits: neither a slow server nor a slow resolver keeps the news of a loss from its holder.
void WatchdogLane::connect() noexcept {
  resolver_.poll(connection_);
  if (connection_.now() == Instant::max()) return;
  if (needed()) connection_.dial();
  if (!connection_.handle_ready(connection_.now())) return;
  const ServerIdentity& server = connection_.session().identity();
  std::memset(run_id_, 0, sizeof run_id_);
  if (server.run_id_known) std::memcpy(run_id_, server.run_id, run_id_size);
}

// With nothing to keep and nothing to take back, a connection that was lost is not made anew.
bool WatchdogLane::needed() const noexcept {
  return connection_.socket() >= 0 || schedule_.size() != 0 || connection_.compensations_pending() != 0;
}

Instant WatchdogLane::next_timeout() const noexcept {
  const Instant next = earlier(schedule_.poll_timeout(), connection_.session().poll_timeout());
  return needed() ? earlier(next, connection_.dialer().poll_timeout()) : next;
}

// What has arrived, and what the session has for the schedule. Arrived replies count before any deadline is judged. A failed
// or ended connection is put away here, so that the next one finds nothing in flight.
void WatchdogLane::take_replies() noexcept {
  Session& session = connection_.session();
  if (reconnect_) session.fail(Status::not_connected, "the client speaks to another server");
  reconnect_ = false;
  auto received = Connection::Received::bytes;
  while (received == Connection::Received::bytes) {
    received = connection_.look();
    hand_over();
  }
  session.handle_timeout(connection_.now());
  hand_over();
  if (received != Connection::Received::closed && session.state() != SessionState::failed) return;
  connection_.close_transport();
  hand_over();
}

void WatchdogLane::hand_over() noexcept {
  Reply reply;
  while (connection_.session().poll_reply(reply, connection_.now())) {
    if (reply.outcome == Status::ok) answered_at_ = connection_.now();
    const bool strayed = reply.outcome == Status::moved && branches_ != nullptr;
    if (!(strayed ? branches_->table().take_moved(*branches_, *this, reply)
                  : schedule_.handle_reply(reply, connection_.now())))
      connection_.session().fail_shape();
  }
}

std::uint32_t WatchdogLane::send_due() noexcept {
  Session& session = connection_.session();
  std::uint32_t calls = 0;
  while (session.ready()) {
    const Session::Place place = session.open(false);
    std::size_t size = 0;
    if (place.request == nullptr || !schedule_.poll_request(place.space, *place.request, size, connection_.now()))
      break;
    place.request->tag.requester = &schedule_;
    session.commit(*place.request, size, connection_.now());
    ++calls;
    look_and_transmit();  // Its bytes make room for the next.
  }
  look_and_transmit();
  return calls;
}

// What has arrived is no answer to what leaves now.
void WatchdogLane::look_and_transmit() noexcept {
  if (connection_.session().wants_look()) take_replies();
  connection_.transmit();
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/acks.hpp"

#include <poll.h>

#include "client_hot.hpp"
#include "holdfast/proto/assert.hpp"
#include "poll_sockets.hpp"

namespace holdfast {

constinit const Acker::Table Acks::table = {enter, leave, work, sleep, close};

Acks::Acks(ClientBase& client) noexcept : Acker(table), client_(&client), lane_(Buffers::storage_of(&buffers_)) {
  HOLDFAST_ASSERT(client.acker_ == nullptr);
  lane_.use(client.random_source_, &resolver_);
  client.acker_ = this;
}

Acks::~Acks() {
  HOLDFAST_ASSERT(requests_.empty() && client_->records_ == 0);  // Its client's locks go first.
  // Whose grants were to be confirmed gets none that are not: it is not connected until it is told anew where to.
  if (client_->settings_.acks_wait != Duration::zero()) {
    if (client_->forked()) client_->start_anew_in_child();
    client_->close();
    client_->dialer_.stop();
  }
  client_->acker_ = nullptr;
}

void Acks::enter(Acker& acker, AckRequest& request) noexcept { static_cast<Acks&>(acker).requests_.enter(request); }

void Acks::leave(Acker& acker, AckRequest& request) noexcept { static_cast<Acks&>(acker).requests_.leave(request); }

// To where the client is. A server that was left knows nothing of what is granted now.
void Acks::follow() noexcept {
  const std::uint32_t place = client_->dialer_.place();
  if (known_ && place == place_) return;
  hang_up();
  lane_.configure_like(*client_);
  place_ = place;
  known_ = true;
}

void Acks::work(Acker& acker) noexcept {
  auto& self = static_cast<Acks&>(acker);
  if (self.client_->settings_.acks_wait == Duration::zero()) return;  // Nothing is to be confirmed.
  Connection& lane = self.lane_;
  lane.set_now(self.client_->now_);
  self.follow();
  self.resolver_.poll(lane);
  lane.dial();
  self.receive();
  (void)lane.handle_ready(lane.now());
  self.requests_.work(lane, lane.now());
  if (lane.open()) {
    if (lane.session().wants_look()) self.receive();
    lane.transmit();
  }
  while (self.requests_.poll_told() != nullptr) {}  // Each knows its answer.
}

// What has arrived counts before any deadline is judged.
void Acks::receive() noexcept {
  if (!lane_.open()) return;
  auto received = Connection::Received::bytes;
  while (received == Connection::Received::bytes) {
    received = lane_.look();
    hand_over();
  }
  lane_.session().handle_timeout(lane_.now());
  hand_over();
  if (received == Connection::Received::closed || lane_.session().state() == SessionState::failed) hang_up();
}

void Acks::hand_over() noexcept {
  Reply reply;
  while (lane_.session().poll_reply(reply, lane_.now()))
    if (!requests_.handle_reply(reply, lane_.config())) lane_.session().fail_shape();
}

void Acks::hang_up() noexcept {
  lane_.close_transport();
  hand_over();
}

void Acks::sleep(Acker& acker, Instant until) noexcept {
  auto& self = static_cast<Acks&>(acker);
  Connection& lane = self.lane_;
  if (lane.pending()) until = Instant();
  until = earlier(until, lane.timeout());
  const bool dials = lane.dialling();
  const pollfd entry = lane.socket() < 0 ? entry_of(self.resolver_.descriptor()) : entry_of(lane);
  const bool came = self.client_->wait_until(until, entry.fd, entry.events);
  lane.set_now(self.client_->now_);
  if (came && dials) lane.finish_dial();
}

void Acks::close(Acker& acker, bool inherited) noexcept {
  auto& self = static_cast<Acks&>(acker);
  self.resolver_.forget();
  self.known_ = false;
  self.lane_.set_now(self.client_->now_);
  if (inherited) {
    self.lane_.forget();
    self.requests_.forget();
  } else if (self.lane_.configured()) {
    self.hang_up();
    self.lane_.dialer().abandon();
  }
}

}  // namespace holdfast

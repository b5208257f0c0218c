// SPDX-License-Identifier: MIT
#include "holdfast/core/node.hpp"

#include <cstring>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/proto/resp_encoder.hpp"

namespace holdfast {

SubscriberSettings Node::subscriber_settings() const noexcept {
  return {.user = config_.user.view(),
          .password = config_.password.view(),
          .client_name = config_.client_name.view(),
          .stall_timeout = config_.stall_timeout,
          .shards = config_.topology == nullptr ? nullptr : config_.topology->sharded_by(session_.identity()),
          .heartbeat = config_.max_poll,
          .witness = config_.meter};
}

// ---- Commands ----------------------------------------------------------------------------------------------------

void Node::configure(const ClientConfig& config, const SocketAddress* literal) noexcept {
  config_.keep(config, texts_);
  if (literal != nullptr) addresses_[0] = *literal;
  const bool known = local() || literal != nullptr;
  start(known ? 1 : 0, !known, 0);
}

void Node::configure_like(const Node& other) noexcept {
  HOLDFAST_ASSERT(other.texts_.size <= texts_.size);
  std::memcpy(texts_.data, other.texts_.data, other.texts_.size);
  config_.keep_copy(other.config_, other.texts_.data, texts_.data);
  const Dialer& dialer = other.dialer_;
  std::uint8_t count = dialer.address_count();
  if (count > addresses_max_) count = addresses_max_;
  std::memcpy(addresses_, other.addresses_, count * sizeof addresses_[0]);
  start(count, dialer.named(), dialer.address() < count ? dialer.address() : std::uint8_t{0});
}

void Node::start(std::uint8_t address_count, bool named, std::uint8_t first) noexcept {
  configured_ = true;
  seen_ready_ = false;
  session_.set_witness(config_.meter);
  dialer_.start(config_.connect_timeout, address_count, named, first);
  session_.configure({.user = config_.user.view(),
                      .password = config_.password.view(),
                      .client_name = config_.client_name.view(),
                      .stall_timeout = config_.stall_timeout,
                      .database = config_.database,
                      .native_delete = config_.native_delete});
  if (config_.topology != nullptr) [[unlikely]]
    config_.topology->table().start(*this);
}

void Node::submit(LockMachine& machine, void* requester, Instant now) noexcept {
  Session::Place place;
  Status refusal = Status::cross_slot;
  if (config_.topology == nullptr || config_.topology->serves(machine)) [[likely]] {
    place = session_.open(machine.request_compensated());
    refusal = session_.ready() ? Status::too_many_requests : Status::not_connected;
  }
  std::size_t size = 0;
  if (place.request == nullptr || machine.poll_request(place.space, *place.request, size) != Status::ok) [[unlikely]] {
    machine.refuse_request(refusal, now);
    return;
  }
  place.request->tag.requester = requester;
  session_.commit(*place.request, size, now);
}

Status Node::ask(Arguments arguments, const ReplyTag& tag, Instant now) noexcept {
  const Session::Place place = session_.open(false);
  std::size_t size = 0;
  if (place.request == nullptr || encode_command(place.space, arguments, size) != Status::ok)
    return Status::too_many_requests;
  return commit(place, size, tag, now);
}

Status Node::commit(const Session::Place& place, std::size_t size, const ReplyTag& tag, Instant now) noexcept {
  *place.request = {.tag = tag, .deadline = now + config_.request_timeout};
  session_.commit(*place.request, size, now);
  return Status::ok;
}

Status Node::ask_remaining(const LockMachine& machine, const ReplyTag& tag, Instant now) noexcept {
  const Session::Place place = session_.open(false);
  if (place.request == nullptr) return Status::too_many_requests;
  std::size_t size = 0;
  CommandLine line(place.space);
  machine.kind().ask_remaining(line, machine.key());
  if (line.finish(size) != Status::ok) return Status::too_many_requests;
  return commit(place, size, tag, now);
}

void Node::tell_connection(Witness& witness, const Node& node, Seen what) noexcept {
  const KeptConfig& config = node.config_;
  witness.tell(what, node.local() ? config.socket_path.view() : config.host.view(),
               what == Seen::disconnected ? node.session_.failure() : Status::ok);
}

// ---- Inputs ------------------------------------------------------------------------------------------------------

void Node::handle_addresses(const SocketAddress* addresses, std::uint8_t count, Instant now,
                            std::uint16_t random) noexcept {
  if (!dialer_.takes_addresses()) count = 0;  // The ones in use are not taken away.
  if (count > addresses_max_) count = addresses_max_;
  if (count != 0) std::memcpy(addresses_, addresses, count * sizeof addresses_[0]);
  dialer_.handle_resolved(count, now, random);
}

void Node::handle_connected(Instant now) noexcept {
  session_.handle_connected(now, dialer_.handshake_deadline());
  dialer_.handle_dialled();
}

bool Node::handle_ready(Instant now) noexcept {
  if (!session_.ready() || dialer_.ready()) return false;
  dialer_.handle_ready(now);
  last_used_ = now;
  used_ = false;
  tell(seen_ready_ ? Seen::reconnected : Seen::connected);
  seen_ready_ = true;
  return true;
}

void Node::handle_closed(Instant now, std::uint16_t random) noexcept {
  (void)handle_ready(now);  // It may have failed in the same moment.
  session_.handle_closed();
  if (dialer_.ready()) tell(Seen::disconnected);
  if (open()) dialer_.handle_closed(session_.failure(), used_, now, random);
}

}  // namespace holdfast

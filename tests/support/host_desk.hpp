// SPDX-License-Identifier: MIT
//
// A driver for a node whose server is found by asking hosts, without sockets and without a resolver.
#pragma once

#include <string>

#include "holdfast/core/topology.hpp"
#include "node_desk.hpp"

namespace holdfast::testing {

// Resolves every name to one address, whose first byte is the name's last.
struct HostDesk : NodeDesk {
  // Answers the question for a name.
  void resolve() {
    const SocketAddress found[] = {address_of('1'), address_of('2')};
    node->handle_addresses(found, addresses, now, least);
  }
  // Polls until it dials, resolving names on the way. The host and port that are dialled, or "none", "hang_up".
  std::string dial() {
    for (;;) switch (node->poll_dial(now, least)) {
        case DialAction::none: return "none";
        case DialAction::hang_up: return "hang_up";
        case DialAction::resolve:
          ++questions;
          if (resolver_time == Duration::max()) return "asked";
          now = now + resolver_time;
          resolve();
          break;
        case DialAction::dial: return where();
      }
  }
  [[nodiscard]] std::string where() const {
    return std::string(node->config().host.view().string_view()) + ":" + std::to_string(node->config().port);
  }
  void refuse() { node->dialer().handle_dial_failed(Status::connect_failed, now, least); }
  // The answers to CLIENT SETNAME and CLIENT ID, and then this.
  void answer(const std::string& bytes) {
    node->handle_connected(now);
    receive("+OK\r\n:7\r\n" + bytes);
    if (node->session().state() == SessionState::failed) close();
  }
  [[nodiscard]] static std::string identity(const std::string& standing, const std::string& version = "7.0.15") {
    return "*6\r\n" + bulk(std::string(40, 'f')) + bulk("100") + bulk(version) + bulk("") + bulk(std::string(40, '0')) +
           bulk(standing);
  }
  [[nodiscard]] std::string text() { return std::string(node->session().failure_text().string_view()); }
  [[nodiscard]] Status failure() const { return node->dialer().failure(); }
  void submit(Locked& locked) {
    locked.acquire(now);
    node->submit(locked.machine, &locked, now);
  }

  Duration resolver_time =
      Duration::zero();  // Duration::max(): it asks on, as a thread does, and dial() gives "asked".
  int questions = 0;
  std::uint8_t addresses = 1;  // Of each name.
};

}  // namespace holdfast::testing

// SPDX-License-Identifier: MIT
//
// One holdfast client with one lock of its own, for benchmarks with several clients of one lock. What fails throws
// std::runtime_error.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "address.hpp"
#include "holdfast/holdfast.hpp"

namespace bench {

// Longer than any benchmark holds a lock.
inline constexpr std::chrono::seconds party_lease{30};

inline void expect_ok(const holdfast::ClientBase& client, holdfast::Status status) {
  if (status == holdfast::Status::ok) [[likely]]
    return;
  throw std::runtime_error("holdfast: " + std::string(holdfast::to_string(status)) + ": " +
                           std::string(client.error_text().string_view()));
}

class HoldfastParty {
 public:
  void connect(const Address& address) {
    holdfast::ClientConfig config;
    config.port = static_cast<std::uint16_t>(address.port);
    config.socket_path.assign(address.socket_path);
    expect_ok(client.connect(config));
  }
  void expect_ok(holdfast::Status status) const { bench::expect_ok(client, status); }

  holdfast::Client client;
};

template <bool announced>
struct MutexParty : HoldfastParty {
  explicit MutexParty(const std::string& key) : lock(client, key, {.lease = party_lease}, {.announce = announced}) {}

  holdfast::Mutex lock;
};

// A kind whose holds are an owner's.
template <class Lock>
struct OwnedParty : HoldfastParty {
  explicit OwnedParty(const std::string& key) : lock(owner, key, {.lease = party_lease}) {}

  holdfast::Owner owner{client};
  Lock lock;
};

}  // namespace bench

// SPDX-License-Identifier: MIT
#include "pair_contenders.hpp"

#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "holdfast/cluster.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast_party.hpp"
#include "pair_requests.hpp"
#include "raw_client.hpp"

namespace bench {

namespace {

// A raw connection with all that a pair needs. The server knows the script when it is constructed.
struct RawPair {
  explicit RawPair(const Address& address, const std::string& key = next_key())
      : socket(address),
        acquire(set_arguments(key)),
        release(release_arguments("script", key)),
        release_by_text({"EVAL", release_text(), "1", key, PreparedRequest::token_placeholder()}) {
    load_script(socket, holdfast::scripts::mutex_release);
  }

  RawSocket socket;
  PreparedRequest acquire;
  PreparedRequest release;
  PreparedRequest release_by_text;
  TokenTable tokens;
  bool reply_outstanding = false;
};

PairedRounds::Run raw_pairs_waiting(const Address& address, bool spinning) {
  return [raw = std::make_shared<RawPair>(address), spinning](std::size_t count) {
    for (; count != 0; --count) {
      const char* const token = raw->tokens.next();
      raw->socket.send(raw->acquire.with_token(token));
      raw->socket.expect_reply(acquired, spinning);
      raw->socket.send(raw->release.with_token(token));
      raw->socket.expect_reply(released, spinning);
    }
  };
}

}  // namespace

PairedRounds::Run raw_pairs(const Address& address) { return raw_pairs_waiting(address, false); }
PairedRounds::Run raw_spinning_pairs(const Address& address) { return raw_pairs_waiting(address, true); }

PairedRounds::Run raw_posting_pairs(const Address& address) {
  return [raw = std::make_shared<RawPair>(address),
          both = std::string(released) + std::string(acquired)](std::size_t count) {
    for (; count != 0; --count) {
      const char* const token = raw->tokens.next();
      raw->socket.send(raw->acquire.with_token(token));
      raw->socket.expect_reply(raw->reply_outstanding ? std::string_view(both) : acquired);
      raw->socket.send(raw->release_by_text.with_token(token));
      raw->reply_outstanding = true;
    }
  };
}

PairedRounds::Run raw_pipelined_pairs(const Address& address, const std::string& release) {
  auto raw = std::make_shared<RawPair>(address);
  std::string flight;
  TokenTable tokens;
  for (std::size_t pair = 0; pair < pipelined_pairs; ++pair) {
    const std::string key = next_key();
    const char* const token = tokens.next();
    flight += PreparedRequest(set_arguments(key)).with_token(token);
    flight += PreparedRequest(release_arguments(release, key)).with_token(token);
  }
  return [raw, flight](std::size_t count) {
    for (; count != 0; count -= pipelined_pairs) {
      raw->socket.send(flight);
      raw->socket.drain(pipelined_pairs * (acquired.size() + released.size()));
    }
  };
}

// ---- hiredis -----------------------------------------------------------------------------------------------------

PairedRounds::Run hiredis_pairs(const Address& address) {
  return [pair = std::make_shared<HiredisPair>(address)](std::size_t count) {
    for (; count != 0; --count) {
      const char* const token = pair->tokens.next();
      pair->acquire.call(pair->context.get(), token, REDIS_REPLY_STATUS);
      pair->release.call(pair->context.get(), token, REDIS_REPLY_INTEGER);
    }
  };
}

// ---- holdfast ----------------------------------------------------------------------------------------------------

namespace {

struct HoldfastPair {
  HoldfastPair(const Address& address, const HoldfastMode& mode) : key(next_key()), lock(client, key) {
    holdfast::ClientConfig config;
    if (mode.in_cluster) {
      holdfast::ClusterConfig nodes;
      nodes.hosts.assign("127.0.0.1:" + std::to_string(address.port));
      nodes.name.assign(key);
      cluster.configure(nodes);
      config.topology = &cluster;
    }
    config.port = static_cast<std::uint16_t>(address.port);
    config.socket_path.assign(address.socket_path);
    config.native_delete = mode.native_delete;
    if (mode.spins) config.spin = spin_budget;
    expect_ok(client.connect(config));
  }

  void expect_ok(holdfast::Status status) const { bench::expect_ok(client, status); }

  std::string key;
  holdfast::Cluster cluster;
  holdfast::Client client;
  holdfast::Mutex lock;
};

}  // namespace

PairedRounds::Run holdfast_pairs(const Address& address, const HoldfastMode& mode) {
  auto pair = std::make_shared<HoldfastPair>(address, mode);
  if (!mode.posts)
    return [pair](std::size_t count) {
      for (; count != 0; --count) {
        pair->expect_ok(pair->lock.try_acquire());
        pair->expect_ok(pair->lock.release());
      }
    };
  return [pair](std::size_t count) {
    for (; count != 0; --count) {
      pair->expect_ok(pair->lock.try_acquire());
      pair->expect_ok(pair->lock.post_outcome());
      pair->expect_ok(pair->lock.post_release());
    }
  };
}

}  // namespace bench

// SPDX-License-Identifier: MIT
//
// The ways of taking and releasing a lock that bench_pairs compares. Each is a connection of its own with a key of its
// own; one operation is one pair: SET key token NX PX 30000, and the compare-and-delete that holdfast uses.
// A reply that is not the expected one throws std::runtime_error.
#pragma once

#include <string>

#include "address.hpp"
#include "paired_rounds.hpp"

namespace bench {

struct HoldfastMode {
  bool spins = false;
  bool posts = false;          // Releases without waiting for the reply.
  bool native_delete = false;  // Releases by the server's own command where it has one.
  bool in_cluster = false;     // As a client of the cluster whose only node is at the address, which is a port.
};

// holdfast's blocking client.
PairedRounds::Run holdfast_pairs(const Address& address, const HoldfastMode& mode = {});

// The limit: a blocking socket, precomputed bytes with the token patched in, SO_RCVTIMEO set so that a receive ends.
PairedRounds::Run raw_pairs(const Address& address);
// The same, polling the socket for spin_budget before it sleeps.
PairedRounds::Run raw_spinning_pairs(const Address& address);
// The same as raw_pairs(), but the release (EVAL with the script's text) is not waited for: its reply is received
// together with the next pair's.
PairedRounds::Run raw_posting_pairs(const Address& address);

// hiredis' synchronous calls, redisCommandArgv(), with a timeout set.
PairedRounds::Run hiredis_pairs(const Address& address);

// Pairs sent `pipelined_pairs` at a time over a raw socket, before any reply is read: what a server carries.
inline constexpr std::size_t pipelined_pairs = 256;
// REQUIRES: run with a multiple of pipelined_pairs. `release` is "script", or the server's own command: "DELEX" or
// "DELIFEQ".
PairedRounds::Run raw_pipelined_pairs(const Address& address, const std::string& release);

}  // namespace bench

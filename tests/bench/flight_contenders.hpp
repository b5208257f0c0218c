// SPDX-License-Identifier: MIT
//
// The ways of keeping many pairs in flight on one connection that bench_asio compares. Each contender has a connection
// and `in_flight` keys of its own; one operation is one pair, as in pair_contenders.hpp, and as soon as a pair is done
// the next one of its key begins, in the callback of the last reply. What one turn asks for leaves in one send.
// A reply that is not the expected one throws std::runtime_error, for raw: a number of bytes that no reply has.
#pragma once

#include <cstddef>
#include <string>

#include "address.hpp"
#include "paired_rounds.hpp"

namespace bench {

struct Flight {
  Address address;
  std::size_t in_flight = 1;
  // How this server releases by default: "script", "DELEX" or "DELIFEQ". holdfast finds out by itself.
  std::string release = "script";
};

// The limit: a socket and poll(2), precomputed bytes with the token patched in, replies counted and not read.
PairedRounds::Run raw_flight(const Flight& flight);
// hiredis' asynchronous calls, redisAsyncCommandArgv(), over poll(2).
PairedRounds::Run hiredis_flight(const Flight& flight);
// holdfast's Asio client: callbacks, each a pointer's size; and a coroutine a key, with use_awaitable.
PairedRounds::Run callback_flight(const Flight& flight);
PairedRounds::Run coroutine_flight(const Flight& flight);

// How the server at this address releases by default.
std::string default_release(const Address& address);

}  // namespace bench

// SPDX-License-Identifier: MIT
//
// clients.hpp for quorums.
#pragma once

#include "clients.hpp"

#ifdef HOLDFAST_TEST_ASIO
#include "async_quorum_face.hpp"
#endif

using under_test::Quorum;
using under_test::QuorumClient;
using under_test::QuorumLock;
using under_test::RedlockFencedLock;
using under_test::RedlockMutex;
using under_test::RedlockReentrantLock;

#ifdef HOLDFAST_TEST_ASIO
// On a loop a lock object of a quorum is its own owner.
template <template <std::size_t> class Lock, std::size_t node_count>
using SoleRedlock = Lock<node_count>;
#else
#include "sole_redlock.hpp"
#endif

using holdfast::node_bit;
using holdfast::NodeSet;
using holdfast::QuorumConfig;
using holdfast::QuorumTiming;

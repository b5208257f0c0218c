// SPDX-License-Identifier: MIT
//
// clients.hpp for quorums.
#pragma once

#include "clients.hpp"
#include "sole_lock.hpp"

#ifdef HOLDFAST_TEST_ASIO
#include "async_quorum_face.hpp"
#endif

using under_test::Quorum;
using under_test::QuorumClient;
using under_test::QuorumLock;
using under_test::QuorumOwner;
using under_test::QuorumOwnerOf;
using under_test::RedlockFencedLock;
using under_test::RedlockMutex;
using under_test::RedlockReentrantLock;

template <template <std::size_t> class Lock, std::size_t node_count>
using SoleRedlock = SoleOf<QuorumOwnerOf<node_count, 1>, Lock<node_count>>;

using holdfast::node_bit;
using holdfast::NodeSet;
using holdfast::QuorumConfig;
using holdfast::QuorumTiming;

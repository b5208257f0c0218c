// SPDX-License-Identifier: MIT
//
// Which client a live test is about. Its file says Client, Mutex and so on without a namespace, and is compiled once over the
// blocking client and once, with HOLDFAST_TEST_ASIO, over the Asio client behind a blocking face.
#pragma once

#include "holdfast/acks.hpp"
#include "holdfast/sentinel_watch.hpp"
#include "live_fixture.hpp"

#ifdef HOLDFAST_TEST_ASIO
#include "async_face.hpp"
namespace under_test = async_face;
#else
namespace under_test = holdfast;
#endif

using under_test::BlockingLock;
using under_test::Client;
using under_test::FairLock;
using under_test::FencedLock;
using under_test::MultiLock;
using under_test::Mutex;
using under_test::Owner;
using under_test::OwnerOf;
using under_test::ReadWriteLock;
using under_test::ReentrantLock;
using under_test::Semaphore;
using under_test::Watchdog;
using under_test::WatchdogPlaces;

// What both have in common.
using holdfast::ByteView;
using holdfast::ClientConfig;
using holdfast::drift_of;
using holdfast::Duration;
using holdfast::Instant;
using holdfast::Keep;
using holdfast::KeepOptions;
using holdfast::Key;
using holdfast::key_size_max;
using holdfast::LockTiming;
using holdfast::name_size_max;
using holdfast::names_max;
using holdfast::NativeDelete;
using holdfast::remaining_unlimited;
using holdfast::retry_delay_max;
using holdfast::retry_delay_min;
using holdfast::Status;
using holdfast::token_text_size;
using holdfast::wait_forever;
using namespace std::chrono_literals;  // NOLINT(google-global-names-in-headers): as limits.hpp has them.

// What a blocking client needs for a configuration with acks. The Asio client has it in itself.
#ifdef HOLDFAST_TEST_ASIO
struct Acks {
  explicit Acks(Client&) {}
};
#else
using holdfast::Acks;
#endif

// What hears of fail-overs. A watchdog of the Asio client runs the client's own loop, which hears for all.
#ifdef HOLDFAST_TEST_ASIO
struct SentinelWatch {
  explicit SentinelWatch(Client& client) { client.watch_sentinels(); }
  explicit SentinelWatch(Watchdog&) {}
};
#else
using holdfast::SentinelWatch;
#endif

// A client is connected to the server where it is first named: `Owner owner(connected(client, server))`.
inline Client& connected(Client& client, const RedisServer& server) {
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  return client;
}

// How often a lock of the hash kinds is held, as the server counts.
inline std::string count_on(const RedisServer& server, const BlockingLock& lock) {
  return server.command(
      {"HGET", std::string(lock.key().bytes().string_view()), std::string(lock.token().bytes().string_view())});
}

// What became of a posted release. The Asio client has no such question: who wants to know waits, with async_release().
inline void expect_post_outcome([[maybe_unused]] Status expected, [[maybe_unused]] const BlockingLock& lock) {
#ifndef HOLDFAST_TEST_ASIO
  TEST_ASSERT_EQUAL(expected, lock.post_outcome());
#endif
}

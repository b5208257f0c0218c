// SPDX-License-Identifier: MIT
//
// README's lock on three servers. They have started a moment ago, so they have no vote before max_lease is over: that is
// waited for, in the example's own measure.
#include <holdfast/holdfast.hpp>

#include "quorum_head.inc"

#include <thread>

#include "stage.hpp"

using namespace std::chrono_literals;

namespace {

void report(holdfast::ByteView words) { expect(false, words); }

// A second is the step in which a server tells how long it has been up.
void await_votes() {
  holdfast::Quorum<3> quorum;
  const holdfast::ByteView urls[] = {server("redis_10_0_0_1"), server("redis_10_0_0_2"), server("redis_10_0_0_3")};
  for (int tries = 0; quorum.connect(urls, 3, {.max_lease = 60s}) != holdfast::Status::ok; ++tries) {
    expect(tries < 100, quorum.error_text());
    say("no vote yet");
    std::this_thread::sleep_for(1s);
  }
}

void example() {
#include "quorum.inc"
  expect(lock.acquire(2s) == holdfast::Status::ok, quorum.error_text());
  holdfast::RedlockMutex<3> other(quorum, "orders/42", {.lease = 10s});
  expect(other.try_acquire() == holdfast::Status::lock_busy, "another has the lock, too");
  expect(lock.held(), "the lock is not held");
  expect(lock.release() == holdfast::Status::ok, "the lock was lost");
}

}  // namespace

int main() {
  await_votes();
  example();
  say("done");
}

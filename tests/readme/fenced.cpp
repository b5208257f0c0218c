// SPDX-License-Identifier: MIT
//
// README's FencedLock, whose hold is kept: its one write takes longer than a lease. The example goes on with the client of
// the first one.
#include "mutex_head.inc"

#include "fenced_head.inc"

#include <thread>

#include "stage.hpp"

namespace {

bool refused_to_others() {
  holdfast::Client client;
  expect(client.connect(server("redis_127_0_0_1")) == holdfast::Status::ok, "another client does not connect");
  holdfast::Owner owner(client);
  holdfast::FencedLock other(owner, "orders/42", {.lease = 5s});
  return other.try_acquire() == holdfast::Status::lock_busy;
}

constexpr int order = 42;

struct Store {
  void write(int, std::uint64_t fence) {
    expect(fence != 0, "no fence");
    for (auto left = longer_than_a_lease; left > 0s; left -= 1s) {
      expect(refused_to_others(), "another client has the lock during the write");
      say("held");
      std::this_thread::sleep_for(1s);
    }
    expect(refused_to_others(), "another client has the lock at the end of the write");
    written = true;
  }
  bool written = false;
} store;

int example(holdfast::Client& client) {
#include "fenced.inc"
  expect(lock.held(), "the lock was lost during the write");
  expect(lock.release() == holdfast::Status::ok, "the lock was lost by its release");
  return 0;
}

}  // namespace

int main() {
  holdfast::Client client;
  expect(client.connect(server("redis_127_0_0_1")) == holdfast::Status::ok, "the client does not connect");
  expect(example(client) == 0, "the example gave up");
  expect(store.written, "the example did not write");
  say("done");
}

// SPDX-License-Identifier: MIT
//
// README's first example: a Mutex with an explicit lease, work in steps, and a release.
#include "mutex_head.inc"

#include "stage.hpp"

namespace {

int steps_left = 3;

bool refused_to_others() {
  holdfast::Client client;
  expect(client.connect(server("redis_127_0_0_1")) == holdfast::Status::ok, "another client does not connect");
  holdfast::Mutex other(client, "orders/42", {.lease = 5s});
  return other.try_acquire() == holdfast::Status::lock_busy;
}

bool work_is_left() { return steps_left > 0; }

void do_a_step() {
  expect(refused_to_others(), "another client has the lock during the work");
  --steps_left;
}

void report(holdfast::ByteView words) { expect(false, words); }

int example() {
#include "mutex.inc"
  expect(!lock.held(), "still held after its release");
  expect(!refused_to_others(), "refused to others after its release");
  return 0;
}

}  // namespace

int main() {
  expect(example() == 0, "the example did not connect");
  expect(steps_left == 0, "the example did not do its work");
  say("done");
}

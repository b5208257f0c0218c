// SPDX-License-Identifier: MIT
//
// The first program of the tutorial, proto/guide/tutorial.md: a lock with a lease, and work in steps while it is held.
//
//     first_lock URL
#include <holdfast/holdfast.hpp>

#include <cstdio>

using namespace std::chrono_literals;
using holdfast::Status;

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  holdfast::Client client;
  if (client.connect(arguments[1]) != Status::ok) return 1;

  holdfast::Mutex lock(client, "orders/42", {.lease = 5s});
  const Status status = lock.acquire(2s);
  if (status != Status::ok) {
    std::printf("%s: %s %s\n", to_string(status), cause(status), remedy(status));
    return 1;
  }
  for (int step = 1; step <= 3; ++step) {
    if (!lock.held()) return 1;  // No I/O: the client's own, careful reckoning.
    std::printf("step %d\n", step);
  }
  std::printf("release: %s\n", to_string(lock.release()));
}

// SPDX-License-Identifier: MIT
//
// Who waits for a fair lock is given it by the release: nobody overtakes, also not who has just released it.
//
//     fair [URL]
#include <cstdio>
#include <string_view>
#include <thread>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

int main(int argument_count, char** arguments) {
  const std::string_view url = argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379";
  Client here;
  Client there;
  Status status = here.connect(url);
  if (status == Status::ok) status = there.connect(url);
  Owner one(here);
  Owner other(there);
  FairLock first(one, "holdfast/fair", {.lease = 10s});
  FairLock second(other, "holdfast/fair", {.lease = 10s});
  if (status == Status::ok) status = first.acquire(2s);
  std::thread waiter([&] { std::printf("the second: %s\n", to_string(second.acquire(5s))); });
  LockQueue queue;
  while (status == Status::ok && queue.waiting == 0) status = inspect_queue(here, first.key(), queue);
  if (status == Status::ok) status = first.release();
  if (status == Status::ok) std::printf("the first, at once again: %s\n", to_string(first.try_acquire()));
  waiter.join();
  if (status == Status::ok) status = second.release();
  std::printf("%s: %s %s\n", to_string(status), cause(status), remedy(status));
  return status == Status::ok ? 0 : 1;
}

// SPDX-License-Identifier: MIT
//
// Two printers for three who want to print: the third has one as soon as the first has given it back.
//
//     semaphore [URL]
#include <cstdio>
#include <string_view>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

int main(int argument_count, char** arguments) {
  Client client;
  Status status = client.connect(std::string_view(argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379"));
  Semaphore first(client, "holdfast/printers", 2, {.lease = 10s});
  Semaphore second(client, "holdfast/printers", 2, {.lease = 10s});
  Semaphore third(client, "holdfast/printers", 2, {.lease = 10s});
  if (status == Status::ok) status = first.try_acquire();
  if (status == Status::ok) status = second.try_acquire();
  if (status == Status::ok) std::printf("the third: %s\n", to_string(third.try_acquire()));
  if (status == Status::ok) status = first.release();
  if (status == Status::ok) status = third.acquire(2s);
  if (status == Status::ok) std::printf("the third, after a release: %s\n", to_string(third.release()));
  if (status == Status::ok) status = second.release();
  std::printf("%s: %s %s\n", to_string(status), cause(status), remedy(status));
  return status == Status::ok ? 0 : 1;
}

// SPDX-License-Identifier: MIT
//
// The second program of the tutorial, proto/guide/tutorial.md: a watchdog keeps a lock, and says when that is over.
//
//     kept_lock URL SECONDS
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace std::chrono_literals;
using holdfast::Status;

std::atomic<bool> stop = false;

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  holdfast::Client client;
  if (client.connect(arguments[1]) != Status::ok) return 1;
  holdfast::WatchdogPlaces<8> places;             // one for each hold that is kept at the same time
  holdfast::Watchdog watchdog(places.storage());  // a thread that renews what is held
  if (watchdog.start(client) != Status::ok) return 1;

  holdfast::Mutex lock(client, "orders/42", {.lease = 2s, .kept = true});
  const Status kept = lock.keep({.on_lost = [](void*) noexcept { stop = true; }});
  if (kept != Status::ok || lock.acquire(2s) != Status::ok) return 1;
  std::printf("acquired\n");
  std::fflush(stdout);
  for (int left = std::atoi(arguments[2]) * 10; left > 0 && !stop; --left) std::this_thread::sleep_for(100ms);
  std::printf("release: %s\n", to_string(lock.release()));
}

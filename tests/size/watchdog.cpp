// SPDX-License-Identifier: MIT
//
// The same with a watchdog: what it carries is measured by ./dev size.
#include <holdfast/client.hpp>
#include <holdfast/fenced_lock.hpp>
#include <holdfast/watchdog.hpp>

namespace {
holdfast::WatchdogPlaces<4> places;
}

int main() {
  holdfast::Client client;
  if (client.connect("redis://127.0.0.1") != holdfast::Status::ok) return 1;
  holdfast::Watchdog watchdog(places.storage());
  if (watchdog.start(client) != holdfast::Status::ok) return 2;
  holdfast::Owner owner(client);
  holdfast::FencedLock lock(owner, "k");
  if (lock.acquire(std::chrono::seconds(1)) != holdfast::Status::ok) return 3;
  return lock.release() == holdfast::Status::ok ? 0 : 4;
}

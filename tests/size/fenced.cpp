// SPDX-License-Identifier: MIT
//
// A service with a FencedLock that waits by push: what it carries is measured by ./dev size.
#include <holdfast/client.hpp>
#include <holdfast/fenced_lock.hpp>

int main() {
  holdfast::Client client;
  if (client.connect("redis://127.0.0.1") != holdfast::Status::ok) return 1;
  holdfast::Owner owner(client);
  holdfast::FencedLock lock(owner, "k");
  if (lock.acquire(std::chrono::seconds(1)) != holdfast::Status::ok) return 2;
  if (!lock.held() || lock.fence() == 0 || lock.renew() != holdfast::Status::ok) return 3;
  return lock.release() == holdfast::Status::ok ? 0 : 4;
}

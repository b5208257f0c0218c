// SPDX-License-Identifier: MIT
//
// A Mutex on three servers, kept by tend(): what it carries is measured by ./dev size.
#include <holdfast/quorum.hpp>
#include <holdfast/redlock.hpp>

namespace {
holdfast::Quorum<3> quorum;
}

int main() {
  const holdfast::ByteView urls[] = {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
  if (quorum.connect(urls, 3, {.max_lease = std::chrono::seconds(60)}) != holdfast::Status::ok) return 1;
  holdfast::RedlockMutex<3> lock(quorum, "k");
  if (lock.acquire(std::chrono::seconds(1)) != holdfast::Status::ok) return 2;
  (void)quorum.tend();
  if (!lock.held() || lock.renew() != holdfast::Status::ok) return 3;
  return lock.release() == holdfast::Status::ok ? 0 : 4;
}

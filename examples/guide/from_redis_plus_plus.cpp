// SPDX-License-Identifier: MIT
//
// What proto/guide/from_redis_plus_plus.md shows of holdfast: a lock on one server, and on several.
//
//     from_redis_plus_plus URL
//     from_redis_plus_plus URL URL URL
#include <holdfast/holdfast.hpp>

#include <cstdio>

using namespace std::chrono_literals;
using holdfast::Status;

namespace {

void work() { std::printf("work\n"); }

Status on_one_server(const char* url) {
  holdfast::Client client;
  if (const Status status = client.connect(url); status != Status::ok) return status;
  holdfast::Mutex lock(client, "orders/42", {.lease = 30s});
  holdfast::ScopedLock guard(lock, 500ms);
  if (!guard) return guard.status();
  work();
  // Not renewed, it is held until its end all the same.
  if (lock.renew() != Status::ok && !lock.held()) return Status::lock_lost;
  work();
  return guard.release();
}

Status on_several_servers(const holdfast::ByteView* urls) {
  holdfast::Quorum<3> quorum;
  const Status status = quorum.connect(urls, 3, {.max_lease = 2s});
  if (status != Status::ok && status != Status::no_quorum) return status;  // acquire() waits for a majority.
  holdfast::RedlockMutex<3> lock(quorum, "orders/42", {.lease = 2s});
  holdfast::ScopedRedlock guard(lock, 10s);
  if (!guard) return guard.status();
  work();
  return guard.release();
}

}  // namespace

int main(int argument_count, char** arguments) {
  Status status = Status::invalid_argument;
  if (argument_count == 2) status = on_one_server(arguments[1]);
  if (argument_count == 4) {
    const holdfast::ByteView urls[] = {arguments[1], arguments[2], arguments[3]};
    status = on_several_servers(urls);
  }
  std::printf("%s\n", to_string(status));
  return status == Status::ok ? 0 : 1;
}

// SPDX-License-Identifier: MIT
//
// What proto/guide/from_redsync.md shows of holdfast: a lock that Go services take by redsync, on one server and on several.
//
//     from_redsync URL
//     from_redsync URL URL URL
#include <holdfast/holdfast.hpp>

#include <cstdio>

using namespace std::chrono_literals;
using holdfast::Status;

namespace {

void work() { std::printf("work\n"); }

Status on_one_server(const char* url) {
  holdfast::Client client;
  if (const Status status = client.connect(url); status != Status::ok) return status;
  holdfast::Mutex lock(client, "orders/42", {.lease = 8s});
  if (const Status status = lock.acquire(5s); status != Status::ok) return status;
  work();
  // Not renewed, it is held until its end all the same.
  if (lock.renew() != Status::ok && !lock.held()) return Status::lock_lost;
  return lock.release();
}

Status on_several_servers(const holdfast::ByteView* urls) {
  holdfast::Quorum<3> quorum;
  const Status status = quorum.connect(urls, 3, {.max_lease = 2s});
  if (status != Status::ok && status != Status::no_quorum) return status;  // acquire() waits for a majority.
  holdfast::RedlockMutex<3> lock(quorum, "orders/42", {.lease = 2s});
  if (const Status asked = lock.acquire(10s); asked != Status::ok) return asked;
  work();
  return lock.release();
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

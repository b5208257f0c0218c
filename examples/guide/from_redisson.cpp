// SPDX-License-Identifier: MIT
//
// What proto/guide/from_redisson.md shows of holdfast: the locks that Java services take by Redisson, under the same names.
//
//     from_redisson URL
#include <holdfast/holdfast.hpp>

#include <cstdio>

using namespace std::chrono_literals;
using holdfast::Status;

namespace {

void work() { std::printf("work\n"); }

Status with_a_lease(holdfast::Owner& owner) {
  holdfast::ReentrantLock lock(owner, "orders/42", {.lease = 10s});
  if (const Status status = lock.acquire(2s); status != Status::ok) return status;
  work();
  return lock.release();
}

Status kept(holdfast::Client& client, holdfast::Owner& owner) {
  holdfast::WatchdogPlaces<8> places;
  holdfast::Watchdog watchdog(places.storage());
  if (const Status status = watchdog.start(client); status != Status::ok) return status;
  holdfast::ReentrantLock lock(owner, "orders/42");  // no lease: 30 s, and the watchdog renews it
  if (const Status status = lock.acquire(holdfast::wait_forever); status != Status::ok) return status;
  work();
  return lock.release();
}

Status fenced(holdfast::Owner& owner) {
  holdfast::FencedLock lock(owner, "orders/43", {.lease = 10s});
  if (const Status status = lock.acquire(2s); status != Status::ok) return status;
  std::printf("the fence is above zero: %s\n", lock.fence() > 0 ? "yes" : "no");
  return lock.release();
}

Status read_and_write(holdfast::Owner& owner) {
  holdfast::ReadWriteLock lock(owner, "catalogue", {.read = {.lease = 10s}, .write = {.lease = 10s}});
  if (const Status status = lock.read().acquire(2s); status != Status::ok) return status;
  work();
  if (const Status status = lock.read().release(); status != Status::ok) return status;
  if (const Status status = lock.write().acquire(2s); status != Status::ok) return status;
  work();
  return lock.write().release();
}

Status permits(holdfast::Client& client) {
  holdfast::Semaphore permit(client, "printers", 3, {.lease = 10s});
  if (const Status status = permit.acquire(2s); status != Status::ok) return status;
  work();
  return permit.release();
}

Status several(holdfast::Owner& owner) {
  holdfast::MultiLock lock(owner, {"accounts/1", "accounts/2"}, {.lease = 10s});
  if (const Status status = lock.acquire(2s); status != Status::ok) return status;
  work();
  return lock.release();
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  holdfast::Client client;
  Status status = client.connect(arguments[1]);
  holdfast::Owner owner(client);
  if (status == Status::ok) status = with_a_lease(owner);
  if (status == Status::ok) status = kept(client, owner);
  if (status == Status::ok) status = fenced(owner);
  if (status == Status::ok) status = read_and_write(owner);
  if (status == Status::ok) status = permits(client);
  if (status == Status::ok) status = several(owner);
  std::printf("%s\n", to_string(status));
  return status == Status::ok ? 0 : 1;
}

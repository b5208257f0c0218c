// SPDX-License-Identifier: MIT
//
// The sizes of the public objects, beside what their headers promise.
#include <cstdio>

#include "holdfast/holdfast.hpp"

int main() {
  using namespace holdfast;
  const struct {
    const char* name;
    std::size_t size;
    std::size_t promised;
  } rows[] = {
      {"Client", sizeof(Client), 16 * 1024},
      {"Mutex", sizeof(Mutex), 640},
      {"ReentrantLock", sizeof(ReentrantLock), 64},
      {"FairLock", sizeof(FairLock), 64},
      {"Acks", sizeof(Acks), 10 * 1024},
      {"SentinelWatch", sizeof(SentinelWatch), 6 * 1024},
      {"Lingering", sizeof(Lingering), 16 + lingering_max * 64},
      {"FencedLock", sizeof(FencedLock), 64},
      {"MultiLock", sizeof(MultiLock), 64},
      {"ReadWriteLock", sizeof(ReadWriteLock), 2 * 64},
      {"Semaphore", sizeof(Semaphore), 640},
      {"LockSet", sizeof(LockSet), 144},
      {"OwnerOf<1>", sizeof(OwnerOf<1>), 24 + 640},
      {"Owner", sizeof(Owner), 24 + 8 * 640},
      {"Watchdog", sizeof(Watchdog), 32 * 1024},
      {"a watchdog's lane", sizeof(WatchdogLane), 32 * 1024},
      {"a watchdog's place", sizeof(RenewalSchedule::Place), 112},
      {"ScopedLock", sizeof(ScopedLock), 16},
      {"SmallClient", sizeof(SmallClient), 4 * 1024},
      {"ClientConfig", sizeof(ClientConfig), 1280},
      {"Session", sizeof(Session), 768},
      {"SessionBuffers", sizeof(SessionBuffers), 10 * 1024},
      {"Subscriber", sizeof(Subscriber), 512},
      {"a waiter's place", sizeof(Subscriber::Waiter), 336},
      {"LockMachine", sizeof(LockMachine), 480},
      {"RespParser", sizeof(RespParser), 112},
      {"RespValue", sizeof(RespValue), 16},
      {"Token", sizeof(Token), 65},
      {"Instant", sizeof(Instant), 8},
  };
  std::printf("%-20s %8s %8s\n", "object", "bytes", "promised");
  int broken = 0;
  for (const auto& row : rows) {
    std::printf("%-20s %8zu %8zu\n", row.name, row.size, row.promised);
    if (row.size > row.promised) broken = 1;
  }
  return broken;
}

// SPDX-License-Identifier: MIT
//
// The sizes of the Asio client beside what its headers promise. What a client takes for each of its limits is counted from
// what its constructor takes of the heap.
#include <asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "holdfast/asio.hpp"

namespace {

std::size_t taken = 0;

}  // namespace

void* operator new(std::size_t size) {
  taken += size;
  if (void* const place = std::malloc(size); place != nullptr) return place;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* place) noexcept { std::free(place); }
void operator delete[](void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }
void operator delete[](void* place, std::size_t) noexcept { std::free(place); }

namespace {

using namespace holdfast;

std::size_t client_size(const AsyncLimits& limits) {
  asio::io_context loop(1);
  const AsyncClient before(loop.get_executor());  // What the loop itself takes once.
  taken = 0;
  const AsyncClient client(loop.get_executor(), limits);
  return sizeof(AsyncClient) + taken;
}

// Of a limit with so many more of them.
std::size_t size_each(std::size_t AsyncLimits::*limit) {
  constexpr std::size_t more = 1000;
  AsyncLimits limits;
  const std::size_t before = client_size(limits);
  limits.*limit += more;
  return (client_size(limits) - before + more - 1) / more;
}

}  // namespace

int main() {
  const struct {
    const char* name;
    std::size_t size;
    std::size_t promised;
  } rows[] = {
      {"AsyncClient, in all", client_size({}), 64 * 1024},
      {"an operation", size_each(&AsyncLimits::operations), 304},
      {"a request", size_each(&AsyncLimits::requests), 380},
      {"a waiter's place", size_each(&AsyncLimits::waiters), 336},
      {"a place to be kept", size_each(&AsyncLimits::kept), 116},
      {"Completion", sizeof(Completion), 304},
      {"AsyncMutex", sizeof(AsyncMutex), 1024},
      {"AsyncSemaphore", sizeof(AsyncSemaphore), 1024},
      {"AsyncReentrantLock", sizeof(AsyncReentrantLock), 80},
      {"AsyncFencedLock", sizeof(AsyncFencedLock), 80},
      {"AsyncFairLock", sizeof(AsyncFairLock), 80},
      {"AsyncMultiLock", sizeof(AsyncMultiLock), 80},
      {"AsyncReadWriteLock", sizeof(AsyncReadWriteLock), 2 * 80},
      {"AsyncOwnerOf<1>", sizeof(AsyncOwnerOf<1>), 32 + 968},
      {"AsyncOwner", sizeof(AsyncOwner), 32 + 8 * 968},
  };
  std::printf("%-20s %8s %8s\n", "on an Asio loop", "bytes", "promised");
  int broken = 0;
  for (const auto& row : rows) {
    std::printf("%-20s %8zu %8zu\n", row.name, row.size, row.promised);
    if (row.size > row.promised) broken = 1;
  }
  return broken;
}

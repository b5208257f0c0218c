// SPDX-License-Identifier: MIT
//
// The smallest program on the same board: takes one Mutex, keeps it for some seconds and lets it go. Its size is what a Mutex
// costs. It is started with PORT KEY SECONDS, and ends with 0 where it held the lock all the time.
#include <string_view>

#include "board.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "lock_service.hpp"
#include "site.hpp"
#include "words.hpp"

using namespace board;
using namespace holdfast;

namespace {

// The smallest buffers that serve a Mutex.
NodeBuffersOf<SmallSessionBuffers, small_texts_size, 1> buffers;
Network network;
LockMachine mutex(mutex_kind);
LockMachine* const machines[] = {&mutex};
LockService service({buffers.storage(), machines, 1}, network,
                    {[](const LockMachine&, LockEvent) {}, [](bool, Status, ByteView) {}}, nullptr);

// Turns the loop until the call is over, and says so.
bool finish(const char* what) {
  while (!service.over()) {
    if (!network.poll()) sleep();
    service.turn();
  }
  print(what);
  print(service.status() == Status::ok ? "ok\n" : "failed\n");
  return service.status() == Status::ok;
}

}  // namespace

int main() {
  if (const char* const missing = start(network); missing != nullptr) {
    print(missing);
    return 71;
  }
  char line[128];
  char* words = line;
  std::uint32_t port = 0;
  std::uint32_t seconds = 0;
  if (!read_command_line(line, sizeof line) || !read_number(take_word(words), UINT16_MAX, port)) return 64;
  const Key key(ByteView(std::string_view(take_word(words))));
  constexpr Duration lease = 3s;
  if (!read_number(take_word(words), 3600, seconds)) return 64;
  if (mutex.configure(key, {.lease = lease, .drift = drift_of(lease) + clock_step}) != Status::ok) return 64;
  service.connect(server_at(static_cast<std::uint16_t>(port)), server_config());
  service.acquire(mutex, 5s);
  if (!finish("acquire: ")) return 75;
  const Instant until = now() + std::chrono::seconds(seconds);
  while (now() < until) {
    if (!network.poll()) sleep();
    service.turn();
    if (!mutex.held(now())) return 79;
  }
  service.release(mutex);
  return finish("release: ") ? 0 : 79;
}

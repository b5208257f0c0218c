// SPDX-License-Identifier: MIT
//
// A service that knows its numbers: a meter counts what its client does, an observer tells of losses as they happen, and the
// numbers are printed as OpenMetrics text, as an HTTP handler for Prometheus would send them.
//
//     stats [URL]
#include <cstdio>
#include <string_view>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

int main(int argument_count, char** arguments) {
  // On the thread that found it out: it is short, and calls nothing of holdfast.
  const Observer observer = {.on_loss = [](void*, const Observation& seen) noexcept {
    std::fprintf(stderr, "lost %.*s\n", static_cast<int>(seen.name.size()), seen.name.data());
  }};
  Meter meter(observer);  // Before the client, which it outlives.
  Client client;
  ClientConfig config;
  if (parse_url(std::string_view(argument_count > 1 ? arguments[1] : "redis://127.0.0.1"), config) != Status::ok)
    return 1;
  config.meter = &meter;
  if (client.connect(config) != Status::ok) return 1;

  Mutex lock(client, "holdfast/example", {.lease = 5s});
  for (int job = 0; job < 3; ++job)
    if (lock.acquire(2s) != Status::ok || lock.renew() != Status::ok || lock.release() != Status::ok) return 1;

  char text[openmetrics_size_max];
  std::size_t size = 0;
  if (write_openmetrics(client.stats(), {text, sizeof text}, size) != Status::ok) return 1;
  return std::fwrite(text, 1, size, stdout) == size ? 0 : 1;
}

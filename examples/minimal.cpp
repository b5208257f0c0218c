// SPDX-License-Identifier: MIT
//
// The smallest honest program: it takes a lock, works only while it holds it, and lets it go.
//
//     minimal [URL]
#include <cstdio>
#include <string_view>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr int steps = 10;

int fail(const char* what, Status status) {
  std::printf("%s: %s. %s %s\n", what, to_string(status), cause(status), remedy(status));
  return 1;
}

// A piece of work that is short beside the lease.
void do_step(int step) { std::printf("step %d of %d\n", step, steps); }

}  // namespace

int main(int argument_count, char** arguments) {
  Client client;
  Status status = client.connect(std::string_view(argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379"));
  if (status != Status::ok) return fail("connect", status);

  Mutex lock(client, "holdfast/example", {.lease = 5s});
  status = lock.acquire(2s);
  if (status != Status::ok) return fail("acquire", status);

  // held() is asked before every step that must not happen twice: the lock ends by itself, also while we sleep.
  for (int step = 1; step <= steps; ++step) {
    if (Client::now() >= lock.renewal_due()) (void)lock.renew();
    if (!lock.held()) return fail("work", Status::lock_lost);
    do_step(step);
  }

  status = lock.release();
  if (status != Status::ok) return fail("release", status);
  std::printf("acquire and release: %s\n", to_string(status));
  return 0;
}

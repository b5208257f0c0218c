// SPDX-License-Identifier: MIT
//
// A lock on several independent servers: held while a majority of them holds it.
//
//     redlock URL URL URL...
#include <cstdio>
#include <vector>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr int steps = 10;

// The quorum knows which nodes did not vote, and why.
int fail(const char* what, Status status, QuorumClient& quorum) {
  const ByteView nodes = quorum.error_text();
  std::printf("%s: %s. %s\n%.*s\n", what, cause(status), remedy(status), static_cast<int>(nodes.size()), nodes.data());
  return 1;
}

void do_step(int step) { std::printf("step %d of %d\n", step, steps); }

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::string_view> texts(arguments + 1, arguments + argument_count);
  const std::vector<ByteView> urls(texts.begin(), texts.end());

  // Every client of this quorum has the same max_lease. Servers that have just started do not vote before it is over.
  Quorum<nodes_max> quorum;
  Status status = quorum.connect(urls.data(), urls.size(), {.max_lease = 10s});
  if (status != Status::ok) return fail("connect", status, quorum);

  // The fence is for the resource: it refuses who comes with a smaller one.
  RedlockMutex<nodes_max> lock(quorum, "holdfast/example", {.lease = 5s}, {.fence = true});
  status = lock.acquire(2s);
  if (status != Status::ok) return fail("acquire", status, quorum);
  std::printf("held on %zu of %zu nodes at least; the fence is %llu\n", quorum.majority(), quorum.nodes(),
              static_cast<unsigned long long>(lock.fence()));

  for (int step = 1; step <= steps; ++step) {
    if (Client::now() >= lock.renewal_due()) (void)lock.renew();
    if (!lock.held()) return fail("work", Status::lock_lost, quorum);
    do_step(step);
  }

  status = lock.release();
  if (status != Status::ok) return fail("release", status, quorum);
  return 0;
}

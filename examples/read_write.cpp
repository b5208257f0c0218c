// SPDX-License-Identifier: MIT
//
// A catalogue that many read and one at a time changes. Who has changed it reads it once more before the next one may.
//
//     read_write [URL]
#include <cstdio>
#include <string_view>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

int fail(const char* what, Status status) {
  std::printf("%s: %s. %s %s\n", what, to_string(status), cause(status), remedy(status));
  return 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  Client client;
  Status status = client.connect(std::string_view(argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379"));
  if (status != Status::ok) return fail("connect", status);

  Owner owner(client);
  ReadWriteLock lock(owner, "holdfast/catalogue", {.read = {.lease = 10s}, .write = {.lease = 10s}});
  if (status = lock.read().acquire(2s); status != Status::ok) return fail("read", status);
  std::printf("read, beside others\n");
  // Who reads and wants to write lets go first: what was read may be another text by then.
  if (status = lock.write().acquire(2s); status != Status::upgrade_refused) return fail("write while reading", status);
  if (status = lock.read().release(); status != Status::ok) return fail("release", status);

  if (status = lock.write().acquire(2s); status != Status::ok) return fail("write", status);
  std::printf("changed, alone\n");
  if (status = lock.read().acquire(2s); status != Status::ok) return fail("read while writing", status);
  if (status = lock.write().release(); status != Status::ok) return fail("release", status);
  std::printf("read what was changed, beside others: %s\n", to_string(lock.read().release()));
  return 0;
}

// SPDX-License-Identifier: MIT
//
// What a consumer writes: take a lock, work, let it go. It uses nothing of libstdc++ but headers, so that the same
// file proves that a program without exceptions links with the C compiler.
#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>

#include <chrono>
#include <cstdio>
#include <string_view>

namespace {

bool expect_ok(const char* what, holdfast::Status status) {
  if (status == holdfast::Status::ok) return true;
  std::fprintf(stderr, "%s: %s. %s\n", what, holdfast::cause(status), holdfast::remedy(status));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
  holdfast::Client client;
  if (!expect_ok("connect", client.connect(url))) return 1;

  holdfast::Mutex lock(client, "consumer", {.lease = std::chrono::seconds(5)});
  if (!expect_ok("try_acquire", lock.try_acquire())) return 1;
  std::printf("held: %s\n", lock.held() ? "yes" : "no");
  if (!lock.held()) return 1;
  if (!expect_ok("release", lock.release())) return 1;
  return lock.held() ? 1 : 0;
}

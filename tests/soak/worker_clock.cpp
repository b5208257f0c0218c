// SPDX-License-Identifier: MIT
#include <netdb.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "soak_log.hpp"

extern "C" {
int __real_clock_gettime(clockid_t clock, timespec* time);
int __wrap_clock_gettime(clockid_t clock, timespec* time);
int __real_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found);
int __wrap_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found);
}

namespace soak {

namespace {

constexpr std::int64_t second = 1'000'000'000;

// All of it is set before there is a second thread.
std::int64_t begin = 0;
int rate = 0;
std::atomic<std::uint64_t> names{0};  // 0: names are as fast as they are.
const char* address_of_names = "127.0.0.1";
thread_local std::int64_t waited = 0;

std::int64_t count_of(const timespec& time) noexcept { return std::int64_t{time.tv_sec} * second + time.tv_nsec; }

// Of a difference of instants: a day of nanoseconds times a hundred thousand fits.
constexpr std::int64_t million = 1'000'000;

void sleep_for(std::int64_t count) noexcept {
  timespec left{static_cast<time_t>(count / second), static_cast<long>(count % second)};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

}  // namespace

void WorkerClock::set_rate(int millionths) noexcept {
  begin = true_now();
  rate = millionths;
}

void WorkerClock::make_names_slow(std::uint64_t seed) noexcept { names = seed | 1; }

void WorkerClock::lead_names_to(const char* address) noexcept { address_of_names = address; }

std::int64_t WorkerClock::true_now() noexcept {
  timespec time;
  if (__real_clock_gettime(CLOCK_BOOTTIME, &time) != 0) std::abort();
  return count_of(time);
}

std::int64_t WorkerClock::true_time(holdfast::Instant shown) noexcept {
  const std::int64_t passed = shown.nanoseconds() - begin;
  if (rate == 0 || shown == holdfast::Instant() || shown == holdfast::Instant::max()) return shown.nanoseconds();
  // Rounded down: a belief is never taken for longer than it is.
  return begin + static_cast<std::int64_t>(static_cast<long double>(passed) * million / (million + rate));
}

std::int64_t WorkerClock::waited_for_names() noexcept { return waited; }

}  // namespace soak

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  const int result = __real_clock_gettime(clock, time);
  if (result != 0 || clock != CLOCK_BOOTTIME || soak::rate == 0) return result;
  const std::int64_t passed = soak::count_of(*time) - soak::begin;
  const std::int64_t shown = soak::begin + static_cast<std::int64_t>(static_cast<long double>(passed) *
                                                                     (soak::million + soak::rate) / soak::million);
  time->tv_sec = static_cast<time_t>(shown / soak::second);
  time->tv_nsec = static_cast<long>(shown % soak::second);
  return 0;
}

// The hosts of the soak are on this machine. Where names are slow,
// one in eight takes up to two seconds, one in eight is not resolved, the others take up to a quarter of a second.
int __wrap_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  if (host == nullptr || (std::strncmp(host, "soak.", 5) != 0 && std::strcmp(host, "localhost") != 0))
    return __real_getaddrinfo(host, service, hints, found);
  std::uint64_t drawn = soak::names.load();
  if (drawn == 0) return __real_getaddrinfo(soak::address_of_names, service, hints, found);
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  soak::names = drawn;
  const std::uint64_t choice = drawn >> 32;
  const std::int64_t longest = choice % 8 == 0 ? 2 * soak::second : soak::second / 4;
  const std::int64_t length = static_cast<std::int64_t>(choice / 64) % longest;
  const std::int64_t since = soak::WorkerClock::true_now();
  soak::sleep_for(length);
  soak::waited += soak::WorkerClock::true_now() - since;
  return choice % 8 == 1 ? EAI_AGAIN : __real_getaddrinfo(soak::address_of_names, service, hints, found);
}

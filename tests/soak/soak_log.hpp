// SPDX-License-Identifier: MIT
//
// Log is what a worker of the soak tells the checker (checker.py has the words): a line per event, each written by one write(2), so
// that whoever is killed has said all that it knew. Its instants are the machine's, whatever clock holdfast is given: WorkerClock
// lets that one run at another rate, and makes libc's resolver slow.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "holdfast/core/instant.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SOAK_MEMORY_IS_OURS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SOAK_MEMORY_IS_OURS 0
#endif
#endif
#ifndef SOAK_MEMORY_IS_OURS
#define SOAK_MEMORY_IS_OURS 1
#endif

namespace soak {

// What the linker puts in place of clock_gettime() and getaddrinfo(), see worker_clock.cpp.
class WorkerClock {
 public:
  // From here on holdfast's clock runs faster by so many millionths.
  static void set_rate(int millionths) noexcept;
  // Names take their time from here on, and some are not resolved.
  static void make_names_slow(std::uint64_t seed) noexcept;
  // Where the hosts of the soak are; else at 127.0.0.1.
  static void lead_names_to(const char* address) noexcept;
  // Nanoseconds of CLOCK_BOOTTIME, at its own rate.
  [[nodiscard]] static std::int64_t true_now() noexcept;
  // When holdfast's clock shows this instant.
  [[nodiscard]] static std::int64_t true_time(holdfast::Instant shown) noexcept;
  // How long this thread has waited for names.
  [[nodiscard]] static std::int64_t waited_for_names() noexcept;
};

class Log {
 public:
  explicit Log(const std::string& path) : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) {
      std::perror(path.c_str());
      std::exit(2);
    }
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { ::close(file_); }

  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) noexcept {
    char text[512];
    va_list words;
    va_start(words, format);
    const int size = std::vsnprintf(text, sizeof text, format, words);
    va_end(words);
    const bool fits = size > 0 && static_cast<std::size_t>(size) < sizeof text;
    if (!fits || ::write(file_, text, static_cast<std::size_t>(size)) != size)
      std::abort();  // With a hole it is worth nothing.
  }

  void start(const std::string& role) noexcept {
    line("start %" PRId64 " %d %s\n", WorkerClock::true_now(), static_cast<int>(::getpid()), role.c_str());
  }
  void ask(std::int64_t at, int actor, const char* lock, const char* call, holdfast::Duration bound) noexcept {
    line("ask %" PRId64 " %d %s %s %" PRId64 "\n", at, actor, lock, call, std::int64_t{bound.count()});
  }
  void told(int actor, const char* status, std::int64_t excused) noexcept {
    line("told %" PRId64 " %d %s %" PRId64 "\n", WorkerClock::true_now(), actor, status, excused);
  }
  void got(std::int64_t at, int actor, const char* lock, char mode, std::int64_t until, std::uint64_t fence) noexcept {
    line("got %" PRId64 " %d %s %c %" PRId64 " %" PRIu64 "\n", at, actor, lock, mode, until, fence);
  }
  void until(int actor, std::int64_t until) noexcept {
    line("until %" PRId64 " %d %" PRId64 "\n", WorkerClock::true_now(), actor, until);
  }
  void end(int actor) noexcept { line("end %" PRId64 " %d\n", WorkerClock::true_now(), actor); }
  void read(int actor, const char* counter, std::uint64_t value) noexcept {
    line("read %" PRId64 " %d %s %" PRIu64 "\n", WorkerClock::true_now(), actor, counter, value);
  }
  void write(int actor, std::uint64_t value) noexcept {
    line("write %" PRId64 " %d %" PRIu64 "\n", WorkerClock::true_now(), actor, value);
  }
  void wrote(std::int64_t at, int actor) noexcept { line("wrote %" PRId64 " %d\n", at, actor); }
  void refused(int actor, const char* counter, std::uint64_t fence) noexcept {
    line("refused %" PRId64 " %d %s %" PRIu64 "\n", WorkerClock::true_now(), actor, counter, fence);
  }
  void bye() noexcept { line("bye %" PRId64 "\n", WorkerClock::true_now()); }
  // At most once a second. Not where a sanitizer keeps what was freed.
  void memory() noexcept {
    if (SOAK_MEMORY_IS_OURS == 0) return;
    const std::int64_t now = WorkerClock::true_now();
    if (now - remembered_ < 1'000'000'000) return;
    remembered_ = now;
    line("memory %" PRId64 " %ld %zu\n", now, resident() * ::sysconf(_SC_PAGESIZE), heap());
  }

 private:
  [[nodiscard]] static long resident() noexcept {
    char text[128] = {};
    const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t size = ::read(file, text, sizeof text - 1);
    ::close(file);
    const char* const second = size > 0 ? std::strchr(text, ' ') : nullptr;
    return second == nullptr ? 0 : std::strtol(second, nullptr, 10);
  }
  [[nodiscard]] static std::size_t heap() noexcept {
#if __GLIBC_PREREQ(2, 33)
    return ::mallinfo2().uordblks;
#else
    return static_cast<std::size_t>(static_cast<unsigned>(::mallinfo().uordblks));
#endif
  }

  int file_;
  std::int64_t remembered_ = 0;
};

}  // namespace soak

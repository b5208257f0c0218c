// SPDX-License-Identifier: MIT
//
// ContentionMemory is what the processes of one run share: whether the run is on, who is inside, and what each client was
// granted and how long it waited. It is a file in memory that programs of other languages open by its path. All numbers
// are little-endian; waits are microseconds, and times nanoseconds of CLOCK_MONOTONIC:
//
//     at 0              ContentionHead
//     at (i + 1) MiB    ContentionSlot of client i
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace bench {

enum class ContentionPhase : std::int32_t { preparing, running, ending };

struct ContentionHead {
  std::atomic<std::int32_t> phase;
  std::atomic<std::int32_t> inside;    // The client that holds the lock, counted from 1; 0: nobody.
  std::atomic<std::int32_t> violated;  // 1: two were inside at once.
};

struct ContentionSlot {
  static constexpr std::size_t size = std::size_t{1} << 20U;
  static constexpr std::size_t waits_max = size / sizeof(std::uint32_t) - 4;

  std::atomic<std::int64_t> waiting_since;  // 0: it does not wait.
  std::atomic<std::int32_t> ready;          // 1: it is connected, and begins when the phase is running.
  std::atomic<std::uint32_t> grants;        // A client that has waits_max of them ends.
  std::uint32_t waits[waits_max];           // One a grant.
};
static_assert(sizeof(ContentionSlot) == ContentionSlot::size && offsetof(ContentionSlot, waits) == 16);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

class ContentionMemory {
 public:
  explicit ContentionMemory(std::size_t clients)
      : clients_(clients),
        size_((clients + 1) * ContentionSlot::size),
        descriptor_(::memfd_create("bench", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
      throw std::runtime_error("no file in memory");
    void* const begin = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (begin == MAP_FAILED) throw std::runtime_error("no shared memory");
    begin_ = static_cast<std::byte*>(begin);
  }
  ~ContentionMemory() {
    ::munmap(begin_, size_);
    ::close(descriptor_);
  }
  ContentionMemory(const ContentionMemory&) = delete;
  ContentionMemory& operator=(const ContentionMemory&) = delete;

  [[nodiscard]] std::size_t clients() const { return clients_; }
  // As long as this process lives.
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor_);
  }

  // Pages of zeros are objects of these types from the start.
  [[nodiscard]] ContentionHead& head() const { return *reinterpret_cast<ContentionHead*>(begin_); }
  [[nodiscard]] ContentionSlot& slot(std::size_t client) const {
    return *reinterpret_cast<ContentionSlot*>(begin_ + (client + 1) * ContentionSlot::size);
  }

  [[nodiscard]] ContentionPhase phase() const { return static_cast<ContentionPhase>(head().phase.load()); }
  void set_phase(ContentionPhase phase) const { head().phase = static_cast<std::int32_t>(phase); }

  // A client has the lock, and is about to let go of it: nobody else was inside when it came, or has come since.
  void enter(std::size_t client) const {
    if (head().inside.exchange(static_cast<std::int32_t>(client) + 1) != 0) head().violated = 1;
  }
  void leave(std::size_t client) const {
    if (head().inside.exchange(0) != static_cast<std::int32_t>(client) + 1) head().violated = 1;
  }

 private:
  std::size_t clients_;
  std::size_t size_;
  int descriptor_;
  std::byte* begin_ = nullptr;
};

}  // namespace bench

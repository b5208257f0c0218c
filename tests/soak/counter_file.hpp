// SPDX-License-Identifier: MIT
//
// CounterFile is what the locks of the soak protect: a number in a file, read and written in two steps that only a lock makes one.
// A plain one takes what comes. A fenced one refuses whoever comes with a smaller fence than it has seen, as a resource should.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "soak_log.hpp"

namespace soak {

class CounterFile {
 public:
  // The log's name of it is the file's.
  CounterFile(const std::string& folder, const std::string& name)
      : name_(name), file_(::open((folder + '/' + name).c_str(), O_RDWR | O_CLOEXEC)) {
    if (file_ < 0) {
      std::perror(name.c_str());
      std::exit(2);
    }
  }
  CounterFile(const CounterFile&) = delete;
  CounterFile& operator=(const CounterFile&) = delete;
  ~CounterFile() { ::close(file_); }

  // Fence 0: it is a plain one. False: refused.
  [[nodiscard]] bool read(Log& log, int actor, std::uint64_t fence) noexcept {
    if (fence == 0) {
      seen_ = load();
    } else {
      const Turn turn(file_);
      Content content = load();
      if (fence < content.fence) {
        log.refused(actor, name_.c_str(), fence);
        return false;
      }
      content.fence = fence;
      store(content);
      seen_ = content;
    }
    log.read(actor, name_.c_str(), seen_.value);
    return true;
  }
  // One more than was read.
  void write(Log& log, int actor, std::uint64_t fence) noexcept {
    log.write(actor, seen_.value + 1);
    std::int64_t at = 0;
    if (fence == 0) {
      store({seen_.value + 1, 0});
      at = WorkerClock::true_now();
    } else {
      const Turn turn(file_);
      if (fence < load().fence) {
        log.refused(actor, name_.c_str(), fence);
        return;
      }
      store({seen_.value + 1, fence});
      at = WorkerClock::true_now();
    }
    log.wrote(at, actor);
  }

 private:
  struct Content {
    std::uint64_t value;
    std::uint64_t fence;
  };
  // Of a fenced one: its look and its write are one step.
  class Turn {
   public:
    explicit Turn(int file) noexcept : file_(file) {
      while (::flock(file, LOCK_EX) != 0) {}
    }
    ~Turn() { ::flock(file_, LOCK_UN); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    int file_;
  };

  [[nodiscard]] Content load() const noexcept {
    Content content{};
    if (::pread(file_, &content, sizeof content, 0) != sizeof content) std::abort();
    return content;
  }
  void store(const Content& content) const noexcept {
    if (::pwrite(file_, &content, sizeof content, 0) != sizeof content) std::abort();
  }

  std::string name_;
  int file_;
  Content seen_{};
};

}  // namespace soak

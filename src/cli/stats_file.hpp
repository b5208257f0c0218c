// SPDX-License-Identifier: MIT
//
// The file of `holdfast run --stats`: written when the command starts, again and again while it runs, and at the end. A thread of
// its own does it, since a disk may let it wait for as long as it likes, and the lock must be renewed meanwhile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "holdfast/detail/meter.hpp"
#include "options.hpp"

namespace holdfast::cli {

class StatsFile {
 public:
  // REQUIRES: both outlive this, and there is a file in the options.
  StatsFile(const RunOptions& options, const Meter& meter) : options_(options), meter_(meter) {}
  ~StatsFile() { end_thread(); }
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  // False, and said, where it cannot be written, as far as can be told without writing it. Before anything else.
  [[nodiscard]] bool writable();
  // From here on it is written each stats_interval, the first time now. Without a thread it is written at the end alone, which is
  // said. REQUIRES: nobody forks any more.
  void begin();
  // Writes it a last time.
  void finish();

 private:
  void run();
  void write();
  void tell(const std::string& problem);
  void end_thread();

  const RunOptions& options_;
  const Meter& meter_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;    // Under the mutex.
  std::string problem_;  // That was told last: the same once more is no news. Of whoever writes.
};

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
#include "stats_file.hpp"

#include <signal.h>

#include <system_error>
#include <vector>

#include "holdfast/core/openmetrics.hpp"
#include "holdfast/proto/assert.hpp"
#include "messages.hpp"
#include "new_file.hpp"

namespace holdfast::cli {

bool StatsFile::writable() {
  const std::string problem = new_file_problem(options_.stats);
  if (!problem.empty()) tell(problem);
  return problem.empty();
}

void StatsFile::begin() {
  // Signals are the main thread's. A new thread has the mask of who starts it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string problem;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    problem = "it is written at the end alone: " + error.code().message();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!problem.empty()) tell(problem);
}

void StatsFile::finish() {
  end_thread();
  write();
}

void StatsFile::run() {
  std::unique_lock<std::mutex> guard(mutex_);
  while (!over_) {
    guard.unlock();
    write();
    guard.lock();
    wake_.wait_for(guard, options_.stats_interval, [this] { return over_; });
  }
}

void StatsFile::write() {
  std::vector<MetricLabel> labels;
  std::size_t label_bytes = 0;
  for (const auto& [name, value] : options_.stats_labels) {
    labels.push_back({ByteView(std::string_view(name)), ByteView(std::string_view(value))});
    label_bytes += name.size() + value.size();
  }
  std::string text(openmetrics_size_max_with(labels.size(), label_bytes), '\0');
  std::size_t size = 0;
  const Status status =
      write_openmetrics(meter_.stats(), {text.data(), text.size()}, size, labels.data(), labels.size());
  HOLDFAST_ASSERT(status == Status::ok);  // options.cpp has judged the labels, and the size is a sum.
  text.resize(size);
  if (const std::string problem = write_new_file(options_.stats, text); !problem.empty()) tell(problem);
}

void StatsFile::tell(const std::string& problem) {
  if (problem == problem_) return;
  problem_ = problem;
  say("--stats: " + escaped(options_.stats) + ": " + problem);
}

void StatsFile::end_thread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace holdfast::cli

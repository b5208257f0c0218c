// SPDX-License-Identifier: MIT
//
// WorkerReport is what one flow of control of a worker tells the log of one lock: of its one name, or of each of several that are
// taken together. To the checker each of several names has an actor of its own, so that each is judged as any other hold.
#pragma once

#include <cinttypes>
#include <string>
#include <vector>

#include "counter_file.hpp"
#include "soak_log.hpp"
#include "worker_options.hpp"

namespace soak {

// More than there are flows of control.
inline constexpr int next_name = 100;

// A name that is taken.
struct Part {
  const char* lock;
  char mode;             // As the log has it.
  CounterFile* counter;  // nullptr where several may hold it at a time.
};

class WorkerReport {
 public:
  WorkerReport(const WorkerOptions& options, Log& log, int actor, const std::vector<Part>& parts)
      : log_(log), actor_(actor) {
    for (const Part& part : parts) names_.push_back({options.name_of(part.lock), part.mode, part.counter});
  }

  void ask(const char* call, holdfast::Duration bound) {
    const std::int64_t at = WorkerClock::true_now();
    each([&](int actor, const Name& name) { log_.ask(at, actor, name.text.c_str(), call, bound); });
  }
  void told(const char* status, std::int64_t excused) {
    each([&](int actor, const Name&) { log_.told(actor, status, excused); });
  }
  // REQUIRES: a fence of one name alone.
  void got(std::int64_t at, std::int64_t until, std::uint64_t fence) {
    until_ = until;
    each([&](int actor, const Name& name) { log_.got(at, actor, name.text.c_str(), name.mode, until, fence); });
  }
  // Says nothing where it is no later than what was said.
  void until(std::int64_t until) {
    if (until <= until_) return;
    until_ = until;
    each([&](int actor, const Name&) { log_.until(actor, until); });
  }
  void read(std::uint64_t fence) {
    each([&](int actor, Name& name) { name.read = name.counter != nullptr && name.counter->read(log_, actor, fence); });
  }
  // What was read, and one more.
  void write(std::uint64_t fence) {
    each([&](int actor, const Name& name) {
      if (name.read) name.counter->write(log_, actor, fence);
    });
  }
  void end() {
    each([&](int actor, const Name&) { log_.end(actor); });
  }

 private:
  struct Name {
    std::string text;
    char mode;
    CounterFile* counter;
    bool read = false;
  };

  template <class Say>
  void each(Say say) {
    int actor = actor_;
    for (Name& name : names_) {
      say(actor, name);
      actor += next_name;
    }
  }

  Log& log_;
  int actor_;
  std::int64_t until_ = 0;
  std::vector<Name> names_;
};

}  // namespace soak

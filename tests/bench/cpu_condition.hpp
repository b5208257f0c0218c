// SPDX-License-Identifier: MIT
//
// Under which conditions client and server meet. A core that has nothing to do is halted, and to wake it costs more
// than a lock does; so the condition decides what a ratio can show:
//
//     plain      client and server on a core each. What a user feels; single rounds spread widely.
//     no-halt    the same, with an idle-priority pause loop on each core, so that no core halts.
//     same-cpu   client and server on one core: the time is the sum of both sides' work. The one for small ratios.
//                Both run as SCHED_BATCH, so that a wake-up never takes the core away from the other side. Otherwise
//                the scheduler's mood decides how often a pair switches between them (2 to 3.3 times, other for each
//                contender), and that is worth more than what is measured.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace bench {

enum class Condition : unsigned char { plain, no_halt, same_cpu };

inline const char* to_string(Condition condition) {
  switch (condition) {
    case Condition::plain: return "plain";
    case Condition::no_halt: return "no-halt";
    case Condition::same_cpu: return "same-cpu";
  }
  return "invalid";
}

// The cores that this process may use.
inline std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

// Puts a thread (0: the calling one) on a core, under a scheduling policy that has no priorities. What is not allowed
// stays as it is.
inline void place_thread(pid_t thread, int cpu, int policy) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  (void)::sched_setaffinity(thread, sizeof set, &set);
  const sched_param parameter{};
  (void)::sched_setscheduler(thread, policy, &parameter);
}

inline void place_process(pid_t process, int cpu, int policy) {
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error))
    place_thread(static_cast<pid_t>(std::atoi(task.path().filename().c_str())), cpu, policy);
}

// The conditions that `name` stands for ("all": every one) and that so many cores allow. Says on stderr which they do not.
inline std::vector<Condition> conditions_of(const std::string& name, const std::vector<int>& cpus) {
  std::vector<Condition> conditions;
  for (const Condition condition : {Condition::plain, Condition::no_halt, Condition::same_cpu}) {
    if (name != "all" && name != to_string(condition)) continue;
    if (cpus.size() > 1 || condition == Condition::same_cpu)
      conditions.push_back(condition);
    else
      (void)std::fprintf(stderr, "one core, so no %s\n", to_string(condition));
  }
  return conditions;
}

// Keeps cores from halting for as long as it lives, and yields them to whoever has work.
class PauseLoops {
 public:
  explicit PauseLoops(const std::vector<int>& cpus) {
    for (const int cpu : cpus) threads_.emplace_back([this, cpu] { loop(cpu); });
  }
  ~PauseLoops() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }
  PauseLoops(const PauseLoops&) = delete;
  PauseLoops& operator=(const PauseLoops&) = delete;

 private:
  void loop(int cpu) {
    place_thread(0, cpu, SCHED_IDLE);
    if (::sched_getscheduler(0) != SCHED_IDLE) return;  // It would take the core instead of keeping it awake.
    while (!stop_.load(std::memory_order_relaxed)) {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  }

  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Puts client and server where the condition wants them, until the next placement: the calling thread, the threads and
// processes that it starts from now on, and the server's process. REQUIRES: two cores for all but same-cpu.
class Placement {
 public:
  Placement(Condition condition, pid_t server, const std::vector<int>& cpus)
      : Placement(condition, std::vector<pid_t>{server}, cpus) {}
  // Several servers share their core.
  Placement(Condition condition, const std::vector<pid_t>& servers, const std::vector<int>& cpus) {
    const bool same_cpu = condition == Condition::same_cpu;
    const int server_cpu = same_cpu ? cpus[0] : cpus[1];
    const int policy = same_cpu ? SCHED_BATCH : SCHED_OTHER;
    place_thread(0, cpus[0], policy);
    for (const pid_t server : servers) place_process(server, server_cpu, policy);
    if (condition == Condition::no_halt) pauses_.emplace(std::vector<int>{cpus[0], server_cpu});
  }

 private:
  std::optional<PauseLoops> pauses_;
};

}  // namespace bench

// SPDX-License-Identifier: MIT
#include "sitting.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <new>
#include <string>
#include <type_traits>

namespace holdfast::sim {

namespace {

using Clock = std::chrono::steady_clock;

static_assert(std::is_trivially_copyable_v<Sum> && sizeof(Sum) <= PIPE_BUF, "a sum goes through a pipe in one piece");

// What the processes of a sitting have in common.
struct Shared {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stopped{false};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

SimTime cpu_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * second + time.tv_nsec;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A line that a terminal overwrites; elsewhere one every ten seconds.
class Progress {
 public:
  explicit Progress(Clock::time_point begin) : begin_(begin), terminal_(::isatty(STDERR_FILENO) == 1) {}

  void show(const Sum& sum) {
    const double seconds = seconds_since(begin_);
    if (seconds < shown_ + (terminal_ ? 1 : 10)) return;
    shown_ = seconds;
    std::fprintf(stderr, "%s%.0f s: %" PRIu64 " worlds, %.1f simulated hours, %" PRIu64 " failed%s",
                 terminal_ ? "\r" : "", seconds, sum.worlds, static_cast<double>(sum.time) / 3.6e12, sum.failed,
                 terminal_ ? "   " : "\n");
  }
  void end() const {
    if (terminal_ && shown_ > 0) std::fprintf(stderr, "\n");
  }

 private:
  Clock::time_point begin_;
  bool terminal_;
  double shown_ = 0;
};

// One process's part. `tell` is called after each world.
Sum run_part(const SittingPlan& plan, Shared& shared, Clock::time_point begin, const RunOne& run_one,
             const std::function<void(const Sum&)>& tell) {
  const bool listed = !plan.listed.empty();
  const std::uint64_t most = listed ? plan.listed.size() : plan.worlds != 0 ? plan.worlds : UINT64_MAX;
  const SimTime cpu = cpu_time();
  Sum sum;
  while (!shared.stopped) {
    if (!listed && plan.worlds == 0 && seconds_since(begin) > plan.minutes * 60) break;
    std::uint64_t number = shared.next;
    while (number < most && !shared.next.compare_exchange_weak(number, number + 1)) {}
    if (number >= most) break;
    WorldChoice choice = listed ? plan.listed[number] : plan.fresh;
    if (!listed) choice.seed += number;
    run_one(choice, sum);
    sum.cpu = cpu_time() - cpu;
    if (sum.failed != 0 && !plan.to_the_end) shared.stopped = true;
    tell(sum);
  }
  return sum;
}

struct Part {
  pid_t process = -1;
  int pipe = -1;
  Sum sum;
};

Part begin_part(const SittingPlan& plan, Shared& shared, Clock::time_point begin, const RunOne& run_one) {
  Part part;
  int ends[2];
  if (::pipe(ends) != 0) return part;
  std::fflush(stdout);
  part.process = ::fork();
  if (part.process != 0) {
    (void)::close(ends[1]);
    part.pipe = ends[0];
    return part;
  }
  (void)::close(ends[0]);
  auto told = begin;
  const auto write_sum = [&](const Sum& sum) { (void)!::write(ends[1], &sum, sizeof sum); };
  const Sum sum = run_part(plan, shared, begin, run_one, [&](const Sum& so_far) {
    if (seconds_since(told) < 0.5) return;
    told = Clock::now();
    write_sum(so_far);
  });
  write_sum(sum);
  std::fflush(stdout);
  ::_exit(0);
}

Sum sum_of(const std::vector<Part>& parts) {
  Sum all;
  for (const Part& part : parts) all.add(part.sum);
  return all;
}

// Reads the sums of all until the last has gone.
void follow(std::vector<Part>& parts, Progress& progress) {
  std::size_t open = parts.size();
  while (open != 0) {
    std::vector<pollfd> entries;
    for (const Part& part : parts) entries.push_back({part.pipe, POLLIN, 0});
    (void)::poll(entries.data(), entries.size(), 500);
    for (std::size_t index = 0; index < parts.size(); ++index) {
      if (entries[index].revents == 0) continue;
      Sum sum;
      if (::read(parts[index].pipe, &sum, sizeof sum) == static_cast<ssize_t>(sizeof sum)) {
        parts[index].sum = sum;
      } else {
        (void)::close(parts[index].pipe);
        parts[index].pipe = -1;  // poll() passes over it.
        --open;
      }
    }
    progress.show(sum_of(parts));
  }
}

}  // namespace

void Sum::add(World& world) {
  ++worlds;
  failed += world.failed() ? 1U : 0U;
  events += world.events();
  time += world.now();
  Sum other;
  other.figures = world.checkers().figures();
  other.faults = world.fault_counts();
  add(other);
}

void Sum::add(const Sum& other) {
  worlds += other.worlds;
  failed += other.failed;
  events += other.events;
  time += other.time;
  cpu += other.cpu;
  figures.grants += other.figures.grants;
  figures.held += other.figures.held;
  figures.renewals += other.figures.renewals;
  figures.steps += other.figures.steps;
  figures.releases += other.figures.releases;
  figures.lost += other.figures.lost;
  figures.busy += other.figures.busy;
  figures.unclear += other.figures.unclear;
  figures.writes += other.figures.writes;
  figures.writes_refused += other.figures.writes_refused;
  figures.overlaps_excused += other.figures.overlaps_excused;
  figures.commands += other.figures.commands;
  figures.quorum_held += other.figures.quorum_held;
  figures.repairs += other.figures.repairs;
  for (std::size_t fault = 0; fault < faults.size(); ++fault) faults[fault] += other.faults[fault];
}

SittingResult sit(const SittingPlan& plan, const RunOne& run_one) {
  const auto begin = Clock::now();
  Progress progress(begin);
  SittingResult result;
  void* const place = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) {
    result.broken = true;
    return result;
  }
  Shared& shared = *new (place) Shared;
  if (plan.jobs <= 1) {
    result.sum = run_part(plan, shared, begin, run_one, [&](const Sum& sum) { progress.show(sum); });
  } else {
    std::vector<Part> parts;
    for (unsigned job = 0; job < plan.jobs; ++job) {
      parts.push_back(begin_part(plan, shared, begin, run_one));
      if (parts.back().process > 0) continue;
      result.broken = true;
      parts.pop_back();
      break;
    }
    follow(parts, progress);
    for (const Part& part : parts) {
      int status = 0;
      if (::waitpid(part.process, &status, 0) == part.process && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        continue;
      std::fprintf(stderr, "sim: a process ended by itself, status %d\n", status);
      result.broken = true;
    }
    result.sum = sum_of(parts);
  }
  progress.end();
  result.taken = shared.next;
  result.seconds = seconds_since(begin);
  (void)::munmap(place, sizeof(Shared));
  return result;
}

void print(const Sum& sum, double seconds) {
  const double hours = static_cast<double>(sum.time) / 3.6e12;
  const double cpu = std::max(static_cast<double>(sum.cpu) / 1e9, 1e-9);
  std::printf("%" PRIu64 " worlds, %" PRIu64
              " events, %.1f simulated hours in %.1f s: %.3f hours/s, %.0f times real "
              "time, %.0f times real time a core\n",
              sum.worlds, sum.events, hours, seconds, hours / seconds, hours * 3600 / seconds, hours * 3600 / cpu);
  const Figures& f = sum.figures;
  std::printf("%" PRIu64 " grants (%.0f/s), %" PRIu64 " told, %" PRIu64 " renewals, %" PRIu64 " steps, %" PRIu64
              " releases, %" PRIu64 " busy, %" PRIu64 " unclear, %" PRIu64 " lost, %" PRIu64 " commands\n",
              f.grants, static_cast<double>(f.grants) / seconds, f.held, f.renewals, f.steps, f.releases, f.busy,
              f.unclear, f.lost, f.commands);
  std::printf("%" PRIu64 " told by a quorum, %" PRIu64 " repairs\n", f.quorum_held, f.repairs);
  std::printf("%" PRIu64 " fenced writes, %" PRIu64 " refused; %" PRIu64 " overlaps outside the model\nfaults:",
              f.writes, f.writes_refused, f.overlaps_excused);
  std::string absent;
  for (int fault = 0; fault < fault_count; ++fault) {
    const std::string name(to_string(static_cast<Fault>(fault)));
    const std::uint64_t count = sum.faults[static_cast<std::size_t>(fault)];
    if (count == 0)
      absent += (absent.empty() ? "" : ", ") + name;
    else
      std::printf(" %s %" PRIu64 ",", name.c_str(), count);
  }
  std::printf("\n");
  if (!absent.empty()) std::printf("never fired: %s\n", absent.c_str());
}

}  // namespace holdfast::sim

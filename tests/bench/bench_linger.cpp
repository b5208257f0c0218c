// SPDX-License-Identifier: MIT
//
// What does a fair lock cost that stays where it is used? Alone: a pair of acquire and release, timed, and made where every
// system call would be the end. With a rival that wants it ten times a second: how soon it is recalled, as a multiple of a
// hand-off between two waiters, and what is left of the grants of its holder. Over a private server that this program starts.
// Prints a table and writes linger.json.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "holdfast/holdfast.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Harness;
using holdfast::Client;
using holdfast::Duration;
using holdfast::FairLock;
using holdfast::Instant;
using holdfast::Lingering;
using holdfast::Owner;
using holdfast::Status;
using namespace std::chrono_literals;

void expect_ok(Status status, const char* what) {
  if (status != Status::ok)
    throw std::runtime_error(std::string(what) + ": " + std::string(holdfast::to_string(status)));
}

Client& connected(Client& client, const RedisServer& server) {
  expect_ok(client.connect(server.tcp_url()), "connect");
  return client;
}

double nanoseconds(Duration duration) { return static_cast<double>(duration.count()); }

// Whose lock stays.
struct Keeper {
  explicit Keeper(const RedisServer& server, const char* name = "bench")
      : lingering(connected(client, server)), owner(client), lock(owner, name, {}, {.linger = holdfast::linger_max}) {}
  void pair() {
    expect_ok(lock.acquire(10s), "acquire");
    expect_ok(lock.release(), "release");
  }
  void settle() {
    while (lingering.idle() == 0) {
      pair();
      (void)client.tend();
    }
  }
  Client client;
  Lingering lingering;
  Owner owner;
  FairLock lock;
};

// ---- Alone -------------------------------------------------------------------------------------------------------

void time_pairs(bench::Report& report, const RedisServer& server, Duration length) {
  Keeper keeper(server);
  keeper.settle();
  constexpr int batch = 10'000;
  std::vector<double> batches;
  const Instant end = Client::now() + length;
  do {
    (void)keeper.client.tend();
    const Instant begin = Client::now();
    for (int index = 0; index < batch; ++index) keeper.pair();
    batches.push_back(nanoseconds(Client::now() - begin) / batch);
  } while (Client::now() < end);
  const bench::Spread spread = bench::spread(batches);
  report.add({"nobody else", "acquire and release", spread.median, "ns", bench::value_at_most(100), batches.size(),
              spread.p10, spread.p90});
  std::vector<double> clocks;
  for (int round = 0; round < 100; ++round) {
    const Instant begin = Client::now();
    for (int index = 0; index < batch / 10; ++index) (void)Client::now();
    clocks.push_back(nanoseconds(Client::now() - begin) / (batch / 10));
  }
  report.add({"nobody else", "of these, to read the clock twice", 2 * bench::spread(clocks).median, "ns"});
}

// All but the end of the thread. Strict mode would forbid the processor's clock, too.
void forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(2);
}

// In a process of its own, which ends by the first system call.
void count_system_calls(bench::Report& report, const RedisServer& server) {
  const pid_t child = ::fork();
  if (child == 0) {
    Keeper keeper(server, "bench:calls");  // Which its end leaves held.
    keeper.settle();
    (void)keeper.client.tend();
    forbid_system_calls();
    int good = 0;
    for (int index = 0; index < 10'000; ++index)
      if (keeper.lock.acquire(10s) == Status::ok && keeper.lock.release() == Status::ok) ++good;
    ::syscall(SYS_exit, good == 10'000 ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("fork");
  const double pairs = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 10'000 : 0;
  report.add({"nobody else", "pairs without any system call, of 10,000", pairs, "", bench::value_at_least(10'000)});
}

// ---- With a rival ------------------------------------------------------------------------------------------------

// The time from the release of one waiter to the grant of the other, where both want it all the time.
double hand_off(const RedisServer& server, int count) {
  std::atomic<std::int64_t> released{0};
  std::vector<double> times;
  const auto take_turns = [&](bool notes) {
    Client client;
    Owner owner(connected(client, server));
    FairLock lock(owner, "bench");
    for (int index = 0; index < count; ++index) {
      expect_ok(lock.acquire(60s), "acquire");
      const Instant now = Client::now();
      if (const std::int64_t at = released.load(); notes && at != 0)
        times.push_back(nanoseconds(now - Instant::from_nanoseconds(at)));
      released.store(Client::now().nanoseconds());
      expect_ok(lock.release(), "release");
    }
  };
  std::thread other([&] { take_turns(false); });
  take_turns(true);
  other.join();
  return bench::spread(times).median;
}

struct Rivalry {
  double grants = 0;          // Of the keeper, a second,
  double room = 1;            // and the share of the time that the rival has left.
  std::vector<double> waits;  // Of the rival.
};

Rivalry rival(const RedisServer& server, Duration length, bool with_rival) {
  Rivalry result;
  std::atomic<bool> over{false};
  Duration taken{};
  Keeper keeper(server);
  keeper.settle();
  std::thread other([&] {
    if (!with_rival) return;
    Client client;
    Owner owner(connected(client, server));
    FairLock lock(owner, "bench");
    while (!over.load()) {
      std::this_thread::sleep_for(100ms);
      const Instant begin = Client::now();
      expect_ok(lock.acquire(60s), "acquire");
      const Instant granted = Client::now();
      expect_ok(lock.release(), "release");
      result.waits.push_back(nanoseconds(granted - begin));
      taken += Client::now() - begin;
    }
  });
  const Instant begin = Client::now();
  std::size_t grants = 0;
  while (Client::now() - begin < length) {
    (void)keeper.client.tend();
    for (int index = 0; index < 100 && keeper.lingering.idle() != 0; ++index, ++grants) keeper.pair();
    if (keeper.lingering.idle() == 0) {
      keeper.pair();
      ++grants;
    }
  }
  const Duration lasted = Client::now() - begin;
  over.store(true);
  // The rival's last wait ends, too.
  std::thread wait([&] {
    other.join();
    over.store(false);
  });
  while (over.load()) (void)keeper.client.tend();
  wait.join();
  result.grants = static_cast<double>(grants) / nanoseconds(lasted) * 1e9;
  result.room = 1 - nanoseconds(taken) / nanoseconds(lasted);
  return result;
}

void measure(Harness& harness) {
  bench::Report& report = harness.report();
  const RedisServer server(harness.binaries()[0]);
  const Duration length =
      harness.smoke() ? 300ms : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(harness.seconds()));
  count_system_calls(report, server);
  time_pairs(report, server, length);
  const double usual = hand_off(server, harness.smoke() ? 20 : 3000);
  const Rivalry alone = rival(server, length, false);
  const Rivalry shared = rival(server, length, true);
  const std::string group = "a rival at ten times a second";
  const double wait = bench::spread(shared.waits).median;
  report.add({group, "a hand-off between two waiters", usual / 1000, "us"});
  report.add({group, "the rival's acquire, from the call to the grant", wait / 1000, "us"});
  report.add({group, "of a hand-off", wait / usual, "", bench::value_at_most(1.3)});
  report.add({group, "grants of the holder alone", alone.grants, "1/s"});
  report.add({group, "grants of the holder beside it", shared.grants, "1/s"});
  report.add({group, "of those that the rival leaves room for", shared.grants / (alone.grants * shared.room), "",
              bench::value_at_least(0.9)});
  harness.print_new_rows();
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_linger",
      .purpose = "A fair lock that stays where it is used, over a private server: the first of HOLDFAST_SERVERS "
                 "(separated by\n"
                 "colons), else redis-server from the path.",
      .title = "holdfast: a lock that stays where it is used",
      .files = "linger",
      .plotted = false,
  });
  harness.add_seconds(5, "how long each is measured");
  harness.add_output("for a moment: the figures mean nothing");
  return harness.main(argc, argv, [&] { measure(harness); });
}

// SPDX-License-Identifier: MIT
#include "contention_contenders.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "holdfast/holdfast.hpp"
#include "holdfast_party.hpp"
#include "paired_rounds.hpp"
#include "peer_program.hpp"

namespace bench {

namespace {

// ---- holdfast: a process a client --------------------------------------------------------------------------------

template <class Party>
void contend(const ContentionTask& task, std::size_t client) {
  ContentionSlot& slot = task.memory.slot(client);
  Party party(task.key);
  party.connect({{}, task.port});
  slot.ready = 1;
  while (task.memory.phase() == ContentionPhase::preparing) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  while (task.memory.phase() == ContentionPhase::running && slot.grants < ContentionSlot::waits_max) {
    const Clock::time_point begin = Clock::now();
    slot.waiting_since = std::chrono::nanoseconds(begin.time_since_epoch()).count();
    party.expect_ok(party.lock.acquire(holdfast::wait_forever));
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    slot.waiting_since = 0;
    slot.waits[slot.grants] = static_cast<std::uint32_t>(waited.count());
    ++slot.grants;
    task.memory.enter(client);
    std::this_thread::sleep_for(task.hold);
    task.memory.leave(client);
    party.expect_ok(party.lock.release());
    if (task.pause.count() != 0) std::this_thread::sleep_for(task.pause);
  }
}

using Contend = void (*)(const ContentionTask&, std::size_t client);

class ForkedCrowd : public Crowd {
 public:
  ForkedCrowd(const ContentionTask& task, Contend contend) {
    const pid_t parent = ::getpid();
    (void)std::fflush(nullptr);  // A child would write what waits here once more.
    for (std::size_t client = 0; client < task.memory.clients(); ++client) {
      const pid_t pid = ::fork();
      if (pid == 0) run(parent, task, client, contend);
      if (pid < 0) {
        kill_all();
        throw std::runtime_error("fork failed");
      }
      pids_.push_back(pid);
    }
  }
  ~ForkedCrowd() override { kill_all(); }
  ForkedCrowd(const ForkedCrowd&) = delete;
  ForkedCrowd& operator=(const ForkedCrowd&) = delete;

  void expect_alive() override {
    reap();
    if (ended_ != 0) throw std::runtime_error("a client has ended too early");
  }
  void finish() override {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(30);
    for (reap(); !pids_.empty(); reap()) {
      if (Clock::now() > end) throw std::runtime_error("a client does not come to its end");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  [[noreturn]] static void run(pid_t parent, const ContentionTask& task, std::size_t client, Contend contend) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // It was gone before the line above.
    try {
      contend(task, client);
      ::_exit(0);
    } catch (const std::exception& error) {
      (void)std::fprintf(stderr, "client %zu: %s\n", client, error.what());
      ::_exit(1);
    }
  }

  void reap() {
    bool failed = false;
    const auto has_ended = [&](pid_t pid) {
      int status = 0;
      if (::waitpid(pid, &status, WNOHANG) != pid) return false;
      failed = failed || status != 0;
      ++ended_;
      return true;
    };
    pids_.erase(std::remove_if(pids_.begin(), pids_.end(), has_ended), pids_.end());
    if (failed) throw std::runtime_error("a client has failed");
  }
  void kill_all() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    pids_.clear();
  }

  std::vector<pid_t> pids_;
  std::size_t ended_ = 0;
};

// A line a kind. A party has a lock, as those of holdfast_party.hpp.
struct HoldfastKind {
  const char* name;
  Contend contend;
};
constexpr HoldfastKind holdfast_kinds[] = {
    {"holdfast Mutex, polling", contend<MutexParty<false>>},
    {"holdfast Mutex, announced", contend<MutexParty<true>>},
    {"holdfast ReentrantLock", contend<OwnedParty<holdfast::ReentrantLock>>},
    {"holdfast FencedLock", contend<OwnedParty<holdfast::FencedLock>>},
    {"holdfast FairLock", contend<OwnedParty<holdfast::FairLock>>},
};

// ---- Peers: a program that has all clients -----------------------------------------------------------------------

struct PeerKind {
  const char* name;                  // Behind it stands the version.
  std::vector<std::string> command;  // Then come PORT KEY PATH CLIENTS HOLD PAUSE: PATH of the memory; nanoseconds.
};

std::vector<std::string> command_of(const PeerKind& kind, int port, const std::string& key, const std::string& path,
                                    std::size_t clients, std::chrono::nanoseconds hold,
                                    std::chrono::nanoseconds pause) {
  std::vector<std::string> command = kind.command;
  for (const std::string& word : {std::to_string(port), key, path, std::to_string(clients),
                                  std::to_string(hold.count()), std::to_string(pause.count())})
    command.push_back(word);
  return command;
}

class PeerCrowd : public Crowd {
 public:
  PeerCrowd(const ContentionTask& task, const PeerKind& kind)
      : program_(
            command_of(kind, task.port, task.key, task.memory.path(), task.memory.clients(), task.hold, task.pause)) {
    if (!program_.missing().empty()) throw std::runtime_error(program_.missing());
  }

  void expect_alive() override {}  // finish() hears of it.
  void finish() override { (void)program_.hear("done"); }

 private:
  PeerProgram program_;
};

std::vector<PeerKind> peer_kinds() {
  const std::string folder = HOLDFAST_BENCH_PEERS;
  const std::string redisson = folder + "/RedissonContention.java";
  return {
      {"redis-py Lock", {"python3", folder + "/redis_py_contention.py"}},
      {"Redisson RLock", {"java", "-XX:+UseSerialGC", "-Xmx256m", redisson, "lock"}},
      {"Redisson RFairLock", {"java", "-XX:+UseSerialGC", "-Xmx256m", redisson, "fair"}},
  };
}

// Asks a program without clients whether it can run.
std::string missing_of(const PeerKind& kind) {
  if (kind.command[0] == "java" && std::getenv("CLASSPATH") == nullptr) return "java finds no Redisson (see CLASSPATH)";
  return PeerProgram(command_of(kind, 0, "none", "none", 0, {}, {})).missing();
}

}  // namespace

std::vector<Contender> contention_contenders() {
  std::vector<Contender> contenders;
  for (const HoldfastKind& kind : holdfast_kinds)
    contenders.push_back(
        {kind.name, [kind](const ContentionTask& task) { return std::make_unique<ForkedCrowd>(task, kind.contend); }});
  for (const PeerKind& kind : peer_kinds()) {
    if (const std::string missing = missing_of(kind); !missing.empty()) {
      (void)std::printf("skipped: %s: %s\n", kind.name, missing.c_str());
      continue;
    }
    contenders.push_back(
        {kind.name, [kind](const ContentionTask& task) { return std::make_unique<PeerCrowd>(task, kind); }});
  }
  return contenders;
}

}  // namespace bench

// SPDX-License-Identifier: MIT
#include "world_choice.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "canary.hpp"

namespace holdfast::sim {

namespace {

constexpr int runs_max = 600;

class Shortening {
 public:
  Shortening(const WorldChoice& choice, const WorldOptions& options, const Failure& failure)
      : best_(choice), options_(options), checker_(failure.checker), event_(failure.event) {
    options_.events_max = failure.event;  // No failure behind it counts.
  }

  WorldChoice run() {
    if (!take(best_)) return best_;
    for (bool again = true; again;) {
      again = clients();
      again = last_faults() || again;
      again = faults() || again;
    }
    return best_;
  }

 private:
  // Keeps it if it fails by the same checker, and in time.
  bool take(const WorldChoice& shorter) {
    if (++runs_ > runs_max) return false;
    const auto world = run_world(shorter, options_);
    if (!world->failed() || world->failure().checker != checker_) return false;
    best_ = shorter;
    event_ = world->failure().event;
    fired_ = world->fault_counts();
    return true;
  }

  bool clients() {
    bool any = false;
    const std::size_t count = plan_of(best_).clients.size();
    for (std::size_t client = 0; client < count; ++client) {
      WorldChoice shorter = best_;
      shorter.narrowing.absent.set(client);
      if (best_.narrowing.absent.test(client) || shorter.narrowing.absent.count() == count) continue;
      if (take(shorter)) any = true;
    }
    return any;
  }

  bool faults() {
    bool any = false;
    for (std::size_t fault = 0; fault < fault_count; ++fault) {
      if (fired_[fault] == 0) continue;
      WorldChoice shorter = best_;
      shorter.narrowing.without.set(fault);
      if (take(shorter)) any = true;
    }
    return any;
  }

  // Bisects the event behind which no fault is injected. Fewer faults may fail where more do not, so what is found is
  // short and need not be the shortest.
  bool last_faults() {
    const std::uint64_t before = std::min(best_.narrowing.faults_until, event_);
    std::uint64_t least = 0;
    std::uint64_t most = before;
    while (least < most) {
      const std::uint64_t middle = least + (most - least) / 2;
      WorldChoice shorter = best_;
      shorter.narrowing.faults_until = middle;
      if (take(shorter))
        most = middle;
      else
        least = middle + 1;
    }
    return most < before;
  }

  WorldChoice best_;
  WorldOptions options_;
  std::string checker_;
  std::uint64_t event_;  // Of the best.
  FaultCounts fired_{};  // In the best.
  int runs_ = 0;
};

bool parse_line(std::string line, std::vector<WorldChoice>& seeds) {
  line.resize(std::min(line.find('#'), line.size()));
  std::istringstream words(line);
  std::string seed;
  std::string kind;
  std::string more;
  if (!(words >> seed)) return true;
  WorldChoice choice;
  const char* const end = seed.data() + seed.size();
  const auto [stop, error] = std::from_chars(seed.data(), end, choice.seed);
  if (error != std::errc() || stop != end) return false;
  if (words >> kind && !find_world_kind(kind, choice.kind)) return false;
  if (words >> more) return false;
  seeds.push_back(choice);
  return true;
}

}  // namespace

bool find_world_kind(std::string_view name, WorldKind& kind) noexcept {
  for (std::size_t index = 0; index < world_kind_names.size(); ++index) {
    if (world_kind_names[index] != name) continue;
    kind = static_cast<WorldKind>(index);
    return true;
  }
  return false;
}

bool find_fault(std::string_view name, Fault& fault) noexcept {
  for (int index = 0; index < fault_count; ++index) {
    if (to_string(static_cast<Fault>(index)) != name) continue;
    fault = static_cast<Fault>(index);
    return true;
  }
  return false;
}

Plan plan_of(const WorldChoice& choice) {
  Plan plan = draw_plan(choice.seed, choice.kind);
  for (std::size_t fault = 0; fault < fault_count; ++fault)
    if (choice.narrowing.without.test(fault)) plan.weights[fault] = 0;
  for (ClientPlan& client : plan.clients) {
    const bool loop = client.loop;  // It cancels and connects anew by itself.
    if (!plan.enabled(Fault::cancel_at_call) && !loop) client.cancels = 0;
    if (!plan.enabled(Fault::torn_cancel)) client.torn_cancels = 0;
    if (!plan.enabled(Fault::connect_anew) && !loop) client.connects_anew = 0;
    for (ConnectionPlan& connection : client.connections)
      if (!plan.enabled(Fault::dead_address)) connection.dead_addresses = 0;
  }
  for (std::size_t client = 0; client < plan.clients.size(); ++client)
    plan.clients[client].absent = choice.narrowing.absent.test(client);
  plan.faults_until = choice.narrowing.faults_until;
  return plan;
}

std::unique_ptr<World> run_world(const WorldChoice& choice, const WorldOptions& options) {
  auto world = std::make_unique<World>(plan_of(choice), options);
  world->run();
  return world;
}

std::string arguments_of(const WorldChoice& choice, const Canary* canary) {
  std::string text = "--seed " + std::to_string(choice.seed);
  if (choice.kind != WorldKind::any)
    text += " --world " + std::string(world_kind_names[static_cast<std::size_t>(choice.kind)]);
  if (canary != nullptr) text += " --canary " + std::string(canary->name);
  std::string without;
  for (std::size_t fault = 0; fault < fault_count; ++fault)
    if (choice.narrowing.without.test(fault))
      without += (without.empty() ? "" : ",") + std::string(to_string(static_cast<Fault>(fault)));
  if (!without.empty()) text += " --without \"" + without + "\"";
  if (choice.narrowing.faults_until != UINT64_MAX)
    text += " --faults-until " + std::to_string(choice.narrowing.faults_until);
  if (choice.narrowing.absent.none()) return text;
  std::string clients;
  for (std::size_t client = 0; client < draw_plan(choice.seed, choice.kind).clients.size(); ++client)
    if (!choice.narrowing.absent.test(client)) clients += (clients.empty() ? "" : ",") + std::to_string(client);
  return text + " --clients " + clients;
}

WorldChoice shortest_failure(const WorldChoice& choice, const WorldOptions& options, const Failure& failure) {
  return Shortening(choice, options, failure).run();
}

bool read_seeds(const std::string& path, std::vector<WorldChoice>& seeds, std::string& error) {
  std::ifstream file(path);
  std::string line;
  std::size_t number = 0;
  while (std::getline(file, line)) {
    ++number;
    if (parse_line(line, seeds)) continue;
    error = path + ":" + std::to_string(number) + ": neither a seed nor a seed and the kind of its world";
    return false;
  }
  if (number != 0 && !seeds.empty()) return true;
  error = path + (number == 0 ? ": cannot be read" : ": no seed in it");
  return false;
}

bool read_canary_seeds(const std::string& path, CanarySeeds& seeds, std::string& error) {
  std::ifstream file(path);
  std::string line;
  std::size_t number = 0;
  while (std::getline(file, line)) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    std::uint64_t seed = 0;
    if (words >> name >> seed && find_canary(name) != nullptr && seeds.emplace(name, seed).second) continue;
    error = path + ":" + std::to_string(number) + ": no canary and a seed, or one that was there already";
    return false;
  }
  if (!seeds.empty()) return true;
  error = path + (number == 0 ? ": cannot be read" : ": no seed in it");
  return false;
}

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
#include "shifts.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "canary.hpp"
#include "checkers.hpp"
#include "holdfast/proto/slot.hpp"
#include "reply_writer.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

constexpr std::string_view address = "10.0.0.1";
constexpr std::string_view service = "s";
constexpr Fault first_shift = Fault::slot_move;
// What a shift costs a client beside the time that it lasts: requests are refused, and the way is to be found.
constexpr SimTime aftermath = 2 * second;

std::string port_of(std::size_t node) { return std::to_string(port_base + node); }

}  // namespace

Shifts::Shifts(World& world)
    : world_(world), random_(world.plan().seed ^ 0x5417f7), bus_random_(world.plan().seed ^ 0xb05) {
  const Plan& plan = world.plan();
  for (int fault = static_cast<int>(first_shift); fault < fault_count; ++fault)
    weights_.push_back(plan.weights[static_cast<std::size_t>(fault)]);
  for (const std::uint32_t weight : weights_) total_ += weight;
  if (!plan.one_place()) return;
  for (Node& node : world.nodes())
    node.redis.set_gate([this, index = node.index](ModelRedis::ConnectionId from,
                                                   std::span<const std::string_view> words,
                                                   std::string& reply) { return answer(index, from, words, reply); });
  if (plan.set_up == SetUp::cluster) {
    std::vector<ModelRedis*> nodes;
    for (Node& node : world.nodes()) {
      nodes.push_back(&node.redis);
      node.redis.set_bus([this, index = node.index](std::string_view channel, std::string_view payload) {
        spread(index, channel, payload);
      });
    }
    cluster_ = std::make_unique<ClusterModel>(std::move(nodes), std::string(address), port_base);
    for (std::size_t tag = 0; tag < plan.tags; ++tag) {
      const std::string text = tag_text(tag);
      cluster_->add_slot(slot_of(ByteView(text.data(), text.size())), random_.index(plan.masters));
    }
    move_numbers_.resize(plan.tags);
  } else {
    named_.assign(plan.nodes.size() - plan.servers, 0);
  }
  carry_roles();
}

Guide Shifts::make_guide(std::size_t tag) const {
  const Plan& plan = world_.plan();
  Guide guide;
  if (!plan.one_place()) return guide;
  const bool cluster = plan.set_up == SetUp::cluster;
  std::string hosts;
  for (std::size_t node = cluster ? 0 : plan.servers; node < plan.nodes.size(); ++node)
    hosts += (hosts.empty() ? "" : ",") + std::string(address) + ":" + port_of(node);
  const ByteView listed(hosts.data(), hosts.size());
  const std::string name = tag_text(tag);
  if (cluster)
    guide.cluster =
        std::make_unique<Cluster>(ClusterConfig{.hosts = listed, .name = ByteView(name.data(), name.size())});
  else
    guide.sentinels = std::make_unique<Sentinels>(
        SentinelConfig{.hosts = listed, .service = ByteView(service.data(), service.size())});
  return guide;
}

// ---- Answers -----------------------------------------------------------------------------------------------------

bool Shifts::answer(std::size_t node, ModelRedis::ConnectionId /*from*/, std::span<const std::string_view> words,
                    std::string& reply) {
  if (world_.plan().is_sentinel(node)) return answer_as_sentinel(node, words, reply);
  if (!in_cluster() || asking_ || sin_of(world_) == Sin::moved_ignored) return false;
  return answer_as_canary(node, words, reply) || cluster_->answer(node, words, reply);
}

bool Shifts::answer_as_sentinel(std::size_t node, std::span<const std::string_view> words, std::string& reply) {
  static constexpr std::string_view of_locks[] = {"EVAL",  "EVALSHA", "SET",  "GET",      "DEL",
                                                  "DELEX", "DELIFEQ", "PTTL", "SPUBLISH", "PEXPIRE"};
  if (words[0] != "SENTINEL") {
    if (std::find(std::begin(of_locks), std::end(of_locks), words[0]) != std::end(of_locks))
      world_.fail("topology", "a sentinel was told " + std::string(words[0]));
    return false;
  }
  const std::size_t named = named_[node - world_.plan().servers];
  ReplyWriter writer(reply);
  if (named == nobody) {
    writer.null_array();
    return true;
  }
  writer.array(2);
  writer.bulk(address);
  writer.bulk(port_of(named));
  return true;
}

// What one node has published is told by the others a little later.
void Shifts::spread(std::size_t from, std::string_view channel, std::string_view payload) {
  for (Node& node : world_.nodes()) {
    if (node.index == from || !node.redis.hears(channel)) continue;
    const auto tell = [&node, this, name = std::string(channel), text = std::string(payload)] {
      node.redis.hear(name, text);
      world_.flush_server(node);
    };
    world_.after(bus_random_.magnitude(10 * microsecond, 10 * millisecond), tell);
  }
}

// A client that follows ASK, although it should not: its request is run at the slot's new node.
bool Shifts::answer_as_canary(std::size_t node, std::span<const std::string_view> words, std::string& reply) {
  if (sin_of(world_) != Sin::ask_followed) return false;
  std::string own;
  if (!cluster_->answer(node, words, own) || !own.starts_with("-ASK ")) return false;
  const std::size_t index =
      static_cast<std::size_t>(std::find_if(cluster_->slots().begin(), cluster_->slots().end(),
                                            [&](const ClusterModel::Slot& slot) {
                                              return own.starts_with("-ASK " + std::to_string(slot.number));
                                            }) -
                               cluster_->slots().begin());
  Node& target = world_.node(*cluster_->slots()[index].target);
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words)
    request += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  // The move may be called off between the ASK and the request that follows it.
  if (random_.coin()) end_move(index, true);
  asking_ = true;
  const ModelRedis::ConnectionId connection = target.redis.accept();
  if (world_.plan().password) {
    (void)target.redis.receive(connection, "*2\r\n$4\r\nAUTH\r\n$5\r\nright\r\n");
    (void)target.redis.take_output(connection);
  }
  (void)target.redis.receive(connection, request, world_.wall(target));
  reply += target.redis.take_output(connection);
  target.redis.receive_end(connection);
  asking_ = false;
  return true;
}

// ---- What happens ------------------------------------------------------------------------------------------------

SimTime Shifts::length() { return random_.magnitude(100 * microsecond, world_.plan().lease_max * 2); }

void Shifts::begin() {
  if (total_ != 0) world_.after(random_.between(0, world_.plan().shift_interval), [this] { next(); });
}

void Shifts::next() {
  if (ended_ || world_.events() > world_.plan().faults_until) return;
  std::uint64_t drawn = random_.below(total_);
  std::size_t index = 0;
  while (drawn >= weights_[index]) drawn -= weights_[index++];
  look_at_clocks();
  shift(static_cast<Fault>(static_cast<std::size_t>(first_shift) + index));
  world_.after(random_.magnitude(microsecond, world_.plan().shift_interval), [this] { next(); });
}

void Shifts::shift(Fault fault) {
  switch (fault) {
    case Fault::slot_move:
    case Fault::move_called_off: return move_slot();
    case Fault::slot_down: return take_slot_down();
    case Fault::master_change: return in_cluster() ? change_master_of_slots(false) : change_master(nullptr);
    case Fault::losing_change: return in_cluster() ? change_master_of_slots(true) : change_lagging_master();
    default: return spread_old_news();
  }
}

// Keys that are past their time go now: where data are copied or moved they would be left behind.
void Shifts::look_at_clocks() {
  for (Node& node : world_.nodes()) node.redis.expire(world_.wall(node));
}

bool Shifts::moves(std::size_t node) const {
  return std::any_of(cluster_->slots().begin(), cluster_->slots().end(), [&](const ClusterModel::Slot& slot) {
    return slot.target && (slot.owner == node || *slot.target == node);
  });
}

// To another master, or to a node that has no slot yet.
void Shifts::move_slot() {
  const std::size_t index = random_.index(cluster_->slots().size());
  ClusterModel::Slot& slot = cluster_->slots()[index];
  if (slot.target) return;
  std::vector<std::size_t> others;
  for (const Node& node : world_.nodes())
    if (node.index != slot.owner && cluster_->serves_any(node.index)) others.push_back(node.index);
  if (others.empty()) others.push_back((slot.owner + 1) % world_.nodes().size());
  cluster_->begin_move(slot, others[random_.index(others.size())]);
  const std::uint64_t number = ++move_numbers_[index];
  const SimTime lasts = length();
  world_.disturb(lasts + aftermath);
  const bool off = world_.plan().enabled(Fault::move_called_off) &&
                   (!world_.plan().enabled(Fault::slot_move) || random_.chance(300'000));
  world_.count(off ? Fault::move_called_off : Fault::slot_move, world_.node(slot.owner).lane);
  world_.trace().add(world_.now(), "slot moves", slot.owner, *slot.target, off ? "and back" : "");
  const std::int64_t steps = random_.between(0, 4);
  for (std::int64_t step = 0; step < steps; ++step)
    world_.after(random_.between(0, lasts), [this, index, number] {
      if (move_numbers_[index] == number) step_move(index);
    });
  world_.after(lasts, [this, index, number, off] {
    if (move_numbers_[index] == number) end_move(index, off);
  });
  carry_roles();
}

void Shifts::step_move(std::size_t index) {
  ClusterModel::Slot& slot = cluster_->slots()[index];
  if (ended_ || !slot.target) return;
  look_at_clocks();
  const std::vector<std::string> keys = cluster_->keys_of(slot, slot.owner);
  if (!keys.empty()) cluster_->move_key(slot, keys[random_.index(keys.size())]);
}

void Shifts::end_move(std::size_t index, bool called_off) {
  ClusterModel::Slot& slot = cluster_->slots()[index];
  ++move_numbers_[index];
  if (!slot.target) return;
  look_at_clocks();
  world_.trace().add(world_.now(), called_off ? "slot stays" : "slot has moved", slot.owner, *slot.target);
  if (called_off)
    cluster_->call_off(slot);
  else
    cluster_->finish_move(slot);
  world_.disturb(aftermath);
  carry_roles();
  for (Node& node : world_.nodes()) world_.flush_server(node);
}

void Shifts::take_slot_down() {
  ClusterModel::Slot& slot = cluster_->slots()[random_.index(cluster_->slots().size())];
  if (slot.down) return;
  slot.down = true;
  const SimTime lasts = length();
  world_.count(Fault::slot_down, world_.node(slot.owner).lane);
  world_.disturb(lasts + aftermath);
  world_.after(lasts, [&slot] { slot.down = false; });
}

std::vector<std::size_t> Shifts::slots_of(std::size_t node) const {
  std::vector<std::size_t> slots;
  for (std::size_t index = 0; index < cluster_->slots().size(); ++index)
    if (cluster_->slots()[index].owner == node) slots.push_back(index);
  return slots;
}

// How far a replica is behind.
SimTime Shifts::lag() {
  const SimTime lag = random_.magnitude(100 * microsecond, world_.plan().lease_max);
  world_.disturb(lag + aftermath);
  return lag;
}

// Of these names the new master has what was there a while ago, and nothing of what came after.
void Shifts::lose(const Node& before, Node& after, const Databases& old_data,
                  const std::function<bool(std::size_t name)>& which) {
  if (sin_of(world_) != Sin::failover_loses) world_.checkers().break_names(before, which);
  after.redis.load_data(old_data);
  after.redis.expire(world_.wall(after));
  world_.checkers().read_names(after, which);
}

// All that it has goes to a node without a slot, or all that it had a while ago: so far behind was its replica.
void Shifts::change_master_of_slots(bool loses) {
  std::vector<std::size_t> masters;
  std::vector<std::size_t> replicas;
  for (const Node& node : world_.nodes()) {
    if (moves(node.index)) continue;
    (cluster_->serves_any(node.index) ? masters : replicas).push_back(node.index);
  }
  if (masters.empty() || replicas.empty()) return;
  Node& before = world_.node(masters[random_.index(masters.size())]);
  Node& after = world_.node(replicas[random_.index(replicas.size())]);
  if (!loses) return fail_over(before, after, nullptr);
  const auto fail_over_later = [this, &before, &after, slots = slots_of(before.index), moved = cluster_->moves,
                                copy = std::make_shared<Databases>(before.redis.copy_data())] {
    // A slot that has come or gone meanwhile would be another one's data.
    if (ended_ || cluster_->moves != moved || moves(before.index) || moves(after.index)) return;
    fail_over(before, after, copy.get());
  };
  world_.after(lag(), fail_over_later);
}

// The one before is the replica of the other then. With `old_data` that one has these, and nothing else.
void Shifts::fail_over(Node& before, Node& after, const Databases* old_data) {
  const bool loses = old_data != nullptr;
  const std::vector<std::size_t> slots = slots_of(before.index);
  world_.count(loses ? Fault::losing_change : Fault::master_change, before.lane);
  world_.trace().add(world_.now(), loses ? "fails over, and loses" : "fails over", before.index, after.index);
  world_.disturb(aftermath);
  const auto is_there = [&](std::size_t name) {
    return std::find(slots.begin(), slots.end(), world_.plan().tag_of(name)) != slots.end();
  };
  cluster_->fail_over(before.index, after.index);
  if (loses) lose(before, after, *old_data, is_there);
  if (random_.coin()) world_.restart_server(before, ModelRedis::Data::kept, random_.coin() ? 0 : length());
  world_.promote_server(after);
  carry_roles();
  for (Node& node : world_.nodes()) world_.flush_server(node);
}

// Nobody is master for a while, and nobody writes. With `old_data` another one has these then.
void Shifts::change_master(std::shared_ptr<const Databases> old_data) {
  if (demoted_) return;
  demoted_ = true;
  Node& before = world_.node(master_);
  const SimTime lasts = length();
  const bool loses = old_data != nullptr;
  world_.count(loses ? Fault::losing_change : Fault::master_change, before.lane);
  world_.trace().add(world_.now(), loses ? "is demoted, and loses" : "is demoted", master_, 0);
  world_.disturb(lasts + aftermath);
  carry_roles();
  if (random_.coin()) world_.restart_server(before, ModelRedis::Data::kept, random_.coin() ? 0 : length());
  world_.after(lasts, [this, old = std::move(old_data)] {
    if (!ended_) promote(old.get());
  });
}

// All its replicas are so far behind.
void Shifts::change_lagging_master() {
  if (demoted_) return;
  const Node& master = world_.node(master_);
  const auto change_later = [this, &master, promotions = master.promotions,
                             copy = std::make_shared<const Databases>(master.redis.copy_data())] {
    // Of another master that would be another one's data.
    if (ended_ || master_ != master.index || master.promotions != promotions) return;
    change_master(copy);
  };
  world_.after(lag(), change_later);
}

void Shifts::promote(const Databases* old_data) {
  look_at_clocks();
  const std::size_t before = master_;
  // Now and then the one of before is it again, which has lost nothing.
  const bool again = random_.chance(100'000) && old_data == nullptr;
  if (!again) master_ = (before + 1 + random_.index(world_.plan().servers - 1)) % world_.plan().servers;
  demoted_ = false;
  world_.trace().add(world_.now(), "is master", master_, before);
  Node& after = world_.node(master_);
  if (master_ != before) {
    after.redis.load_data(world_.node(before).redis.copy_data());
    if (sin_of(world_) != Sin::replica_believed) world_.node(before).redis.load_data(Databases(database_count));
    world_.checkers().note_emptied_master();
  }
  if (old_data != nullptr) lose(world_.node(before), after, *old_data, [](std::size_t) { return true; });
  carry_roles();
  world_.promote_server(after);
  tell_sentinels(ended_ ? 0 : random_.magnitude(millisecond, 5 * second));
}

void Shifts::tell_sentinels(SimTime within) {
  for (std::size_t sentinel = 0; sentinel < named_.size(); ++sentinel) {
    if (within == 0) {
      tell_sentinel(sentinel);
      continue;
    }
    const SimTime at = random_.between(0, within);
    world_.disturb(at + aftermath);
    world_.after(at, [this, sentinel] {
      if (!ended_) tell_sentinel(sentinel);
    });
  }
}

// As it says it to who listens.
void Shifts::tell_sentinel(std::size_t sentinel) {
  const std::size_t before = named_[sentinel] == nobody ? master_ : named_[sentinel];
  named_[sentinel] = master_;
  const std::string text = std::string(service) + " " + std::string(address) + " " + port_of(before) + " " +
                           std::string(address) + " " + port_of(master_);
  (void)world_.foreign(world_.node(world_.plan().servers + sentinel), {"PUBLISH", "+switch-master", text});
}

// For a while. A node of a cluster never names another than one that had the slot.
void Shifts::spread_old_news() {
  if (in_cluster()) {
    ClusterModel::Slot& slot = cluster_->slots()[random_.index(cluster_->slots().size())];
    const std::size_t node = random_.index(world_.nodes().size());
    if (slot.known[node] == slot.owner) return;
    world_.count(Fault::old_news, world_.node(node).lane);
    world_.disturb(aftermath);
    return ClusterModel::learn(slot, node);
  }
  const std::size_t sentinel = random_.index(named_.size());
  const SimTime lasts = length();
  world_.count(Fault::old_news, world_.node(world_.plan().servers + sentinel).lane);
  world_.disturb(lasts + aftermath);
  const std::size_t named = random_.index(world_.plan().servers + 1);
  named_[sentinel] = named == world_.plan().servers ? nobody : named;
  world_.after(lasts, [this, sentinel] {
    if (!ended_) tell_sentinel(sentinel);
  });
}

// Who has nothing to serve is a replica, and says so.
void Shifts::carry_roles() {
  for (Node& node : world_.nodes()) {
    if (world_.plan().is_sentinel(node.index)) continue;
    const bool target = in_cluster() && moves(node.index);
    const bool master = in_cluster() ? cluster_->serves_any(node.index) || target : node.index == master_ && !demoted_;
    node.redis.faults().replica = !master && sin_of(world_) != Sin::replica_believed;
  }
}

void Shifts::end() {
  ended_ = true;
  if (!world_.plan().one_place()) return;
  look_at_clocks();
  if (in_cluster()) {
    for (std::size_t index = 0; index < cluster_->slots().size(); ++index) {
      ClusterModel::Slot& slot = cluster_->slots()[index];
      if (slot.target) end_move(index, false);
      slot.down = false;
      std::fill(slot.known.begin(), slot.known.end(), slot.owner);
    }
  } else if (demoted_) {
    promote(nullptr);
  } else {
    tell_sentinels(0);
  }
  carry_roles();
  for (Node& node : world_.nodes()) world_.flush_server(node);
}

}  // namespace holdfast::sim

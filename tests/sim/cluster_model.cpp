// SPDX-License-Identifier: MIT
#include "cluster_model.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "holdfast/proto/slot.hpp"

namespace holdfast::sim {

namespace {

std::uint16_t slot_number(std::string_view key) noexcept { return slot_of(ByteView(key.data(), key.size())); }

// Those of a request that say where it belongs.
std::span<const std::string_view> keys_in(std::span<const std::string_view> words) {
  static constexpr std::string_view without[] = {"AUTH",  "SELECT",  "PING",      "ECHO",        "QUIT",
                                                 "RESET", "CLIENT",  "INFO",      "SCRIPT",      "TIME",
                                                 "WAIT",  "PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE", "PUBSUB"};
  if (words.size() < 2 || std::find(std::begin(without), std::end(without), words[0]) != std::end(without)) return {};
  if (words[0] == "EVAL" || words[0] == "EVALSHA") {
    std::size_t count = 0;
    if (words.size() > 3) (void)std::from_chars(words[2].data(), words[2].data() + words[2].size(), count);
    return words.subspan(3 <= words.size() ? 3 : words.size())
        .first(std::min(count, words.size() - std::min<std::size_t>(3, words.size())));
  }
  const bool all = words[0] == "SSUBSCRIBE" || words[0] == "SUNSUBSCRIBE" || words[0] == "DEL" || words[0] == "EXISTS";
  return words.subspan(1, all ? words.size() - 1 : 1);
}

bool of_channels(std::string_view command) noexcept {
  return command == "SSUBSCRIBE" || command == "SUNSUBSCRIBE" || command == "SPUBLISH";
}

}  // namespace

ClusterModel::ClusterModel(std::vector<ModelRedis*> nodes, std::string host, std::uint16_t first_port)
    : nodes_(std::move(nodes)), host_(std::move(host)), first_port_(first_port) {}

ClusterModel::Slot& ClusterModel::add_slot(std::uint16_t number, std::size_t owner) {
  Slot& slot = slots_.emplace_back();
  slot.number = number;
  slot.owner = owner;
  slot.known.assign(nodes_.size(), owner);
  return slot;
}

const ClusterModel::Slot* ClusterModel::find(std::uint16_t number) const noexcept {
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.number == number; });
  return found == slots_.end() ? nullptr : &*found;
}

bool ClusterModel::serves_any(std::size_t node) const noexcept {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.owner == node; });
}

std::vector<std::string> ClusterModel::keys_of(const Slot& slot, std::size_t node) const {
  std::vector<std::string> keys = nodes_[node]->keys();
  std::erase_if(keys, [&](const std::string& key) { return slot_number(key) != slot.number; });
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::string ClusterModel::address_of(std::size_t node) const {
  return host_ + ":" + std::to_string(first_port_ + node);
}

// The order of the questions is the server's.
bool ClusterModel::answer(std::size_t node, std::span<const std::string_view> words, std::string& reply) {
  const std::span<const std::string_view> keys = keys_in(words);
  if (keys.empty()) return false;
  const std::uint16_t number = slot_number(keys[0]);
  if (std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return slot_number(key) != number; })) {
    reply += "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    return true;
  }
  const Slot* const slot = find(number);
  if (slot == nullptr || slot->down) {
    reply += "-CLUSTERDOWN Hash slot not served\r\n";
    return true;
  }
  const std::string of_slot = " " + std::to_string(number) + " ";
  if (node != slot->owner) {
    reply += "-MOVED" + of_slot + address_of(slot->known[node]) + "\r\n";
    return true;
  }
  if (!slot->target || of_channels(words[0])) return false;
  const auto here =
      std::count_if(keys.begin(), keys.end(), [&](std::string_view key) { return nodes_[node]->find(key) != nullptr; });
  if (static_cast<std::size_t>(here) == keys.size()) return false;
  if (here != 0) {
    reply += "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
    return true;
  }
  ++asks;
  reply += "-ASK" + of_slot + address_of(*slot->target) + "\r\n";
  return true;
}

void ClusterModel::carry(const std::string& key, std::size_t from, std::size_t to, bool arrives) {
  if (nodes_[from]->find(key) == nullptr) return;
  Databases source = nodes_[from]->copy_data();
  const Entry moved = *source[0].find(key);
  source[0].erase(key);
  nodes_[from]->load_data(source);
  if (!arrives) return;
  Databases goal = nodes_[to]->copy_data();
  Entry& placed = goal[0].create(key);
  placed.value = moved.value;
  goal[0].set_expiry(key, placed, moved.expiry_ms);
  nodes_[to]->load_data(goal);
}

void ClusterModel::move_key(Slot& slot, const std::string& key, bool arrives) {
  if (slot.target) carry(key, slot.owner, *slot.target, arrives);
}

void ClusterModel::finish_move(Slot& slot, bool arrives) {
  for (const std::string& key : keys_of(slot, slot.owner)) move_key(slot, key, arrives);
  const std::size_t after = *slot.target;
  slot.target.reset();
  hand_over(slot, after);
}

void ClusterModel::call_off(Slot& slot) {
  const std::size_t target = *slot.target;
  slot.target.reset();
  for (const std::string& key : keys_of(slot, target)) carry(key, target, slot.owner, true);
}

void ClusterModel::hand_over(Slot& slot, std::size_t after) {
  const std::size_t before = slot.owner;
  slot.owner = after;
  slot.known[before] = slot.known[after] = after;
  ++moves;
  nodes_[before]->end_shard_channels([&](std::string_view channel) { return slot_number(channel) == slot.number; });
}

void ClusterModel::fail_over(std::size_t before, std::size_t after) {
  nodes_[after]->load_data(nodes_[before]->copy_data());
  nodes_[before]->load_data(Databases(database_count));
  for (Slot& slot : slots_) {
    if (slot.owner != before) continue;
    slot.target.reset();
    hand_over(slot, after);
  }
}

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
#include "keyspace.hpp"

#include <algorithm>

namespace holdfast::sim {

std::string* HashValue::find(std::string_view field) {
  for (auto& [name, value] : fields)
    if (name == field) return &value;
  return nullptr;
}

const std::string* HashValue::find(std::string_view field) const {
  for (const auto& [name, value] : fields)
    if (name == field) return &value;
  return nullptr;
}

bool HashValue::set(std::string_view field, std::string_view value) {
  if (std::string* const present = find(field); present != nullptr) {
    present->assign(value);
    return false;
  }
  fields.emplace_back(field, value);
  return true;
}

bool HashValue::erase(std::string_view field) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& pair) { return pair.first == field; });
  if (found == fields.end()) return false;
  fields.erase(found);
  return true;
}

const SortedSetValue::Member* SortedSetValue::find(std::string_view name) const {
  for (const Member& member : members)
    if (member.name == name) return &member;
  return nullptr;
}

void SortedSetValue::insert(std::string_view name, double score) {
  const auto after = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return score < member.score || (score == member.score && name < member.name);
  });
  members.insert(after, Member{score, std::string(name)});
}

bool SortedSetValue::erase(std::string_view name) {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.name == name; });
  if (found == members.end()) return false;
  members.erase(found);
  return true;
}

std::string_view to_string(ValueType type) noexcept {
  switch (type) {
    case ValueType::string: return "string";
    case ValueType::hash: return "hash";
    case ValueType::list: return "list";
    case ValueType::sorted_set: return "zset";
  }
  return "none";
}

Keyspace& Keyspace::operator=(const Keyspace& other) {
  if (this == &other) return *this;
  entries_ = other.entries_;
  next_serial_ = other.next_serial_;
  index_again();
  return *this;
}

Entry* Keyspace::find(std::string_view key) {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

const Entry* Keyspace::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Entry& Keyspace::create(std::string_view key) {
  Entry& entry = entries_[std::string(key)];
  entry.serial = next_serial_++;
  return entry;
}

bool Keyspace::erase(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  forget_expiry(found->second);
  entries_.erase(found);
  return true;
}

void Keyspace::clear() {
  entries_.clear();
  expiries_.clear();
}

void Keyspace::set_expiry(std::string_view key, Entry& entry, std::int64_t expiry_ms) {
  forget_expiry(entry);
  entry.expiry_ms = expiry_ms;
  if (expiry_ms == no_expiry) return;
  expiries_.insert({expiry_ms, entry.serial, &entries_.find(key)->first});
}

const std::string* Keyspace::first_to_expire(std::int64_t& expiry_ms) const noexcept {
  if (expiries_.empty()) return nullptr;
  expiry_ms = expiries_.begin()->when_ms;
  return expiries_.begin()->key;
}

std::vector<std::string> Keyspace::keys() const {
  std::vector<std::string> all;
  all.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) all.push_back(key);
  std::sort(all.begin(), all.end());
  return all;
}

void Keyspace::index_again() {
  expiries_.clear();
  for (const auto& [key, entry] : entries_)
    if (entry.expiry_ms != no_expiry) expiries_.insert({entry.expiry_ms, entry.serial, &key});
}

void Keyspace::forget_expiry(const Entry& entry) {
  if (entry.expiry_ms != no_expiry) expiries_.erase({entry.expiry_ms, entry.serial, nullptr});
}

}  // namespace holdfast::sim

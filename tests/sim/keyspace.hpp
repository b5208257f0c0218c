// SPDX-License-Identifier: MIT
//
// Keyspace is one database of a server: keys, values of the four types that locks use, and when they expire. It is
// plain data: it deletes nothing by itself. Copies are snapshots.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::sim {

using StringValue = std::string;
using ListValue = std::deque<std::string>;

// Fields keep the order in which they came, as in a small hash of Redis. They are searched one by one: a lock has few.
struct HashValue {
  std::vector<std::pair<std::string, std::string>> fields;

  [[nodiscard]] std::string* find(std::string_view field);
  [[nodiscard]] const std::string* find(std::string_view field) const;
  // True if the field is new.
  bool set(std::string_view field, std::string_view value);
  bool erase(std::string_view field);
};

// Ordered by score, then by bytes.
struct SortedSetValue {
  struct Member {
    double score = 0;
    std::string name;
  };
  std::vector<Member> members;

  [[nodiscard]] const Member* find(std::string_view name) const;
  void insert(std::string_view name, double score);
  bool erase(std::string_view name);
};

enum class ValueType : std::uint8_t { string, hash, list, sorted_set };  // In the order of the variant.
[[nodiscard]] std::string_view to_string(ValueType type) noexcept;       // As TYPE says it.

inline constexpr std::int64_t no_expiry = -1;

struct Entry {
  std::variant<StringValue, HashValue, ListValue, SortedSetValue> value;
  std::int64_t expiry_ms = no_expiry;  // Since 1970. The key is gone when the clock is past it.
  std::uint64_t serial = 0;            // Of its creation.

  [[nodiscard]] ValueType type() const noexcept { return static_cast<ValueType>(value.index()); }
};

class Keyspace {
 public:
  Keyspace() = default;
  Keyspace(const Keyspace& other) : entries_(other.entries_), next_serial_(other.next_serial_) { index_again(); }
  Keyspace& operator=(const Keyspace& other);
  Keyspace(Keyspace&&) = default;
  Keyspace& operator=(Keyspace&&) = default;
  ~Keyspace() = default;

  [[nodiscard]] Entry* find(std::string_view key);
  [[nodiscard]] const Entry* find(std::string_view key) const;
  // A key that is not there yet, without expiry.
  Entry& create(std::string_view key);
  bool erase(std::string_view key);
  void clear();
  void set_expiry(std::string_view key, Entry& entry, std::int64_t expiry_ms);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  // The key that expires first, or nullptr. `expiry_ms` is when.
  [[nodiscard]] const std::string* first_to_expire(std::int64_t& expiry_ms) const noexcept;
  // Every key, sorted.
  [[nodiscard]] std::vector<std::string> keys() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  struct Expiry {
    std::int64_t when_ms;
    std::uint64_t serial;  // Keys that expire together go in the order of their creation: addresses are no order.
    const std::string* key;
    bool operator<(const Expiry& other) const noexcept {
      return when_ms != other.when_ms ? when_ms < other.when_ms : serial < other.serial;
    }
  };
  void index_again();
  void forget_expiry(const Entry& entry);

  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  std::set<Expiry> expiries_;
  std::uint64_t next_serial_ = 1;
};

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
//
// What one look at a key says of a lock. A key says nowhere that it is one: with a name or a pattern the user says so, and without
// them its shape must (proto/interop.md): a string that is a token, a hash whose fields are owner fields, a number with a set
// of permits beside it. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/inquiry.hpp"
#include "holdfast/core/instant.hpp"

namespace holdfast::cli {

// Of one key, as the server has it. Any bytes.
struct KeyFacts {
  std::string name{};
  std::string type{};           // As TYPE says.
  std::int64_t remaining = -2;  // As PTTL says, in milliseconds: -1 is no TTL, -2 no key.
  std::uint64_t size = 0;       // Bytes of a string, fields of a hash.
  std::string text{};           // The beginning of a string; the mode of a read/write lock.
  std::uint64_t taken = 0;      // Of a semaphore: permits that are taken and have not ended.
  std::uint64_t waiting = 0;    // In the queue of a fair lock.
  // The first ones: fields of a hash with their counts, permits with the milliseconds that they have left.
  std::vector<std::pair<std::string, std::string>> holders{};
  std::vector<std::string> waiters{};  // The first ones, in their order.
};

// Who says that the key is a lock.
enum class Chosen : std::uint8_t {
  by_name,
  by_pattern,
  by_shape,
};

struct LockSight {
  struct Holder {
    std::string id{};  // The token, or the owner field; a writer's without its `:write`.
    std::uint64_t count = 1;
    Duration remaining = Duration::zero();  // Duration::max(): there is no TTL.
  };
  std::string name{};
  LockForm form = LockForm::free;
  std::vector<Holder> holders{};  // Those that are told: all of them, unless `owners` is more.
  std::uint64_t owners = 0;
  std::uint64_t permits = 0;
  std::uint64_t waiting = 0;
  std::vector<std::string> waiters{};

  [[nodiscard]] bool complete() const noexcept { return holders.size() == owners; }
};

// Nothing: it is no lock. LockForm::other where the user names it, and it is none.
[[nodiscard]] std::optional<LockSight> sight_of(const KeyFacts& facts, Chosen chosen);

// One owner at a time.
[[nodiscard]] bool is_exclusive(LockForm form) noexcept;

// For people: short, printable ASCII. A UUID or a token is told by its first eight digits, and an owner field has its ordinal
// behind them.
[[nodiscard]] std::string short_holder(const std::string& id);
// What all holds of one client have in common: the UUID of an owner field. A token has a hold of its own.
[[nodiscard]] std::string client_of(const std::string& id);

}  // namespace holdfast::cli

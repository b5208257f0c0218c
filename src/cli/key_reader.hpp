// SPDX-License-Identifier: MIT
//
// KeyReader asks a server for keys, many with one question: those of a step of SCAN, or those with given names. A script reads all
// that there is to know of a key in one moment, so that none changes its type or goes in between, and its replies have bounds
// whatever the keys are. It changes nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "lock_sight.hpp"
#include "watch_pace.hpp"

namespace holdfast::cli {

// What is told of a key: of each list so many.
inline constexpr std::size_t told_max = 8;
// Of one reply. SCAN may give more keys than it is asked for: a chain of its table is whole or not at all.
inline constexpr std::size_t records_max = 4 * question_keys_max;

class KeyReader {
 public:
  struct Answer {
    std::vector<KeyFacts> keys;
    std::uint64_t left_out = 0;  // Keys of this step that did not fit into the reply.
    std::uint64_t refused = 0;   // Keys that the user may not look at.
    bool last = false;           // Of a scan: all keys have been looked at.
  };

  KeyReader();
  ~KeyReader();
  KeyReader(const KeyReader&) = delete;
  KeyReader& operator=(const KeyReader&) = delete;

  // As ClientBase::connect().
  [[nodiscard]] Status connect(const ClientConfig& config);
  // The next step of a scan, of some question_keys_max keys, which begins anew after the last one. `pattern` is SCAN's, empty: all.
  // With `by_shape` only what may be a lock is read. Errors: as ClientBase::put(). The step is asked for again then.
  [[nodiscard]] Status scan(const std::string& pattern, bool by_shape, Answer& answer);
  // Keys of these names, at most question_keys_max; those that are not there, too.
  [[nodiscard]] Status read(const std::vector<std::string>& names, Answer& answer);

  [[nodiscard]] ClientBase& client() noexcept;

 private:
  class Place;
  std::unique_ptr<Place> place_;
  std::string cursor_ = "0";
};

}  // namespace holdfast::cli

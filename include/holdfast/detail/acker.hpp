// SPDX-License-Identifier: MIT
//
// Acker is what a client knows of its Acks: a table of functions, so that a program without one does not carry it.
#pragma once

#include "holdfast/core/instant.hpp"

namespace holdfast {

class AckRequest;

class Acker {
 public:
  struct Table {
    // As AckLane's.
    void (*enter)(Acker& acker, AckRequest& request) noexcept;
    void (*leave)(Acker& acker, AckRequest& request) noexcept;
    // Moves its bytes.
    void (*work)(Acker& acker) noexcept;
    // Sleeps until then, or until something comes for the client or for it.
    void (*sleep)(Acker& acker, Instant until) noexcept;
    // Closes its connection; `inherited`: it is the parent's, in a forked child.
    void (*close)(Acker& acker, bool inherited) noexcept;
  };
  Acker(const Acker&) = delete;
  Acker& operator=(const Acker&) = delete;

  [[nodiscard]] const Table& table() const noexcept { return *table_; }

 protected:
  explicit Acker(const Table& table) noexcept : table_(&table) {}
  ~Acker() = default;

 private:
  const Table* table_;
};

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// Brancher is what a client and its locks know of their Branches: a table of functions, so that a program whose names are at one
// server does not carry them. The client and each of its branches, which are clients, too, have the same one.
#pragma once

#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/detail/lookout.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class ClientBase;
class HoldRecord;
class LockMachine;
class NodeTask;
struct Reply;

// What a client does that its branches do, too. `context`:
enum class Branching : std::uint8_t {
  close,
  start_anew,     // In a forked child. All others do, whoever begins with it.
  tell,           // Who has lost a hold that tend() keeps.
  attach,         // The Keeper, or nullptr.
  tend,           // The Instant when to call again, which may become earlier.
  count_pending,  // A std::size_t,
  count_dropped,  // and a std::uint32_t, that grow.
};

class Brancher : public Lookout {
 public:
  struct Table {
    // A call of this lock begins: what has nothing on its way goes to where its slot was last.
    void (*route)(HoldRecord& record) noexcept;
    // `from` has refused a request of this lock with MOVED.
    void (*take_moved)(HoldRecord& record, const Reply& reply, ClientBase& from) noexcept;
    // The lock goes away: nobody hears of what was asked for it.
    void (*abandon)(const HoldRecord& record) noexcept;
    // The lock strays: it goes to where its slot is, and its call goes on there to its end.
    Status (*run_on)(HoldRecord& record, NodeTask& task, bool listens) noexcept;
    // Releases of this lock can be heard of where its slot is.
    bool (*may_hear)(const Brancher& brancher, const LockMachine& machine) noexcept;
    // The same of a question for a key: where its slot was last; and, where `from` has refused it with MOVED, where to go. nullptr: it
    // is no such refusal, or there is no branch for that server.
    ClientBase& (*lead)(Brancher& brancher, Key key) noexcept;
    ClientBase* (*lead_on)(Brancher& brancher, ClientBase& from, Key key) noexcept;
    // What is due of all the others, while a call is at this one: it does not wait, and calls nobody. When to call it again, at
    // `latest`.
    Instant (*work)(ClientBase& active, Instant latest) noexcept;
    // The client goes by this configuration from now on. REQUIRES: all are closed.
    void (*configure)(Brancher& brancher, const ClientConfig& config) noexcept;
    // The client itself does it: each branch does it, too. Nothing where it is a branch that does it, but for start_anew.
    void (*each)(const ClientBase& client, Branching what, void* context) noexcept;
  };

  [[nodiscard]] const Table& table() const noexcept { return *table_; }
  // The client itself.
  [[nodiscard]] ClientBase& home() const noexcept { return *home_; }
  // Where the last call was made.
  [[nodiscard]] const ClientBase& last() const noexcept { return *last_; }
  void note_call(const ClientBase& client) noexcept { last_ = &client; }

 protected:
  Brancher(const Table& table, Sleep how, ClientBase& home) noexcept
      : Lookout(how), table_(&table), home_(&home), last_(&home) {}
  ~Brancher() = default;

 private:
  const Table* table_;
  ClientBase* home_;
  const ClientBase* last_;
};

}  // namespace holdfast

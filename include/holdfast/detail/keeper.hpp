// SPDX-License-Identifier: MIT
//
// Keeper is what a client knows of its watchdog: a table of functions, so that a program without a watchdog does not carry one.
#pragma once

#include "holdfast/status.hpp"

namespace holdfast {

class ClientBase;
class HoldRecord;

class Keeper {
 public:
  // A client's place in the list of those that are attached.
  struct Attachment {
    ClientBase* client;
    Attachment* next = nullptr;
  };
  struct Table {
    // From here on the client is known, until it is detached: by itself, or by the keeper's destructor.
    void (*attach)(Keeper& keeper, Attachment& attachment) noexcept;
    void (*detach)(Keeper& keeper, Attachment& attachment) noexcept;
    // The hold is granted: keep it. Errors: too_many_requests (no place).
    Status (*enter)(Keeper& keeper, HoldRecord& record) noexcept;
    // The record's machine and the keeper tell each other what they know; what others read is brought up to date.
    void (*sync)(Keeper& keeper, HoldRecord& record) noexcept;
    // Nothing is renewed and nobody called from here on; waits for a call of the record's that is in progress.
    void (*leave)(Keeper& keeper, HoldRecord& record) noexcept;
    // What the client has to take back, and may not be called again for, the keeper takes back, too, as far as it has room.
    void (*take_back)(Keeper& keeper, ClientBase& client) noexcept;
  };
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void attach(Attachment& attachment) noexcept { table_->attach(*this, attachment); }
  void detach(Attachment& attachment) noexcept { table_->detach(*this, attachment); }
  Status enter(HoldRecord& record) noexcept { return table_->enter(*this, record); }
  void sync(HoldRecord& record) noexcept { table_->sync(*this, record); }
  void leave(HoldRecord& record) noexcept { table_->leave(*this, record); }
  void take_back(ClientBase& client) noexcept { table_->take_back(*this, client); }

 protected:
  explicit Keeper(const Table& table) noexcept : table_(&table) {}
  ~Keeper() = default;

 private:
  const Table* table_;
};

}  // namespace holdfast

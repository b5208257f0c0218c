// SPDX-License-Identifier: MIT
//
// QuorumKeeper is what a quorum knows of its watchdog: whose turn it is to use the quorum, that of its owner's thread or that of
// the watchdog's. It is a table of functions, so that a program without a watchdog does not carry one.
#pragma once

#include "holdfast/core/instant.hpp"

namespace holdfast {

class QuorumClient;
class QuorumRecord;

class QuorumKeeper {
 public:
  // What a quorum and its keeper share.
  struct Attachment {
    QuorumClient* quorum;
    QuorumKeeper* keeper = nullptr;  // The owner's to read and to set; nullptr: nobody shares the quorum.
    Attachment* next = nullptr;      // In the keeper's list. From here on all is under the keeper's lock.
    Instant planned{};               // Before that the keeper's thread has no business with the quorum.
    bool taken = false;              // It is the owner's turn.
    bool used = false;               // It is the keeper's turn, which is short: its thread waits for nothing meanwhile.
    bool awaited = false;            // The keeper came and found it taken.
    unsigned depth = 0;  // The owner's: how many of its calls stand within each other, also where there is no keeper.
  };
  struct Table {
    // It is the owner's turn from here on. With a lock: none of that lock's functions is being called by the keeper, either.
    void (*take)(QuorumKeeper& keeper, Attachment& attachment, const QuorumRecord* lock) noexcept;
    void (*give)(QuorumKeeper& keeper, Attachment& attachment) noexcept;
    void (*detach)(QuorumKeeper& keeper, Attachment& attachment) noexcept;
  };
  QuorumKeeper(const QuorumKeeper&) = delete;
  QuorumKeeper& operator=(const QuorumKeeper&) = delete;

  void take(Attachment& attachment, const QuorumRecord* lock) noexcept { table_->take(*this, attachment, lock); }
  void give(Attachment& attachment) noexcept { table_->give(*this, attachment); }
  void detach(Attachment& attachment) noexcept { table_->detach(*this, attachment); }

 protected:
  explicit QuorumKeeper(const Table& table) noexcept : table_(&table) {}
  ~QuorumKeeper() = default;

 private:
  const Table* table_;
};

}  // namespace holdfast

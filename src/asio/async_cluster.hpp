// SPDX-License-Identifier: MIT
//
// AsyncCluster is what an AsyncClient has beside its first branch where its servers are a cluster: a branch for each further master
// that has names of its locks, and of each slot where it was last. There is no map to be read. A lock asks where it believes its slot
// to be; a master that does not have it says MOVED, has done nothing, and names who has it. So an old belief costs one question.
//
//     a lock, a renewal, what is to be taken back -> MOVED -> follow(): the branch of that server -> asked again there
//
// A branch begins at the server that was named, and asks the listed nodes where that fails. It proves its server as the first branch
// does (SlotSearch). One that has no lock, and has lost its connection, makes no other, and may be used for another server.
//
// After a fail-over two branches may have come to the same server. All goes to the earlier of them, each lock as soon as nothing of
// it is on its way over the later one, which then ends:
//
//     a branch is ready -> merge(): is another at its server? -> each lock, now or when it is answered -> the later one is closed
//
// Where a server has sent locks away and all that are left there rest, it may be a master no more: its branch ends, too, and they
// begin at the first branch again. The first branch looks for its server anew then.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "async_branch.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/slot_routes.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

class LockMachine;

class AsyncCluster {
 public:
  AsyncCluster(AsyncClientCore& core, const AsyncLimits& limits);
  AsyncCluster(const AsyncCluster&) = delete;
  AsyncCluster& operator=(const AsyncCluster&) = delete;

  // With a new configuration, which has a cluster. That of the first branch is in `home`.
  void start(const ClientConfig& config, ClientConfig& home);
  // Nobody is connected but the first branch, to which all goes that is to be taken back, as far as there is room. The locks are the
  // caller's.
  void stop();

  // The configuration's own Cluster.
  [[nodiscard]] Topology* given() const noexcept { return given_; }
  // One of those beside the first.
  [[nodiscard]] AsyncBranch& branch(std::uint8_t number) noexcept { return places_[number - 1U]->branch; }
  // Where this lock's slot was last.
  [[nodiscard]] AsyncBranch& branch_of(const LockKind& kind, Key key) noexcept;
  // `from` has answered a request for this lock with MOVED, whose words are its session's failure_text(): where to go. nullptr: it is
  // no such answer, or the client has as many branches as it may have.
  [[nodiscard]] AsyncBranch* follow(AsyncBranch& from, const LockMachine& machine);
  // A branch has reached its server.
  void note_ready(AsyncBranch& branch) noexcept;
  // Of a turn: all branches but the first, and what goes from one to another.
  void work();

  template <class Function>
  void each(Function&& function) {
    for (const auto& place : places_) function(place->branch);
  }

 private:
  struct Server {
    NamedServer name;
    char run_id[run_id_size] = {};  // Once it was reached; all NUL before.

    [[nodiscard]] bool is(const Server& other) const noexcept {
      return run_id[0] != '\0' && ByteView(run_id, run_id_size) == ByteView(other.run_id, run_id_size);
    }
  };
  struct Place {
    Place(AsyncClientCore& core, const AsyncLimits& limits, std::uint8_t number) : branch(core, limits, number) {}
    Cluster cluster;  // The same nodes, and the name by which this branch finds its server.
    Server server;
    AsyncBranch branch;
    bool led = false;  // Its server has sent a lock to another one in this turn.
  };

  // What is to be taken back there goes where its slot is.
  void reroute(AsyncBranch& from);
  [[nodiscard]] AsyncBranch* go_after(AsyncBranch& from, std::uint16_t slot, ByteView name);
  [[nodiscard]] int find(const NamedServer& server) const noexcept;
  [[nodiscard]] int find_unused();
  // Of a branch: the last that it has reached.
  [[nodiscard]] Server& server_of(std::uint8_t number) noexcept {
    return number == 0 ? home_server_ : places_[number - 1U]->server;
  }
  // What asks for a lock over `to` may come before what is on its way over `from`: both are at one server.
  [[nodiscard]] bool may_overtake(const AsyncBranch& from, const AsyncBranch& to) noexcept;
  // The first branch that is at the same server, if it is an earlier one; else nullptr.
  [[nodiscard]] AsyncBranch* elder(const AsyncBranch& branch) noexcept;
  void merge();
  // All locks of this branch rest, and nothing is on its way.
  [[nodiscard]] bool all_rest(const AsyncBranch& branch) noexcept;
  // They begin at the first branch again.
  void leave(AsyncBranch& branch);
  [[nodiscard]] int add();

  AsyncClientCore& core_;
  AsyncLimits limits_;
  ClientConfig config_;
  Topology* given_ = nullptr;
  Cluster cluster_;  // Of the first branch.
  // The first branch has the number 0, and these those from 1 on.
  std::vector<std::unique_ptr<Place>> places_;
  Server home_server_;         // Of the first branch.
  bool merging_ = false;       // Two branches may be at one server.
  bool home_led_ = false;      // The server of the first branch has sent a lock to another one in this turn,
  bool home_doubted_ = false;  // and one that was held there since it was reached.
  SlotRoutes routes_;
};

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "loop_handlers.hpp"

#include <string>
#include <vector>

#include "world.hpp"

namespace holdfast::sim {

namespace {

// From the end of a client to the handlers of what it was doing: the next turn.
constexpr SimTime called_within = 100 * millisecond;

}  // namespace

std::uint64_t LoopHandlers::give(std::size_t connection, const char* what) {
  given_.emplace(++last_, Given{connection, what});
  return last_;
}

void LoopHandlers::note_called(std::uint64_t number) {
  const auto found = given_.find(number);
  const std::string client = "client " + std::to_string(process_.index);
  if (found == given_.end()) return world_.fail("handlers", client + " was told the end of something twice");
  if (giving_ != 0)
    world_.fail("handlers", client + " was told the end of " + found->second.what + " while it asked for something");
  given_.erase(found);
}

void LoopHandlers::note_gone(std::size_t connection) {
  std::vector<std::uint64_t> left;
  for (const auto& [number, given] : given_)
    if (given.connection == connection) left.push_back(number);
  if (left.empty()) return;
  world_.after(called_within,
               [this, left, &world = world_, index = process_.index, life = process_.life, imposed = process_.imposed] {
                 const Process& later = world.processes()[index];
                 if (!later.alive || later.life != life || later.imposed != imposed) return;
                 for (const std::uint64_t number : left)
                   if (const auto found = given_.find(number); found != given_.end())
                     world.fail("handlers", "client " + std::to_string(index) + " was not told the end of " +
                                                found->second.what + " after it had destroyed whom it asked");
               });
}

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
//
// Sets of locks in programs that wait in threads: a LockSet or a MixedLockSet of locks that are free, of any kinds, on any of the
// thread's clients and on its quorum, in any order. What the set is told each of its locks must be: all of them, or none.
#include <algorithm>

#include "application.hpp"
#include "canary.hpp"
#include "checkers.hpp"
#include "holdfast/lock_set.hpp"
#include "pace.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

AnyLock any_of(const Application::Slot& slot) noexcept {
  return slot.of_quorum ? AnyLock(slot.redlock) : AnyLock(slot.lock());
}

// A set of its own, as somebody would write it: lock by lock, as they come. Where leases are short it would ask very often.
bool is_made_by_hand(Sin sin, const Application::Worker& worker) noexcept {
  if (sin == Sin::set_keeps_first) return true;
  return sin == Sin::set_in_any_order &&
         std::all_of(worker.members.begin(), worker.members.end(),
                     [](const Application::Slot* member) { return member->plan->lease >= second; });
}

}  // namespace

// As long as it lives, the thread is in a call that may wait on any of the set's connections.
class Application::SetCall {
 public:
  SetCall(Application& application, Worker& worker, const char* what) noexcept
      : application_(application), worker_(worker), what_(what) {
    worker_.calls = true;
    World& world = application_.world_;
    world.trace().add(world.now(), "calls", application_.process_.index, worker_.members.size(), what_);
    world.pace().begin(world.thread());
    for (const std::size_t connection : worker_.set_connections)
      application_.connections_[connection].cancels.begin(world.thread(), application_.takes_turns(connection));
    for (const std::size_t connection : worker_.set_connections) application_.arm(connection);
  }
  ~SetCall() { worker_.calls = false; }
  SetCall(const SetCall&) = delete;
  SetCall& operator=(const SetCall&) = delete;

  void end(Cancels how, Status status, SimTime allowed) {
    World& world = application_.world_;
    Thread& thread = world.thread();
    thread.cancel_after = -1;
    std::string wrong;
    if (worker_.set_connections.size() == 1) {
      CancelWatch& cancels = application_.connections_[worker_.set_connections[0]].cancels;
      const bool raised = cancels.raised();
      wrong = cancels.end(application_.process_, thread, world.now(), how, status, allowed);
      // What came when nothing was waited for any more may be the next call's.
      if (raised) cancels.doubt();
    } else {
      if (status == Status::cancelled) wrong = "was cancelled by nobody, or by what ended an earlier call";
      for (const std::size_t connection : worker_.set_connections) {
        CancelWatch& cancels = application_.connections_[connection].cancels;
        const bool raised = cancels.raised();
        if (status == Status::cancelled && cancels.may_end()) wrong.clear();
        const std::string also = cancels.end_among_others(thread, how, status);
        if (wrong.empty()) wrong = also;
        if (raised) cancels.doubt();  // As above.
      }
    }
    if (!wrong.empty())
      world.fail("cancel",
                 std::string(what_) + " of client " + std::to_string(application_.process_.index) + " " + wrong);
  }

 private:
  Application& application_;
  Worker& worker_;
  const char* what_;
};

// ---- Which locks -------------------------------------------------------------------------------------------------

// This lock and some others that are free to be taken, in any order.
bool Application::gathers(Worker& worker, Slot& slot) {
  Random& random = process_.random;
  if (!process_.plan->wide_sets || !random.chance(process_.plan->sets)) return false;
  if (holds_as_another(slot)) return false;
  worker.members.assign(1, &slot);
  for (Slot* const other : worker.slots) {
    if (other == &slot || !other->exists() || other->depth != 0 || random.chance(200'000)) continue;
    if (holds_as_another(*other)) continue;
    if (!shares_name(worker, *other) || random.chance(20'000)) worker.members.push_back(other);
  }
  if (worker.members.size() < 2) return false;
  std::swap(worker.members[0], worker.members[random.index(worker.members.size())]);
  return true;
}

// Whether a lock that was taken first still lasts when the last of so many is. By then a request and its reply take one and a half
// milliseconds at most; a lock of a quorum has two of them, and drift takes two milliseconds.
bool Application::outlasts_a_set(const Slot& slot, std::size_t locks) const noexcept {
  return slot.plan->lease > 3 * millisecond * static_cast<SimTime>(locks + 1);
}

// At the end, by whom all name the servers alike: no order of theirs may deadlock. A MultiLock stands where its first name does,
// and may be in the way of a set.
bool Application::gathers_at_the_end(Worker& worker) {
  worker.members.clear();
  if (!process_.plan->wide_sets) return false;
  for (Slot* const slot : worker.slots) {
    if (slot->of_several() || plan_of_connection(slot->plan->connection).named) continue;
    if (!outlasts_a_set(*slot, worker.slots.size())) continue;
    make(*slot);
    if (!shares_name(worker, *slot)) worker.members.push_back(slot);
  }
  if (worker.members.size() < 2) return false;
  for (std::size_t index = worker.members.size(); index > 1; --index)
    std::swap(worker.members[index - 1], worker.members[process_.random.index(index)]);
  return true;
}

// By another object of its owner, whose hold it would go on with; or what a release that found no place has left.
bool Application::holds_as_another(const Slot& slot) const noexcept {
  if ((slot.of_quorum ? slot.redlock->hold_count() : slot.lock()->hold_count()) != 0) return true;
  return std::any_of(slots_.begin(), slots_.end(), [&slot](const Slot& other) {
    const bool other_side = other.of_two_sides() && slot.of_two_sides() && other.plan->kind != slot.plan->kind;
    return &other != &slot && other.depth != 0 && slot.same_owner(other) && !other_side;
  });
}

bool Application::shares_name(const Worker& worker, const Slot& slot) const noexcept {
  return std::any_of(worker.members.begin(), worker.members.end(),
                     [&slot](const Slot* member) { return member->shares_name(slot); });
}

// Calls `use` with a set of them, which lives so long.
template <class Use>
void Application::with_set(Worker& worker, Use use) {
  worker.any_locks.clear();
  worker.locks.clear();
  worker.set_connections.clear();
  bool of_quorum = false;
  for (const Slot* const member : worker.members) {
    of_quorum = of_quorum || member->of_quorum;
    worker.any_locks.push_back(any_of(*member));
    worker.locks.push_back(member->lock());
    if (std::find(worker.set_connections.begin(), worker.set_connections.end(), member->plan->connection) ==
        worker.set_connections.end())
      worker.set_connections.push_back(member->plan->connection);
  }
  if (of_quorum || process_.random.coin()) {
    MixedLockSet set(worker.any_locks.data(), worker.any_locks.size());
    use(set);
  } else {
    LockSet set(worker.locks.data(), worker.locks.size());
    use(set);
  }
}

// ---- What it does with them --------------------------------------------------------------------------------------

void Application::take_set(Worker& worker) {
  bool left = false;
  with_set(worker, [&](LockSetBase& set) { left = hold_set(worker, set); });
  if (!left) return;
  world_.trace().add(world_.now(), "destroyed a set", process_.index);
  for (Slot* const member : worker.members) end_in_set(*member);
  for (Slot* const member : worker.members) note_set_left(*member);
}

// True if it is destroyed with what it holds.
bool Application::hold_set(Worker& worker, LockSetBase& set) {
  if (!judge_set(worker, set.configuration()) || acquire_set(worker, set) != Status::ok) return false;
  Random& random = process_.random;
  while (world_.phase() == Phase::faults) {
    tick(worker);
    switch (random.below(10)) {
      case 0: renew_set(worker, set); break;
      case 1: write(*worker.members[random.index(worker.members.size())]); break;
      case 2:
      case 3: pause(process_.plan->hold); break;
      case 4: {
        const Slot& member = *worker.members[random.index(worker.members.size())];
        member.of_quorum ? tend() : (void)tend(member.plan->connection);
        break;
      }
      case 5: release_set(worker, set, true); return false;
      case 6:
        if (is_made_by_hand(sin_of(world_), worker)) break;
        for (Slot* const member : worker.members) begin_to_leave(*member);
        return true;
      default: release_set(worker, set, false); return false;
    }
  }
  release_set(worker, set, false);
  return false;
}

// False where it takes none of them.
bool Application::judge_set(const Worker& worker, Status configuration) {
  bool alone = true;      // No two of them want one name,
  bool hindered = false;  // or two of them can never have it at the same time.
  bool well_made = true;  // Not under a max_lease that was too small.
  for (std::size_t index = 0; index < worker.members.size(); ++index) {
    const Slot& left = *worker.members[index];
    well_made = well_made && worker.any_locks[index].configuration() == Status::ok;
    for (std::size_t other = 0; other < index; ++other) {
      const Slot& right = *worker.members[other];
      const bool one_name = left.shares_name(right);
      alone = alone && !one_name;
      hindered = hindered || (one_name && left.plan->connection == right.plan->connection && !left.of_semaphore());
    }
  }
  if (alone && well_made) judge_configuration(configuration);
  if (hindered && configuration == Status::ok) world_.fail("configuration", "a set was made of two locks of one name");
  return configuration == Status::ok;
}

// A request for each lock, and one for each that is renewed meanwhile.
SimTime Application::bound_of_set(const Worker& worker, SimTime wait) const noexcept {
  SimTime bound = bound_of_span(wait);
  for (const Slot* const member : worker.members)
    bound += 2 * (member->of_quorum ? bound_of_quorum(0) + bound_of_attempt(*member)
                                    : bound_with_connect(member->plan->connection, 0));
  return bound;
}

SimTime Application::bound_of_cancelled_set(const Worker& worker) const noexcept {
  SimTime bound = 0;
  for (const std::size_t connection : worker.set_connections) bound = std::max(bound, bound_of_cancel(connection));
  return bound;
}

Status Application::acquire_set(Worker& worker, LockSetBase& set) {
  const bool tries = process_.random.chance(300'000);
  const SimTime wait = tries ? 0 : process_.random.magnitude(100 * microsecond, process_.plan->wait);
  const Started started = start();
  const std::uint64_t commands = world_.thread().commands;
  const Status status = ask_for_set(worker, set, wait);
  check_bound("acquire of a set", started, bound_of_set(worker, wait));
  note_set_acquired(worker, status, started, commands);
  return status;
}

Status Application::ask_for_set(Worker& worker, LockSetBase& set, SimTime wait) {
  const Sin sin = sin_of(world_);
  for (Slot* const member : worker.members) {
    member->before = member->token();
    member->idle = member->queued = false;
    member->renewing = true;  // It is, while the next one is waited for.
  }
  Status status = Status::ok;
  {
    SetCall call(*this, worker, "acquire a set");
    const bool by_hand = is_made_by_hand(sin, worker);
    status = by_hand ? acquire_by_hand(worker, wait) : wait == 0 ? set.try_acquire() : set.acquire(Duration(wait));
    if (sin == Sin::set_cancelled_in_vain && status == Status::cancelled) status = set.acquire(Duration(wait));
    // One that is made by hand hears of no other client than the one that it waits on.
    call.end(by_hand ? Cancels::asked : Cancels::acquiring, status, bound_of_cancelled_set(worker));
  }
  for (Slot* const member : worker.members) {
    member->renewing = false;
    member->renewed = Instant::from_nanoseconds(world_.local_time(process_));
  }
  world_.trace().add(world_.now(), "acquire a set", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  return sin == Sin::set_of_some ? Status::ok : status;
}

void Application::note_set_acquired(Worker& worker, Status status, const Started& started, std::uint64_t commands) {
  const std::string client = "client " + std::to_string(process_.index);
  // As one lock's that waits, for each of them.
  const std::uint64_t sent = world_.thread().commands - commands;
  std::uint64_t most = 0;
  for (const Slot* const member : worker.members)
    most += (static_cast<std::uint64_t>(world_.now() - started.at) / (2 * millisecond) * 5 + 60) *
            (member->of_quorum ? world_.nodes().size() : 1);
  if (sent > most) world_.fail("floor", std::to_string(sent) + " commands for a set of " + client);
  for (Slot* const member : worker.members) {
    const std::string& name = world_.plan().names[member->name];
    if (status != Status::ok) {
      if (member->held())
        world_.fail("sets", client + " was told " + to_string(status) + " and holds " + name + " of the set");
      if (member->token().bytes() != member->before.bytes()) note_set_left(*member);
      continue;
    }
    if (member->valid_until() == Instant())
      world_.fail("sets", client + " was told ok and does not hold " + name + " of the set");
    world_.checkers().after_acquire(process_, *member, status, started.at, world_.thread().commands);
    granted(*member);
  }
}

void Application::renew_set(Worker& worker, LockSetBase& set) {
  const Started started = start();
  for (Slot* const member : worker.members) member->renewing = true;
  Status status = Status::ok;
  {
    SetCall call(*this, worker, "renew a set");
    status = set.renew();
    call.end(Cancels::asked, status, bound_of_cancelled_set(worker));
  }
  for (Slot* const member : worker.members) {
    member->renewing = false;
    member->renewed = Instant::from_nanoseconds(world_.local_time(process_));
  }
  world_.trace().add(world_.now(), "renew a set", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  check_bound("renew of a set", started, bound_of_set(worker, 0));
}

// Where it says ok, each of them said so.
void Application::release_set(Worker& worker, LockSetBase& set, bool posted) {
  const Started started = start();
  for (Slot* const member : worker.members) begin_to_leave(*member);
  Status status = Status::ok;
  {
    SetCall call(*this, worker, posted ? "post release of a set" : "release a set");
    status = is_made_by_hand(sin_of(world_), worker) ? release_by_hand(worker)
             : posted                                ? set.post_release()
                                                     : set.release();
    call.end(Cancels::spared, status, bound_of_cancelled_set(worker));
  }
  world_.trace().add(world_.now(), posted ? "post release of a set" : "release a set", process_.index,
                     static_cast<std::uint64_t>(status), to_string(status));
  if (posted && world_.now() - started.at != process_.imposed - started.imposed)
    check_bound("post_release of a set", started, millisecond);
  check_bound("release of a set", started, bound_of_set(worker, 0));
  for (Slot* const member : worker.members) end_in_set(*member);
  for (Slot* const member : worker.members) {
    const bool told = status == Status::ok && !posted;
    if (!told)
      note_set_left(*member);
    else if (member->of_quorum)
      note_quorum_released(*member, member->before, status, true, false);
    else if (member->plan->linger == 0)
      world_.checkers().after_release(process_, member->number_before, status, true);
    if (!member->of_quorum) settle_in(*member);
  }
}

void Application::begin_to_leave(Slot& member) {
  member.before = member.token();
  member.number_before = world_.checkers().number_of(member);
  member.releasing = true;
  member.own_belief = Instant();
}

void Application::end_in_set(Slot& member) {
  member.own_belief = Instant();
  member.releasing = false;
  if (member.depth != 0) --member.depth;
}

// It is let go of, and nobody waits for the server's word: where there is a place for that, it follows. What may stay is told to the
// server later, or not at all.
void Application::note_set_left(Slot& member) {
  if (member.of_quorum) {
    member.unclear = !member.moved && quorum_->compensations_pending() < compensations_max ? member.token() : Token();
    member.unclear_at = world_.now();
    member.moved = false;
  } else if (member.plan->linger == 0 && client_of(member).compensations_pending() < compensations_max / 3) {
    world_.checkers().after_post(process_, member, member.token(), Status::ok);
  }
  if (member.held())
    world_.fail("sets", "client " + std::to_string(process_.index) + " has let go of a set and holds " +
                            world_.plan().names[member.name]);
}

// ---- At the end --------------------------------------------------------------------------------------------------

// All of them want their names, each in an order of its own.
void Application::take_last_set(Worker& worker) {
  with_set(worker, [&](LockSetBase& set) {
    if (!judge_set(worker, set.configuration())) return;
    const SimTime since = world_.now();
    const SimTime imposed = process_.imposed;
    const SimTime most = longest_turn_of(worker.members.size());
    while (!world_.failed()) {
      const Started started = start();
      const std::uint64_t commands = world_.thread().commands;
      const Status status = ask_for_set(worker, set, 2 * most);
      note_set_acquired(worker, status, started, commands);
      const SimTime took = world_.now() - since - (process_.imposed - imposed);
      if (status != Status::cancelled && (took > most || (status != Status::ok && took > most / 2)))
        return world_.fail("liveness", std::string("free locks were not to be had as a set: ") + to_string(status) +
                                           " after " + time_text(took) + " s");
      if (status == Status::ok) return release_set(worker, set, false);
      world_.sleep(20 * millisecond);
    }
  });
}

// ---- By hand -----------------------------------------------------------------------------------------------------

Status Application::acquire_by_hand(Worker& worker, SimTime wait) {
  const Instant deadline = Client::now() + Duration(wait);
  SimTime lease = never;
  for (const Slot* const member : worker.members) lease = std::min(lease, member->plan->lease);
  for (std::size_t taken = 0; taken < worker.members.size();) {
    const Duration left = std::max(Duration::zero(), deadline - Client::now());
    const Status status = any_of(*worker.members[taken]).acquire(std::min(left, Duration(lease / 3)));
    if (status == Status::ok) {
      ++taken;
      continue;
    }
    if (status == Status::lock_busy && left > Duration(lease / 3)) {
      for (std::size_t kept = 0; kept < taken; ++kept) (void)any_of(*worker.members[kept]).renew();
      continue;
    }
    const std::size_t kept = sin_of(world_) == Sin::set_keeps_first ? 1 : 0;
    while (taken > kept) (void)any_of(*worker.members[--taken]).post_release();
    return status;
  }
  return Status::ok;
}

Status Application::release_by_hand(Worker& worker) {
  Status first = Status::ok;
  for (const Slot* const member : worker.members)
    if (const Status status = any_of(*member).release(); first == Status::ok) first = status;
  return first;
}

}  // namespace holdfast::sim

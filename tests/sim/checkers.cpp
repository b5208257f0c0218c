// SPDX-License-Identifier: MIT
#include "checkers.hpp"

#include <charconv>

#include "holdfast/derived_name.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

// A hold that is kept by a watchdog and runs out is told: it wakes then, if it is not in the middle of connecting.
constexpr SimTime told_within = 250 * millisecond;

std::string text_of(ByteView bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace

Checkers::Checkers(World& world) : world_(world), grants_(1), views_(world.plan().names.size()) {
  for (const std::string& name : world.plan().names)
    counters_.push_back(text_of(DerivedName(fence_prefix, Key(ByteView(name.data(), name.size()))).bytes()));
  world.redis().observe([this](const ModelRedis::Effect& effect) { observe(effect); });
}

std::uint32_t Checkers::find(std::string_view token) const {
  const auto found = numbers_.find(std::string(token));
  return found == numbers_.end() ? 0 : found->second;
}

std::string Checkers::who(std::uint32_t number) const {
  if (number == 0) return "nobody of ours";
  const Grant& grant = grants_[number];
  return "client " + std::to_string(grant.process) + "." + std::to_string(grant.life) + " by " + grant.token;
}

// ---- What the server does ----------------------------------------------------------------------------------------

void Checkers::observe(const ModelRedis::Effect& effect) {
  for (std::size_t name = 0; name < views_.size(); ++name) {
    if (effect.key == world_.plan().names[name]) {
      views_[name].touched = true;
      observe_lock(name, effect);
      return;
    }
    if (effect.key == counters_[name] && effect.kind == ModelRedis::EffectKind::set) {
      std::uint64_t counter = 0;
      (void)std::from_chars(effect.value.data(), effect.value.data() + effect.value.size(), counter);
      views_[name].counter = counter;
      return;
    }
  }
}

void Checkers::observe_lock(std::size_t name, const ModelRedis::Effect& effect) {
  using Kind = ModelRedis::EffectKind;
  View& view = views_[name];
  if (effect.kind == Kind::expired) {
    if (view.grant != 0 && !grants_[view.grant].broken && believed(view.grant))
      world_.fail("validity", "the key of " + who(view.grant) + " expired while it was believed to be held");
    view = {.last_fence = view.last_fence,
            .fence_excused = view.fence_excused,
            .seen_fence = view.seen_fence,
            .seen_grant = view.seen_grant};
    return;
  }
  if (from_ == nullptr) return;  // Somebody else's: data_changed() looks at it when that is done.
  switch (effect.kind) {
    case Kind::set:
      if (view.present) {
        const std::uint32_t same = find(effect.value);
        if (same != 0 && same == view.grant)
          world_.fail("fresh tokens", "set again: " + who(same));
        else
          world_.fail("ownership", "the lock of " + who(view.grant) + " was overwritten");
      }
      note_grant(name, effect.value, effect);
      return;
    case Kind::field_set: {
      const std::uint32_t number = find(effect.member);
      if (!view.present) {
        note_grant(name, effect.member, effect);
      } else if (number == 0) {
        world_.fail("ownership", "a field was added to the lock of " + who(view.grant));
      } else {
        ++figures_.steps;
        if (grants_[number].deleted) world_.fail("no resurrection", "a count was set for " + who(number));
        check_owner(number, "counts");
      }
      return;
    }
    case Kind::deleted:
      if (view.present && view.grant != 0) note_deleted(name, view.grant);
      if (view.present && view.grant == 0 && !view.emptied) world_.fail("ownership", "a foreign key was deleted");
      view.present = false;
      view.emptied = false;
      view.grant = 0;
      view.expiry_ms = no_expiry;
      return;
    case Kind::field_deleted: {
      const std::uint32_t number = find(effect.member);
      if (number == 0)
        world_.fail("ownership", "a foreign field was deleted");
      else
        note_deleted(name, number);
      if (number == view.grant) {
        view.grant = 0;
        view.emptied = true;
      }
      return;
    }
    case Kind::expiry_changed:
      if (effect.expiry_ms == no_expiry) world_.fail("lease", "a lease was taken away");
      if (view.present && view.expiry_ms != no_expiry) {
        ++figures_.renewals;
        if (effect.expiry_ms < view.expiry_ms) world_.fail("never shortened", "the lease of " + who(view.grant));
        if (view.grant != 0) check_owner(view.grant, "renews");
        if (view.grant == 0) world_.fail("ownership", "a foreign key was renewed");
      }
      view.expiry_ms = effect.expiry_ms;
      return;
    case Kind::expired:
    case Kind::evicted:
    case Kind::flushed:
    case Kind::list_changed:
    case Kind::sorted_set_changed:
    case Kind::published: return;
  }
}

void Checkers::check_owner(std::uint32_t number, std::string_view what) {
  const Grant& grant = grants_[number];
  if (grant.process != from_->process || grant.life != from_->life)
    world_.fail("ownership",
                "client " + std::to_string(from_->process) + " " + std::string(what) + " what is of " + who(number));
}

void Checkers::note_grant(std::size_t name, std::string_view token, const ModelRedis::Effect& effect) {
  View& view = views_[name];
  if (const std::uint32_t before = find(token); before != 0) {
    world_.fail(grants_[before].deleted ? "no resurrection" : "fresh tokens", "set again: " + who(before));
    return;
  }
  for (const Application::Slot& slot : world_.processes()[from_->process].application_slots())
    if (!slot.denied.empty() && slot.denied.bytes() == ByteView(token.data(), token.size()))
      world_.fail("ledger", "client " + std::to_string(from_->process) + " was told busy by a reply to something else");
  const auto number = static_cast<std::uint32_t>(grants_.size());
  Grant grant;
  grant.token = token;
  grant.process = from_->process;
  grant.life = from_->life;
  grant.name = name;
  grant.at = world_.now();
  const bool fenced = effect.request.size() > 2 && effect.request[2] == "2";
  if (fenced) {
    grant.fence = view.counter;
    if (view.counter <= view.last_fence && !view.fence_excused)
      world_.fail("fences", "the fence of " + std::string(token) + " is " + std::to_string(view.counter) + " behind " +
                                std::to_string(view.last_fence));
    view.last_fence = view.counter;
  }
  view.counter = 0;
  grants_.push_back(grant);
  numbers_.emplace(token, number);
  view.present = true;
  view.foreign = false;
  view.grant = number;
  view.expiry_ms = effect.expiry_ms;
  ++figures_.grants;
}

void Checkers::note_deleted(std::size_t, std::uint32_t number) {
  Grant& grant = grants_[number];
  check_owner(number, "deletes");
  if (!grant.broken && believed(number)) world_.fail("ownership", "deleted under its holder: " + who(number));
  grant.deleted = true;
  grant.released = true;
  ++figures_.releases;
}

void Checkers::after_receive(std::size_t commands) {
  figures_.commands += commands;
  from_ = nullptr;
  for (std::size_t name = 0; name < views_.size(); ++name) {
    View& view = views_[name];
    view.counter = 0;
    if (!view.touched) continue;
    view.touched = false;
    if (view.present && view.emptied) view.foreign = true;  // What is left are fields of others.
    view.emptied = false;
    const Entry* const entry = world_.redis().find(world_.plan().names[name]);
    if (entry != nullptr && entry->expiry_ms == no_expiry && !view.foreign)
      world_.fail("lease", "a lock key without one: " + world_.plan().names[name]);
    if (entry != nullptr && view.present) view.expiry_ms = entry->expiry_ms;
  }
  if (trace_holds()) note_keys();
}

void Checkers::break_all() {
  for (View& view : views_) break_grant(view.grant);
}

void Checkers::break_name(std::string_view name) {
  for (std::size_t index = 0; index < views_.size(); ++index)
    if (world_.plan().names[index] == name) break_grant(views_[index].grant);
}

void Checkers::data_changed() {
  for (std::size_t name = 0; name < views_.size(); ++name) read(name);
  if (trace_holds()) note_keys();
}

void Checkers::read(std::size_t name) {
  View& view = views_[name];
  view.touched = false;
  const Entry* const entry = world_.redis().find(world_.plan().names[name]);
  const std::uint32_t before = view.grant;
  view.present = entry != nullptr;
  view.grant = 0;
  view.expiry_ms = entry == nullptr ? no_expiry : entry->expiry_ms;
  view.foreign = false;
  if (entry == nullptr) return;
  if (const auto* const text = std::get_if<StringValue>(&entry->value)) view.grant = find(*text);
  if (const auto* const hash = std::get_if<HashValue>(&entry->value)) {
    for (const auto& [field, count] : hash->fields) {
      const std::uint32_t number = find(field);
      if (number != 0) view.grant = number;
      view.foreign = view.foreign || number == 0;
    }
  }
  view.foreign = view.foreign || view.grant == 0 || view.expiry_ms == no_expiry;
  if (view.grant != before) {
    break_grant(view.grant);
    if (view.grant != 0) grants_[view.grant].deleted = false;  // A replica that lagged brings it back.
  }
}

bool Checkers::foreign(std::string_view name) const {
  for (std::size_t index = 0; index < views_.size(); ++index)
    if (world_.plan().names[index] == name) return views_[index].foreign;
  return false;
}

void Checkers::excuse_fence(std::string_view name) {
  for (std::size_t index = 0; index < views_.size(); ++index)
    if (world_.plan().names[index] == name) views_[index].fence_excused = true;
}

void Checkers::excuse_fences() {
  for (View& view : views_) view.fence_excused = true;
}

// ---- What clients believe ----------------------------------------------------------------------------------------

std::uint32_t Checkers::number_of(const Application::Slot& slot) const {
  const ByteView token = slot.lock()->token().bytes();
  return token.empty() ? 0 : find({token.data(), token.size()});
}

bool Checkers::believed(std::uint32_t number) const {
  const Grant& grant = grants_[number];
  Process& process = world_.processes()[grant.process];
  if (!process.alive || process.life != grant.life || process.application == nullptr) return false;
  const Instant now = Instant::from_nanoseconds(world_.local_time(process));
  for (const Application::Slot& slot : process.application->slots())
    if (slot.lock() != nullptr && now < process.application->believes(slot) && number_of(slot) == number) return true;
  return false;
}

void Checkers::after_run(Process& process) {
  if (process.application == nullptr) return;
  if (trace_holds()) note_keys();
  for (Application::Slot& slot : process.application->slots()) {
    if (slot.lock() == nullptr) {
      slot.seen_until = Instant();
      continue;
    }
    const Instant until = process.application->believes(slot);
    if (until == slot.seen_until) continue;
    if (trace_holds()) note_hold(process, slot, until);
    if (slot.seen_until < until) check_belief(process, slot, until);
    if (until == Instant() && slot.depth != 0 && !slot.releasing) expect_told(process, slot, world_.now());
    if (until != Instant() && until != Instant::max())
      expect_told(process, slot, world_.true_time(process, until.nanoseconds()));
    slot.seen_until = until;
  }
}

bool Checkers::trace_holds() const { return world_.trace().recorded(); }

// A hold's bar begins when it is told, and ends when it is given up or was not extended.
void Checkers::note_hold(Process& process, Application::Slot& slot, Instant until) {
  std::vector<Trace::Item>& items = world_.trace().items();
  const std::string lane = "client " + std::to_string(process.index);
  std::string label = world_.plan().names[slot.plan->name].substr(0, 12) + " #" + std::to_string(number_of(slot));
  if (slot.fenced() && slot.fence() != 0) label += " fence " + std::to_string(slot.fence());
  const bool another = until != Instant() && slot.item < items.size() && items[slot.item].label != label;
  if (slot.seen_until == Instant() || slot.item >= items.size() || another) {
    if (another) items[slot.item].until = std::min(items[slot.item].until, world_.now());
    slot.item = items.size();
    items.push_back({lane, label, world_.now(), world_.now(), true});
  }
  items[slot.item].until = until == Instant() ? world_.now() : world_.true_time(process, until.nanoseconds());
}

// What the server has: a bar a grant, to the end of its lease.
void Checkers::note_keys() {
  std::vector<Trace::Item>& items = world_.trace().items();
  key_bars_.resize(views_.size());
  for (std::size_t name = 0; name < views_.size(); ++name) {
    const View& view = views_[name];
    KeyBar& bar = key_bars_[name];
    if (bar.item < items.size() && (!view.present || bar.grant != view.grant)) {
      items[bar.item].until = std::min(items[bar.item].until, world_.now());
      bar.item = SIZE_MAX;
    }
    if (!view.present) continue;
    if (bar.item >= items.size()) {
      bar = {items.size(), view.grant};
      const std::string owner = view.grant == 0 ? " somebody's"
                                                : " #" + std::to_string(view.grant) + " of client " +
                                                      std::to_string(grants_[view.grant].process);
      items.push_back({"server", world_.plan().names[name].substr(0, 12) + owner, world_.now(), world_.now(), true});
    }
    items[bar.item].until = view.expiry_ms == no_expiry ? never : world_.true_time_of_wall((view.expiry_ms + 1) * 1000);
  }
}

void Checkers::check_belief(Process& process, Application::Slot& slot, Instant until) {
  if (process.lied_to) return;
  const Instant now = Instant::from_nanoseconds(world_.local_time(process));
  if (until <= now) return;
  const std::uint32_t number = number_of(slot);
  if (number == 0) {
    world_.fail("ledger", "client " + std::to_string(process.index) + " believes to hold what was never granted");
    return;
  }
  const Grant& grant = grants_[number];
  if (grant.process != process.index || grant.life != process.life) {
    world_.fail("ledger", "client " + std::to_string(process.index) + " believes to hold what is of " + who(number));
    return;
  }
  if (slot.fenced() && slot.fence() != grant.fence)
    world_.fail("fences",
                "client " + std::to_string(process.index) + " was told another fence than the server counted");
  // Two at once?
  for (Process& other : world_.processes()) {
    if (!other.alive || other.application == nullptr || other.lied_to) continue;
    const Instant theirs = Instant::from_nanoseconds(world_.local_time(other));
    for (const Application::Slot& peer : other.application->slots()) {
      if (&peer == &slot || peer.lock() == nullptr || peer.plan->name != slot.plan->name) continue;
      if (!(theirs < other.application->believes(peer))) continue;
      const std::uint32_t second_number = number_of(peer);
      if (second_number == number && &other == &process) continue;  // One hold, two objects of its owner.
      if (grant.broken || (second_number != 0 && grants_[second_number].broken)) {
        ++figures_.overlaps_excused;
        continue;
      }
      world_.fail("exclusion",
                  who(number) + " and " + who(second_number) + " both hold " + world_.plan().names[slot.plan->name]);
    }
  }
  if (grant.broken) return;
  const View& view = views_[slot.plan->name];
  if (!view.present || view.grant != number) {
    world_.fail("validity", "believed to be held, and not there: " + who(number));
    return;
  }
  if (view.expiry_ms == no_expiry) return;
  const SimTime gone = world_.true_time_of_wall((view.expiry_ms + 1) * 1000);
  const SimTime end = until == Instant::max() ? never : world_.true_time(process, until.nanoseconds());
  if (end > gone)
    world_.fail("validity",
                who(number) + " believes until " + time_text(end) + ", the server keeps it until " + time_text(gone));
}

// A hold with a watchdog that has run out or was lost must have been told soon after. Where several objects share a
// hold one of them is told, so this looks at the others.
void Checkers::expect_told(Process& process, Application::Slot& slot, SimTime at) {
  if (!process.plan->watchdog || !slot.plan->kept || slot.reentrant() || slot.own_belief != Instant()) return;
  ++slot.expectation;
  world_.after(at - world_.now() + told_within, [this, index = process.index, life = process.life, chosen = &slot,
                                                 imposed = process.imposed, number = slot.expectation] {
    const Process& later = world_.processes()[index];
    if (!later.alive || later.life != life || later.imposed != imposed || chosen->expectation != number) return;
    if (later.disturbed_until + told_within >= world_.now()) return;
    // Its own thread may have noticed: then it is told when that call returns.
    if (later.application->in_call()) return expect_told(world_.processes()[index], *chosen, world_.now());
    if (chosen->lock() == nullptr || chosen->depth == 0 || chosen->releasing || chosen->told_lost) return;
    if (later.application->believes(*chosen) > Instant::from_nanoseconds(world_.local_time(later))) return;
    world_.fail("loss told", "client " + std::to_string(index) + " was not told that it has lost " +
                                 world_.plan().names[chosen->plan->name]);
  });
}

// What was asked and not granted is not there any more when all compensations were answered. Where the server refuses
// commands for good, or to kill the connection before, its lease ends it.
void Checkers::check_compensated(Process& process, Application::Slot& slot, std::size_t pending) {
  if (slot.unclear.empty() || slot.depth != 0 || process.lied_to) return;
  if (pending != 0) return;
  const std::uint32_t number = find({slot.unclear.bytes().data(), slot.unclear.bytes().size()});
  const View& view = views_[slot.plan->name];
  if (number != 0 && view.present && view.grant == number && !grants_[number].broken)
    world_.fail("compensated", "nobody waits for a compensation, and there is still " + who(number));
  slot.unclear = Token();
}

void Checkers::after_acquire(Process& process, Application::Slot& slot, Status status, SimTime since,
                             std::uint64_t commands) {
  const std::uint32_t number = number_of(slot);
  if (status == Status::ok) ++figures_.held;
  if (status == Status::lock_busy) ++figures_.busy;
  if (status == Status::timed_out || status == Status::transport_closed) ++figures_.unclear;
  // A try every two milliseconds, each of a few commands, and what compensates them.
  const auto most = static_cast<std::uint64_t>((world_.now() - since) / (2 * millisecond)) * 5 + 60;
  if (process.commands - commands > most)
    world_.fail("floor", std::to_string(process.commands - commands) + " commands in " +
                             time_text(world_.now() - since) + " s of waiting");
  if (process.lied_to) return;
  slot.denied = status == Status::lock_busy && slot.depth == 0 ? slot.lock()->token() : Token();
  // Refused for good, or not killed: no promise.
  const auto weight = [this](Fault fault) { return world_.plan().weights[static_cast<std::size_t>(fault)]; };
  if (status != Status::ok && status != Status::lock_busy && slot.depth == 0 && !slot.lock()->token().empty() &&
      (number == 0 || grants_[number].at >= since) && weight(Fault::no_permission) == 0 &&
      weight(Fault::busy_script) == 0)
    slot.unclear = slot.lock()->token();
  if (status == Status::ok && (number == 0 || grants_[number].process != process.index))
    world_.fail("ledger", "client " + std::to_string(process.index) + " was granted what the server did not set");
  if (status == Status::lock_busy && slot.depth == 0 && number != 0 && grants_[number].at >= since)
    world_.fail("ledger", "client " + std::to_string(process.index) + " was told busy and is " + who(number));
}

void Checkers::after_release(Process& process, std::uint32_t number, Status status, bool last) {
  if (status == Status::lock_lost) ++figures_.lost;
  if (process.lied_to || status != Status::ok || !last) return;
  if (number == 0 || !grants_[number].released)
    world_.fail("ledger", "a release said ok, and the server did not delete " + who(number));
}

void Checkers::resource_written(Process& process, const SlotPlan& slot, std::uint32_t number, std::uint64_t fence) {
  if (process.lied_to) return;
  View& view = views_[slot.name];
  if (fence < view.seen_fence) {
    ++figures_.writes_refused;
    return;
  }
  ++figures_.writes;
  // Grants are numbered in their order.
  if (number < view.seen_grant && fence != view.seen_fence && !view.fence_excused)
    world_.fail("resource", who(number) + " wrote behind " + who(view.seen_grant));
  view.seen_fence = fence;
  view.seen_grant = std::max(view.seen_grant, number);
}

void Checkers::process_ended(Process& process) {
  if (!trace_holds() || process.application == nullptr) return;
  for (Application::Slot& slot : process.application->slots())
    if (slot.seen_until != Instant() && slot.item < world_.trace().items().size()) {
      Trace::Item& item = world_.trace().items()[slot.item];
      item.until = std::min(item.until, world_.now());
    }
}

void Checkers::note_quiet(Process&) {}

void Checkers::all_over() {
  // What was left behind has a lease, and nobody renews it any more.
  for (std::size_t name = 0; name < views_.size(); ++name) {
    const Entry* const entry = world_.redis().find(world_.plan().names[name]);
    if (entry == nullptr) continue;
    const std::uint32_t number = views_[name].grant;
    if (entry->expiry_ms == no_expiry)
      world_.fail("nothing left", world_.plan().names[name] + " without a lease");
    else if (number != 0 && grants_[number].at + (world_.plan().lease_max + 400 * second) < world_.now())
      world_.fail("nothing left", "still there: " + who(number));
  }
  for (std::size_t name = 0; name < views_.size(); ++name) {
    const std::string& key = world_.plan().names[name];
    const std::string channel = text_of(DerivedName(channel_prefix, Key(ByteView(key.data(), key.size()))).bytes());
    if (world_.links_alive() == 0 && !world_.redis().subscribers(channel).empty())
      world_.fail("nothing left", "a subscription to " + channel);
  }
}

}  // namespace holdfast::sim

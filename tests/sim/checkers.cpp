// SPDX-License-Identifier: MIT
#include "checkers.hpp"

#include <algorithm>
#include <charconv>

#include "holdfast/core/derived_name.hpp"
#include "holdfast/inspection.hpp"
#include "keeping.hpp"
#include "scripts.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

// A hold that is kept by a watchdog and runs out is told: it wakes then, whatever else it waits for.
constexpr SimTime told_within = 250 * millisecond;

// A waiter that is not told by push polls, and no slower than this; and a fresh one needs its round trips.
constexpr SimTime woken_within = second;
static_assert(woken_within > 2 * retry_delay_max.count());

// So long after the last fault every loss has been noticed, and what was lost made again.
SimTime calm_before(const ClientPlan& plan) noexcept {
  return 2 * (plan.connect_timeout + plan.request_timeout + plan.stall_timeout) + reconnect_delay_max.count() + second;
}

constexpr std::string_view writer_mark = ":write";
constexpr std::string_view own_time_mark = ":rwlock_timeout:1";
constexpr std::string_view mode_field = "mode";

// Of a field of a lock that is a hash.
std::string_view token_of_field(std::string_view field) noexcept {
  if (field.ends_with(writer_mark)) field.remove_suffix(writer_mark.size());
  return field;
}

std::size_t names_of(const ModelRedis::Effect& effect) noexcept {
  std::size_t count = 0;
  (void)std::from_chars(effect.request[2].data(), effect.request[2].data() + effect.request[2].size(), count);
  return count;
}

// No other script has as many words.
bool is_fair_acquire(const ModelRedis::Effect& effect) noexcept {
  return effect.request.size() == 8 && effect.request[2] == "1";
}
// Of a lock that is a hash: by the client of somebody else.
bool is_gift(const ModelRedis::Effect& effect) noexcept {
  return effect.kind == ModelRedis::EffectKind::field_set && (is_fair_acquire(effect) || effect.request.size() == 5) &&
         effect.request[4] != effect.member;
}

// By its script or its number: nobody else takes several names at once.
bool is_multi_acquire(const ModelRedis::Effect& effect) noexcept {
  if (effect.request.size() < 4 || effect.request.size() != 5 + names_of(effect)) return false;
  const Script& script = scripts::multi_acquire;
  return effect.request[1] == script.sha.bytes().string_view() || effect.request[1] == script.text.string_view();
}

// As the scripts say it.
constexpr std::int64_t offer_ms = 3000;
constexpr SimTime patience = 3 * second;

std::string text_of(ByteView bytes) { return {bytes.data(), bytes.size()}; }
std::string_view text_of(const Token& token) noexcept { return {token.bytes().data(), token.bytes().size()}; }

}  // namespace

Checkers::Checkers(World& world)
    : world_(world),
      one_place_(world.plan().one_place()),
      grants_(1),
      numbers_(world.nodes().size()),
      views_(world.nodes().size() * world.plan().names.size()),
      quorums_(world.plan().names.size()) {
  for (std::size_t index = 0; index < world.plan().names.size(); ++index) {
    const std::string& name = world.plan().names[index];
    const Key key(ByteView(name.data(), name.size()));
    const std::string resource = "resource" + std::to_string(names_.size());
    const Key resource_key(ByteView(resource.data(), resource.size()));
    names_.push_back(
        {name, text_of(DerivedName(fence_prefix, key).bytes()), text_of(DerivedName(channel_prefix, key).bytes()),
         resource, text_of(DerivedName(seen_fence_prefix, resource_key).bytes()),
         text_of(DerivedName(read_write_channel_prefix, key).bytes()),
         (name.find('{') == std::string::npos ? "{" + name + "}" : name) + ":", taken_permits_of(name),
         text_of(DerivedName(semaphore_channel_prefix, key).bytes()), world.plan().database_of(index), queue_of(name)});
    if (world.plan().of_semaphore(index)) {
      keys_[names_[index].lock].push_back({index, Role::permits});
      keys_[names_[index].taken].push_back({index, Role::taken});
      keys_[names_[index].semaphore_channel].push_back({index, Role::semaphore_channel});
      continue;
    }
    keys_[names_[index].lock].push_back({index, Role::lock});
    keys_[names_[index].counter].push_back({index, Role::counter});
    keys_[names_[index].channel].push_back({index, Role::channel});
    keys_[names_[index].read_write_channel].push_back({index, Role::read_write_channel});
    keys_[names_[index].resource].push_back({index, Role::resource});
    if (world.plan().fair) keys_[names_[index].queue].push_back({index, Role::queue});
  }
  for (Node& node : world.nodes())
    node.redis.observe([this, &node](const ModelRedis::Effect& effect) {
      if (effect.request.empty() || effect.request.back() != "SPUBLISH") return observe(node, effect);
      // A client of a cluster tells each script by which command it is to announce.
      ModelRedis::Effect told = effect;
      told.request = effect.request.first(effect.request.size() - 1);
      observe(node, told);
    });
}

Checkers::View& Checkers::view(const Node& node, std::size_t name) { return views_[domain_of(node.index, name)]; }
const Checkers::View& Checkers::view(const Node& node, std::size_t name) const {
  return views_[domain_of(node.index, name)];
}

const Entry* Checkers::find_key(std::size_t node, std::string_view key, int database) const {
  if (!one_place_) return world_.node(node).redis.find(key, database);
  for (const Node& each : world_.nodes())
    if (const Entry* const entry = each.redis.find(key, database); entry != nullptr) return entry;
  return nullptr;
}

std::uint32_t Checkers::find(std::size_t node, std::size_t name, std::string_view token) const {
  const auto& numbers = numbers_[place_of(node)];
  const auto found = numbers.find(token);
  if (found == numbers.end()) return 0;
  const std::uint32_t first = found->second;
  if (grants_[first].together == 0) return first;
  for (std::uint32_t number = first; number < grants_.size() && grants_[number].together == first; ++number)
    if (grants_[number].name == name) return number;
  return 0;
}

// By one request, which set nothing else.
std::vector<std::uint32_t> Checkers::together_with(std::uint32_t number) const {
  const std::uint32_t first = grants_[number].together;
  if (first == 0) return {number};
  std::vector<std::uint32_t> all;
  for (std::uint32_t next = first; next < grants_.size() && grants_[next].together == first; ++next)
    all.push_back(next);
  return all;
}

std::string Checkers::who(std::uint32_t number) const {
  if (number == 0) return "nobody of ours";
  const Grant& grant = grants_[number];
  return "client " + std::to_string(grant.process) + "." + std::to_string(grant.life) + " by " + grant.token;
}

// ---- Several holders ---------------------------------------------------------------------------------------------

bool Checkers::View::has(std::uint32_t number) const noexcept {
  return grant == number || std::find(others.begin(), others.end(), number) != others.end();
}

void Checkers::View::add(std::uint32_t number) {
  if (grant == 0)
    grant = number;
  else if (!has(number))
    others.push_back(number);
}

void Checkers::View::remove(std::uint32_t number) {
  std::erase(others, number);
  if (grant != number) return;
  grant = others.empty() ? 0 : others.back();
  if (!others.empty()) others.pop_back();
}

std::vector<std::uint32_t> Checkers::View::all() const {
  std::vector<std::uint32_t> numbers = others;
  if (grant != 0) numbers.push_back(grant);
  return numbers;
}

// ---- What the server does ----------------------------------------------------------------------------------------

void Checkers::observe(Node& node, const ModelRedis::Effect& effect) {
  const auto found = keys_.find(effect.key);
  if (found == keys_.end()) {
    if (effect.key.ends_with(own_time_mark)) observe_own_time(node, effect);
    return;
  }
  for (const auto& [name, role] : found->second) {
    if (names_[name].database != effect.database) continue;
    View& touched = view(node, name);
    switch (role) {
      case Role::lock:
        if (!touched.touched) touched_.push_back(name);
        touched.touched = true;
        observe_lock(node, name, effect);
        break;
      case Role::permits:
      case Role::taken:
        if (!touched.touched) touched_.push_back(name);
        touched.touched = true;
        observe_semaphore(node, name, role, effect);
        break;
      case Role::channel:
      case Role::read_write_channel:
      case Role::semaphore_channel:
        if (effect.kind != ModelRedis::EffectKind::published) break;
        expect_woken(domain_of(node.index, name), role);
        published_.push_back({name, role});
        break;
      case Role::counter:
        if (effect.kind != ModelRedis::EffectKind::set) break;
        counted_.push_back(name);
        (void)std::from_chars(effect.value.data(), effect.value.data() + effect.value.size(), touched.counter);
        // Who was given the lock confirms it, and is told its fence.
        if (touched.present && is_fair_acquire(effect) && effect.request[4] == grants_[touched.grant].token)
          grants_[touched.grant].fence = touched.counter;
        break;
      case Role::queue:
        if (!touched.touched) touched_.push_back(name);
        touched.touched = true;
        observe_queue(node, name, effect);
        break;
      case Role::resource:
        if (effect.kind == ModelRedis::EffectKind::set) observe_resource(touched, effect);
        break;
    }
  }
}

void Checkers::observe_lock(Node& node, std::size_t name, const ModelRedis::Effect& effect) {
  using Kind = ModelRedis::EffectKind;
  View& view = this->view(node, name);
  if (effect.kind == Kind::expired) {
    const std::uint32_t gone = view.grant;
    for (const std::uint32_t number : view.all())
      if (!of_quorum(name) && !grants_[number].broken && believed(number))
        world_.fail("validity", "the key of " + who(number) + " expired while it was believed to be held");
    view = {.last_fence = view.last_fence,
            .fence_excused = view.fence_excused,
            .elsewhere = view.elsewhere,
            .beside = view.beside,
            .robbed_at = view.robbed_at,
            .others = {},
            .waiters = std::move(view.waiters)};
    grants_[gone].expired_at = world_.now();
    check_majority(gone, "expired");
    return;
  }
  if (from_ == nullptr) return;  // Somebody else's: data_changed() looks at it when that is done.
  switch (effect.kind) {
    case Kind::set:
      if (view.present) {
        const std::uint32_t same = find(node.index, name, effect.value);
        if (same != 0 && same == view.grant)
          world_.fail("fresh tokens", "set again: " + who(same));
        else
          world_.fail("ownership", "the lock of " + who(view.grant) + " was overwritten");
      }
      note_grant(node, name, effect.value, effect);
      return;
    case Kind::field_set: observe_field(node, name, effect); return;
    case Kind::deleted: observe_deleted(node, name); return;
    case Kind::field_deleted: {
      const std::uint32_t number = find(node.index, name, token_of_field(effect.member));
      if (number == 0)
        world_.fail("ownership", "a foreign field was deleted");
      else
        note_deleted(number);
      view.leaving = true;
      const bool held = view.has(number);
      view.remove(number);
      if (held && view.grant == 0) {
        view.emptied = true;
        check_majority(number, "was deleted");
      }
      return;
    }
    case Kind::expiry_changed: observe_expiry(node, name, effect); return;
    case Kind::expired:
    case Kind::evicted:
    case Kind::flushed:
    case Kind::list_changed:
    case Kind::sorted_set_changed:
    case Kind::published: return;
  }
}

void Checkers::observe_field(Node& node, std::size_t name, const ModelRedis::Effect& effect) {
  View& view = this->view(node, name);
  if (effect.member == mode_field) {
    // A writer that leaves its own read behind, or who is about to be let in.
    if (view.present && effect.value != "read")
      world_.fail("ownership", "the lock of " + who(view.grant) + " was taken");
    view.mode = effect.value == "read" ? Mode::read : Mode::write;
    return;
  }
  const std::string_view token = token_of_field(effect.member);
  const bool writes = token.size() != effect.member.size();
  const std::uint32_t number = find(node.index, name, token);
  if (number == 0 && view.present && !may_join(view, writes)) {
    world_.fail("ownership", "a field was added to the lock of " + who(view.grant));
  } else if (number == 0 || !view.present) {
    note_grant(node, name, token, effect);
    Grant& grant = grants_[find(node.index, name, token)];
    grant.writes = writes;
    if (view.mode != Mode::read && !(view.mode == Mode::write && !writes)) return;
    const Entry* const own = node.redis.find(own_time_key(name, token), names_[name].database);
    if (own == nullptr)
      world_.fail("validity", "let in without a time of its own: " + grant.token);
    else
      grant.own_expiry_ms = own->expiry_ms;
    view.joining = false;
  } else {
    ++figures_.steps;
    if (grants_[number].deleted) world_.fail("no resurrection", "a count was set for " + who(number));
    check_owner(number, "counts");
  }
}

// Where readers are, or beside the own write.
bool Checkers::may_join(const View& view, bool writes) const {
  if (writes || view.mode == Mode::none) return false;
  if (view.mode == Mode::read) return true;
  const std::vector<std::uint32_t> holders = view.all();
  return std::any_of(holders.begin(), holders.end(),
                     [this](std::uint32_t number) { return grants_[number].writes && is_from(number); });
}

void Checkers::observe_expiry(const Node& node, std::size_t name, const ModelRedis::Effect& effect) {
  View& view = this->view(node, name);
  if (effect.expiry_ms == no_expiry) world_.fail("lease", "a lease was taken away");
  if (view.present && view.grant != 0 && grants_[view.grant].given && !is_from(view.grant) &&
      effect.expiry_ms > world_.wall(node) / 1000 + offer_ms + 1)
    world_.fail("queue", "given for longer than it takes to confirm it: " + who(view.grant));
  if (view.present && view.expiry_ms != no_expiry) {
    ++figures_.renewals;
    if (effect.expiry_ms < view.expiry_ms) world_.fail("never shortened", "the lease of " + who(view.grant));
    const std::vector<std::uint32_t> holders = view.all();
    if (view.mode != Mode::none)
      view.joining =
          std::none_of(holders.begin(), holders.end(), [this](std::uint32_t number) { return is_from(number); });
    else if (view.grant != 0)
      check_owner(view.grant, "renews");
    else
      world_.fail("ownership", "a foreign key was renewed");
    for (const std::uint32_t number : holders) grants_[number].kept_at = world_.now();
    check_lease(node, name, effect.expiry_ms);
  }
  view.expiry_ms = effect.expiry_ms;
}

void Checkers::observe_deleted(const Node& node, std::size_t name) {
  View& view = this->view(node, name);
  const std::uint32_t gone = view.present ? view.grant : 0;
  if (view.present && view.mode != Mode::none) {
    // By the last of them: who is left has no time of its own any more.
    if (!view.leaving) world_.fail("ownership", "deleted by one that does not hold it: the lock of " + who(view.grant));
    for (const std::uint32_t number : view.all()) {
      Grant& grant = grants_[number];
      const bool believes = !grant.broken && believed(number);
      if (believes || find_key(node.index, own_time_key(name, grant.token), names_[name].database) != nullptr)
        world_.fail("ownership", "deleted while it is held by " + who(number));
      grant.deleted = true;
    }
  } else if (gone != 0) {
    note_deleted(gone);
  }
  if (view.present && view.grant == 0 && !view.emptied) world_.fail("ownership", "a foreign key was deleted");
  view.present = false;
  view.emptied = false;
  view.grant = 0;
  view.mode = Mode::none;
  view.others.clear();
  view.expiry_ms = no_expiry;
  check_majority(gone, "was deleted");
}

std::string Checkers::own_time_key(std::size_t name, std::string_view token) const {
  return names_[name].own_time_prefix + std::string(token) + std::string(own_time_mark);
}

// Set for a hold that is not there yet, or changed by its own process.
void Checkers::observe_own_time(const Node& node, const ModelRedis::Effect& effect) {
  using Kind = ModelRedis::EffectKind;
  std::string_view token = effect.key.substr(0, effect.key.size() - own_time_mark.size());
  const auto of_name = [&](const Names& names) {
    return names.database == effect.database && token.starts_with(names.own_time_prefix);
  };
  const auto found = std::find_if(names_.begin(), names_.end(), of_name);
  if (found == names_.end()) return;
  token.remove_prefix(found->own_time_prefix.size());
  const auto name = static_cast<std::size_t>(found - names_.begin());
  const std::uint32_t number = find(node.index, name, token);
  Grant& grant = grants_[number];
  if (effect.kind == Kind::expired) {
    if (number != 0 && !grant.broken && believed(number))
      world_.fail("validity", "the own time of " + who(number) + " expired while it was believed to be held");
    return;
  }
  if (from_ == nullptr) return;
  if (number != 0) check_owner(number, "changes the own time of");
  switch (effect.kind) {
    case Kind::set:
    case Kind::expiry_changed:
      own_times_.push_back({std::string(effect.key), effect.database});
      if (number == 0) return;
      if (grant.deleted) world_.fail("no resurrection", "the own time was set of " + who(number));
      // A clock that was put back counts on from where it is.
      if (effect.expiry_ms < grant.own_expiry_ms && grant.own_expiry_ms != no_expiry &&
          !world_.plan().enabled(Fault::clock_back))
        world_.fail("never shortened", "the own time of " + who(number));
      grant.own_expiry_ms = effect.expiry_ms;
      return;
    case Kind::deleted:
      if (number == 0) world_.fail("ownership", "a foreign reader's own time was deleted");
      return;
    default: return;
  }
}

// ---- Queues ------------------------------------------------------------------------------------------------------

Checkers::Waiter* Checkers::find_waiter(View& view, std::string_view token) const {
  const auto found = std::find_if(view.waiters.begin(), view.waiters.end(),
                                  [token](const Waiter& waiter) { return waiter.token == token; });
  return found == view.waiters.end() ? nullptr : &*found;
}

bool Checkers::lives(const Node& node, std::size_t name, const Waiter& waiter) const {
  return find_key(node.index, beat_of(names_[name].lock, waiter.token), names_[name].database) != nullptr;
}

void Checkers::observe_queue(Node& node, std::size_t name, const ModelRedis::Effect& effect) {
  View& view = this->view(node, name);
  if (effect.kind == ModelRedis::EffectKind::expired) return read_queue(node, name);
  if (from_ == nullptr || effect.kind != ModelRedis::EffectKind::sorted_set_changed) return;
  Waiter* waiter = find_waiter(view, effect.member);
  if (effect.value.empty()) {
    if (waiter == nullptr) return;
    waiter->stands = false;
    waiter->popped = effect.command == "zpopmin";
    return;
  }
  if (effect.request.size() < 5 || effect.request[4] != effect.member)
    world_.fail("queue", "somebody else was put there: " + std::string(effect.member));
  if (waiter == nullptr) waiter = &view.waiters.emplace_back();
  queued_.insert_or_assign(std::string(effect.member), Life{from_->process, from_->life});
  if (waiter->has_left && takes_back()) world_.fail("queue", "it had left, and stands there again: " + waiter->token);
  if (waiter->stands && !world_.plan().enabled(Fault::clock_back))
    world_.fail("queue", "it has lost its place: " + waiter->token);
  const std::uint32_t before = find(node.index, name, effect.member);
  *waiter = {.token = std::string(effect.member),
             .process = from_->process,
             .life = from_->life,
             .since = world_.wall(node),
             .at = world_.now(),
             .stands = true,
             .has_left = waiter->has_left,
             .late = before != 0 && grants_[before].deleted};
}

// Somebody else has written, or data were lost.
void Checkers::read_queue(const Node& node, std::size_t name) {
  View& view = this->view(node, name);
  const Entry* const entry = node.redis.find(names_[name].queue, names_[name].database);
  const auto* const set = entry == nullptr ? nullptr : std::get_if<SortedSetValue>(&entry->value);
  for (Waiter& waiter : view.waiters) {
    const SortedSetValue::Member* const member = set == nullptr ? nullptr : set->find(waiter.token);
    waiter.stands = member != nullptr;
    waiter.popped = false;
    if (member != nullptr) waiter.since = static_cast<WallMicros>(member->score);
  }
  if (set == nullptr) return;
  // A replica that lagged brings some back.
  for (const SortedSetValue::Member& member : set->members) {
    const auto known = queued_.find(member.name);
    if (known == queued_.end() || find_waiter(view, member.name) != nullptr) continue;
    view.waiters.push_back({.token = member.name,
                            .process = known->second.process,
                            .life = known->second.life,
                            .since = static_cast<WallMicros>(member.score),
                            .at = world_.now(),
                            .stands = true});
  }
}

// The one who takes the lock, or is given it. Whoever lives by the server's clock has its place and keeps its order, whatever
// became of its client.
void Checkers::check_turn(const Node& node, std::size_t name, std::string_view token) {
  View& view = this->view(node, name);
  const Waiter* const taker = find_waiter(view, token);
  const bool queued = taker != nullptr && (taker->stands || taker->popped);
  if (world_.plan().enabled(Fault::no_permission)) return;
  if (taker != nullptr && taker->has_left && takes_back())
    world_.fail("queue", "the lock is of one who has left: " + taker->token);
  // Who was put behind itself has come when the clock says so.
  if (world_.plan().enabled(Fault::clock_back) || world_.plan().enabled(Fault::clock_forward)) return;
  for (const Waiter& other : view.waiters)
    if (&other != taker && (other.stands || other.popped) && lives(node, name, other) &&
        (!queued || other.since < taker->since))
      world_.fail("queue", std::string(token) + " has the lock before its turn, which was that of " + other.token);
}

// Of what a request has taken out of the queue.
void Checkers::check_popped(const Node& node, std::size_t name) {
  View& view = this->view(node, name);
  for (Waiter& waiter : view.waiters) {
    if (!waiter.popped) continue;
    waiter.popped = false;
    const bool granted = view.present && view.grant != 0 && grants_[view.grant].token == waiter.token;
    if (granted) continue;
    if (!lives(node, name, waiter))
      check_taken_for_dead(node, waiter);
    else if (!world_.plan().enabled(Fault::no_permission) && !world_.plan().enabled(Fault::foreign_fence))
      world_.fail("queue", "it lives, and was passed over: " + waiter.token);
  }
  // Nothing of a leaver is on its way for so long.
  std::erase_if(view.waiters, [this](const Waiter& waiter) {
    return !waiter.stands && (!waiter.has_left || waiter.at + 300 * second < world_.now());
  });
}

// Judged where all was well for long enough that it must have been heard of.
void Checkers::check_taken_for_dead(const Node& node, const Waiter& waiter) {
  Process& process = world_.processes()[waiter.process];
  if (!process.alive || process.life != waiter.life || process.application == nullptr || process.lied_to) return;
  const Plan& plan = world_.plan();
  // Who is refused behind the queue, or by a fence that is no number, is told so.
  if (plan.enabled(Fault::no_permission) || plan.enabled(Fault::foreign_fence)) return;
  if (plan.enabled(Fault::clock_forward) || plan.enabled(Fault::clock_back)) return;
  const SimTime calm = calm_before(*process.plan) + patience;
  for (const SimTime last : {world_.disturbed_until(), process.disturbed_until, process.links_changed_at})
    if (last + calm > world_.now()) return;
  for (const std::size_t index : world_.open_links()) {
    const Link& link = world_.link(index);
    if (link.process == process.index && !link.sound(world_.now())) return;
  }
  for (const Application::Slot& slot : process.application->slots())
    if (slot.waiting && slot.queues() && place_of(slot.node) == place_of(node.index) && slot.exists() &&
        text_of(slot.token()) == waiter.token)
      world_.fail("queue", "it waits, and was taken for dead: " + waiter.token);
}

// Who waits and was given the lock asks soon.
void Checkers::expect_confirmed(std::size_t domain, const Waiter& waiter) {
  Process& process = world_.processes()[waiter.process];
  if (!process.alive || process.life != waiter.life || process.application == nullptr) return;
  for (Application::Slot& slot : process.application->slots())
    if (slot.waiting && slot.queues() && slot.domain == domain && slot.exists() &&
        text_of(slot.token()) == waiter.token)
      expect_asking(process, slot);
}

// What it has told the server to take out is not there any more when all compensations were answered.
void Checkers::check_left(const Process& process, const Application::Slot& slot) {
  if (!takes_back()) return;
  View& view = views_[slot.domain];
  Waiter* const waiter = find_waiter(view, text_of(slot.unclear));
  if (waiter == nullptr || waiter->process != process.index || waiter->life != process.life) return;
  // A server that is moving the slot may end the script before it has taken the waiter out: its beat ends by itself then.
  const bool moves = world_.plan().enabled(Fault::slot_move) || world_.plan().enabled(Fault::move_called_off);
  waiter->has_left = !may_bring_back() && !moves;
  const std::string beat = beat_of(names_[slot.name].lock, waiter->token);
  if (waiter->stands && waiter->has_left && find_key(slot.node, beat, names_[slot.name].database) != nullptr)
    world_.fail("queue", "it has left, and stands there still: " + waiter->token);
}

// ---- Permits -----------------------------------------------------------------------------------------------------

// Nobody of ours gives either of its keys a TTL, or deletes one of them.
void Checkers::observe_semaphore(Node& node, std::size_t name, Role role, const ModelRedis::Effect& effect) {
  using Kind = ModelRedis::EffectKind;
  View& view = this->view(node, name);
  if (effect.kind == Kind::expired) {  // By somebody else's hand, whenever that was.
    break_name(node, name);
    return read_permits(node, name);
  }
  if (from_ == nullptr) return;  // Somebody else's: data_changed() looks at it when that is done.
  if (effect.kind == Kind::sorted_set_changed && role == Role::taken)
    return effect.value.empty() ? observe_permit_gone(node, name, effect) : observe_permit_taken(node, name, effect);
  // The last permit takes its key with it.
  const bool emptied = effect.kind == Kind::deleted && role == Role::taken && !view.present;
  if (!emptied && (effect.kind != Kind::set || role != Role::permits))
    world_.fail("permits", "not set, taken or given back, but changed: " + std::string(effect.key));
}

void Checkers::observe_permit_taken(Node& node, std::size_t name, const ModelRedis::Effect& effect) {
  View& view = this->view(node, name);
  std::int64_t end_ms = 0;
  (void)std::from_chars(effect.value.data(), effect.value.data() + effect.value.size(), end_ms);
  std::uint32_t number = find(node.index, name, effect.member);
  if (number == 0) {
    if (!view.foreign && view.all().size() >= world_.plan().permits_of(name))
      world_.fail("permits", "one more was taken than there are of " + names_[name].lock);
    note_grant(node, name, effect.member, effect);
    number = find(node.index, name, effect.member);
  } else {
    // A release that may not count puts back what it has taken.
    if (!view.has(number) && !view.foreign && !world_.plan().enabled(Fault::no_permission))
      world_.fail("no resurrection", "a permit was taken again: " + who(number));
    if (view.has(number)) ++figures_.renewals;
    check_owner(number, "renews");
    if (end_ms < grants_[number].own_expiry_ms) world_.fail("never shortened", "the permit of " + who(number));
    grants_[number].deleted = grants_[number].released = false;
  }
  view.present = true;
  view.add(number);
  grants_[number].own_expiry_ms = end_ms;
  grants_[number].kept_at = world_.now();
}

// By its holder, or because its time was over when somebody else asked for one.
void Checkers::observe_permit_gone(const Node& node, std::size_t name, const ModelRedis::Effect& effect) {
  View& view = this->view(node, name);
  const std::uint32_t number = find(node.index, name, effect.member);
  const bool own = effect.request.size() > 4 && effect.request[4] == effect.member;
  if (number == 0) {
    world_.fail("ownership", "a foreign permit was taken back");
  } else if (own) {
    note_deleted(number);
  } else {
    if (world_.wall(node) < (expiry_of(name, view, number) + 1) * 1000)
      world_.fail("ownership", "taken back before its time: " + who(number));
    if (!grants_[number].broken && believed(number))
      world_.fail("validity", "taken back while it was believed to be held: " + who(number));
    grants_[number].deleted = true;
  }
  view.remove(number);
  view.present = view.grant != 0;
}

// Of a semaphore that nobody has set there is nothing to say.
bool Checkers::permits_add_up(const Node& node, std::size_t name) const {
  const Entry* const permits = find_key(node.index, names_[name].lock, names_[name].database);
  const Entry* const taken = find_key(node.index, names_[name].taken, names_[name].database);
  std::int64_t count = 0;
  if (taken != nullptr) {
    const auto* const set = std::get_if<SortedSetValue>(&taken->value);
    if (set == nullptr || taken->expiry_ms != no_expiry) return false;
    for (const SortedSetValue::Member& member : set->members)
      if (find(node.index, name, member.name) == 0) return false;
    count = static_cast<std::int64_t>(set->members.size());
  }
  if (permits == nullptr) return true;
  const auto* const text = std::get_if<StringValue>(&permits->value);
  if (text == nullptr || permits->expiry_ms != no_expiry) return false;
  std::int64_t free = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), free);
  return error == std::errc() && end == text->data() + text->size() &&
         free + count == std::int64_t{world_.plan().permits_of(name)};
}

// The last millisecond in which the server surely keeps it. A permit's end is an instant of a clock that is rounded up: whoever
// asks less than one before may take it back. A key is gone when its has passed.
std::int64_t Checkers::expiry_of(std::size_t name, const View& view, std::uint32_t number) const {
  return world_.plan().of_semaphore(name) ? grants_[number].own_expiry_ms - 2 : view.expiry_ms;
}

// Of the client whose bytes are being received.
bool Checkers::is_from(std::uint32_t number) const {
  return grants_[number].process == from_->process && grants_[number].life == from_->life;
}

void Checkers::check_lease(const Node& node, std::size_t name, std::int64_t expiry_ms) {
  if (!of_quorum(name) || from_->max_lease == Duration::zero() || expiry_ms == no_expiry) return;
  if (expiry_ms - world_.wall(node) / 1000 > from_->max_lease / std::chrono::milliseconds(1) + 1)
    world_.fail("max lease",
                "client " + std::to_string(from_->process) + " asks for a longer lease than its quorum has");
}

void Checkers::check_owner(std::uint32_t number, std::string_view what) {
  if (!is_from(number))
    world_.fail("ownership",
                "client " + std::to_string(from_->process) + " " + std::string(what) + " what is of " + who(number));
}

void Checkers::note_grant(Node& node, std::size_t name, std::string_view token, const ModelRedis::Effect& effect) {
  View& view = this->view(node, name);
  const bool gift = is_gift(effect);
  const bool queued = gift || is_fair_acquire(effect);
  Waiter* const waiter = queued ? find_waiter(view, token) : nullptr;
  if (queued) check_turn(node, name, token);
  std::uint32_t again = 0;
  bool mended = false;
  const bool several = is_multi_acquire(effect);
  auto& numbers = numbers_[place_of(node.index)];
  const auto known = numbers.find(token);
  std::uint32_t before = known == numbers.end() ? 0 : known->second;
  // One token for all names of a lock, which one request takes.
  const bool together = several && before != 0 && before == together_ && find(node.index, name, token) == 0;
  if (together) before = 0;
  if (before != 0 && of_quorum(name)) {
    check_owner(before, "takes");
    mended = grants_[before].broken || grants_[before].mended;
    ++figures_.repairs;
  } else if (before != 0 && queued && grants_[before].given && !grants_[before].told && !grants_[before].released) {
    // It did not confirm in time, and stood in the queue again.
  } else if (before != 0 && queued && !gift && !grants_[before].told) {
    // Its release has overtaken its last beat over another connection, and follows that on its own, too: see check_compensated().
  } else if (before != 0 && gift && waiter != nullptr && waiter->late) {
    // The same, and somebody gave the lock to it before its beat was over.
  } else if (before != 0 && gift && may_bring_back()) {
    again = before;  // A replica that lagged has brought its place back.
  } else if (before != 0) {
    // An unasked reply shifts the answers: a NOSCRIPT that is another's then makes a SET go out once more.
    if (!world_.processes()[from_->process].lied_to)
      world_.fail(grants_[before].deleted ? "no resurrection" : "fresh tokens", "set again: " + who(before));
    return;
  }
  for (const Application::Slot& slot : world_.processes()[from_->process].slots())
    if (!slot.of_quorum && place_of(slot.node) == place_of(node.index) && !slot.denied.empty() &&
        slot.denied.bytes() == ByteView(token.data(), token.size()))
      world_.fail("ledger", "client " + std::to_string(from_->process) + " was told busy by a reply to something else");
  const auto number = static_cast<std::uint32_t>(grants_.size());
  Grant grant;
  grant.token = token;
  grant.process = gift && waiter != nullptr ? waiter->process : from_->process;
  grant.life = gift && waiter != nullptr ? waiter->life : from_->life;
  grant.name = name;
  grant.at = world_.now();
  grant.kept_at = grant.at;
  grant.given = gift;
  grant.mended = mended;
  grant.broken = again != 0 && grants_[again].broken;
  // What was taken back on another server, which had the name meanwhile, is run behind that where its own server has it again.
  if (one_place_ && from_->client_closed) grant.broken = true;
  if (again != 0) grant.fence = grants_[again].fence;
  if (gift && waiter == nullptr) {
    world_.fail("queue", "the lock was given to one who did not stand in the queue: " + grant.token);
  } else if (gift) {
    expect_confirmed(domain_of(node.index, name), *waiter);
  }
  const bool fenced = effect.request.size() > 2 && !several &&
                      (effect.request[2] == "2" || (is_fair_acquire(effect) && !gift && effect.request[7] == "1"));
  if (fenced) {
    grant.fence = view.counter;
    // What a quorum has written down may be far ahead of this node's clock.
    if (view.counter <= view.last_fence && !view.fence_excused && !of_quorum(name))
      world_.fail("fences", "the fence of " + std::string(token) + " is " + std::to_string(view.counter) + " behind " +
                                std::to_string(view.last_fence));
    view.last_fence = view.counter;
  }
  view.counter = 0;
  if (waiter != nullptr) waiter->stands = waiter->popped = false;
  if (several && !together) {
    check_together();
    together_ = number;
  }
  if (several) grant.together = together_;
  grants_.push_back(grant);
  if (!together) numbers.insert_or_assign(std::string(token), number);
  if (several) names_asked_ = names_of(effect);
  ++figures_.grants;
  if (world_.plan().of_semaphore(name)) return;
  if (view.present && view.mode != Mode::none) return view.add(number);
  view.present = true;
  view.foreign = false;
  view.grant = number;
  view.expiry_ms = effect.expiry_ms;
  check_lease(node, name, effect.expiry_ms);
}

// All names of a MultiLock are taken, or none.
void Checkers::check_together() {
  if (names_asked_ != 0 && together_with(together_).size() != names_asked_ &&
      !world_.processes()[grants_[together_].process].lied_to)
    world_.fail("ledger", "not all of its names are of " + who(together_));
  together_ = 0;
  names_asked_ = 0;
}

void Checkers::note_deleted(std::uint32_t number) {
  Grant& grant = grants_[number];
  check_owner(number, "deletes");
  if (!of_quorum(grant.name) && !grant.broken && believed(number))
    world_.fail("ownership", "deleted under its holder: " + who(number));
  grant.deleted = true;
  grant.released = true;
  ++figures_.releases;
}

void Checkers::after_receive(Node& node, std::size_t commands) {
  figures_.commands += commands;
  from_ = nullptr;
  for (const auto& [name, role] : published_) expect_woken_of_several(node, name, role);
  published_.clear();
  for (const std::size_t name : counted_) {
    View& view = this->view(node, name);
    // Of one who was given the lock.
    if (view.counter != 0 && view.present && grants_[view.grant].given && grants_[view.grant].fence == view.counter) {
      // A script that may not go on has counted, and told nobody.
      const bool may_be_refused = !node.redis.faults().forbidden_commands.empty();
      if (view.counter <= view.last_fence && !view.fence_excused && !may_be_refused)
        world_.fail("fences", "the fence of " + who(view.grant) + " is " + std::to_string(view.counter) + " behind " +
                                  std::to_string(view.last_fence));
      view.last_fence = may_be_refused ? std::max(view.last_fence, view.counter) : view.counter;
    }
    view.counter = 0;
  }
  counted_.clear();
  for (const std::size_t name : touched_) {
    View& view = this->view(node, name);
    if (!view.touched) continue;
    view.touched = false;
    if (world_.plan().of_semaphore(name)) {
      const bool right = permits_add_up(node, name);
      if (!right && !view.foreign) world_.fail("permits", "so many are not free as nobody has of " + names_[name].lock);
      note_permits(view, right);
      continue;
    }
    if (world_.plan().fair) check_popped(node, name);
    if (view.present && view.emptied) view.foreign = true;  // What is left are fields of others.
    view.emptied = false;
    view.leaving = false;
    // A server that refuses may do so in the middle of a script, as one does whose slot is being moved.
    if (view.joining && !world_.plan().enabled(Fault::out_of_memory) && !world_.plan().enabled(Fault::no_permission) &&
        !world_.plan().enabled(Fault::slot_move) && !world_.plan().enabled(Fault::move_called_off))
      world_.fail("ownership", "extended by one that does not hold it: the lock of " + who(view.grant));
    view.joining = false;
    const Entry* const entry = node.redis.find(names_[name].lock, names_[name].database);
    if (entry != nullptr && entry->expiry_ms == no_expiry && !view.foreign)
      world_.fail("lease", "a lock key without one: " + names_[name].lock);
    if (entry != nullptr && view.present) view.expiry_ms = entry->expiry_ms;
  }
  touched_.clear();
  check_together();
  for (const OwnTime& own : own_times_)
    if (const Entry* const entry = node.redis.find(own.key, own.database);
        entry != nullptr && entry->expiry_ms == no_expiry)
      world_.fail("lease", "a reader's own time without one: " + own.key);
  own_times_.clear();
  if (trace_holds()) note_keys(node);
}

void Checkers::break_all(const Node& node) {
  for (std::size_t name = 0; name < names_.size(); ++name) break_name(node, name);
}

void Checkers::break_name(const Node& node, std::size_t name) {
  for (const std::uint32_t number : view(node, name).all()) break_grant(number);
  view(node, name).robbed_at = world_.now();
  quorums_[name].fence_excused = true;
}

void Checkers::break_names(const Node& before, const std::function<bool(std::size_t name)>& which) {
  for (std::size_t name = 0; name < names_.size(); ++name)
    if (which(name)) break_name(before, name);
}

void Checkers::read_names(Node& after, const std::function<bool(std::size_t name)>& which) {
  for (std::size_t name = 0; name < names_.size(); ++name)
    if (which(name)) read(after, name);
  if (trace_holds()) note_keys(after);
}

void Checkers::note_emptied_master() noexcept { master_emptied_at_ = world_.now(); }

bool Checkers::takes_back() const noexcept {
  return !world_.plan().enabled(Fault::no_permission) && !world_.plan().enabled(Fault::busy_script) &&
         !world_.plan().enabled(Fault::master_down);
}

bool Checkers::may_bring_back() const noexcept {
  return world_.plan().enabled(Fault::stale_failover) || world_.plan().enabled(Fault::losing_change);
}

void Checkers::lose_data(const Node& node) {
  if (!world_.plan().restart_guard) return break_all(node);
  const auto [least, most] =
      std::minmax_element(world_.nodes().begin(), world_.nodes().end(),
                          [](const Node& left, const Node& right) { return left.wall_offset < right.wall_offset; });
  const bool close = (most->wall_offset - least->wall_offset) * microsecond < world_.plan().lease_max * 9 / 10;
  for (std::size_t name = 0; name < names_.size(); ++name) {
    for (const std::uint32_t number : view(node, name).all()) break_grant(number);
    if (!close) quorums_[name].fence_excused = true;
  }
}

void Checkers::data_changed(Node& node) {
  if (one_place_) return;  // Somebody else's hand is not in these worlds, and most nodes have nothing of a name.
  for (std::size_t name = 0; name < names_.size(); ++name) read(node, name);
  if (trace_holds()) note_keys(node);
}

void Checkers::read(Node& node, std::size_t name) {
  View& view = this->view(node, name);
  // What it has forgotten it cannot refuse.
  const Entry* const remembered = node.redis.find(names_[name].resource_fence, names_[name].database);
  std::uint64_t fence = 0;
  if (remembered != nullptr)
    if (const auto* const text = std::get_if<StringValue>(&remembered->value))
      (void)std::from_chars(text->data(), text->data() + text->size(), fence);
  if (fence != view.beside.fence) view.beside = {.fence = fence};
  view.touched = false;
  if (world_.plan().of_semaphore(name)) return read_permits(node, name);
  if (world_.plan().fair) read_queue(node, name);
  const Entry* const entry = node.redis.find_stored(names_[name].lock, names_[name].database);
  const std::vector<std::uint32_t> before = view.all();
  view.present = entry != nullptr;
  view.grant = 0;
  view.others.clear();
  view.mode = Mode::none;
  view.expiry_ms = entry == nullptr ? no_expiry : entry->expiry_ms;
  view.foreign = false;
  if (entry == nullptr) return;
  if (const auto* const text = std::get_if<StringValue>(&entry->value)) view.grant = find(node.index, name, *text);
  if (const auto* const hash = std::get_if<HashValue>(&entry->value)) {
    const std::string* const mode = hash->find(mode_field);
    if (mode != nullptr) view.mode = *mode == "read" ? Mode::read : Mode::write;
    for (const auto& [field, count] : hash->fields) {
      if (field == mode_field) continue;
      const std::uint32_t number = find(node.index, name, token_of_field(field));
      if (number != 0 && mode != nullptr) view.add(number);
      if (number != 0 && mode == nullptr) view.grant = number;
      view.foreign = view.foreign || number == 0;
    }
  }
  view.foreign = view.foreign || view.grant == 0 || view.expiry_ms == no_expiry;
  for (const std::uint32_t number : view.all()) {
    if (std::find(before.begin(), before.end(), number) != before.end()) continue;
    break_grant(number);
    grants_[number].deleted = false;  // A replica that lagged brings it back.
  }
}

void Checkers::read_permits(const Node& node, std::size_t name) {
  View& view = this->view(node, name);
  const std::vector<std::uint32_t> before = view.all();
  view.grant = 0;
  view.others.clear();
  const Entry* const taken = node.redis.find(names_[name].taken, names_[name].database);
  const auto* const set = taken == nullptr ? nullptr : std::get_if<SortedSetValue>(&taken->value);
  if (set != nullptr)
    for (const SortedSetValue::Member& member : set->members) {
      const std::uint32_t number = find(node.index, name, member.name);
      if (number == 0) continue;
      view.add(number);
      grants_[number].own_expiry_ms = static_cast<std::int64_t>(member.score);
      if (std::find(before.begin(), before.end(), number) != before.end()) continue;
      break_grant(number);
      grants_[number].deleted = false;  // A replica that lagged brings it back.
    }
  view.present = view.grant != 0;
  note_permits(view, permits_add_up(node, name));
}

// Who asked until now may still have to be told.
void Checkers::note_permits(View& view, bool right) const {
  if (view.foreign) view.robbed_at = world_.now();
  view.foreign = !right;
}

void Checkers::excuse_fences(const Node& node) {
  for (std::size_t name = 0; name < names_.size(); ++name) excuse_fence(node, name);
}

// ---- Who waits ---------------------------------------------------------------------------------------------------

Checkers::Role Checkers::channel_of(const Application::Slot& slot) noexcept {
  if (slot.of_semaphore()) return Role::semaphore_channel;
  return slot.of_two_sides() ? Role::read_write_channel : Role::channel;
}

void Checkers::expect_woken(std::size_t domain, Role channel) {
  for (Process& process : world_.processes())
    for (Application::Slot& slot : process.slots()) {
      if (!slot.waiting || slot.wake_expected || slot.domain != domain || !slot.announced()) continue;
      if (channel_of(slot) != channel || slot.queues() || slot.of_several()) continue;
      expect_asking(process, slot);
    }
}

// Who waits for several names listens to the one of them that stays for longest: where that was the last in its way.
void Checkers::expect_woken_of_several(const Node& node, std::size_t name, Role role) {
  if (role != Role::channel) return;
  const auto told = node.redis.subscribers(names_[name].channel);
  for (Process& process : world_.processes())
    for (Application::Slot& slot : process.slots()) {
      if (!slot.of_several() || slot.is_part() || !slot.waiting || place_of(slot.node) != place_of(node.index))
        continue;
      bool named = false;
      bool free = true;
      const auto look = [&](const Application::Slot& part) {
        named = named || part.name == name;
        free = free && !views_[part.domain].present;
      };
      look(slot);
      for (const Application::Slot* const part : slot.parts) look(*part);
      const auto& open = world_.open_links();
      const bool listens = std::any_of(open.begin(), open.end(), [&](std::size_t index) {
        const Link& link = world_.link(index);
        return link.process == process.index && link.node == node.index && link.subscribed &&
               std::find(told.begin(), told.end(), link.server_id) != told.end();
      });
      if (named && free && listens) expect_asking(process, slot);
    }
}

void Checkers::expect_asking(Process& process, Application::Slot& slot) {
  if (slot.wake_expected || !process.application->may_ask(slot)) return;
  slot.wake_expected = true;
  world_.after(woken_within + 10 * world_.plan().latency_max,
               [this, index = process.index, life = process.life, chosen = &slot, wait = slot.waits, at = world_.now(),
                asked = world_.thread_at(slot.worker->thread)->asked] {
                 Process& later = world_.processes()[index];
                 if (!later.alive || later.life != life) return;
                 chosen->wake_expected = false;
                 if (chosen->waiting && chosen->waits == wait) check_woken(later, *chosen, at, asked);
               });
}

// Judged where all was well long enough before that every connection that was lost is there again.
void Checkers::check_woken(Process& process, const Application::Slot& slot, SimTime released_at, std::uint64_t asked) {
  if (world_.thread_at(slot.worker->thread)->asked != asked || process.lied_to) return;
  if (world_.plan().weights[static_cast<std::size_t>(Fault::output_limit)] != 0) return;
  const SimTime calm = calm_before(*process.plan);
  if (!process.application->may_ask(slot)) return;
  if (world_.disturbed_until() + calm > released_at || process.links_changed_at + calm > released_at) return;
  for (const std::size_t index : world_.open_links()) {
    const Link& link = world_.link(index);
    if (link.process == process.index && !link.sound(world_.now())) return;
  }
  world_.fail("woken", "client " + std::to_string(process.index) + " sleeps on: " + world_.plan().names[slot.name] +
                           " was released at " + time_text(released_at) + " s");
}

// ---- What clients believe ----------------------------------------------------------------------------------------

std::uint32_t Checkers::number_of(const Application::Slot& slot) const {
  const std::string_view token = text_of(slot.token());
  if (token.empty()) return 0;
  if (!slot.of_quorum) return find(slot.node, slot.name, token);
  for (std::size_t node = 0; node < numbers_.size(); ++node)
    if (const std::uint32_t number = find(node, slot.name, token); number != 0) return number;
  return 0;
}

bool Checkers::believed(std::uint32_t number) const {
  const Grant& grant = grants_[number];
  Process& process = world_.processes()[grant.process];
  if (!process.alive || process.life != grant.life || process.application == nullptr || process.lied_to) return false;
  const Instant now = Instant::from_nanoseconds(world_.local_time(process));
  for (const Application::Slot& slot : process.application->slots())
    if (slot.exists() && now < process.application->believes(slot) && number_of(slot) == number) return true;
  return false;
}

void Checkers::after_run(Process& process) {
  if (process.application == nullptr) return;
  if (trace_holds())
    for (const Node& node : world_.nodes()) note_keys(node);
  for (Application::Slot& slot : process.application->slots()) slot.settle_parts();
  for (Application::Slot& slot : process.application->slots()) {
    if (!slot.exists()) {
      slot.seen_until = Instant();
      continue;
    }
    const Instant until = process.application->believes(slot);
    if (until == slot.seen_until) continue;
    if (trace_holds()) note_hold(process, slot, until);
    if (slot.seen_until < until) check_belief(process, slot, until);
    world_.keeping().note_belief(process, slot, until, keepers_of(process, slot), grants_[number_of(slot)].broken);
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
  std::string label = world_.plan().names[slot.name].substr(0, 12) + " #" + std::to_string(number_of(slot));
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
void Checkers::note_keys(const Node& node) {
  std::vector<Trace::Item>& items = world_.trace().items();
  key_bars_.resize(views_.size());
  for (std::size_t name = 0; name < names_.size(); ++name) {
    const View& view = this->view(node, name);
    KeyBar& bar = key_bars_[domain_of(node.index, name)];
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
      items.push_back({node.lane, names_[name].lock.substr(0, 12) + owner, world_.now(), world_.now(), true});
    }
    const std::int64_t expiry_ms = expiry_of(name, view, view.grant);
    items[bar.item].until = expiry_ms == no_expiry ? never : world_.true_time_of_wall(node, (expiry_ms + 1) * 1000);
  }
}

void Checkers::check_belief(Process& process, Application::Slot& slot, Instant until) {
  if (process.lied_to) return;
  const Instant now = Instant::from_nanoseconds(world_.local_time(process));
  if (until <= now) return;
  if (slot.of_quorum) return check_quorum_belief(process, slot, until);
  const std::uint32_t number = number_of(slot);
  if (number == 0) {
    world_.fail("ledger", "client " + std::to_string(process.index) + " believes to hold what was never granted");
    return;
  }
  Grant& grant = grants_[number];
  grant.told = true;
  if (grant.process != process.index || grant.life != process.life) {
    world_.fail("ledger", "client " + std::to_string(process.index) + " believes to hold what is of " + who(number));
    return;
  }
  if (slot.fenced() && slot.fence() != grant.fence)
    world_.fail("fences",
                "client " + std::to_string(process.index) + " was told another fence than the server counted");
  check_keeping(process, slot, until, grant);
  check_exclusion(process, slot, number);
  if (grant.broken) return;
  const View& view = views_[slot.domain];
  if (!view.present || !view.has(number)) {
    world_.fail("validity", "believed to be held, and not there: " + who(number));
    return;
  }
  std::int64_t expiry_ms = expiry_of(slot.name, view, number);
  if (slot.reads()) {
    const Entry* const own = find_key(slot.node, own_time_key(slot.name, grant.token), names_[slot.name].database);
    if (own == nullptr) {
      world_.fail("validity", "believed to be held, and without a time of its own: " + who(number));
      return;
    }
    if (own->expiry_ms != no_expiry) expiry_ms = std::min(expiry_ms, own->expiry_ms);
  }
  if (expiry_ms == no_expiry) return;
  const SimTime gone = World::true_time_of_wall(world_.node(slot.node), (expiry_ms + 1) * 1000);
  const SimTime end = until == Instant::max() ? never : world_.true_time(process, until.nanoseconds());
  if (end > gone)
    world_.fail("validity",
                who(number) + " believes until " + time_text(end) + ", the server keeps it until " + time_text(gone));
}

// As many as there are permits believe, at most. Who was robbed is not counted.
void Checkers::check_permits(const Application::Slot& slot, std::uint32_t number) {
  if (grants_[number].broken) return;
  std::size_t holders = 1;
  for (Process& other : world_.processes()) {
    if (!other.alive || other.lied_to) continue;
    const Instant theirs = Instant::from_nanoseconds(world_.local_time(other));
    for (const Application::Slot& peer : other.slots()) {
      if (&peer == &slot || peer.domain != slot.domain || !peer.on_one_node()) continue;
      if (!(theirs < other.application->believes(peer))) continue;
      if (grants_[number_of(peer)].broken)
        ++figures_.overlaps_excused;
      else
        ++holders;
    }
  }
  if (holders > slot.plan->permits)
    world_.fail("exclusion", std::to_string(holders) + " hold a permit of " + world_.plan().names[slot.name] +
                                 ", which has " + std::to_string(slot.plan->permits) + ": the last is " + who(number));
}

void Checkers::check_exclusion(Process& process, const Application::Slot& slot, std::uint32_t number) {
  if (slot.of_semaphore()) return check_permits(slot, number);
  for (Process& other : world_.processes()) {
    if (!other.alive || other.lied_to) continue;
    const Instant theirs = Instant::from_nanoseconds(world_.local_time(other));
    for (const Application::Slot& peer : other.slots()) {
      if (&peer == &slot || peer.domain != slot.domain || !peer.on_one_node()) continue;
      if (!(theirs < other.application->believes(peer))) continue;
      const std::uint32_t second_number = number_of(peer);
      if (second_number == number && &other == &process) continue;  // One hold, two objects of its owner.
      if (slot.reads() && peer.reads()) continue;
      if (slot.of_two_sides() && peer.of_two_sides() && &other == &process && slot.same_owner(peer)) continue;
      if (grants_[number].broken || (second_number != 0 && grants_[second_number].broken)) {
        ++figures_.overlaps_excused;
        continue;
      }
      world_.fail("exclusion",
                  who(number) + " and " + who(second_number) + " both hold " + world_.plan().names[slot.name]);
    }
  }
}

// ---- Quorums -----------------------------------------------------------------------------------------------------

bool Checkers::of_quorum(std::size_t name) const noexcept { return world_.plan().of_quorum(name); }

bool Checkers::robbed(std::string_view token, std::size_t name) const {
  for (const Node& node : world_.nodes()) {
    const std::uint32_t number = find(node.index, name, token);
    if (number != 0 && grants_[number].at <= view(node, name).robbed_at) return true;
  }
  return false;
}

bool Checkers::majority_keeps(std::string_view token, std::size_t name, SimTime until) const {
  std::size_t keeping = 0;
  for (const Node& node : world_.nodes()) {
    const std::uint32_t number = find(node.index, name, token);
    if (number == 0) continue;
    const View& view = this->view(node, name);
    const bool there =
        view.present && view.grant == number &&
        (view.expiry_ms == no_expiry || until <= World::true_time_of_wall(node, (view.expiry_ms + 1) * 1000));
    // What was mended too late is taken back, and is then as it was before.
    if (there || grants_[number].broken || grants_[number].mended) ++keeping;
  }
  return keeping >= majority_of(world_.nodes().size());
}

// A node has just lost this grant.
void Checkers::check_majority(std::uint32_t number, std::string_view what) {
  const Grant& grant = grants_[number];
  if (number == 0 || !of_quorum(grant.name)) return;
  Process& process = world_.processes()[grant.process];
  if (!process.alive || process.life != grant.life || process.lied_to) return;
  const Instant now = Instant::from_nanoseconds(world_.local_time(process));
  for (const Application::Slot& slot : process.slots()) {
    if (!slot.of_quorum || !slot.exists() || text_of(slot.token()) != grant.token) continue;
    if (now < process.application->believes(slot) && !majority_keeps(grant.token, grant.name, 0))
      world_.fail("validity",
                  "believed to be held, and a majority has it no more: " + who(number) + " " + std::string(what));
  }
}

void Checkers::check_quorum_belief(Process& process, Application::Slot& slot, Instant until) {
  const std::uint32_t number = number_of(slot);
  const std::string_view token = text_of(slot.token());
  if (number == 0 || grants_[number].process != process.index || grants_[number].life != process.life) {
    world_.fail("ledger",
                "client " + std::to_string(process.index) + " believes to hold by a quorum what is of " + who(number));
    return;
  }
  check_keeping(process, slot, until, grants_[number]);
  if (Duration(slot.plan->lease) > process.application->max_lease())
    world_.fail("max lease", who(number) + " is granted or renewed for longer than its quorum's max_lease");
  check_quorum_exclusion(slot);
  const SimTime end = until == Instant::max() ? never : world_.true_time(process, until.nanoseconds());
  if (!majority_keeps(token, slot.name, end))
    world_.fail("validity", who(number) + " believes until " + time_text(end) + ", and no majority keeps it so long");
  if (!slot.fenced()) return;
  if (text_of(slot.told) == token) {
    if (slot.fence() != slot.told_fence) world_.fail("fences", "the fence of " + who(number) + " has changed");
    return;
  }
  QuorumView& quorum = quorums_[slot.name];
  if (slot.fence() <= quorum.last_fence && !quorum.fence_excused)
    world_.fail("fences", "the fence of " + who(number) + " is " + std::to_string(slot.fence()) + " behind " +
                              std::to_string(quorum.last_fence));
  quorum.last_fence = std::max(quorum.last_fence, slot.fence());
  slot.told = slot.token();
  slot.told_fence = slot.fence();
}

void Checkers::check_quorum_exclusion(const Application::Slot& slot) {
  const std::size_t name = slot.name;
  for (Process& other : world_.processes()) {
    if (!other.alive || other.lied_to) continue;
    const Instant theirs = Instant::from_nanoseconds(world_.local_time(other));
    for (const Application::Slot& peer : other.slots()) {
      if (&peer == &slot || peer.domain != slot.domain || !peer.exists()) continue;
      if (!(theirs < other.application->believes(peer))) continue;
      if (robbed(text_of(slot.token()), name) || robbed(text_of(peer.token()), name)) {
        ++figures_.overlaps_excused;
        continue;
      }
      world_.fail("exclusion",
                  who(number_of(slot)) + " and " + who(number_of(peer)) + " both hold " + world_.plan().names[name]);
    }
  }
}

void Checkers::after_quorum_acquire(Process& process, Application::Slot& slot, Status status) {
  if (status == Status::ok) ++figures_.quorum_held;
  if (process.lied_to) return;
  const std::uint32_t number = number_of(slot);
  if (status == Status::ok && (number == 0 || grants_[number].process != process.index))
    world_.fail("ledger", "client " + std::to_string(process.index) + " was granted what no server has set");
  const bool asked = slot.token().bytes() != slot.judged.bytes();
  slot.judged = slot.token();
  // Where nothing was asked for the token is an older one's.
  if (status == Status::ok || slot.depth != 0 || !asked) return;
  slot.unclear = slot.token();
  slot.unclear_at = world_.now();
}

void Checkers::after_quorum_release(Process& process, Application::Slot& slot, const Token& token, Status status,
                                    bool posted) {
  if (status == Status::lock_lost) ++figures_.lost;
  slot.unclear = token;
  slot.unclear_at = world_.now();
  if (process.lied_to || status != Status::ok || posted) return;
  if (!majority_is_free_of(text_of(token), slot.name))
    world_.fail("ledger", "a release said ok, and a majority has still what is of client " +
                              std::to_string(process.index) + " by " + std::string(text_of(token)));
}

// What waits for no answer of a majority is nowhere but on a minority. Where a node's name leads to another server than the one
// that granted, that one is told nothing, and its lease ends it.
void Checkers::after_quorum_close(const Process& process, const Application::Slot& slot,
                                  SimTime links_changed_at) const {
  if (slot.unclear.empty() || slot.depth != 0 || process.lied_to || !takes_back()) return;
  for (const Node& node : world_.nodes())
    if (const std::uint32_t number = find(node.index, slot.name, text_of(slot.unclear));
        number != 0 && grants_[number].at <= std::max(links_changed_at, world_.disturbed_until()))
      return;
  if (!majority_is_free_of(text_of(slot.unclear), slot.name))
    world_.fail("compensated", "a quorum was closed with ok, and a majority has still what is of client " +
                                   std::to_string(process.index) + " by " + std::string(text_of(slot.unclear)));
}

bool Checkers::majority_is_free_of(std::string_view token, std::size_t name) const {
  std::size_t free = 0;  // Released, taken back, or never granted.
  for (const Node& node : world_.nodes()) {
    const std::uint32_t number = find(node.index, name, token);
    const View& held = view(node, name);
    // A replica that lagged may have brought back what was released, and one keeps what has expired and shows it to nobody.
    const bool expired = held.expiry_ms != no_expiry && world_.wall(node) >= held.expiry_ms * 1000;
    if (number == 0 || grants_[number].released || !held.present || held.grant != number || expired) ++free;
  }
  return free >= majority_of(world_.nodes().size());
}

// Judged where nothing was wrong for a while before it was over, and nothing since.
void Checkers::check_gone(Process& process, Application::Slot& slot, std::size_t pending) {
  const Token token = slot.unclear;
  slot.unclear = Token();
  const SimTime calm = calm_before(*process.plan);
  if (process.lied_to || pending != 0 || !takes_back()) return;
  for (const SimTime last : {world_.disturbed_until(), process.disturbed_until, process.links_changed_at})
    if (last + calm > slot.unclear_at) return;
  for (const Node& node : world_.nodes()) {
    const std::uint32_t number = find(node.index, slot.name, text_of(token));
    const View& view = this->view(node, slot.name);
    if (number == 0 || !view.present || view.grant != number || grants_[number].broken) continue;
    if (view.expiry_ms != no_expiry && world_.wall(node) >= (view.expiry_ms + 1) * 1000) continue;
    world_.fail("compensated", "over, and still on " + node.lane + ": " + who(number));
  }
}

// It was held by this grant before and after somebody looked.
void Checkers::check_inspected(const Process& process, const Application::Slot& slot, std::uint32_t number,
                               const LockInfo& info) const {
  if (process.lied_to || slot.own_belief != Instant() || number_of(slot) != number) return;
  if (one_place_ || slot.moved) return;  // A fail-over may have lost it, or its client looks elsewhere.
  for (std::size_t node = 0; node < numbers_.size(); ++node) {
    if (!slot.of_quorum && node != slot.node) continue;
    const std::uint32_t there = find(node, slot.name, grants_[number].token);
    if (grants_[there].broken || grants_[there].mended) return;
  }
  // Of several owners one is named, and of permits the one that ends next.
  const bool names_it = !slot.of_two_sides() && !slot.of_semaphore();
  if (info.form == LockForm::free)
    world_.fail("inspection", "said to be free, and held: " + who(number));
  else if (names_it && text_of(info.owner.view()) != grants_[number].token)
    world_.fail("inspection", "said to be held by " + text_of(info.owner.view()) + ", and held: " + who(number));
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

// The server has the slot's hold, as nobody but its holder has touched it, and will for a while.
bool Checkers::keeps(const Process& process, const Application::Slot& slot) const {
  const std::uint32_t number = number_of(slot);
  const View& view = views_[slot.domain];
  if (number == 0 || !view.present || !view.has(number) || view.foreign || grants_[number].broken) return false;
  const std::int64_t expiry_ms = expiry_of(slot.name, view, number);
  if (grants_[number].process != process.index || expiry_ms == no_expiry) return false;
  return world_.wall(world_.node(slot.node)) < expiry_ms * 1000;
}

// By a quorum's node until the hold's end: that is noticed later than some of them have forgotten it.
bool Checkers::kept_to_the_end(const Process& process, const Application::Slot& slot, const Node& node) const {
  const std::uint32_t number = find(node.index, slot.name, text_of(slot.token()));
  const Grant& grant = grants_[number];
  if (number == 0 || grant.broken || grant.deleted || grant.released || grant.process != process.index) return false;
  const SimTime end = world_.true_time(process, slot.seen_until.nanoseconds());
  if (grant.kept_at + slot.plan->lease < end || (grant.expired_at >= 0 && grant.expired_at < end)) return false;
  const View& view = this->view(node, slot.name);
  return grant.life == process.life && view.robbed_at < grant.at && !view.foreign;
}

NodeSet Checkers::keepers_of(const Process& process, const Application::Slot& slot) const {
  if (!slot.of_quorum) return keeps(process, slot) ? node_bit(slot.node) : 0;
  NodeSet found = 0;
  if (slot.seen_until == Instant() || slot.seen_until == Instant::max()) return found;
  for (const Node& node : world_.nodes())
    if (kept_to_the_end(process, slot, node)) found = static_cast<NodeSet>(found | node_bit(node.index));
  return found;
}

// Objects that share a hold have its options from one of them, so this looks at the others.
void Checkers::check_keeping(Process& process, const Application::Slot& slot, Instant until, const Grant& grant) {
  if (slot.reentrant() || slot.renewing) return;
  // Its own client asks once more by text where the script is not known: what was decided in time leaves a bit later.
  Duration again{process.plan->watchdog ? 0 : process.plan->request_timeout};
  if (slot.of_quorum) again += Duration(2 * slot.redlock_timeout);  // The fence is written down by renewals.
  const Duration lease{slot.plan->lease};
  const Duration validity = lease - drift_of(lease);
  const Instant granted = Instant::from_nanoseconds(world_.local_time(process, grant.at));
  const auto check = [&](std::string_view checker, Instant last, SimTime length) {
    if (length == 0) return;
    const Instant bound = std::max(std::max(last, granted) + Duration(length), slot.renewed) + validity + again;
    if (bound < until)
      world_.fail(checker, grant.token + " was renewed until " + std::to_string(until.nanoseconds()) + ", " +
                               std::to_string(bound.nanoseconds()) + " is the bound");
  };
  check("feed", slot.ticked, slot.plan->liveness);
  check("max hold", granted, slot.plan->max_hold);
}

// A hold with a watchdog that has run out or was lost must have been told soon after. Where several objects share a
// hold one of them is told, so this looks at the others.
void Checkers::expect_told(Process& process, Application::Slot& slot, SimTime at) {
  // A loop tells of every hold.
  const bool keeps = slot.of_quorum ? process.plan->quorum_watchdog : process.plan->watchdog;
  const bool tells = slot.on_loop() || (keeps && slot.plan->kept);
  if (!tells || slot.rested || slot.shares_hold() || slot.is_part() || slot.own_belief != Instant()) return;
  ++slot.expectation;
  if (!slot.on_loop() && !process.application->watched(slot)) return;
  world_.after(at - world_.now() + told_within, [this, index = process.index, life = process.life, chosen = &slot,
                                                 imposed = process.imposed, number = slot.expectation] {
    const Process& later = world_.processes()[index];
    if (!later.alive || later.life != life || later.imposed != imposed || chosen->expectation != number) return;
    if (later.disturbed_until + told_within >= world_.now()) return;
    // Its own thread may have noticed: then it is told when that call returns.
    if (chosen->in_call()) return expect_told(world_.processes()[index], *chosen, world_.now());
    if (!chosen->exists() || chosen->depth == 0 || chosen->releasing || chosen->told_lost || chosen->rested) return;
    if (later.application->believes(*chosen) > Instant::from_nanoseconds(world_.local_time(later))) return;
    world_.fail("loss told", "client " + std::to_string(index) + " was not told that it has lost " +
                                 world_.plan().names[chosen->name]);
  });
}

// What was asked and not granted is not there any more when all compensations were answered. Where the server refuses
// commands for good, or to kill the connection before, its lease ends it.
void Checkers::check_compensated(Process& process, Application::Slot& slot, std::size_t pending) {
  slot.settle_parts();
  for (Application::Slot* const part : slot.parts) check_compensated(process, *part, pending);
  if (slot.unclear.empty() || slot.depth != 0 || process.lied_to) return;
  if (pending != 0) return;
  // A call that was refused before it asked has used up no token: the next one of another handle may have been granted by it.
  for (const Application::Slot& other : process.application->slots()) {
    if (&other == &slot || place_of(other.node) != place_of(slot.node) || other.depth == 0 || !other.exists()) continue;
    if (other.token().bytes() == slot.unclear.bytes()) slot.unclear = Token();
  }
  if (slot.unclear.empty()) return;
  if (slot.queues()) check_left(process, slot);
  const std::uint32_t number = find(slot.node, slot.name, {slot.unclear.bytes().data(), slot.unclear.bytes().size()});
  if (number != 0 && grants_[number].told) {  // To that other handle, which has lost it since.
    slot.unclear = Token();
    return;
  }
  const View& view = views_[slot.domain];
  // A replica keeps what has expired, and shows it to nobody.
  const std::int64_t expiry_ms = expiry_of(slot.name, view, number);
  const bool expired = expiry_ms != no_expiry && world_.wall(world_.node(slot.node)) >= (expiry_ms + 1) * 1000;
  // A replica that lagged has brought its place in a queue back, and somebody gave it the lock.
  const bool brought_back = number != 0 && grants_[number].given && may_bring_back();
  const bool released_late = number != 0 && grants_[number].at <= master_emptied_at_;
  if (number != 0 && view.present && !expired && view.has(number) && !grants_[number].broken && !brought_back &&
      !released_late)
    world_.fail("compensated", "nobody waits for a compensation, and there is still " + who(number));
  slot.unclear = Token();
}

void Checkers::after_acquire(Process& process, Application::Slot& slot, Status status, SimTime since,
                             std::uint64_t commands) {
  if (status == Status::ok) ++figures_.held;
  if (status == Status::lock_busy) ++figures_.busy;
  if (status == Status::timed_out || status == Status::transport_closed) ++figures_.unclear;
  // A try every two milliseconds, each of a few commands, and what compensates them.
  const std::uint64_t nodes = !slot.of_quorum && !one_place_ ? 1 : world_.nodes().size();
  const auto length = static_cast<std::uint64_t>(world_.now() - since);
  std::uint64_t most = (length / (2 * millisecond) * 5 + 60) * nodes;
  if (slot.on_loop()) most *= 1 + process.plan->slots.size();  // All that its thread does at the same time.
  if (process.plan->crowd) {
    // Renewals, with their text where the script is not known, and what takes back what they found lost.
    most += 4 * process.plan->slots.size() * (1 + length / (200 * millisecond));
  }
  const std::uint64_t sent = world_.thread().commands - commands;
  if (sent > most)
    world_.fail("floor", std::to_string(sent) + " commands in " + time_text(world_.now() - since) + " s of waiting");
  // It is acquired once more while it is held, and anew where that is over; nobody acquires another kind while it holds it.
  if (status == Status::already_held)
    world_.fail("ledger", "client " + std::to_string(process.index) + " was told that it holds " +
                              names_[slot.name].lock + " already");
  if (slot.of_quorum) return after_quorum_acquire(process, slot, status);
  if (process.lied_to) return;
  slot.settle_parts();
  judge_acquire(process, slot, status, since);
  for (Application::Slot* const part : slot.parts) judge_acquire(process, *part, status, since);
}

// Of one of its names.
void Checkers::judge_acquire(Process& process, Application::Slot& slot, Status status, SimTime since) {
  const std::uint32_t number = number_of(slot);
  const View& view = views_[slot.domain];
  if (status == Status::permits_differ && !view.foreign && view.robbed_at < since)
    world_.fail("permits", "client " + std::to_string(process.index) + " was told that another number is set of " +
                               names_[slot.name].lock);
  const bool denied = status == Status::lock_busy || status == Status::upgrade_refused;
  slot.denied = denied && slot.depth == 0 && !slot.queues() ? slot.token() : Token();
  const bool promised = takes_back();
  // It is out of the queue when its compensation was answered. Until then it may be given the lock.
  if (denied && slot.depth == 0 && slot.queued && promised) slot.unclear = slot.token();
  if (status != Status::ok && !denied && slot.depth == 0 && !slot.token().empty() &&
      (number == 0 || grants_[number].at >= since) && promised)
    slot.unclear = slot.token();
  if (status == Status::ok && (number == 0 || grants_[number].process != process.index))
    world_.fail("ledger", "client " + std::to_string(process.index) + " was granted what the server did not set");
  const SimTime confirmed = one_place_ ? *std::max_element(process.confirmed_at.begin(), process.confirmed_at.end())
                                       : process.confirmed_at[slot.node];
  if (status == Status::ok && process.plan->acks != 0 && number != 0 && grants_[number].at > confirmed)
    world_.fail("confirmed", "client " + std::to_string(process.index) + " was told of " + who(number) +
                                 ", and its replicas were not asked or have not confirmed it");
  if (denied && slot.depth == 0 && number != 0 && grants_[number].at >= since && !slot.queues())
    world_.fail("ledger", "client " + std::to_string(process.index) + " was told busy and is " + who(number));
}

// It would wait for itself.
void Checkers::after_asking_to_write(Process& process, const Application::Slot& slot, Status status, bool reads,
                                     bool reads_on) {
  if (process.lied_to) return;
  const std::string client = "client " + std::to_string(process.index);
  if (status == Status::upgrade_refused) {
    ++figures_.upgrades_refused;
    if (!reads) world_.fail("ledger", client + " was told upgrade_refused and does not read");
  }
  // A server that does not let it look for its own read has nothing but the hold in the way to tell.
  if (world_.plan().enabled(Fault::no_permission)) return;
  const std::uint32_t number =
      reads_on ? number_of(process.application->slots()[slot.plan->other_side]) : std::uint32_t{0};
  if (number != 0 && !grants_[number].broken && status == Status::lock_busy)
    world_.fail("ledger", client + " was told busy and reads itself: " + who(number));
}

// Said ok, and nobody waits for its answer: as a compensation, it is repeated until the server has answered it.
void Checkers::after_post(const Process& process, Application::Slot& slot, const Token& token, Status status) const {
  if (process.lied_to || status != Status::ok || !takes_back()) return;
  slot.unclear = token;
  for (Application::Slot* const part : slot.parts) part->unclear = token;
}

void Checkers::after_release(Process& process, std::uint32_t number, Status status, bool last) {
  if (status == Status::lock_lost) ++figures_.lost;
  if (process.lied_to || status != Status::ok || !last) return;
  for (const std::uint32_t each : together_with(number))
    if (each == 0 || !grants_[each].released)
      world_.fail("ledger", "a release said ok, and the server did not delete " + who(each) +
                                (each == 0 ? "" : " of " + names_[grants_[each].name].lock));
}

// ---- Resources ---------------------------------------------------------------------------------------------------

void Checkers::resource_written(Process& process, const Application::Slot& slot, std::uint32_t number,
                                std::uint64_t fence) {
  if (process.lied_to) return;
  const bool excused = slot.of_quorum ? quorums_[slot.name].fence_excused : views_[slot.domain].fence_excused;
  Resource& resource = slot.of_quorum ? quorums_[slot.name].elsewhere : views_[slot.domain].elsewhere;
  if (fence < resource.fence) {
    ++figures_.writes_refused;
    return;
  }
  ++figures_.writes;
  // A quorum's grants are not numbered in their order: fences say it all.
  if (number < resource.grant && fence != resource.fence && !excused && !slot.of_quorum)
    world_.fail("resource", who(number) + " wrote behind " + who(resource.grant));
  resource = {fence, std::max(resource.grant, number)};
}

void Checkers::observe_resource(View& view, const ModelRedis::Effect& effect) {
  std::uint64_t fence = 0;
  std::uint32_t number = 0;
  const char* const end = effect.value.data() + effect.value.size();
  const char* const middle = std::from_chars(effect.value.data(), end, fence).ptr;
  if (middle != end) (void)std::from_chars(middle + 1, end, number);
  if (number == 0 || number >= grants_.size()) return;  // Of a client that was lied to.
  Resource& resource = view.beside;
  if (fence < resource.fence)
    world_.fail("resource", who(number) + " wrote behind the fence " + std::to_string(resource.fence));
  if (number < resource.grant && fence != resource.fence && !view.fence_excused)
    world_.fail("resource", who(number) + " wrote behind " + who(resource.grant));
  resource = {fence, std::max(resource.grant, number)};
  grants_[number].written_at = world_.now();
}

void Checkers::after_fenced_set(Process& process, const Application::Slot& slot, std::uint32_t number,
                                std::uint64_t fence, bool written, SimTime since) {
  if (process.lied_to || number == 0) return;
  ++(written ? figures_.writes : figures_.writes_refused);
  const Grant& grant = grants_[number];
  const bool done = grant.written_at >= since;
  const bool by_an_earlier_call = done && !written && grant.write_unknown;
  if (written != done && !by_an_earlier_call)
    world_.fail("ledger", who(number) + (written ? " was told that it had written" : " was told that it had not") +
                              " with the fence " + std::to_string(fence) + ", the last is " +
                              std::to_string(views_[slot.domain].beside.fence));
}

void Checkers::process_ended(Process& process) {
  if (!trace_holds() || process.application == nullptr) return;
  for (Application::Slot& slot : process.slots())
    if (slot.seen_until != Instant() && slot.item < world_.trace().items().size()) {
      Trace::Item& item = world_.trace().items()[slot.item];
      item.until = std::min(item.until, world_.now());
    }
}

void Checkers::note_quiet(Process&) {}

// The number stays, and a permit that nobody has asked for since its end.
void Checkers::check_permits_left(const Node& node, std::size_t name) {
  if (node.links.empty() && !node.redis.subscribers(names_[name].semaphore_channel).empty())
    world_.fail("nothing left", "a subscription to " + names_[name].semaphore_channel);
  if (!permits_add_up(node, name)) world_.fail("nothing left", "permits that do not add up: " + names_[name].lock);
  const View& view = this->view(node, name);
  for (const std::uint32_t number : view.all())
    if (grants_[number].kept_at + (world_.plan().lease_max + 400 * second) < world_.now() &&
        world_.wall(node) < grants_[number].own_expiry_ms * 1000)
      world_.fail("nothing left", "still there: " + who(number));
}

// A queue goes with its last waiter, or by itself, and a beat soon.
void Checkers::check_queue_left(const Node& node, std::size_t name) {
  if (world_.plan().enabled(Fault::no_permission)) return;
  const Entry* const queue = node.redis.find(names_[name].queue, names_[name].database);
  if (queue != nullptr && queue->expiry_ms == no_expiry)
    world_.fail("nothing left", names_[name].queue + " without a TTL");
  for (const Waiter& waiter : view(node, name).waiters)
    if (const Entry* const beat = node.redis.find(beat_of(names_[name].lock, waiter.token), names_[name].database);
        beat != nullptr && beat->expiry_ms == no_expiry)
      world_.fail("nothing left", "a beat without a TTL: " + waiter.token);
}

void Checkers::all_over() {
  for (Node& node : world_.nodes()) {
    node.redis.set_now(world_.wall(node));  // Nobody may have spoken to it for long.
    for (std::size_t name = 0; name < names_.size(); ++name) {
      if (node.links.empty() && !node.redis.subscribers(names_[name].channel).empty())
        world_.fail("nothing left", "a subscription to " + names_[name].channel);
      if (world_.plan().of_semaphore(name)) {
        check_permits_left(node, name);
        continue;
      }
      if (world_.plan().fair) check_queue_left(node, name);
      // What was left behind has a lease, and nobody renews it any more.
      const Entry* const entry = node.redis.find(names_[name].lock, names_[name].database);
      if (entry == nullptr) continue;
      const std::uint32_t number = view(node, name).grant;
      if (entry->expiry_ms == no_expiry)
        world_.fail("nothing left", names_[name].lock + " without a lease");
      else if (number != 0 && grants_[number].kept_at + (world_.plan().lease_max + 400 * second) < world_.now())
        world_.fail("nothing left", "still there: " + who(number));
    }
  }
}

}  // namespace holdfast::sim

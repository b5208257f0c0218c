// SPDX-License-Identifier: MIT
#include "canary.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/proto/script.hpp"
#include "kind_replies.hpp"
#include "scripts.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

constexpr Canary all[] = {
    {"validity_from_reply", "counts its validity from the reply instead of from the send", Sin::validity_from_reply,
     "validity,exclusion"},
    {"drift_added", "adds the drift that it should subtract", Sin::drift_added, "validity,exclusion"},
    {"no_drift", "believes for its whole lease", Sin::no_drift, "validity,exclusion"},
    {"held_is_a_flag", "believes until it releases, whatever time it is", Sin::held_is_a_flag, "validity,exclusion"},
    {"held_until_released", "believes while its release is on its way", Sin::held_until_released,
     "validity,exclusion,ownership"},
    {"unknown_is_yes", "takes a lost reply for a grant", Sin::unknown_is_yes, "ledger,validity,exclusion,ownership"},
    {"clock_stands_still", "reads a clock that stands still while it is stopped", Sin::clock_stands_still,
     "validity,exclusion,ownership"},
    {"loss_not_told", "is told of no loss", Sin::loss_not_told, "loss told"},
    {"release_without_compare", "releases by DEL", Sin::release_without_compare, "ownership,validity"},
    {"blind_renewal", "renews by PEXPIRE, whosever it is", Sin::blind_renewal, "ownership,validity,never shortened"},
    {"set_without_nx", "acquires by SET without NX", Sin::set_without_nx, "ownership"},
    {"no_lease", "acquires by SET NX and forgets the lease", Sin::no_lease, "lease"},
    {"lease_in_seconds", "rounds its lease down to whole seconds", Sin::lease_in_seconds, "validity"},
    {"renewal_shortens", "renews for half of what it believes", Sin::renewal_shortens, "never shortened,validity"},
    {"renewal_revives", "renews by SET, and makes again what was lost", Sin::renewal_revives,
     "no resurrection,ownership,fresh tokens"},
    {"reentry_without_owner", "adds its field to a hash that is another's", Sin::reentry_without_owner,
     "ownership,exclusion"},
    {"reentry_creates", "steps a count that is not there", Sin::reentry_creates,
     "no resurrection,fresh tokens,lease,ownership"},
    {"step_deletes", "takes back a step by a delete", Sin::step_deletes, "ownership"},
    {"fence_stands_still", "reads the fence and does not count it on", Sin::fence_stands_still, "fences"},
    {"fence_is_a_counter", "counts its fence from one after the data were lost", Sin::fence_is_a_counter,
     "fences,resource"},
    {"key_as_token", "passes the key where the token belongs as it compensates", Sin::key_as_token, "compensated"},
    {"busy_is_granted", "takes what is not listed for a grant", Sin::busy_is_granted, "ledger"},
    {"not_ours_is_renewed", "takes \"not yours\" for a renewal", Sin::not_ours_is_renewed, "validity,exclusion,ledger"},
    {"not_ours_is_released", "says ok to a release that found nothing", Sin::not_ours_is_released, "ledger"},
    {"reply_twice", "reads a reply twice, so that the next request gets another's", Sin::reply_twice,
     "ledger,validity,fences"},
    {"look_forgotten", "does not look at its socket before it asks, and takes what lies there for the answer",
     Sin::look_forgotten, "ledger,validity,exclusion,ownership,resource"},
    {"token_used_again", "uses a token for two holds", Sin::token_used_again, "fresh tokens,no resurrection,ledger"},
    {"token_of_the_lock", "has one token for all holders", Sin::token_of_the_lock,
     "fresh tokens,no resurrection,ledger,ownership"},
    {"wake_is_a_grant", "takes the end of another's lease for its own grant", Sin::wake_is_a_grant, "ledger"},
    {"no_floor", "asks again at once", Sin::no_floor, "floor"},
    {"sleeps_on", "sleeps until its deadline, whatever is released", Sin::sleeps_on, "liveness"},
    {"feed_ignored", "renews on while its application is not alive", Sin::feed_ignored, "feed"},
    {"max_hold_ignored", "renews on when its hold is too old", Sin::max_hold_ignored, "max hold"},
    {"deaf_after_reconnect", "does not subscribe anew when its connection was lost, and sleeps as if it had",
     Sin::deaf_after_reconnect, "woken"},
    {"fence_not_compared", "writes to its resource whatever fence that has seen", Sin::fence_not_compared, "resource"},
    {"reader_not_counted", "deletes a lock with its own read, whoever else reads", Sin::reader_not_counted,
     "ownership,validity"},
    {"writer_beside_reader", "lets a writer in where somebody reads", Sin::writer_beside_reader, "ownership,exclusion"},
    {"permit_not_counted", "takes a permit and leaves as many free as there were", Sin::permit_not_counted,
     "permits,exclusion"},
    {"permit_too_many", "takes one where none is free", Sin::permit_too_many, "permits,exclusion"},
    {"permits_all_taken_back", "takes back all permits where the time of one is over", Sin::permits_all_taken_back,
     "ownership,validity"},
    {"multi_releases_one", "gives back one of its names only, and says ok", Sin::multi_releases_one,
     "ledger,compensated", WorldKind::sets},
    {"multi_takes_beside", "takes all its names where the first of them is another's", Sin::multi_takes_beside,
     "ownership,exclusion", WorldKind::sets},
    {"multi_renews_one", "renews one of its names only, and believes in all", Sin::multi_renews_one,
     "validity,exclusion", WorldKind::sets},
    {"queue_ignored", "takes a free lock whoever stands in the queue", Sin::queue_ignored, "queue"},
    {"live_waiter_skipped", "gives its lock to one who is gone, and passes over who lives", Sin::live_waiter_skipped,
     "queue"},
    {"last_comes_first", "gives its lock to the last in the queue", Sin::last_comes_first, "queue"},
    {"place_lost_by_beat", "goes to the end of the queue whenever it asks", Sin::place_lost_by_beat, "queue"},
    {"leaver_stays", "gives up, and stays in the queue", Sin::leaver_stays, "queue"},
    {"gift_without_end", "gives its lock away without a lease", Sin::gift_without_end, "lease"},
    {"gift_too_long", "gives its lock away for longer than it takes to confirm it", Sin::gift_too_long, "queue"},
    {"idle_hold_taken_late", "takes what it has left idle without a look at the time, or at what has become of it",
     Sin::idle_hold_taken_late, "validity,exclusion,ledger"},
    {"idle_hold_not_renewed", "does not renew what is idle, and believes in it as if it did",
     Sin::idle_hold_not_renewed, "validity,exclusion"},
    {"quorum_of_reachable", "counts its majority of the nodes that it has met", Sin::quorum_of_reachable,
     "exclusion,validity,ledger"},
    {"half_is_enough", "takes half of an even number for a majority", Sin::half_is_enough, "exclusion,validity,ledger"},
    {"no_quorum_is_yes", "goes on without a quorum", Sin::no_quorum_is_yes, "exclusion,validity,ledger"},
    {"quorum_validity_from_reply", "counts a quorum's validity from the last reply", Sin::quorum_validity_from_reply,
     "validity,exclusion"},
    {"minority_extends", "believes in a renewal that a minority has confirmed", Sin::minority_extends,
     "validity,exclusion"},
    {"unanswered_not_released", "releases nothing on nodes that did not answer", Sin::unanswered_not_released,
     "compensated"},
    {"guard_ignored", "gives a restarted node its vote at once", Sin::guard_ignored, "exclusion"},
    {"acks_ignored", "takes a grant that no replica has confirmed", Sin::acks_ignored, "confirmed", WorldKind::acks},
    {"fence_of_one_node", "takes the fence of the node that granted last", Sin::fence_of_one_node, "fences"},
    {"fence_not_written", "does not write the quorum's fence back", Sin::fence_not_written, "fences"},
    {"lease_above_max_lease", "asks for the lease that it was made with, whatever max_lease its quorum has now",
     Sin::lease_above_max_lease, "max lease,exclusion,validity"},
    {"forgets_on_connect", "connects anew and knows nothing of its nodes and of what it has promised",
     Sin::forgets_on_connect, "exclusion", WorldKind::quorum},
    {"moved_ignored", "goes on at the server that it knows, whatever slots that has, and is served there",
     Sin::moved_ignored, "ownership,exclusion,validity,ledger,no resurrection", WorldKind::clusters},
    {"ask_followed", "follows ASK, also where the move is called off behind it", Sin::ask_followed,
     "ownership,exclusion,validity,ledger", WorldKind::clusters},
    {"failover_loses_in_cluster", "believes in what a fail-over of its slot's master has lost", Sin::failover_loses,
     "ownership,exclusion,validity,ledger", WorldKind::clusters},
    {"fence_lost_in_cluster", "counts its fence from what a fail-over has left of the counter", Sin::fence_is_a_counter,
     "fences,resource", WorldKind::clusters},
    {"queue_ignored_in_cluster", "takes a free lock of a cluster whoever stands in the queue", Sin::queue_ignored,
     "queue", WorldKind::clusters},
    {"multi_takes_beside_in_cluster", "takes all its names of one slot where the first of them is another's",
     Sin::multi_takes_beside, "ownership,exclusion", WorldKind::clusters},
    {"permit_too_many_in_cluster", "takes a permit of a cluster where none is free", Sin::permit_too_many,
     "permits,exclusion", WorldKind::clusters},
    {"cancelled_is_forgotten_in_cluster", "forgets a cancelled acquire at one of a cluster's servers",
     Sin::cancelled_is_forgotten, "compensated,queue", WorldKind::clusters},
    {"debts_forgotten_in_cluster", "closes its client of a cluster, and forgets what is to be taken back",
     Sin::debts_forgotten_on_close, "compensated,queue", WorldKind::clusters},
    {"replica_believed", "takes who was master for it, and is served there", Sin::replica_believed,
     "ownership,exclusion,validity,ledger,no resurrection", WorldKind::sentinels},
    {"failover_loses", "believes in what a fail-over has lost as if it had been confirmed", Sin::failover_loses,
     "ownership,exclusion,validity,ledger", WorldKind::sentinels},
    {"fence_lost_behind_sentinels", "counts its fence from what a fail-over has left of the counter",
     Sin::fence_is_a_counter, "fences,resource", WorldKind::sentinels},
    {"multi_takes_beside_behind_sentinels", "takes all its names where the first of them is another's",
     Sin::multi_takes_beside, "ownership,exclusion", WorldKind::sentinels},
    {"permit_too_many_behind_sentinels", "takes a permit where none is free", Sin::permit_too_many, "permits,exclusion",
     WorldKind::sentinels},
    {"promotion_unseen", "does not ask whether a server was promoted", Sin::promotion_unseen, "exclusion"},
    {"post_dropped", "drops a posted release for which there is no place, and says ok", Sin::post_dropped,
     "compensated"},
    {"validity_from_turn", "counts its validity from the turn of its loop in which the reply came",
     Sin::validity_from_turn, "validity,exclusion", WorldKind::loops},
    {"cancelled_is_forgotten", "forgets an acquire that was cancelled, and so what it is granted",
     Sin::cancelled_is_forgotten, "compensated", WorldKind::loops},
    {"debts_forgotten_on_close", "closes its client, and forgets what is to be taken back",
     Sin::debts_forgotten_on_close, "compensated", WorldKind::loops},
    {"handler_called_twice", "is told the end of each operation twice", Sin::handler_called_twice, "handlers",
     WorldKind::loops},
    {"set_of_some", "takes a set for held of which one lock is missing", Sin::set_of_some, "ledger", WorldKind::loops},
    {"set_of_some_in_threads", "takes a set for held of which one lock is missing, in a thread", Sin::set_of_some,
     "ledger,sets", WorldKind::sets},
    {"set_keeps_first", "does not give back the first lock of a set of which another was not to be had",
     Sin::set_keeps_first, "sets", WorldKind::sets},
    {"set_in_any_order", "takes the locks of a set in the order in which they come", Sin::set_in_any_order, "liveness",
     WorldKind::sets},
    {"set_cancelled_in_vain", "goes on for the locks of a set when it was cancelled", Sin::set_cancelled_in_vain,
     "cancel", WorldKind::sets},
    {"loop_quorum_of_reachable", "counts its majority of the nodes that it has met, on a loop",
     Sin::quorum_of_reachable, "exclusion,validity,ledger", WorldKind::quorum_loops},
    {"loop_quorum_validity_from_reply", "counts a quorum's validity from the last reply, on a loop",
     Sin::quorum_validity_from_reply, "validity,exclusion", WorldKind::quorum_loops},
    {"loop_no_quorum_is_yes", "goes on without a quorum, on a loop", Sin::no_quorum_is_yes, "exclusion,validity,ledger",
     WorldKind::quorum_loops},
    {"loop_unanswered_not_released", "releases nothing on nodes that did not answer, on a loop",
     Sin::unanswered_not_released, "compensated", WorldKind::quorum_loops},
    {"loop_cancelled_is_forgotten", "forgets a quorum's acquire that was cancelled, and so what it is granted",
     Sin::cancelled_is_forgotten, "compensated", WorldKind::quorum_loops},
    {"loop_guard_ignored", "gives a restarted node its vote at once, on a loop", Sin::guard_ignored, "exclusion",
     WorldKind::quorum_loops},
    {"loop_fence_not_written", "does not write the quorum's fence back, on a loop", Sin::fence_not_written, "fences",
     WorldKind::quorum_loops},
    {"edge_lost", "misses now and then that something came to its loop's socket", Sin::edge_lost,
     "woken,kept,bounded waits", WorldKind::loops},
    {"timers_without_bytes", "looks at its loop's timers only when bytes have come", Sin::timers_without_bytes,
     "bounded waits,loss told,cancel", WorldKind::loops},
    {"deadline_ignored", "waits longer than it was asked", Sin::deadline_ignored, "bounded waits"},
    {"timeout_too_much", "waits for two requests more than it was asked", Sin::timeout_too_much, "bounded waits",
     WorldKind::connecting},
    {"tending_forgotten", "renews nothing while it waits for another lock", Sin::tending_forgotten, "kept",
     WorldKind::connecting},
    {"back_off_forgotten", "dials again at once", Sin::back_off_forgotten, "back-off", WorldKind::connecting},
    {"connects_cut_short", "gives up whatever has not connected in 100 ms, since holds wait to be renewed",
     Sin::connects_cut_short, "kept", WorldKind::connecting},
    {"resolves_in_line", "keeps its watchdog waiting for a resolver", Sin::resolves_in_line, "loss told,kept",
     WorldKind::connecting},
    {"wake_byte_left", "leaves in its pipe what woke it", Sin::wake_byte_left, "no spinning"},
    {"sleeps_in_slivers", "looks at its sockets every few microseconds", Sin::sleeps_in_slivers, "no spinning"},
    {"cancel_lost", "goes on when it was cancelled", Sin::cancel_lost, "cancel", WorldKind::connecting},
    {"cancel_kept", "is cancelled twice by one cancel()", Sin::cancel_kept, "cancel", WorldKind::connecting},
    {"name_of_the_whole_buffer", "takes what stands behind a name in its buffer for a part of it",
     Sin::name_of_the_whole_buffer, "ledger,exclusion,validity"},
    {"settings_kept", "connects anew with what it was told first", Sin::settings_kept, "bounded waits,ledger",
     WorldKind::connecting},
};

// ---- Wrong scripts -----------------------------------------------------------------------------------------------

constexpr Script blind_release = make_script("return redis.call('DEL', KEYS[1])");
constexpr Script blind_renew = make_script("return redis.call('PEXPIRE', KEYS[1], ARGV[2])");
constexpr Script blind_renew_batch = make_script(
    "local answers = {} for index, key in ipairs(KEYS) do answers[index] = redis.call('PEXPIRE', key, ARGV[2 * index]) "
    "end return answers");
constexpr Script half_renew_batch = make_script(
    "local answers = {} for index, key in ipairs(KEYS) do answers[index] = 0 "
    "if redis.call('GET', key) == ARGV[2 * index - 1] then "
    "answers[index] = redis.call('PEXPIRE', key, math.ceil(ARGV[2 * index] / 2)) end end return answers");
constexpr Script reviving_renew_batch = make_script(
    "local answers = {} for index, key in ipairs(KEYS) do "
    "redis.call('SET', key, ARGV[2 * index - 1], 'PX', ARGV[2 * index]) answers[index] = 1 end return answers");
constexpr Script always_renewed_batch =
    make_script("local answers = {} for index, key in ipairs(KEYS) do answers[index] = 1 end return answers");
constexpr Script adding_acquire = make_script(
    "redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2]) return "
    "redis.status_reply('OK')");
constexpr Script creating_step =
    make_script("redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) redis.call('PEXPIRE', KEYS[1], ARGV[3]) return 1");
constexpr Script still_fence = make_script(
    "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('PTTL', KEYS[1]) end "
    "local fence = redis.call('GET', KEYS[2]) or '1' redis.call('SET', KEYS[2], fence) "
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return fence");
constexpr Script counted_fence = make_script(
    "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('PTTL', KEYS[1]) end "
    "redis.call('INCR', KEYS[2]) local fence = redis.call('GET', KEYS[2]) "
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return fence");

// ---- Wrong kinds -------------------------------------------------------------------------------------------------

// A table has no room for what it was made of: there is one canary at a time.
Sin sin_now = Sin::none;
std::vector<std::uint64_t> offered_fences;  // By process.

// A table for each kind on one node, then one for each under a quorum, as long as the program runs; and what they were made of.
constexpr std::size_t kind_count = 6;
LockKind tables[2 * kind_count];
const LockKind* rights[2 * kind_count];

const LockKind& right_kind(const LockKind& kind) noexcept { return *rights[&kind - tables]; }

bool of_quorum(Key key) {
  const Plan& plan = World::current()->plan();
  for (std::size_t name = plan.quorum_names; name < plan.quorum_end; ++name)
    if (key.bytes() == ByteView(plan.names[name].data(), plan.names[name].size())) return true;
  return false;
}

CommandLine& ask_wrong(CommandLine& line, const Script& script, const HoldView& hold) noexcept {
  return line.add_script(script, RequestForm::by_text).add("1").add(hold.key.bytes()).add_token(*hold.token);
}

void fill_wrong(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
                const HoldView& hold) noexcept {
  const LockKind& right = right_kind(kind);
  const bool plain_acquire = operation == Operation::acquire && !kind.fenced && !kind.reentrant;
  switch (sin_now) {
    case Sin::release_without_compare:
      if (operation != Operation::release) break;
      ask_wrong(line, blind_release, hold);
      return;
    case Sin::blind_renewal:
      if (operation != Operation::renew || kind.reentrant) break;
      ask_wrong(line, blind_renew, hold).add(hold.lease.count());
      return;
    case Sin::set_without_nx:
      if (!plain_acquire) break;
      line.add("SET").add(hold.key.bytes()).add_token(*hold.token).add("PX").add(hold.lease.count());
      return;
    case Sin::no_lease:
      if (!plain_acquire) break;
      line.add("SET").add(hold.key.bytes()).add_token(*hold.token).add("NX");
      return;
    case Sin::lease_in_seconds: {
      if (!plain_acquire) break;
      const std::int64_t seconds = hold.lease.count() / 1000;
      line.add("SET").add(hold.key.bytes()).add_token(*hold.token).add("NX").add("EX").add(seconds < 1 ? 1 : seconds);
      return;
    }
    case Sin::reentry_without_owner:
      if (operation != Operation::acquire || !kind.reentrant || kind.fenced) break;
      ask_wrong(line, adding_acquire, hold).add(hold.lease.count());
      return;
    case Sin::reentry_creates:
      if (operation != Operation::step) break;
      ask_wrong(line, creating_step, hold).add(std::int64_t{hold.count}).add(hold.lease.count());
      return;
    case Sin::step_deletes:
      if (operation != Operation::step || form != RequestForm::by_text) break;
      right.fill(line, right, Operation::release, form, hold);
      return;
    case Sin::fence_stands_still:
    case Sin::fence_is_a_counter: {
      if (operation != Operation::acquire || !kind.fenced || kind.reentrant) break;
      const Script& script = sin_now == Sin::fence_stands_still ? still_fence : counted_fence;
      line.add_script(script, RequestForm::by_text).add("2").add(hold.key.bytes()).add_derived(fence_prefix, hold.key);
      line.add_token(*hold.token).add(hold.lease.count());
      return;
    }
    case Sin::lease_above_max_lease: {
      if ((operation != Operation::acquire && operation != Operation::renew) || !of_quorum(hold.key)) break;
      HoldView longer = hold;
      longer.lease = std::chrono::milliseconds(World::current()->plan().lease_max / millisecond);
      right.fill(line, right, operation, form, longer);
      return;
    }
    case Sin::fence_not_written: {
      if (operation != Operation::renew || hold.machine->fence() == 0) break;
      const LockMachine fenceless(right);
      HoldView plain = hold;
      plain.machine = &fenceless;
      right.fill(line, right, operation, form, plain);
      return;
    }
    case Sin::unanswered_not_released:
    case Sin::key_as_token: {
      if (sin_now == Sin::unanswered_not_released && !of_quorum(hold.key)) break;
      if (operation != Operation::release || form != RequestForm::by_text || right.announcement != nullptr) break;
      line.add_script(scripts::mutex_release, form).add("1").add(hold.key.bytes()).add(hold.key.bytes());
      return;
    }
    default: break;
  }
  right.fill(line, right, operation, form, hold);
}

Verdict decode_wrong(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  const LockKind& right = right_kind(kind);
  const Verdict verdict = right.decode(right, operation, reply, facts);
  if (sin_now == Sin::fence_of_one_node && operation == Operation::acquire && verdict == Verdict::granted) {
    const std::size_t process = World::current()->process().index;
    if (offered_fences.size() <= process) offered_fences.resize(process + 1);
    offered_fences[process] = facts.fence;
  }
  if (sin_now == Sin::busy_is_granted && operation == Operation::acquire && verdict == Verdict::busy)
    return Verdict::granted;
  if (sin_now == Sin::not_ours_is_renewed && operation == Operation::renew && verdict == Verdict::not_ours)
    return Verdict::granted;
  if (sin_now == Sin::not_ours_is_released && operation == Operation::release && verdict == Verdict::not_ours)
    return Verdict::granted;
  return verdict;
}

// ---- Wrong tokens and wrong waiting ------------------------------------------------------------------------------

Status draw_again(HoldRecord&, Token& token) noexcept {
  // One for the client, for ever.
  const std::string text = "the same token of client " + std::to_string(World::current()->process().index) + "." +
                           std::to_string(World::current()->process().life);
  token = Token(ByteView(text.data(), text.size()));
  return Status::ok;
}

Status draw_one_for_all(HoldRecord&, Token& token) noexcept {
  token = Token(ByteView("locked"));
  return Status::ok;
}

Status wait_without_floor(HoldRecord& record, NodeTask& task) noexcept {
  const Instant deadline = task.life().deadline();
  Status outcome = record.try_acquire(nullptr);
  while (outcome == Status::lock_busy && Client::now() < deadline) outcome = record.try_acquire(nullptr);
  return outcome;
}

void sleep_of(Duration length) { World::current()->sleep(length.count()); }

Status wait_asleep(HoldRecord& record, NodeTask& task) noexcept {
  const Instant deadline = task.life().deadline();
  if (const Status outcome = record.try_acquire(nullptr); outcome != Status::lock_busy) return outcome;
  while (Client::now() < deadline) sleep_of(deadline - Client::now());
  return record.try_acquire(nullptr);
}

Status wait_too_long(HoldRecord& record, NodeTask& task) noexcept {
  const Instant deadline = task.life().deadline();
  Status outcome = record.try_acquire(nullptr);
  const Instant late = deadline + std::chrono::seconds(60);
  while (outcome == Status::lock_busy && Client::now() < late) {
    sleep_of(std::chrono::milliseconds(50));
    outcome = record.try_acquire(nullptr);
  }
  return outcome;
}

Status wait_without_tending(HoldRecord& record, NodeTask& task) noexcept {
  const Instant deadline = task.life().deadline();
  Status outcome = record.try_acquire(nullptr);
  while (outcome == Status::lock_busy && Client::now() < deadline) {
    sleep_of(std::min<Duration>(std::chrono::seconds(2), deadline - Client::now()));
    outcome = record.try_acquire(nullptr);
  }
  return outcome;
}

// As one does whose subscription is refused.
Status wait_and_dial(HoldRecord& record, NodeTask& task) noexcept {
  const Instant deadline = task.life().deadline();
  Status outcome = record.try_acquire(nullptr);
  while (outcome == Status::lock_busy && Client::now() < deadline) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(address_of(Address::server));
    address.sin_port = htons(port_base);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    (void)::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    sleep_of(std::chrono::milliseconds(10));
    (void)::close(socket);
    outcome = record.try_acquire(nullptr);
  }
  return outcome;
}

Status wait_for_wake(HoldRecord& record, NodeTask& task) noexcept {
  if (const Status outcome = record.try_acquire(nullptr); outcome != Status::lock_busy) return outcome;
  const Instant deadline = task.life().deadline();
  const Instant now = Client::now();
  sleep_of((deadline - now) / 2);
  return Status::ok;
}

using Draw = decltype(HoldRecord::Ways::draw_ordinal);
using Wait = decltype(HoldRecord::Ways::run_listening);

// nullptr: it draws as the kind does.
Draw draws_wrong(Sin sin) noexcept {
  if (sin == Sin::token_used_again) return draw_again;
  return sin == Sin::token_of_the_lock ? draw_one_for_all : nullptr;
}

// nullptr: it waits as the kind does.
Wait waits_wrong(Sin sin) noexcept {
  switch (sin) {
    case Sin::no_floor: return wait_without_floor;
    case Sin::sleeps_on: return wait_asleep;
    case Sin::deadline_ignored: return wait_too_long;
    case Sin::wake_is_a_grant: return wait_for_wake;
    case Sin::tending_forgotten: return wait_without_tending;
    case Sin::back_off_forgotten: return wait_and_dial;
    default: return nullptr;
  }
}

}  // namespace

// ---- The list ----------------------------------------------------------------------------------------------------

std::span<const Canary> canaries() noexcept { return all; }

const Canary* find_canary(std::string_view name) noexcept {
  for (const Canary& canary : all)
    if (canary.name == name) return &canary;
  return nullptr;
}

Sin sin_of(const World& world) noexcept { return world.canary() == nullptr ? Sin::none : world.canary()->sin; }

namespace {

// Its table, filled. `place` is that of the first table.
LockKind& wrong_kind(Sin sin, const LockKind& kind, std::size_t place) noexcept {
  const std::size_t index = place +
                            (kind.reentrant                 ? 4U
                             : kind.announcement != nullptr ? 2U
                                                            : 0U) +
                            (kind.fenced ? 1U : 0U);
  LockKind& wrong = tables[index];
  wrong = kind;
  rights[index] = &kind;
  wrong.fill = fill_wrong;
  wrong.decode = decode_wrong;
  if (sin == Sin::release_without_compare) wrong.native_release = false;
  if (sin == Sin::key_as_token || sin == Sin::unanswered_not_released) wrong.native_release = false;
  if (sin == Sin::blind_renewal && !kind.reentrant) wrong.renew_batch = &blind_renew_batch;
  if (sin == Sin::renewal_shortens && !kind.reentrant) wrong.renew_batch = &half_renew_batch;
  if (sin == Sin::renewal_revives && !kind.reentrant) wrong.renew_batch = &reviving_renew_batch;
  if (sin == Sin::not_ours_is_renewed) wrong.renew_batch = &always_renewed_batch;
  return wrong;
}

}  // namespace

const LockKind& kind_as_canary(Sin sin, const LockKind& kind) noexcept {
  sin_now = sin;
  if (sin == Sin::none) return kind;
  LockKind& wrong = wrong_kind(sin, kind, 0);
  // So that the wrong way is gone: see ways_as_canary().
  if (draws_wrong(sin) != nullptr) wrong.token = TokenSource::client_ordinal;
  if (waits_wrong(sin) != nullptr) wrong.announcement = &redisson_announcement;
  return wrong;
}

const LockKind& quorum_kind_as_canary(Sin sin, const LockKind& kind) noexcept {
  sin_now = sin;
  return sin == Sin::none ? kind : wrong_kind(sin, kind, kind_count);
}

HoldRecord::Ways ways_as_canary(Sin sin) noexcept {
  HoldRecord::Ways ways = {.draw_ordinal = draws_wrong(sin), .run_listening = run_listening};
  if (const Wait wait = waits_wrong(sin); wait != nullptr) ways.run_listening = wait;
  return ways;
}

namespace {

// What stands in a script that is sent, and what stands there instead; both have one size, since its length has been said.
struct Replacement {
  std::string_view right;
  std::string_view wrong;
};

// A script that has changed since would leave its canary without a sin. No constant may call these: it does not compile.
[[maybe_unused]] void the_text_is_not_in_the_script_once() noexcept {}
[[maybe_unused]] void the_two_texts_differ_in_size() noexcept {}

consteval Replacement in(const Script& script, std::string_view right, std::string_view wrong) {
  const ByteView text = script.text;
  const std::size_t at = text.find(right);
  const bool once = at != SIZE_MAX && text.slice(at + 1).find(right) == SIZE_MAX;
  if (!once) the_text_is_not_in_the_script_once();
  if (right.size() != wrong.size()) the_two_texts_differ_in_size();
  return {right, wrong};
}

Replacement replacement_of(Sin sin) noexcept {
  switch (sin) {
    case Sin::promotion_unseen: return in(scripts::server_identity, "second_repl_offset", "absent_repl_offset");
    case Sin::fence_not_compared: return in(scripts::fenced_set, "then\nreturn 0\nend", "then\nseen = 0\nend");
    case Sin::reader_not_counted:
      return in(scripts::read_write_release, "math.min(count, 100) do", "math.min(count, 000) do");
    case Sin::writer_beside_reader:
      return in(scripts::write_acquire, "if redis.call('EXISTS', lock) == 1 then\nlocal reads",
                "if redis.call('EXISTS', lock) == 7 then\nlocal reads");
    case Sin::permit_not_counted: return in(scripts::semaphore_acquire, "'INCRBY', key, -1)", "'INCRBY', key,  0)");
    case Sin::permit_too_many:
      return in(scripts::semaphore_acquire, "if tonumber(free) < 1 then", "if tonumber(free) < 0 then");
    case Sin::permits_all_taken_back:
      return in(scripts::semaphore_acquire, "taken, '-inf', now)", "taken, '-inf', 1/0)");
    case Sin::multi_releases_one:
      return in(scripts::multi_release, "for _, key in ipairs(KEYS) do\nlocal deleted = redis",
                "for _,key in ipairs{KEYS[1]}do\nlocal deleted =redis");
    case Sin::multi_takes_beside: return in(scripts::multi_acquire, "if place > 0 then", "if place > 1 then");
    case Sin::multi_renews_one:
      return in(scripts::multi_renew, "for index = first, last do\nlocal left",
                "for index = first,first do\nlocal left");
    case Sin::queue_ignored:
      return in(scripts::fair_acquire, "call('ZPOPMIN', row)[1] or me", "me call('ZREM', row, me)     ");
    case Sin::live_waiter_skipped:
      return in(scripts::fair_release, "until not head or call('DEL', beat .. head) == 1",
                "until not head or call('DEL', beat .. head) == 0");
    case Sin::last_comes_first:
      return in(scripts::fair_release, "left == 0 and call('ZPOPMIN'", "left == 0 and call('ZPOPMAX'");
    case Sin::place_lost_by_beat: return in(scripts::fair_acquire, "'NX', now, me)", "'CH', now, me)");
    case Sin::leaver_stays:
      return in(scripts::fair_release, "redis.pcall('DEL', beat .. me)\ncall('ZREM', queue, me)",
                "redis.pcall('DEL', beat .. '')\ncall('ZREM', queue, '')");
    case Sin::gift_without_end:
      return in(scripts::fair_release, "call('HSET', lock, head, '1')\ncall('PEXPIRE', lock, 3000)",
                "call('HSET', lock, head, '1')\ncall('PEXPIRE', '--', 3000)");
    case Sin::gift_too_long:
      return in(scripts::fair_release, "call('PEXPIRE', lock, 3000)\nredis.pcall",
                "call('PEXPIRE', lock, 9000)\nredis.pcall");
    default: return {};
  }
}

}  // namespace

std::string_view sent_as_canary(const World& world, std::string_view bytes) {
  static std::string changed;
  const Replacement replacement = replacement_of(sin_of(world));
  const std::size_t at = replacement.right.empty() ? std::string_view::npos : bytes.find(replacement.right);
  if (at == std::string_view::npos) return bytes;
  changed = bytes;
  changed.replace(at, replacement.right.size(), replacement.wrong);
  return changed;
}

void drop_nodes_as_canary(Sin sin, Random& random, std::vector<ClientConfig>& nodes) {
  std::size_t dropped = 0;
  if (sin == Sin::half_is_enough && nodes.size() % 2 == 0) dropped = 1;
  if (sin == Sin::quorum_of_reachable) dropped = nodes.size() / 2;
  for (; dropped != 0; --dropped) nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(random.index(nodes.size())));
}

std::uint64_t fence_as_canary(std::size_t process) {
  return process < offered_fences.size() ? offered_fences[process] : 0;
}

bool edge_lost_as_canary(World& world) {
  return sin_of(world) == Sin::edge_lost && world.phase() == Phase::faults && world.random().chance(20'000);
}

bool timer_overslept_as_canary(const World& world, const Epoll& epoll) noexcept {
  return sin_of(world) == Sin::timers_without_bytes && world.phase() == Phase::faults && epoll.queue.empty();
}

bool overlooked(const World& world, const Link& link) { return sin_of(world) == Sin::look_forgotten && link.unasked; }

bool cancel_lost_as_canary(const World& world) noexcept { return sin_of(world) == Sin::cancel_lost; }

bool reads_twice(World& world) { return sin_of(world) == Sin::reply_twice && world.random().chance(20'000); }

}  // namespace holdfast::sim

// SPDX-License-Identifier: MIT
#include "holdfast/core/voter_roll.hpp"

#include "holdfast/core/topology.hpp"
#include "place_number.hpp"
#include "text_writer.hpp"

namespace holdfast {

namespace {

// A node that did not say who it is has no vote, nor has a replica. The one may have been busy, and the other may be promoted:
// it is asked again, on a connection of its own.
constexpr Duration introduction_interval = std::chrono::seconds(5);

// With sentinels it is that of the service: the server's address is what they say, and another after a fail-over.
std::uint64_t number_of(const ClientConfig& config) noexcept {
  if (config.topology != nullptr) return config.topology->number();
  if (!config.socket_path.empty()) return PlaceNumber().add(config.socket_path.view()).add('\1').get();
  return PlaceNumber().add(config.host.view(), config.port).get();
}

}  // namespace

ConfigProblem validate_voter(const ClientConfig& config) noexcept {
  if (config.topology != nullptr && config.topology->table().no_voter != nullptr)
    return {"topology", config.topology->table().no_voter};
  if (config.acks != 0)
    return {"acks", "replicas of a quorum's servers are not counted: its servers are what it counts"};
  return validate(config);
}

// ---- Questions ---------------------------------------------------------------------------------------------------

// Who a node is must be known without the guard, too: a server that two nodes lead to could be asked for a hold at both.
// Not inlined: it has seven callers.
[[gnu::noinline]] RestartGuard::Verdict VoterRoll::judge(const Voter& voter, Instant now) const noexcept {
  const RestartGuard& guard = voter.place.guard;
  return config_.restart_guard || guard.anonymous() ? guard.verdict(promise_, now) : RestartGuard::Verdict::votes;
}

NodeSet VoterRoll::voters(Instant now) const noexcept {
  NodeSet voting = 0;
  for (std::size_t index = 0; index < count_; ++index) {
    const Voter& voter = voters_[index];
    if (voter.introduced && voter.node->session().ready() && voter.twin == 0 &&
        judge(voter, now) == RestartGuard::Verdict::votes)
      voting = static_cast<NodeSet>(voting | node_bit(index));
  }
  return voting;
}

Electorate VoterRoll::repairers(Instant now) const noexcept {
  NodeSet nodes = voters(now);
  for (std::size_t index = 0; index < count_; ++index)
    if (voters_[index].node->session().compensations_pending() != 0)
      nodes = static_cast<NodeSet>(nodes & ~node_bit(index));
  return {nodes, config_.max_lease};
}

Status VoterRoll::witness(std::size_t index, Instant now) const noexcept {
  const RestartGuard::Verdict verdict = judge(voters_[index], now);
  const bool own =
      !excluded(index) && verdict != RestartGuard::Verdict::anonymous && verdict != RestartGuard::Verdict::replica;
  return own ? Status::ok : status(index, now);
}

Status VoterRoll::verdict(Instant now) const noexcept {
  for (std::size_t index = 0; index < count_; ++index)
    if (voters_[index].twin != 0) return Status::same_machine;
  const std::size_t voting = count_of(voters(now));
  return voting >= majority() ? Status::ok : Status::no_quorum;
}

bool VoterRoll::connected() const noexcept {
  std::size_t ready = 0;
  for (std::size_t index = 0; index < count_; ++index)
    if (voters_[index].node->session().ready()) ++ready;
  return ready >= majority();
}

Status VoterRoll::status(std::size_t index, Instant now) const noexcept {
  const Voter& voter = voters_[index];
  if (voter.twin != 0) return Status::same_machine;
  if (!voter.introduced) return voter.status == Status::ok ? Status::not_connected : voter.status;
  const RestartGuard::Verdict verdict = judge(voter, now);
  if (verdict == RestartGuard::Verdict::replica) return Status::read_only;
  return verdict == RestartGuard::Verdict::votes ? voter.status : Status::no_quorum;
}

std::uint64_t VoterRoll::seconds_until_vote(std::size_t index, Instant now) const noexcept {
  const Voter& voter = voters_[index];
  if (judge(voter, now) == RestartGuard::Verdict::votes) return 0;
  const Instant from = voter.place.guard.votes_from(promise_);
  if (from == Instant::max()) return UINT64_MAX;
  return static_cast<std::uint64_t>((from - now).count() / 1'000'000'000 + 1);
}

Instant VoterRoll::introduction_due(std::size_t index) const noexcept {
  const Voter& voter = voters_[index];
  const RestartGuard::Verdict verdict = judge(voter, voter.introduced_at);
  const bool again = verdict == RestartGuard::Verdict::anonymous || verdict == RestartGuard::Verdict::replica;
  return voter.introduced && again ? voter.introduced_at + introduction_interval : Instant::max();
}

std::size_t VoterRoll::compensations_pending() const noexcept {
  std::size_t pending = 0;
  for (std::size_t index = 0; index < count_; ++index)
    pending += voters_[index].node->session().compensations_pending();
  return pending;
}

ByteView VoterRoll::write_text(MutableBytes space, Instant now) const noexcept {
  TextWriter text(space);
  if (refused_lease_ != Duration::zero()) {
    text.add("a lease of ").add_milliseconds(refused_lease_).add(" is longer than max_lease, ");
    return text.add_milliseconds(config_.max_lease).view();
  }
  bool first = true;
  for (std::size_t index = 0; index < count_; ++index) {
    const Voter& voter = voters_[index];
    const Status why = status(index, now);
    if (why == Status::ok) continue;
    if (!first) text.add("; ");
    first = false;
    text.add_node(index, *voter.node).add(" ");
    const RestartGuard::Verdict verdict = voter.introduced ? judge(voter, now) : RestartGuard::Verdict::votes;
    if (voter.twin != 0) {
      text.add("is the same machine as ").add_node(voter.twin - 1U, *voters_[voter.twin - 1U].node);
      continue;
    }
    switch (verdict) {
      case RestartGuard::Verdict::anonymous: text.add("does not tell its run id (ACL: +info)"); continue;
      case RestartGuard::Verdict::replica: text.add("is a replica"); continue;
      case RestartGuard::Verdict::young:
      case RestartGuard::Verdict::replaced: text.add("was restarted"); break;
      case RestartGuard::Verdict::successor: text.add("may have been promoted"); break;
      case RestartGuard::Verdict::votes: {
        text.add(std::string_view(to_string(why)));
        const ByteView words = voter.node->session().failure_text();
        if (!words.empty()) text.add(": ").add(words);
        continue;
      }
    }
    text.add(", votes in ").add(seconds_until_vote(index, now)).add(" s");
  }
  return text.view();
}

// ---- Inputs ------------------------------------------------------------------------------------------------------

void VoterRoll::begin(std::size_t size, const QuorumConfig& config, Instant now) noexcept {
  for (std::size_t index = 0; index < capacity_; ++index) {
    Voter& voter = voters_[index];
    strangers_ = strangers_ || voter.place.guard.known() || voter.place.guard.stranger();
    voter.before = voter.place;  // Of no node where there was none.
    // Of so much fewer nodes a majority may have none that a majority of before had.
    if (majority() + majority_of(size) <= count_) voter.before = Place();
    voter.place = Place();
    voter.introduced = false;
    voter.twin = 0;
    voter.status = Status::not_connected;
  }
  begun_at_ = now;
  refused_lease_ = Duration::zero();
  count_ = size;
  config_ = config;
}

void VoterRoll::enter(std::size_t index, const ClientConfig& config) noexcept {
  Place& place = voters_[index].place;
  place.address = number_of(config);
  if (strangers_) place.guard.expect_stranger();
  for (std::size_t other = 0; other < capacity_; ++other)
    if (voters_[other].before.address == place.address) place = voters_[other].before;
}

// Of two that are one the first has the vote, and keeps it while its own connection is away.
NodeSet VoterRoll::introduce(std::size_t index, Instant now) noexcept {
  Voter& voter = voters_[index];
  promise_.change(config_.max_lease, begun_at_);  // By the first one: the others change nothing any more.
  voter.introduced = true;
  voter.introduced_at = now;
  voter.status = Status::ok;
  const ServerIdentity& identity = voter.node->session().identity();
  RestartGuard& guard = voter.place.guard;
  // A server that was a node of this quorum, by another address.
  for (std::size_t other = 0; other < capacity_ && !guard.known(); ++other)
    if (voters_[other].before.guard.is(identity)) guard = voters_[other].before.guard;
  guard.note(identity, now);
  voter.moved = guard.server() == 0 || guard.server() != voter.server;
  voter.server = guard.server();
  voter.twin = 0;
  NodeSet changed = node_bit(index);
  for (std::size_t other = 0; other < count_; ++other) {
    Voter& peer = voters_[other];
    if (other == index || !peer.introduced) continue;
    const bool same = same_machine(identity, peer.node->session().identity());
    if (same && peer.twin == 0) voter.twin = static_cast<std::uint8_t>(other + 1);
    if (same || peer.twin != index + 1) continue;
    peer.twin = 0;
    changed = static_cast<NodeSet>(changed | node_bit(other));
  }
  return changed;
}

void VoterRoll::demote(NodeSet nodes, Instant now) noexcept {
  for (std::size_t index = 0; index < count_; ++index) {
    Voter& voter = voters_[index];
    if ((nodes & node_bit(index)) == 0 || !voter.introduced || voter.place.guard.replica()) continue;
    voter.place.guard.note_replica();
    voter.introduced_at = now;  // It is asked again a while from now.
  }
}

Status VoterRoll::permit(Duration lease) noexcept {
  const bool permitted = lease <= config_.max_lease;
  refused_lease_ = permitted ? Duration::zero() : lease;
  return permitted ? Status::ok : Status::invalid_argument;
}

void VoterRoll::note(const QuorumMachine& machine) noexcept {
  for (std::size_t node = 0; node < machine.nodes(); ++node) {
    if (!voters_[node].introduced) continue;
    // A grant that is being let go of by now is no failure of that node.
    const Status said = machine.vote(node).status;
    voters_[node].status = said == Status::outcome_unknown ? Status::ok : said;
  }
}

}  // namespace holdfast

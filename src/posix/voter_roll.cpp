// SPDX-License-Identifier: MIT
#include "holdfast/voter_roll.hpp"

#include <cstring>

#include "decimal.hpp"

namespace holdfast {

namespace {

// A node that did not say who it is has no vote. It may have been busy: it is asked again, on a connection of its own.
constexpr Duration introduction_interval = std::chrono::seconds(5);

// Texts are put together without the heap, and cut where there is no more room.
class TextWriter {
 public:
  explicit TextWriter(MutableBytes space) noexcept
      : begin_(space.data), at_(space.data), end_(space.data + space.size) {}
  TextWriter& add(ByteView text) noexcept {
    const auto room = static_cast<std::size_t>(end_ - at_);
    const std::size_t size = text.size() < room ? text.size() : room;
    if (size != 0) std::memcpy(at_, text.data(), size);
    at_ += size;
    return *this;
  }
  TextWriter& add(std::uint64_t number) noexcept {
    char digits[20];
    return add({digits, static_cast<std::size_t>(write_decimal(digits, number) - digits)});
  }
  TextWriter& add_node(std::size_t index, const ClientConfig& config) noexcept {
    add("node ").add(index + 1).add(" (");
    if (config.socket_path.empty())
      add(config.host.view()).add(":").add(config.port);
    else
      add(config.socket_path.view());
    return add(")");
  }
  [[nodiscard]] ByteView view() const noexcept { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }

 private:
  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace

// ---- Questions ---------------------------------------------------------------------------------------------------

NodeSet VoterRoll::voters(Instant now) const noexcept {
  NodeSet voting = 0;
  for (std::size_t index = 0; index < count_; ++index) {
    const Voter& voter = voters_[index];
    if (voter.introduced && voter.client->connected() && voter.twin == 0 && !guarded(voter, now))
      voting = static_cast<NodeSet>(voting | node_bit(index));
  }
  return voting;
}

NodeSet VoterRoll::repairers(Instant now) const noexcept {
  NodeSet nodes = voters(now);
  for (std::size_t index = 0; index < count_; ++index)
    if (voters_[index].client->compensations_pending() != 0) nodes = static_cast<NodeSet>(nodes & ~node_bit(index));
  return nodes;
}

Status VoterRoll::verdict(Instant now) const noexcept {
  for (std::size_t index = 0; index < count_; ++index)
    if (voters_[index].twin != 0) return Status::same_machine;
  const auto voting = static_cast<std::size_t>(__builtin_popcount(voters(now)));
  return voting >= majority() ? Status::ok : Status::no_quorum;
}

bool VoterRoll::connected() const noexcept {
  std::size_t ready = 0;
  for (std::size_t index = 0; index < count_; ++index)
    if (voters_[index].client->connected()) ++ready;
  return count_ != 0 && ready >= majority();
}

Status VoterRoll::status(std::size_t index, Instant now) const noexcept {
  const Voter& voter = voters_[index];
  if (voter.twin != 0) return Status::same_machine;
  if (!voter.introduced) return voter.status == Status::ok ? Status::not_connected : voter.status;
  return guarded(voter, now) ? Status::no_quorum : voter.status;
}

std::uint64_t VoterRoll::seconds_until_vote(std::size_t index, Instant now) const noexcept {
  const Voter& voter = voters_[index];
  if (!config_.restart_guard || voter.guard.verdict(now) == RestartGuard::Verdict::votes) return 0;
  const Instant from = voter.guard.votes_from();
  if (from == Instant::max() || from < now) return from < now ? 1 : UINT64_MAX;
  return static_cast<std::uint64_t>((from - now).count() / 1'000'000'000 + 1);
}

Instant VoterRoll::introduction_due(std::size_t index) const noexcept {
  const Voter& voter = voters_[index];
  if (!voter.introduced || !config_.restart_guard) return Instant::max();
  return voter.guard.anonymous() ? voter.introduced_at + introduction_interval : Instant::max();
}

std::size_t VoterRoll::compensations_pending() const noexcept {
  std::size_t pending = 0;
  for (std::size_t index = 0; index < count_; ++index) pending += voters_[index].client->compensations_pending();
  return pending;
}

ByteView VoterRoll::write_text(MutableBytes space, Instant now) const noexcept {
  TextWriter text(space);
  bool first = true;
  for (std::size_t index = 0; index < count_; ++index) {
    const Voter& voter = voters_[index];
    const Status why = status(index, now);
    if (why == Status::ok) continue;
    if (!first) text.add("; ");
    first = false;
    text.add_node(index, voter.client->config()).add(" ");
    if (voter.twin != 0) {
      text.add("is the same machine as ").add_node(voter.twin - 1U, voters_[voter.twin - 1U].client->config());
    } else if (voter.introduced && guarded(voter, now)) {
      if (voter.guard.anonymous())
        text.add("does not tell its run id (ACL: +info)");
      else
        text.add("was restarted, votes in ").add(seconds_until_vote(index, now)).add(" s");
    } else {
      text.add(std::string_view(to_string(why)));
      const ByteView words = voter.client->error_text();
      if (!words.empty()) text.add(": ").add(words);
    }
  }
  return text.view();
}

// ---- Inputs ------------------------------------------------------------------------------------------------------

// Of two that are one the first has the vote, and keeps it while its own connection is away.
NodeSet VoterRoll::introduce(std::size_t index, Instant now) noexcept {
  Voter& voter = voters_[index];
  voter.introduced = true;
  voter.introduced_at = now;
  voter.status = Status::ok;
  const ServerIdentity& identity = voter.client->server();
  voter.guard.note(identity, config_.max_lease, now);
  voter.twin = 0;
  NodeSet changed = node_bit(index);
  for (std::size_t other = 0; other < count_; ++other) {
    Voter& peer = voters_[other];
    if (other == index || !peer.introduced) continue;
    const bool same = same_machine(identity, peer.client->server());
    if (same && peer.twin == 0) voter.twin = static_cast<std::uint8_t>(other + 1);
    if (same || peer.twin != index + 1) continue;
    peer.twin = 0;
    changed = static_cast<NodeSet>(changed | node_bit(other));
  }
  return changed;
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

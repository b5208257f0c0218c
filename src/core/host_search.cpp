// SPDX-License-Identifier: MIT
#include "holdfast/core/host_search.hpp"

#include <cstring>

#include "holdfast/core/node.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/core/wait_plan.hpp"
#include "holdfast/proto/server_error.hpp"
#include "place_number.hpp"
#include "text_writer.hpp"

namespace holdfast {

namespace {

// Nobody was there, or nobody said anything.
bool is_silence(Status status) noexcept {
  return status == Status::connect_failed || status == Status::name_not_resolved || status == Status::timed_out ||
         status == Status::transport_closed || status == Status::not_connected || status == Status::system_error;
}

// It was not dialled, or did not take the connection: there was no session that could say more.
bool is_unreached(Status status) noexcept {
  return status == Status::connect_failed || status == Status::name_not_resolved || status == Status::system_error ||
         status == Status::too_many_requests;
}

}  // namespace

static_assert(sizeof(HostSearch) + alignof(HostSearch) - 1 <= host_search_size, "a search must fit in its place");

// ---- Where it is -------------------------------------------------------------------------------------------------

// In the storage of the node's texts, where the host would stand: it comes first.
void* HostSearch::place_in(Node& node) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(node.texts_.data);
  return node.texts_.data + (-begin & (alignof(HostSearch) - 1));
}

HostSearch::HostSearch(Node& node, const Plan& plan) noexcept : node_(&node) {
  table = &plan;
  take_host({}, 0);
}

void HostSearch::begin_at(Node& node) noexcept { node.dialer_.start(node.config_.connect_timeout, 0, true); }

const Topology& HostSearch::topology() const noexcept { return *node_->config().topology; }

// ---- What answers mean -------------------------------------------------------------------------------------------

Status HostSearch::judge_role(const RespValue& value) noexcept {
  if (value.is(RespKind::error)) return classify_error(value.text()).status;
  if (!value.is(RespKind::array) || value.count() != 6 || !value.at(5).is(RespKind::bulk))
    return Status::protocol_error;
  ServerIdentity identity;
  identity.take_standing(value.at(5).text());
  switch (identity.standing()) {
    case ServerStanding::master:
    case ServerStanding::successor: return Status::ok;
    case ServerStanding::replica: return Status::read_only;
    case ServerStanding::unknown: break;
  }
  return Status::no_permission;
}

void HostSearch::name(ByteView host, std::uint16_t port) noexcept {
  take_host(host, port);
  stage_ = Stage::named;
}

// ---- An attempt --------------------------------------------------------------------------------------------------

void HostSearch::steer(Node& node, Instant now, std::uint16_t random) noexcept {
  static_cast<HostSearch*>(place_in(node))->steer(now, random);
}

void HostSearch::prefer(Node& node, std::size_t listed) noexcept {
  static_cast<HostSearch*>(place_in(node))->listed_ = static_cast<std::uint8_t>(listed);
}

std::size_t HostSearch::listed_of(Node& node) noexcept { return static_cast<HostSearch*>(place_in(node))->listed_; }

void HostSearch::steer(Instant now, std::uint16_t random) noexcept {
  Dialer& dialer = node_->dialer();
  Instant end = dialer.attempt_deadline() + rest_;  // The attempt's.
  // What the last attempt failed with is told until this one has reached somebody, or has failed, too.
  const bool begins = dialer.due(now);
  if (begins) {
    end = begin(now);
    if (return_) return go_to_server(now, end);
  } else if (dialer.state() != DialState::elsewhere) {
    return;
  } else if (stage_ == Stage::named) {
    node_->session().clear_failure_text();
    if (hops_ != 0 && host_number() != silent_) return go_to_server(now, end);
    stage_ = Stage::server;
    judged_ = true;
    if (hops_ == 0) note_failure(Status::cluster_down);  // They name one another, and none of them serves.
  } else {
    if (is_unreached(dialer.failure())) node_->session().clear_failure_text();  // The words are another's.
    note_failure(dialer.failure());
    judged_ = false;
    if (dialer.go_on_here(now)) return node_->session().clear_failure_text();
    if (stage_ == Stage::server && is_silence(dialer.failure())) silent_ = host_number();
  }
  if (left_ == 0 || now >= end) return give_up(now, random);
  if (!begins) node_->session().clear_failure_text();
  ask_next(now, end, random);
}

Instant HostSearch::begin(Instant now) noexcept {
  const auto count = static_cast<std::uint8_t>(plan().hosts(topology()).count());
  failure_ = passing_ = Status::ok;
  silent_ = 0;
  left_ = count;
  hops_ = redirections_max;
  if (listed_ < count) next_ = listed_;  // Where the server of before was asked, it is still known.
  listed_ = nobody;
  return now + node_->config().connect_timeout;
}

void HostSearch::note_failure(Status status) noexcept {
  const bool telling = failure_ == Status::ok || !is_silence(status) || is_silence(failure_);
  if (telling) fail(status);
  // Of these, too, who answered tells more.
  if (worth_waiting(status) && (passing_ == Status::ok || telling)) passing_ = status;
}

void HostSearch::fail(Status status) noexcept {
  failure_ = status;
  failed_at_ = stage_;
  failed_listed_ = listed_;
  failed_judged_ = judged_;
}

// For who is asked at this stage.
void HostSearch::configure_session() noexcept {
  const KeptConfig& config = node_->config();
  SessionSettings settings = {
      .client_name = config.client_name.view(), .stall_timeout = config.stall_timeout, .interview = this};
  plan().settle(*this, settings);
  node_->session().configure(settings);
}

void HostSearch::go_to_server(Instant now, Instant end) noexcept {
  return_ = judged_ = false;
  stage_ = Stage::server;
  --hops_;
  configure_session();
  go_to(now, end, left_ + std::size_t{1});
}

void HostSearch::ask_next(Instant now, Instant end, std::uint16_t random) noexcept {
  const HostList hosts = plan().hosts(topology());
  listed_ = next_;
  next_ = next_ + 1U < hosts.count() ? static_cast<std::uint8_t>(next_ + 1) : std::uint8_t{0};
  --left_;
  stage_ = Stage::listed;
  judged_ = false;
  ByteView host;
  std::uint16_t port = 0;
  (void)hosts.at(listed_, host, port);
  constexpr std::size_t beside = 200;  // The names of the commands, and what stands around each argument.
  const std::size_t question = plan().question_size(*this) + node_->config().client_name.view().size() + beside;
  if (question > node_->session().request_size()) {
    fail(Status::buffer_too_small);
    left_ = 0;  // It is so for all of them.
    return give_up(now, random);
  }
  take_host(host, port);
  configure_session();
  go_to(now, end, left_ + std::size_t{2});
}

std::uint32_t HostSearch::host_number() const noexcept {
  const auto number =
      static_cast<std::uint32_t>(PlaceNumber().add(node_->config().host.view(), node_->config().port).get());
  return number != 0 ? number : 1;
}

void HostSearch::take_host(ByteView host, std::uint16_t port) noexcept {
  if (!host.empty()) std::memmove(host_, host.data(), host.size());
  host_[host.size()] = '\0';
  node_->config_.host = KeptBytes(ByteView(host_, host.size()));
  node_->config_.port = port;
}

// As the configuration says now. What is left of the time is shared with the hosts that may follow: a silent one leaves time for
// them. No resolver is asked for a literal address.
void HostSearch::go_to(Instant now, Instant end, std::size_t hosts) noexcept {
  const KeptConfig& config = node_->config();
  Duration part = (end - now) / static_cast<std::int64_t>(hosts);
  if (part < address_timeout_min) part = address_timeout_min;
  const Instant deadline = earlier(now + part, end);
  rest_ = end - deadline;
  const bool known = topology().table().literal(config.host.c_str(), config.port, node_->addresses_[0]);
  node_->dialer().go_to(known, now, deadline);
}

// In words, and whose failure it is.
void HostSearch::give_up(Instant now, std::uint16_t random) noexcept {
  Session& session = node_->session();
  // The server's own words, or the session's, are those of the last host.
  const bool last = failed_listed_ == listed_ && failed_at_ == stage_;
  ByteView words;
  ByteView more;
  if (failed_judged_) words = plan().words(*this, failure_, failed_at_, more);
  if (last && !failed_judged_) words = session.failure_text();
  if (failure_ == Status::buffer_too_small) words = "its host and credentials do not fit into the client's buffers";
  if (words.empty()) words = ByteView(std::string_view(to_string(failure_)));
  char space[failure_text_size_max];
  TextWriter text({space, sizeof space});
  text.add(words).add(more).add(": ");
  const bool named = failed_listed_ != nobody;
  if (failed_at_ == Stage::server) {
    if (last || (is_silence(failure_) && host_number() == silent_))
      text.add_address(node_->config().host.view(), node_->config().port).add(named ? ", named by " : "");
    else
      text.add(named ? "the server that was named by " : "the server of before");
  }
  if (named) {
    ByteView host;
    std::uint16_t port = 0;
    (void)plan().hosts(topology()).at(failed_listed_, host, port);
    text.add(plan().lister).add_address(host, port);
  }
  session.explain(text.view());
  // Who was not asked may know better.
  if (passing_ == Status::ok && left_ != 0) passing_ = Status::timed_out;
  listed_ = next_;  // One that takes all the time must not be the only one that is asked.
  node_->dialer().give_up(passing_ != Status::ok ? passing_ : failure_, now, random);
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/core/switch_watch.hpp"

#include <cstring>
#include <new>

#include "holdfast/core/host_list.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/master_search.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/resp_encoder.hpp"

namespace holdfast {

namespace {

constexpr char channel[] = "+switch-master";
constexpr char early_channel[] = "+failover-state-reconf-slaves";

// ---- How the lane finds a sentinel ------------------------------------------------------------------------------------

const Topology& sentinels_of(const Topology& topology) noexcept {
  return static_cast<const SwitchWatch&>(topology).sentinels();
}

// The hosts of the list are the servers: each is asked for the master, and the first that names one is stayed with.
class SentinelSearch : public HostSearch {
 public:
  static void start(Node& node) noexcept {
    new (place_in(node)) SentinelSearch(node);
    begin_at(node);
  }

 private:
  static const Plan plan;
  explicit SentinelSearch(Node& node) noexcept : HostSearch(node, plan) {}

  static HostList hosts(const Topology& topology) noexcept { return MasterSearch::hosts(sentinels_of(topology)); }
  static void settle(const HostSearch& search, SessionSettings& settings) noexcept {
    const auto& self = static_cast<const SentinelSearch&>(search);
    MasterSearch::settle_sentinel(sentinels_of(self.topology()), settings);
  }
  static std::size_t question_size(const HostSearch& search) noexcept {
    const auto& self = static_cast<const SentinelSearch&>(search);
    return MasterSearch::question_size_of(sentinels_of(self.topology()));
  }
  static ByteView words(const HostSearch&, Status, Stage, ByteView&) noexcept { return {}; }
  static bool ask(Interview& self, CommandLine& line) noexcept {
    MasterSearch::write_question(sentinels_of(static_cast<SentinelSearch&>(self).topology()), line);
    return true;
  }
  static Status judge(Interview& self, const RespValue& value) noexcept {
    static_cast<SentinelSearch&>(self).note_reply(value);
    ByteView host;
    std::uint16_t port = 0;
    return MasterSearch::read_address(value, host, port);
  }
  static Status doubt(Interview&, Session&, Status status) noexcept { return status; }
  static bool overhear(Interview& self, Session& session, const RespValue& value) noexcept {
    auto& watch = *static_cast<SwitchWatch*>(static_cast<SentinelSearch&>(self).node_->config().topology);
    return watch.overhear(session, value);
  }
};

constinit const HostSearch::Plan SentinelSearch::plan = {
    {ask, judge, doubt, complete_nothing, overhear}, hosts, settle, question_size, words, "sentinel ", false};

bool is_push(const RespValue& value, ByteView kind, std::uint32_t count) noexcept {
  return value.is(RespKind::array) && value.count() == count && value.at(0).is(RespKind::bulk) &&
         value.at(0).text() == kind;
}

// What a subscribed connection is told of its subscription.
bool is_answer(const RespValue& value, ByteView kind, ByteView wanted) noexcept {
  return is_push(value, kind, 3) && value.at(1).is(RespKind::bulk) && value.at(1).text() == wanted &&
         value.at(2).is(RespKind::integer);
}

// Up to the next space, which is taken, too. False: there is none.
bool take_word(ByteView& rest, ByteView& word) noexcept {
  const std::size_t size = rest.find(" ");
  if (size == SIZE_MAX) return false;
  word = rest.slice(0, size);
  rest = rest.slice(size + 1);
  return true;
}

}  // namespace

// ---- As a topology -----------------------------------------------------------------------------------------------

void SwitchWatch::start(Node& node) noexcept { SentinelSearch::start(node); }
ConfigProblem SwitchWatch::accept(const ClientConfig& /*config*/) noexcept { return {}; }
std::uint64_t SwitchWatch::number_of(const Topology& topology) noexcept { return sentinels_of(topology).number(); }
ByteView SwitchWatch::name_of(const Topology& topology) noexcept { return sentinels_of(topology).name(); }
ByteView SwitchWatch::hosts_of(const Topology& topology) noexcept { return sentinels_of(topology).hosts(); }
ByteView SwitchWatch::password_of(const Topology& topology) noexcept { return sentinels_of(topology).password(); }

// ---- Whom it hears -----------------------------------------------------------------------------------------------

bool SwitchWatch::wanted_by(const Node& node) noexcept {
  return node.configured() && node.config().topology != nullptr &&
         node.config().topology->table().start == MasterSearch::start;
}

bool SwitchWatch::follows(const Node& node) const noexcept {
  return sentinels_ != nullptr && sentinels_ == node.config().topology && number_ == sentinels_->number();
}

ClientConfig SwitchWatch::follow(const Node& node) noexcept {
  sentinels_ = node.config().topology;
  number_ = sentinels_->number();
  ready_ = hearing_ = early_ = hurried_ = news_ = false;
  host_size_ = 0;
  ClientConfig config;
  config.topology = this;
  config.tls = node.config().tls;
  config.client_name = node.config().client_name.view();
  config.connect_timeout = node.config().connect_timeout;
  config.request_timeout = node.config().request_timeout;
  config.stall_timeout = node.config().stall_timeout;
  return config;
}

void SwitchWatch::handle_ready(Instant now) noexcept {
  ready_ = true;
  hearing_ = early_ = hurried_ = false;
  awaited_ = Awaited::none;
  check_ = now;
}

void SwitchWatch::handle_closed(Node& lane) noexcept {
  if (!ready_) return;
  ready_ = hearing_ = early_ = false;
  HostSearch::prefer(lane, (HostSearch::listed_of(lane) + 1) % MasterSearch::hosts(*sentinels_).count());
}

// ---- What it asks ------------------------------------------------------------------------------------------------

// UNSUBSCRIBE first, since a subscribed connection may ask nothing. A sentinel reads what comes with one send as a whole before it
// does anything else, so no fail-over comes between the question and the subscription.
void SwitchWatch::work(Node& lane, Instant now, std::uint16_t random) noexcept {
  if (!lane.ready() || awaited_ != Awaited::none || now < due()) return;
  const struct {
    bool wanted;
    Argument words[3];
    std::size_t count;
  } commands[] = {{hearing_, {"UNSUBSCRIBE", channel}, 2},
                  {early_, {"UNSUBSCRIBE", early_channel}, 2},
                  {true, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name()}, 3},
                  {true, {"SUBSCRIBE", channel}, 2},
                  {true, {"SUBSCRIBE", early_channel}, 2}};
  for (const auto& command : commands) {
    if (!command.wanted) continue;
    const Status status = lane.ask(Arguments(command.words, command.count), {}, now);
    HOLDFAST_ASSERT(status == Status::ok);  // All that was asked before is answered, so all of the buffer is free.
  }
  // The replies come with messages among them: overhear() tells which are which.
  lane.session().give_up(nullptr, Status::cancelled, now);
  awaited_ = hearing_ ? Awaited::farewell : early_ ? Awaited::early_farewell : Awaited::address;
  hurried_ = false;
  asked_at_ = now;
  check_ = now + switch_check_max / 2 + switch_check_max / 2 * random / UINT16_MAX;
}

Instant SwitchWatch::poll_timeout(const Node& lane, const Node& node) const noexcept {
  const Instant check = lane.ready() && awaited_ == Awaited::none ? due() : Instant::max();
  return news_ && node.ready() ? earlier(check, next_doubt_) : check;
}

// ---- What it hears -----------------------------------------------------------------------------------------------

bool SwitchWatch::overhear(Session& session, const RespValue& value) noexcept {
  if (!session.ready()) return false;
  if (is_push(value, "message", 3)) {
    if (value.at(1).is(RespKind::bulk) && value.at(2).is(RespKind::bulk)) hear(value.at(1).text(), value.at(2).text());
    return true;
  }
  if (is_push(value, "pmessage", 4)) return true;
  const bool refused = value.is(RespKind::error);
  bool good = true;
  switch (awaited_) {
    case Awaited::none: break;
    case Awaited::farewell:
      good = is_answer(value, "unsubscribe", channel);
      hearing_ = false;
      awaited_ = early_ ? Awaited::early_farewell : Awaited::address;
      break;
    case Awaited::early_farewell:
      good = is_answer(value, "unsubscribe", early_channel);
      early_ = false;
      awaited_ = Awaited::address;
      break;
    case Awaited::address: take_address(session, value); break;
    // Who is refused, whatever the reason, asks from time to time. A connection that ended by it would be made anew at once.
    case Awaited::subscription:
      hearing_ = is_answer(value, "subscribe", channel);
      good = hearing_ || refused;
      awaited_ = Awaited::early_subscription;
      break;
    case Awaited::early_subscription:
      early_ = is_answer(value, "subscribe", early_channel);
      good = early_ || refused;
      awaited_ = Awaited::none;
      break;
  }
  if (!good) session.fail_shape();
  return false;
}

void SwitchWatch::hear(ByteView said_on, ByteView text) noexcept {
  ByteView host;
  std::uint16_t port = 0;
  if (said_on == channel && read_message(text, name(), host, port))
    note(host, port);  // Also of where it was: it may have gone and come back.
  hurried_ = hurried_ || said_on == early_channel;
}

void SwitchWatch::take_address(Session& session, const RespValue& value) noexcept {
  ByteView host;
  std::uint16_t port = 0;
  const Status status = MasterSearch::read_address(value, host, port);
  // One that goes on saying what nobody else says is not news each time.
  if (status == Status::ok && !(host == ByteView(host_, host_size_) && port == port_)) note(host, port);
  if (status != Status::ok)
    session.fail(status, value.is(RespKind::error) ? value.text() : "the sentinel names no master any more");
  awaited_ = Awaited::subscription;
}

// The name of a service may have spaces.
bool SwitchWatch::read_message(ByteView message, ByteView service, ByteView& host, std::uint16_t& port) noexcept {
  if (!message.begins_with(service)) return false;
  ByteView rest = message.slice(service.size());
  ByteView words[4];  // What stands between the spaces: nothing, the old host, its port, the new host.
  for (ByteView& word : words)
    if (!take_word(rest, word)) return false;
  std::uint16_t old_port = 0;
  if (!words[0].empty() || words[1].empty() || !read_port(words[2], old_port) || !is_host(words[3])) return false;
  if (!read_port(rest, port)) return false;
  host = words[3];
  return true;
}

void SwitchWatch::note(ByteView host, std::uint16_t port) noexcept {
  std::memcpy(host_, host.data(), host.size());
  host_size_ = static_cast<std::uint8_t>(host.size());
  port_ = port;
  news_ = true;
}

bool SwitchWatch::doubt(Node& lane, Node& node, Instant now, std::uint16_t random) noexcept {
  if (!news_ || !node.ready()) return false;
  const KeptConfig& config = node.config();
  if (config.host.view() == ByteView(host_, host_size_) && config.port == port_) {
    news_ = false;
    return false;
  }
  if (now < next_doubt_) return false;
  news_ = false;
  next_doubt_ = now + switch_pause_min + switch_pause_min * random / UINT16_MAX;
  HostSearch::prefer(node, HostSearch::listed_of(lane));
  node.session().fail(Status::read_only, "a sentinel says that another server is the master");
  return true;
}

}  // namespace holdfast

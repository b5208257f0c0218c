// SPDX-License-Identifier: MIT
#include "holdfast/core/master_search.hpp"

#include <cstring>
#include <new>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/wait_plan.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/server_error.hpp"
#include "holdfast/sentinels.hpp"
#include "place_number.hpp"
#include "text_writer.hpp"

namespace holdfast {

namespace {

constexpr std::uint64_t port_max = 65535;

// Letters, digits and what names and literal addresses are made of. It is dialled and printed.
bool is_host(ByteView host) noexcept {
  if (host.empty() || host.size() > sentinel_host_size_max) return false;
  for (const char byte : host) {
    const int letter = (byte | 0x20) - 'a';
    const bool plain = (letter >= 0 && letter < 26) || (byte >= '0' && byte <= '9');
    if (!plain && byte != '.' && byte != '-' && byte != '_' && byte != ':' && byte != '%') return false;
  }
  return true;
}

// Nobody was there, or nobody said anything.
bool is_silence(Status status) noexcept {
  return status == Status::connect_failed || status == Status::name_not_resolved || status == Status::timed_out ||
         status == Status::transport_closed || status == Status::not_connected || status == Status::system_error;
}

}  // namespace

// ---- The configuration -------------------------------------------------------------------------------------------

std::size_t SentinelConfig::count() const noexcept {
  std::size_t commas = 0;
  for (const char byte : hosts.view()) commas += byte == ',' ? 1 : 0;
  return hosts.empty() ? 0 : commas + 1;
}

bool SentinelConfig::at(std::size_t index, ByteView& host, std::uint16_t& port) const noexcept {
  ByteView rest = hosts.view();
  for (; index != 0; --index) {
    const std::size_t comma = rest.find(",");
    if (comma == SIZE_MAX) return false;
    rest = rest.slice(comma + 1);
  }
  rest = rest.slice(0, rest.find(","));
  const bool bracketed = rest.begins_with("[");
  const std::size_t end = rest.find(bracketed ? "]" : ":");
  ByteView name = rest.slice(bracketed ? 1 : 0, bracketed ? end - 1 : end);
  if (bracketed && end == SIZE_MAX) return false;
  rest = end == SIZE_MAX ? ByteView() : rest.slice(bracketed ? end + 1 : end);
  std::uint64_t number = sentinel_port_default;
  if (!rest.empty() && (rest[0] != ':' || !read_decimal(rest.slice(1), port_max, number) || number == 0)) return false;
  if (!is_host(name) || (name.find(":") != SIZE_MAX) != bracketed) return false;
  host = name;
  port = static_cast<std::uint16_t>(number);
  return true;
}

std::uint64_t MasterSearch::number(const SentinelConfig& config) noexcept {
  std::uint64_t sum = PlaceNumber().add(config.service.view()).add('\2').get();
  ByteView host;
  std::uint16_t port = 0;
  for (std::size_t index = 0; config.at(index, host, port); ++index) sum += PlaceNumber().add(host, port).get();
  return sum != 0 ? sum : 1;
}

ConfigProblem MasterSearch::validate(const ClientConfig& config) noexcept {
  if (!config.socket_path.empty()) return {"sentinels", "a Unix socket has none"};
  return holdfast::validate(config.sentinels->config());
}

ConfigProblem validate(const SentinelConfig& config) noexcept {
  constexpr const char* too_long = "it is longer than limits.hpp allows";
  if (config.hosts.too_long()) return {"sentinels.hosts", too_long};
  const std::size_t count = config.count();
  if (count == 0 || count > sentinels_max) return {"sentinels.hosts", "it must name 1 to 9 sentinels"};
  for (std::size_t index = 0; index < count; ++index) {
    ByteView host;
    std::uint16_t port = 0;
    if (!config.at(index, host, port)) return {"sentinels.hosts", "it must be host[:port], and others after commas"};
  }
  if (config.service.too_long()) return {"sentinels.service", too_long};
  if (config.service.empty()) return {"sentinels.service", "it is empty"};
  if (config.user.too_long()) return {"sentinels.user", too_long};
  if (config.password.too_long()) return {"sentinels.password", too_long};
  if (!config.user.empty() && config.password.empty()) return {"sentinels.user", "it needs a password"};
  return {};
}

// ---- What answers mean -------------------------------------------------------------------------------------------

Status MasterSearch::read_address(const RespValue& value, ByteView& host, std::uint16_t& port) noexcept {
  if (value.is(RespKind::error)) return classify_error(value.text()).status;
  if (value.is_null()) return Status::unknown_service;
  if (!value.is(RespKind::array) || value.count() != 2) return Status::protocol_error;
  const RespValue& name = value.at(0);
  const RespValue& number = value.at(1);
  std::uint64_t read = 0;
  if (!name.is(RespKind::bulk) || !number.is(RespKind::bulk) || !is_host(name.text()) ||
      !read_decimal(number.text(), port_max, read) || read == 0)
    return Status::protocol_error;
  host = name.text();
  port = static_cast<std::uint16_t>(read);
  return Status::ok;
}

Status MasterSearch::read_role(const RespValue& value) noexcept {
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

// ---- The handshake -----------------------------------------------------------------------------------------------

constinit const Interview::Table MasterSearch::interview = {ask, judge, doubt};

bool MasterSearch::ask(Interview& self, CommandLine& line) noexcept {
  const auto& search = static_cast<const MasterSearch&>(self);
  if (search.stage_ != Stage::sentinel) return false;
  line.add("SENTINEL").add("GET-MASTER-ADDR-BY-NAME").add(search.node_->config().sentinels->config().service.view());
  return true;
}

// A sentinel's connection ends with its answer.
Status MasterSearch::judge(Interview& self, const RespValue& value) noexcept {
  auto& search = static_cast<MasterSearch&>(self);
  search.judged_ = !value.is(RespKind::error);
  if (search.stage_ != Stage::sentinel) return read_role(value);
  ByteView host;
  std::uint16_t port = 0;
  const Status status = read_address(value, host, port);
  if (status != Status::ok) return status;
  search.take_host(host, port);
  search.stage_ = Stage::named;
  return Status::not_connected;
}

// Who follows a master has lost it.
void MasterSearch::doubt(Session& session, Status status) noexcept {
  if (status != Status::read_only && status != Status::stale_replica) return;
  char space[failure_text_size_max];
  session.fail(status, TextWriter({space, sizeof space}).add(session.failure_text()).view());
}

// ---- An attempt --------------------------------------------------------------------------------------------------

static_assert(sizeof(MasterSearch) + alignof(MasterSearch) - 1 <= master_search_size, "a search must fit in its place");

// In the storage of the node's texts, where the host would stand: it comes first.
void* MasterSearch::place_in(Node& node) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(node.texts_.data);
  return node.texts_.data + (-begin & (alignof(MasterSearch) - 1));
}

MasterSearch::MasterSearch(Node& node) noexcept : node_(&node) {
  table = &interview;
  take_host({}, 0);
}

void MasterSearch::start(Node& node) noexcept {
  new (place_in(node)) MasterSearch(node);
  node.dialer_.start(node.config_.connect_timeout, 0, true);
}

void MasterSearch::steer(Node& node, Instant now, std::uint16_t random) noexcept {
  static_cast<MasterSearch*>(place_in(node))->steer(now, random);
}

void MasterSearch::steer(Instant now, std::uint16_t random) noexcept {
  Dialer& dialer = node_->dialer();
  Instant end = dialer.attempt_deadline() + rest_;  // The attempt's.
  if (dialer.due(now)) {
    end = begin(now);
  } else if (dialer.state() != DialState::elsewhere) {
    return;
  } else if (stage_ == Stage::named) {
    judged_ = false;
    stage_ = Stage::master;
    if (host_number() != silent_master_) {
      configure_session();
      return go_to(now, end, left_ + std::size_t{1});
    }
  } else {
    note_failure();
    judged_ = false;
    if (dialer.go_on_here(now)) return node_->session().clear_failure_text();
    if (stage_ == Stage::master && is_silence(dialer.failure())) silent_master_ = host_number();
  }
  if (left_ == 0 || now >= end) return give_up(now, random);
  ask_next(now, end, random);
}

Instant MasterSearch::begin(Instant now) noexcept {
  const SentinelConfig& config = node_->config().sentinels->config();
  const auto count = static_cast<std::uint8_t>(config.count());
  failure_ = passing_ = Status::ok;
  silent_master_ = 0;
  left_ = count;
  next_ = sentinel_ < count ? sentinel_ : std::uint8_t{0};
  return now + node_->config().connect_timeout;
}

void MasterSearch::note_failure() noexcept {
  const Status status = node_->dialer().failure();
  const bool telling = failure_ == Status::ok || !is_silence(status) || is_silence(failure_);
  if (telling) fail(status);
  // Of these, too, who answered tells more.
  if (worth_waiting(status) && (passing_ == Status::ok || telling)) passing_ = status;
}

void MasterSearch::fail(Status status) noexcept {
  failure_ = status;
  failed_at_ = stage_;
  failed_sentinel_ = sentinel_;
  failed_judged_ = judged_;
}

// For who is asked at this stage.
void MasterSearch::configure_session() noexcept {
  const KeptConfig& config = node_->config();
  SessionSettings settings = {
      .client_name = config.client_name.view(), .stall_timeout = config.stall_timeout, .interview = this};
  if (stage_ == Stage::sentinel) {
    settings.user = config.sentinels->config().user.view();
    settings.password = config.sentinels->config().password.view();
  } else {
    settings.user = config.user.view();
    settings.password = config.password.view();
    settings.database = config.database;
    settings.native_delete = config.native_delete;
  }
  node_->session().configure(settings);
}

void MasterSearch::ask_next(Instant now, Instant end, std::uint16_t random) noexcept {
  const SentinelConfig& config = node_->config().sentinels->config();
  sentinel_ = next_;
  next_ = next_ + 1U < config.count() ? static_cast<std::uint8_t>(next_ + 1) : std::uint8_t{0};
  --left_;
  stage_ = Stage::sentinel;
  judged_ = false;
  ByteView host;
  std::uint16_t port = 0;
  (void)config.at(sentinel_, host, port);
  constexpr std::size_t beside = 200;  // The names of the commands, and what stands around each argument.
  const std::size_t question = config.user.view().size() + config.password.view().size() +
                               config.service.view().size() + node_->config().client_name.view().size() + beside;
  if (question > node_->session().request_size()) {
    fail(Status::buffer_too_small);
    failed_judged_ = true;
    left_ = 0;  // It is so for all of them.
    return give_up(now, random);
  }
  take_host(host, port);
  configure_session();
  go_to(now, end, left_ + std::size_t{2});
}

std::uint32_t MasterSearch::host_number() const noexcept {
  const auto number =
      static_cast<std::uint32_t>(PlaceNumber().add(node_->config().host.view(), node_->config().port).get());
  return number != 0 ? number : 1;
}

void MasterSearch::take_host(ByteView host, std::uint16_t port) noexcept {
  if (!host.empty()) std::memcpy(host_, host.data(), host.size());
  host_[host.size()] = '\0';
  node_->config_.host = KeptBytes(ByteView(host_, host.size()));
  node_->config_.port = port;
}

// As the configuration says now. What is left of the time is shared with the hosts that may follow: a silent one leaves time for
// them. No resolver is asked for a literal address.
void MasterSearch::go_to(Instant now, Instant end, std::size_t hosts) noexcept {
  const KeptConfig& config = node_->config();
  Duration part = (end - now) / static_cast<std::int64_t>(hosts);
  if (part < address_timeout_min) part = address_timeout_min;
  const Instant deadline = earlier(now + part, end);
  rest_ = end - deadline;
  node_->session().clear_failure_text();
  const bool known = config.sentinels->table().literal(config.host.c_str(), config.port, node_->addresses_[0]);
  node_->dialer().go_to(known, now, deadline);
}

// In words, and whose failure it is.
void MasterSearch::give_up(Instant now, std::uint16_t random) noexcept {
  const SentinelConfig& config = node_->config().sentinels->config();
  Session& session = node_->session();
  // The server's own words, or the session's, are those of the last host.
  const bool last = failed_sentinel_ == sentinel_ && failed_at_ == stage_;
  ByteView words;
  if (last && !failed_judged_) words = session.failure_text();
  if (words.empty()) words = ByteView(std::string_view(to_string(failure_)));
  if (failed_judged_ && failure_ == Status::unknown_service) words = "it does not know the service ";
  if (failed_judged_ && failure_ == Status::read_only) words = "it is a replica";
  if (failed_judged_ && failure_ == Status::no_permission) words = "it does not tell its role: may its user run INFO?";
  if (failure_ == Status::buffer_too_small) words = "its host and credentials do not fit into the client's buffers";
  if (failed_judged_ && failure_ == Status::protocol_error)
    words = failed_at_ == Stage::master ? "it does not tell who it is" : "its answer is no host and port";
  char space[failure_text_size_max];
  TextWriter text({space, sizeof space});
  text.add(words);
  if (failed_judged_ && failure_ == Status::unknown_service) text.add(config.service.view());
  text.add(": ");
  if (failed_at_ == Stage::master && stage_ == Stage::master &&
      (last || (is_silence(failure_) && host_number() == silent_master_)))
    text.add_address(node_->config().host.view(), node_->config().port).add(", named by ");
  else if (failed_at_ == Stage::master)
    text.add("the server that was named by ");
  ByteView host;
  std::uint16_t port = 0;
  (void)config.at(failed_sentinel_, host, port);
  session.explain(text.add("sentinel ").add_address(host, port).view());
  // Who was not asked may know better.
  if (passing_ == Status::ok && left_ != 0) passing_ = Status::timed_out;
  sentinel_ = next_;  // One that takes all the time must not be the only one that is asked.
  node_->dialer().give_up(passing_ != Status::ok ? passing_ : failure_, now, random);
}

}  // namespace holdfast

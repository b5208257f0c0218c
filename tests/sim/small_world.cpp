// SPDX-License-Identifier: MIT
#include "small_world.hpp"

#include <algorithm>
#include <cstdlib>

#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include "printers.hpp"
#include "resp_request_parser.hpp"
#include "wire_pieces.hpp"

namespace holdfast::sim {

using holdfast::testing::receive_piece;
using holdfast::testing::transmit_piece;

// ---- Servers

Servers::Servers(std::size_t count, ModelRedis::Settings settings) : deaths(count) {
  settings.now = small_world_wall_start;
  for (std::size_t index = 0; index < count; ++index) {
    settings.run_id = std::string(40, static_cast<char>('a' + index));
    models.push_back(std::make_unique<ModelRedis>(settings));
  }
}

std::optional<std::string> Servers::answer_wait(std::size_t /*server*/, ConnectionId /*connection*/,
                                                const std::vector<std::string_view>& /*words*/, bool /*over*/) {
  return ":0\r\n";
}

// ---- Wire

Wire::Wire(Servers& servers, Host& host, Random& random, const ClientConfig& config)
    : servers_(servers), host_(host), random_(random) {
  node.configure(config, nullptr);
}

void Wire::dial(Instant now) {
  now_ = now;
  for (;;) switch (node.poll_dial(now_, number())) {
      case DialAction::none: return;
      case DialAction::resolve: node.handle_addresses(nullptr, 0, now_, number()); break;  // All are literal.
      case DialAction::hang_up: break;
      case DialAction::dial: {
        const std::size_t server = servers_.at(node.config().port);
        if (server == servers_.models.size() || random_.below(20) == 0) {
          node.dialer().handle_dial_failed(Status::connect_failed, now_, number());
          break;
        }
        server_ = server;
        connection_ = servers_.models[server]->accept();
        connected_ = true;
        deaths_ = servers_.deaths[server];
        node.handle_connected(now_);
        return;
      }
    }
}

void Wire::receive(Instant now) {
  now_ = now;
  take(random_.below(4) == 0 ? random_.below(40) : SIZE_MAX);
  node.session().handle_timeout(now_);
  host_.take_replies(*this);
}

void Wire::leave() {
  while (connected_ && node.open()) {
    if (node.session().wants_look()) {
      take(SIZE_MAX);
      if (!connected_ || node.session().state() == SessionState::failed) break;
      node.session().handle_drained();
    }
    std::size_t limit = SIZE_MAX;
    if (!transmit_piece(node.session(), now_, up_, limit)) break;
  }
  drop_failed();
}

void Wire::drop_failed() {
  if (node.session().state() == SessionState::failed) drop();
}

void Wire::cut() {
  if (!connected_) return;
  up_.resize(random_.below(up_.size() + 1));
  serve();
  drop();
}

void Wire::serve() {
  if (connected_ && servers_.deaths[server_] != deaths_) return drop();
  while (connected_ && !up_.empty()) {
    std::vector<std::string_view> words;
    std::size_t size = 0;
    std::string refusal;
    if (read_request(up_, true, words, size, refusal) != RequestOutcome::request) return;
    const std::string request = up_.substr(0, size);
    (void)read_request(request, true, words, size, refusal);
    if (words[0] == "WAIT") {
      if (waits_until_ == Instant())
        waits_until_ = now_ + std::chrono::milliseconds(std::atoi(std::string(words[2]).c_str()));
      const std::optional<std::string> reply = servers_.answer_wait(server_, connection_, words, now_ >= waits_until_);
      if (!reply) return;
      down_ += *reply;
      waits_until_ = Instant();
    } else {
      down_ += servers_.answer(server_, connection_, request, words);
    }
    up_.erase(0, size);
  }
}

void Wire::take(std::size_t most) {
  std::string_view bytes = std::string_view(down_).substr(0, most);
  const std::size_t whole = bytes.size();
  while (connected_ && receive_piece(node.session(), now_, bytes)) {
    node.handle_used(now_);
    host_.take_replies(*this);
  }
  if (connected_) down_.erase(0, whole - bytes.size());
}

void Wire::drop() {
  if (connected_) servers_.models[server_]->receive_end(connection_);
  connected_ = false;
  waits_until_ = Instant();
  up_.clear();
  down_.clear();
  if (node.open()) {
    node.handle_closed(now_, number());
    host_.take_replies(*this);
  }
}

// ---- Program

Program::Program(Servers& servers, Topology& topology, std::size_t index, const LockKind& kind, Random& random,
                 const Habits& habits)
    : index_(index), random_(random), acks_(habits.acks), machine_(kind) {
  ClientConfig config;
  config.topology = &topology;
  config.client_name = "";
  config.request_timeout = 300ms;
  config.connect_timeout = 500ms;
  config.acks = 1;
  config.acks_timeout = 40ms;
  DOCTEST_REQUIRE_FALSE(validate(config).found());
  main_.emplace(servers, *this, random, config);
  if (acks_) lane_.emplace(servers, *this, random, config);
  settings_ = {.request_timeout = 300ms, .connect_timeout = 500ms, .max_poll = 200ms};
  if (acks_ && !habits.ignores_acks) settings_.acks_wait = acks_wait_of(config);
  DOCTEST_REQUIRE_EQ(Status::ok, machine_.configure(Key(small_world_name), {.lease = small_world_lease}));
}

void Program::turn(Instant now) {
  now_ = now;
  Node& node = main_->node;
  main_->dial(now);
  main_->receive(now);
  machine_.handle_timeout(now_);
  settle();
  (void)node.handle_ready(now_);
  main_->drop_failed();
  // A renewal is confirmed by nobody, so a master that dies may have lost it: proto/topology.md.
  if (!acks_ && !task_ && machine_.held(now_) && machine_.renewal_due() <= now_ &&
      node.session().has_room(false, request_size_max) && machine_.renew(now_, now_ + 300ms) == Status::ok)
    settle();
  if (lane_) move_lane();
  work();
  main_->leave();
  if (lane_) {
    requests_.work(lane_->node, now_);
    lane_->leave();
  }
}

void Program::cut() {
  if (lane_ && random_.below(2) == 0) return lane_->cut();
  main_->cut();
}

void Program::serve() {
  main_->serve();
  if (lane_) lane_->serve();
}

bool Program::settled() const {
  // A posted release that was repeated is the session's.
  const bool waits = machine_.waiting() && machine_.state() != LockState::releasing;
  return !task_ && !machine_.held(now_) && !waits && main_->node.session().compensations_pending() == 0;
}

void Program::take_replies(Wire& wire) {
  Reply reply;
  while (wire.node.session().poll_reply(reply, now_)) {
    if (lane_ && &wire == &*lane_) {
      if (!requests_.handle_reply(reply, wire.node.config()))
        wire.node.session().fail(Status::protocol_error, "a reply of another shape than asked for");
      continue;
    }
    if (task_) (void)task_->note(reply);
    if (reply.tag.operation != Operation::query && reply.tag.operation != Operation::compensate)
      machine_.handle_reply(reply, now_);
    settle();
  }
}

void Program::move_lane() {
  lane_->dial(now_);
  lane_->receive(now_);
  (void)lane_->node.handle_ready(now_);
  lane_->drop_failed();
  requests_.work(lane_->node, now_);
  DOCTEST_REQUIRE(requests_.invariants());
  while (requests_.poll_told() != nullptr) {}
}

void Program::settle() {
  Node& node = main_->node;
  while (machine_.has_output()) {
    if (machine_.wants_request()) node.submit(machine_, this, now_);
    const bool paid = NodeTask::pay(machine_, node, this);
    for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event()) {
      if (event == LockEvent::lost) ++losses;
      if (event == LockEvent::protocol_doubt)
        node.session().fail(Status::protocol_error, "a reply of another shape than asked for");
    }
    if (!paid) return;
  }
}

void Program::work() {
  if (!task_) begin();
  Session& session = main_->node.session();
  while (task_) {
    TaskFacts facts = task_->facts(now_);
    facts.room = session.has_room(true, request_size_max) && session.may_compensate();
    facts.kept = true;
    LockTask& life = task_->life();
    switch (life.step(facts)) {
      case TaskAct::sleep: return;
      case TaskAct::attempt: break;
      case TaskAct::ask: {
        const Status status = task_->ask(token_now(), now_);
        task_->submit(false, now_);
        life.handle_asked(status);
        settle();
        break;
      }
      case TaskAct::listen: task_->plan(now_, 0, static_cast<std::uint16_t>(random_.below(UINT16_MAX + 1))); break;
      case TaskAct::confirm: requests_.enter(*task_); break;
      case TaskAct::keep: life.handle_kept(Status::ok); break;
      case TaskAct::give_up:
        session.give_up(this, life.why_given_up(), now_);
        take_replies(*main_);
        break;
      case TaskAct::let_go:
        ++refusals;
        requests_.leave(*task_);
        (void)machine_.release(session.identity().native_delete, true, now_, now_ + 300ms);
        (void)machine_.forget_loss();
        settle();
        break;
      case TaskAct::over:
        if (life.call() == Call::acquire && life.status() == Status::ok) {
          ++grants;
          until_ = now_ + std::chrono::milliseconds(random_.between(0, 3999));
        }
        task_.reset();
        return;
    }
  }
}

void Program::begin() {
  if (machine_.state() == LockState::lost) (void)machine_.forget_loss();
  if (machine_.state() == LockState::idle) {
    if (rests) return;
    task_.emplace(machine_, main_->node, this);
    const Instant deadline = now_ + std::chrono::milliseconds(random_.below(3) == 0 ? 0 : random_.between(0, 4999));
    task_->begin_acquire(now_, deadline, deadline + 800ms, settings_);
  } else if (!machine_.held(now_) || now_ >= until_ || rests) {
    task_.emplace(machine_, main_->node, this);
    task_->begin(Call::release, now_ + 300ms, settings_);
  }
}

Token Program::token_now() {
  std::string text;
  if (machine_.kind().token == TokenSource::random) {
    for (int digit = 0; digit < 32; ++digit) text += "0123456789abcdef"[random_.below(16)];
  } else {
    text = "00000000-0000-4000-8000-00000000000" + std::to_string(index_) + ":" + std::to_string(++ordinal_);
  }
  return Token(ByteView(text));
}

// ---- What is looked at

bool holds(const Entry* entry, const std::string& token) {
  if (entry == nullptr) return false;
  if (const auto* text = std::get_if<StringValue>(&entry->value)) return *text == token;
  const auto* hash = std::get_if<HashValue>(&entry->value);
  return hash != nullptr && hash->find(token) != nullptr;
}

bool exclude_each_other(const std::vector<std::unique_ptr<Program>>& programs, const Servers& servers, Instant now) {
  const Program* holder = nullptr;
  for (const auto& candidate : programs) {
    if (!candidate->held(now)) continue;
    if (holder != nullptr || !holds(servers.lock(), candidate->token())) return false;
    holder = candidate.get();
  }
  return true;
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace holdfast::sim

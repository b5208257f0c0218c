// SPDX-License-Identifier: MIT
#include "lock_service.hpp"

#include <cstring>

#include "board.hpp"
#include "holdfast/proto/decimal.hpp"

namespace board {

using namespace holdfast;

// ---- Random bytes ------------------------------------------------------------------------------------------------

// Of the hash kinds a token is `uuid:ordinal`: the client's, drawn once, and a number that it uses once.
Status RandomSource::draw_token(TokenSource source, Token& token) {
  unsigned char random[token_random_size];
  if (source == TokenSource::random || ordinal_ == 0) {
    if (!draw_random(random, sizeof random)) return Status::no_entropy;
    if (source == TokenSource::random) {
      token = Token::from_random(random);
      return Status::ok;
    }
    random[6] = static_cast<unsigned char>((random[6] & 0x0f) | 0x40);  // Version 4: of random bytes.
    random[8] = static_cast<unsigned char>((random[8] & 0x3f) | 0x80);
    char* at = client_id_;
    for (std::size_t index = 0; index < sizeof random; ++index) {
      if (index == 4 || index == 6 || index == 8 || index == 10) *at++ = '-';
      *at++ = "0123456789abcdef"[random[index] >> 4];
      *at++ = "0123456789abcdef"[random[index] & 0x0f];
    }
  }
  char field[token_size_max];
  std::memcpy(field, client_id_, sizeof client_id_);
  field[sizeof client_id_] = ':';
  const char* const end = write_decimal(field + sizeof client_id_ + 1, ++ordinal_);
  token = Token({field, static_cast<std::size_t>(end - field)});
  return Status::ok;
}

// The longest pause, where none can be drawn.
std::uint16_t RandomSource::number() {
  std::uint16_t number = 0;
  return draw_random(&number, sizeof number) ? number : UINT16_MAX;
}

// ---- Commands ----------------------------------------------------------------------------------------------------

LockService::LockService(const Storage& storage, Network& network, const Listener& listener, Ear* ear)
    : node_(storage.node),
      machines_(storage.machines),
      machine_count_(storage.machine_count),
      network_(network),
      listener_(listener),
      ear_(ear) {}

void LockService::connect(const Endpoint& server, const ClientConfig& config) {
  server_ = server;
  now_ = board::now();
  constexpr SocketAddress unused{};  // lwIP has an address type of its own: server_.
  node_.configure(config, &unused);
  node_.dialer().set_pause_max(reconnect_kept_max);
  settings_ = {.request_timeout = config.request_timeout,
               .connect_timeout = config.connect_timeout,
               .max_poll = config.max_poll};
}

void LockService::acquire(LockMachine& machine, Duration wait) {
  now_ = board::now();
  machine_ = &machine;
  task_.emplace(machine, node_, &machine);
  const Instant deadline = now_ + wait;
  Duration longest = settings_.request_timeout;
  if (wait == Duration::zero()) longest += settings_.connect_timeout;
  task_->begin_acquire(now_, deadline, deadline + longest, settings_);
}

void LockService::release(LockMachine& machine) {
  now_ = board::now();
  machine_ = &machine;
  task_.emplace(machine, node_, &machine);
  task_->begin(Call::release, now_ + settings_.request_timeout, settings_);
}

// ---- A turn ------------------------------------------------------------------------------------------------------

// What has arrived is read before any deadline is judged.
void LockService::turn() {
  now_ = board::now();
  dial();
  receive();
  node_.session().handle_timeout(now_);
  dispatch();
  for (std::size_t at = 0; at < machine_count_; ++at) {
    machines_[at]->handle_timeout(now_);
    settle(*machines_[at]);
  }
  if (node_.handle_ready(now_)) listener_.hear_connection(true, Status::ok, {});
  if (ear_ != nullptr) ear_->work(now_);
  renew_due();
  step();
  look_and_transmit();
  if (node_.session().state() == SessionState::failed) close();
}

void LockService::dial() {
  if (node_.dialling() && link_.state() == TcpLink::State::open) {
    node_.handle_connected(now_);
    return;
  }
  if (node_.dialling() && link_.state() == TcpLink::State::ended) {
    link_.close();
    node_.dialer().handle_dial_failed(Status::connect_failed, now_, RandomSource::number());
  }
  while (now_ >= node_.dialer().poll_timeout()) switch (node_.poll_dial(now_, RandomSource::number())) {
      case DialAction::none:
      case DialAction::resolve: return;  // The address is known.
      case DialAction::hang_up: link_.close(); break;
      case DialAction::dial:
        if (!link_.dial(server_))
          node_.dialer().handle_dial_failed(Status::connect_failed, now_, RandomSource::number());
        break;
    }
}

// ---- Bytes -------------------------------------------------------------------------------------------------------

void LockService::receive() {
  while (node_.open()) {
    const MutableBytes space = node_.session().receive_space();
    if (space.size == 0) return;  // It has failed.
    const std::ptrdiff_t count = link_.receive(space);
    if (count < 0) return close();
    if (count == 0) return node_.session().handle_drained();
    now_ = board::now();
    node_.handle_used(now_);
    node_.session().handle_received(static_cast<std::size_t>(count), now_);
    dispatch();
  }
}

// What lies in the chip is no answer to what leaves now, so it is looked there, too.
void LockService::look_and_transmit() {
  while (node_.open()) {
    if (node_.session().wants_look()) {
      (void)network_.poll();
      receive();
      if (!node_.open()) return;
    }
    const ByteView bytes = node_.session().poll_transmit(now_);
    if (bytes.empty()) return;
    const std::size_t count = link_.send(bytes);
    if (count == 0) return;  // The rest goes out in another turn.
    node_.session().handle_transmitted(count);
  }
}

void LockService::close() {
  link_.close();
  const bool was_ready = node_.ready();
  node_.handle_closed(now_, RandomSource::number());
  dispatch();  // Each request in flight has its outcome now. Holds go on as long as they are valid.
  if (was_ready) listener_.hear_connection(false, node_.session().failure(), node_.session().failure_text());
}

void LockService::dispatch() {
  Reply reply;
  while (node_.session().poll_reply(reply, now_)) take(reply);
}

// ---- Between session, machines and task --------------------------------------------------------------------------

void LockService::take(const Reply& reply) {
  LockMachine& machine = *static_cast<LockMachine*>(reply.tag.requester);
  if (task_.has_value() && machine_ == &machine && task_->note(reply))
    task_->plan_anew(now_, confirmed(), RandomSource::number());
  if (reply.tag.operation == Operation::query) return;
  machine.handle_reply(reply, now_);
  settle(machine);
}

// After every input: what the machine has to say.
void LockService::settle(LockMachine& machine) {
  while (machine.has_output()) {
    if (machine.wants_request()) node_.submit(machine, &machine, now_);
    const bool paid = NodeTask::pay(machine, node_, &machine);
    for (LockEvent event = machine.poll_event(); event != LockEvent::none; event = machine.poll_event()) {
      if (event == LockEvent::protocol_doubt)
        node_.session().fail(Status::protocol_error, "a reply of another shape than asked for");
      listener_.hear(machine, event);
    }
    if (!paid) return;  // The next turn asks again.
  }
}

// A renewal that finds no room would be put off: it waits for the next turn instead.
void LockService::renew_due() {
  for (std::size_t at = 0; at < machine_count_; ++at) {
    LockMachine& machine = *machines_[at];
    const bool leaves =
        !node_.dialer().connecting() && (!node_.session().ready() || node_.session().has_room(false, request_size_max));
    if (!leaves || !machine.held(now_) || machine.renewal_due() > now_) continue;
    if (task_.has_value() && machine_ == &machine) continue;  // The call asks by itself.
    (void)machine.renew(now_, now_ + settings_.request_timeout);
    settle(machine);  // Without a connection, too: the machine is told and tries again.
  }
}

TaskFacts LockService::facts() const {
  TaskFacts facts = task_->facts(now_);
  facts.room = task_->life().call() != Call::acquire || node_.session().may_compensate();
  facts.kept = true;  // Every turn renews.
  if (ear_ == nullptr) return facts;
  facts.listening = ear_->listening();
  facts.woken = ear_->woken();
  facts.confirmed = confirmed();
  return facts;
}

void LockService::step() {
  while (task_.has_value()) {
    LockTask& life = task_->life();
    if (ear_ != nullptr && ear_->take_refusal()) task_->plan_to_poll(now_, RandomSource::number());
    switch (life.step(facts())) {
      case TaskAct::sleep: return;
      case TaskAct::attempt: ear_->begin_try(); break;
      case TaskAct::ask: ask(); break;
      case TaskAct::listen:
        if (ear_ != nullptr && life.busy() && machine().kind().announcement != nullptr) ear_->listen(machine(), now_);
        task_->plan(now_, confirmed(), RandomSource::number());
        break;
      case TaskAct::confirm: break;  // Of one node whose replicas are counted.
      case TaskAct::keep: life.handle_kept(Status::ok); break;
      case TaskAct::give_up:
        receive();
        if (task_->waiting()) node_.session().give_up(&machine(), life.why_given_up(), now_);
        dispatch();
        break;
      case TaskAct::let_go: break;  // Of a call that was cancelled: none is here.
      case TaskAct::over:
        status_ = life.status();
        task_.reset();
        if (ear_ != nullptr) ear_->leave(status_ == Status::ok);
        return;
    }
  }
}

void LockService::ask() {
  Token token;
  Status status = Status::ok;
  if (task_->wants_token(now_)) status = random_.draw_token(machine().kind().token, token);
  if (status == Status::ok) status = task_->ask(token, now_);
  task_->submit(ear_ != nullptr && ear_->listening(), now_);
  task_->life().handle_asked(status);
  settle(machine());
}

}  // namespace board

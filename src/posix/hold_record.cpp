// SPDX-License-Identifier: MIT
#include "holdfast/detail/hold_record.hpp"

#include <cerrno>
#include <cstring>

#include "client_hot.hpp"
#include "ear.hpp"
#include "hold_record_hot.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast {

HoldRecord::HoldRecord(ClientBase& client, const LockKind& kind, Key key, const LockTiming& timing,
                       const Ways& ways) noexcept
    : client_(&client), ways_(&ways), incarnation_(client.random_source_.incarnation()), machine_(kind) {
  configuration_ = machine_.configure(key, timing);
  if (kind.request_size > client.session_.request_size()) configuration_ = Status::buffer_too_small;
  automatic_lease_ = timing.automatic();
  choose_keeping();
  ++client_->records_;
}

// In a forked child the hold is the parent's.
bool HoldRecord::orphaned() const noexcept {
  const ClientBase& client = *__atomic_load_n(&client_, __ATOMIC_ACQUIRE);
  return client.forked() || client.random_source_.incarnation() != incarnation_;
}

HoldRecord::~HoldRecord() {
  if (orphaned()) {
    leave_tended();
    --client_->records_;
    return;
  }
  if (machine_.state() == LockState::held || machine_.state() == LockState::at_risk) post_releases(machine_.count());
  leave_tended();
  leave_keeper();
  if (begin() == Status::ok) settle();
  if (machine_.wants_compensation()) client_->session_.count_dropped();
  client_->session_.abandon(this, client_->now_);
  if (client_->branched_) [[unlikely]]
    client_->brancher().table().abandon(*this);
  if (client_->stream_.is_open()) client_->look_and_transmit();
  --client_->records_;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant HoldRecord::valid_until() const noexcept { return orphaned() ? Instant() : keeping_.valid_until(); }

bool HoldRecord::held() const noexcept { return !orphaned() && keeping_.held(); }

Duration HoldRecord::remaining() const noexcept { return orphaned() ? Duration::zero() : keeping_.remaining(); }

bool HoldRecord::at_risk() const noexcept { return !orphaned() && keeping_.at_risk(); }

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

// After every input: what the machine has to say, in its order.
[[gnu::noinline]] void HoldRecord::settle() noexcept {
  if (strays_) return;  // What it has to say is for another server.
  if (machine_.wants_request()) client_->submit(machine_, this, client_->now_);
  if (machine_.wants_compensation()) {
    (void)NodeTask::pay(machine_, *client_, this);
    if (client_->stream_.is_open()) client_->transmit();  // Nothing can be asked before it has gone.
  }
  for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event()) {
    const bool told = !unconfirmed_;  // Nobody knows of such a hold.
    switch (event) {
      case LockEvent::at_risk:
        if (told) keeping_.note(Keeping::News::at_risk);
        break;
      case LockEvent::renewed: keeping_.doubt_is_over(); break;
      case LockEvent::lost:
        if (!told) break;
        if (keeping_.first_loss()) NodeTask::tell_loss(machine_, *client_, keeping_.ending());
        keeping_.note(Keeping::News::lost);
        break;
      case LockEvent::protocol_doubt: client_->session_.fail_shape(); break;
      case LockEvent::none:
      case LockEvent::granted:
      case LockEvent::denied:
      case LockEvent::unclear:
      case LockEvent::released: break;
    }
  }
  publish();
}

// The reply to what was posted, or to its repetition: there a key that is gone proves nothing.
[[gnu::noinline]] void HoldRecord::note_post_outcome(const Reply& reply) noexcept {
  const bool deleted = reply.outcome == Status::ok && reply.value.is_integer(1);
  if (post_outcome_ != Status::outcome_unknown || reply.tag.generation != posted_generation_) return;
  if (reply.tag.operation == Operation::release)
    post_outcome_ = deleted ? Status::ok : reply.outcome == Status::ok ? Status::lock_lost : reply.outcome;
  else if (reply.tag.operation == Operation::compensate && deleted)
    post_outcome_ = Status::ok;
}

inline Status HoldRecord::begin() noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (const Status status = client_->begin(); status != Status::ok) return status;
  client_->make_room();
  const std::uint32_t incarnation = client_->random_source_.incarnation();
  if (incarnation != incarnation_) [[unlikely]] {
    const bool had_hold = machine_.state() != LockState::idle;
    machine_.forget();
    leave_tended();
    keeper_ = nullptr;  // The parent's.
    keeping_.forget_news();
    publish();
    incarnation_ = incarnation;
    if (had_hold) return Status::forked;
  }
  if (client_->branched_) [[unlikely]]
    client_->brancher().table().route(*this);
  return Status::ok;
}

Status HoldRecord::begin_anew() noexcept {
  const Status status = begin();
  if (status != Status::ok && status != Status::forked) return status;
  catch_up();
  return Status::ok;
}

// ---- Calls -------------------------------------------------------------------------------------------------------

inline TaskFacts HoldRecord::facts(const NodeTask& task) const noexcept {
  TaskFacts facts = task.facts(client_->now_);
  if (facts.link == Link::coming) [[unlikely]]
    facts.link_failure = Status::connect_failed;  // If it takes too long.
  facts.cancelled = client_->cancelled();
  const bool answers = task.life().stage() == TaskStage::answer;
  if (answers) facts.kept = !to_be_kept_ && (machine_.count() != 1 || keeping_as_before());
  if (!answers || facts.answer != Status::ok)  // Who is answered with ok asks for nothing more.
    facts.room = task.life().call() != Call::acquire || client_->session_.may_compensate();
  if (const Ear* const ear = client_->ear_; ear != nullptr) [[unlikely]] {
    facts.listening = ear->listening();
    facts.woken = ear->woken();
    facts.confirmed = ear->confirmed();
  }
  return facts;
}

HOLDFAST_FLAT Status HoldRecord::run(NodeTask& task, Ear* ear) noexcept {
  LockTask& life = task.life();
  // Whom another call tells may make calls meanwhile.
  NodeTask* const outer_task = client_->task_;
  Ear* const outer_ear = client_->ear_;
  client_->task_ = &task;
  client_->ear_ = ear;
  client_->look_if_idle();
  for (bool looked = false;;) {
    const TaskAct act = strays_ ? TaskAct::over : life.step(facts(task));
    if (act == TaskAct::sleep) {
      if (life.stage() == TaskStage::answer) [[likely]]
        client_->pump(this);
      else
        rest(task, looked);
      continue;
    }
    looked = false;
    switch (act) {
      case TaskAct::sleep: break;
      case TaskAct::attempt: client_->ear_->begin_try(); break;
      case TaskAct::ask:
        ask(task);
        if (life.stage() == TaskStage::answer) client_->pump(this);
        break;
      case TaskAct::listen: plan(task); break;
      case TaskAct::confirm:
        HOLDFAST_ASSERT(client_->acker_ != nullptr);  // Or connect() had refused the configuration.
        client_->acker_->table().enter(*client_->acker_, task);
        break;
      case TaskAct::keep:
        life.handle_kept(start_keeping());
        if (unconfirmed_) [[unlikely]] {
          unconfirmed_ = false;
          publish();  // It counts from here on.
        }
        break;
      case TaskAct::give_up: give_up(task); break;
      case TaskAct::let_go:
        if (client_->acker_ != nullptr) client_->acker_->table().leave(*client_->acker_, task);
        (void)post_release();
        unconfirmed_ = false;
        break;
      case TaskAct::over:
        client_->task_ = outer_task;
        client_->ear_ = outer_ear;
        return strays_ ? Status::moved : life.status();
    }
  }
}

[[gnu::noinline]] Status HoldRecord::run_through(NodeTask& task, bool listens) noexcept {
  const Status status = listens ? ways_->run_listening(*this, task) : run(task, nullptr);
  return strays_ ? client_->brancher().table().run_on(*this, task, listens) : status;
}

inline void HoldRecord::ask(NodeTask& task) noexcept {
  keeping_.end_release();
  Token token;
  Status status = Status::ok;
  if (task.wants_token(client_->now_)) [[likely]] {
    status = machine_.kind().token != TokenSource::random ? ways_->draw_ordinal(*this, token)
                                                          : client_->random_source_.draw_token(token);
    if (status != Status::ok) client_->error_number_ = errno;
  }
  if (status == Status::ok) status = task.ask(token, client_->now_);
  unconfirmed_ = task.unconfirmed();
  task.submit(client_->listening() != nullptr, client_->now_);
  task.life().handle_asked(status);
  if (machine_.has_output()) [[unlikely]]
    settle();
}

// The lock is another's, or the server is not fit.
[[gnu::noinline]] void HoldRecord::plan(NodeTask& task) noexcept {
  if (client_->ear_ != nullptr && task.life().busy()) client_->ear_->listen(machine_);
  task.plan(client_->now_, confirmed(), client_->random_source_.number());
}

[[gnu::noinline]] void HoldRecord::rest(const NodeTask& task, bool& looked) noexcept {
  const TaskStage stage = task.life().stage();
  const bool confirms = stage == TaskStage::confirm;
  // Its connection comes about between the attempts as well: a grant of a short lease may be over before. Not while the client
  // searches for its server: it would follow each step.
  const bool prepares = stage == TaskStage::retry && client_->session_.ready();
  Acker* const acker = confirms || prepares ? client_->acker_ : nullptr;
  if (looked) {
    Ear* const ear = client_->listening();
    Instant until = task.life().poll_timeout(ear != nullptr && ear->woken(), confirmed());
    until = earlier(until, client_->next_timeout());
    if (acker != nullptr && (confirms || ear == nullptr))
      acker->table().sleep(*acker, until);
    else if (ear != nullptr)
      ear->sleep(until);
    else
      client_->wait_until(until);
  }
  looked = true;
  client_->work();
  if (acker != nullptr) acker->table().work(*acker);
  if (Ear* const ear = client_->listening(); ear != nullptr) ear->work(*client_->task_);
  catch_up();
}

[[gnu::noinline]] void HoldRecord::give_up(const NodeTask& task) noexcept {
  client_->receive_arrived();
  if (!task.waiting()) return;
  client_->session_.give_up(this, task.life().why_given_up(), client_->now_);
  client_->dispatch();
}

inline Status HoldRecord::run_acquire(Instant deadline, Instant end, const LockTiming* timing) noexcept {
  if (timing != nullptr) [[unlikely]]
    ways_->take_timing(*this, *timing);
  NodeTask task(machine_, *client_, this);
  task.begin_acquire(client_->now_, deadline, end, client_->settings_, timing);
  const bool listens = machine_.kind().announcement != nullptr && client_->now_ < deadline;
  const Status status = run_through(task, listens);
  return end_acquire(status);
}

Status HoldRecord::try_acquire(const LockTiming* timing) noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  const KeptConfig& config = client_->config_;
  return run_acquire(client_->now_, client_->now_ + config.connect_timeout + config.request_timeout, timing);
}

Status HoldRecord::acquire(Duration wait, const LockTiming* timing) noexcept {
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (const Status status = begin_anew(); status != Status::ok) return status;
  const Instant deadline = client_->now_ + wait;
  return run_acquire(deadline, deadline + client_->config_.request_timeout, timing);
}

// What was granted when cancel() came is wanted by nobody any more.
inline Status HoldRecord::end_acquire(Status status) noexcept {
  if (status == Status::ok && client_->cancelled()) [[unlikely]] {
    (void)post_release();
    status = Status::cancelled;
  }
  // Judged once: a cancel that comes after that look ends no call that was granted.
  status = client_->conclude(status);
  tell();
  return status;
}

Status HoldRecord::renew(Duration timeout) noexcept {
  if (timeout < timeout_min) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok) return status;
  catch_up();
  NodeTask task(machine_, *client_, this);
  task.begin(Call::renew, client_->now_ + timeout, client_->settings_);
  Status status = run_through(task);
  status = client_->conclude(status);
  tell();
  return status;
}

// cancel() ends its wait, and never keeps it from its work.
Status HoldRecord::release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  client_->signal_->begin_spared();
  if (keeper_ != nullptr) keeper_->sync(*this);
  const bool outermost = machine_.count() <= 1;
  if (outermost) {
    if (keeper_ != nullptr) [[unlikely]]
      leave_keeper();
    keeping_.begin_end();
    keeping_.begin_release();  // Not held from here on, whatever the connection does.
  }
  NodeTask task(machine_, *client_, this);
  task.begin(Call::release, request_deadline(), client_->settings_);
  const Status status = run_through(task);
  keeping_.end_release();
  if (outermost) {
    keeping_.forget_news();  // A loss that only the release found: its status says so.
    keeping_.withdraw();
  }
  client_->signal_->end_spared();
  return status;
}

Status HoldRecord::start_release() noexcept {
  if (machine_.count() > 1) return machine_.step_down(true, client_->now_, request_deadline());
  if (keeper_ != nullptr) [[unlikely]]
    leave_keeper();
  keeping_.begin_end();
  keeping_.forget_news();
  const Status started =
      machine_.release(client_->session_.identity().native_delete, true, client_->now_, request_deadline());
  keeping_.withdraw();  // Not held from here on, whatever the connection does.
  return started;
}

Status HoldRecord::post_release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  if (keeper_ != nullptr) keeper_->sync(*this);
  keeping_.end_release();
  const Status started = start_release();
  if (started == Status::ok) {
    post_outcome_ = Status::outcome_unknown;
    posted_generation_ = machine_.generation();
  }
  settle();
  if (machine_.count() == 0) keeping_.forget_news();
  if (client_->stream_.is_open()) client_->look_and_transmit();
  return started == Status::ok && machine_.wants_compensation() ? Status::too_many_requests : started;
}

Status HoldRecord::forget_loss() noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  const Status status = machine_.forget_loss();
  if (status != Status::ok) return status;
  leave_keeper();
  keeping_.forget_news();
  return status;
}

Status HoldRecord::remaining_on_server(Duration& remaining) noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  if (client_->now_.never()) return Status::system_error;  // The clock cannot be read.
  NodeTask task(machine_, *client_, this);
  task.begin(Call::question, request_deadline(), client_->settings_);
  Status status = run_through(task);
  if (status == Status::ok) remaining = task.remaining();
  status = client_->conclude(status);
  tell();
  return status;
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

void HoldRecord::choose_keeping() noexcept {
  kept_ = keeping_.kept(automatic_lease_);
  watched_ = keeping_.watched();
  if (!kept_) leave_tended();
}

Status HoldRecord::keep(const KeepOptions& options) noexcept {
  if (options.valid() && !held()) leave_keeper();  // A lost hold may still be known; nobody is told of it any more.
  const Status status = keeping_.set_options(options, held());
  if (status == Status::ok) choose_keeping();
  return status;
}

Status HoldRecord::start_keeping() noexcept {
  if (machine_.count() == 1) {
    leave_keeper();  // A lost hold may still be known.
    keeping_.begin_hold(machine_.confirmed_at());
  }
  kept_ = kept_ || to_be_kept_;
  if (!kept_) return Status::ok;
  if (client_->keeper_ == nullptr) {
    join_tended();
    return Status::ok;
  }
  leave_tended();
  const Status status = client_->keeper_->enter(*this);
  if (status != Status::ok) {
    kept_ = kept_ && !to_be_kept_;
    (void)post_release();
  }
  return status;
}

void HoldRecord::leave_keeper() noexcept {
  if (keeper_ != nullptr && !orphaned()) keeper_->leave(*this);  // In a child its lock may be held by nobody, for ever.
}

void HoldRecord::join_tended() noexcept {
  if (tended_) return;
  tended_ = true;
  tended_previous_ = nullptr;
  tended_next_ = client_->tended_first_;
  if (tended_next_ != nullptr) tended_next_->tended_previous_ = this;
  client_->tended_first_ = this;
  client_->dialer_.set_pause_max(reconnect_kept_max);
}

[[gnu::noinline]] void HoldRecord::leave_tended() noexcept {
  if (!tended_) return;
  tended_ = false;
  (tended_previous_ != nullptr ? tended_previous_->tended_next_ : client_->tended_first_) = tended_next_;
  if (tended_next_ != nullptr) tended_next_->tended_previous_ = tended_previous_;
  if (client_->tended_first_ == nullptr) client_->dialer_.set_pause_max(reconnect_delay_max);
}

// The record is left as it is to be before anybody is called: a callback may release the lock, and acquire it anew.
void HoldRecord::tell_now() noexcept {
  if (keeping_.news() == Keeping::News::lost) leave_keeper();
  Keeping::Callback call = nullptr;
  if (keeping_.take_news(call) != Keeping::News::none && call != nullptr) call(keeping_.options().context);
}

void HoldRecord::post_releases(std::uint32_t count) noexcept {
  if (count == 0 || begin() != Status::ok || machine_.count() == 0) return;
  machine_.unwind(count);
  (void)post_release();
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/detail/quorum_record.hpp"

#include <cerrno>

#include "quorum_ear.hpp"

namespace holdfast {

Status QuorumRecord::judge(const QuorumClient& quorum, std::size_t places, Key key,
                           const QuorumTiming& timing) noexcept {
  if (quorum.nodes() > places || timing.lock().effective_lease() > quorum.config().max_lease)
    return Status::invalid_argument;
  if (quorum.nodes() == 0) return Status::not_connected;
  return key.valid() && timing.valid() ? Status::ok : Status::invalid_argument;
}

QuorumRecord::QuorumRecord(QuorumClient& quorum, const LockKind& kind, QuorumVote* const* votes, std::size_t places,
                           Key key, const QuorumTiming& timing, const Ways& ways) noexcept
    : quorum_(&quorum),
      ways_(&ways),
      votes_(votes),
      machine_(kind, votes, quorum.nodes() == 0 || quorum.nodes() > places ? 1 : quorum.nodes()),
      task_(machine_, votes, quorum.roll_),
      incarnation_(quorum.random_.incarnation()) {
  const QuorumClient::Turn turn(quorum);
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    votes[node]->owner = this;
    votes[node]->node = static_cast<std::uint8_t>(node);
    machine_.meet(node, quorum.roll_.server(node), quorum.roll_.excluded(node));
  }
  (void)machine_.configure(key, timing);
  configuration_ = judge(quorum, places, key, timing);
  next_ = quorum.first_;
  quorum.first_ = this;
}

QuorumRecord::~QuorumRecord() {
  const QuorumClient::Turn turn(*quorum_, this);
  QuorumRecord** place = &quorum_->first_;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
  if (configuration_ != Status::ok || orphaned()) return;
  quorum_->read_time();
  if (machine_.count() != 0) (void)machine_.release(quorum_->now_, machine_.count());
  settle();
  if (machine_.owed() != 0) {
    quorum_->wait_until(quorum_->now_, false);  // What has arrived gives its places back.
    catch_up();
  }
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    quorum_->nodes_[node].connection.session().abandon(votes_[node], quorum_->now_);
  }
  quorum_->transmit_all();
}

Status QuorumRecord::draw_ordinal(RandomSource& random, Token& token) noexcept { return random.draw_ordinal(token); }

// In a forked child the hold is the parent's.
bool QuorumRecord::orphaned() const noexcept {
  return quorum_->random_.forked() || quorum_->random_.incarnation() != incarnation_;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant QuorumRecord::valid_until() const noexcept { return orphaned() ? Instant() : keeping_.valid_until(); }

bool QuorumRecord::held() const noexcept { return !orphaned() && keeping_.held(); }

Duration QuorumRecord::remaining() const noexcept { return orphaned() ? Duration::zero() : keeping_.remaining(); }

bool QuorumRecord::at_risk() const noexcept { return !orphaned() && keeping_.at_risk(); }

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

void QuorumRecord::publish() noexcept { keeping_.publish(machine_.valid_until(), machine_.risky_from()); }

// What time has done, and what the machines have to say. NOLINTNEXTLINE(misc-no-recursion): see QuorumClient::dispatch().
void QuorumRecord::settle() noexcept {
  // That a reply was given up is known at once, and the node may be asked again.
  for (NodeSet left = task_.hand_over(machine_.all(), quorum_->now_); left != 0;
       left = static_cast<NodeSet>(left & (left - 1)))
    quorum_->dispatch(quorum_->nodes_[static_cast<std::size_t>(__builtin_ctz(left))]);
  QuorumEvent event{};
  while (task_.poll_event(event, keeping_.ending(), quorum_->now_)) note(event);
  publish();
}

// NOLINTNEXTLINE(misc-no-recursion): the same.
void QuorumRecord::take_reply(std::size_t node, const Reply& reply) noexcept {
  machine_.handle_reply(node, reply, quorum_->now_);
  if (machine_.has_output()) settle();
}

void QuorumRecord::note(QuorumEvent event) noexcept {
  switch (event) {
    case QuorumEvent::denied:
    case QuorumEvent::doubted:
      quorum_->roll_.note(machine_);
      return;  // What single nodes said is kept for who asks why.
    case QuorumEvent::at_risk: keeping_.note(Keeping::News::at_risk); return;
    case QuorumEvent::renewed: keeping_.doubt_is_over(); return;
    case QuorumEvent::lost: keeping_.note(Keeping::News::lost); return;
    case QuorumEvent::granted:
    case QuorumEvent::released: return;
  }
}

void QuorumRecord::catch_up() noexcept {
  machine_.retry_owed();
  settle();
}

Status QuorumRecord::begin() noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (const Status status = quorum_->begin(); status != Status::ok) return status;
  const std::uint32_t incarnation = quorum_->random_.incarnation();
  if (incarnation != incarnation_) {
    const bool had_hold = machine_.state() != QuorumState::idle;
    machine_.forget();
    task_.life().abandon(Status::forked);
    keeping_.forget_news();
    publish();
    incarnation_ = incarnation;
    if (had_hold) return Status::forked;
  }
  return task_.life().over() ? Status::ok : Status::too_many_requests;  // Called back by a call of its own.
}

// The record is left as it is to be before anybody is called: a callback may release the lock, and acquire it anew.
void QuorumRecord::tell() noexcept {
  Keeping::Callback call = nullptr;
  if (keeping_.take_news(call) != Keeping::News::none && call != nullptr)
    quorum_->call_back(call, keeping_.options().context);
}

// ---- Commands ----------------------------------------------------------------------------------------------------

TaskFacts QuorumRecord::facts(const QuorumEar* ear) noexcept {
  TaskFacts facts = task_.facts(quorum_->connecting() != 0, quorum_->now_);
  if (machine_.has_output()) settle();
  facts.cancelled = quorum_->cancelled();
  if (ear == nullptr) return facts;
  facts.listening = ear->listening();
  facts.woken = ear->woken();
  facts.confirmed = ear->confirmed();
  return facts;
}

Status QuorumRecord::run(QuorumEar* ear) noexcept {
  LockTask& life = task_.life();
  for (bool looked = false;;) {
    const TaskAct act = life.step(facts(ear));
    if (act == TaskAct::sleep) {
      rest(ear, looked);
      continue;
    }
    looked = false;
    switch (act) {
      case TaskAct::sleep: break;
      case TaskAct::attempt:
        if (ear != nullptr) ear->begin_try();  // It is listening, or there is nothing to settle.
        break;
      case TaskAct::ask: ask(); break;
      case TaskAct::listen: plan(ear); break;
      case TaskAct::confirm: break;  // Of one node whose replicas are counted.
      case TaskAct::keep: life.handle_kept(take_grant()); break;
      case TaskAct::give_up: give_up(); break;
      case TaskAct::let_go:
        if (task_.lets_go()) (void)post_release();
        break;
      case TaskAct::over: quorum_->transmit_all(); return life.status();
    }
  }
}

void QuorumRecord::ask() noexcept {
  const Instant now = quorum_->now_;
  keeping_.end_release();
  if (task_.life().call() != Call::release) settle();  // What has just run out on a node is let go of there before.
  Token token;
  Status drawn = Status::ok;
  if (task_.wants_token(now))
    drawn = machine_.kind().token == TokenSource::client_ordinal ? ways_->draw_ordinal(quorum_->random_, token)
                                                                 : quorum_->random_.draw_token(token);
  if (drawn == Status::no_entropy) quorum_->nodes_[0].connection.set_error_number(errno);
  if (drawn == Status::ok)
    task_.ask(token, machine_.all(), now);
  else
    task_.refuse(drawn);
  settle();
}

Status QuorumRecord::take_grant() noexcept {
  if (const Status status = task_.take_grant(); status != Status::ok || !task_.begins_hold()) return status;
  keeping_.begin_hold(machine_.confirmed_at());
  return Status::ok;
}

// The lock is another's, or there was no quorum.
void QuorumRecord::plan(QuorumEar* ear) noexcept {
  if (ear != nullptr) ear->listen(task_.life().busy());
  task_.plan(quorum_->now_, ear != nullptr ? ear->confirmed() : ListenSet{0}, quorum_->random_.number());
}

void QuorumRecord::rest(QuorumEar* ear, bool& looked) noexcept {
  QuorumClient& quorum = *quorum_;
  const LockTask& life = task_.life();
  const bool listens = ear != nullptr && ear->listening();
  if (looked) {
    Instant until = life.poll_timeout(listens && ear->woken(), listens ? ear->confirmed() : ListenSet{0});
    until = earlier(until, earlier(quorum.tend_next(), quorum.next_timeout()));
    if (life.stage() == TaskStage::answer) until = earlier(until, machine_.poll_timeout());
    if (listens)
      ear->sleep(until);
    else
      quorum.wait_until(until);
  }
  looked = true;
  quorum.move();
  if (listens) ear->work();
  quorum.tend_due(life.stage() == TaskStage::answer ? this : nullptr);
  if (life.stage() == TaskStage::retry) quorum.tell_holds();
  catch_up();
}

void QuorumRecord::give_up() noexcept {
  quorum_->wait_until(quorum_->now_, false);  // What has arrived counts.
  catch_up();
  if (!task_.waiting()) return;
  task_.give_up(quorum_->now_);
  settle();
}

Status QuorumRecord::run_acquire(Instant deadline, Instant end, Handle* handle) noexcept {
  const QuorumTiming* const timing = handle != nullptr ? &handle->timing : nullptr;
  if (const Status status = task_.permit(timing, quorum_->now_); status != Status::ok)
    return end_acquire(status, handle);
  task_.begin_acquire(quorum_->now_, deadline, end, timing);
  const bool listens = machine_.kind().announcement != nullptr && quorum_->now_ < deadline;
  return end_acquire(listens ? ways_->run_listening(*this) : run(nullptr), handle);
}

Status QuorumRecord::try_acquire(Handle* handle) noexcept {
  const QuorumClient::Turn turn(*quorum_);
  if (const Status status = begin(); status != Status::ok && status != Status::forked) return status;
  catch_up();
  return run_acquire(quorum_->now_, quorum_->end_of_try(), handle);
}

// What was granted when cancel() came is wanted by nobody any more. The shares are right before anybody is called.
Status QuorumRecord::end_acquire(Status status, Handle* handle) noexcept {
  if (status == Status::ok && quorum_->cancelled()) {
    (void)post_release();
    status = Status::cancelled;
  }
  // Judged once, as of a lock on one server.
  status = quorum_->cancel_.conclude(status, status == Status::ok);
  if (handle != nullptr) {
    auto& hold = static_cast<OwnedQuorumHold&>(*this);
    if (status == Status::ok) handle->share.count_in(hold.tally, count());
    hold.post_due();
  }
  tell();
  return status;
}

Status QuorumRecord::acquire(Duration wait, Handle* handle) noexcept {
  const QuorumClient::Turn turn(*quorum_);
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok && status != Status::forked) return status;
  catch_up();
  const Instant deadline = quorum_->now_ + wait;
  return run_acquire(deadline, quorum_->end_of_wait(deadline), handle);
}

Status QuorumRecord::start_renewal(Instant deadline) noexcept {
  settle();  // A grant that has just run out on a node is let go of there before it is asked for anew.
  const Status status = task_.renew(deadline, quorum_->now_);
  settle();
  return status;
}

Status QuorumRecord::renew(Duration timeout) noexcept {
  const QuorumClient::Turn turn(*quorum_);
  if (timeout < timeout_min) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok) return status;
  quorum_->move();
  (void)task_.permit(nullptr, quorum_->now_);  // So that error_text() has the reason, where it is refused.
  task_.begin(Call::renew, quorum_->now_ + timeout);
  Status status = run(nullptr);
  const bool final = status == Status::ok || status == Status::lock_lost || status == Status::not_held;
  status = quorum_->cancel_.conclude(status, final);
  tell();
  return status;
}

// cancel() ends its wait, and never keeps it from its work.
Status QuorumRecord::release() noexcept {
  const QuorumClient::Turn turn(*quorum_, this);
  if (const Status status = begin(); status != Status::ok) return status;
  CancelSignal& cancel = quorum_->cancel_;
  cancel.begin_spared();
  if (machine_.count() <= 1) {
    keeping_.begin_end();
    keeping_.begin_release();  // Not held from here on, whatever the connections do.
  }
  task_.begin(Call::release, quorum_->request_deadline());
  const Status status = run(nullptr);
  keeping_.end_release();
  publish();
  if (machine_.count() == 0) keeping_.forget_news();  // A loss that only the release found: its status says so.
  cancel.end_spared();
  return status;
}

Status QuorumRecord::post_release(std::uint32_t acquisitions) noexcept {
  const QuorumClient::Turn turn(*quorum_, this);
  if (const Status status = begin(); status != Status::ok) return status;
  keeping_.end_release();
  if (machine_.count() <= acquisitions) keeping_.begin_end();
  const Status started = machine_.release(quorum_->now_, acquisitions);
  settle();
  machine_.end_release(Status::outcome_unknown);
  if (machine_.count() == 0) keeping_.forget_news();
  if (machine_.release_owed() != 0) {  // What has arrived since gives its places back.
    quorum_->wait_until(quorum_->now_, false);
    catch_up();
  }
  quorum_->move();
  return started == Status::ok && machine_.release_owed() != 0 ? Status::too_many_requests : started;
}

Status QuorumRecord::forget_loss() noexcept {
  const QuorumClient::Turn turn(*quorum_, this);
  if (const Status status = begin(); status != Status::ok && status != Status::forked) return status;
  const Status status = machine_.forget_loss(quorum_->now_);
  settle();
  if (status == Status::ok) keeping_.forget_news();
  return status;
}

void QuorumRecord::post_releases(std::uint32_t count) noexcept {
  const QuorumClient::Turn turn(*quorum_, this);
  if (begin() != Status::ok || machine_.count() == 0) return;
  (void)post_release(count);
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

Status QuorumRecord::keep(const KeepOptions& options) noexcept {
  const QuorumClient::Turn turn(*quorum_);
  return keeping_.set_options(options, held());
}

bool QuorumRecord::may_renew(Instant now) const noexcept {
  return machine_.permitted(quorum_->config().max_lease) && keeping_.may_renew(now);
}

}  // namespace holdfast

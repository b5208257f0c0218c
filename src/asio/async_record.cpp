// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_record.hpp"

#include "async_client_core.hpp"
#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/slot_search.hpp"

namespace holdfast {

AsyncRecord::AsyncRecord(const std::shared_ptr<AsyncClientCore>& core, const LockKind& kind, Key key,
                         const LockTiming& timing)
    : core_(core), machine_(kind), task_(machine_, core_->node().node(), this) {
  configuration_ = machine_.configure(key, timing);
  branch().enter();
  if (configuration_ == Status::ok && core_->cluster() != nullptr)
    go_to(core_->cluster()->branch_of(kind, machine_.key()));
  automatic_lease_ = timing.automatic();
  core_->enter(sibling_);
}

AsyncRecord::~AsyncRecord() {
  core_->stop_confirming(task_);
  if (orphaned()) {
    core_->leave_to_parent();
  } else {
    (void)core_->begin();
    cancel();
    let_go_of_all();
    stop_listening(false);
    stop_keeping();
    core_->abandon(this);
    core_->schedule_turn();
  }
  branch().leave();
  end();
}

inline AsyncBranch& AsyncRecord::branch() const noexcept { return core_->branch(branch_); }
inline AsyncNode& AsyncRecord::node() const noexcept { return branch().node(); }

AsyncLoop& AsyncRecord::loop() const noexcept { return *core_; }

// ---- Starting ----------------------------------------------------------------------------------------------------

Status AsyncRecord::may_start() const noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (orphaned()) return Status::forked;
  if (!core_->node().configured()) return Status::not_connected;
  return task_.life().over() ? Status::ok : Status::too_many_requests;
}

void AsyncRecord::begin(Completion& completion, AsyncHandle& handle) noexcept {
  begin_operation(completion, handle);
  queued_.unlink();  // What is owed goes before what is asked for now.
}

void AsyncRecord::start_acquire(Duration wait, Completion& completion, AsyncHandle& handle) {
  const Instant now = core_->begin();
  const LockTiming* const timing = static_cast<const AsyncLock&>(handle).timing();
  Status refused = may_start();
  if (refused == Status::ok && wait < Duration::zero()) refused = Status::invalid_argument;
  if (refused == Status::ok && idle()) {
    begin_operation(completion, handle);
    const bool taken = pick_up(*timing, now);
    Completion& begun = end_operation(Call::acquire, taken ? Status::ok : Status::not_held);
    if (taken) return core_->complete(begun, Status::ok);
    end_idle();
  }
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(completion, handle);
  if (timing != nullptr) take_timing(*timing);
  const Instant deadline = now + wait;
  task_.begin_acquire(now, deadline, deadline + node().config().request_timeout, core_->settings(), timing);
  push_refused_ = false;
  if (machine_.kind().queues && wait > Duration::zero()) enter_queue();
  machine_.handle_timeout(now);
  if (machine_.has_output()) settle();
  proceed();
}

void AsyncRecord::start_renew(Duration timeout, Completion& completion, AsyncHandle& handle) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && timeout < Duration::zero()) refused = Status::invalid_argument;
  if (refused == Status::ok && idle()) refused = Status::not_held;
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(completion, handle);
  const Duration bound = timeout == Duration::zero() ? node().config().request_timeout : timeout;
  task_.begin(Call::renew, now + bound, core_->settings());
  proceed();
}

Status AsyncRecord::may_ask() {
  const Instant now = core_->begin();
  const Status refused = may_start();
  machine_.handle_timeout(now);
  if (machine_.has_output()) settle();
  return refused == Status::ok && now == Instant::max() ? Status::system_error : refused;
}

void AsyncRecord::start_query(Question* question, Duration* remaining, Status refused, Completion& completion,
                              AsyncHandle& handle) {
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(completion, handle);
  task_.set_question(question);
  task_.begin(Call::question, core_->now() + node().config().request_timeout, core_->settings());
  remaining_out_ = remaining;
  proceed();
}

void AsyncRecord::start_release(Completion& completion, AsyncHandle& handle) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && idle()) refused = Status::not_held;
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(completion, handle);
  if (let_lie(now)) return core_->complete(end_operation(Call::release, Status::ok), Status::ok);
  task_.begin(Call::release, now + node().config().request_timeout, core_->settings());
  if (machine_.count() <= 1) {
    stop_keeping();
    keeping_.begin_end();
    keeping_.forget_news();
    if (machine_.held(now)) keeping_.begin_release();  // Not held from here on, whatever the connection does.
  }
  proceed();
}

Status AsyncRecord::post_release() {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return refused;
  if (idle()) return Status::not_held;
  return let_lie(now) ? Status::ok : post_release_now();
}

Status AsyncRecord::post_release_now() {
  (void)core_->begin();
  const Status refused = may_start();
  return refused == Status::ok ? let_go() : refused;
}

// By one request, however often it was acquired: nothing has to leave before it.
void AsyncRecord::let_go_of_all() {
  if (machine_.held(core_->now()) || keeping_.letting_go()) {
    if (machine_.count() > 1) machine_.unwind(machine_.count());
    (void)post_release_now();
  }
  if (pay()) return;
  node().read_arrived();
  (void)pay();  // Without a place its lease ends it.
}

// Also in the middle of a call.
Status AsyncRecord::let_go() {
  const Instant now = core_->now();
  AsyncNode& node = branch().node();
  if (!node.room(true)) node.read_arrived();
  const bool outermost = machine_.count() <= 1;
  const Instant deadline = now + node.config().request_timeout;
  if (outermost) {
    stop_keeping();
    keeping_.begin_end();
  }
  const Status status = outermost ? machine_.release(node.session().identity().native_delete, true, now, deadline)
                                  : machine_.step_down(true, now, deadline);
  keeping_.end_release();
  settle();
  if (outermost) keeping_.forget_news();  // Nobody is told after a release: its status says what it found.
  if (outermost && status == Status::ok) tell_waiters(Status::ok);
  rest();
  core_->schedule_turn();
  return status == Status::ok && owes() ? Status::too_many_requests : status;
}

void AsyncRecord::locate(LockPlace& found) const noexcept {
  found.nodes[0] = &core_->node().config();
  found.node_count = 1;
  found.kind = &machine_.kind();
  found.key = machine_.key();
}

Status AsyncRecord::forget_loss() {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return refused;
  if (idle()) return Status::not_held;
  machine_.handle_timeout(now);
  const Status status = machine_.forget_loss();
  if (machine_.has_output()) settle();  // It was lost just now: who waits for that is told.
  if (status == Status::ok) keeping_.forget_news();
  return status;
}

void AsyncRecord::take_timing(const LockTiming& timing) noexcept {
  to_be_kept_ = false;
  if (!machine_.held(core_->now()))
    automatic_lease_ = timing.automatic();
  else if (timing.automatic() && place_ == nullptr)
    to_be_kept_ = keeping_.kept(true);
}

void AsyncRecord::leave(const HoldShare& share) {
  note_gone(share);
  if (!operating()) post_due();
}

// What handles that are gone have left to release.
void AsyncRecord::post_due() {
  const std::uint32_t due = take_due();
  if (due == 0 || machine_.count() == 0) return;
  machine_.unwind(due);
  (void)post_release_now();
}

// ---- What is in progress -----------------------------------------------------------------------------------------

TaskFacts AsyncRecord::facts() {
  AsyncNode& node = branch().node();
  TaskFacts facts = task_.facts(core_->now());
  if (facts.link != Link::ready && !node.wanted()) facts.link = Link::gone;
  const TaskStage stage = task_.life().stage();
  if (stage != TaskStage::idle && stage <= TaskStage::room) {
    // Who comes first waits longest. What is owed goes first.
    const bool turn = stage == TaskStage::room || !branch().room_is_awaited();
    facts.room = turn && facts.link == Link::ready && pay() && node.room(true);
  } else {
    facts.room =
        node.session()
            .ready();  // One that has failed is closed next: whoever asks again waits for the connection after it.
  }
  facts.cancelled = cancelled_;
  facts.kept = machine_.count() != 1 && !to_be_kept_;
  if (waiter_ != nullptr) [[unlikely]] {
    facts.listening = true;
    facts.woken = woken();
    facts.confirmed = confirmed();
  }
  return facts;
}

void AsyncRecord::proceed() {
  LockTask& life = task_.life();
  if (life.over() || life.stage() == TaskStage::compensation) (void)pay();
  for (;;) switch (life.step(facts())) {
      case TaskAct::sleep: return rest();
      case TaskAct::attempt:
        if (machine_.count() != 0) take_recall();
        node().subscriber().begin_try(*waiter_);
        break;
      case TaskAct::ask:
        ask();
        if (life.stage() == TaskStage::answer && task_.waiting()) return rest();  // It cannot have come yet.
        break;
      case TaskAct::listen: plan(); break;
      case TaskAct::confirm:
        branch().confirm(task_);
        core_->schedule_turn();
        break;
      case TaskAct::keep: life.handle_kept(start_keeping()); break;
      case TaskAct::give_up: node().give_up(this, life.why_given_up()); break;
      case TaskAct::let_go:
        core_->stop_confirming(task_);
        (void)let_go();
        break;
      case TaskAct::over: {
        if (!operating()) return rest();
        Status status = life.status();
        if (asks_on(status)) break;
        return finish(status);
      }
    }
}

void AsyncRecord::ask() {
  const Instant now = core_->now();
  keeping_.end_release();
  machine_.handle_timeout(now);  // The loop may have been late: this turn may be the first after the end of the hold.
  if (machine_.has_output()) settle();
  Token token;
  Status status = Status::ok;
  if (task_.wants_token(now)) status = core_->node().draw_token(machine_.kind().token, token);
  if (status == Status::ok) status = task_.ask(token, now);
  settle();  // Also of a refusal: a loss that it found, and what is to be taken back.
  task_.life().handle_asked(status);
  core_->schedule_turn();
}

// A question whose answer calls for another one is not over yet. Else `status` is what the operation came to.
bool AsyncRecord::asks_on(Status& status) {
  if (task_.life().call() != Call::question || !task_.asks_on(status)) return false;
  task_.begin(Call::question, core_->now() + node().config().request_timeout, core_->settings());
  return true;
}

void AsyncRecord::finish(Status status) {
  const bool released = task_.life().call() == Call::release && machine_.count() == 0;
  if (machine_.kind().queues && machine_.leave_queue()) settle();
  if (linger_ == nullptr)
    stop_listening(status == Status::ok);
  else if (status == Status::ok && task_.life().call() == Call::acquire && machine_.count() == 1)
    begin_lingering();
  else if (machine_.count() != 0)
    take_recall();
  // A renewal, an acquire once more and a step down extend the hold; anything else says nothing new.
  if (place_ != nullptr) branch().confirm(*place_, kept_hold(machine_, this));
  if (released) keeping_.forget_news();  // A loss that only the release found: its status says so.
  if (task_.life().call() == Call::question && status == Status::ok && remaining_out_ != nullptr)
    *remaining_out_ = task_.remaining();
  Completion& completion = end_operation(task_.life().call(), status);
  queued_.unlink();
  let_go_if_due();
  publish();
  rest();
  if (released) tell_waiters(status == Status::lock_lost ? status : Status::ok);
  core_->complete(completion, status);
  post_due();
}

// When something, or time alone, gives us something to do.
void AsyncRecord::rest() {
  const LockTask& life = task_.life();
  switch (life.stage()) {
    case TaskStage::link:
      if (!queued_.linked()) branch().await_connection(queued_);
      break;
    case TaskStage::room:
      if (!queued_.linked()) branch().await_room(queued_);
      break;
    case TaskStage::idle:
    case TaskStage::compensation:
      if (owes() && !queued_.linked()) branch().await_room(queued_);
      break;
    case TaskStage::attempt:
    case TaskStage::asking:
    case TaskStage::answer:
    case TaskStage::confirm:
    case TaskStage::retry: queued_.unlink(); break;
  }
  Instant at = life.poll_timeout(woken(), confirmed());
  if (place_ == nullptr && watched()) at = earlier(at, machine_.poll_timeout());  // Else the schedule sees to it.
  if (linger_ != nullptr && life.over()) at = earlier(at, linger_->poll_timeout(machine_));
  core_->sleep(*this, at);
}

void AsyncRecord::wake(Instant now) {
  machine_.handle_timeout(now);
  settle();
  let_go_if_due();
  proceed();
}

void AsyncRecord::cancel_doing() {
  cancelled_ = true;
  proceed();
  cancelled_ = false;
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

void AsyncRecord::handle_reply(const Reply& reply, AsyncBranch& from) {
  if (reply.outcome == Status::moved && core_->cluster() != nullptr) [[unlikely]]
    return handle_moved(reply, from);
  take_reply(reply, nullptr);
}

// Nothing ran, and it is asked again where its slot is.
[[gnu::noinline]] void AsyncRecord::handle_moved(const Reply& reply, AsyncBranch& from) {
  AsyncBranch* const to = core_->cluster()->follow(from, machine_);
  Reply unasked = reply;
  if (to != nullptr) unasked.outcome = Status::not_connected;
  take_reply(unasked, to);
}

// With a server to which it goes from now on.
inline void AsyncRecord::take_reply(const Reply& reply, AsyncBranch* to) {
  if (task_.note(reply)) task_.plan_anew(core_->now(), confirmed(), node().random());
  const bool query = reply.tag.operation == Operation::query;
  if (!query) NodeTask::take(machine_, node().node(), reply, core_->now());
  if (to != nullptr) [[unlikely]]
    go_to(*to);
  if (!query) {
    if (machine_.only_said_what_was_asked())
      publish();
    else
      settle();
  }
  if (!task_.life().over()) proceed();
}

// After every input: what the machine has to say.
void AsyncRecord::settle() {
  task_.submit(waiter_ != nullptr, core_->now());
  (void)pay();
  for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event())
    switch (event) {
      case LockEvent::at_risk:
        if (!task_.unconfirmed()) tell_soon(Keeping::News::at_risk);
        break;
      case LockEvent::renewed: keeping_.doubt_is_over(); break;
      case LockEvent::lost:
        stop_keeping();
        if (task_.unconfirmed()) break;  // Nobody knows of such a hold.
        if (keeping_.first_loss()) NodeTask::tell_loss(machine_, node().node(), keeping_.ending());
        tell_soon(Keeping::News::lost);
        tell_waiters(Status::lock_lost);
        break;
      case LockEvent::protocol_doubt: node().fail_shape(); break;
      case LockEvent::none:
      case LockEvent::granted:
      case LockEvent::denied:
      case LockEvent::unclear:
      case LockEvent::released: break;
    }
  publish();
}

// False: there is no place for what is owed.
bool AsyncRecord::pay() {
  if (!owes()) return true;
  if (!task_.pay()) return false;
  core_->schedule_turn();
  return true;
}

// The schedule says that it is not ours any more, or that its time has passed.
void AsyncRecord::lose() {
  machine_.disown(core_->now());
  settle();
  stop_keeping();
  rest();
}

// The schedule could not renew it.
void AsyncRecord::doubt() {
  if (!keeping_.letting_go()) keeping_.doubt();
  tell_soon(Keeping::News::at_risk);
}

// ---- Waiting by push ---------------------------------------------------------------------------------------------

inline bool AsyncRecord::woken() const noexcept { return waiter_ != nullptr && node().subscriber().woken(*waiter_); }

inline ListenSet AsyncRecord::confirmed() const noexcept {
  return waiter_ != nullptr && node().subscriber().confirmed(*waiter_) ? 1 : 0;
}

// Not while replicas of the server of before are asked: they speak of what that has granted. And what is to be taken back of it
// must not come behind what it asks for there.
void AsyncRecord::go_to(AsyncBranch& to) {
  if (to.number() == branch_ || machine_.waiting() || task_.waiting() || task_.pending()) return;
  if (to.node().session().take_along(node().session(), this)) change_to(to);
}

// Every connection has ended, and what is to be taken back of it is there. A release that was posted is known by that alone.
void AsyncRecord::go_home(AsyncBranch& home) {
  if (home.number() != branch_) change_to(home);
}

void AsyncRecord::join(AsyncBranch& to) {
  if (!in_transit() && to.node().session().take_along(node().session(), this)) change_to(to, true);
}

bool AsyncRecord::in_transit() const noexcept {
  if (machine_.waiting() || task_.waiting() || task_.pending()) return true;
  if (node().session().in_flight_of(this) != 0) return true;
  return place_ != nullptr && branch().renews(*place_);
}

bool AsyncRecord::rests() const noexcept {
  const LockState state = machine_.state();
  if (!task_.life().over() || operating() || owes() || in_transit()) return false;
  return state == LockState::idle || state == LockState::lost;
}

// Its waiter there hears no more, and its renewals go on here. Who waits for a message is told when it is listened for here, and
// tries: one may have been missed.
void AsyncRecord::change_to(AsyncBranch& to, bool same_server) {
  const bool kept = place_ != nullptr;
  const bool recallable = waiter_ != nullptr && linger_ != nullptr && machine_.count() != 0;
  const bool waits = waiter_ != nullptr && task_.life().stage() == TaskStage::retry;
  stop_listening(false);
  stop_keeping();
  queued_.unlink();
  branch().leave();
  branch_ = to.number();
  to.enter();
  task_.go_to(node().node());
  if (kept) {
    const KeptHold hold = kept_hold(machine_, this);
    place_ = same_server ? to.keep(hold) : to.keep_on(hold);
  }
  if (waits) {
    listen(awaited());
    if (waiter_ == nullptr) task_.plan_to_poll(core_->now(), node().random());
  } else if (recallable) {
    listen(Key(machine_.token().client()));
  }
  rest();
}

// The lock is another's, or the server is not fit.
void AsyncRecord::plan() {
  if (task_.life().busy()) {
    const bool queues = machine_.kind().queues;
    if (queues) task_.life().lift_floor();
    const bool elsewhere = waiter_ != nullptr && !queues && awaited_place_ != machine_.awaited_place();
    if (waiter_ != nullptr && !elsewhere) node().subscriber().end_try(*waiter_);
    if (elsewhere) stop_listening(false);  // The name that is free now is another waiter's.
    if (waiter_ == nullptr) listen(awaited());
  }
  task_.plan(core_->now(), confirmed(), node().random());
}

void AsyncRecord::listen(Key key) {
  if (machine_.kind().announcement == nullptr || push_refused_) return;
  if (core_->cluster() != nullptr && !SlotSearch::may_hear(*machine_.kind().announcement, key)) return;  // It polls.
  awaited_place_ = machine_.awaited_place();
  waiter_ = node().listen(*machine_.kind().announcement, key, this);
  if (waiter_ == nullptr) return;  // The table is full: this one polls.
  Subscriber::address(*waiter_, machine_.token());
  task_.life().forget(1);
}

// What is subscribed already tells of a grant that comes before this call has been refused.
void AsyncRecord::enter_queue() {
  machine_.join_queue();
  if (waiter_ != nullptr) return;
  Token token;
  if (node().subscriber().stands() && core_->node().draw_token(machine_.kind().token, token) == Status::ok)
    listen(Key(token.client()));
}

void AsyncRecord::stop_listening(bool with_lock) {
  if (waiter_ == nullptr) return;
  node().leave(*waiter_, with_lock);
  waiter_ = nullptr;
}

// Something came over the subscription.
void AsyncRecord::hear() {
  if (node().subscriber().refused(*waiter_)) {
    push_refused_ = true;
    stop_listening(false);
    task_.plan_to_poll(core_->now(), node().random());
  }
  if (confirmed() == 0) task_.life().forget(1);
  if (task_.life().stage() == TaskStage::retry) return proceed();
  if (linger_ == nullptr || machine_.count() == 0) return;
  take_recall();
  let_go_if_due();
  rest();
}

// ---- Staying where it is used ------------------------------------------------------------------------------------

void AsyncRecord::linger(Duration most) {
  if (linger_ == nullptr) linger_ = std::make_unique<Linger>(most);
}

// It was granted. Whoever had to wait for it is not alone.
void AsyncRecord::begin_lingering() {
  linger_->begin();
  if (task_.life().was_woken()) linger_->recall();
  if (waiter_ == nullptr) listen(Key(machine_.token().client()));
  take_recall();
}

// Its user lets go of it. True: it is idle now.
bool AsyncRecord::let_lie(Instant now) {
  if (linger_ == nullptr) return false;
  take_recall();
  if (confirmed() != 0) linger_->hear(now);
  if (keeping_.too_old(now) || !linger_->stay(machine_, now)) return false;
  keeping_.begin_idle();
  tell_waiters(Status::ok);
  rest();
  return true;
}

// Its user wants it again. True: it has it.
bool AsyncRecord::pick_up(const LockTiming& timing, Instant now) {
  take_recall();
  if (confirmed() != 0) linger_->hear(now);
  const bool kept_alike = (place_ != nullptr) == keeping_.kept(timing.automatic());
  if (!linger_->take(machine_, timing, kept_alike, now)) return false;
  keeping_.end_idle();
  keeping_.begin_hold(now);
  NodeTask::tell_grant(machine_, node().node());
  publish();
  rest();
  return true;
}

void AsyncRecord::take_recall() {
  if (linger_ == nullptr || !woken()) return;
  node().subscriber().begin_try(*waiter_);
  node().subscriber().end_try(*waiter_);
  linger_->recall();
}

// Not while something is in progress, whose end looks again.
void AsyncRecord::let_go_if_due() {
  if (idle() && task_.life().over() && !operating() && linger_->due(machine_, core_->now())) end_idle();
}

// For good.
void AsyncRecord::end_idle() {
  if (!idle()) return;
  linger_->end();
  (void)post_release_now();
  (void)machine_.forget_loss();  // It was nobody's when it was lost.
  keeping_.end_idle();
  keeping_.withdraw();
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

Status AsyncRecord::start_keeping() {
  if (machine_.count() == 1) {
    stop_keeping();
    keeping_.begin_hold(machine_.confirmed_at());
  }
  if (!to_be_kept_ && !keeping_.kept(automatic_lease_)) return Status::ok;
  place_ = branch().keep(kept_hold(machine_, this));
  if (place_ != nullptr) return Status::ok;
  // Nobody would keep it alive: let go of. What was held before stays.
  if (machine_.count() > 1)
    (void)machine_.step_down(true, core_->now(), Instant::max());
  else
    (void)machine_.release(node().session().identity().native_delete, true, core_->now(), Instant::max());
  settle();
  return Status::too_many_requests;
}

void AsyncRecord::stop_keeping() noexcept {
  if (place_ != nullptr) branch().stop_keeping(*place_);
  place_ = nullptr;
}

void AsyncRecord::renewed(const KeptHold& hold) noexcept {
  machine_.confirm(hold.confirmed_at, hold.valid_until);
  keeping_.doubt_is_over();
  publish();
}

}  // namespace holdfast

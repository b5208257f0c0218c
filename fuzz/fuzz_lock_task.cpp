// SPDX-License-Identifier: MIT
//
// Theorem: a driver that obeys a LockTask, before a machine whose answers come late, never, refused or with a cancel:
//   1. After TaskAct::over the status stands, and step() has nothing more to say. It is what the last attempt has met:
//      what the driver told, or what the class documents for no link, no room, a deadline, a cancel, a broken clock.
//   2. A sleep ends in the future and by the call's bound: an acquire's by its deadline, in its last attempt by end(),
//      or by the floor of its wait; a release's by the end of its hold or of its request; others by their deadline, but for
//      a question that was asked for the first time.
//      There is something to sleep for, and asked again at once it is the same sleep.
//   3. Between two sleeps there is a bounded number of acts. Where nothing happens but time, the call ends after as
//      many sleeps as fit into what is left of it.
//   4. Nothing is asked while an answer is outstanding. An attempt asks once; on one node twice where the first had not
//      left, but for a release.
//   5. Attempts are retry_delay_min apart. A wake-up or a new subscription is slept over until the floor at most.
//   6. An outcome that is worth waiting for ends an acquire no sooner than at its deadline, every other at once.
//   7. After a cancel nobody sleeps, and nothing is asked but for a hold that is gone, which no server hears of. What
//      was answered by then stays the answer, but of an acquire.
//   8. What was granted is kept, let go of, or refused by its keeper: exactly one of these. It is kept where the status
//      is ok. A release is asked for or let go of, exactly once.
// No assertion of the library fails.
//
// Input: a program. Each step is a letter and a parameter, a digit or any byte:
//   z n  settings of next   B n  acquire, waiting     N n  renew             R n  release           Q n  question
//   s    one act            S    to a sleep           q n  abandon           x    cancel            m    no clock
//   L n  link               f n  its failure          o n  room, or none     h n  held for so long  b n  held n times
//   r n  the answer comes   i n  answers are at once  A n  asking is refused K n  keeping, too      k n  kept by nobody
//   u n  who has deadlines  G n  what giving up finds j n  an older answer   d n  the compensation's answer
//   l n  listening          w    a message comes      c n  confirmed         F n  subscriptions lost
//   P n  time left of next  a n  granted alone        y n  random of next    p    plan anew
//   + n  time passes        t    to the end of the sleep
// Spaces and line ends between steps are nothing.
#include <chrono>
#include <string>
#include <string_view>

#include "holdfast/core/lock_task.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr std::size_t steps_max = 300;
constexpr int acts_max = 10;  // Between two sleeps, as long as nothing happens.

constexpr Status outcomes[] = {
    Status::ok,         Status::lock_busy,         Status::not_connected, Status::transport_closed,
    Status::timed_out,  Status::too_many_requests, Status::no_quorum,     Status::cancelled,
    Status::wrong_type, Status::lock_lost};
constexpr Status failures[] = {
    Status::ok,        Status::connect_failed, Status::name_not_resolved, Status::transport_closed,
    Status::timed_out, Status::auth_failed,    Status::no_quorum,         Status::same_machine,
    Status::loading,   Status::protocol_error};
// Of one node, and of several.
constexpr TaskSettings settings_of[] = {
    {.request_timeout = 1s},
    {.request_timeout = 1s, .room_timeout = 20ms, .one_node = false, .spread = WaitSpread::whole},
    {.request_timeout = 1ms, .connect_timeout = 50ms, .max_poll = 10ms},
    {.request_timeout = 1ms,
     .connect_timeout = 1ms,
     .room_timeout = 5ms,
     .one_node = false,
     .spread = WaitSpread::whole},
    {.request_timeout = 50ms, .connect_timeout = 2s},
    {.request_timeout = 500ms,
     .connect_timeout = 2s,
     .unknown_poll = 1s,
     .one_node = false,
     .spread = WaitSpread::whole},
    {.request_timeout = 10s, .max_poll = 1h, .unknown_poll = 1s, .acks_wait = 200ms},
    {.request_timeout = 1s, .acks_wait = 30ms},
    {.request_timeout = 100ms, .connect_timeout = 10ms, .spread = WaitSpread::whole},
    {.request_timeout = 1s, .connect_timeout = 3ms, .room_timeout = 1ms, .one_node = false},
};

Status outcome_of(std::size_t n) { return n < 10 ? outcomes[n] : static_cast<Status>(n % status_count); }

constexpr std::uint64_t bit(Status status) { return std::uint64_t{1} << static_cast<unsigned>(status); }

class Driver {
 public:
  Driver() { facts_.now = Instant::from_nanoseconds(1'000'000'000'000'000); }

  void run(std::string_view program) {
    rest_ = program;
    for (std::size_t step = 0; step < steps_max && !rest_.empty(); ++step) {
      const char letter = next_byte(rest_);
      if (letter == ' ' || letter == '\n') continue;
      const auto raw = static_cast<std::uint8_t>(next_byte(rest_));
      perform(letter, raw >= '0' && raw <= '9' ? static_cast<std::size_t>(raw - '0') : raw);
      HOLDFAST_THEOREM(task_.invariants(), trace_);
    }
    settle();
  }

 private:
  // Who begins a call: none is in progress, and nobody has cancelled it yet.
  void perform(char letter, std::size_t n) {
    static constexpr char letters[] = "zBNRQsSqxmLfohbriAKkuGjdlwcFPayp+t";
    static constexpr Duration waits[] = {0s, 1ns, 1ms, 2ms, 50ms, 101ms, 1s, 3s, 1500us, wait_forever};
    static constexpr Duration timeouts[] = {1s, 1ms, 20ms, 500ms, 3s, 1s, 1s, 1s, 1s, 1s};
    static constexpr Duration holds[] = {0s, 1ms, 10ms, 100ms, 1s, 10s, 30s, 30s, 30s, 30s};
    static constexpr Duration times[] = {1ns, 1ms, 2ms, 4ms, 20ms, 50ms, 100ms, 500ms, 1s, 10s};
    static constexpr std::int64_t remainders[] = {remaining_unknown, 0, 1, 5, 50, 500, 30'000, -1, -2, INT64_MAX};
    letter = letter_of(letter, letters);
    trace_ += letter + std::to_string(n) + " ";
    if (letter != 's' && letter != 'S') acts_ = 0;
    switch (letter) {
      case 'z': chosen_ = n % 10; break;
      case 'B': begin_acquire(waits[n % 10]); break;
      case 'N': begin(Call::renew, timeouts[n % 10]); break;
      case 'R': begin(Call::release, timeouts[n % 10]); break;
      case 'Q': begin(Call::question, timeouts[n % 10]); break;
      case 's': (void)act(); break;
      case 'S': act_until_asleep(); break;
      case 'q': abandon(outcome_of(n)); break;
      case 'x': facts_.cancelled = !task_.over(); break;
      case 'm': facts_.now = Instant::max(); break;
      case 'L':
        if (facts_.link != Link::gone) facts_.link = static_cast<Link>(n % 4);
        break;
      case 'f': facts_.link_failure = failures[n % 10]; break;
      case 'o': facts_.room = n % 2 != 0; break;
      case 'h':  // What is lost comes back by no renewal.
        if (task_.over() || facts_.held) hold(holds[n % 10]);
        break;
      case 'b': several_ = n % 10 > 1; break;
      case 'r': answer(outcome_of(n)); break;
      case 'i': at_once_ = outcome_of(n), answers_at_once_ = n != 0; break;
      case 'A': asking_ = outcome_of(n); break;
      case 'K': keeping_ = n % 2 == 0 ? Status::ok : Status::too_many_requests; break;
      case 'k': facts_.kept = n % 2 != 0; break;
      case 'u': own_deadline_ = n % 2 != 0; break;
      case 'G': given_up_finds_ = n; break;
      case 'j':
        if (task_.stage() != TaskStage::answer && !replicas_) facts_.answer = outcome_of(n);
        break;
      case 'd': compensate(n % 2 != 0); break;
      case 'l': listen(n % 2 != 0); break;
      case 'w': facts_.woken = facts_.listening; break;
      case 'c': confirm(static_cast<ListenSet>(n)); break;
      case 'F': forget(static_cast<ListenSet>(n)); break;
      case 'P': remaining_ = remainders[n % 10]; break;
      case 'a': alone_ = n % 2 != 0; break;
      case 'y': random_ = static_cast<std::uint16_t>(n % 10 == 9 ? UINT16_MAX : n * 7000); break;
      case 'p': task_.plan_anew(facts_.now, facts_.confirmed, remaining_, random_); break;
      case '+': pass(times[n % 10]); break;
      case 't':
        if (asleep_ != Instant::max()) facts_.now = later(facts_.now, asleep_);
        break;
    }
  }

  // ---- The application

  void begin_acquire(Duration wait) {
    if (!task_.over()) return;
    begin(wait);
    end_ = deadline_ + settings().request_timeout;
    task_.begin_acquire(facts_.now, deadline_, end_, settings());
    HOLDFAST_THEOREM(!task_.busy(), trace_);
  }
  void begin(Call call, Duration timeout) {
    if (!task_.over()) return;
    begin(timeout);
    task_.begin(call, deadline_, settings());
    HOLDFAST_THEOREM(!task_.busy(), trace_);
  }
  void begin(Duration time) {
    settings_ = settings_of[chosen_];
    deadline_ = end_ = facts_.now + time;
    facts_.cancelled = facts_.waiting = facts_.released = false;
    outstanding_ = granted_ = kept_ = let_go_ = compensated_ = replicas_ = facts_.unconfirmed = false;
    asks_ = 0;
    heard_ = Status::ok;
    may_be_ = 0;
    attempt_at_ = floor_ = Instant();
    asleep_ = Instant::max();
  }
  [[nodiscard]] const TaskSettings& settings() const { return settings_; }
  void abandon(Status status) {
    const bool was = !task_.over();
    const Status before = task_.status();
    task_.abandon(status);
    HOLDFAST_THEOREM(task_.over() && task_.status() == (was ? status : before), trace_);
    outstanding_ = facts_.waiting = facts_.cancelled = replicas_ = false;
    asleep_ = Instant::max();
  }

  // ---- What the driver sees

  void pass(Duration time) {
    facts_.now = facts_.now + time;
    if (facts_.held && facts_.now >= facts_.valid_until) hold(Duration::zero());
  }
  void hold(Duration length) {
    facts_.held = length != Duration::zero();
    facts_.valid_until = facts_.held ? later(facts_.valid_until, facts_.now + length) : Instant();
  }
  void listen(bool listens) {
    facts_.listening = listens;
    if (listens) return;
    facts_.woken = false;
    facts_.confirmed = 0;
  }
  void confirm(ListenSet nodes) { facts_.confirmed = facts_.listening ? nodes : ListenSet{0}; }
  void forget(ListenSet lost) {
    task_.forget(lost);
    listened_ = static_cast<ListenSet>(listened_ & ~lost);
  }
  void compensate(bool deleted) {
    if (task_.stage() == TaskStage::compensation) compensated_ = deleted;
    task_.handle_compensated(deleted);
  }
  // To what is asked now, or was given up: that counts for nobody.
  void answer(Status status) {
    if (!facts_.waiting) return;
    facts_.waiting = false;
    facts_.answer = status;
    if (!outstanding_) return;
    outstanding_ = false;
    note(status);
    if (replicas_) return;
    granted_ = status == Status::ok && task_.call() == Call::acquire;
    if (granted_ && facts_.unconfirmed) hold(30s);
  }
  void note(Status status) {
    heard_ = status;
    may_be_ |= bit(status);
  }

  // ---- The driver

  // Does one act. False: it sleeps, or the call is over.
  bool act() {
    pass(Duration::zero());
    // A session judges its deadlines, and its machine has the answer.
    if (outstanding_ && facts_.now >= answered_by_) answer(Status::timed_out);
    const TaskStage stage = task_.stage();
    const Call call = task_.call();
    const Status status = task_.status();
    const TaskAct act = task_.step(facts_);
    HOLDFAST_THEOREM(task_.invariants(), trace_);
    if (stage == TaskStage::idle) {
      HOLDFAST_THEOREM(act == TaskAct::over && task_.status() == status, trace_);
      return false;
    }
    note_attempt(stage, act);
    see(act);
    // What had not left is asked once more.
    const bool asked = (stage == TaskStage::asking || stage == TaskStage::answer) && !outstanding_;
    const bool repeats = call != Call::release;
    const bool late = call != Call::acquire && facts_.now >= deadline_;
    if (asked && repeats && !late && asks_ == 1 && !replicas_ && heard_ == Status::not_connected &&
        settings().one_node && !facts_.cancelled && facts_.link == Link::ready && facts_.room)
      HOLDFAST_THEOREM(act == TaskAct::ask, trace_);
    // An answer that came with the cancel stays one.
    const bool answered = stage == TaskStage::answer && !facts_.waiting && facts_.cancelled;
    if (answered && (call == Call::question || call == Call::renew || facts_.answer == Status::ok) &&
        call != Call::acquire)
      HOLDFAST_THEOREM(act == TaskAct::over && task_.status() == facts_.answer, trace_);
    HOLDFAST_THEOREM(++acts_ <= acts_max, trace_);
    if (facts_.cancelled) {
      const bool unheard = act == TaskAct::ask && !facts_.held && (call == Call::renew || call == Call::release);
      HOLDFAST_THEOREM(unheard || act == TaskAct::give_up || act == TaskAct::let_go || act == TaskAct::over, trace_);
    }
    switch (act) {
      case TaskAct::sleep: sleep(); return false;
      case TaskAct::attempt:
        HOLDFAST_THEOREM(facts_.listening && call == Call::acquire, trace_);
        facts_.woken = false;
        return true;
      case TaskAct::ask: ask(); return true;
      case TaskAct::listen: plan(stage); return true;
      case TaskAct::confirm: ask_replicas(); return true;
      case TaskAct::keep: keep(); return true;
      case TaskAct::give_up: give_up(); return true;
      case TaskAct::let_go: let_go(call); return true;
      case TaskAct::over: end(call); return false;
    }
    return false;
  }
  void act_until_asleep() {
    while (act()) continue;
  }

  void note_attempt(TaskStage from, TaskAct act) {
    const TaskStage to = task_.stage();
    const bool ended = to == TaskStage::idle || (to == TaskStage::retry && act != TaskAct::listen);
    if ((from != TaskStage::attempt && from != TaskStage::retry) || ended) {
      if (from == TaskStage::retry) listened_ = static_cast<ListenSet>(listened_ & facts_.confirmed);
      return;
    }
    HOLDFAST_THEOREM(facts_.now != Instant::max(), trace_);  // Who has no clock attempts nothing.
    HOLDFAST_THEOREM(attempt_at_ == Instant() || facts_.now >= attempt_at_ + retry_delay_min, trace_);
    HOLDFAST_THEOREM(task_.was_woken() == facts_.woken, trace_);
    attempt_at_ = facts_.now;
    listened_ = facts_.confirmed;
    asks_ = 0;
    kept_ = false;
    may_be_ = 0;
  }
  // What may be the outcome from here on.
  void see(TaskAct act) {
    if (facts_.cancelled) may_be_ |= bit(Status::cancelled);
    if (facts_.now == Instant::max()) may_be_ |= bit(Status::system_error);
    // It stood still until its end, and found out nothing.
    if (task_.call() == Call::acquire && facts_.now >= end_) may_be_ |= bit(Status::timed_out);
    if (facts_.link != Link::ready)
      may_be_ |= bit(facts_.link_failure == Status::ok ? Status::not_connected : facts_.link_failure);
    if (!facts_.room) may_be_ |= bit(Status::too_many_requests);
    if (act == TaskAct::give_up) may_be_ |= bit(task_.why_given_up());
  }

  [[nodiscard]] Instant timeout() const { return task_.poll_timeout(facts_.woken, facts_.confirmed); }
  // The present attempt is an acquire's last one.
  [[nodiscard]] bool last() const { return task_.call() == Call::acquire && attempt_at_ + timeout_min > deadline_; }
  // By when whatever it waits for has come, or will not come.
  [[nodiscard]] Instant bound() const {
    switch (task_.stage()) {
      case TaskStage::retry: return later(deadline_, floor_);
      case TaskStage::answer: return answered_by_ != Instant::max() ? answered_by_ : until_;
      case TaskStage::room:
        if (task_.call() == Call::release) return facts_.valid_until;
        [[fallthrough]];
      case TaskStage::link:
        if (task_.call() == Call::renew) return earlier(deadline_, facts_.valid_until);
        return last() ? end_ : deadline_;
      case TaskStage::idle:
      case TaskStage::attempt:
      case TaskStage::asking: break;  // There is nothing to sleep for.
      case TaskStage::confirm: return confirm_by_;
      case TaskStage::compensation: return deadline_;
    }
    return {};
  }
  void sleep() {
    asleep_ = earlier(timeout(), outstanding_ ? answered_by_ : Instant::max());
    HOLDFAST_THEOREM(asleep_ > facts_.now && asleep_ <= bound(), trace_);
    if (task_.call() == Call::question && asks_ == 2) HOLDFAST_THEOREM(asleep_ <= deadline_, trace_);
    const bool news = facts_.woken || (facts_.confirmed & ~listened_) != 0;
    if (task_.stage() == TaskStage::retry && news) HOLDFAST_THEOREM(asleep_ <= floor_, trace_);
    check_stage();
    HOLDFAST_THEOREM(task_.step(facts_) == TaskAct::sleep, trace_);
    HOLDFAST_THEOREM(earlier(timeout(), outstanding_ ? answered_by_ : Instant::max()) == asleep_, trace_);
    acts_ = 0;
  }
  // What it sleeps for is there to be waited for.
  void check_stage() const {
    const TaskStage stage = task_.stage();
    if (stage == TaskStage::compensation) {
      const bool gone = heard_ == Status::not_connected || heard_ == Status::transport_closed;
      HOLDFAST_THEOREM(gone && settings().one_node && facts_.released && facts_.link < Link::absent, trace_);
    }
    if (stage != TaskStage::link && stage != TaskStage::room) return;
    const bool holds = task_.call() == Call::renew || task_.call() == Call::release;
    HOLDFAST_THEOREM(facts_.held || !holds, trace_);
    HOLDFAST_THEOREM(facts_.link == (stage == TaskStage::link ? Link::coming : Link::ready), trace_);
    if (stage == TaskStage::link) {
      HOLDFAST_THEOREM(asleep_ <= facts_.now + settings().connect_timeout, trace_);
      return;
    }
    HOLDFAST_THEOREM(!facts_.room, trace_);
    // Of several servers: half of the time that is left is for those that have room.
    const Instant most = earlier(facts_.now + settings().room_timeout, facts_.now + (task_.end() - facts_.now) / 2);
    HOLDFAST_THEOREM(settings().one_node || asleep_ <= most, trace_);
    // The last attempt asks in time for an answer.
    if (last()) HOLDFAST_THEOREM(asleep_ <= facts_.now + settings().request_timeout, trace_);
  }
  void ask() {
    const bool repeats = task_.call() != Call::release;  // Its compensation asks anew.
    HOLDFAST_THEOREM(!outstanding_ && !granted_, trace_);
    ++asks_;
    const bool had_not_left = heard_ == Status::not_connected || heard_ == Status::too_many_requests;
    HOLDFAST_THEOREM(asks_ == 1 || (asks_ == 2 && repeats && settings().one_node && had_not_left), trace_);
    const bool holds = task_.call() == Call::renew || task_.call() == Call::release;
    const bool unheard = task_.call() == Call::release || (holds && !facts_.held);
    HOLDFAST_THEOREM(unheard || facts_.link == Link::ready, trace_);
    const Instant deadline = task_.request_deadline(facts_.now);
    const Instant most = facts_.now + settings().request_timeout;
    HOLDFAST_THEOREM(deadline <= (task_.call() == Call::renew ? deadline_ : most), trace_);
    if (task_.call() == Call::acquire) HOLDFAST_THEOREM(deadline <= end_, trace_);
    if (const Status refused = refusal(); refused != Status::ok) {
      note(refused);
      task_.handle_asked(refused);
      return;
    }
    if (task_.call() == Call::release) {  // Not held from here on, whatever comes.
      facts_.released = !several_;
      hold(Duration::zero());
    }
    outstanding_ = facts_.waiting = true;
    facts_.unconfirmed = task_.confirms();
    answered_by_ = own_deadline_ ? Instant::max() : deadline;
    until_ = own_deadline_ ? deadline : Instant::max();
    if (answers_at_once_) answer(at_once_);
    task_.handle_asked(Status::ok, until_);
    if (asks_ == 2) until_ = end_;  // What goes once more ends with the call.
  }
  [[nodiscard]] Status refusal() const {
    const bool holds = task_.call() == Call::renew || task_.call() == Call::release;
    return holds && !facts_.held ? Status::not_held : asking_;
  }
  void plan(TaskStage from) {
    const bool asked = from == TaskStage::asking || from == TaskStage::answer;
    HOLDFAST_THEOREM(task_.call() == Call::acquire && !granted_ && facts_.now < deadline_, trace_);
    HOLDFAST_THEOREM(facts_.link != Link::gone, trace_);
    HOLDFAST_THEOREM(!asked || (may_be_ & outcomes_worth_waiting()) != 0, trace_);
    if (asked && !outstanding_) HOLDFAST_THEOREM(worth_waiting(heard_), trace_);
    HOLDFAST_THEOREM(task_.busy() == (asked && !outstanding_ && heard_ == Status::lock_busy), trace_);
    outstanding_ = false;  // Given up, with the answer still to come.
    floor_ = attempt_at_ + retry_delay_min * 2;
    // Woken in vain, perhaps again and again.
    if (task_.busy() && task_.was_woken()) floor_ = later(floor_, facts_.now + retry_delay_min + vain_delay_max);
    if (alone_) floor_ = facts_.now + retry_delay_min + retry_delay_max;
    task_.plan(facts_.now, facts_.confirmed, remaining_, alone_, random_);
    if (settings().one_node) return;
    task_.bound_floor();
    floor_ = earlier(floor_, later(deadline_, attempt_at_ + retry_delay_min));
  }
  void ask_replicas() {
    HOLDFAST_THEOREM(granted_ && !replicas_ && facts_.unconfirmed, trace_);
    outstanding_ = facts_.waiting = replicas_ = true;
    facts_.unconfirmed = false;
    answered_by_ = Instant::max();
    confirm_by_ = facts_.now + settings().acks_wait;
  }
  void keep() {
    HOLDFAST_THEOREM(granted_ && !kept_ && !facts_.kept && !facts_.unconfirmed, trace_);
    HOLDFAST_THEOREM(!replicas_ || heard_ == Status::ok, trace_);
    replicas_ = false;
    kept_ = keeping_ == Status::ok;
    if (!kept_) {
      granted_ = false;
      note(keeping_);
    }
    task_.handle_kept(keeping_);
  }
  void give_up() {
    HOLDFAST_THEOREM(outstanding_ && (facts_.cancelled || facts_.now >= until_), trace_);
    HOLDFAST_THEOREM(task_.why_given_up() == (facts_.cancelled ? Status::cancelled : Status::timed_out), trace_);
    if (given_up_finds_ % 10 == 9) return;  // The machine goes on.
    answer(given_up_finds_ % 10 == 0 ? task_.why_given_up() : outcome_of(given_up_finds_ % 10 - 1));
  }
  void let_go(Call call) {
    if (replicas_) return let_go_unconfirmed();
    HOLDFAST_THEOREM(!let_go_ && facts_.cancelled, trace_);
    HOLDFAST_THEOREM(call == Call::acquire ? granted_ : call == Call::release && asks_ == 0, trace_);
    let_go_ = true;
    granted_ = false;
    end(call);  // The next step says so.
  }
  // The call goes on.
  void let_go_unconfirmed() {
    const bool late = !facts_.held || (outstanding_ && facts_.now >= confirm_by_);
    HOLDFAST_THEOREM(granted_ && (facts_.cancelled || late || (!outstanding_ && heard_ != Status::ok)), trace_);
    note(facts_.cancelled ? Status::cancelled : late ? Status::timed_out : heard_);
    granted_ = replicas_ = outstanding_ = facts_.waiting = false;
    asks_ = 2;  // It is not asked once more.
    hold(Duration::zero());
  }
  void end(Call call) {
    const Status status = task_.status();
    HOLDFAST_THEOREM(task_.over() && timeout() == Instant::max(), trace_);
    HOLDFAST_THEOREM(task_.step(facts_) == TaskAct::over && task_.status() == status, trace_);
    HOLDFAST_THEOREM((may_be_ & bit(status)) != 0 || (call == Call::release && compensated_), trace_);
    if (call == Call::acquire) {
      HOLDFAST_THEOREM(granted_ == (status == Status::ok), trace_);
      HOLDFAST_THEOREM(!granted_ || kept_ || facts_.kept, trace_);
      HOLDFAST_THEOREM(!granted_ || !facts_.unconfirmed, trace_);
      const bool waited_out = facts_.now + timeout_min > deadline_ || facts_.now == Instant::max();
      HOLDFAST_THEOREM(waited_out || facts_.link == Link::gone || !worth_waiting(status), trace_);
    } else {
      HOLDFAST_THEOREM(status != Status::ok || heard_ == Status::ok || compensated_, trace_);
    }
    if (call == Call::release) HOLDFAST_THEOREM(asks_ + (let_go_ ? 1 : 0) == 1, trace_);
    outstanding_ = facts_.waiting = facts_.cancelled = granted_ = replicas_ = false;
    asleep_ = Instant::max();
  }

  // From now on only time passes: the call ends.
  void settle() {
    acts_ = 0;
    act_until_asleep();
    if (task_.over()) return;
    if (deadline_ == Instant::max()) facts_.cancelled = true;  // It would wait for ever.
    const Instant first = facts_.now;
    const Instant last = later(later(bound(), end_), facts_.valid_until) + settings().request_timeout;
    for (std::int64_t sleeps = 0; !task_.over(); ++sleeps) {
      HOLDFAST_THEOREM(!facts_.cancelled || sleeps == 0, trace_);
      HOLDFAST_THEOREM(sleeps <= 8 + 4 * ((last - first) / retry_delay_min), trace_);
      if (!facts_.cancelled) facts_.now = asleep_;
      act_until_asleep();
    }
  }

  std::string_view rest_;
  std::string trace_;
  TaskSettings settings_;  // Before the task, which has a view of them.
  LockTask task_;
  TaskFacts facts_;
  Instant asleep_ = Instant::max();  // Until when the driver sleeps.
  int acts_ = 0;                     // Since it last slept, or something happened.
  // The machine, and what it says next.
  bool outstanding_ = false;  // Its answer is to come, and is wanted.
  Instant answered_by_ = Instant::max();
  Instant until_ = Instant::max();
  Status asking_ = Status::ok;
  Status keeping_ = Status::ok;
  Status at_once_ = Status::ok;
  bool answers_at_once_ = false;
  bool own_deadline_ = false;
  bool several_ = false;
  bool alone_ = false;
  std::size_t given_up_finds_ = 0;
  std::size_t chosen_ = 0;
  std::int64_t remaining_ = remaining_unknown;
  std::uint16_t random_ = UINT16_MAX / 2;
  // The call, as it is seen from here.
  Instant deadline_;
  Instant end_;
  int asks_ = 0;  // Of the present attempt.
  bool granted_ = false;
  bool replicas_ = false;  // They are asked, or have answered just now.
  Instant confirm_by_;
  bool kept_ = false;
  bool let_go_ = false;
  bool compensated_ = false;  // With the key still there.
  Status heard_ = Status::ok;
  std::uint64_t may_be_ = 0;  // A bit for each Status.
  Instant attempt_at_;
  Instant floor_;
  ListenSet listened_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Driver().run({reinterpret_cast<const char*>(data), size});
  return 0;
}

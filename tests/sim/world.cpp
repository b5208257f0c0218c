// SPDX-License-Identifier: MIT
//
// The world's clock, its queue, its processes and threads. Its network is in network.cpp.
#include "world.hpp"

#include <algorithm>
#include <cstdlib>

#include "application.hpp"
#include "canary.hpp"
#include "checkers.hpp"
#include "fault_injector.hpp"
#include "holdfast/proto/assert.hpp"
#include "keeping.hpp"
#include "pace.hpp"
#include "shifts.hpp"

namespace holdfast::sim {

namespace {

constexpr std::int64_t million = 1'000'000;
constexpr std::int64_t rate_max = 10'000;          // Of a clock, in millionths.
constexpr SimTime world_max = 500'000 * second;    // No world is so old.
static_assert(world_max <= INT64_MAX / rate_max);  // A product of the two does not overflow.

// Rounded down. REQUIRES: divisor > 0.
std::int64_t floor_of(std::int64_t number, std::int64_t divisor) noexcept {
  return number / divisor - (number % divisor < 0 ? 1 : 0);
}

World* the_world = nullptr;

// A program that spins is stuck: no virtual time passes while it runs.
constexpr std::uint32_t calls_at_once_max = 40'000;  // A whole send buffer, byte by byte, is no loop.
// What is left behind when all is over is looked at so long after the last process has gone.
constexpr SimTime aftermath = 2 * second;

void note_assertion(const char* file, int line) noexcept {
  if (the_world == nullptr || Fiber::current() == nullptr) return;
  the_world->fail("assertion", std::string(file) + ":" + std::to_string(line));
  for (;;) Fiber::suspend();  // It is never resumed.
}

ModelRedis::Settings settings_of(const Plan& plan, std::size_t node) {
  ModelRedis::Settings settings;
  settings.kind = plan.nodes[node].kind;
  settings.run_id = run_id_of(node, 0);
  settings.password = plan.password && !plan.is_sentinel(node) ? "right" : "";
  settings.cluster = plan.set_up == SetUp::cluster;
  settings.clients_max = 128;
  settings.has_replicas = plan.replicas != 0;
  settings.subscriber_output_max = plan.output_max;
  settings.now = World::wall_base + plan.nodes[node].wall_offset;
  settings.age = plan.nodes[node].age;
  return settings;
}

void body_of_thread(void* argument) {
  auto& thread = *static_cast<Thread*>(argument);
  (void)thread.start(thread.argument);
}

}  // namespace

World* World::current() noexcept { return the_world; }

World::World(const Plan& plan, const WorldOptions& options)
    : plan_(plan),
      options_(options),
      random_(plan.seed ^ 0x5eed, options.bytes),
      tls_random_(plan.seed ^ 0x715),
      trace_(options.recorded) {
  the_world = this;
  set_assertion_handler(note_assertion);
  for (std::size_t index = 0; index < plan_.nodes.size(); ++index) {
    Node& node = nodes_.emplace_back(index, settings_of(plan_, index));
    node.wall_offset = plan_.nodes[index].wall_offset;
    node.wall_offset_max = node.wall_offset;
    node.lane = "node " + std::to_string(index);
    node.foreign = node.redis.accept();
    if (plan.password && !plan.is_sentinel(index)) (void)foreign(node, {"AUTH", "right"});
  }
  shifts_ = std::make_unique<Shifts>(*this);
  checkers_ = std::make_unique<Checkers>(*this);
  pace_ = std::make_unique<Pace>(*this);
  keeping_ = std::make_unique<Keeping>(*this);
  injector_ = std::make_unique<FaultInjector>(*this);
  processes_.resize(plan_.clients.size());
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    Process& process = processes_[index];
    process.index = index;
    process.plan = &plan_.clients[index];
    process.finished = process.plan->absent;
    if (process.plan->rate_ppm == 10'000 || process.plan->rate_ppm == -10'000)
      count(Fault::clock_rate, "client " + std::to_string(index));
    after(random_.between(0, 20 * millisecond), [this, index] { start(processes_[index]); });
  }
  injector_->begin();
  shifts_->begin();
  after(plan_.length, [this] { begin_liveness(); });
}

World::~World() {
  the_world = this;  // Another one may have been there meanwhile.
  for (Process& process : processes_) {
    if (process.application == nullptr || !process.plan->loop) continue;
    leave(process);
    // Where an assertion has failed a program finds no end, and what it has lies on its loop's stack: it is left as it is.
    static auto& abandoned = *new std::vector<Application*>;
    if (!std::all_of(process.threads.begin(), process.threads.end(),
                     [this](std::size_t id) { return thread_done(id); }))
      abandoned.push_back(process.application.release());
  }
  for (Process& process : processes_) process.application.reset();
  threads_.clear();
  the_world = nullptr;
  set_assertion_handler(nullptr);
}

// ---- Outcome -----------------------------------------------------------------------------------------------------

void World::fail(std::string_view checker, const std::string& text) {
  if (failed()) return;
  if (options_.ignored != nullptr &&
      std::find(options_.ignored->begin(), options_.ignored->end(), checker) != options_.ignored->end())
    return;
  failure_ = {std::string(checker), text, now_, events_};
  trace_.add(now_, "FAILED", 0, 0, failure_.checker + ": " + text);
  if (trace_.recorded()) trace_.items().push_back({"checkers", failure_.checker, now_, now_, false});
}

void World::count(Fault fault, std::string_view lane, std::string_view label) {
  ++fault_counts_[static_cast<std::size_t>(fault)];
  disturb(0);
  trace_.add(now_, to_string(fault), 0, 0, label.empty() ? lane : label);
  if (trace_.recorded())
    trace_.items().push_back({std::string(lane), std::string(to_string(fault)), now_, now_, false});
}

std::int64_t World::threads_in_all() const noexcept {
  std::size_t count = 0;
  for (const ClientPlan& client : plan_.clients) count += client.threads;
  return static_cast<std::int64_t>(count);
}

// ---- Time --------------------------------------------------------------------------------------------------------

SimTime World::local_time(const Process& process, SimTime at) const noexcept {
  // Nothing that is true of time is true for this one.
  const SimTime stood = sin_of(*this) == Sin::clock_stands_still ? process.stood_still : 0;
  return process.plan->clock_base - stood + at + floor_of(at * process.plan->rate_ppm, million);
}

SimTime World::true_time(const Process& process, SimTime local) const noexcept {
  const std::int64_t rate = process.plan->rate_ppm;
  const SimTime stood = sin_of(*this) == Sin::clock_stands_still ? process.stood_still : 0;
  const SimTime shown = local + stood - process.plan->clock_base;
  if (shown > world_max) return never;
  return shown <= 0 ? 0 : shown - floor_of(shown * rate, million + rate);
}

SimTime World::deadline_after(SimTime local) noexcept {
  if (local <= 0) return now_;
  if (local > world_max / 2) return never;
  return std::max(now_ + 1, true_time(process(), local_time(process()) + local));
}

void World::step_wall(Node& node, WallMicros by) {
  node.wall_offset += by;
  node.wall_offset_max = std::max(node.wall_offset_max, node.wall_offset);
  node.redis.set_now(wall(node));
}

// ---- The queue ---------------------------------------------------------------------------------------------------

void World::push(SimTime at, EventKind kind, std::size_t who, std::uint64_t detail) {
  queue_.push_back({at, ++numbers_, kind, static_cast<std::uint32_t>(who), detail});
  std::push_heap(queue_.begin(), queue_.end());
}

void World::after(SimTime delay, std::function<void()> action) {
  std::size_t index = actions_.size();
  if (free_actions_.empty()) {
    actions_.push_back(std::move(action));
  } else {
    index = free_actions_.back();
    free_actions_.pop_back();
    actions_[index] = std::move(action);
  }
  push(now_ + delay, EventKind::action, index);
}

void World::run() {
  while (!failed() && phase_ != Phase::over && !queue_.empty() && events_ < options_.events_max) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Event event = queue_.back();
    queue_.pop_back();
    now_ = event.at;
    ++events_;
    handle(event);
    if (phase_ == Phase::faults && events_ >= plan_.events_max) begin_liveness();
  }
  if (!failed() && phase_ != Phase::over && queue_.empty()) fail("liveness", "nothing happens any more");
}

void World::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::wake: {
      Thread* const thread = threads_[event.who].get();
      if (thread != nullptr && thread->blocked && thread->wake_number == event.detail) run_thread(*thread);
      return;
    }
    case EventKind::up: deliver_up(event.who); return;
    case EventKind::down: deliver_down(event.who); return;
    case EventKind::connected: finish_connect(event.who); return;
    case EventKind::action: {
      const std::function<void()> action = std::move(actions_[event.who]);
      actions_[event.who] = nullptr;
      free_actions_.push_back(event.who);
      action();
      return;
    }
  }
}

// ---- Phases ------------------------------------------------------------------------------------------------------

// Nothing new goes wrong from here on, and what did is put right: now everybody must get what is free.
void World::begin_liveness() {
  if (phase_ != Phase::faults) return;
  phase_ = Phase::liveness;
  liveness_since_ = now_;
  latency_before_ = plan_.latency_max;
  trace_.add(now_, "liveness");
  // The network is one on which the shortest lease outlives a request, and the shortest timeout its reply.
  plan_.latency_min = std::min(plan_.latency_min, 100 * microsecond);
  plan_.latency_max = std::min(plan_.latency_max, 500 * microsecond);
  end_faults();
  injector_->end();
  shifts_->end();
  // Nobody sleeps into it with a lock.
  for (const std::unique_ptr<Thread>& thread : threads_)
    if (thread != nullptr && thread->sleeping) wake(*thread);
  for (Process& process : processes_)
    if (process.alive) process.application->hurry();
  for (Process& process : processes_)
    if (!process.alive) after(millisecond, [this, index = process.index] { start(processes_[index]); });
  // Whoever hangs now hangs for ever.
  after(3600 * second, [this] {
    if (phase_ == Phase::liveness) fail("liveness", "not over an hour after the last fault");
  });
}

void World::end_faults() {
  for (Node& node : nodes_) {
    node.paused_until = std::min(node.paused_until, now_);
    resume_server(node);
    node.refused_until = std::min(node.refused_until, now_);
    node.black_until = std::min(node.black_until, now_);
    node.spike_until = std::min(node.spike_until, now_);
    node.slow_connect_until = std::min(node.slow_connect_until, now_);
    node.slow_handshake_until = std::min(node.slow_handshake_until, now_);
    node.second_black_until = std::min(node.second_black_until, now_);
    node.slow_resolver_until = std::min(node.slow_resolver_until, now_);
    node.failing_resolver_until = std::min(node.failing_resolver_until, now_);
    node.tamper = Tamper::nothing;
  }
  for (Process& process : processes_) {
    process.timers_late = 0;
    process.stop_at_call = 0;
  }
  // What is half open stays so: the client must find out. A stall ends by itself.
}

void World::finish() {
  for (const Process& process : processes_)
    if (process.alive || !process.finished) return;
  after(aftermath, [this] {
    checkers_->all_over();
    if (!failed()) phase_ = Phase::over;
  });
}

// ---- Processes and threads ---------------------------------------------------------------------------------------

void World::start(Process& process) {
  if (process.alive || process.finished) return;
  process.alive = true;
  ++process.life;
  process.lied_to = false;
  process.confirmed_at.assign(nodes_.size(), -1);
  process.random = Random(plan_.seed * 1000003 + process.index * 1009 + process.life, options_.bytes);
  process.stopped_until = 0;
  process.stop_at_call = 0;
  trace_.add(now_, "start", process.index, process.life);
  process.application = std::make_unique<Application>(*this, process);
  add_thread(process, Application::main, process.application.get());
}

std::size_t World::add_thread(Process& process, void* (*body)(void*), void* argument) {
  auto thread = std::make_unique<Thread>();
  thread->id = threads_.size();
  thread->process = process.index;
  thread->start = body;
  thread->argument = argument;
  thread->fiber = std::make_unique<Fiber>(body_of_thread, thread.get());
  thread->blocked = true;
  process.threads.push_back(thread->id);
  Thread& added = *thread;
  pace_->begin(added);
  threads_.push_back(std::move(thread));
  wake(added);
  return added.id;
}

bool World::thread_done(std::size_t id) const noexcept {
  return threads_[id] == nullptr || threads_[id]->fiber->done();
}

bool World::uses_locks(const Thread& thread) const noexcept {
  const auto& workers = processes_[thread.process].application->workers();
  return std::any_of(workers.begin(), workers.end(),
                     [&](const Application::Worker& worker) { return worker.thread == thread.id; }) ||
         processes_[thread.process].threads.front() == thread.id;
}

void World::end(Process& process, End how) {
  if (!process.alive) return;
  trace_.add(now_, how == End::exit ? "exit" : how == End::crash ? "crash" : "power loss", process.index, process.life);
  process.alive = false;
  checkers_->process_ended(process);
  // A thread that is left behind may still be at its work, with a pipe to say so.
  const auto left = std::count_if(process.threads.begin(), process.threads.end(),
                                  [this](std::size_t id) { return !thread_done(id); });
  if (how == End::exit && process.descriptors.size() > static_cast<std::size_t>(left))
    fail("descriptors", "client " + std::to_string(process.index) + " ends with some that it has not closed");
  for (const int number : process.descriptors) {
    Descriptor* const open = descriptor(number);
    if (open == nullptr || open->kind == Descriptor::Kind::closed) continue;
    if (open->kind == Descriptor::Kind::socket) close_link(links_[open->index], how == End::power_loss);
    open->kind = Descriptor::Kind::closed;
  }
  if (process.plan->loop) leave(process);
  process.descriptors.clear();
  process.epolls.clear();
  for (const std::size_t id : process.threads) threads_[id].reset();
  process.threads.clear();
  process.application.reset();
  process.pages.clear();
  process.resolutions.clear();
  if (phase_ != Phase::faults && how == End::exit) {
    process.finished = true;
    finish();
    return;
  }
  const SimTime delay = random_.magnitude(millisecond, 5 * second);
  after(delay, [this, index = process.index] { start(processes_[index]); });
}

// What it has opened is closed by now, and whatever it calls fails at once.
void World::leave(Process& process) {
  constexpr int rounds_max = 10'000;
  process.leaving = true;
  bool left = true;
  for (int round = 0; left && round < rounds_max; ++round) {
    left = false;
    for (std::size_t place = 0; place < process.threads.size(); ++place) {
      Thread* const thread = threads_[process.threads[place]].get();
      if (thread == nullptr || thread->fiber->done()) continue;
      left = true;
      current_ = thread->id;
      thread->fiber->resume();
    }
  }
  if (left && !failed()) fail("assertion", "a program that was killed finds no end");
  process.leaving = false;
}

void World::stop(Process& process, SimTime length) {
  if (!process.alive) return;
  process.imposed += length;
  process.stood_still += std::max<SimTime>(0, now_ + length - std::max(process.stopped_until, now_));
  process.stopped_until = std::max(process.stopped_until, now_ + length);
  process.disturbed_until = std::max(process.disturbed_until, now_ + length);
  hinder(process, length);
  disturb(length);
  if (trace_.recorded())
    trace_.items().push_back({"client " + std::to_string(process.index), "stopped", now_, now_ + length, false});
  after(length, [this, index = process.index, life = process.life] {
    Process& stopped = processes_[index];
    if (!stopped.alive || stopped.life != life || now_ < stopped.stopped_until) return;
    for (const std::size_t id : stopped.threads) {
      Thread& thread = *threads_[id];
      if (!thread.due) continue;
      thread.due = false;
      thread.woken = false;
      wake(thread);
    }
  });
}

void World::interrupt(Process& process, std::size_t id) {
  if (!process.alive || id == no_thread || threads_[id] == nullptr || !threads_[id]->blocked) return;
  threads_[id]->interrupted = true;
  wake(*threads_[id]);
}

void World::starve_thread(Process& process, SimTime length) {
  if (!process.alive || process.threads.empty()) return;
  Thread& thread = *threads_[process.threads[random_.index(process.threads.size())]];
  thread.starved_until = now_ + length;
  process.disturbed_until = std::max(process.disturbed_until, now_ + length);
  process.imposed += length;
  hinder(process, length);
  disturb(length);
}

void World::wake(Thread& thread) {
  if (!thread.blocked || thread.woken || processes_[thread.process].leaving) return;
  thread.woken = true;
  // The scheduler's own time: who runs first of two that are woken together is open.
  const SimTime delay = random_.between(200, 30 * microsecond);
  push(now_ + delay, EventKind::wake, thread.id, thread.wake_number);
}

void World::run_thread(Thread& thread) {
  Process& process = processes_[thread.process];
  if (now_ < process.stopped_until) {
    thread.due = true;
    return;
  }
  if (now_ < thread.starved_until) {
    push(thread.starved_until, EventKind::wake, thread.id, thread.wake_number);
    return;
  }
  if (!thread.woken && process.timers_late != 0) {
    const SimTime late = random_.between(0, process.timers_late);
    process.imposed += late;
    process.disturbed_until = std::max(process.disturbed_until, now_ + late);
    hinder(process, late);
    thread.woken = true;
    push(now_ + late, EventKind::wake, thread.id, thread.wake_number);
    return;
  }
  thread.blocked = false;
  thread.woken = false;
  thread.due = false;
  current_ = thread.id;
  const std::size_t id = thread.id;
  const std::uint32_t life = process.life;
  thread.fiber->resume();
  if (failed()) return;
  Thread* const after_run = threads_[id].get();
  if (after_run == nullptr || process.life != life) return;
  checkers_->after_run(process);
  if (!after_run->fiber->done()) return;
  wake_object(process, after_run);
  if (process.threads.front() == id) end(process, End::exit);
}

void World::enter_call(const char* name) {
  Thread& self = thread();
  const Process& caller = processes_[self.process];
  if (caller.leaving) return;
  while (failed() && !caller.leaving) Fiber::suspend();
  if (caller.leaving) return;
  self.recent[self.recent_at++ % self.recent.size()] = name;
  if (self.called_at != now_) {
    self.called_at = now_;
    self.calls = 0;
  }
  if (++self.calls > calls_at_once_max) {
    fail("no spinning", "client " + std::to_string(self.process) + " makes system calls and no time passes");
    while (failed() && !caller.leaving) Fiber::suspend();
  }
  if (!pace_->note_call(self)) {
    std::string calls;
    for (std::size_t index = 0; index < self.recent.size(); ++index)
      if (const char* const call = self.recent[(self.recent_at + index) % self.recent.size()]; call != nullptr)
        calls += (calls.empty() ? "" : ", ") + std::string(call);
    fail("no spinning", "client " + std::to_string(self.process) + " has no reason to call " + calls);
    while (failed() && !caller.leaving) Fiber::suspend();
    pace_->begin(self);
  }
  take_signal();
  Process& owner = processes_[self.process];
  if (owner.stop_at_call == 0) return;
  const SimTime length = owner.stop_at_call;
  owner.stop_at_call = 0;
  count(Fault::client_pause_at_call, "client " + std::to_string(owner.index));
  stop(owner, length);
  (void)block(now_ + length);
}

void World::leave_call() {
  if (!process().leaving) take_signal();
}

// One that cancels, if it is due now.
void World::take_signal() {
  Thread& self = thread();
  if (self.cancel_after < 0 || self.cancel_after-- != 0) return;
  processes_[self.process].application->cancel_by_signal(self.id);
}

bool World::block(SimTime deadline) {
  Thread& self = thread();
  if (processes_[self.process].leaving) {  // The others are to have their turn.
    Fiber::suspend();
    return false;
  }
  ++self.blocks;
  self.blocked = true;
  self.woken = false;
  ++self.wake_number;
  if (deadline != never) push(std::max(deadline, now_), EventKind::wake, self.id, self.wake_number);
  Fiber::suspend();
  return now_ < deadline;
}

void World::sleep(SimTime local) {
  const SimTime deadline = deadline_after(local);
  enter_call("sleep");
  const Phase began = phase_;
  thread().sleeping = true;
  while (now_ < deadline && phase_ == began && !process().leaving) (void)block(deadline);
  thread().sleeping = false;
}

void World::wake_object(Process& process, const void* object) {
  for (const std::size_t id : process.threads) {
    Thread& thread = *threads_[id];
    if (thread.blocked && thread.object == object) wake(thread);
  }
}

void World::wake_waiters(const Process& process, int number) {
  for (const std::size_t index : process.epolls) {
    Epoll& epoll = epolls_[index];
    Interest* const interest = epoll.find(number);
    if (interest == nullptr) continue;
    epoll.add(*interest);
    wake_waiters(process, epoll.number);
  }
  for (const std::size_t id : process.threads) {
    Thread& thread = *threads_[id];
    if (!thread.blocked) continue;
    const std::span<const int> waited(thread.descriptors.data(), thread.descriptor_count);
    if (std::find(waited.begin(), waited.end(), number) != waited.end()) wake(thread);
  }
}

}  // namespace holdfast::sim

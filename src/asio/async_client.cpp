// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_client.hpp"

#include "async_client_core.hpp"
#include "holdfast/url.hpp"

namespace holdfast {

namespace {

// Of Asio's own operations, the ones in progress and those of before that have been cancelled: a socket's read, write and
// connect, twice; the timer; the turn.
constexpr std::size_t own_operations_client = 24;
}  // namespace

// ---- The client --------------------------------------------------------------------------------------------------

AsyncClient::AsyncClient(executor_type executor, const AsyncLimits& limits)
    : core_(std::make_shared<AsyncClientCore>(std::move(executor), limits)) {}

AsyncClient::~AsyncClient() { core_->shut_down(); }

AsyncClient::executor_type AsyncClient::get_executor() const noexcept { return core_->executor(); }
AsyncLoop& AsyncClient::loop() const noexcept { return *core_; }
OperationOwner& AsyncClient::owner() const noexcept { return *core_; }
Status AsyncClient::read_url(ByteView url, ClientConfig& config) { return core_->read_url(url, config); }
void AsyncClient::start_connect(const ClientConfig& config, Completion& completion, Status status) {
  core_->start_connect(config, completion, status);
}
void AsyncClient::start_close(Completion& completion) { core_->start_close(completion); }
void AsyncClient::close() { core_->close(); }
void AsyncClient::cancel() { core_->cancel_all(); }

bool AsyncClient::connected() const noexcept { return core_->node().ready() && !core_->forked(); }
ClientConfig AsyncClient::config() const noexcept {
  ClientConfig config = core_->node().config();
  if (const AsyncCluster* const cluster = core_->cluster(); cluster != nullptr) config.topology = cluster->given();
  return config;
}
const ServerIdentity& AsyncClient::server() const noexcept { return core_->node().session().identity(); }
Status AsyncClient::failure() const noexcept {
  return core_->forked() ? Status::forked : connected() ? Status::ok : core_->node().failure();
}
ByteView AsyncClient::error_text() const noexcept { return core_->error_text(); }
int AsyncClient::system_error_number() const noexcept { return core_->node().error_number(); }
ConfigProblem AsyncClient::problem() const noexcept { return core_->problem(); }
Stats AsyncClient::stats() const noexcept { return stats_of(core_->node().config().meter); }
std::size_t AsyncClient::compensations_pending() const noexcept { return core_->compensations_pending(); }
std::size_t AsyncClient::kept() const noexcept { return core_->kept(); }
std::uint64_t AsyncClient::renewal_calls() const noexcept { return core_->renewal_calls(); }

// ---- Its core ----------------------------------------------------------------------------------------------------

AsyncClientCore::AsyncClientCore(executor_type executor, const AsyncLimits& limits)
    : AsyncLoop(std::move(executor), limits.operations, own_operations_client),
      requests_max_(static_cast<std::uint32_t>(limits.requests)),
      waiters_max_(static_cast<std::uint32_t>(limits.waiters)),
      kept_max_(static_cast<std::uint32_t>(limits.kept)),
      masters_(static_cast<std::uint32_t>(limits.masters)),
      home_(*this, limits, 0) {}

AsyncClientCore::~AsyncClientCore() { close_nodes(); }

Status AsyncClientCore::read_url(ByteView url, ClientConfig& config) {
  const char* reason = nullptr;
  const Status status = parse_url(url, config, &reason);
  if (status != Status::ok) problem_ = {"url", reason};
  return status;
}

void AsyncClientCore::start_connect(const ClientConfig& config, Completion& completion, Status status) {
  const Instant now = begin();
  if (connect_ != nullptr || close_ != nullptr) return complete(completion, Status::already_held);
  if (stopped()) return complete(completion, Status::cancelled);
  if (status == Status::ok && now == Instant::max()) status = Status::system_error;  // The clock cannot be read.
  if (status == Status::ok) {
    problem_ = {};
    status = prepare(config, now);
    problem_ = node().problem();
    if (status != Status::ok) home_.tell_waiting(true);  // Who waits for the connection waits in vain.
  }
  if (status != Status::ok) return complete(completion, status);
  home_.configure(config);
  settings_ = {
      .request_timeout = config.request_timeout, .max_poll = config.max_poll, .acks_wait = acks_wait_of(config)};
  connect_ = &completion;
  schedule_turn();
}

Status AsyncClientCore::prepare(const ClientConfig& config, Instant now) {
  const bool any_slot = config.topology != nullptr && config.topology->has_slots();
  each_branch([](AsyncBranch& branch) { branch.close_acks(); });
  bring_home();
  ClientConfig home = config;
  if (any_slot) {
    if (cluster_ == nullptr) cluster_ = std::make_unique<AsyncCluster>(*this, branch_limits());
    cluster_->start(config, home);
    clustered_ = true;
  }
  return node().prepare(home, now);
}

// What was at other servers of a cluster is answered, and begins anew at the first.
void AsyncClientCore::bring_home() {
  if (!clustered_) return;
  clustered_ = false;
  cluster_->stop();
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) {
    lock->go_home(home_);
  }
  cluster_->each([](AsyncBranch& branch) { branch.close(); });
}

void AsyncClientCore::close_nodes() {
  each_branch([](AsyncBranch& branch) { branch.close(); });
  if (lookout_ != nullptr) lookout_->close();
}

void AsyncClientCore::abandon(const AsyncRecord* lock) noexcept {
  each_branch([&](AsyncBranch& branch) { branch.node().session().abandon(lock, now()); });
}

std::uint64_t AsyncClientCore::renewal_calls() noexcept {
  std::uint64_t calls = 0;
  each_branch([&](const AsyncBranch& branch) { calls += branch.renewal_calls(); });
  return calls;
}

std::size_t AsyncClientCore::compensations_pending() noexcept {
  std::size_t pending = 0;
  each_branch([&](const AsyncBranch& branch) { pending += branch.node().session().compensations_pending(); });
  return pending;
}

ByteView AsyncClientCore::error_text() noexcept {
  ByteView text;
  each_branch([&](const AsyncBranch& branch) {
    if (text.empty()) text = branch.node().session().failure_text();
  });
  return text;
}

void AsyncClientCore::tell_connect(Status status) {
  if (connect_ == nullptr) return;
  Completion& completion = *connect_;
  connect_ = nullptr;
  complete(completion, status);
}

void AsyncClientCore::start_close(Completion& completion) {
  const Instant now = begin();
  if (close_ != nullptr) return complete(completion, Status::already_held);
  cancel_all();
  end_idle();
  close_ = &completion;
  sleep(*this, now + node().config().request_timeout);
  schedule_turn();
}

// What was released is known to be free, or nothing can be known any more.
void AsyncClientCore::work_close() {
  if (close_ == nullptr) return;
  bool busy = false;
  bool owing = false;
  each_branch([&](const AsyncBranch& branch) {
    const AsyncNode& node = branch.node();
    busy = busy || (node.ready() && (node.session().in_flight() != 0 || node.unsent()));
    owing = owing || (node.session().compensations_pending() != 0 && node.wanted());
  });
  if (busy || (owing && wakes_at() != Instant::max())) return;
  const bool free = compensations_pending() == 0;
  Completion& completion = *close_;
  close_ = nullptr;
  sleep(*this, Instant::max());
  close_nodes();
  disarm_timer();
  complete(completion, free ? Status::ok : Status::timed_out);
}

// Of async_close().
void AsyncClientCore::wake(Instant) {
  if (close_ == nullptr) return;
  Completion& completion = *close_;
  close_ = nullptr;
  close_nodes();
  disarm_timer();
  complete(completion, Status::timed_out);
}

void AsyncClientCore::cancel_operation(Completion& completion) {
  if (&completion == connect_) return tell_connect(Status::cancelled);
  if (&completion != close_) return;
  close_ = nullptr;
  sleep(*this, Instant::max());
  complete(completion, Status::cancelled);
}

void AsyncClientCore::cancel_all() {
  if (forked()) return leave_to_parent();
  (void)begin();
  note_cancel();
  tell_connect(Status::cancelled);
  if (close_ != nullptr) cancel_operation(*close_);
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->cancel();
}

// Holds that are nobody's end with the connection.
void AsyncClientCore::end_idle() {
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->end_idle();
  each_branch([](AsyncBranch& branch) { branch.node().transmit(); });
}

void AsyncClientCore::close() {
  if (forked()) return leave_to_parent();
  (void)begin();
  cancel_all();
  end_idle();
  close_nodes();
  tell_connect(Status::cancelled);
  disarm_timer();
  schedule_turn();
}

void AsyncClientCore::shut_down() {
  sleep(*this, Instant::max());
  if (forked()) return leave_to_parent();
  (void)begin();
  cancel_all();
  for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) lock->let_go_of_all();
  each_branch([](AsyncBranch& branch) { branch.node().transmit(); });
  close_nodes();
  tell_connect(Status::cancelled);
  sleep(*this, Instant::max());
  stop();
}

// ---- What the nodes say ------------------------------------------------------------------------------------------

void AsyncClientCore::branch_ready(AsyncBranch& branch) {
  if (cluster_ != nullptr) cluster_->note_ready(branch);
  if (&branch == &home_) tell_connect(Status::ok);
}

void AsyncClientCore::branch_down(AsyncBranch& branch) {
  if (&branch == &home_ && !node().connecting()) tell_connect(node().failure());
}

// ---- Turns -------------------------------------------------------------------------------------------------------

void AsyncClientCore::work() {
  if (lookout_ != nullptr && lookout_->work(node())) home_.hasten();
  home_.work();
  if (cluster_ != nullptr) cluster_->work();
  each_branch([](AsyncBranch& branch) {
    while (void* const heard = branch.node().next_heard()) static_cast<AsyncRecord*>(heard)->hear();
  });
  work_close();
  each_branch([](AsyncBranch& branch) { branch.node().transmit(); });
}

Instant AsyncClientCore::next_timeout() const noexcept {
  Instant next = home_.next_timeout();
  if (lookout_ != nullptr) next = earlier(next, lookout_->next_timeout(node()));
  if (cluster_ != nullptr)
    cluster_->each([&next](const AsyncBranch& branch) { next = earlier(next, branch.next_timeout()); });
  return next;
}

void AsyncClientCore::judge_time() {
  each_branch([](AsyncBranch& branch) { branch.judge_time(); });
  if (lookout_ != nullptr) lookout_->judge_time();
}

}  // namespace holdfast

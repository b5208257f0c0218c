// SPDX-License-Identifier: MIT
#include "async_face.hpp"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "holdfast/asio.hpp"

using namespace holdfast;

namespace async_face {

namespace {

// What is not completed by then never is. No test waits for so long.
constexpr std::chrono::seconds patience_max = std::chrono::seconds(150);
// As many holds as any test keeps.
constexpr AsyncLimits limits = {.kept = 600};

// Every loop has a thread that runs it between calls, too, as programs have it.
bool always_in_thread() {
  static const bool always = std::getenv("HOLDFAST_LOOP_THREAD") != nullptr;
  return always;
}

}  // namespace

// ---- The loop ----------------------------------------------------------------------------------------------------

struct Loop::Inside {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread;

  [[nodiscard]] bool here() { return context.get_executor().running_in_this_thread(); }
  // By its thread, which is not this one.
  [[nodiscard]] bool elsewhere() { return thread.joinable() && !here(); }
};

Loop::Loop() : inside_(std::make_unique<Inside>()) {
  if (always_in_thread()) start_thread();
}
Loop::~Loop() { stop_thread(); }

Status Loop::complete(const std::function<void(Handler)>& start) {
  const auto outcome = std::make_shared<std::promise<Status>>();
  std::future<Status> future = outcome->get_future();
  const Handler handler = [outcome](std::error_code error) { outcome->set_value(to_status(error)); };
  constexpr std::chrono::seconds none = std::chrono::seconds(0);
  if (inside_->elsewhere()) {
    asio::post(inside_->context, [&start, handler] { start(handler); });
    if (future.wait_for(patience_max) == std::future_status::timeout) std::terminate();  // It refers to our stack.
    return future.get();
  }
  start(handler);
  for (const auto until = std::chrono::steady_clock::now() + patience_max;
       future.wait_for(none) == std::future_status::timeout;)
    if (inside_->context.run_one_until(until) == 0) throw std::runtime_error("an operation is never completed");
  return future.get();
}

void Loop::call(const std::function<void()>& function) {
  if (!inside_->elsewhere()) return function();
  std::promise<void> done;
  std::future<void> future = done.get_future();
  asio::post(inside_->context, [&function, done = std::move(done)]() mutable {
    function();
    done.set_value();
  });
  if (future.wait_for(patience_max) == std::future_status::timeout) std::terminate();
}

void Loop::post(std::function<void()> function) { asio::post(inside_->context, std::move(function)); }

void Loop::poll() {
  if (!inside_->thread.joinable() && !inside_->here()) inside_->context.poll();
}

void Loop::start_thread() {
  if (inside_->thread.joinable()) return;
  inside_->thread = std::thread([this] { inside_->context.run(); });
}

void Loop::stop_thread() {
  if (!inside_->thread.joinable()) return;
  inside_->context.stop();
  inside_->thread.join();
  inside_->context.restart();
}

asio::io_context& Loop::context() const { return inside_->context; }

// ---- The client --------------------------------------------------------------------------------------------------

Client::Client() : client_(std::make_unique<AsyncClient>(loop_.context().get_executor(), limits)) {}
Client::~Client() {
  loop_.stop_thread();
  client_.reset();
}

// A loop that runs on tries again, and its next attempt begins without a word.
Handler Client::noting_why(Handler handler) {
  return [this, told = std::move(handler)](std::error_code error) mutable {
    why_not_connected_ = client_->error_text().string_view();
    told(error);
  };
}
Status Client::connect(const ClientConfig& config) {
  return loop_.complete([&](Handler handler) { client_->async_connect(config, noting_why(std::move(handler))); });
}
Status Client::connect(BytesArgument url) {
  return loop_.complete([&](Handler handler) { client_->async_connect(url, noting_why(std::move(handler))); });
}
void Client::close() {
  loop_.call([&] { client_->close(); });
}
bool Client::connected() const {
  bool connected = false;
  loop_.call([&] { connected = client_->connected(); });
  return connected;
}
ClientConfig Client::config() const { return client_->config(); }
const ServerIdentity& Client::server() const { return client_->server(); }
holdfast::Stats Client::stats() const { return client_->stats(); }

std::size_t Client::compensations_pending() const {
  std::size_t pending = 0;
  loop_.call([&] { pending = client_->compensations_pending(); });
  return pending;
}
ByteView Client::error_text() const {
  loop_.call([&] {
    text_ = client_->error_text().string_view();
    if (text_.empty()) text_ = why_not_connected_;
  });
  return ByteView(text_);
}
int Client::system_error_number() const {
  int number = 0;
  loop_.call([&] { number = client_->system_error_number(); });
  return number;
}
ConfigProblem Client::problem() const { return client_->problem(); }
std::size_t Client::kept() const {
  std::size_t kept = 0;
  loop_.call([&] { kept = client_->kept(); });
  return kept;
}
std::uint64_t Client::renewal_calls() const {
  std::uint64_t calls = 0;
  loop_.call([&] { calls = client_->renewal_calls(); });
  return calls;
}
Instant Client::tend() {
  loop_.poll();
  return kept() == 0 ? Instant::max() : now() + std::chrono::milliseconds(5);
}
void Client::watch_sentinels() {
  loop_.call([this] { client_->watch_sentinels(); });
}
void Client::cancel() {
  loop_.post([this] { client_->cancel(); });
}

// ---- Inspection ----------------------------------------------------------------------------------------------------

namespace {

// Of one name, for one operation.
Status inquire(Client& client, Key key, const std::function<void(AsyncInquiry&, Handler)>& start) {
  const ByteView name = key.valid() ? key.bytes() : ByteView();
  std::optional<AsyncInquiry> inquiry;
  client.loop().call([&] { inquiry.emplace(client.inside(), name); });
  const Status status = client.loop().complete([&](Handler handler) { start(*inquiry, std::move(handler)); });
  client.loop().call([&] { inquiry.reset(); });
  return status;
}

}  // namespace

Status inspect(Client& client, Key key, LockInfo& info) {
  return inquire(client, key, [&](AsyncInquiry& asked, Handler handler) { asked.async_inspect(info, handler); });
}
Status inspect_queue(Client& client, Key key, LockQueue& queue) {
  return inquire(client, key, [&](AsyncInquiry& asked, Handler handler) { asked.async_inspect_queue(queue, handler); });
}
Status force_release(Client& client, Key key, bool& released) {
  return inquire(client, key,
                 [&](AsyncInquiry& asked, Handler handler) { asked.async_force_release(released, handler); });
}
Status fenced_set(Client& client, Key resource, std::uint64_t fence, BytesArgument value, bool& written) {
  return inquire(client, resource,
                 [&](AsyncInquiry& asked, Handler handler) { asked.async_fenced_set(fence, value, written, handler); });
}

// ---- Owners ------------------------------------------------------------------------------------------------------

HoldOwner::HoldOwner(Client& client, std::size_t holds) : client_(&client) {
  client_->loop().call([&] {
    AsyncClient& inside = client_->inside();
    if (holds == 1)
      owner_ = std::make_shared<AsyncOwnerOf<1>>(inside);
    else if (holds == 2)
      owner_ = std::make_shared<AsyncOwnerOf<2>>(inside);
    else if (holds <= owner_holds_default)
      owner_ = std::make_shared<AsyncOwner>(inside);
    else
      owner_ = std::make_shared<AsyncOwnerOf<holds_max>>(inside);
  });
}
HoldOwner::~HoldOwner() {
  client_->loop().call([&] { owner_.reset(); });
}

// ---- Locks -------------------------------------------------------------------------------------------------------

BlockingLock::BlockingLock(Client& client, const Make& make) : client_(&client) {
  client_->loop().call([&] { lock_ = make(client_->inside()); });
}
BlockingLock::~BlockingLock() {
  client_->loop().call([&] { lock_.reset(); });
  client_->loop().poll();  // What is let go of leaves, as it does over the blocking client.
}

Status BlockingLock::configuration() const { return lock_->configuration(); }
Status BlockingLock::keep(const KeepOptions& options) {
  Status status = Status::ok;
  client_->loop().call([&] { status = lock_->keep(options); });
  return status;
}
void BlockingLock::tick() { lock_->tick(); }
Status BlockingLock::try_acquire() {
  return client_->loop().complete([&](Handler handler) { lock_->async_try_acquire(std::move(handler)); });
}
Status BlockingLock::acquire(Duration wait) {
  return client_->loop().complete([&](Handler handler) { lock_->async_acquire(wait, std::move(handler)); });
}
Status BlockingLock::renew() {
  return client_->loop().complete([&](Handler handler) { lock_->async_renew(std::move(handler)); });
}
Status BlockingLock::renew(Duration timeout) {
  return client_->loop().complete([&](Handler handler) { lock_->async_renew(timeout, std::move(handler)); });
}
Status BlockingLock::release() {
  return client_->loop().complete([&](Handler handler) { lock_->async_release(std::move(handler)); });
}
Status BlockingLock::post_release() {
  Status status = Status::ok;
  client_->loop().call([&] { status = lock_->post_release(); });
  client_->loop().poll();
  return status;
}
Status BlockingLock::forget_loss() {
  Status status = Status::ok;
  client_->loop().call([&] { status = lock_->forget_loss(); });
  client_->loop().poll();
  return status;
}
bool BlockingLock::held() const { return lock_->held(); }
Instant BlockingLock::valid_until() const { return lock_->valid_until(); }
Duration BlockingLock::remaining() const { return lock_->remaining(); }
bool BlockingLock::at_risk() const { return lock_->at_risk(); }
Instant BlockingLock::renewal_due() const {
  Instant due;
  client_->loop().call([&] { due = lock_->renewal_due(); });
  return due;
}
std::uint32_t BlockingLock::hold_count() const {
  std::uint32_t count = 0;
  client_->loop().call([&] { count = lock_->hold_count(); });
  return count;
}
Status BlockingLock::is_locked(bool& locked) {
  Duration remaining = Duration::zero();
  const Status status = remaining_on_server(remaining);
  if (status == Status::ok) locked = remaining != Duration::zero();
  return status;
}
Status BlockingLock::remaining_on_server(Duration& remaining) {
  return client_->loop().complete(
      [&](Handler handler) { lock_->async_remaining_on_server(remaining, std::move(handler)); });
}
Key BlockingLock::key() const { return lock_->key(); }
const Token& BlockingLock::token() const { return lock_->token(); }

Mutex::Mutex(Client& client, BytesArgument key, const LockTiming& timing, const MutexOptions& options)
    : BlockingLock(client,
                   [&](AsyncClient& inside) { return std::make_shared<AsyncMutex>(inside, key, timing, options); }) {}
std::uint64_t Mutex::fence() const { return static_cast<const AsyncMutex&>(*lock_).fence(); }

Semaphore::Semaphore(Client& client, BytesArgument key, std::uint32_t permits, const LockTiming& timing)
    : BlockingLock(
          client, [&](AsyncClient& inside) { return std::make_shared<AsyncSemaphore>(inside, key, permits, timing); }) {
}

ReentrantLock::ReentrantLock(HoldOwner& owner, BytesArgument key, const LockTiming& timing)
    : BlockingLock(owner.client(),
                   [&](AsyncClient&) { return std::make_shared<AsyncReentrantLock>(owner.inside(), key, timing); }) {}

FairLock::FairLock(HoldOwner& owner, BytesArgument key, const LockTiming& timing, const FairOptions& options)
    : BlockingLock(owner.client(), [&](AsyncClient&) {
        return std::make_shared<AsyncFairLock>(owner.inside(), key, timing, options);
      }) {}
std::uint64_t FairLock::fence() const { return static_cast<const AsyncFairLock&>(*lock_).fence(); }

FencedLock::FencedLock(HoldOwner& owner, BytesArgument key, const LockTiming& timing)
    : BlockingLock(owner.client(),
                   [&](AsyncClient&) { return std::make_shared<AsyncFencedLock>(owner.inside(), key, timing); }) {}
std::uint64_t FencedLock::fence() const { return static_cast<const AsyncFencedLock&>(*lock_).fence(); }

MultiLock::MultiLock(HoldOwner& owner, const ByteView* names, std::size_t count, const LockTiming& timing)
    : BlockingLock(owner.client(), [&](AsyncClient&) {
        return std::make_shared<AsyncMultiLock>(owner.inside(), names, count, timing);
      }) {}
ByteView MultiLock::name(std::size_t index) const { return static_cast<const AsyncMultiLock&>(*lock_).name(index); }

// The side that is destroyed last destroys the lock.
ReadWriteLock::ReadWriteLock(HoldOwner& owner, BytesArgument key, const ReadWriteTiming& timing)
    : read_(owner.client(),
            [&](AsyncClient&) {
              lock_ = std::make_shared<AsyncReadWriteLock>(owner.inside(), key, timing);
              return std::shared_ptr<AsyncLock>(lock_, &lock_->read());
            }),
      write_(owner.client(), [&](AsyncClient&) {
        AsyncLock& side = lock_->write();
        return std::shared_ptr<AsyncLock>(std::move(lock_), &side);
      }) {}

// ---- The watchdog ------------------------------------------------------------------------------------------------

void Client::attach(Watchdog* watchdog) {
  watchdog->clients_.push_back(this);
  loop_.start_thread();
}

Status Watchdog::start(Client& client) {
  client.attach(this);
  return Status::ok;
}

void Watchdog::stop() {
  for (Client* const client : clients_)
    if (!always_in_thread()) client->loop().stop_thread();
  clients_.clear();
}

std::size_t Watchdog::size() const {
  std::size_t size = 0;
  for (const Client* const client : clients_) size += client->kept();
  return size;
}

std::uint64_t Watchdog::calls() const {
  std::uint64_t calls = 0;
  for (const Client* const client : clients_) calls += client->renewal_calls();
  return calls;
}

}  // namespace async_face

// SPDX-License-Identifier: MIT
#include "async_quorum_face.hpp"

#include <asio/io_context.hpp>
#include <chrono>
#include <utility>

#include "holdfast/asio.hpp"

using namespace holdfast;

namespace async_face {

// ---- The quorum --------------------------------------------------------------------------------------------------

QuorumClient::QuorumClient(std::size_t nodes)
    : quorum_(std::make_unique<AsyncQuorum>(loop_.context().get_executor(), nodes)) {}
QuorumClient::~QuorumClient() {
  loop_.stop_thread();
  quorum_.reset();
}

Status QuorumClient::connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config) {
  return loop_.complete([&](Handler handler) { quorum_->async_connect(configs, count, config, std::move(handler)); });
}
Status QuorumClient::connect(const ByteView* urls, std::size_t count, const QuorumConfig& config) {
  return loop_.complete([&](Handler handler) { quorum_->async_connect(urls, count, config, std::move(handler)); });
}
void QuorumClient::close() {
  loop_.call([&] { quorum_->close(); });
}
std::size_t QuorumClient::nodes() const { return quorum_->size(); }
std::size_t QuorumClient::majority() const { return quorum_->majority(); }
NodeSet QuorumClient::voters() const {
  NodeSet voters = 0;
  loop_.call([&] { voters = quorum_->voters(); });
  return voters;
}
bool QuorumClient::connected() const {
  bool connected = false;
  loop_.call([&] { connected = quorum_->connected(); });
  return connected;
}
Status QuorumClient::node_status(std::size_t index) const {
  Status status = Status::ok;
  loop_.call([&] { status = quorum_->node_status(index); });
  return status;
}
std::uint64_t QuorumClient::seconds_until_vote(std::size_t index) const {
  std::uint64_t seconds = 0;
  loop_.call([&] { seconds = quorum_->seconds_until_vote(index); });
  return seconds;
}
ByteView QuorumClient::error_text() {
  loop_.call([&] { text_ = quorum_->error_text().string_view(); });
  return ByteView(text_);
}
ConfigProblem QuorumClient::problem() const { return quorum_->problem(); }
std::size_t QuorumClient::problem_node() const { return quorum_->problem_node(); }
holdfast::Stats QuorumClient::stats() const { return quorum_->stats(); }

std::size_t QuorumClient::compensations_pending() const {
  std::size_t pending = 0;
  loop_.call([&] { pending = quorum_->compensations_pending(); });
  return pending;
}
Instant QuorumClient::tend() {
  loop_.poll();
  return Client::now() + std::chrono::milliseconds(5);
}
void QuorumClient::cancel() {
  loop_.post([this] { quorum_->cancel(); });
}

template <std::size_t node_count>
QuorumHoldOwner<node_count>::QuorumHoldOwner(QuorumClient& quorum, std::size_t holds) : quorum_(&quorum) {
  quorum_->loop().call([&] {
    AsyncQuorum& inside = quorum_->inside();
    if (holds == 1)
      owner_ = std::make_shared<AsyncQuorumOwnerOf<node_count, 1>>(inside);
    else if (holds == 2)
      owner_ = std::make_shared<AsyncQuorumOwnerOf<node_count, 2>>(inside);
    else
      owner_ = std::make_shared<AsyncQuorumOwner<node_count>>(inside);
  });
}
template <std::size_t node_count>
QuorumHoldOwner<node_count>::~QuorumHoldOwner() {
  quorum_->loop().call([&] { owner_.reset(); });
}

// ---- Its locks ---------------------------------------------------------------------------------------------------

QuorumLock::QuorumLock(QuorumClient& quorum, const Make& make) : quorum_(&quorum) {
  quorum_->loop().call([&] { lock_ = make(quorum_->inside()); });
}
QuorumLock::~QuorumLock() {
  quorum_->loop().call([&] { lock_.reset(); });
  quorum_->loop().poll();  // What is let go of leaves, as it does over the blocking client.
}

Status QuorumLock::configuration() const { return lock_->configuration(); }
Status QuorumLock::keep(const KeepOptions& options) {
  Status status = Status::ok;
  quorum_->loop().call([&] { status = lock_->keep(options); });
  return status;
}
Status QuorumLock::try_acquire() {
  return quorum_->loop().complete([&](Handler handler) { lock_->async_try_acquire(std::move(handler)); });
}
Status QuorumLock::acquire(Duration wait) {
  return quorum_->loop().complete([&](Handler handler) { lock_->async_acquire(wait, std::move(handler)); });
}
Status QuorumLock::renew() {
  return quorum_->loop().complete([&](Handler handler) { lock_->async_renew(std::move(handler)); });
}
Status QuorumLock::renew(Duration timeout) {
  return quorum_->loop().complete([&](Handler handler) { lock_->async_renew(timeout, std::move(handler)); });
}
Status QuorumLock::release() {
  return quorum_->loop().complete([&](Handler handler) { lock_->async_release(std::move(handler)); });
}
Status QuorumLock::post_release() {
  Status status = Status::ok;
  quorum_->loop().call([&] { status = lock_->post_release(); });
  quorum_->loop().poll();
  return status;
}
Status QuorumLock::forget_loss() {
  Status status = Status::ok;
  quorum_->loop().call([&] { status = lock_->forget_loss(); });
  quorum_->loop().poll();
  return status;
}
bool QuorumLock::held() const { return lock_->held(); }
Instant QuorumLock::valid_until() const { return lock_->valid_until(); }
Duration QuorumLock::remaining() const { return lock_->remaining(); }
bool QuorumLock::at_risk() const { return lock_->at_risk(); }
std::uint32_t QuorumLock::hold_count() const {
  std::uint32_t count = 0;
  quorum_->loop().call([&] { count = lock_->hold_count(); });
  return count;
}
Instant QuorumLock::renewal_due() const {
  Instant due;
  quorum_->loop().call([&] { due = lock_->renewal_due(); });
  return due;
}
Status QuorumLock::node_status(std::size_t node) const {
  Status status = Status::ok;
  quorum_->loop().call([&] { status = lock_->node_status(node); });
  return status;
}
bool QuorumLock::held_on(std::size_t node) const {
  bool held = false;
  quorum_->loop().call([&] { held = lock_->held_on(node); });
  return held;
}
Key QuorumLock::key() const { return lock_->key(); }
const Token& QuorumLock::token() const { return lock_->token(); }

template <std::size_t node_count>
QuorumLock::Make QuorumLock::mutex(ByteView key, const QuorumTiming& timing, const MutexOptions& options) {
  return [=](AsyncQuorum& inside) {
    return std::make_shared<AsyncRedlockMutex<node_count>>(inside, key, timing, options);
  };
}
template <std::size_t node_count>
QuorumLock::Make QuorumLock::reentrant(QuorumHoldOwner<node_count>& owner, ByteView key, const QuorumTiming& timing,
                                       bool fence) {
  return [=, &owner](AsyncQuorum&) -> std::shared_ptr<AsyncQuorumLock> {
    if (fence) return std::make_shared<AsyncRedlockFencedLock<node_count>>(owner.inside(), key, timing);
    return std::make_shared<AsyncRedlockReentrantLock<node_count>>(owner.inside(), key, timing);
  };
}
template <std::size_t node_count>
std::uint64_t QuorumLock::mutex_fence() const {
  return static_cast<const AsyncRedlockMutex<node_count>&>(*lock_).fence();
}
template <std::size_t node_count>
std::uint64_t QuorumLock::fence_of_hash() const {
  return static_cast<const AsyncRedlockFencedLock<node_count>&>(*lock_).fence();
}

#define HOLDFAST_FACE_OF(node_count)                                                                           \
  template QuorumLock::Make QuorumLock::mutex<node_count>(ByteView, const QuorumTiming&, const MutexOptions&); \
  template class QuorumHoldOwner<node_count>;                                                                  \
  template QuorumLock::Make QuorumLock::reentrant<node_count>(QuorumHoldOwner<node_count>&, ByteView,          \
                                                              const QuorumTiming&, bool);                      \
  template std::uint64_t QuorumLock::mutex_fence<node_count>() const;                                          \
  template std::uint64_t QuorumLock::fence_of_hash<node_count>() const;
HOLDFAST_FACE_OF(1)
HOLDFAST_FACE_OF(2)
HOLDFAST_FACE_OF(3)
HOLDFAST_FACE_OF(4)
HOLDFAST_FACE_OF(5)
HOLDFAST_FACE_OF(9)
#undef HOLDFAST_FACE_OF

}  // namespace async_face

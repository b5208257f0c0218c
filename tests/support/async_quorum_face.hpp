// SPDX-License-Identifier: MIT
//
// AsyncQuorum and its Redlocks behind the names and signatures of the blocking ones; see async_face.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "async_face.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/quorum.hpp"

namespace holdfast {
class AsyncQuorum;
class AsyncQuorumLock;
template <std::size_t node_count>
class AsyncQuorumHoldOwner;
}  // namespace holdfast

namespace async_face {

class QuorumClient {
 public:
  QuorumClient(const QuorumClient&) = delete;
  QuorumClient& operator=(const QuorumClient&) = delete;

  [[nodiscard]] holdfast::Status connect(const holdfast::ClientConfig* configs, std::size_t count,
                                         const holdfast::QuorumConfig& config = {});
  [[nodiscard]] holdfast::Status connect(const holdfast::ByteView* urls, std::size_t count,
                                         const holdfast::QuorumConfig& config = {});
  void close();
  [[nodiscard]] std::size_t nodes() const;
  [[nodiscard]] std::size_t majority() const;
  [[nodiscard]] holdfast::NodeSet voters() const;
  [[nodiscard]] bool connected() const;
  [[nodiscard]] holdfast::Status node_status(std::size_t index) const;
  [[nodiscard]] std::uint64_t seconds_until_vote(std::size_t index) const;
  [[nodiscard]] holdfast::ByteView error_text();
  [[nodiscard]] holdfast::ConfigProblem problem() const;
  [[nodiscard]] std::size_t problem_node() const;
  [[nodiscard]] std::size_t compensations_pending() const;
  [[nodiscard]] holdfast::Stats stats() const;
  // When to call again is soon: the loop knows, and does not say.
  holdfast::Instant tend();
  void cancel();

  [[nodiscard]] Loop& loop() const { return loop_; }
  [[nodiscard]] holdfast::AsyncQuorum& inside() const { return *quorum_; }

 protected:
  explicit QuorumClient(std::size_t nodes);
  ~QuorumClient();

 private:
  mutable Loop loop_;
  std::unique_ptr<holdfast::AsyncQuorum> quorum_;
  std::string text_;
};

template <std::size_t node_count>
class Quorum : public QuorumClient {
 public:
  Quorum() : QuorumClient(node_count) {}
};

// Of 1, 2, 3, 4, 5 or 9 nodes.
template <std::size_t node_count>
class QuorumHoldOwner {
 public:
  QuorumHoldOwner(const QuorumHoldOwner&) = delete;
  QuorumHoldOwner& operator=(const QuorumHoldOwner&) = delete;
  [[nodiscard]] QuorumClient& quorum() const { return *quorum_; }
  [[nodiscard]] holdfast::AsyncQuorumHoldOwner<node_count>& inside() const { return *owner_; }

 protected:
  QuorumHoldOwner(QuorumClient& quorum, std::size_t holds);
  ~QuorumHoldOwner();

 private:
  QuorumClient* quorum_;
  std::shared_ptr<holdfast::AsyncQuorumHoldOwner<node_count>> owner_;
};

template <std::size_t node_count, std::size_t holds>
class QuorumOwnerOf : public QuorumHoldOwner<node_count> {
 public:
  static_assert(holds <= 2 || holds == holdfast::owner_holds_default);
  explicit QuorumOwnerOf(QuorumClient& quorum) : QuorumHoldOwner<node_count>(quorum, holds) {}
};

template <std::size_t node_count>
class QuorumOwner : public QuorumOwnerOf<node_count, holdfast::owner_holds_default> {
 public:
  using QuorumOwnerOf<node_count, holdfast::owner_holds_default>::QuorumOwnerOf;
};

class QuorumLock {
 public:
  QuorumLock(const QuorumLock&) = delete;
  QuorumLock& operator=(const QuorumLock&) = delete;

  [[nodiscard]] holdfast::Status configuration() const;
  [[nodiscard]] holdfast::Status keep(const holdfast::KeepOptions& options);
  [[nodiscard]] holdfast::Status try_acquire();
  [[nodiscard]] holdfast::Status acquire(holdfast::Duration wait);
  [[nodiscard]] holdfast::Status renew();
  [[nodiscard]] holdfast::Status renew(holdfast::Duration timeout);
  [[nodiscard]] holdfast::Status release();
  holdfast::Status post_release();
  [[nodiscard]] holdfast::Status forget_loss();
  [[nodiscard]] bool held() const;
  [[nodiscard]] holdfast::Instant valid_until() const;
  [[nodiscard]] holdfast::Duration remaining() const;
  [[nodiscard]] bool at_risk() const;
  [[nodiscard]] std::uint32_t hold_count() const;
  [[nodiscard]] holdfast::Instant renewal_due() const;
  [[nodiscard]] holdfast::Status node_status(std::size_t node) const;
  [[nodiscard]] bool held_on(std::size_t node) const;
  [[nodiscard]] holdfast::Key key() const;
  [[nodiscard]] const holdfast::Token& token() const;
  [[nodiscard]] QuorumClient& quorum() const { return *quorum_; }

 protected:
  using Make = std::function<std::shared_ptr<holdfast::AsyncQuorumLock>(holdfast::AsyncQuorum&)>;
  QuorumLock(QuorumClient& quorum, const Make& make);
  ~QuorumLock();

  // Instantiated for 1, 2, 3, 4, 5 and 9 nodes.
  template <std::size_t node_count>
  [[nodiscard]] static Make mutex(holdfast::ByteView key, const holdfast::QuorumTiming& timing,
                                  const holdfast::MutexOptions& options);
  template <std::size_t node_count>
  [[nodiscard]] static Make reentrant(QuorumHoldOwner<node_count>& owner, holdfast::ByteView key,
                                      const holdfast::QuorumTiming& timing, bool fence);
  template <std::size_t node_count>
  [[nodiscard]] std::uint64_t mutex_fence() const;
  template <std::size_t node_count>
  [[nodiscard]] std::uint64_t fence_of_hash() const;

 private:
  QuorumClient* quorum_;
  std::shared_ptr<holdfast::AsyncQuorumLock> lock_;
};

template <std::size_t node_count>
class RedlockMutex : public QuorumLock {
 public:
  RedlockMutex(QuorumClient& quorum, holdfast::BytesArgument key, const holdfast::QuorumTiming& timing = {},
               const holdfast::MutexOptions& options = {})
      : QuorumLock(quorum, mutex<node_count>(key, timing, options)) {}
  [[nodiscard]] std::uint64_t fence() const { return mutex_fence<node_count>(); }
};

template <std::size_t node_count>
class RedlockReentrantLock : public QuorumLock {
 public:
  RedlockReentrantLock(QuorumHoldOwner<node_count>& owner, holdfast::BytesArgument key,
                       const holdfast::QuorumTiming& timing = {})
      : QuorumLock(owner.quorum(), reentrant<node_count>(owner, key, timing, false)) {}
};

template <std::size_t node_count>
class RedlockFencedLock : public QuorumLock {
 public:
  RedlockFencedLock(QuorumHoldOwner<node_count>& owner, holdfast::BytesArgument key,
                    const holdfast::QuorumTiming& timing = {})
      : QuorumLock(owner.quorum(), reentrant<node_count>(owner, key, timing, true)) {}
  [[nodiscard]] std::uint64_t fence() const { return fence_of_hash<node_count>(); }
};

}  // namespace async_face

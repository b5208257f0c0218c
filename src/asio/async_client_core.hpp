// SPDX-License-Identifier: MIT
//
// AsyncClientCore is what lives of an AsyncClient as long as anything of it is in progress: its branch, or its branches of a
// cluster, all its locks, and who waits for the client itself.
#pragma once

#include <memory>
#include <optional>

#include "async_branch.hpp"
#include "async_cluster.hpp"
#include "async_lookout.hpp"
#include "holdfast/asio/async_client.hpp"
#include "holdfast/asio/async_record.hpp"

namespace holdfast {

class AsyncClientCore : public AsyncLoop, public OperationOwner, private Sleeper {
 public:
  AsyncClientCore(executor_type executor, const AsyncLimits& limits);
  ~AsyncClientCore() override;

  // The only one, or in a cluster the one of the configuration's name.
  [[nodiscard]] AsyncBranch& home() noexcept { return home_; }
  [[nodiscard]] AsyncBranch& branch(std::uint8_t number) noexcept {
    return number == 0 ? home_ : cluster_->branch(number);
  }
  [[nodiscard]] AsyncNode& node() noexcept { return home_.node(); }
  [[nodiscard]] const AsyncNode& node() const noexcept { return home_.node(); }
  // nullptr: there is one server.
  [[nodiscard]] AsyncCluster* cluster() const noexcept { return clustered_ ? cluster_.get() : nullptr; }
  // Of an executor that is none of this process's.
  [[nodiscard]] bool forked() const noexcept override { return node().forked(); }
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }
  // Of every call of its locks.
  [[nodiscard]] const TaskSettings& settings() const noexcept { return settings_; }

  void start_connect(const ClientConfig& config, Completion& completion, Status status);
  void start_close(Completion& completion);
  [[nodiscard]] Status read_url(ByteView url, ClientConfig& config);
  void close();
  // Of a client that is used: in a forked child nothing is cancelled, but completed with Status::forked.
  void cancel_all();
  // The client goes away.
  void shut_down();

  // Every lock.
  void enter(LinkedPlace<AsyncRecord>& place) noexcept { locks_.push_back(place); }
  template <class Function>
  void each_lock(Function&& function) {
    for (AsyncRecord* lock = locks_.first(); lock != nullptr; lock = lock->sibling_.next()) function(*lock);
  }
  // A lock goes away: no session hands it an answer any more.
  void abandon(const AsyncRecord* lock) noexcept;

  // From the next turn on.
  void watch(std::unique_ptr<AsyncLookout> lookout) {
    if (lookout_ == nullptr) lookout_ = std::move(lookout);
  }
  // It may have been told at a branch where its lock is no more.
  void stop_confirming(AckRequest& request) noexcept {
    each_branch([&request](AsyncBranch& branch) { branch.stop_confirming(request); });
  }

  // Holds that are kept alive, at all branches.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }
  [[nodiscard]] bool may_keep() const noexcept { return kept_ < kept_max_; }
  void count_kept(int change) noexcept { kept_ += static_cast<std::uint32_t>(change); }
  [[nodiscard]] std::uint64_t renewal_calls() noexcept;
  [[nodiscard]] std::size_t compensations_pending() noexcept;
  // Of who has something to say, the first branch before others.
  [[nodiscard]] ByteView error_text() noexcept;

  // What a branch says of its server.
  void branch_ready(AsyncBranch& branch);
  void branch_down(AsyncBranch& branch);

 private:
  void cancel_operation(Completion& completion) override;
  void wake(Instant now) override;
  void work() override;
  void await() override {
    each_node([](AsyncNode& node) { node.receive(); });
    if (lookout_ != nullptr) lookout_->receive();
  }
  void set_now(Instant now) noexcept override {
    each_node([now](AsyncNode& node) { node.set_now(now); });
    if (lookout_ != nullptr) lookout_->set_now(now);
  }
  [[nodiscard]] Instant next_timeout() const noexcept override;
  void judge_time() override;
  void leave_connections() override { close_nodes(); }

  [[nodiscard]] AsyncLimits branch_limits() const noexcept {
    return {.requests = requests_max_, .waiters = waiters_max_, .kept = kept_max_, .masters = masters_};
  }
  [[nodiscard]] Status prepare(const ClientConfig& config, Instant now);
  template <class Function>
  void each_branch(Function&& function) {
    function(home_);
    if (cluster_ != nullptr) cluster_->each(function);
  }
  template <class Function>
  void each_node(Function&& function) {
    each_branch([&function](AsyncBranch& branch) { branch.each_node(function); });
  }
  void bring_home();
  void close_nodes();
  void tell_connect(Status status);
  void end_idle();
  void work_close();

  // Of the limits, what further branches need.
  std::uint32_t requests_max_;
  std::uint32_t waiters_max_;
  std::uint32_t kept_max_;
  std::uint32_t masters_;
  AsyncBranch home_;
  std::unique_ptr<AsyncCluster>
      cluster_;  // Made by the first connect to one. It stays: Asio may have handlers of its sockets.
  std::unique_ptr<AsyncLookout> lookout_;  // Where it was asked for.
  LinkedPlace<AsyncRecord> locks_;
  std::uint32_t kept_ = 0;
  bool clustered_ = false;
  Completion* connect_ = nullptr;
  Completion* close_ = nullptr;
  ConfigProblem problem_;
  TaskSettings settings_;
};

}  // namespace holdfast

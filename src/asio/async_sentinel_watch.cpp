// SPDX-License-Identifier: MIT
//
// What a client on a loop hears of fail-overs: a connection to a sentinel that is a node of its own, as the one for acks.
#include "async_client_core.hpp"
#include "async_lookout.hpp"
#include "holdfast/core/switch_watch.hpp"

namespace holdfast {

namespace {

class AsyncSentinelWatch final : public AsyncLookout, private AsyncNode::Host {
 public:
  explicit AsyncSentinelWatch(AsyncLoop& loop) : loop_(loop), lane_(loop, *this, {.requests = in_flight_max}) {}

  bool work(AsyncNode& node) override {
    if (!follow(node)) return false;
    lane_.work();
    news_.work(lane_.node(), loop_.now(), lane_.random());
    lane_.transmit();
    return news_.doubt(lane_.node(), node.node(), loop_.now(), lane_.random());
  }
  void receive() override { lane_.receive(); }
  void set_now(Instant now) noexcept override { lane_.set_now(now); }
  Instant next_timeout(const AsyncNode& node) const noexcept override {
    if (!lane_.wanted()) return Instant::max();
    return earlier(lane_.next_timeout(), news_.poll_timeout(lane_.node(), node.node()));
  }
  void judge_time() override { lane_.judge_time(); }
  void close() override { lane_.close(); }

 private:
  // False: there is nobody to be heard. A configuration changes only while the node is not ready.
  bool follow(AsyncNode& node) {
    if (lane_.wanted() && (node.ready() || news_.follows(node.node()))) return true;
    if (lane_.wanted()) lane_.close();
    if (!node.ready() || !SwitchWatch::wanted_by(node.node())) return false;
    return lane_.prepare(news_.follow(node.node()), loop_.now()) == Status::ok;
  }

  void node_reply(AsyncNode& /*node*/, const Reply& /*reply*/) override {}  // Nobody waits for one.
  void node_ready(AsyncNode& /*node*/) override { news_.handle_ready(loop_.now()); }
  void node_down(AsyncNode& /*node*/) override { news_.handle_closed(lane_.node()); }

  AsyncLoop& loop_;
  SwitchWatch news_;
  AsyncNode lane_;
};

}  // namespace

void AsyncClient::watch_sentinels() { core_->watch(std::make_unique<AsyncSentinelWatch>(*core_)); }

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// Small worlds whose servers are several: some programs want one lock, while the servers that may have it change. The nodes, tasks
// and machines are those that ship, and so are the scripts; the servers are models (ModelRedis) behind rules of their own: Servers.
// No sockets: time and bytes are the world's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/ack_lane.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/core/topology.hpp"
#include "model_redis.hpp"
#include "random.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

inline constexpr Duration small_world_lease = 2s;
inline constexpr char small_world_name[] = "{k}";
inline constexpr Instant small_world_start = Instant::from_nanoseconds(1'000'000'000'000);
inline constexpr WallMicros small_world_wall_start = 1'700'000'000'000'000;

// Who is there to be connected to, and by which rules they answer. Each has a model, which knows its connections.
class Servers {
 public:
  using ConnectionId = ModelRedis::ConnectionId;
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  void set_now(Instant now) {
    for (const auto& model : models) model->set_now(small_world_wall_start + (now - small_world_start).count() / 1000);
  }
  // Whom a port leads to; models.size(): nobody.
  [[nodiscard]] virtual std::size_t at(std::uint16_t port) const = 0;
  // One request at one server: the bytes of its reply.
  virtual std::string answer(std::size_t server, ConnectionId connection, const std::string& request,
                             const std::vector<std::string_view>& words) = 0;
  // WAIT: its reply, or nothing while its connection is held up. `over`: its time is.
  virtual std::optional<std::string> answer_wait(std::size_t server, ConnectionId connection,
                                                 const std::vector<std::string_view>& words, bool over);
  // The value of the lock where it is now, whoever has it.
  [[nodiscard]] virtual const Entry* lock() const = 0;

  std::vector<std::unique_ptr<ModelRedis>> models;
  std::vector<int> deaths;  // Each ends the connections to that server.

 protected:
  // Each has a name and a time of its own beside that.
  explicit Servers(std::size_t count, ModelRedis::Settings settings = {});
  ~Servers() = default;
};

// One connection of a program, with its node.
class Wire {
 public:
  // Has the replies of the node taken.
  struct Host {
    virtual void take_replies(Wire& wire) = 0;

   protected:
    ~Host() = default;
  };
  Wire(Servers& servers, Host& host, Random& random, const ClientConfig& config);

  void dial(Instant now);
  // What has arrived, and then what is late.
  void receive(Instant now);
  // What lies in the socket came before what leaves now.
  void leave();
  void drop_failed();
  // The connection ends: some of what was on its way to the server is read by it, and no reply comes.
  void cut();
  // What the server has in its socket.
  void serve();

 private:
  void take(std::size_t most);
  void drop();
  std::uint16_t number() { return static_cast<std::uint16_t>(random_.below(UINT16_MAX + 1)); }

  Servers& servers_;
  Host& host_;
  Random& random_;
  std::unique_ptr<NodeBuffers> buffers_ = std::make_unique<NodeBuffers>();
  Instant now_ = small_world_start;
  Instant waits_until_;  // The connection is held up; the epoch: it is not.
  std::size_t server_ = 0;
  Servers::ConnectionId connection_ = 0;
  bool connected_ = false;
  int deaths_ = 0;
  std::string up_;
  std::string down_;

 public:
  Node node{buffers_->storage()};
};

// What a program does with its grants.
struct Habits {
  bool acks = false;          // They count when a replica has them. Nothing is renewed.
  bool ignores_acks = false;  // A canary: a grant counts at once.
};

// One program: acquires, keeps for a while with renewals, releases, and again.
class Program final : public Wire::Host {
 public:
  Program(Servers& servers, Topology& topology, std::size_t index, const LockKind& kind, Random& random,
          const Habits& habits);

  // What has arrived, then time, then the call, then what leaves.
  void turn(Instant now);
  void cut();
  void serve();

  // It was told so.
  [[nodiscard]] bool held(Instant now) const { return machine_.held(now) && !(task_ && task_->unconfirmed()); }
  [[nodiscard]] std::string token() const { return std::string(machine_.token().bytes().string_view()); }
  [[nodiscard]] std::uint64_t fence() const { return machine_.fence(); }
  [[nodiscard]] bool settled() const;

  bool rests = false;  // It begins nothing new.
  int grants = 0;
  int losses = 0;
  int refusals = 0;  // By replicas.

 private:
  void take_replies(Wire& wire) override;
  void move_lane();
  void settle();
  void work();
  void begin();
  Token token_now();

  std::size_t index_;
  Random& random_;
  bool acks_;
  std::optional<Wire> main_;
  std::optional<Wire> lane_;  // Where replicas are asked.
  LockMachine machine_;
  std::optional<NodeTask> task_;
  AckLane requests_;
  TaskSettings settings_;
  Instant now_ = small_world_start;
  Instant until_;
  std::uint64_t ordinal_ = 0;
};

// The lock's value is a hold of this token.
[[nodiscard]] bool holds(const Entry* entry, const std::string& token);
// Of all programs at most one was told that it has the lock, and that one has it.
[[nodiscard]] bool exclude_each_other(const std::vector<std::unique_ptr<Program>>& programs, const Servers& servers,
                                      Instant now);
[[nodiscard]] std::uint64_t number_from(const char* variable, std::uint64_t otherwise);

}  // namespace holdfast::sim

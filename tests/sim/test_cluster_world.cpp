// SPDX-License-Identifier: MIT
//
// Small worlds with a cluster: some clients want one lock, while its slot is moved key by key, its masters fail over, connections
// end at any byte, and nodes know late where the slot is. In others its masters die and lose what their replicas have not read, and
// a grant counts only when a replica has confirmed it. The nodes, tasks and machines are those that ship, and so are the scripts;
// the servers are models (ModelRedis) behind a cluster's rules. No sockets: time and bytes are the world's.
//
// HOLDFAST_CLUSTER_WORLDS: how many worlds (default 300). HOLDFAST_CLUSTER_SEED: the first one's seed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/cluster.hpp"
#include "holdfast/core/ack_lane.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "model_redis.hpp"
#include "printers.hpp"
#include "random.hpp"
#include "resp_request_parser.hpp"
#include "resp_text.hpp"
#include "unity_style.hpp"
#include "wire_pieces.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using namespace std::chrono_literals;
using holdfast::testing::bulk;
using holdfast::testing::receive_piece;
using holdfast::testing::transmit_piece;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr std::size_t servers = 3;
constexpr std::size_t clients = 3;
constexpr std::uint16_t port_base = 7000;
constexpr Duration lease = 2s;
constexpr char name[] = "{k}";
constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr WallMicros wall_start = 1'700'000'000'000'000;
const std::vector<std::string> lock_keys = {name, std::string("redisson_lock_token:") + name};

// The masters of one slot, and what each node thinks of it.
class Slot {
 public:
  Slot() {
    for (std::size_t index = 0; index < servers; ++index)
      models.push_back(std::make_unique<ModelRedis>(
          ModelRedis::Settings{.run_id = std::string(40, static_cast<char>('a' + index)), .now = wall_start}));
    for (Copy& copy : copies) copy.data = models[owner]->copy_data();
  }
  void set_now(Instant now) {
    for (const auto& model : models) model->set_now(wall_start + (now - start).count() / 1000);
  }

  // One request at one server, by a cluster's rules. The bytes of its reply.
  std::string answer(std::size_t server, ModelRedis::ConnectionId connection, const std::string& request,
                     const std::vector<std::string_view>& words) {
    std::vector<std::string> keys;
    const bool script = words[0] == "EVAL" || words[0] == "EVALSHA";
    if (script)
      for (int key = 0; key < std::atoi(std::string(words[2]).c_str()); ++key)
        keys.emplace_back(words[3 + static_cast<std::size_t>(key)]);
    else if (words[0] == "SET" || words[0] == "PTTL" || words[0] == "DELEX")
      keys.emplace_back(words[1]);
    if (!keys.empty()) {
      if (server != owner) return "-MOVED 7629 10.0.0.1:" + std::to_string(port_base + known_owner[server]) + "\r\n";
      if (target) {
        const auto here =
            std::count_if(keys.begin(), keys.end(), [&](const std::string& key) { return has(server, key); });
        if (here == 0) {
          ++asks;
          return "-ASK 7629 10.0.0.1:" + std::to_string(port_base + *target) + "\r\n";
        }
        if (static_cast<std::size_t>(here) != keys.size())
          return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
      }
    }
    models[server]->receive(connection, request);
    std::string reply = models[server]->take_output(connection);
    if (words[0] != "PTTL")
      written[connection] = ++offset;  // As servers before 7.2 count: also what has written nothing.
    // A model is in no cluster.
    const std::string alone = bulk("-1standalonemaster");
    if (const std::size_t at = reply.find(alone); at != std::string::npos)
      reply.replace(at, alone.size(), bulk("-1clustermaster"));
    return reply;
  }
  // WAIT: its reply, or nothing while its connection is held up.
  std::optional<std::string> answer_wait(std::size_t server, ModelRedis::ConnectionId connection,
                                         const std::vector<std::string_view>& words, bool over) {
    if (server != owner) return "-UNBLOCKED force unblock from blocking operation, instance state changed\r\n";
    const auto have = std::count_if(std::begin(copies), std::end(copies),
                                    [&](const Copy& copy) { return copy.offset >= written[connection]; });
    if (have < std::atoi(std::string(words[1]).c_str()) && !over) return std::nullopt;
    return ":" + std::to_string(have) + "\r\n";
  }
  // A replica has read all that there is.
  void replicate(std::size_t replica) { copies[replica] = {models[owner]->copy_data(), offset}; }
  // The master is gone, and what no replica has read with it. The one that has read most takes its place.
  void die(std::size_t after) {
    const Copy heir = copies[0].offset >= copies[1].offset ? copies[0] : copies[1];
    models[after]->load_data(heir.data);
    models[owner]->flush();
    ++deaths[owner];
    known_owner[owner] = known_owner[after] = after;
    owner = after;
    for (Copy& copy : copies) copy = {heir.data, offset};
    ++moves;
  }
  [[nodiscard]] bool has(std::size_t server, const std::string& key) const {
    return models[server]->find(key) != nullptr;
  }

  void move_key(const std::string& key) {
    if (!target || !has(owner, key)) return;
    Databases from = models[owner]->copy_data();
    Databases to = models[*target]->copy_data();
    const Entry moved = *from[0].find(key);
    if (!loses_data) {
      Entry& placed = to[0].create(key);
      placed.value = moved.value;
      to[0].set_expiry(key, placed, moved.expiry_ms);
    }
    from[0].erase(key);
    models[owner]->load_data(from);
    models[*target]->load_data(to);
  }
  void finish_move() {
    for (const std::string& key : lock_keys) move_key(key);
    const std::size_t before = owner;
    owner = *target;
    target.reset();
    known_owner[before] = known_owner[owner] = owner;
    ++moves;
  }
  // By agreement: the new master has all that the old one had.
  void fail_over(std::size_t after) {
    target.reset();
    models[after]->load_data(models[owner]->copy_data());
    models[owner]->flush();
    known_owner[owner] = known_owner[after] = after;
    owner = after;
    ++moves;
  }
  // The value of the lock where it is now, whoever has it.
  [[nodiscard]] const Entry* lock() const {
    if (const Entry* entry = models[owner]->find(name); entry != nullptr) return entry;
    return target ? models[*target]->find(name) : nullptr;
  }

  std::vector<std::unique_ptr<ModelRedis>> models;
  std::size_t owner = 0;
  std::optional<std::size_t> target;
  std::size_t known_owner[servers] = {};
  // What a replica has read, and how much that is.
  struct Copy {
    Databases data;
    std::uint64_t offset = 0;
  };
  Copy copies[2];
  int deaths[servers] = {};  // Each ends the connections to that server.
  std::uint64_t offset = 0;
  std::map<ModelRedis::ConnectionId, std::uint64_t> written;  // By whom, up to where.
  int moves = 0;
  int asks = 0;
  bool loses_data = false;  // A canary: what is moved does not arrive.
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
  Wire(Slot& slot, Host& host, sim::Random& random, const ClientConfig& config)
      : slot_(slot), host_(host), random_(random) {
    node.configure(config, nullptr);
  }

  void dial(Instant now) {
    now_ = now;
    for (;;) switch (node.poll_dial(now_, number())) {
        case DialAction::none: return;
        case DialAction::resolve: node.handle_addresses(nullptr, 0, now_, number()); break;  // All are literal.
        case DialAction::hang_up: break;
        case DialAction::dial: {
          const std::size_t server = node.config().port - port_base;
          if (server >= servers || random_.below(20) == 0) {
            node.dialer().handle_dial_failed(Status::connect_failed, now_, number());
            break;
          }
          server_ = server;
          connection_ = slot_.models[server]->accept();
          connected_ = true;
          deaths_ = slot_.deaths[server];
          node.handle_connected(now_);
          return;
        }
      }
  }
  // What has arrived, and then what is late.
  void receive(Instant now) {
    now_ = now;
    take(random_.below(4) == 0 ? random_.below(40) : SIZE_MAX);
    node.session().handle_timeout(now_);
    host_.take_replies(*this);
  }
  // What lies in the socket came before what leaves now.
  void leave() {
    while (connected_ && node.open()) {
      if (node.session().wants_look()) {
        take(SIZE_MAX);
        if (!connected_ || node.session().state() == SessionState::failed) break;
        node.session().handle_drained();
      }
      std::size_t limit = SIZE_MAX;
      if (!transmit_piece(node.session(), now_, up_, limit)) break;
    }
    drop_failed();
  }
  void drop_failed() {
    if (node.session().state() == SessionState::failed) drop();
  }
  // The connection ends: some of what was on its way to the server is read by it, and no reply comes.
  void cut() {
    if (!connected_) return;
    up_.resize(random_.below(up_.size() + 1));
    serve();
    drop();
  }
  // What the server has in its socket.
  void serve() {
    if (connected_ && slot_.deaths[server_] != deaths_) return drop();
    while (connected_ && !up_.empty()) {
      std::vector<std::string_view> words;
      std::size_t size = 0;
      std::string refusal;
      if (read_request(up_, true, words, size, refusal) != RequestOutcome::request) return;
      const std::string request = up_.substr(0, size);
      (void)read_request(request, true, words, size, refusal);
      if (words[0] == "WAIT") {
        if (waits_until_ == Instant())
          waits_until_ = now_ + std::chrono::milliseconds(std::atoi(std::string(words[2]).c_str()));
        const std::optional<std::string> reply = slot_.answer_wait(server_, connection_, words, now_ >= waits_until_);
        if (!reply) return;
        down_ += *reply;
        waits_until_ = Instant();
      } else {
        down_ += slot_.answer(server_, connection_, request, words);
      }
      up_.erase(0, size);
    }
  }

 private:
  void take(std::size_t most) {
    std::string_view bytes = std::string_view(down_).substr(0, most);
    const std::size_t whole = bytes.size();
    while (connected_ && receive_piece(node.session(), now_, bytes)) {
      node.handle_used(now_);
      host_.take_replies(*this);
    }
    if (connected_) down_.erase(0, whole - bytes.size());
  }
  void drop() {
    if (connected_) slot_.models[server_]->receive_end(connection_);
    connected_ = false;
    waits_until_ = Instant();
    up_.clear();
    down_.clear();
    if (node.open()) {
      node.handle_closed(now_, number());
      host_.take_replies(*this);
    }
  }
  std::uint16_t number() { return static_cast<std::uint16_t>(random_.below(UINT16_MAX + 1)); }

  Slot& slot_;
  Host& host_;
  sim::Random& random_;
  std::unique_ptr<NodeBuffers> buffers_ = std::make_unique<NodeBuffers>();
  Instant now_ = start;
  Instant waits_until_;  // The connection is held up; the epoch: it is not.
  std::size_t server_ = 0;
  ModelRedis::ConnectionId connection_ = 0;
  bool connected_ = false;
  int deaths_ = 0;
  std::string up_;
  std::string down_;

 public:
  Node node{buffers_->storage()};
};

// What a world is about.
struct Matter {
  bool acks = false;  // A grant counts when a replica has it. The slot stays, and its masters die.
  bool loses_data = false;
  bool ignores_acks = false;  // A canary: a grant counts at once.
};

// One program: acquires, keeps for a while with renewals, releases, and again.
class Program final : public Wire::Host {
 public:
  Program(Slot& slot, std::size_t index, const LockKind& kind, sim::Random& random, const Matter& matter)
      : index_(index), random_(random), acks_(matter.acks), machine_(kind) {
    cluster_.configure({.hosts = "10.0.0.1:7000,10.0.0.1:7001,10.0.0.1:7002", .name = name});
    ClientConfig config;
    config.topology = &cluster_;
    config.client_name = "";
    config.request_timeout = 300ms;
    config.connect_timeout = 500ms;
    config.acks = 1;
    config.acks_timeout = 40ms;
    TEST_ASSERT_FALSE(validate(config).found());
    main_.emplace(slot, *this, random, config);
    if (acks_) lane_.emplace(slot, *this, random, config);
    settings_ = {.request_timeout = 300ms, .connect_timeout = 500ms, .max_poll = 200ms};
    if (acks_ && !matter.ignores_acks) settings_.acks_wait = acks_wait_of(config);
    TEST_ASSERT_EQUAL(Status::ok, machine_.configure(Key(name), {.lease = lease}));
  }

  // What has arrived, then time, then the call, then what leaves.
  void turn(Instant now) {
    now_ = now;
    Node& node = main_->node;
    main_->dial(now);
    main_->receive(now);
    machine_.handle_timeout(now_);
    settle();
    (void)node.handle_ready(now_);
    main_->drop_failed();
    // A renewal is confirmed by nobody, so a master that dies may have lost it: proto/topology.md.
    if (!acks_ && !task_ && machine_.held(now_) && machine_.renewal_due() <= now_ &&
        node.session().has_room(false, request_size_max) && machine_.renew(now_, now_ + 300ms) == Status::ok)
      settle();
    if (lane_) move_lane();
    work();
    main_->leave();
    if (lane_) {
      requests_.work(lane_->node, now_);
      lane_->leave();
    }
  }
  void cut() {
    if (lane_ && random_.below(2) == 0) return lane_->cut();
    main_->cut();
  }
  void serve() {
    main_->serve();
    if (lane_) lane_->serve();
  }

  // It was told so.
  [[nodiscard]] bool held(Instant now) const { return machine_.held(now) && !(task_ && task_->unconfirmed()); }
  [[nodiscard]] std::string token() const { return std::string(machine_.token().bytes().string_view()); }
  [[nodiscard]] bool settled() const {
    // A posted release that was repeated is the session's.
    const bool waits = machine_.waiting() && machine_.state() != LockState::releasing;
    return !task_ && !machine_.held(now_) && !waits && main_->node.session().compensations_pending() == 0;
  }

  bool rests = false;  // It begins nothing new.
  int grants = 0;
  int losses = 0;
  int refusals = 0;  // By replicas.

 private:
  void take_replies(Wire& wire) override {
    Reply reply;
    while (wire.node.session().poll_reply(reply, now_)) {
      if (lane_ && &wire == &*lane_) {
        if (!requests_.handle_reply(reply, wire.node.config()))
          wire.node.session().fail(Status::protocol_error, "a reply of another shape than asked for");
        continue;
      }
      if (task_) (void)task_->note(reply);
      if (reply.tag.operation != Operation::query && reply.tag.operation != Operation::compensate)
        machine_.handle_reply(reply, now_);
      settle();
    }
  }
  void move_lane() {
    lane_->dial(now_);
    lane_->receive(now_);
    (void)lane_->node.handle_ready(now_);
    lane_->drop_failed();
    requests_.work(lane_->node, now_);
    TEST_ASSERT_TRUE(requests_.invariants());
    while (requests_.poll_told() != nullptr) {}
  }
  void settle() {
    Node& node = main_->node;
    while (machine_.has_output()) {
      if (machine_.wants_request()) node.submit(machine_, this, now_);
      const bool paid = NodeTask::pay(machine_, node, this);
      for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event()) {
        if (event == LockEvent::lost) ++losses;
        if (event == LockEvent::protocol_doubt)
          node.session().fail(Status::protocol_error, "a reply of another shape than asked for");
      }
      if (!paid) return;
    }
  }
  void work() {
    if (!task_) begin();
    Session& session = main_->node.session();
    while (task_) {
      TaskFacts facts = task_->facts(now_);
      facts.room = session.has_room(true, request_size_max) && session.may_compensate();
      facts.kept = true;
      LockTask& life = task_->life();
      switch (life.step(facts)) {
        case TaskAct::sleep: return;
        case TaskAct::attempt: break;
        case TaskAct::ask: {
          const Status status = task_->ask(token_now(), now_);
          task_->submit(false, now_);
          life.handle_asked(status);
          settle();
          break;
        }
        case TaskAct::listen: task_->plan(now_, 0, static_cast<std::uint16_t>(random_.below(UINT16_MAX + 1))); break;
        case TaskAct::confirm: requests_.enter(*task_); break;
        case TaskAct::keep: life.handle_kept(Status::ok); break;
        case TaskAct::give_up:
          session.give_up(this, life.why_given_up(), now_);
          take_replies(*main_);
          break;
        case TaskAct::let_go:
          ++refusals;
          requests_.leave(*task_);
          (void)machine_.release(session.identity().native_delete, true, now_, now_ + 300ms);
          (void)machine_.forget_loss();
          settle();
          break;
        case TaskAct::over:
          if (life.call() == Call::acquire && life.status() == Status::ok) {
            ++grants;
            until_ = now_ + std::chrono::milliseconds(random_.between(0, 3999));
          }
          task_.reset();
          return;
      }
    }
  }
  void begin() {
    if (machine_.state() == LockState::lost) (void)machine_.forget_loss();
    if (machine_.state() == LockState::idle) {
      if (rests) return;
      task_.emplace(machine_, main_->node, this);
      const Instant deadline = now_ + std::chrono::milliseconds(random_.below(3) == 0 ? 0 : random_.between(0, 4999));
      task_->begin_acquire(now_, deadline, deadline + 800ms, settings_);
    } else if (!machine_.held(now_) || now_ >= until_ || rests) {
      task_.emplace(machine_, main_->node, this);
      task_->begin(Call::release, now_ + 300ms, settings_);
    }
  }
  Token token_now() {
    std::string text;
    if (machine_.kind().token == TokenSource::random) {
      for (int digit = 0; digit < 32; ++digit) text += "0123456789abcdef"[random_.below(16)];
    } else {
      text = "00000000-0000-4000-8000-00000000000" + std::to_string(index_) + ":" + std::to_string(++ordinal_);
    }
    return Token(ByteView(text));
  }

  std::size_t index_;
  sim::Random& random_;
  bool acks_;
  Cluster cluster_;
  std::optional<Wire> main_;
  std::optional<Wire> lane_;  // Where replicas are asked.
  LockMachine machine_;
  std::optional<NodeTask> task_;
  AckLane requests_;
  TaskSettings settings_;
  Instant now_ = start;
  Instant until_;
  std::uint64_t ordinal_ = 0;
};

struct Sum {
  int grants = 0;
  int losses = 0;
  int moves = 0;
  int asks = 0;
  int refusals = 0;
};

bool holds(const Entry* entry, const std::string& token) {
  if (entry == nullptr) return false;
  if (const auto* text = std::get_if<StringValue>(&entry->value)) return *text == token;
  const auto* hash = std::get_if<HashValue>(&entry->value);
  return hash != nullptr && hash->find(token) != nullptr;
}

// False: somebody was told that it has the lock, and has not, or another has it, too.
bool run_world(std::uint64_t seed, Sum& sum, const Matter& matter = {}) {
  sim::Random random(seed);
  const LockKind& kind = random.below(2) == 0 ? mutex_kind : fenced_kind;
  Slot slot;
  slot.loses_data = matter.loses_data;
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t index = 0; index < clients; ++index)
    programs.push_back(std::make_unique<Program>(slot, index, kind, random, matter));
  const std::uint64_t lag = matter.acks ? 2 + random.below(60) : 1;
  Instant now = start;
  constexpr int turns = 4000;
  constexpr int quiet_turns = 1500;
  for (int turn = 0; turn < turns + quiet_turns; ++turn) {
    now = now + std::chrono::milliseconds(random.between(1, 10));
    slot.set_now(now);
    const bool quiet = turn >= turns;
    const auto other = [&] { return (slot.owner + 1 + random.below(servers - 1)) % servers; };
    if (matter.acks)
      for (std::size_t replica = 0; replica < std::size(slot.copies); ++replica)
        if (random.below(lag) == 0) slot.replicate(replica);
    if (!quiet) switch (random.below(150)) {
        case 0:
          if (matter.acks)
            slot.die(other());
          else if (!slot.target)
            slot.target = other();
          break;
        case 1: slot.move_key(lock_keys[random.below(lock_keys.size())]); break;
        case 2:
          if (slot.target) slot.finish_move();
          break;
        case 3:
          // A new master does not know of a move under way: what was moved already would be lost.
          if (!matter.acks && !slot.target && random.below(2) == 0) slot.fail_over(other());
          break;
        case 4: programs[random.below(clients)]->cut(); break;
        case 5:
        case 6: slot.known_owner[random.below(servers)] = slot.owner; break;
        default: break;
      }
    if (quiet && slot.target) slot.finish_move();
    if (quiet) std::fill(std::begin(slot.known_owner), std::end(slot.known_owner), slot.owner);
    for (const auto& program : programs) {
      if (quiet) program->rests = true;
      if (random.below(3) != 0) program->serve();
      program->turn(now);
      // Whoever is told that it holds the lock has it, and nobody else does.
      const Program* holder = nullptr;
      for (const auto& candidate : programs) {
        if (!candidate->held(now)) continue;
        if (holder != nullptr || !holds(slot.lock(), candidate->token())) return false;
        holder = candidate.get();
      }
    }
  }
  for (const auto& program : programs) {
    TEST_ASSERT_TRUE(program->settled());
    sum.grants += program->grants;
    sum.losses += program->losses;
    sum.refusals += program->refusals;
  }
  for (const auto& model : slot.models) TEST_ASSERT_TRUE(model->find(name) == nullptr);
  sum.moves += slot.moves;
  sum.asks += slot.asks;
  return true;
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST(test_a_slot_that_moves_should_give_its_lock_to_one_at_a_time) {
  const std::uint64_t first = number_from("HOLDFAST_CLUSTER_SEED", 1);
  const std::uint64_t worlds = number_from("HOLDFAST_CLUSTER_WORLDS", 300);
  Sum sum;
  for (std::uint64_t seed = first; seed != first + worlds; ++seed) {
    TEST_MESSAGE("seed " << seed);
    TEST_ASSERT_TRUE(run_world(seed, sum));
  }
  std::printf("%llu worlds: %d grants, %d losses, %d moves, %d times ASK\n", static_cast<unsigned long long>(worlds),
              sum.grants, sum.losses, sum.moves, sum.asks);
  // It went on all the time, and what it is about has happened.
  TEST_ASSERT_TRUE(sum.grants > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.moves > static_cast<int>(worlds));
  TEST_ASSERT_TRUE(sum.asks > static_cast<int>(worlds));
}

TEST(test_a_move_that_loses_data_should_be_seen_by_the_checker) {
  Sum sum;
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen += run_world(seed, sum, {.loses_data = true}) ? 0 : 1;
  TEST_ASSERT_TRUE(seen > 10);
}

TEST(test_a_confirmed_grant_should_outlive_masters_that_die) {
  const std::uint64_t first = number_from("HOLDFAST_CLUSTER_SEED", 1);
  const std::uint64_t worlds = number_from("HOLDFAST_CLUSTER_WORLDS", 300);
  Sum sum;
  for (std::uint64_t seed = first; seed != first + worlds; ++seed) {
    TEST_MESSAGE("seed " << seed);
    TEST_ASSERT_TRUE(run_world(seed, sum, {.acks = true}));
  }
  std::printf("%llu worlds: %d grants, %d losses, %d dead masters, %d grants that were not confirmed\n",
              static_cast<unsigned long long>(worlds), sum.grants, sum.losses, sum.moves, sum.refusals);
  TEST_ASSERT_TRUE(sum.grants > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.moves > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.refusals > static_cast<int>(worlds));
}

TEST(test_grants_that_count_at_once_should_be_seen_by_the_checker) {
  Sum sum;
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    seen += run_world(seed, sum, {.acks = true, .ignores_acks = true}) ? 0 : 1;
  TEST_ASSERT_TRUE(seen > 10);
}

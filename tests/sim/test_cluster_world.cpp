// SPDX-License-Identifier: MIT
//
// Small worlds with a cluster: some clients want one lock, while its slot is moved key by key, its masters fail over, connections
// end at any byte, and nodes know late where the slot is. The nodes, tasks and machines are those that ship, and so are the scripts;
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
    // A model is in no cluster.
    const std::string alone = bulk("-1standalonemaster");
    if (const std::size_t at = reply.find(alone); at != std::string::npos)
      reply.replace(at, alone.size(), bulk("-1clustermaster"));
    return reply;
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
  int moves = 0;
  int asks = 0;
  bool loses_data = false;  // A canary: what is moved does not arrive.
};

// One program: acquires, keeps for a while with renewals, releases, and again.
class Program {
 public:
  Program(Slot& slot, std::size_t index, const LockKind& kind, sim::Random& random)
      : slot_(slot), index_(index), random_(random), machine_(kind) {
    cluster_.configure({.hosts = "10.0.0.1:7000,10.0.0.1:7001,10.0.0.1:7002", .name = name});
    ClientConfig config;
    config.topology = &cluster_;
    config.client_name = "";
    config.request_timeout = 300ms;
    config.connect_timeout = 500ms;
    TEST_ASSERT_FALSE(validate(config).found());
    node_.configure(config, nullptr);
    settings_ = {.request_timeout = 300ms, .connect_timeout = 500ms, .max_poll = 200ms};
    TEST_ASSERT_EQUAL(Status::ok, machine_.configure(Key(name), {.lease = lease}));
  }

  // What has arrived, then time, then the call, then what leaves.
  void turn(Instant now) {
    now_ = now;
    dial();
    take(random_.below(4) == 0 ? random_.below(40) : SIZE_MAX);
    node_.session().handle_timeout(now_);
    poll_replies();
    machine_.handle_timeout(now_);
    settle();
    (void)node_.handle_ready(now_);
    if (node_.session().state() == SessionState::failed) close();
    if (!task_ && machine_.held(now_) && machine_.renewal_due() <= now_ &&
        node_.session().has_room(false, request_size_max) && machine_.renew(now_, now_ + 300ms) == Status::ok)
      settle();
    work();
    leave();
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
    while (connected_ && !up_.empty()) {
      std::vector<std::string_view> words;
      std::size_t size = 0;
      std::string refusal;
      if (read_request(up_, true, words, size, refusal) != RequestOutcome::request) return;
      const std::string request = up_.substr(0, size);
      (void)read_request(request, true, words, size, refusal);
      down_ += slot_.answer(server_, connection_, request, words);
      up_.erase(0, size);
    }
  }

  [[nodiscard]] bool held(Instant now) const { return machine_.held(now); }
  [[nodiscard]] std::string token() const { return std::string(machine_.token().bytes().string_view()); }
  [[nodiscard]] bool settled() const {
    return !task_ && !machine_.held(now_) && !machine_.waiting() && node_.session().compensations_pending() == 0;
  }

  bool rests = false;  // It begins nothing new.
  int grants = 0;
  int losses = 0;

 private:
  void dial() {
    for (;;) switch (node_.poll_dial(now_, random())) {
        case DialAction::none: return;
        case DialAction::resolve: node_.handle_addresses(nullptr, 0, now_, random()); break;  // All are literal.
        case DialAction::hang_up: break;
        case DialAction::dial: {
          const std::size_t server = node_.config().port - port_base;
          if (server >= servers || random_.below(20) == 0) {
            node_.dialer().handle_dial_failed(Status::connect_failed, now_, random());
            break;
          }
          server_ = server;
          connection_ = slot_.models[server]->accept();
          connected_ = true;
          node_.handle_connected(now_);
          return;
        }
      }
  }
  void take(std::size_t most) {
    std::string_view bytes = std::string_view(down_).substr(0, most);
    const std::size_t whole = bytes.size();
    while (connected_ && receive_piece(node_.session(), now_, bytes)) {
      node_.handle_used(now_);
      poll_replies();
    }
    if (connected_) down_.erase(0, whole - bytes.size());
  }
  void poll_replies() {
    Reply reply;
    while (node_.session().poll_reply(reply, now_)) {
      if (task_) (void)task_->note(reply);
      if (reply.tag.operation != Operation::query && reply.tag.operation != Operation::compensate)
        machine_.handle_reply(reply, now_);
      settle();
    }
  }
  void settle() {
    while (machine_.has_output()) {
      if (machine_.wants_request()) node_.submit(machine_, this, now_);
      const bool paid = NodeTask::pay(machine_, node_, this);
      for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event()) {
        if (event == LockEvent::lost) ++losses;
        if (event == LockEvent::protocol_doubt)
          node_.session().fail(Status::protocol_error, "a reply of another shape than asked for");
      }
      if (!paid) return;
    }
  }
  void work() {
    if (!task_) begin();
    while (task_) {
      TaskFacts facts = task_->facts(now_);
      facts.room = node_.session().has_room(true, request_size_max) && node_.session().may_compensate();
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
        case TaskAct::listen: task_->plan(now_, 0, random()); break;
        case TaskAct::confirm: break;  // Of one node whose replicas are counted.
        case TaskAct::keep: life.handle_kept(Status::ok); break;
        case TaskAct::give_up:
          node_.session().give_up(this, life.why_given_up(), now_);
          poll_replies();
          break;
        case TaskAct::let_go: break;
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
      task_.emplace(machine_, node_, this);
      const Instant deadline = now_ + std::chrono::milliseconds(random_.below(3) == 0 ? 0 : random_.between(0, 4999));
      task_->begin_acquire(now_, deadline, deadline + 800ms, settings_);
    } else if (!machine_.held(now_) || now_ >= until_ || rests) {
      task_.emplace(machine_, node_, this);
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
  // What lies in the socket came before what leaves now.
  void leave() {
    while (connected_ && node_.open()) {
      if (node_.session().wants_look()) {
        take(SIZE_MAX);
        if (!connected_ || node_.session().state() == SessionState::failed) break;
        node_.session().handle_drained();
      }
      std::size_t limit = SIZE_MAX;
      if (!transmit_piece(node_.session(), now_, up_, limit)) break;
    }
    if (node_.session().state() == SessionState::failed) close();
  }
  void drop() {
    if (connected_) slot_.models[server_]->receive_end(connection_);
    connected_ = false;
    up_.clear();
    down_.clear();
    if (node_.open()) {
      node_.handle_closed(now_, random());
      poll_replies();
    }
  }
  void close() { drop(); }
  std::uint16_t random() { return static_cast<std::uint16_t>(random_.below(UINT16_MAX + 1)); }

  Slot& slot_;
  std::size_t index_;
  sim::Random& random_;
  Cluster cluster_;
  std::unique_ptr<NodeBuffers> buffers_ = std::make_unique<NodeBuffers>();
  Node node_{buffers_->storage()};
  LockMachine machine_;
  std::optional<NodeTask> task_;
  TaskSettings settings_;
  Instant now_ = start;
  Instant until_;
  std::uint64_t ordinal_ = 0;
  std::size_t server_ = 0;
  ModelRedis::ConnectionId connection_ = 0;
  bool connected_ = false;
  std::string up_;
  std::string down_;
};

struct Sum {
  int grants = 0;
  int losses = 0;
  int moves = 0;
  int asks = 0;
};

bool holds(const Entry* entry, const std::string& token) {
  if (entry == nullptr) return false;
  if (const auto* text = std::get_if<StringValue>(&entry->value)) return *text == token;
  const auto* hash = std::get_if<HashValue>(&entry->value);
  return hash != nullptr && hash->find(token) != nullptr;
}

// False: somebody was told that it has the lock, and has not, or another has it, too.
bool run_world(std::uint64_t seed, Sum& sum, bool loses_data = false) {
  sim::Random random(seed);
  const LockKind& kind = random.below(2) == 0 ? mutex_kind : fenced_kind;
  Slot slot;
  slot.loses_data = loses_data;
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t index = 0; index < clients; ++index)
    programs.push_back(std::make_unique<Program>(slot, index, kind, random));
  Instant now = start;
  constexpr int turns = 4000;
  constexpr int quiet_turns = 1500;
  for (int turn = 0; turn < turns + quiet_turns; ++turn) {
    now = now + std::chrono::milliseconds(random.between(1, 10));
    slot.set_now(now);
    const bool quiet = turn >= turns;
    const auto other = [&] { return (slot.owner + 1 + random.below(servers - 1)) % servers; };
    if (!quiet) switch (random.below(150)) {
        case 0:
          if (!slot.target) slot.target = other();
          break;
        case 1: slot.move_key(lock_keys[random.below(lock_keys.size())]); break;
        case 2:
          if (slot.target) slot.finish_move();
          break;
        case 3:
          // A new master does not know of a move under way: what was moved already would be lost.
          if (!slot.target && random.below(2) == 0) slot.fail_over(other());
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
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen += run_world(seed, sum, true) ? 0 : 1;
  TEST_ASSERT_TRUE(seen > 10);
}

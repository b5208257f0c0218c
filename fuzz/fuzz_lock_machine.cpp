// SPDX-License-Identifier: MIT
//
// Theorem: three locks on one key, of two clients and of any kinds, before an honest server, under every order of sends,
// executions, replies, short writes, cuts, late commands of dead connections, faults, timeouts and cancellations:
//   1. No two of them are held at once, but where all of them read. (L1) Of permits, which have a key of their own, no more
//      than there are.
//   2. A lock that is held has its token on the server, and the server keeps it at least until valid_until, and so a reader's
//      own time, or a permit's. (L2)
//   3. No delete takes a token away that a lock holds, and nobody's token is deleted but by the client that drew it. (L3)
//   4. valid_until only grows within a generation; a hold that is lost stays lost. (L4)
//   5. What was given up is taken back: when all has settled, no token is left on the server that no lock holds, but
//      where a late command ran behind its compensation, or where there was no place for one. (L5)
//   6. The session's sums hold and its timer does not stand still, so that no driver spins. (S9, S10)
//   7. A step deletes nothing and counts from one. When all has settled, the server counts a hold as its holder does, but
//      where a late command ran behind its compensation, or where there was no place for one.
//   8. Every grant of a fenced kind has a larger fence than those before, and keeps it.
// The names are those of proto/security.md.
//
// Input: a program. Each step is a letter and a parameter, a digit or any byte:
//   c client  connect            a lock  acquire             d client  deliver all replies
//   k client  cut, sent survives n lock  renew               D n       deliver some bytes, n / 2 of them, to client n
//   K client  cut, sent is lost  r lock  release and wait    t client  transmit all
//   w client  judge deadlines    p lock  release by post     T n       transmit some bytes
//   y client  a whole round      g lock  cancel              x client  execute one command    X client  execute all
//   + n       time passes        b lock  destroy, make anew  z n       execute one of a dead connection
//   e n       fault of the next  l n     lease of lock n     v n       release of the server
//   f         flush scripts      s n     a stranger's key    h n       what the ACL refuses
//                                        the permits' one where n / 16 is odd
//   A N R n   as a n r of lock n, sent and answered in one go where nothing else is in flight; n / 3 says how it goes
//   i n       make lock n anew, of kind n / 3        U n  release lock n as often as it is held, by post
//   m n       renew lock n over another connection   M n  and hear of it
//   u n       client n finds a reply in its socket that it did not ask for, while it waits for none
// A lock of a reentrant kind that is held is acquired once more, and released once of several times.
// Spaces and line ends between steps are nothing.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "holdfast/core/fair_kind.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/read_write_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/core/semaphore_kind.hpp"
#include "model_client.hpp"
#include "model_server.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr char key_text[] = "k";
constexpr char permits_text[] = "s";
constexpr int permits = 2;
constexpr char stranger[] = "a stranger's";
constexpr std::size_t lock_count = 3;
constexpr std::size_t steps_max = 600;

// What happened to one token on the server, in steps of the server's own time.
struct TokenStory {
  int set_at = 0;
  int delete_at = 0;        // Last tried, whatever came of it.
  bool robbed = false;      // A stranger took the key.
  bool dropped = false;     // There was no place for its compensation.
  bool unserved = false;    // The server refused its compensation for good.
  bool miscounted = false;  // As dropped, unserved, or a late step; until the next step that the client knows of.
};

// A renewal over a connection of the watchdog's, with its answer on its way.
struct RenewalAside {
  bool asked = false;
  std::uint32_t generation = 0;
  Instant asked_at;
  std::int64_t answer = 0;
};

// What a lock was after the last step.
struct LockStory {
  int client = 0;
  ModelClient::Lock* lock = nullptr;
  std::uint32_t generation = 0;
  Instant valid_until;
  std::uint64_t fence = 0;
  RenewalAside aside;
  bool lost = false;
  bool ended = false;  // It was held in this generation, and then it was not.
};

class World final : ModelClient::Observer {
 public:
  World()
      : server_([this](auto effect, const auto& from, const std::string&, const std::string& token) {
          on_effect(effect, from, token);
        }),
        clients_{ModelClient(0, server_, *this), ModelClient(1, server_, *this)} {
    server_.now = Instant::from_nanoseconds(1'000'000'000'250'000);
    for (std::size_t index = 0; index < lock_count; ++index) {
      locks_[index].client = static_cast<int>(index % 2);
      make_lock(locks_[index], lease_default, mutex_kind);
    }
  }

  void run(std::string_view program) {
    for (std::size_t step = 0; step < steps_max && !program.empty(); ++step) {
      const char letter = program.front();
      program.remove_prefix(1);
      if (letter == ' ' || letter == '\n') continue;
      const auto raw = program.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(program.front());
      if (!program.empty()) program.remove_prefix(1);
      this->step(letter, raw >= '0' && raw <= '9' ? static_cast<std::size_t>(raw - '0') : raw);
      check();
    }
    settle();
  }

 private:
  // ---- Steps

  void step(char letter, std::size_t n) {
    static constexpr char letters[] = "ckKwy+anrpgbdDtTxXzelfsvhANRiUmMu";
    if (std::strchr(letters, letter) == nullptr || letter == '\0')
      letter = letters[static_cast<std::uint8_t>(letter) % (sizeof letters - 1)];
    trace_ += letter + std::to_string(n) + " ";
    ModelClient& client = clients_[n % 2];
    LockStory& story = locks_[n % lock_count];
    ModelClient& owner = clients_[story.client];
    switch (letter) {
      case 'c': client.connect(); break;
      case 'k': client.cut(true); break;
      case 'K': client.cut(false); break;
      case 'w': judge(client); break;
      case 'y': whole_round(client); break;
      case '+': server_.now = server_.now + duration(n); break;
      case 'a': owner.acquire(*story.lock); break;
      case 'n': owner.renew(*story.lock); break;
      case 'r': owner.release(*story.lock, false); break;
      case 'p': owner.release(*story.lock, true); break;
      case 'A':
      case 'N':
      case 'R': {
        const ModelClient::Course course = courses[n / lock_count % (sizeof courses / sizeof courses[0])];
        if (letter == 'A')
          owner.acquire(*story.lock, &course);
        else if (letter == 'N')
          owner.renew(*story.lock, &course);
        else
          owner.release(*story.lock, false, &course);
        break;
      }
      case 'g': owner.give_up(*story.lock); break;
      case 'b': make_anew(story, story.lock->machine.kind()); break;
      case 'i': make_anew(story, *kinds[n / lock_count % (sizeof kinds / sizeof kinds[0])]); break;
      case 'U': owner.release_all(*story.lock); break;
      case 'm': renew_aside(story); break;
      case 'M': hear_aside(story); break;
      case 'u': say_unasked(client, n / 2); break;
      case 'd': client.receive(SIZE_MAX); break;
      case 'D': client.receive(1 + n / 2); break;
      case 't': client.transmit(SIZE_MAX); break;
      case 'T': client.transmit(1 + n / 2); break;
      case 'x': execute(client, 1); break;
      case 'X': execute(client, SIZE_MAX); break;
      case 'z': execute_dead(n); break;
      case 'e': server_.fault = static_cast<ServerFault>(n % server_fault_count); break;
      case 'l':
        (void)story.lock->machine.configure(Key(key_of(story.lock->machine.kind())), {.lease = lease(n / lock_count)});
        break;
      case 'f': server_.flush_scripts(); break;
      case 's': rob(n); break;
      case 'v': server_.release = static_cast<ServerRelease>(n % 4); break;
      case 'h':
        server_.kill_allowed = n % 2 == 0;
        server_.identity_allowed = n / 2 % 2 == 0;
        server_.native_allowed = n / 4 % 2 == 0;
        ever_refused_ = ever_refused_ || !server_.kill_allowed || !server_.identity_allowed;
        break;
    }
  }

  static constexpr ModelClient::Course courses[] = {
      {},
      {.latency = 20ms},
      {.received = 2},
      {.sent = 0},
      {.sent = 20},
      {.executed = false},
      {.latency = 2s, .received = 0},
      {.latency = 20s},
  };
  static Duration duration(std::size_t n) {
    static constexpr Duration durations[] = {100us, 1ms, 2ms, 10ms, 100ms, 500ms, 1s, 2s, 5s, 10s};
    return n < 10 ? durations[n] : Duration(1370us) * static_cast<std::int64_t>(n);
  }
  static Duration lease(std::size_t n) {
    static constexpr Duration leases[] = {lease_min, 20ms, 500ms, 3s, lease_default};
    return leases[n % 5];
  }

  static constexpr const LockKind* kinds[] = {&mutex_kind,        &reentrant_kind,
                                              &fenced_kind,       &announced_mutex_kind,
                                              &fenced_mutex_kind, &announced_fenced_mutex_kind,
                                              &read_kind,         &write_kind,
                                              &semaphore_kind,    &fair_kind,
                                              &fair_fenced_kind};
  static const char* key_of(const LockKind& kind) { return &kind == &semaphore_kind ? permits_text : key_text; }

  void make_lock(LockStory& story, Duration lease, const LockKind& kind) {
    story.lock = &clients_[story.client].add_lock(Key(key_of(kind)), {.lease = lease}, kind);
    if (&kind == &semaphore_kind) story.lock->machine.set_argument(permits);
    start_story(story);
  }
  void make_anew(LockStory& story, const LockKind& kind) {
    const Duration lease = story.lock->machine.timing().lease;
    clients_[story.client].remove_lock(*story.lock);
    make_lock(story, lease, kind);
  }
  static void start_story(LockStory& story) {
    story.generation = 0;
    story.valid_until = Instant();
    story.fence = 0;
    story.aside = {};
    story.lost = false;
    story.ended = false;
  }
  void renew_aside(LockStory& story) {
    const LockMachine& machine = story.lock->machine;
    if (!machine.held(server_.now)) return;
    ModelServer::Connection aside;
    aside.client = story.client;
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(machine.timing().lease).count();
    story.aside = {
        true, machine.generation(), server_.now,
        server_.renew_aside(aside, key_of(machine.kind()), std::string(machine.token().bytes().string_view()),
                            &machine.kind() == &semaphore_kind ? ModelServer::EntryType::permits
                            : machine.kind().reentrant         ? ModelServer::EntryType::hash
                                                               : ModelServer::EntryType::string,
                            lease)};
  }
  void hear_aside(LockStory& story) {
    const RenewalAside aside = story.aside;
    story.aside = {};
    const LockMachine& machine = story.lock->machine;
    if (!aside.asked || aside.generation != machine.generation() || !machine.held(server_.now)) return;
    if (aside.answer == 1)
      clients_[story.client].confirm(*story.lock, aside.asked_at);
    else
      clients_[story.client].disown(*story.lock);
  }
  static void say_unasked(ModelClient& client, std::size_t n) {
    static const char* const replies[] = {
        "+OK\r\n",      "$-1\r\n",      ":1\r\n", ":0\r\n",  "$16\r\n1700000000000000\r\n",
        ":1\r\n:1\r\n", "*1\r\n:1\r\n", "+O",     "-ERR\r\n"};
    if (!client.session().ready() || client.session().in_flight() != 0) return;
    client.hear_unasked(replies[n % (sizeof replies / sizeof replies[0])]);
  }
  void judge(ModelClient& client) {
    client.handle_timeout();
    const SessionState state = client.session().state();
    if (state != SessionState::ready && state != SessionState::handshaking) return;
    // What waits for room in the send buffer is nobody's timer.
    (void)client.session().poll_transmit(server_.now);
    if (client.session().unsent()) return;
    HOLDFAST_THEOREM(client.session().poll_timeout() > server_.now, trace_);
  }
  void whole_round(ModelClient& client) {
    for (int turn = 0; turn < 3; ++turn) {
      client.transmit(SIZE_MAX);
      execute(client, SIZE_MAX);
      client.receive(SIZE_MAX);
    }
  }
  void execute(ModelClient& client, std::size_t count) {
    while (count-- != 0 && client.connected() && server_.execute_one(*client.connection())) {}
  }
  // The commands of a connection that its client has given up run when the server comes to them.
  void execute_dead(std::size_t n) {
    std::size_t dead = 0;
    for (const auto& connection : server_.connections())
      dead += connection.open || connection.inbound.empty() ? 0U : 1U;
    if (dead == 0) return;
    n %= dead;
    for (auto& connection : server_.connections())
      if (!connection.open && !connection.inbound.empty() && n-- == 0 && !server_.execute_one(connection))
        connection.inbound.clear();  // Half a request: the server sees the end of the connection.
  }
  void rob(std::size_t n) {
    ModelServer::EntryType type = ModelServer::EntryType::string;
    const char* const key = n / 16 % 2 == 0 ? key_text : permits_text;
    if (const ModelServer::Entry* const entry = server_.find(key); entry != nullptr) {
      type = entry->type;
      stories_[entry->value].robbed = true;
      for (const auto& field : entry->fields) stories_[field.first].robbed = true;
    }
    if (n % 2 != 0) type = ModelServer::EntryType::list;
    ModelServer::Entry entry = {stranger, server_.now + duration(n % 10), type, {}, ModelServer::Mode::none, {}};
    if (type == ModelServer::EntryType::hash) entry.fields[stranger] = 1;
    server_.overwrite(key, entry);
  }

  // ---- What is seen

  void on_effect(ModelServer::Effect effect, const ModelServer::Connection& from, const std::string& token) {
    if (effect == ModelServer::Effect::killed) {
      HOLDFAST_THEOREM(!clients_[from.client].connected() || clients_[from.client].connection() != &from, trace_);
      return;
    }
    TokenStory& story = stories_[token];
    HOLDFAST_THEOREM(effect == ModelServer::Effect::given || std::stoi(token.substr(0, 8)) == from.client,
                     trace_ + token);
    switch (effect) {
      case ModelServer::Effect::given:
      case ModelServer::Effect::set: story.set_at = ++server_time_; return;
      case ModelServer::Effect::extended: return;
      case ModelServer::Effect::counted:
        HOLDFAST_THEOREM(server_.find(key_text)->fields[token] >= 1, trace_ + token);
        story.miscounted = clients_[from.client].connection() != &from;
        check_order(from, token, late_steps);
        return;
      case ModelServer::Effect::deleted:
        for (const LockStory& it : locks_)
          HOLDFAST_THEOREM(!it.lock->machine.held(server_.now) || ByteView(token) != it.lock->machine.token().bytes(),
                           trace_ + token);
        [[fallthrough]];
      case ModelServer::Effect::delete_refused:
        story.delete_at = ++server_time_;
        check_order(from, token, late_acquires);
        return;
      case ModelServer::Effect::compensation_unserved:
        story.unserved = true;
        story.miscounted = true;
        return;
      case ModelServer::Effect::killed: return;
    }
  }

  // A compensation must not be overtaken by what the last connection left in the server's socket, where the server
  // lets us stop that.
  void check_order(const ModelServer::Connection& from, const std::string& token,
                   std::vector<std::string> (*late_commands)(const std::string& token)) {
    if (ever_refused_) return;
    for (const ModelServer::Connection& other : server_.connections()) {
      if (other.open || other.client != from.client || other.id >= from.id) continue;
      if (other.inbound.find(token) == std::string::npos) continue;
      bool is_last = true;
      for (const std::int64_t id : identified_[other.client]) is_last = is_last && (id <= other.id || id >= from.id);
      if (!is_last) continue;
      for (const std::string& command : late_commands(token))
        HOLDFAST_THEOREM(other.inbound.find(command) == std::string::npos, trace_ + token);
    }
  }
  static std::vector<std::string> late_acquires(const std::string& token) {
    const std::string counter = "$23\r\nredisson_lock_token:{k}\r\n";
    std::vector<std::string> all = {"$3\r\nSET\r\n$1\r\nk\r\n$32\r\n" + token};
    for (const Script* const script :
         {&scripts::reentrant_acquire, &scripts::read_acquire, &scripts::write_acquire, &scripts::fair_acquire})
      add_script(all, *script, "$1\r\n1\r\n$1\r\nk\r\n$32\r\n" + token);
    for (const Script* const script : {&scripts::fenced_acquire, &scripts::mutex_acquire_fenced})
      add_script(all, *script, "$1\r\n2\r\n$1\r\nk\r\n" + counter + "$32\r\n" + token);
    add_script(all, scripts::semaphore_acquire, "$1\r\n1\r\n$1\r\ns\r\n$32\r\n" + token);
    return all;
  }
  static std::vector<std::string> late_steps(const std::string& token) {
    std::vector<std::string> all;
    for (const Script* const script : {&scripts::reentrant_step, &scripts::read_write_step})
      add_script(all, *script, "$1\r\n1\r\n$1\r\nk\r\n$32\r\n" + token);
    return all;
  }
  static void add_script(std::vector<std::string>& all, const Script& script, const std::string& behind) {
    all.push_back(std::string(script.sha.bytes().string_view()) + "\r\n" + behind);
    all.push_back(std::string(script.text.string_view()) + "\r\n" + behind);
  }

  void on_event(ModelClient::Lock& lock, LockEvent event) override {
    bool misled = false;
    for (const ModelClient& client : clients_)
      for (const auto& its : client.locks()) misled |= its.get() == &lock && client.misled();
    for (LockStory& story : locks_) {
      if (story.lock != &lock) continue;
      if (event == LockEvent::granted) {
        const LockMachine& machine = lock.machine;
        HOLDFAST_THEOREM(machine.count() == 1 || (machine.kind().reentrant && !story.lost), trace_);
        if (machine.count() == 1 && machine.kind().fenced) {
          HOLDFAST_THEOREM(machine.fence() > last_fence_, trace_);
          last_fence_ = machine.fence();
        }
        story.lost = false;
      }
      if (event == LockEvent::lost) story.lost = true;
      if (event == LockEvent::renewed) HOLDFAST_THEOREM(!story.lost, trace_);
    }
    // An honest server gives no cause for doubt.
    HOLDFAST_THEOREM(event != LockEvent::protocol_doubt || misled, trace_);
  }
  void on_dropped_compensation(const Token& token) override {
    TokenStory& story = stories_[std::string(token.bytes().string_view())];
    story.dropped = true;
    story.miscounted = true;
  }

  void check() {
    int held = 0;
    int readers = 0;
    int permits_held = 0;
    for (LockStory& story : locks_) {
      const LockMachine& machine = story.lock->machine;
      HOLDFAST_THEOREM(machine.generation() >= story.generation, trace_);
      const bool is_held = machine.held(server_.now);
      if (machine.generation() != story.generation) story.ended = false;
      if (is_held) {
        HOLDFAST_THEOREM(!story.lost && !story.ended, trace_);
        HOLDFAST_THEOREM(machine.state() == LockState::held || machine.state() == LockState::at_risk, trace_);
        if (machine.generation() == story.generation) {
          HOLDFAST_THEOREM(machine.valid_until() >= story.valid_until, trace_);
          HOLDFAST_THEOREM(machine.fence() == story.fence || story.valid_until == Instant(), trace_);
        }
        HOLDFAST_THEOREM(machine.count() >= 1 && (machine.count() == 1 || machine.kind().reentrant), trace_);
        const std::string token(machine.token().bytes().string_view());
        if (!stories_[token].robbed) {
          const bool timed = &machine.kind() == &read_kind || &machine.kind() == &semaphore_kind;
          ++(&machine.kind() == &semaphore_kind ? permits_held : held);
          readers += &machine.kind() == &read_kind ? 1 : 0;
          const ModelServer::Entry* const entry = server_.find(key_of(machine.kind()));
          HOLDFAST_THEOREM(entry != nullptr && entry->names(token), trace_ + token);
          HOLDFAST_THEOREM(machine.valid_until() <= entry->expires, trace_ + token);
          if (timed)
            HOLDFAST_THEOREM(entry->own_times.count(token) != 0 && machine.valid_until() <= entry->own_times.at(token),
                             trace_ + token);
        }
      } else if (machine.valid_until() != Instant()) {
        story.ended = true;  // By time, judged or not.
      }
      story.generation = machine.generation();
      story.valid_until = machine.valid_until();
      story.fence = machine.fence();
    }
    HOLDFAST_THEOREM(held <= 1 || held == readers, trace_);
    HOLDFAST_THEOREM(permits_held <= permits, trace_);
    for (int number = 0; number < 2; ++number) check_session(number);
  }

  void check_session(int number) {
    Session& session = clients_[number].session();
    HOLDFAST_THEOREM(session.invariants(), trace_);
    HOLDFAST_THEOREM(session.in_flight() <= in_flight_max, trace_);
    HOLDFAST_THEOREM(session.compensations_pending() <= compensations_max, trace_);
    HOLDFAST_THEOREM((session.state() == SessionState::closed) == !clients_[number].connected(), trace_);
    if (session.state() == SessionState::closed) {
      HOLDFAST_THEOREM(session.in_flight() == 0 && session.poll_transmit(server_.now).empty(), trace_);
      HOLDFAST_THEOREM(session.poll_timeout() == Instant::max(), trace_);
    }
    if (session.ready() && session.identity().client_id != 0)
      identified_[number].insert(clients_[number].connection()->id);
  }

  // All commands run, all replies arrive, the network is whole. What is left then stays.
  void settle() {
    server_.fault = ServerFault::none;
    bool quiet = false;
    for (int round = 0; round < 100 && !quiet; ++round) {
      for (std::size_t dead = 0; dead < 64; ++dead) execute_dead(0);
      quiet = true;
      for (ModelClient& client : clients_) {
        client.connect();
        whole_round(client);
        judge(client);
        check();
        quiet = quiet && client.session().ready() && client.session().in_flight() == 0 &&
                client.session().compensations_pending() == 0;
      }
      for (const LockStory& story : locks_) quiet = !clients_[story.client].leave_queue(*story.lock) && quiet;
      server_.now = server_.now + 300ms;
    }
    HOLDFAST_THEOREM(quiet, trace_);
    check_permits_left();
    const ModelServer::Entry* const entry = server_.find(key_text);
    if (entry == nullptr || entry->type == ModelServer::EntryType::list || entry->names(stranger)) return;
    for (const LockStory& story : locks_)
      if (is_holder(*story.lock, *entry)) return;
    const std::string& token = entry->fields.empty() ? entry->value : entry->fields.begin()->first;
    check_left(token);
  }
  void check_permits_left() {
    const ModelServer::Entry* const entry = server_.find(permits_text);
    if (entry == nullptr || entry->type != ModelServer::EntryType::permits) return;
    for (const auto& [token, until] : entry->own_times) {
      bool held = until <= server_.now;  // Until somebody asks for it.
      for (const LockStory& story : locks_)
        held |= story.lock->machine.token().bytes() == ByteView(token) && is_holder(*story.lock, *entry);
      if (!held) check_left(token);
    }
  }
  void check_left(const std::string& token) {
    const TokenStory& story = stories_[token];
    const bool overtaken = story.delete_at != 0 && story.delete_at < story.set_at;
    HOLDFAST_THEOREM(story.dropped || story.unserved || overtaken || misled(token), trace_ + token);
  }
  // Its client may think that a release was answered, and it never was.
  bool misled(const std::string& token) const { return clients_[std::stoi(token.substr(0, 8))].misled(); }
  bool is_holder(const ModelClient::Lock& lock, const ModelServer::Entry& entry) {
    const LockState state = lock.machine.state();
    const std::string token(lock.machine.token().bytes().string_view());
    if ((state != LockState::held && state != LockState::at_risk) || !entry.names(token)) return false;
    if (entry.type == ModelServer::EntryType::hash)
      HOLDFAST_THEOREM(stories_[token].miscounted || misled(token) || entry.fields.at(token) == lock.machine.count(),
                       trace_ + token);
    return true;
  }

  ModelServer server_;
  ModelClient clients_[2];
  LockStory locks_[lock_count];
  std::map<std::string, TokenStory> stories_;
  std::set<std::int64_t> identified_[2];
  int server_time_ = 0;
  std::uint64_t last_fence_ = 0;
  bool ever_refused_ = false;
  std::string trace_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World().run({reinterpret_cast<const char*>(data), size});
  return 0;
}

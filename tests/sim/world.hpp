// SPDX-License-Identifier: MIT
//
// World is one simulated world: its nodes, the clients' processes with their threads and sockets, the network between
// them, true time, and a queue of what happens next. One thread, one seed; the same seed gives the same trace.
//
//     process: fibers that run a client, or a loop ---- system calls ----> World ---- bytes, late ----> Node
//
// The client's objects are those that ship, sockets and threads included: the linker replaces the system calls
// (system_calls.cpp).
#pragma once

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "application.hpp"
#include "fault.hpp"
#include "fiber.hpp"
#include "holdfast/limits.hpp"
#include "model_redis.hpp"
#include "plan.hpp"
#include "random.hpp"
#include "tls_link.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class Application;
class Checkers;
class FaultInjector;
class Keeping;
class Pace;
class Shifts;
struct Canary;
class World;

// Bytes on their way, in the pieces in which they arrive. An empty piece is the end.
class Stream {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == sizes_.size(); }
  void push(std::string_view piece) {
    bytes_ += piece;
    sizes_.push_back(static_cast<std::uint32_t>(piece.size()));
  }
  // A view until the next call.
  [[nodiscard]] std::string_view front() const noexcept { return {bytes_.data() + begin_, sizes_[first_]}; }
  void pop() noexcept {
    begin_ += sizes_[first_++];
    if (empty()) clear();
  }
  void clear() noexcept {
    bytes_.clear();
    sizes_.clear();
    begin_ = 0;
    first_ = 0;
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> sizes_;
  std::size_t begin_ = 0;
  std::size_t first_ = 0;
};

// What is at an address of a node's name.
enum class Address : std::uint8_t { server, refusing, silent };

[[nodiscard]] std::uint32_t address_of(Address address) noexcept;  // In the host's order.
[[nodiscard]] Address at_address(std::uint32_t address) noexcept;
// A node's name, which says what its resolver answers: how many other addresses, and of which kind.
[[nodiscard]] std::string host_name(const ConnectionPlan& plan, std::size_t node);
[[nodiscard]] bool read_host_name(const char* name, std::size_t& node, std::size_t& dead, bool& silent) noexcept;

// One connection. Bytes of each direction arrive in their order.
struct Link {
  enum class State : std::uint8_t { unconnected, connecting, established, failed };
  State state = State::unconnected;
  std::size_t index = 0;
  int number = -1;  // Its descriptor.
  std::size_t node = 0;
  std::size_t process = 0;
  std::uint32_t life = 0;
  std::size_t thread = 0;  // Which has opened it,
  std::size_t user = 0;    // and which has used it last: a client that was connected for it.
  Address address = Address::server;
  ModelRedis::ConnectionId server_id = 0;  // 0: the server does not know it, or not any more.
  Stream up;                               // On their way to the server.
  Stream down;
  SimTime up_last = 0;
  SimTime down_last = 0;
  SimTime up_stalled_until = 0;
  SimTime down_stalled_until = 0;
  bool up_swallowed = false;
  bool down_swallowed = false;
  bool client_closed = false;
  bool end_sent = false;      // By the server.
  bool end_received = false;  // By the client.
  bool dribbles = false;
  bool subscribed = false;        // Has carried a SUBSCRIBE.
  bool again = false;             // And is not the first one of its thread that has.
  bool greeted = false;           // The client has gone on behind that: the handshake is over.
  bool useful = false;            // Greeted, or subscribed with the server's word,
  SimTime useful_at = 0;          // since then.
  std::int64_t reset_after = -1;  // Bytes to come, in both directions; -1: no such fault.
  int short_writes = 0;           // Sends to come that take a part.
  SimTime full_until = 0;         // A send takes nothing.
  int error = 0;
  std::size_t up_bytes = 0;  // In `up`.
  std::string received;      // In the client's socket.
  bool releases = false;     // Some of a release has been sent, and the rest is still to come.
  bool deceived = false;     // That is no reply, and no client goes on behind it.
  bool unasked = false;      // That is what nobody asked for, and the client has not seen it.
  bool answered = false;     // Some bytes of the server have been received.
  std::string pending;       // At the server: bytes that it has not read, while it is paused.
  bool pending_end = false;
  bool waits = false;            // Has carried a WAIT,
  bool held_up = false;          // and one is to be answered.
  SimTime receive_timeout = 0;   // Of the client's clock; 0: none.
  Duration max_lease{};          // Of the client's quorum, when it was connected; 0: it has none.
  std::unique_ptr<TlsPeer> tls;  // The server's end of it. Without, all goes as it is.
  std::string spoilt;            // Goes before the next bytes of the server, and is no TLS.

  // Nothing that has gone wrong with it is still to be noticed.
  [[nodiscard]] bool sound(SimTime now) const noexcept {
    return !up_swallowed && !down_swallowed && !dribbles && reset_after < 0 && short_writes == 0 && error == 0 &&
           !end_sent && up_stalled_until <= now && down_stalled_until <= now && full_until <= now;
  }
};

// What is done to the next replies of a server.
enum class Tamper : std::uint8_t { nothing, hostile, shape, unasked, lose_message, double_message };

// A server (ModelRedis) on a machine of its own, what is wrong with it, and with the way to it.
struct Node {
  Node(std::size_t its_index, const ModelRedis::Settings& settings) : index(its_index), redis(settings) {}

  std::size_t index;
  ModelRedis redis;
  ModelRedis::ConnectionId foreign = 0;  // Somebody else's connection.
  std::uint32_t restarts = 0;
  std::uint32_t promotions = 0;
  SimTime paused_until = 0;
  SimTime refused_until = 0;  // Connects.
  SimTime black_until = 0;
  SimTime spike = 0;  // Of latency.
  SimTime spike_until = 0;
  SimTime slow_connect_until = 0;
  SimTime slow_handshake_until = 0;
  SimTime second_black_until = 0;  // For those who are connected.
  SimTime slow_resolver_until = 0;
  SimTime failing_resolver_until = 0;
  SimTime out_of_reach_until = 0;  // For who is connected,
  SimTime no_dialling_until = 0;   // and for who wants to be.
  WallMicros wall_offset = 0;
  WallMicros wall_offset_max = 0;
  Tamper tamper = Tamper::nothing;
  std::vector<std::size_t> links;  // Those that it knows.
  std::string lane;                // Its name in traces.
};

// Of a node that was started so many times before.
[[nodiscard]] std::string run_id_of(std::size_t node, std::uint32_t restarts);

struct Pipe {
  std::size_t process = 0;
  std::size_t count = 0;
};

struct Descriptor {
  enum class Kind : std::uint8_t { closed, socket, pipe, epoll, timer, event };
  Kind kind = Kind::closed;
  std::size_t index = 0;
};
// A descriptor that an epoll watches.
struct Interest {
  int number = -1;
  std::uint32_t events = 0;  // EPOLLIN and the like, with EPOLLET where an edge is meant.
  std::uint64_t data = 0;
  bool queued = false;
  bool was_full = false;  // It was looked at while it took nothing.
};

struct Epoll {
  int number = -1;  // Its own descriptor.
  std::vector<Interest> interests;
  std::vector<int> queue;  // Descriptors, in the order in which something came for them.

  [[nodiscard]] Interest* find(int descriptor) noexcept;
  void add(Interest& interest);
};
inline constexpr std::uint16_t port_base = 7000;  // Node k listens at this and k.
inline constexpr std::size_t no_thread = SIZE_MAX;
inline constexpr int descriptor_base = 1 << 20;  // So that none is mistaken for a real one.

// What a thread has done on its connections to a node, but for subscriptions.
struct NodeUse {
  bool dialled = false;
  SimTime lost_at = -1;       // When one that was established was closed, the last time,
  SimTime failed_at = -1;     // and when one that had not been of use yet.
  SimTime swallowed_at = -1;  // When one was dialled, the last time, that a second black hole has swallowed.
};

struct Thread {
  std::size_t id = 0;
  std::size_t process = 0;
  std::unique_ptr<Fiber> fiber;
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  std::uint64_t wake_number = 0;
  bool blocked = false;
  bool woken = false;  // A wake-up is on its way.
  bool interrupted = false;
  bool sleeping = false;                             // In the application's own time.
  bool due = false;                                  // It would run if its process were not stopped.
  std::array<int, 1 + 2 * nodes_max> descriptors{};  // What it waits for: a quorum's sockets at most.
  std::size_t descriptor_count = 0;
  const void* object = nullptr;  // A mutex, a condition or a thread that it waits for.
  SimTime starved_until = 0;
  SimTime called_at = -1;
  std::uint32_t calls = 0;         // System calls at `called_at`.
  std::uint64_t commands = 0;      // Sent by it,
  std::uint64_t asked = 0;         // and those of them that went over no subscription.
  int subscriptions = 0;           // Connections of it that were used for that.
  std::int64_t cancel_after = -1;  // System calls, their beginnings and ends counted; -1: it is not to be cancelled.
  std::size_t cancel_connection = 0;
  SimTime torn = 0;                     // So long it is stopped before it writes to a pipe.
  std::uint64_t blocks = 0;             // How often it has waited.
  SimTime resolving = 0;                // How long it was in the resolver, in all,
  SimTime resolving_since = -1;         // since when it is there, -1: it is not,
  SimTime resolved_at = -1;             // and when it was there last.
  std::array<const char*, 6> recent{};  // The last system calls, in turn.
  std::size_t recent_at = 0;
  std::int64_t calls_left = 0;  // Of Pace.
  SimTime calls_left_at = 0;
  std::vector<NodeUse> uses;  // By node.
};

// The answer of a resolver, in the memory of its process.
struct Resolution {
  static constexpr std::size_t addresses_max = 3;
  addrinfo entries[addresses_max];
  sockaddr_in addresses[addresses_max];
};

struct Process {
  std::size_t index = 0;
  std::uint32_t life = 0;
  bool lied_to = false;  // In this life, by a server that answers what was not asked: nothing is promised then.
  // By node, of this life: replicas have confirmed what was written there until then. -1: they never did.
  std::vector<SimTime> confirmed_at;
  const ClientPlan* plan = nullptr;
  bool alive = false;
  bool finished = false;  // Not to be started again.
  SimTime stopped_until = 0;
  SimTime stop_at_call = 0;     // How long the next system call is stopped; 0: not.
  SimTime disturbed_until = 0;  // Something of it does not run, or late.
  SimTime stood_still = 0;      // How long it was stopped, in all.
  SimTime timers_late = 0;      // By how much at most, for now.
  SimTime imposed = 0;          // True time that it could not run or was made late, in all.
  SimTime links_changed_at = 0;
  SimTime hindered_until = 0;  // As disturbed_until, but for what leaves its servers in reach.
  SimTime no_sockets_until = 0;
  SimTime no_network_until = 0;
  std::vector<std::size_t> threads;
  std::vector<int> descriptors;
  std::vector<std::size_t> epolls;
  bool leaving = false;  // It was killed, and returns from all that it was in: nobody sees what it does.
  std::deque<std::array<std::uint64_t, 128>> pages;
  std::deque<Resolution> resolutions;
  std::unique_ptr<Application> application;
  Random random{0};

  // Empty where it has none.
  [[nodiscard]] std::span<Application::Slot> slots() noexcept {
    return application == nullptr ? std::span<Application::Slot>() : std::span(application->slots());
  }
};

struct Failure {
  std::string checker;
  std::string text;
  SimTime at = 0;
  std::uint64_t event = 0;
};

struct WorldOptions {
  bool recorded = false;
  const Canary* canary = nullptr;
  std::uint64_t events_max = UINT64_MAX;
  DecisionBytes* bytes = nullptr;                     // A fuzzer's.
  const std::vector<std::string>* ignored = nullptr;  // Checkers whose findings do not count.
};

// What the last phase of a world is for.
enum class Phase : std::uint8_t { faults, liveness, over };

class World {
 public:
  World(const Plan& plan, const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Until it is over, or something failed.
  void run();

  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const Canary* canary() const noexcept { return options_.canary; }
  [[nodiscard]] SimTime now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool failed() const noexcept { return !failure_.checker.empty(); }
  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }
  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  [[nodiscard]] Random& random() noexcept { return random_; }
  [[nodiscard]] Random& tls_random() noexcept { return tls_random_; }
  [[nodiscard]] Checkers& checkers() noexcept { return *checkers_; }
  [[nodiscard]] Pace& pace() noexcept { return *pace_; }
  [[nodiscard]] Keeping& keeping() noexcept { return *keeping_; }
  [[nodiscard]] Shifts& shifts() noexcept { return *shifts_; }
  [[nodiscard]] std::vector<Process>& processes() noexcept { return processes_; }
  [[nodiscard]] std::deque<Node>& nodes() noexcept { return nodes_; }
  [[nodiscard]] Node& node(std::size_t index) noexcept { return nodes_[index]; }
  [[nodiscard]] FaultCounts& fault_counts() noexcept { return fault_counts_; }
  void count(Fault fault, std::string_view lane, std::string_view label = {});
  // Until when something is wrong, or might be noticed late.
  [[nodiscard]] SimTime disturbed_until() const noexcept { return disturbed_until_; }
  void disturb(SimTime length) noexcept { disturbed_until_ = std::max(disturbed_until_, now_ + length); }
  // Who is connected may get no answer, or run late; who is not may not get a connection.
  void hinder(Process& process, SimTime length) const noexcept {
    process.hindered_until = std::max(process.hindered_until, now_ + length);
  }
  void hinder(Node& node, SimTime length) const noexcept {
    node.out_of_reach_until = std::max(node.out_of_reach_until, now_ + length);
  }
  void hinder_dialling(Node& node, SimTime length) const noexcept {
    node.no_dialling_until = std::max(node.no_dialling_until, now_ + length);
  }
  // Of all programs that use locks.
  [[nodiscard]] std::int64_t threads_in_all() const noexcept;
  // The first one counts.
  void fail(std::string_view checker, const std::string& text);
  void after(SimTime delay, std::function<void()> action);

  // A. Time. A client's clock is its own.
  [[nodiscard]] SimTime local_time(const Process& process) const noexcept { return local_time(process, now_); }
  [[nodiscard]] SimTime local_time(const Process& process, SimTime at) const noexcept;
  // True time at which the client's clock shows it, at the earliest.
  // The longest latency that a message has had since then.
  [[nodiscard]] SimTime latency_since(SimTime then) const noexcept {
    return then < liveness_since_ ? latency_before_ : plan_.latency_max;
  }
  [[nodiscard]] SimTime true_time(const Process& process, SimTime local) const noexcept;
  [[nodiscard]] WallMicros wall(const Node& node) const noexcept {
    return wall_base + now_ / microsecond + node.wall_offset;
  }
  [[nodiscard]] static SimTime true_time_of_wall(const Node& node, WallMicros at) noexcept {
    return (at - wall_base - node.wall_offset) * microsecond;
  }
  void step_wall(Node& node, WallMicros by);

  // B. The servers.
  [[nodiscard]] bool paused(const Node& node) const noexcept { return now_ < node.paused_until; }
  void pause_server(Node& node, SimTime length);
  void resume_server(Node& node);
  void restart_server(Node& node, ModelRedis::Data data, SimTime down);
  void promote_server(Node& node);
  void refuse_connects(Node& node, SimTime length) {
    node.refused_until = now_ + length;
    hinder_dialling(node, length);
  }
  void swallow_connects(Node& node, SimTime length) {
    node.black_until = now_ + length;
    hinder_dialling(node, length);
  }
  // A command of somebody else's; its reply.
  std::string foreign(Node& node, const std::vector<std::string>& words);
  void flush_server(Node& node);

  // C. The network.
  // Established, and not closed by the client.
  [[nodiscard]] const std::vector<std::size_t>& open_links() const noexcept { return open_links_; }
  void reset(Link& link);
  // The server says something that nobody asked for. False where a reply is to come: it could be taken for that.
  bool say_unasked(Link& link, std::string_view text);
  void spike(Node& node, SimTime latency, SimTime length) {
    node.spike = latency;
    node.spike_until = now_ + length;
    hinder(node, length + 2 * latency);  // What is sent at its end arrives so late, and what is behind it no sooner.
  }

  // D. Processes.
  void start(Process& process);
  enum class End : std::uint8_t { exit, crash, power_loss };
  void end(Process& process, End how);
  void stop(Process& process, SimTime length);
  void interrupt(Process& process, std::size_t thread);
  void starve_thread(Process& process, SimTime length);
  void wake(Thread& thread);

  // E. What system calls do. From within a fiber, but for those that cannot wait.
  [[nodiscard]] Thread& thread() noexcept { return *threads_[current_]; }
  [[nodiscard]] Process& process() noexcept { return processes_[threads_[current_]->process]; }
  // At the beginning and at the end of each: between any two a signal may come.
  void enter_call(const char* name);
  void leave_call();
  // Until `deadline` (true time) or wake(). False: it has passed.
  bool block(SimTime deadline);
  // The same for a span of the process's own clock.
  [[nodiscard]] SimTime deadline_after(SimTime local) noexcept;
  void sleep(SimTime local);
  int add_descriptor(Descriptor descriptor);
  [[nodiscard]] Descriptor* descriptor(int number) noexcept;
  int open_socket();
  void open_pipe(int* ends);
  int open_epoll();
  int open_timer();
  int open_event();
  [[nodiscard]] Epoll& epoll(std::size_t index) noexcept { return epolls_[index]; }
  // When a timer fires; `never`: it is not armed.
  [[nodiscard]] SimTime& timer(std::size_t index) noexcept { return timers_[index]; }
  [[nodiscard]] Link& link(std::size_t index) noexcept { return links_[index]; }
  [[nodiscard]] Pipe& pipe(std::size_t index) noexcept { return pipes_[index]; }
  // 0 where it is connected at once, or errno's.
  [[nodiscard]] int connect(std::size_t link, std::size_t node, Address address);
  // Asks for the name of a node. nullptr: there was no answer.
  [[nodiscard]] Resolution* resolve(std::size_t node);
  [[nodiscard]] std::size_t send(std::size_t link, std::string_view bytes);
  // Something is sent, be it to nobody, where an unasked reply may lie in the socket.
  void note_unlooked(Link& link, std::string_view bytes);
  // The link's client has sent so much of what it had to say,
  void note_sent(Link& link, std::string_view offered, std::size_t size);
  // or has understood this, over TLS.
  void note_opened(Link& link, std::string_view bytes);
  void close(int number);
  void wake_waiters(const Process& process, int descriptor);
  // Its program returns from all that it is in, as one that has an end of its own. Not from within a fiber.
  void leave(Process& process);
  void wake_object(Process& process, const void* object);
  std::size_t add_thread(Process& process, void* (*body)(void*), void* argument);
  [[nodiscard]] bool thread_done(std::size_t id) const noexcept;
  // Of the application's, and none that the library has made.
  [[nodiscard]] bool uses_locks(const Thread& thread) const noexcept;
  // nullptr: it is gone.
  [[nodiscard]] Thread* thread_at(std::size_t id) const noexcept { return threads_[id].get(); }

  [[nodiscard]] static World* current() noexcept;
  static constexpr WallMicros wall_base = 1'700'000'000'000'000;

 private:
  enum class EventKind : std::uint8_t { wake, up, down, connected, action };
  struct Event {
    SimTime at;
    std::uint64_t number;
    EventKind kind;
    std::uint32_t who;
    std::uint64_t detail;
    bool operator<(const Event& other) const noexcept { return at != other.at ? at > other.at : number > other.number; }
  };
  void push(SimTime at, EventKind kind, std::size_t who, std::uint64_t detail = 0);
  void handle(const Event& event);
  void run_thread(Thread& thread);
  void deliver_up(std::size_t index);
  void deliver_down(std::size_t index);
  void finish_connect(std::size_t index);
  void give_to_server(Link& link, std::string_view bytes, bool end);
  // What its replicas do for a WAIT that has come over the link.
  void begin_wait(Link& link);
  void end_wait(std::size_t link, ModelRedis::ConnectionId connection, SimTime since, std::int64_t replicas);
  void send_down(Link& link, std::string_view bytes);
  void tamper_with(Link& link, std::string& bytes);
  void note_confirmed(Link& link, std::string_view bytes);
  [[nodiscard]] bool open_tls(Link& link, std::string_view bytes, std::string& opened);
  void send_end(Link& link);
  [[nodiscard]] bool is_second(const Link& link) const;
  void schedule_up(Link& link, std::string_view bytes);
  [[nodiscard]] SimTime latency(const Node& node);
  void note_link(const Link& link, bool open);
  void close_link(Link& link, bool silently);
  void take_signal();
  void begin_liveness();
  void end_faults();
  void finish();
  void drop_server_side(Link& link);

  Plan plan_;
  WorldOptions options_;
  Random random_;
  Random tls_random_;
  Trace trace_;
  FaultCounts fault_counts_{};
  Failure failure_;
  SimTime now_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t numbers_ = 0;
  Phase phase_ = Phase::faults;
  SimTime liveness_since_ = -1;
  SimTime latency_before_ = 0;  // The longest of a message, until then.
  std::vector<Event> queue_;
  std::vector<std::function<void()>> actions_;
  std::vector<std::size_t> free_actions_;
  SimTime disturbed_until_ = 0;
  std::deque<Node> nodes_;
  std::deque<Link> links_;
  std::vector<std::size_t> open_links_;
  std::deque<Pipe> pipes_;
  std::deque<Epoll> epolls_;
  std::deque<SimTime> timers_;
  std::deque<Descriptor> descriptors_;  // Calls that were stopped know theirs still.
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t current_ = 0;
  std::vector<Process> processes_;
  std::unique_ptr<Checkers> checkers_;
  std::unique_ptr<Pace> pace_;
  std::unique_ptr<Keeping> keeping_;
  std::unique_ptr<FaultInjector> injector_;
  std::unique_ptr<Shifts> shifts_;
};

}  // namespace holdfast::sim

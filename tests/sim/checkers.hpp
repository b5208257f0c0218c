// SPDX-License-Identifier: MIT
//
// Checkers watch a world: what the server does to the keys, and what each client is told and believes. Whatever must be
// true has a name here, which a failure says.
//
// exclusion        two never believe to hold a lock of one domain (a name on a node), unless one of them was robbed
//                  from outside; but any number of readers of a read/write lock do, and an owner who writes and reads, and
//                  of a semaphore as many as it has permits
// validity         nobody believes longer than the server keeps the key, and a reader's own time beside it
// ownership        no command of ours touches what is another's
// no resurrection  what is gone is not made again by its old token
// fresh tokens     a token is set once
// never shortened  no script takes from a lease
// lease            every lock key has one, and every reader's own time
// compensated      what was given up is taken back
// ledger           what a client is told is what the server did, a reader who asks to write is told upgrade_refused, and a MultiLock
//                  is granted all of its names by one request, or none
// permits          no more are taken than there are, and so many are free as nobody has, but where somebody else has touched
//                  either; nobody else is told that another number was set
// queue            a fair lock is granted to nobody while one who lives stands before it in the queue, and to nobody who has
//                  left; a gift is for 3 s, and where all was well for a while nobody who waits is taken for dead
// fences           each grant's is larger than the one before
// resource         who checks fences never lets an older holder write behind a newer; fenced_set() is such a one
// feed             nobody's hold is renewed when its application was not alive for its liveness
// max hold         nor when it is older than its max_hold
// woken            who waits for an announced release, or for its turn, asks soon after it came, where nothing was wrong for a
//                  while
// topology         no sentinel is told anything of a lock
// confirmed        a grant that is told has been confirmed by as many replicas as its client asks for
// Behind sentinels and in a cluster a name is one lock on all nodes together, wherever its keys are just then.
//
// A lock of a quorum has a domain of its own, and is judged by all nodes together:
//
// exclusion        as above; excused where one of the two was granted on a node on which, later, somebody else touched
//                  the key, data were lost without a restart, or the clock stepped. A restart without data and a
//                  fail-over excuse nothing, since the delayed restart covers them, unless the world does without it
// validity         nobody believes longer than a majority of all nodes keeps the token. A node that was robbed since it
//                  granted, by a restart too, is taken to keep it: nobody can know before the next renewal
// fences           each that is told is larger than the one told before, while nobody but us touched keys or clocks, and,
//                  where data were lost, while the clocks of the nodes differ by less than max_lease
// compensated      what was released or denied is gone from every node, where all was well for a while, and from a majority where
//                  async_close() says ok and all was well since it was granted
// ledger           who is told that it has released did so on a majority
// max lease        no program asks a node for a longer lease than the max_lease that it has told its quorum, nor believes in one
// loss told        by the next tend(), and on a loop by itself
// bounded waits    no attempt takes longer than to connect and to ask twice, whatever nodes are dead
//
// Of both:
// inspection       who looks at a lock that is held is told so, and by whom
//
// bounded waits, floor, loss told, liveness, nothing left, descriptors, assertion
// Others have files of their own: keeping.hpp (kept), cancel_watch.hpp (cancel), pace.hpp (no spinning, back-off),
// loop_handlers.hpp (handlers); and of a set of locks each is held when it says ok, and none after it was let go of, or was not to
// be had (sets). Each name of a MultiLock is judged by itself, as a slot of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "application.hpp"
#include "model_redis.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Link;
struct Node;
struct Process;

struct Figures {
  std::uint64_t grants = 0;  // By the server.
  std::uint64_t held = 0;    // Told to a client.
  std::uint64_t renewals = 0;
  std::uint64_t steps = 0;
  std::uint64_t releases = 0;
  std::uint64_t lost = 0;
  std::uint64_t busy = 0;
  std::uint64_t unclear = 0;
  std::uint64_t writes = 0;
  std::uint64_t writes_refused = 0;
  std::uint64_t overlaps_excused = 0;
  std::uint64_t upgrades_refused = 0;
  std::uint64_t commands = 0;
  std::uint64_t quorum_held = 0;  // Of `held`, those by a quorum.
  std::uint64_t repairs = 0;      // Grants of one node to a quorum that had it before.
};

class Checkers {
 public:
  explicit Checkers(World& world);

  [[nodiscard]] const Figures& figures() const noexcept { return figures_; }

  // A. What happens at the server.
  void before_receive(Link& link) { from_ = &link; }
  void after_receive(Node& node, std::size_t commands);
  // Who holds a lock now may lose it without being told in time: it is not our doing.
  void break_all(const Node& node);
  void break_name(const Node& node, std::size_t name);
  // Of a cluster, where a fail-over loses data: who holds one of these names now may lose it,
  void break_names(const Node& before, const std::function<bool(std::size_t name)>& which);
  // and this is what is there now.
  void read_names(Node& after, const std::function<bool(std::size_t name)>& which);
  // The same by a restart or a fail-over, which a quorum survives.
  void lose_data(const Node& node);
  // Somebody else has written.
  void data_changed(Node& node);
  [[nodiscard]] bool foreign(const Node& node, std::size_t name) const { return view(node, name).foreign; }
  void excuse_fence(const Node& node, std::size_t name) {
    view(node, name).fence_excused = true;
    quorums_[name].fence_excused = true;
  }
  void excuse_fences(const Node& node);
  // Who was master until now has nothing any more, and another one has all of it. A release that comes to it late is told that
  // there is nothing to release.
  void note_emptied_master() noexcept;

  // B. What a client is told and does.
  void after_run(Process& process);
  void after_acquire(Process& process, Application::Slot& slot, Status status, SimTime since, std::uint64_t commands);
  // `reads`: the other side was held before, and `reads_on`: by the same token all the time since.
  void after_asking_to_write(Process& process, const Application::Slot& slot, Status status, bool reads, bool reads_on);
  void check_compensated(Process& process, Application::Slot& slot, std::size_t pending);
  void after_post(const Process& process, Application::Slot& slot, const Token& token, Status status) const;
  void after_release(Process& process, std::uint32_t number, Status status, bool last);
  void after_quorum_release(Process& process, Application::Slot& slot, const Token& token, Status status, bool posted);
  // async_close() of its quorum said ok, which began when its connections had changed last at this time.
  void after_quorum_close(const Process& process, const Application::Slot& slot, SimTime links_changed_at) const;
  // `slot.unclear` of a quorum, behind a lull.
  void check_gone(Process& process, Application::Slot& slot, std::size_t pending);
  // The number of the hold's grant, of a quorum's on one of its nodes; 0: the server knows of none.
  [[nodiscard]] std::uint32_t number_of(const Application::Slot& slot) const;
  // A node that has its locks for itself. Those of sentinels and of a cluster are on one node or another, and as if on the first.
  [[nodiscard]] std::size_t place_of(std::size_t node) const noexcept { return one_place_ ? 0 : node; }
  // What excludes each other.
  [[nodiscard]] std::size_t domain_of(std::size_t node, std::size_t name) const noexcept {
    return place_of(node) * names_.size() + name;
  }
  [[nodiscard]] std::size_t quorum_domain_of(std::size_t name) const noexcept { return views_.size() + name; }
  // A resource of the checkers' own.
  void resource_written(Process& process, const Application::Slot& slot, std::uint32_t number, std::uint64_t fence);
  // One that is kept on the slot's node: its key.
  [[nodiscard]] const std::string& resource_of(const Application::Slot& slot) const {
    return names_[slot.name].resource;
  }
  void note_write_unknown(std::uint32_t number) noexcept { grants_[number].write_unknown = true; }
  void after_fenced_set(Process& process, const Application::Slot& slot, std::uint32_t number, std::uint64_t fence,
                        bool written, SimTime since);
  void check_inspected(const Process& process, const Application::Slot& slot, std::uint32_t number,
                       const LockInfo& info) const;
  void process_ended(Process& process);
  void note_quiet(Process& process);

  // C. Phases.
  void all_over();

 private:
  struct Grant {
    std::string token;
    std::size_t process = 0;
    std::uint32_t life = 0;
    std::size_t name = 0;
    std::uint64_t fence = 0;
    bool broken = false;
    bool mended = false;    // A quorum asked for it anew, where the one before it was broken.
    bool deleted = false;   // And not brought back by a replica that lagged.
    bool released = false;  // By a command of its own.
    bool given = false;     // By somebody else, of a fair lock,
    bool told = false;      // and its client has believed in it.
    SimTime at = 0;
    SimTime kept_at = 0;                     // The last time that its lease was changed.
    SimTime expired_at = -1;                 // As its server noticed it.
    SimTime written_at = -1;                 // To the resource, by fenced_set().
    bool write_unknown = false;              // A fenced_set() may still be on its way whose caller has given it up.
    bool writes = false;                     // Its side of a read/write lock.
    std::uint32_t together = 0;              // Of a MultiLock's name: the first grant of the same request.
    std::int64_t own_expiry_ms = no_expiry;  // Of a reader's own time, or a permit's, as it was set last.
  };
  // What belongs to a name.
  struct Names {
    std::string lock;
    std::string counter;
    std::string channel;
    std::string resource;
    std::string resource_fence;
    std::string read_write_channel;
    std::string own_time_prefix;  // Of the keys with the own times of its readers.
    std::string taken;            // Of a semaphore: the permits that somebody has.
    std::string semaphore_channel;
    int database = 0;
    std::string queue;  // Of a fair lock.
  };
  // What a key or a channel is to a name.
  enum class Role : std::uint8_t {
    lock,
    counter,
    channel,
    resource,
    read_write_channel,
    permits,
    taken,
    semaphore_channel,
    queue
  };
  struct Part {
    std::size_t name = 0;
    Role role = Role::lock;
  };
  // What a resource remembers.
  struct Resource {
    std::uint64_t fence = 0;
    std::uint32_t grant = 0;  // Grants are numbered in their order.
  };
  // Of a read/write lock.
  enum class Mode : std::uint8_t { none, read, write };
  // One in the queue of a fair lock.
  struct Waiter {
    std::string token;
    std::size_t process = 0;
    std::uint32_t life = 0;
    WallMicros since = 0;   // As the server has it.
    SimTime at = 0;         // When it came.
    bool stands = false;    // Else it is out of the queue by now,
    bool popped = false;    // by the request in progress.
    bool has_left = false;  // Its client knows that the server has taken it out.
    bool late = false;      // It came when what it had been given was released already: over a connection that stalled.
  };
  // A lock as a node has it.
  struct View {
    bool present = false;
    bool foreign = false;  // Somebody else has touched it.
    bool emptied = false;  // Its holder's field has just gone.
    std::uint32_t grant = 0;
    std::int64_t expiry_ms = no_expiry;
    std::uint64_t last_fence = 0;
    bool fence_excused = false;
    std::uint64_t counter = 0;  // As the request in progress has set it.
    Resource elsewhere;         // Of the checkers' own.
    Resource beside;            // On the same node.
    bool touched = false;       // By the bytes that are being received.
    SimTime robbed_at = -1;     // When its holder, or a semaphore's number, was last excused by more than a restart.
    Mode mode = Mode::none;
    std::vector<std::uint32_t> others;  // Whoever holds it beside `grant`: readers, a writer's own read, other permits.
    bool joining = false;               // Extended by one that holds nothing: the request in progress is to let it in.
    bool leaving = false;               // The request in progress has taken a field away.
    std::vector<Waiter> waiters;        // By when they came.

    [[nodiscard]] bool has(std::uint32_t number) const noexcept;
    void add(std::uint32_t number);
    void remove(std::uint32_t number);
    [[nodiscard]] std::vector<std::uint32_t> all() const;
  };
  // A lock as a quorum has it.
  struct QuorumView {
    std::uint64_t last_fence = 0;  // Told.
    bool fence_excused = false;
    Resource elsewhere;
  };
  // Its bar in the timeline, and whose grant that is.
  struct KeyBar {
    std::size_t item = SIZE_MAX;
    std::uint32_t grant = 0;
  };

  [[nodiscard]] View& view(const Node& node, std::size_t name);
  [[nodiscard]] const View& view(const Node& node, std::size_t name) const;
  // Where it is: on this node, or on any of those that have their locks together.
  [[nodiscard]] const Entry* find_key(std::size_t node, std::string_view key, int database) const;
  void observe(Node& node, const ModelRedis::Effect& effect);
  void observe_lock(Node& node, std::size_t name, const ModelRedis::Effect& effect);
  void observe_resource(View& view, const ModelRedis::Effect& effect);
  void observe_field(Node& node, std::size_t name, const ModelRedis::Effect& effect);
  void observe_expiry(const Node& node, std::size_t name, const ModelRedis::Effect& effect);
  void observe_deleted(const Node& node, std::size_t name);
  void observe_own_time(const Node& node, const ModelRedis::Effect& effect);
  [[nodiscard]] std::string own_time_key(std::size_t name, std::string_view token) const;
  [[nodiscard]] bool is_from(std::uint32_t number) const;
  [[nodiscard]] bool may_join(const View& view, bool writes) const;
  void observe_queue(Node& node, std::size_t name, const ModelRedis::Effect& effect);
  void read_queue(const Node& node, std::size_t name);
  void check_turn(const Node& node, std::size_t name, std::string_view token);
  void check_taken_for_dead(const Node& node, const Waiter& waiter);
  void check_popped(const Node& node, std::size_t name);
  void expect_confirmed(std::size_t domain, const Waiter& waiter);
  void check_left(const Process& process, const Application::Slot& slot);
  // What is given up is gone when its compensation was answered. Not where that is refused for good; nor where a server did not
  // say who it is: nobody kills the connection of before, and what is late there runs behind its compensation.
  [[nodiscard]] bool takes_back() const noexcept;
  // A replica that lagged may bring back what has gone.
  [[nodiscard]] bool may_bring_back() const noexcept;
  [[nodiscard]] bool lives(const Node& node, std::size_t name, const Waiter& waiter) const;
  [[nodiscard]] Waiter* find_waiter(View& view, std::string_view token) const;
  void observe_semaphore(Node& node, std::size_t name, Role role, const ModelRedis::Effect& effect);
  void observe_permit_taken(Node& node, std::size_t name, const ModelRedis::Effect& effect);
  void observe_permit_gone(const Node& node, std::size_t name, const ModelRedis::Effect& effect);
  [[nodiscard]] bool permits_add_up(const Node& node, std::size_t name) const;
  void read_permits(const Node& node, std::size_t name);
  void note_permits(View& view, bool right) const;
  [[nodiscard]] std::int64_t expiry_of(std::size_t name, const View& view, std::uint32_t number) const;
  [[nodiscard]] static Role channel_of(const Application::Slot& slot) noexcept;
  void expect_woken(std::size_t domain, Role channel);
  void expect_woken_of_several(const Node& node, std::size_t name, Role role);
  void expect_asking(Process& process, Application::Slot& slot);
  void check_woken(Process& process, const Application::Slot& slot, SimTime released_at, std::uint64_t asked);
  void note_grant(Node& node, std::size_t name, std::string_view token, const ModelRedis::Effect& effect);
  void check_together();
  void note_deleted(std::uint32_t number);
  void check_owner(std::uint32_t number, std::string_view what);
  void check_lease(const Node& node, std::size_t name, std::int64_t expiry_ms);
  [[nodiscard]] bool believed(std::uint32_t number) const;
  [[nodiscard]] bool of_quorum(std::size_t name) const noexcept;
  [[nodiscard]] bool robbed(std::string_view token, std::size_t name) const;
  [[nodiscard]] bool majority_is_free_of(std::string_view token, std::size_t name) const;
  [[nodiscard]] bool majority_keeps(std::string_view token, std::size_t name, SimTime until) const;
  void check_majority(std::uint32_t number, std::string_view what);
  void check_quorum_belief(Process& process, Application::Slot& slot, Instant until);
  void check_quorum_exclusion(const Application::Slot& slot);
  void after_quorum_acquire(Process& process, Application::Slot& slot, Status status);
  void check_belief(Process& process, Application::Slot& slot, Instant until);
  void check_exclusion(Process& process, const Application::Slot& slot, std::uint32_t number);
  void check_permits(const Application::Slot& slot, std::uint32_t number);
  void judge_acquire(Process& process, Application::Slot& slot, Status status, SimTime since);
  [[nodiscard]] bool keeps(const Process& process, const Application::Slot& slot) const;
  [[nodiscard]] bool kept_to_the_end(const Process& process, const Application::Slot& slot, const Node& node) const;
  // Of one server: it, or none.
  [[nodiscard]] NodeSet keepers_of(const Process& process, const Application::Slot& slot) const;
  void check_keeping(Process& process, const Application::Slot& slot, Instant until, const Grant& grant);
  void expect_told(Process& process, Application::Slot& slot, SimTime at);
  void break_grant(std::uint32_t number) {
    if (number == 0) return;
    for (const std::uint32_t each : together_with(number)) grants_[each].broken = true;  // One name lost is all lost.
  }
  [[nodiscard]] bool trace_holds() const;
  void note_hold(Process& process, Application::Slot& slot, Instant until);
  void note_keys(const Node& node);
  [[nodiscard]] std::uint32_t find(std::size_t node, std::size_t name, std::string_view token) const;
  // Those that one request of a MultiLock has made, or the one alone.
  [[nodiscard]] std::vector<std::uint32_t> together_with(std::uint32_t number) const;
  void read(Node& node, std::size_t name);
  void check_queue_left(const Node& node, std::size_t name);
  void check_permits_left(const Node& node, std::size_t name);
  [[nodiscard]] std::string who(std::uint32_t number) const;

  World& world_;
  bool one_place_;
  SimTime master_emptied_at_ = -1;
  Figures figures_;
  Link* from_ = nullptr;
  std::vector<Grant> grants_;  // By number; the first is none.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  using Numbers = std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>>;
  // Of a client.
  struct Life {
    std::size_t process = 0;
    std::uint32_t life = 0;
  };
  std::unordered_map<std::string, Life, Hash, std::equal_to<>> queued_;  // Whoever has stood in a queue, by token.
  std::vector<Numbers> numbers_;                                         // By node: a token is one grant on each.
  std::vector<Names> names_;
  std::unordered_map<std::string, std::vector<Part>, Hash, std::equal_to<>> keys_;
  std::vector<std::size_t>
      touched_;  // Names whose lock, or whose counter, the bytes that are being received have touched.
  std::vector<std::size_t> counted_;
  std::vector<Part> published_;  // By the bytes that are being received.
  std::uint32_t together_ = 0;   // The first grant of the MultiLock that they took,
  std::size_t names_asked_ = 0;  // which asked for so many names.
  struct OwnTime {
    std::string key;
    int database = 0;
  };
  std::vector<OwnTime> own_times_;   // Those that the bytes that are being received have touched.
  std::vector<View> views_;          // By domain.
  std::vector<QuorumView> quorums_;  // By name.
  std::vector<KeyBar> key_bars_;     // As views_.
};

}  // namespace holdfast::sim

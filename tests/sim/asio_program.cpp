// SPDX-License-Identifier: MIT
//
// The program of a simulated client on an Asio loop: one io_context, an AsyncClient for each of its connections or an AsyncQuorum
// of all nodes, and many operations in progress at the same time. Each lock has a life of its own, in the handlers of what it
// asked for; in between, the program cancels, closes and destroys what it likes.
#include <unistd.h>

#include <algorithm>
#include <asio/any_io_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "canary.hpp"
#include "checkers.hpp"
#include "holdfast/asio.hpp"
#include "loop_handlers.hpp"
#include "loop_peer.hpp"
#include "loop_program.hpp"
#include "pace.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

// Asio keeps the frames of the loops and of the strands that a thread is in, and who is in one is told by them.
template <class Frame, asio::detail::tss_ptr<Frame>* frames>
struct FramesOf {
  friend asio::detail::tss_ptr<Frame>& frames_of(const Frame* /*which*/) noexcept { return *frames; }
};
using LoopStack = asio::detail::call_stack<asio::detail::thread_context, asio::detail::thread_info_base>;
using StrandStack = asio::detail::call_stack<asio::detail::strand_executor_service::strand_impl>;
asio::detail::tss_ptr<LoopStack::context>& frames_of(const LoopStack::context* which) noexcept;
asio::detail::tss_ptr<StrandStack::context>& frames_of(const StrandStack::context* which) noexcept;
// Explicit instantiations may name what is private.
template struct FramesOf<LoopStack::context, &LoopStack::top_>;
template struct FramesOf<StrandStack::context, &StrandStack::top_>;

template <class Frame>
constexpr Fiber::Own frames_apart = {
    .get = []() noexcept -> void* { return static_cast<Frame*>(frames_of(static_cast<const Frame*>(nullptr))); },
    .set = [](void* value) noexcept { frames_of(static_cast<const Frame*>(nullptr)) = static_cast<Frame*>(value); },
};

Status status_of(const std::error_code& error) noexcept {
  return error ? static_cast<Status>(error.value()) : Status::ok;
}

// From a cancel() to the handler: the next turn.
constexpr SimTime cancelled_within = 100 * millisecond;
// Of a set, which may have locks of several.
constexpr std::size_t no_connection = SIZE_MAX;

// What the Redlocks of a loop are, with a kind of choice.
class LoopRedlock : public AsyncQuorumLock {
 public:
  LoopRedlock(AsyncQuorum& quorum, const LockKind& kind, ByteView key, const QuorumTiming& timing)
      : hold_(core_of(quorum), kind, Key(key), timing) {
    attach(hold_);
  }
  ~LoopRedlock() override = default;
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  AsyncQuorumHold<quorum_nodes_max> hold_;
};

// What a lock has to take back, and has found no room for.
struct Opened : AsyncLock {
  [[nodiscard]] static bool owes(const AsyncHandle& lock) noexcept {
    return (static_cast<const AsyncLock&>(lock).*&Opened::record)().machine().wants_compensation();
  }
};

}  // namespace

class AsioProgram final : public LoopProgram {
 public:
  AsioProgram(Application& application, World& world, Process& process)
      : application_(application), world_(world), process_(process), handlers_(world, process) {
    Fiber::keep_apart({frames_apart<LoopStack::context>, frames_apart<StrandStack::context>});
  }

  void run() override;
  void stop() noexcept override {
    if (loop_ != nullptr) loop_->stop();
  }
  void hurry() noexcept override {
    if (hurry_pipe_[1] >= 0) (void)::write(hurry_pipe_[1], "", 1);
  }
  [[nodiscard]] bool may_ask(const Application::Slot& slot) const noexcept override {
    const Connection& connection = connections_[slot.plan->connection];
    // Where it waits behind others for a place, or was not given one to listen, it does not have to.
    return connection.peer && connection.peer.connected() && connection.peer.compensations_pending() == 0 &&
           connection.waiters > application_.slots_.size();
  }

 private:
  using Slot = Application::Slot;
  using Started = Application::Started;

  // Of the locks of one owner, whose holds their handles share.
  class SharedOwner : public AsyncHoldOwner {
   public:
    SharedOwner(AsyncClient& client, std::size_t holds)
        : SharedOwner(client, std::make_unique<Place[]>(holds), holds) {}

   private:
    SharedOwner(AsyncClient& client, std::unique_ptr<Place[]> places, std::size_t holds)
        : AsyncHoldOwner(client, places.get(), holds), places_(std::move(places)) {}

    std::unique_ptr<Place[]> places_;
  };
  struct Connection {
    LoopPeer peer;
    std::shared_ptr<SharedOwner> owners[2];   // Of the present peer.
    std::uint64_t made = 0;                   // Peers, until now.
    std::optional<asio::steady_timer> again;  // Until it is connected anew.
    std::size_t waiters = 0;
    std::size_t kept = 0;
    bool connecting = false;
    bool closed = false;   // By the program,
    bool closing = false;  // or soon.
    bool over = false;     // For good.
  };
  enum class Doing : std::uint8_t { nothing, acquiring, renewing, releasing, asking, in_set };
  // What has one operation in progress at most.
  struct Asker {
    explicit Asker(AsioProgram& user) : program(&user), pause(*user.loop_), cancel(*user.loop_) {}
    virtual ~Asker() = default;
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;
    virtual void cancel_call() = 0;

    AsioProgram* program;
    std::size_t connection = no_connection;
    std::optional<asio::steady_timer> pause;
    std::optional<asio::steady_timer> cancel;  // Until what it does is cancelled.
    asio::cancellation_signal signal;
    std::uint64_t serial = 0;  // Of what it does: what was asked for before tells nothing.
    Doing doing = Doing::nothing;
    Started started;
    SimTime wait = 0;
    std::uint64_t commands = 0;
    bool tries = false;
    SimTime cancelled_at = -1;
    SimTime cancelled_imposed = 0;
    std::uint64_t cancelled_blocks = 0;
  };
  // A slot's life.
  struct Session final : public Asker, public LoopLock {
    Session(AsioProgram& user, Slot& own_slot) : Asker(user), slot(&own_slot) {
      connection = own_slot.plan->connection;
    }
    [[nodiscard]] const Token& token() const noexcept override { return token_of(*lock); }
    [[nodiscard]] Instant valid_until() const noexcept override { return lock->valid_until(); }
    [[nodiscard]] bool held() const noexcept override { return lock->held(); }
    [[nodiscard]] std::uint64_t fence() const noexcept override { return fence_of != nullptr ? fence_of(*lock) : 0; }
    void cancel_call() override {
      if (inquiry != nullptr) return inquiry->cancel();
      if (quorum_inquiry != nullptr) return quorum_inquiry->cancel();
      lock->cancel();
    }

    Slot* slot;
    AsyncHandle* lock = nullptr;
    std::shared_ptr<void> owner;  // Each lock of a kind with owners has one of its own.
    std::shared_ptr<AsyncHandle> own;
    std::shared_ptr<AsyncReadWriteLock> sides;  // Of the reader's and the writer's.
    const Token& (*token_of)(const AsyncHandle& lock) = nullptr;
    std::uint64_t (*fence_of)(const AsyncHandle& lock) = nullptr;
    // There is something to take back for which its client has had no room until now.
    [[nodiscard]] bool owes() const noexcept { return lock != nullptr && !slot->of_quorum && Opened::owes(*lock); }
    bool waits_for_loss = false;
    bool over = false;
    Duration remaining{};
    // While it looks at who has its lock.
    std::unique_ptr<AsyncInquiry> inquiry;
    std::unique_ptr<AsyncQuorumInquiry> quorum_inquiry;
    LockInfo info;
    QuorumInfo quorum_info;
    std::uint32_t inspected = 0;  // The hold's grant at its beginning; 0: it has none.
    // Of what it does.
    SimTime held_for = 0;  // Where there may be no room for its release, it may wait so long for some.
    Token before;          // The lock's, when it was asked for.
    Token read_by;
    bool last = false;
    std::uint32_t number = 0;
  };
  // Locks of several sessions, all of them or none.
  struct Group final : public Asker {
    using Asker::Asker;
    void cancel_call() override { set->cancel(); }

    std::vector<Session*> members;
    std::vector<AsyncHandle*> handles;
    std::unique_ptr<AsyncLockSet> set;  // nullptr: there is none at present.
  };

  // What is called at the end of an operation, once.
  template <class Who>
  struct Done {
    using cancellation_slot_type = asio::cancellation_slot;
    AsioProgram* program;
    Who* asker;
    std::uint64_t serial;
    std::uint64_t number;
    void (AsioProgram::*then)(Who& asker, Status status);
    cancellation_slot_type slot;
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot; }
    void operator()(const std::error_code& error) const {
      if (program->gone()) return;
      program->handlers_.note_called(number);
      if (program->sin() == Sin::handler_called_twice) program->handlers_.note_called(number);
      program->world_.pace().begin(program->world_.thread());
      if (asker->serial == serial) (program->*then)(*asker, status_of(error));
    }
  };

  [[nodiscard]] bool gone() noexcept {
    if (process_.leaving) stop();
    return process_.leaving;
  }
  [[nodiscard]] Random& random() noexcept { return process_.random; }
  [[nodiscard]] Sin sin() const noexcept { return sin_of(world_); }
  [[nodiscard]] bool faults() const noexcept { return world_.phase() == Phase::faults; }
  [[nodiscard]] bool ending() const noexcept { return application_.ending_ || !faults(); }
  [[nodiscard]] Connection& connection_of(const Session& session) noexcept {
    return connections_[session.slot->plan->connection];
  }
  [[nodiscard]] bool of_quorum(std::size_t connection) const noexcept {
    return application_.plan_of_connection(connection).quorum;
  }
  // The other handles of its hold.
  template <class Use>
  void each_handle(const Session& session, Use use) const {
    if (!session.slot->shares_hold()) return;
    for (const auto& other : sessions_)
      if (other.get() != &session && other->lock != nullptr && other->slot->plan->kind == session.slot->plan->kind &&
          other->slot->same_owner(*session.slot))
        use(*other);
  }
  // A hold has one operation in progress at a time.
  [[nodiscard]] bool is_in_use(const Session& session) const {
    bool used = false;
    each_handle(session, [&](const Session& other) { used = used || other.doing != Doing::nothing; });
    return used;
  }
  [[nodiscard]] bool is_alone(const Session& session) const {
    bool alone = true;
    each_handle(session, [&](const Session&) { alone = false; });
    return alone;
  }
  [[nodiscard]] Session& other_side(const Session& session) noexcept {
    return *sessions_[session.slot->plan->other_side];
  }

  void live();
  void make_peer(std::size_t index);
  template <class Handler>
  void connect_client(std::size_t index, const Handler& handler);
  // What there was no room for is not judged.
  static void forgive(Slot& slot);
  void connect(std::size_t index);
  void connected(std::size_t index, std::uint64_t made, const Started& started, Status status);
  void connect_anew(std::size_t index);
  void disturb_client();
  void leave_client(std::size_t index);
  void come_back(std::size_t index);
  void await_hurry();
  void make(Session& session);
  void make_lock(Session& session);
  void make_redlock(Session& session);
  template <class Lock>
  void own(Session& session, std::shared_ptr<Lock> lock);
  void make_sides(Session& session);
  [[nodiscard]] AsyncHoldOwner& owner_of(Session& session) {
    if (session.slot->shares_hold()) {
      std::shared_ptr<SharedOwner>& shared = connection_of(session).owners[session.slot->plan->owner];
      if (shared == nullptr)
        shared = std::make_shared<SharedOwner>(connection_of(session).peer.client(), application_.slots_.size());
      session.owner = shared;
      return *shared;
    }
    auto owner = std::make_shared<AsyncOwner>(connection_of(session).peer.client());
    session.owner = owner;
    return *owner;
  }
  [[nodiscard]] AsyncQuorumHoldOwner<quorum_nodes_max>& quorum_owner_of(Session& session) {
    auto owner = std::make_shared<AsyncQuorumOwnerOf<quorum_nodes_max, 1>>(connection_of(session).peer.quorum());
    session.owner = owner;
    return *owner;
  }
  void settle_lock(Session& session);
  void keep(Session& session);
  void drop(Session& session);
  void drop_one(Session& session);

  // Asks for something, and its end is `then`.
  template <class Who, class Start>
  void ask_for(Who& asker, const char* what, void (AsioProgram::*then)(Who&, Status), Start start);
  void begin(Asker& asker, Doing doing, const char* what);
  void begin_of(Session& session, Doing doing, const char* what);
  void finish(Asker& asker, Status status, const char* what, SimTime bound);
  void step_after(Session& session, SimTime length);
  void step_soon(Session& session, bool idle);
  void step(Session& session);
  void act(Session& session);
  void act_held(Session& session);
  void acquire(Session& session);
  void acquired(Session& session, Status status);
  void renew(Session& session);
  void renewed(Session& session, Status status);
  // `told`: what follows.
  void release(Session& session, void (AsioProgram::*told)(Session&, Status) = &AsioProgram::released);
  void released(Session& session, Status status);
  void post(Session& session);
  void note_released(Session& session, const Token& token, Status status, bool posted);
  void ask(Session& session);
  void asked(Session& session, Status status);
  void inspect(Session& session);
  void inspected(Session& session, Status status);
  void write(Session& session);
  void await_loss(Session& session);
  void forget_loss(Session& session);
  void arm_cancel(Asker& asker);
  void cancel(Asker& asker);
  void forget_as_canary(Session& session);
  [[nodiscard]] SimTime bound_of_acquire(const Session& session) const noexcept;
  [[nodiscard]] SimTime bound_of_release(const Session& session) const noexcept;
  [[nodiscard]] SimTime bound_of_close(std::size_t index) const noexcept;
  void check_cancelled(const Asker& asker, Status status, const char* what) const;
  void note_cancelled(Asker& asker);
  [[nodiscard]] static bool is_all_of(const Group& group, std::size_t connection) noexcept;
  void tick();
  [[nodiscard]] bool settles(Session& session);

  // Of the set.
  [[nodiscard]] bool gathers(Session& session);
  void acquire_set();
  void set_acquired(Group& group, Status status);
  void note_set_taken(Group& group, Status status);
  void step_set_after(SimTime length);
  void step_set();
  void write_in_set();
  void renew_set();
  void set_renewed(Group& group, Status status);
  void release_set();
  void set_released(Group& group, Status status);
  void post_set();
  void note_set_left(Session& member);
  void note_set_renewed(const Session& member);
  [[nodiscard]] SimTime bound_of_set(const Group& group) const noexcept;
  void end_set();
  void destroy_set();

  void wind_down(Session& session);
  void connect_last();
  [[nodiscard]] bool gathers_at_the_end();
  void acquire_last_set();
  void last_set_acquired(Group& group, Status status);
  void acquire_last();
  void acquired_last(Session& session, Status status);
  void released_last(Session& session, Status status);
  void close_all();
  void closed(std::size_t index, Status status, SimTime links_changed_at);

  // A strand is one that Asio hands out, which is not the context's own.
  [[nodiscard]] asio::any_io_executor executor() const {
    if (process_.plan->strands) return asio::make_strand(*loop_);
    return loop_->get_executor();
  }

  Application& application_;
  World& world_;
  Process& process_;
  asio::io_context* loop_ = nullptr;
  int hurry_pipe_[2] = {-1, -1};
  std::optional<asio::posix::stream_descriptor> hurry_;
  std::vector<Connection> connections_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::optional<Group> group_;
  struct Forgotten {
    std::shared_ptr<void> owner;
    std::shared_ptr<AsyncHandle> lock;
  };
  std::vector<Forgotten> forgotten_;  // By a canary.
  LoopHandlers handlers_;
  SimTime hangs_until_ = 0;
  bool closing_ = false;
  bool last_set_ = false;
  SimTime last_since_ = 0;  // Of the last acquire.
  SimTime last_imposed_ = 0;
};

std::unique_ptr<LoopProgram> make_loop_program(Application& application, World& world, Process& process) {
  return std::make_unique<AsioProgram>(application, world, process);
}

// ---- Life --------------------------------------------------------------------------------------------------------

void AsioProgram::run() {
  asio::io_context loop;
  loop_ = &loop;
  if (!process_.leaving) live();
  if (group_) group_->set.reset();
  group_.reset();
  // In an order that a program may choose: what waits in the loop goes with it.
  const bool clients_first = !process_.leaving && random().coin();
  if (clients_first)
    for (Connection& connection : connections_) connection.peer.destroy();
  forgotten_.clear();
  for (const auto& session : sessions_) drop_one(*session);
  for (const auto& session : sessions_) session->pause.reset(), session->cancel.reset();
  sessions_.clear();  // Owners keep what belongs to this process.
  connections_.clear();
  hurry_.reset();
  if (hurry_pipe_[1] >= 0) ::close(hurry_pipe_[1]);
  hurry_pipe_[1] = -1;
  loop_ = nullptr;
}

void AsioProgram::live() {
  application_.workers_[0].thread = world_.thread().id;
  application_.locked_out_ = process_.plan->wrong_password && process_.life % 2 == 1 && faults();
  if (application_.locked_out_) world_.count(Fault::wrong_password, "client " + std::to_string(process_.index));
  await_hurry();
  connections_.resize(process_.plan->connections.size());
  for (std::size_t index = 0; index < connections_.size(); ++index) make_peer(index);
  for (Slot& slot : application_.slots_)  // What is a part of another stands behind them.
    if (!slot.is_part()) sessions_.push_back(std::make_unique<Session>(*this, slot));
  group_.emplace(*this);
  for (const auto& session : sessions_) make(*session);
  for (const auto& session : sessions_) step_soon(*session, false);
  loop_->run();
  if (process_.leaving || world_.failed()) return;
  if (handlers_.left() != 0)
    world_.fail("completed", "client " + std::to_string(process_.index) + " was not told the end of " +
                                 std::to_string(handlers_.left()) + " operations");
}

// A byte from outside says that the faults are over: who sleeps is woken.
void AsioProgram::await_hurry() {
  if (::pipe2(hurry_pipe_, 0) != 0) return;
  hurry_.emplace(*loop_, hurry_pipe_[0]);
  hurry_->async_wait(asio::posix::stream_descriptor::wait_read, [this](const std::error_code& error) {
    if (error || gone()) return;
    world_.trace().add(world_.now(), "hurries", process_.index);
    for (const auto& session : sessions_)
      if (session->doing == Doing::nothing && !session->over) step(*session);
    if (group_->set != nullptr && group_->doing == Doing::nothing) step_set();
    for (std::size_t index = 0; index < connections_.size(); ++index)
      if (connections_[index].closed && !connections_[index].over) come_back(index);
  });
}

// ---- Clients -----------------------------------------------------------------------------------------------------

void AsioProgram::make_peer(std::size_t index) {
  Connection& connection = connections_[index];
  const std::size_t slots = sessions_.empty() ? process_.plan->slots.size() : sessions_.size();
  // In some programs there is no room for all that it does at once.
  const std::size_t waiters = random().chance(200'000) ? 1 + random().index(2) : slots + 1;
  const std::size_t kept = random().chance(200'000) ? 1 + random().index(2) : slots + 1;
  const std::size_t operations = 3 + 2 * slots;
  connection.waiters = waiters;
  connection.kept = of_quorum(index) ? slots : kept;
  ++connection.made;
  if (of_quorum(index)) {
    application_.configure_quorum();
    connection.peer.make_quorum(executor(), application_.configs_.size(),
                                {.operations = operations, .waiters = waiters});
  } else {
    AsyncLimits limits;
    limits.waiters = waiters;
    limits.kept = kept;
    limits.operations = operations;
    connection.peer.make_client(executor(), limits);
    for (std::shared_ptr<SharedOwner>& owner : connection.owners) owner.reset();
    if (process_.plan->hears) connection.peer.client().watch_sentinels();
    Application::Connection& known = application_.connections_[index];
    known.node = application_.plan_of_connection(index).node;
    known.timeouts = application_.timeouts_of_connection(index);
    known.timeouts_at_first = known.timeouts;
  }
  if (!connection.again) connection.again.emplace(*loop_);
  connect(index);
}

void AsioProgram::connect(std::size_t index) {
  Connection& connection = connections_[index];
  connection.closed = false;
  connection.connecting = true;
  world_.pace().note_connect_call(process_);
  const auto handler = [this, index, made = connection.made, started = application_.start(),
                        number = handlers_.give(index, "async_connect")](std::error_code error) {
    if (gone()) return;
    handlers_.note_called(number);
    connected(index, made, started, status_of(error));
  };
  const LoopHandlers::Giving giving(handlers_);
  if (of_quorum(index))
    connection.peer.quorum().async_connect(application_.configs_.data(), application_.configs_.size(),
                                           application_.quorum_config(), handler);
  else
    connect_client(index, handler);
}

// Of a cluster it takes along what is to be taken back at other servers, as far as its first connection has room. Nothing is
// answered meanwhile: what is pending then less than before was given up.
template <class Handler>
void AsioProgram::connect_client(std::size_t index, const Handler& handler) {
  AsyncClient& client = connections_[index].peer.client();
  const std::size_t pending = client.compensations_pending();
  client.async_connect(application_.config_of(index, application_.connections_[index].node), handler);
  if (client.compensations_pending() >= pending) return;
  for (const auto& session : sessions_)
    if (session->slot->plan->connection == index && session->slot->depth == 0) forgive(*session->slot);
}

void AsioProgram::forgive(Slot& slot) {
  slot.unclear = Token();
  for (Slot* const part : slot.parts) part->unclear = Token();
}

void AsioProgram::connected(std::size_t index, std::uint64_t made, const Started& started, Status status) {
  world_.trace().add(world_.now(), "connected()", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  if (connections_[index].made == made) connections_[index].connecting = false;
  // Asio's resolver takes its own time.
  if (application_.plan_of_connection(index).named) return;
  if (!of_quorum(index))
    return application_.check_bound("async_connect", started, application_.bound_with_connect(index, 0));
  application_.check_bound("async_connect", started, Application::bound_of_span(process_.plan->connect_timeout));
  if (status != Status::ok && status != Status::no_quorum && status != Status::cancelled)
    world_.fail("configuration", std::string("a quorum of the plan: ") + to_string(status));
}

// With other timeouts, no longer than the plan's, which the checkers go by; or with other nodes first.
void AsioProgram::connect_anew(std::size_t index) {
  world_.trace().add(world_.now(), "connects anew", process_.index, index);
  if (of_quorum(index)) {
    if (process_.plan->quorum_anew != 0) {
      destroy_set();  // Its locks go elsewhere.
      application_.configure_quorum_anew();
    }
    return connect(index);
  }
  Timeouts& timeouts = application_.connections_[index].timeouts;
  const Timeouts most = application_.timeouts_of_connection(index);
  timeouts.connect = random().magnitude(most.connect / 4, most.connect);
  timeouts.request = most.request;
  timeouts.stall = random().magnitude(most.stall / 4, most.stall);
  connect(index);
}

// Something is done to a whole client.
void AsioProgram::disturb_client() {
  const std::size_t index = random().index(connections_.size());
  Connection& connection = connections_[index];
  if (connection.closed || connection.connecting || connection.over) return;
  world_.count(Fault::connect_anew, "client " + std::to_string(process_.index));
  switch (sin() == Sin::debts_forgotten_on_close ? 2 : random().below(4)) {
    case 0: return connect_anew(index);
    case 1:
      world_.trace().add(world_.now(), "cancels all", process_.index, index);
      for (const auto& session : sessions_)
        if (session->slot->plan->connection == index && session->doing != Doing::nothing && session->cancelled_at < 0)
          note_cancelled(*session);
      if (group_ && group_->doing != Doing::nothing && group_->cancelled_at < 0 && is_all_of(*group_, index))
        note_cancelled(*group_);
      return connection.peer.cancel();
    case 2: {
      world_.trace().add(world_.now(), "closes()", process_.index, index);
      connection.closed = true;
      // What is held there runs out, since nobody renews it.
      for (Slot& slot : application_.slots_)
        if (slot.plan->connection == index && slot.loop != nullptr) slot.moved = true;
      if (sin() == Sin::debts_forgotten_on_close)  // What it should say at the end it does not say.
        for (const std::size_t link : world_.open_links())
          if (world_.link(link).process == process_.index) world_.link(link).up_swallowed = true;
      if (random().coin()) {
        connection.peer.close();
        return leave_client(index);
      }
      connection.closing = true;
      const LoopHandlers::Giving giving(handlers_);
      return connection.peer.async_close([this, index, made = connection.made, started = application_.start(),
                                          links_changed_at = process_.links_changed_at,
                                          number = handlers_.give(index, "async_close")](std::error_code error) {
        if (gone()) return;
        handlers_.note_called(number);
        if (connections_[index].made != made || !connections_[index].peer) return;
        connections_[index].closing = false;
        application_.check_bound("async_close", started, bound_of_close(index));
        closed(index, status_of(error), links_changed_at);
        leave_client(index);
      });
    }
    default: {
      world_.trace().add(world_.now(), "destroys", process_.index, index);
      connection.closed = true;
      destroy_set();
      for (const auto& session : sessions_)
        if (session->slot->plan->connection == index && session->lock != nullptr) {
          Slot& slot = *session->slot;
          slot.moved = true;
          slot.releasing = true;  // It is let go of.
        }
      connection.peer.destroy();
      handlers_.note_gone(index);
      for (const auto& session : sessions_) {
        if (session->slot->plan->connection != index) continue;
        drop(*session);
        for (Slot* const part : session->slot->parts) part->unclear = Token();
        session->slot->unclear = Token();  // What is owed goes with the client, and leases end it.
      }
      return leave_client(index);
    }
  }
}

// It comes back in a while.
void AsioProgram::leave_client(std::size_t index) {
  Connection& connection = connections_[index];
  if (connection.over) return;
  if (!faults()) return come_back(index);
  connection.again->expires_after(std::chrono::nanoseconds(random().magnitude(10 * microsecond, process_.plan->think)));
  connection.again->async_wait([this, index](const std::error_code& error) {
    if (!error && !gone()) come_back(index);
  });
}

void AsioProgram::come_back(std::size_t index) {
  Connection& connection = connections_[index];
  if (!connection.closed || connection.closing || connection.connecting || connection.over) return;
  (void)connection.again->cancel();
  if (sin() == Sin::debts_forgotten_on_close) {
    for (const auto& session : sessions_)
      if (session->slot->plan->connection == index) drop(*session);
    connection.peer.destroy();
  }
  if (!connection.peer) {
    make_peer(index);
    for (const auto& session : sessions_)
      if (session->slot->plan->connection == index && !session->over && session->lock == nullptr) {
        make(*session);
        step_soon(*session, false);
      }
    return;
  }
  connect(index);
}

// ---- Locks -------------------------------------------------------------------------------------------------------

template <class Lock>
void AsioProgram::own(Session& session, std::shared_ptr<Lock> lock) {
  session.lock = lock.get();
  session.token_of = [](const AsyncHandle& held) -> const Token& { return static_cast<const Lock&>(held).token(); };
  if constexpr (requires { lock->fence(); })
    session.fence_of = [](const AsyncHandle& held) { return static_cast<const Lock&>(held).fence(); };
  session.own = std::move(lock);
}

void AsioProgram::make(Session& session) {
  if (session.lock != nullptr || !connection_of(session).peer) return;
  if (session.slot->of_two_sides()) {
    Session& other = other_side(session);
    make_sides(session);
    settle_lock(other);
  } else if (session.slot->of_quorum) {
    make_redlock(session);
  } else {
    make_lock(session);
  }
  settle_lock(session);
}

void AsioProgram::make_lock(Session& session) {
  const SlotPlan& plan = *session.slot->plan;
  AsyncClient& client = connection_of(session).peer.client();
  const ByteView key = application_.write_name(*session.slot);
  const LockTiming timing = {.lease = Duration(plan.lease)};
  switch (plan.kind) {
    case KindOfLock::mutex:
    case KindOfLock::announced:
    case KindOfLock::fenced_mutex:
    case KindOfLock::announced_fenced:
      return own(session, std::make_shared<AsyncMutex>(
                              client, key, timing,
                              MutexOptions{.announce = session.slot->announced(), .fence = session.slot->fenced()}));
    case KindOfLock::reentrant:
      return own(session, std::make_shared<AsyncReentrantLock>(owner_of(session), key, timing));
    case KindOfLock::fenced: return own(session, std::make_shared<AsyncFencedLock>(owner_of(session), key, timing));
    case KindOfLock::semaphore:
      return own(session, std::make_shared<AsyncSemaphore>(client, key, plan.permits, timing));
    case KindOfLock::fair:
    case KindOfLock::fair_fenced:
      return own(session, std::make_shared<AsyncFairLock>(owner_of(session), key, timing,
                                                          FairOptions{.fence = session.slot->fenced()}));
    case KindOfLock::multi: {
      ByteView names[names_max];
      const std::size_t count = application_.names_of(*session.slot, names);
      return own(session, std::make_shared<AsyncMultiLock>(owner_of(session), names, count, timing));
    }
    case KindOfLock::read:
    case KindOfLock::write: return;
  }
}

void AsioProgram::make_redlock(Session& session) {
  Slot& slot = *session.slot;
  AsyncQuorum& quorum = connection_of(session).peer.quorum();
  const ByteView key = application_.write_name(slot);
  const QuorumTiming timing = application_.quorum_timing_of(slot);
  const LockKind& kind = quorum_kind_of(slot.plan->kind);
  if (const LockKind& wrong = quorum_kind_as_canary(sin(), kind); &wrong != &kind)
    own(session, std::make_shared<LoopRedlock>(quorum, wrong, key, timing));
  else if (slot.plan->kind == KindOfLock::reentrant)
    own(session, std::make_shared<AsyncRedlockReentrantLock<quorum_nodes_max>>(quorum_owner_of(session), key, timing));
  else if (slot.plan->kind == KindOfLock::fenced)
    own(session, std::make_shared<AsyncRedlockFencedLock<quorum_nodes_max>>(quorum_owner_of(session), key, timing));
  else
    own(session, std::make_shared<AsyncRedlockMutex<quorum_nodes_max>>(
                     quorum, key, timing, MutexOptions{.announce = slot.announced(), .fence = slot.fenced()}));
}

void AsioProgram::make_sides(Session& session) {
  Session& reader = session.slot->reads() ? session : other_side(session);
  Session& writer = other_side(reader);
  const ByteView key = application_.write_name(*session.slot);
  reader.sides = writer.sides =
      std::make_shared<AsyncReadWriteLock>(owner_of(reader), key,
                                           ReadWriteTiming{.read = {.lease = Duration(reader.slot->plan->lease)},
                                                           .write = {.lease = Duration(writer.slot->plan->lease)}});
  reader.token_of = writer.token_of = [](const AsyncHandle& held) -> const Token& {
    return static_cast<const AsyncLock&>(held).token();
  };
  reader.lock = &reader.sides->read();
  writer.lock = &writer.sides->write();
}

void AsioProgram::settle_lock(Session& session) {
  Slot& slot = *session.slot;
  slot.loop = &session;
  slot.moved = false;
  slot.depth = 0;
  session.fence_of = slot.of_two_sides() ? nullptr : session.fence_of;
  const Duration lease(slot.plan->lease);
  application_.judge_configuration(session.lock->configuration(), slot.of_quorum ? lease : Duration::zero());
  keep(session);
}

void AsioProgram::keep(Session& session) {
  const SlotPlan& plan = *session.slot->plan;
  KeepOptions keep;
  keep.keep = plan.kept ? Keep::always : Keep::never;
  if (plan.max_hold != 0 && sin() != Sin::max_hold_ignored) keep.max_hold = Duration(plan.max_hold);
  if (plan.liveness != 0 && sin() != Sin::feed_ignored) keep.liveness = Duration(plan.liveness);
  keep.on_lost = [](void* context) noexcept {
    auto& told = *static_cast<Session*>(context);
    if (!told.program->process_.leaving) Application::note_lost(told.slot);
  };
  keep.context = &session;
  (void)session.lock->keep(keep);
}

// With what it does: both sides of a lock are one object.
void AsioProgram::drop(Session& session) {
  const auto both = session.sides;  // Until each has been looked at.
  if (session.slot->of_two_sides() && other_side(session).lock != nullptr) {
    other_side(session).slot->releasing = true;
    other_side(session).slot->loop = session.slot->loop = nullptr;  // The last of the two takes the object with it.
    session.sides.reset();
    drop_one(other_side(session));
  }
  drop_one(session);
}

void AsioProgram::drop_one(Session& session) {
  if (session.doing == Doing::in_set) destroy_set();
  Slot& slot = *session.slot;
  slot.releasing = true;
  // What it holds is let go of, and so is what it was asking for, where there is a place for that.
  const Connection& connection = connection_of(session);
  const bool known =
      session.own != nullptr && connection.peer && !connection.closed && connection.peer.compensations_pending() < 4;
  const bool asks =
      session.doing == Doing::acquiring && session.lock != nullptr && session.token().bytes() != session.before.bytes();
  const bool left = (asks || slot.depth != 0) && session.doing != Doing::releasing && is_alone(session);
  if (known && left && !slot.of_quorum) world_.checkers().after_post(process_, slot, session.token(), Status::ok);
  if (left && slot.of_quorum) {
    slot.unclear = known && !slot.moved ? session.token() : Token();
    slot.unclear_at = world_.now();
  }
  slot.loop = nullptr;  // The checkers may look before it is destroyed.
  const bool owed = session.owes() && connection.peer;
  const std::size_t pending = owed ? connection.peer.compensations_pending() : 0;
  session.lock = nullptr;
  session.inquiry.reset();
  session.quorum_inquiry.reset();
  session.sides.reset();
  session.own.reset();
  // It takes with it what has still found no room, and a lease ends that.
  if (owed && connection.peer.compensations_pending() <= pending) forgive(slot);
  session.fence_of = nullptr;
  ++session.serial;
  session.doing = Doing::nothing;
  session.waits_for_loss = false;
  session.cancelled_at = -1;
  if (session.cancel) (void)session.cancel->cancel();
  slot.depth = 0;
  slot.own_belief = Instant();
  slot.own_fence = 0;
  slot.releasing = slot.waiting = slot.renewing = false;
  slot.settle_parts();
}

// ---- Operations --------------------------------------------------------------------------------------------------

template <class Who, class Start>
void AsioProgram::ask_for(Who& asker, const char* what, void (AsioProgram::*then)(Who&, Status), Start start) {
  const std::uint64_t number = handlers_.give(asker.connection, what);
  const LoopHandlers::Giving giving(handlers_);
  start(Done<Who>{this, &asker, asker.serial, number, then, asker.signal.slot()});
}

void AsioProgram::begin(Asker& asker, Doing doing, const char* what) {
  asker.doing = doing;
  asker.started = application_.start();
  asker.commands = world_.thread().commands;
  asker.cancelled_at = -1;
  world_.trace().add(world_.now(), "begins", process_.index, asker.connection, what);
  world_.pace().begin(world_.thread());
  arm_cancel(asker);
}

void AsioProgram::begin_of(Session& session, Doing doing, const char* what) {
  session.before = session.token();
  begin(session, doing, what);
}

void AsioProgram::finish(Asker& asker, Status status, const char* what, SimTime bound) {
  asker.doing = Doing::nothing;
  (void)asker.cancel->cancel();
  world_.trace().add(world_.now(), what, process_.index, static_cast<std::uint64_t>(status), to_string(status));
  application_.check_bound(what, asker.started, bound);
  check_cancelled(asker, status, what);
  asker.cancelled_at = -1;
}

void AsioProgram::arm_cancel(Asker& asker) {
  if (!faults() || process_.plan->cancels == 0 || !random().chance(process_.plan->cancels)) return;
  const SimTime most = std::max<SimTime>(process_.plan->wait, 10 * millisecond);
  asker.cancel->expires_after(std::chrono::nanoseconds(random().magnitude(microsecond, most)));
  asker.cancel->async_wait([this, chosen = &asker, serial = asker.serial](const std::error_code& error) {
    if (error || gone() || chosen->serial != serial || chosen->doing == Doing::nothing) return;
    cancel(*chosen);
  });
}

// By the lock, or the set, or by the slot of its handler.
void AsioProgram::cancel(Asker& asker) {
  if (auto* const session = dynamic_cast<Session*>(&asker); session != nullptr &&
                                                            sin() == Sin::cancelled_is_forgotten &&
                                                            asker.doing == Doing::acquiring && session->own != nullptr)
    return forget_as_canary(*session);
  const bool by_slot = random().coin();
  world_.count(Fault::cancel_at_call, "client " + std::to_string(process_.index));
  world_.trace().add(world_.now(), "cancel()", process_.index, by_slot ? 1 : 0);
  note_cancelled(asker);
  if (by_slot)
    asker.signal.emit(random().coin() ? asio::cancellation_type::terminal : asio::cancellation_type::total);
  else
    asker.cancel_call();
}

// It waits on no other client.
bool AsioProgram::is_all_of(const Group& group, std::size_t connection) noexcept {
  return std::all_of(group.members.begin(), group.members.end(),
                     [connection](const Session* member) { return member->slot->plan->connection == connection; });
}

void AsioProgram::note_cancelled(Asker& asker) {
  asker.cancelled_at = world_.now();
  asker.cancelled_imposed = process_.imposed;
  asker.cancelled_blocks = world_.thread().blocks;
}

// Its handler is not called, and nobody sees to what it was asking for.
void AsioProgram::forget_as_canary(Session& session) {
  Slot& slot = *session.slot;
  world_.checkers().after_acquire(process_, slot, Status::cancelled, session.started.at, session.commands);
  slot.loop = nullptr;
  slot.waiting = false;
  slot.settle_parts();
  ++session.serial;
  session.doing = Doing::nothing;
  session.lock = nullptr;
  forgotten_.push_back({std::move(session.owner), std::move(session.own)});
  make(session);
  step_soon(session, true);
}

void AsioProgram::check_cancelled(const Asker& asker, Status status, const char* what) const {
  if (asker.cancelled_at < 0 || process_.imposed != asker.cancelled_imposed) return;
  const std::string who = std::string(what) + " of client " + std::to_string(process_.index);
  if (world_.now() - asker.cancelled_at > cancelled_within)
    world_.fail("cancel", who + " ended " + time_text(world_.now() - asker.cancelled_at) + " s after it was cancelled");
  if (status != Status::cancelled && world_.thread().blocks > asker.cancelled_blocks)
    world_.fail("cancel", who + " was cancelled, and said " + to_string(status));
}

// ---- What it does ------------------------------------------------------------------------------------------------

void AsioProgram::step_after(Session& session, SimTime length) {
  session.pause->expires_after(std::chrono::nanoseconds(length));
  session.pause->async_wait([this, chosen = &session, serial = session.serial](const std::error_code& error) {
    if (error || gone() || chosen->serial != serial || chosen->doing != Doing::nothing) return;
    step(*chosen);
  });
}

// `idle`: nothing came of the last step, and the next is not to follow at once.
void AsioProgram::step_soon(Session& session, bool idle) {
  if (session.over) return;
  const bool pauses = idle || random().coin();
  if (!pauses) return step_after(session, 0);
  step_after(session, ending() ? 20 * millisecond : random().magnitude(10 * microsecond, process_.plan->think));
}

void AsioProgram::step(Session& session) {
  if (session.over || session.doing != Doing::nothing || closing_) return;
  if (settles(session)) return;
  if (ending()) return wind_down(session);
  if (session.lock == nullptr) return;  // Until its client comes back.
  if (world_.now() < hangs_until_) return step_after(session, hangs_until_ - world_.now());
  if (process_.plan->hangs != 0 && random().chance(process_.plan->hangs))
    hangs_until_ = world_.now() + random().magnitude(10 * microsecond, 4 * world_.plan().lease_max);
  tick();
  if (random().chance(2'000)) {
    application_.ending_ = true;
    for (const auto& other : sessions_)
      if (other->doing == Doing::nothing) step_after(*other, 0);
    return;
  }
  const std::uint32_t often = sin() == Sin::debts_forgotten_on_close ? 30'000 : process_.plan->connects_anew;
  if (often != 0 && random().chance(often)) {
    disturb_client();
    if (session.lock == nullptr) return;
  }
  act(session);
}

void AsioProgram::tick() {
  for (const auto& session : sessions_) {
    Slot& slot = *session->slot;
    if (session->lock == nullptr || slot.plan->liveness == 0 || slot.depth == 0) continue;
    session->lock->tick();
    slot.ticked = Instant::from_nanoseconds(world_.local_time(process_));
  }
}

// What was given up is gone when the client waits for no compensation any more, and of a quorum when all went well for a while.
// True while that is waited for.
bool AsioProgram::settles(Session& session) {
  Slot& slot = *session.slot;
  Connection& connection = connection_of(session);
  if (slot.unclear.empty() || !connection.peer || !connection.peer.connected()) return false;
  if (!slot.of_quorum) {
    if (!session.owes()) world_.checkers().check_compensated(process_, slot, connection.peer.compensations_pending());
    return false;
  }
  const SimTime settled = slot.unclear_at + 3 * application_.longest_lull();
  if (world_.now() >= settled) {
    if (connection.peer.compensations_pending() == 0) world_.checkers().check_gone(process_, slot, 0);
    return false;
  }
  if (ending() || !random().chance(300'000)) return false;
  step_after(session, settled - world_.now());
  return true;
}

void AsioProgram::act(Session& session) {
  Slot& slot = *session.slot;
  if (is_in_use(session)) return step_after(session, 20 * millisecond);
  if (random().chance(process_.plan->careless)) {  // It forgets what it holds.
    drop(session);
    make(session);
    if (slot.of_two_sides()) step_soon(other_side(session), true);
    return step_soon(session, true);
  }
  if (application_.draws_inspection()) return inspect(session);
  if (slot.depth == 0 && gathers(session)) return;
  if (slot.depth == 0 || (slot.reentrant() && random().chance(200'000)))
    acquire(session);
  else
    act_held(session);
}

void AsioProgram::act_held(Session& session) {
  switch (random().below(9)) {
    case 0: return renew(session);
    case 1: return write(session);
    case 2: return session.slot->of_quorum ? await_loss(session) : ask(session);
    case 3:
    case 4: return step_after(session, random().magnitude(10 * microsecond, process_.plan->hold));
    case 5: return await_loss(session);
    case 6: return post(session);
    case 7: return session.lock->held() ? release(session) : forget_loss(session);
    default: return release(session);
  }
}

void AsioProgram::acquire(Session& session) {
  Slot& slot = *session.slot;
  begin_of(session, Doing::acquiring, "acquire");
  session.tries = random().chance(300'000);
  session.wait = session.tries ? 0 : random().magnitude(100 * microsecond, process_.plan->wait);
  slot.queued = !session.tries && slot.queues();
  session.read_by = Token();
  if (application_.asks_as_reader(slot)) session.read_by = other_side(session).token();
  slot.waiting = !session.tries;
  ++slot.waits;
  const SimTime more = sin() == Sin::timeout_too_much ? 2 * process_.plan->request_timeout + 200 * millisecond : 0;
  ask_for(session, "acquire", &AsioProgram::acquired, [&](const Done<Session>& done) {
    if (session.tries)
      session.lock->async_try_acquire(done);
    else
      session.lock->async_acquire(Duration(session.wait + more), done);
  });
}

void AsioProgram::acquired(Session& session, Status status) {
  Slot& slot = *session.slot;
  slot.waiting = false;
  finish(session, status, session.tries ? "try_acquire" : "acquire", bound_of_acquire(session));
  world_.checkers().after_acquire(process_, slot, status, session.started.at, session.commands);
  if (slot.plan->kind == KindOfLock::write) {
    const bool reads_on = application_.asked_as_reader(slot, session.read_by, session.started.at);
    // The other side may have come and gone meanwhile.
    if (status != Status::upgrade_refused || reads_on)
      world_.checkers().after_asking_to_write(process_, slot, status, !session.read_by.empty(), reads_on);
  }
  if (status == Status::ok) application_.granted(slot);
  if (slot.of_quorum) application_.believe_as_canary(slot, status);
  step_soon(session, status != Status::ok && world_.now() - session.started.at < millisecond);
}

void AsioProgram::renew(Session& session) {
  begin_of(session, Doing::renewing, "renew");
  session.slot->renewing = true;
  session.wait = random().magnitude(millisecond, 2 * second);
  ask_for(session, "renew", &AsioProgram::renewed,
          [&](const Done<Session>& done) { session.lock->async_renew(Duration(session.wait), done); });
}

void AsioProgram::renewed(Session& session, Status status) {
  session.slot->renewing = false;
  session.slot->renewed = Instant::from_nanoseconds(world_.local_time(process_));
  finish(session, status, "renew", Application::bound_of_span(session.wait));
  if (session.slot->own_belief != Instant() && status == Status::ok) {
    --session.slot->depth;
    application_.granted(*session.slot);
  }
  step_soon(session, status != Status::ok);
}

SimTime AsioProgram::bound_of_acquire(const Session& session) const noexcept {
  const Slot& slot = *session.slot;
  // Of a quorum a try ends as a wait does that is over at once.
  if (!session.tries || slot.of_quorum) return application_.bound(slot, session.wait);
  return application_.bound_with_connect(slot.plan->connection, 0);
}

SimTime AsioProgram::bound_of_close(std::size_t index) const noexcept {
  return of_quorum(index) ? application_.bound_of_request() : application_.bound_of_release(index);
}

// A release for which there is no room waits for some as long as there is something to release: of a cluster, what is to be taken
// back and was sent from server to server takes the places of one of them for two seconds.
SimTime AsioProgram::bound_of_release(const Session& session) const noexcept {
  if (session.slot->of_quorum) return application_.bound_of_request();
  return application_.bound_of_release(session.slot->plan->connection) + Application::bound_of_span(session.held_for);
}

void AsioProgram::release(Session& session, void (AsioProgram::*told)(Session&, Status)) {
  Slot& slot = *session.slot;
  begin_of(session, Doing::releasing, "release");
  const LoopPeer& peer = connection_of(session).peer;
  // One of a cluster's connections may be full of what is not answered, whatever the others are.
  const std::size_t many = world_.plan().set_up == SetUp::cluster ? 0 : compensations_max / 3;
  const bool full = world_.plan().enabled(Fault::full_socket) || (peer && peer.compensations_pending() > many);
  session.held_for = peer && full ? session.lock->remaining().count() : 0;
  slot.releasing = true;
  slot.own_belief = Instant();
  session.last = session.lock->hold_count() <= 1;
  session.number = world_.checkers().number_of(slot);
  ask_for(session, "release", told, [&](const Done<Session>& done) { session.lock->async_release(done); });
}

void AsioProgram::released(Session& session, Status status) {
  Slot& slot = *session.slot;
  slot.releasing = false;
  slot.own_belief = Instant();
  if (slot.depth != 0) --slot.depth;
  finish(session, status, "release", bound_of_release(session));
  note_released(session, session.before, status, false);
  step_soon(session, status != Status::ok);
}

void AsioProgram::note_released(Session& session, const Token& token, Status status, bool posted) {
  Slot& slot = *session.slot;
  if (slot.of_quorum) return application_.note_quorum_released(slot, token, status, session.last, posted);
  if (!posted) return world_.checkers().after_release(process_, session.number, status, session.last);
  if (session.last) world_.checkers().after_post(process_, slot, token, status);
}

void AsioProgram::post(Session& session) {
  Slot& slot = *session.slot;
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  slot.releasing = true;
  slot.own_belief = Instant();
  session.last = session.lock->hold_count() <= 1;
  const Token token = session.token();
  const Status status = session.lock->post_release();
  slot.releasing = false;
  if (slot.depth != 0) --slot.depth;
  world_.trace().add(world_.now(), "post release", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  // Pauses that overlap count twice, and whoever is woken after them runs a bit later.
  const SimTime paused = process_.imposed - imposed;
  if (world_.now() - since > (paused == 0 ? 0 : paused + millisecond))
    world_.fail("bounded waits", "post_release() of client " + std::to_string(process_.index) + " has waited");
  note_released(session, token, status, true);
  step_soon(session, status != Status::ok);
}

void AsioProgram::ask(Session& session) {
  begin_of(session, Doing::asking, "remaining_on_server");
  ask_for(session, "remaining_on_server", &AsioProgram::asked, [&](const Done<Session>& done) {
    static_cast<AsyncLock*>(session.lock)->async_remaining_on_server(session.remaining, done);
  });
}

void AsioProgram::asked(Session& session, Status status) {
  finish(session, status, "remaining_on_server", application_.bound_with_connect(session.slot->plan->connection, 0));
  step_soon(session, status != Status::ok);
}

void AsioProgram::inspect(Session& session) {
  const Slot& slot = *session.slot;
  session.inspected = slot.held() ? world_.checkers().number_of(slot) : 0;
  begin_of(session, Doing::asking, "inspect");
  const ByteView key = application_.write_name(slot);
  if (slot.of_quorum)
    session.quorum_inquiry = std::make_unique<AsyncQuorumInquiry>(connection_of(session).peer.quorum(), key);
  else
    session.inquiry = std::make_unique<AsyncInquiry>(connection_of(session).peer.client(), key);
  ask_for(session, "inspect", &AsioProgram::inspected, [&](const Done<Session>& done) {
    if (slot.of_quorum)
      session.quorum_inquiry->async_inspect(session.quorum_info, done);
    else
      session.inquiry->async_inspect(session.info, done);
  });
}

void AsioProgram::inspected(Session& session, Status status) {
  const Slot& slot = *session.slot;
  if (slot.of_quorum) {
    session.info = session.quorum_info.holder;
    if (status == Status::ok) session.cancelled_at = -1;  // What the nodes have said by then is told.
  }
  finish(session, status, "inspect", application_.bound_of_inspection(slot));
  session.inquiry.reset();
  session.quorum_inquiry.reset();
  if (status == Status::ok && session.inspected != 0 && slot.held())
    world_.checkers().check_inspected(process_, slot, session.inspected, session.info);
  step_soon(session, status != Status::ok);
}

// Checks, and then writes: what comes between the two is what the fence is for.
void AsioProgram::write(Session& session) {
  Slot& slot = *session.slot;
  const std::uint64_t fence = slot.fenced() ? slot.fence() : 0;
  const std::uint32_t number = world_.checkers().number_of(slot);
  if (fence == 0 || slot.moved || !session.lock->held()) return step_soon(session, true);
  session.pause->expires_after(std::chrono::nanoseconds(random().magnitude(10 * microsecond, process_.plan->hold)));
  session.pause->async_wait(
      [this, chosen = &session, serial = session.serial, fence, number](const std::error_code& error) {
        if (error || gone() || chosen->serial != serial || chosen->doing != Doing::nothing) return;
        world_.checkers().resource_written(process_, *chosen->slot, number, fence);
        step(*chosen);
      });
}

// Beside whatever else it does.
void AsioProgram::await_loss(Session& session) {
  if (!session.waits_for_loss) {
    session.waits_for_loss = true;
    const LoopHandlers::Giving giving(handlers_);
    session.lock->async_wait_lost([this, chosen = &session, serial = session.serial, token = session.token(),
                                   number = handlers_.give(session.slot->plan->connection, "async_wait_lost")](
                                      const std::error_code& error) {
      if (gone()) return;
      handlers_.note_called(number);
      if (chosen->serial != serial) return;
      chosen->waits_for_loss = false;
      const Status status = status_of(error);
      world_.trace().add(world_.now(), "wait lost", process_.index, static_cast<std::uint64_t>(status),
                         to_string(status));
      const bool same = chosen->token().bytes() == token.bytes();
      if ((status == Status::lock_lost || status == Status::ok) && same && chosen->lock->held())
        world_.fail("loss told", "client " + std::to_string(process_.index) +
                                     " was told the end of what it holds: " + world_.plan().names[chosen->slot->name]);
    });
  }
  step_soon(session, true);
}

void AsioProgram::forget_loss(Session& session) {
  const Status status = session.lock->forget_loss();
  world_.trace().add(world_.now(), "forget loss", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  if (status == Status::ok) {
    session.slot->depth = 0;
    each_handle(session, [](const Session& other) { other.slot->depth = 0; });
  }
  if (session.slot->of_quorum && session.slot->depth == 0) session.slot->moved = false;
  step_soon(session, status != Status::ok);
}

// ---- A set -------------------------------------------------------------------------------------------------------

// Takes this lock and some that are free to be taken, in any order.
bool AsioProgram::gathers(Session& session) {
  if (process_.plan->sets == 0 || group_->set != nullptr || !random().chance(process_.plan->sets)) return false;
  if (session.lock->hold_count() != 0 || session.slot->shares_hold()) return false;
  Group& group = *group_;
  group.members.clear();
  group.handles.clear();
  group.members.push_back(&session);
  for (const auto& other : sessions_) {
    const Slot& slot = *other->slot;
    if (other.get() == &session || other->lock == nullptr || other->doing != Doing::nothing || other->over) continue;
    if (slot.shares_hold()) continue;
    if (slot.depth != 0 || (slot.of_two_sides() && !process_.plan->wide_sets) || random().chance(200'000)) continue;
    if (other->lock->hold_count() != 0) continue;  // What a release that found no place has left.
    // Two of one name cannot be had together, or are refused.
    const bool named = std::any_of(group.members.begin(), group.members.end(),
                                   [&](const Session* member) { return member->slot->shares_name(slot); });
    if (!named || random().chance(20'000)) group.members.push_back(other.get());
  }
  if (session.slot->of_two_sides() && !process_.plan->wide_sets) return false;
  if (group.members.size() < 2) {
    if (sessions_.size() < 2 || random().coin()) return false;
    step_soon(session, true);  // Until others are free, too.
    return true;
  }
  std::swap(group.members[0], group.members[random().index(group.members.size())]);
  for (const Session* const member : group.members) group.handles.push_back(member->lock);
  group.set = std::make_unique<AsyncLockSet>(group.handles.data(), group.handles.size());
  bool alone = true;      // No two of them want one name,
  bool hindered = false;  // or two of them can never have it at the same time.
  for (std::size_t index = 0; index < group.members.size(); ++index)
    for (std::size_t other = 0; other < index; ++other) {
      const Session& left = *group.members[index];
      const Session& right = *group.members[other];
      const bool one_name = left.slot->shares_name(*right.slot);
      alone = alone && !one_name;
      hindered = hindered || (one_name && left.connection == right.connection && !left.slot->of_semaphore());
    }
  const Status status = group.set->configuration();
  const bool well_made = std::all_of(group.members.begin(), group.members.end(),
                                     [](const Session* member) { return member->lock->configuration() == Status::ok; });
  if (alone && well_made) application_.judge_configuration(status);
  if (hindered && status == Status::ok) world_.fail("configuration", "a set was made of two locks of one name");
  if (status != Status::ok) {
    group.set.reset();
    return false;
  }
  for (Session* const member : group.members) {
    member->doing = Doing::in_set;
    member->cancelled_at = -1;
    (void)member->pause->cancel();
  }
  acquire_set();
  return true;
}

void AsioProgram::acquire_set() {
  Group& group = *group_;
  for (Session* const member : group.members) {
    member->before = member->token();
    member->slot->queued = false;
    member->slot->renewing = true;  // It is, while the next one is waited for.
  }
  begin(group, Doing::acquiring, "acquire a set");
  group.tries = random().chance(300'000);
  group.wait = group.tries ? 0 : random().magnitude(100 * microsecond, process_.plan->wait);
  ask_for(group, "acquire a set", &AsioProgram::set_acquired, [&](const Done<Group>& done) {
    if (group.tries)
      group.set->async_try_acquire(done);
    else
      group.set->async_acquire(Duration(group.wait), done);
  });
}

// A request timeout for each lock, and for each that is renewed meanwhile.
SimTime AsioProgram::bound_of_set(const Group& group) const noexcept {
  SimTime bound = Application::bound_of_span(group.wait);
  for (const Session* const member : group.members)
    bound += static_cast<SimTime>(group.members.size()) *
             (member->slot->of_quorum ? application_.bound_of_request()
                                      : application_.bound_with_connect(member->connection, 0));
  return bound;
}

void AsioProgram::set_acquired(Group& group, Status status) {
  finish(group, status, "acquire of a set", bound_of_set(group));
  if (sin() == Sin::set_of_some && status != Status::ok) status = Status::ok;
  note_set_taken(group, status);
  if (status != Status::ok) return end_set();
  step_set_after(0);
}

void AsioProgram::note_set_taken(Group& group, Status status) {
  for (Session* const member : group.members) {
    Slot& slot = *member->slot;
    note_set_renewed(*member);
    if (status == Status::ok) {
      world_.checkers().after_acquire(process_, slot, status, group.started.at, group.commands);
      application_.granted(slot);
      continue;
    }
    if (member->held())
      world_.fail("sets", "client " + std::to_string(process_.index) + " was told " + to_string(status) +
                              " and holds " + world_.plan().names[slot.name] + " of the set");
    if (member->token().bytes() != member->before.bytes()) note_set_left(*member);
  }
}

void AsioProgram::step_set_after(SimTime length) {
  Group& group = *group_;
  if (ending()) length = 0;  // It was hurried while something was asked for.
  group.pause->expires_after(std::chrono::nanoseconds(length));
  group.pause->async_wait([this, serial = group.serial](const std::error_code& error) {
    if (!error && !gone() && group_->serial == serial && group_->doing == Doing::nothing) step_set();
  });
}

void AsioProgram::step_set() {
  (void)group_->pause->cancel();  // It may have been woken before its time.
  if (ending()) return release_set();
  tick();
  switch (random().below(9)) {
    case 0: return renew_set();
    case 1: return write_in_set();
    case 2:
    case 3: return step_set_after(random().magnitude(10 * microsecond, process_.plan->hold));
    case 4: return post_set();
    case 5: return destroy_set();
    default: return release_set();
  }
}

// Its first lock's fence is the resource's.
void AsioProgram::write_in_set() {
  const Session& member = *group_->members[0];
  Slot& slot = *member.slot;
  if (group_->set->held() && slot.fenced() && !slot.moved && slot.fence() != 0)
    world_.checkers().resource_written(process_, slot, world_.checkers().number_of(slot), slot.fence());
  step_set_after(random().magnitude(10 * microsecond, process_.plan->hold));
}

void AsioProgram::renew_set() {
  Group& group = *group_;
  group.wait = 0;
  begin(group, Doing::renewing, "renew a set");
  for (const Session* const member : group.members) member->slot->renewing = true;
  ask_for(group, "renew a set", &AsioProgram::set_renewed,
          [&](const Done<Group>& done) { group.set->async_renew(done); });
}

void AsioProgram::set_renewed(Group& group, Status status) {
  for (const Session* const member : group.members) note_set_renewed(*member);
  finish(group, status, "renew of a set", bound_of_set(group));
  step_set_after(random().magnitude(10 * microsecond, process_.plan->think));
}

void AsioProgram::note_set_renewed(const Session& member) {
  member.slot->renewing = false;
  member.slot->renewed = Instant::from_nanoseconds(world_.local_time(process_));
}

void AsioProgram::release_set() {
  Group& group = *group_;
  group.wait = 0;
  for (Session* const member : group.members) {
    Slot& slot = *member->slot;
    member->before = member->token();
    member->last = true;
    member->number = world_.checkers().number_of(slot);
    group.wait += connection_of(*member).peer.compensations_pending() > compensations_max / 3
                      ? member->lock->remaining().count()
                      : 0;
    slot.releasing = true;
    slot.own_belief = Instant();
  }
  begin(group, Doing::releasing, "release a set");
  ask_for(group, "release a set", &AsioProgram::set_released,
          [&](const Done<Group>& done) { group.set->async_release(done); });
}

// The first that one of them met is what it says: where that is ok, all of them said so.
void AsioProgram::set_released(Group& group, Status status) {
  finish(group, status, "release of a set", bound_of_set(group));
  for (Session* const member : group.members) {
    Slot& slot = *member->slot;
    slot.releasing = false;
    slot.own_belief = Instant();
    if (slot.depth != 0) --slot.depth;
    if (status == Status::ok)
      note_released(*member, member->before, status, false);
    else
      note_set_left(*member);
  }
  end_set();
  if (!last_set_) return;
  world_.checkers().note_quiet(process_);
  close_all();
}

void AsioProgram::post_set() {
  Group& group = *group_;
  for (Session* const member : group.members) {
    member->before = member->token();
    member->slot->releasing = true;
  }
  const Status status = group.set->post_release();
  world_.trace().add(world_.now(), "post release of a set", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  for (Session* const member : group.members) {
    Slot& slot = *member->slot;
    slot.releasing = false;
    slot.own_belief = Instant();
    if (slot.depth != 0) --slot.depth;
    note_set_left(*member);
  }
  end_set();
}

// It is let go of, and nobody waits for the server's word: where there is a place for that, it follows.
void AsioProgram::note_set_left(Session& member) {
  Slot& slot = *member.slot;
  const Connection& connection = connection_of(member);
  const bool known = connection.peer && !connection.closed && connection.peer.compensations_pending() < 4;
  if (slot.of_quorum) {
    slot.unclear = known && !slot.moved ? member.token() : Token();
    slot.unclear_at = world_.now();
  } else if (known) {
    world_.checkers().after_post(process_, slot, member.token(), Status::ok);
  }
  if (member.held())
    world_.fail("sets", "client " + std::to_string(process_.index) + " has let go of a set and holds " +
                            world_.plan().names[slot.name]);
}

// Each of its locks is on its own again.
void AsioProgram::end_set() {
  Group& group = *group_;
  group.set.reset();
  ++group.serial;
  (void)group.pause->cancel();
  for (Session* const member : group.members) {
    member->doing = Doing::nothing;
    step_soon(*member, true);
  }
}

// With what is in progress.
void AsioProgram::destroy_set() {
  Group& group = *group_;
  if (group.set == nullptr) return;
  world_.trace().add(world_.now(), "destroys a set", process_.index);
  for (Session* const member : group.members) member->slot->releasing = true;
  ++group.serial;
  group.doing = Doing::nothing;
  (void)group.cancel->cancel();
  group.set.reset();
  handlers_.note_gone(no_connection);
  for (Session* const member : group.members) {
    Slot& slot = *member->slot;
    slot.releasing = slot.renewing = false;
    slot.own_belief = Instant();
    const bool asked = slot.depth != 0 || member->token().bytes() != member->before.bytes();
    slot.depth = 0;
    if (asked) note_set_left(*member);
  }
  end_set();
}

// ---- The end -----------------------------------------------------------------------------------------------------

// Releases what it has, and is over when that is done.
void AsioProgram::wind_down(Session& session) {
  if (is_in_use(session)) return step_after(session, 20 * millisecond);
  if (session.slot->depth != 0 && session.lock != nullptr) return release(session);
  // The other side is in use, and one object with it.
  if (session.slot->of_two_sides()) {
    Session& other = other_side(session);
    if (other.lock != nullptr && (other.doing != Doing::nothing || other.slot->depth != 0)) {
      return step_after(session, 20 * millisecond);
    }
    drop(session);
    other.over = true;
  } else {
    drop(session);
  }
  session.over = true;
  for (const auto& other : sessions_)
    if (!other->over) return;
  if (faults() || application_.locked_out_) return close_all();
  for (std::size_t index = 0; index < connections_.size(); ++index) come_back(index);
  connect_last();
}

// By the larger max_lease.
void AsioProgram::connect_last() {
  Session& session = *sessions_[0];
  if (process_.plan->quorum && process_.plan->quorum_anew != 0) {
    Connection& connection = connections_[0];
    if (connection.connecting || connection.closing) {
      session.pause->expires_after(std::chrono::milliseconds(20));
      return session.pause->async_wait([this](const std::error_code& error) {
        if (!error && !gone()) connect_last();
      });
    }
    application_.configure_quorum_anew();
    connect(0);
  }
  last_since_ = world_.now();
  last_imposed_ = process_.imposed;
  gathers_at_the_end() ? acquire_last_set() : acquire_last();
}

// As programs in threads do, where all name the servers alike.
bool AsioProgram::gathers_at_the_end() {
  Group& group = *group_;
  if (!process_.plan->wide_sets) return false;
  group.members.clear();
  group.handles.clear();
  for (const auto& session : sessions_) {
    if (session->slot->of_several() || session->slot->shares_hold() || !connection_of(*session).peer) continue;
    if (application_.plan_of_connection(session->connection).named) continue;
    if (!application_.outlasts_a_set(*session->slot, sessions_.size())) continue;
    const auto together =
        static_cast<std::size_t>(std::count_if(group.members.begin(), group.members.end(), [&](const Session* member) {
          return member->connection == session->connection;
        }));
    if (together >= connection_of(*session).kept) continue;
    make(*session);
    const bool named = std::any_of(group.members.begin(), group.members.end(),
                                   [&](const Session* member) { return member->slot->shares_name(*session->slot); });
    if (!named) group.members.push_back(session.get());
  }
  if (group.members.size() < 2) return false;
  for (std::size_t index = group.members.size(); index > 1; --index)
    std::swap(group.members[index - 1], group.members[random().index(index)]);
  bool well_made = true;
  for (Session* const member : group.members) {
    group.handles.push_back(member->lock);
    well_made = well_made && member->lock->configuration() == Status::ok;
  }
  group.set = std::make_unique<AsyncLockSet>(group.handles.data(), group.handles.size());
  const Status status = group.set->configuration();
  if (well_made) application_.judge_configuration(status);
  if (status != Status::ok) group.set.reset();
  last_set_ = status == Status::ok;
  return last_set_;
}

// All of them want their names, each in an order of its own.
void AsioProgram::acquire_last_set() {
  Group& group = *group_;
  for (Session* const member : group.members) {
    member->doing = Doing::in_set;
    member->before = member->token();
    member->slot->renewing = true;
  }
  begin(group, Doing::acquiring, "last acquire of a set");
  group.tries = false;
  group.wait = 2 * application_.longest_turn_of(group.members.size());
  ask_for(group, "acquire a set", &AsioProgram::last_set_acquired,
          [&](const Done<Group>& done) { group.set->async_acquire(Duration(group.wait), done); });
}

void AsioProgram::last_set_acquired(Group& group, Status status) {
  group.doing = Doing::nothing;
  world_.trace().add(world_.now(), "last acquire of a set", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  const SimTime most = application_.longest_turn_of(group.members.size());
  const SimTime took = world_.now() - last_since_ - (process_.imposed - last_imposed_);
  if (took > most || (status != Status::ok && took > most / 2))
    return world_.fail("liveness", std::string("free locks were not to be had as a set: ") + to_string(status) +
                                       " after " + time_text(took) + " s");
  note_set_taken(group, status);
  if (status == Status::ok) return release_set();
  group.pause->expires_after(std::chrono::milliseconds(20));
  group.pause->async_wait([this](const std::error_code& error) {
    if (!error && !gone()) acquire_last_set();
  });
}

// All of them want the same name.
void AsioProgram::acquire_last() {
  Session& session = *sessions_[0];
  if (!connection_of(session).peer) {
    connection_of(session).closed = true;
    come_back(0);
  }
  make(session);
  session.slot->queued = session.slot->queues();
  begin_of(session, Doing::acquiring, "last acquire");
  ask_for(session, "acquire", &AsioProgram::acquired_last, [&](const Done<Session>& done) {
    session.lock->async_acquire(Duration(2 * application_.longest_turn()), done);
  });
}

void AsioProgram::acquired_last(Session& session, Status status) {
  session.doing = Doing::nothing;
  const SimTime most = application_.longest_turn();
  world_.trace().add(world_.now(), "last acquire", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  world_.checkers().after_acquire(process_, *session.slot, status, last_since_, session.commands);
  const SimTime took = world_.now() - last_since_ - (process_.imposed - last_imposed_);
  if (took > most || (status != Status::ok && took > most / 2))
    return world_.fail("liveness", std::string("a free lock was not to be had: ") + to_string(status) + " after " +
                                       time_text(took) + " s");
  if (status == Status::ok) {
    application_.granted(*session.slot);
    return release(session, &AsioProgram::released_last);
  }
  session.pause->expires_after(std::chrono::milliseconds(20));
  session.pause->async_wait([this](const std::error_code& error) {
    if (!error && !gone()) acquire_last();
  });
}

void AsioProgram::released_last(Session& session, Status status) {
  Slot& slot = *session.slot;
  slot.releasing = false;
  if (slot.depth != 0) --slot.depth;
  finish(session, status, "release", bound_of_release(session));
  note_released(session, session.before, status, false);
  world_.checkers().note_quiet(process_);
  close_all();
}

void AsioProgram::close_all() {
  closing_ = true;
  for (std::size_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    connection.over = true;
    (void)connection.again->cancel();
    if (!connection.peer) continue;
    if (random().chance(200'000)) {
      connection.peer.close();
      continue;
    }
    const LoopHandlers::Giving giving(handlers_);
    connection.peer.async_close([this, index, started = application_.start(),
                                 links_changed_at = process_.links_changed_at,
                                 number = handlers_.give(index, "async_close")](std::error_code error) {
      if (gone()) return;
      handlers_.note_called(number);
      application_.check_bound("async_close", started, bound_of_close(index));
      closed(index, status_of(error), links_changed_at);
    });
  }
  hurry_->cancel();
}

// Where it says ok, all that was given up before is gone.
void AsioProgram::closed(std::size_t index, Status status, SimTime links_changed_at) {
  world_.trace().add(world_.now(), "closed()", process_.index, static_cast<std::uint64_t>(status), to_string(status));
  if (status != Status::ok) return;
  for (const auto& session : sessions_) {
    Slot& slot = *session->slot;
    if (slot.is_part() || slot.plan->connection != index || slot.depth != 0 || session->owes()) continue;
    if (slot.of_quorum)
      world_.checkers().after_quorum_close(process_, slot, links_changed_at);
    else
      world_.checkers().check_compensated(process_, slot, 0);
  }
}

}  // namespace holdfast::sim

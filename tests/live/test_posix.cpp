// SPDX-License-Identifier: MIT
//
// The blocking client and its system: every system call fails once in turn, writes and reads are short, signals
// interrupt, processes fork, and the heap is not touched. The system calls are replaced by the linker (--wrap), so the
// code under test is the code that ships.
#include "live_fixture.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "heap_trap.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;

// ---- The seam ----------------------------------------------------------------------------------------------------

namespace {

struct Seam {
  long calls = 0;                   // Wrapped calls so far.
  long fail_at = -1;                // The call that fails; -1: none.
  int error = 0;                    // With this errno.
  const char* fail_name = nullptr;  // Each call of this name fails.
  bool one_byte = false;            // Sends and receives move one byte.
  int fail_times = 0;               // Of fail_name, so many; 0: all.
  holdfast::Duration stall{};       // The process stands still behind the next receive that gets something.
  Client* cancelled = nullptr;      // Behind the next receive that gets something.
  const char* failed = "none";

  bool fails(const char* name) {
    const bool named = fail_name != nullptr && std::strcmp(name, fail_name) == 0;
    if (calls++ != fail_at && !named) return false;
    if (named && fail_times != 0 && --fail_times == 0) fail_name = nullptr;
    failed = name;
    errno = error;
    return true;
  }
};
thread_local Seam seam;

// The seam is as it was when the scope ends: the next server is started through it.
struct SeamScope {
  SeamScope() { seam = Seam(); }
  ~SeamScope() { seam = Seam(); }
};

}  // namespace

extern "C" {
int __real_socket(int, int, int);
int __real_connect(int, const sockaddr*, socklen_t);
int __real_getsockopt(int, int, int, void*, socklen_t*);
int __real_setsockopt(int, int, int, const void*, socklen_t);
ssize_t __real_send(int, const void*, size_t, int);
ssize_t __real_recv(int, void*, size_t, int);
int __real_ppoll(pollfd*, nfds_t, const timespec*, const sigset_t*);
int __real_pipe2(int*, int);
int __real_fcntl(int, int, long);
int __real_fcntl64(int, int, long);
void* __real_mmap(void*, size_t, int, int, int, off_t);
void* __real_mmap64(void*, size_t, int, int, int, off_t);
int __real_madvise(void*, size_t, int);
ssize_t __real_getrandom(void*, size_t, unsigned);
int __real_clock_gettime(clockid_t, timespec*);

int __wrap_socket(int domain, int type, int protocol) {
  return seam.fails("socket") ? -1 : __real_socket(domain, type, protocol);
}
int __wrap_connect(int descriptor, const sockaddr* address, socklen_t size) {
  return seam.fails("connect") ? -1 : __real_connect(descriptor, address, size);
}
int __wrap_getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) {
  return seam.fails("getsockopt") ? -1 : __real_getsockopt(descriptor, level, name, value, size);
}
int __wrap_setsockopt(int descriptor, int level, int name, const void* value, socklen_t size) {
  return seam.fails("setsockopt") ? -1 : __real_setsockopt(descriptor, level, name, value, size);
}
ssize_t __wrap_send(int descriptor, const void* bytes, size_t size, int flags) {
  if (seam.fails("send")) return -1;
  return __real_send(descriptor, bytes, seam.one_byte && size > 1 ? 1 : size, flags);
}
ssize_t __wrap_recv(int descriptor, void* bytes, size_t size, int flags) {
  if (seam.fails("recv")) return -1;
  const ssize_t count = __real_recv(descriptor, bytes, seam.one_byte && size > 1 ? 1 : size, flags);
  if (count > 0 && seam.cancelled != nullptr) std::exchange(seam.cancelled, nullptr)->cancel();
  if (count > 0 && seam.stall != holdfast::Duration::zero()) breathe(std::exchange(seam.stall, holdfast::Duration{}));
  return count;
}
int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return seam.fails("ppoll") ? -1 : __real_ppoll(entries, count, timeout, mask);
}
int __wrap_pipe2(int* ends, int flags) { return seam.fails("pipe2") ? -1 : __real_pipe2(ends, flags); }
int __wrap_fcntl(int descriptor, int command, long argument) {
  return seam.fails("fcntl") ? -1 : __real_fcntl(descriptor, command, argument);
}
// Where offsets have 64 bits by a macro, as Meson sets it, these are the names.
int __wrap_fcntl64(int descriptor, int command, long argument) {
  return seam.fails("fcntl") ? -1 : __real_fcntl64(descriptor, command, argument);
}
void* __wrap_mmap64(void* address, size_t size, int protection, int flags, int descriptor, off_t offset) {
  return seam.fails("mmap") ? MAP_FAILED : __real_mmap64(address, size, protection, flags, descriptor, offset);
}
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int descriptor, off_t offset) {
  return seam.fails("mmap") ? MAP_FAILED : __real_mmap(address, size, protection, flags, descriptor, offset);
}
int __wrap_madvise(void* address, size_t size, int advice) {
  return seam.fails("madvise") ? -1 : __real_madvise(address, size, advice);
}
ssize_t __wrap_getrandom(void* bytes, size_t size, unsigned flags) {
  return seam.fails("getrandom") ? -1 : __real_getrandom(bytes, size, flags);
}
int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  return seam.fails("clock_gettime") ? -1 : __real_clock_gettime(clock, time);
}
}

static void setUp() { seam = Seam(); }
static void tearDown() { seam = Seam(); }

namespace {

// The main job, whatever happens on the way. Returns true if all of it worked.
bool hold_once(Client& client, const ClientConfig& config, Instant latest = Instant::max()) {
  if (client.connect(config) != Status::ok) return false;
  Mutex lock(client, "k", {.lease = 20s});
  if (lock.try_acquire() != Status::ok) return false;
  const bool renewed = lock.renew() == Status::ok;
  TEST_ASSERT_TRUE(lock.valid_until() <= latest);  // Whatever the clock says.
  return lock.release() == Status::ok && renewed;
}

}  // namespace

// ---- Failing calls -----------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_every_system_call_may_fail_once) {
  const int errors[] = {EINTR, EAGAIN, ENOMEM, EPIPE, ECONNRESET, EINVAL, ENOBUFS, EMFILE};
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    const ClientConfig config = config_for(url);
    seam = Seam();
    {
      Client client;
      TEST_ASSERT_TRUE(hold_once(client, config));
    }
    const long calls = seam.calls;
    TEST_ASSERT_TRUE(calls > 12);
    for (const int error : errors) {
      for (long call = 0; call < calls; ++call) {
        {
          Client client;
          const Instant begin = Client::now();
          seam = Seam();
          seam.fail_at = call;
          seam.error = error;
          (void)hold_once(client, config, begin + 23s);
          const std::string failed = seam.failed;
          seam = Seam();
          TEST_MESSAGE("call " << call << " " << failed << " failed with " << error);
          TEST_ASSERT_TRUE(Client::now() - begin < 3s);
          // Afterwards the client works as if nothing had been, and nothing of the hold is left behind.
          Status status = client.connect(config);
          TEST_ASSERT_EQUAL(Status::ok, status);
          Mutex other(client, "other");
          TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
          TEST_ASSERT_EQUAL(Status::ok, other.release());
          TEST_ASSERT_EQUAL(0U, client.compensations_pending());
        }
        TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
      }
    }
  }
}

// No descriptor and no memory for a socket: others give them back.
TEST_ON_SERVER(test_wait_should_live_through_a_socket_that_is_not_to_be_had) {
  for (const int error : {ENOBUFS, ENOMEM, EMFILE, ENFILE}) {
    const SeamScope scope;
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    client.close();
    Mutex lock(client, "k");
    seam.error = error;
    seam.fail_name = "socket";
    seam.fail_times = 3;
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(10s));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    // And where it goes on, the time is waited, with pauses, and the reason told.
    client.close();
    const long before = seam.calls;
    seam.fail_name = "socket";
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL(Status::system_error, lock.acquire(200ms));
    TEST_ASSERT_TRUE(Client::now() - begin >= 190ms);
    TEST_ASSERT_EQUAL(error, client.system_error_number());
    TEST_ASSERT_TRUE(seam.calls - before < 60);
  }
}

// The reply to a script that the server does not know is read when its request's time is over: that is no reason to end
// the wait.
TEST_ON_SERVER(test_wait_should_live_through_a_stall_before_an_unknown_script_is_asked_with_its_text) {
  const SeamScope scope;
  Client client;
  ClientConfig config = hasty_config_for(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Owner owner(client);
  ReentrantLock lock(owner, "k");
  server.command("SCRIPT FLUSH");
  seam.stall = config.request_timeout;
  TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
  TEST_ASSERT_EQUAL(0U, client.compensations_pending());
  seam.stall = config.request_timeout;
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(10s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_short_reads_and_writes_should_be_completed) {
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    const SeamScope scope;
    seam.one_byte = true;
    ClientConfig config = config_for(url);
    config.request_timeout = 5s;
    config.connect_timeout = 5s;
    config.stall_timeout = 5s;
    Client client;
    TEST_ASSERT_TRUE(hold_once(client, config));
  }
}

// Signals without SA_RESTART, a thousand a second.
// It leaves in pieces, whatever the socket takes at a time; and what comes after it is not mistaken for a part of it.
TEST_ON_SERVER(test_longest_value_should_arrive_as_a_whole) {
  const SeamScope scope;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(server.unix_url()));
  const std::string resource(key_size_max, 'r');
  std::string value(fenced_value_size_max, 'v');
  std::uint64_t fence = 0;
  Mutex lock(client, "behind", {.lease = 20s});
  for (const bool one_byte : {false, true}) {
    for (const std::size_t size : {fenced_value_size_max, fenced_value_size_max - 1, transmit_size_max}) {
      value.resize(size, one_byte ? '1' : '0');
      seam.one_byte = one_byte;
      bool written = false;
      TEST_ASSERT_EQUAL(Status::ok, fenced_set(client, Key(ByteView(resource)), ++fence, value, written));
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
      seam.one_byte = false;
      TEST_ASSERT_TRUE(written);
      TEST_ASSERT_EQUAL(value, server.command({"GET", resource}));
    }
  }
}

// [rule 8] A part of a request that nobody finishes would swallow what comes behind it: the connection ends, and the client
// goes on.
TEST_ON_SERVER(test_value_that_the_socket_does_not_take_should_end_the_connection) {
  const struct {
    const char* name;
    int error;
  } rows[] = {{"send", EAGAIN}, {"send", EPIPE}, {"send", ENOBUFS}};
  for (const auto& row : rows) {
    const SeamScope scope;
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect({.socket_path = server.socket_path(), .request_timeout = 500ms}));
    Mutex held(client, "held", {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, held.try_acquire());
    seam.fail_name = row.name;
    seam.error = row.error;
    bool written = true;
    const std::string value(fenced_value_size_max, 'v');
    TEST_ASSERT_EQUAL(Status::transport_closed, fenced_set(client, Key("resource"), 1, value, written));
    seam = Seam();
    TEST_ASSERT_TRUE(written);
    TEST_ASSERT_FALSE(client.connected());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS resource"));
    TEST_ASSERT_EQUAL(Status::ok, fenced_set(client, Key("resource"), 1, value, written));
    TEST_ASSERT_EQUAL(value, server.command("GET resource"));
    TEST_ASSERT_EQUAL(Status::ok, held.release());
    server.command("DEL resource holdfast_fence:{resource}");
  }
}

// Their requests are longer than the send buffer together, also when the server has forgotten the scripts: no hold is in doubt
// for want of room.
TEST_ON_SERVER(test_many_holds_of_long_names_should_be_renewed_without_a_doubt) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(server.unix_url()));
  struct Hold {
    explicit Hold(Client& its, const std::string& name) : lock(its, name, {.lease = 3s}) {
      TEST_ASSERT_EQUAL(Status::ok,
                        lock.keep({.keep = Keep::always,
                                   .on_at_risk = [](void* hold) noexcept { static_cast<Hold*>(hold)->doubted = true; },
                                   .context = this}));
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    }
    Mutex lock;
    bool doubted = false;
  };
  std::deque<Hold> holds;
  for (std::size_t index = 0; index < in_flight_max; ++index)
    holds.emplace_back(client, std::to_string(index) + std::string(key_size_max - 2, 'k'));
  server.command("SCRIPT FLUSH");
  const Instant until = Client::now() + 2500ms;
  while (Client::now() < until) {
    const Instant next = client.tend();
    breathe(std::max(Duration::zero(), std::min(next, until) - Client::now()));
  }
  for (const Hold& hold : holds) {
    TEST_ASSERT_FALSE(hold.doubted);
    TEST_ASSERT_TRUE(hold.lock.remaining() > 1500ms);
  }
}

TEST_ON_SERVER(test_signals_should_interrupt_nothing) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ::sigaction(SIGALRM, &action, &before);
  const itimerval often = {{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  bool good = true;
  {
    Client client;
    for (int round = 0; round < 100 && good; ++round) good = hold_once(client, config_for(server.tcp_url()));
  }
  const itimerval never = {};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  TEST_ASSERT_TRUE(good);
}

TEST_ON_SERVER(test_a_cancel_from_a_signal_handler_should_end_a_wait_for_a_reply) {
  static Client* target = nullptr;
  Client client;
  target = &client;
  ClientConfig config = config_for(server.unix_url());
  config.request_timeout = 30s;
  config.stall_timeout = 30s;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 20s});
  server.pause();
  struct sigaction action {};
  action.sa_handler = [](int) { target->cancel(); };
  struct sigaction before {};
  ::sigaction(SIGALRM, &action, &before);
  const itimerval soon = {{0, 20000}, {0, 20000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  const Instant begin = Client::now();
  const Status status = lock.try_acquire();
  const itimerval never = {};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  server.resume();
  TEST_ASSERT_EQUAL(Status::cancelled, status);
  TEST_ASSERT_TRUE(Client::now() - begin < 5s);
  TEST_ASSERT_FALSE(lock.held());
  bool locked = true;
  Status asked = lock.is_locked(locked);
  if (asked == Status::cancelled) asked = lock.is_locked(locked);  // A second signal may have come in time.
  TEST_ASSERT_EQUAL(Status::ok, asked);
  TEST_ASSERT_FALSE(locked);  // What it may have acquired was taken back.
}

TEST_ON_SERVER(test_what_is_granted_when_a_cancel_comes_should_be_taken_back) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex lock(client, "k", {.lease = 20s});
  seam.cancelled = &client;
  TEST_ASSERT_EQUAL(Status::cancelled, lock.try_acquire());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());  // It has ended one call.
}

// ---- Heap --------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_nothing_should_allocate_after_connect_error_paths_included) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(hasty_config_for(proxy.url())));
  Client rival;
  TEST_ASSERT_EQUAL(Status::ok, rival.connect(config_for(server.tcp_url())));
  {
    HeapTrap proof;
    void* volatile block = std::malloc(1);  // Volatile: the pair may not be optimised away.
    std::free(block);
    TEST_ASSERT_TRUE(proof.count() > 0);
  }
  std::uint64_t allocations = 0;
  Status outcomes[12] = {};
  {
    HeapTrap trap;
    Mutex lock(client, "k", {.lease = 20s});
    Mutex other(rival, "k");
    outcomes[0] = lock.try_acquire();
    outcomes[1] = other.try_acquire();
    outcomes[2] = other.acquire(20ms);
    outcomes[3] = lock.renew();
    outcomes[4] = lock.release();
    {
      ScopedLock guard(lock, 1s);
      outcomes[5] = guard.status();
    }
    Mutex bad(client, "");
    outcomes[6] = bad.try_acquire();
    proxy.hold(true);
    outcomes[7] = lock.try_acquire();  // Times out, is compensated.
    proxy.hold(false);
    (void)lock.try_acquire();
    (void)lock.release();
    proxy.cut_after(3);
    outcomes[8] = lock.try_acquire();  // The connection ends in the middle of a reply.
    outcomes[9] = lock.try_acquire();  // Reconnects.
    outcomes[10] = lock.release();
    (void)to_string(outcomes[0]);
    (void)cause(outcomes[0]);
    allocations = trap.count();
  }
  TEST_ASSERT_EQUAL(Status::ok, outcomes[0]);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[1]);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[2]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[3]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[4]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[5]);
  TEST_ASSERT_EQUAL(Status::invalid_argument, outcomes[6]);
  TEST_ASSERT_EQUAL(Status::timed_out, outcomes[7]);
  TEST_ASSERT_EQUAL(Status::transport_closed, outcomes[8]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[9]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[10]);
  TEST_ASSERT_EQUAL(0U, allocations);
}

// ---- Fork --------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_forked_child_should_hold_nothing_and_touch_nothing_of_its_parent) {
  // With the page that the kernel wipes, and without (madvise refused).
  for (const bool wiped : {true, false}) {
    const SeamScope scope;
    if (!wiped) {
      seam.fail_name = "madvise";
      seam.error = EINVAL;
    }
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    if (!wiped) TEST_ASSERT_EQUAL(std::string("madvise"), seam.failed);
    seam = Seam();
    Mutex lock(client, "k", {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    int report[2];
    TEST_ASSERT_EQUAL(0, ::pipe(report));
    const pid_t child = ::fork();
    if (child == 0) {
      int wrong = 0;
      std::string token(32, '?');
      {
        if (lock.held() || lock.valid_until() != Instant() || lock.remaining() != 0ms) wrong |= 1;
        if (lock.release() != Status::forked) wrong |= 2;
        Mutex busy(client, "k");
        if (busy.try_acquire() != Status::lock_busy) wrong |= 4;
        Mutex own(client, "childs");
        if (own.try_acquire() != Status::ok || !own.held()) wrong |= 8;
        token = std::string(own.token().bytes().string_view());
        if (lock.held()) wrong |= 16;
        // Leaving the scope releases the child's hold and not the parent's.
      }
      (void)!::write(report[1], token.data(), token.size());
      ::_exit(wrong);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    char token[32];
    TEST_ASSERT_EQUAL(32, ::read(report[0], token, sizeof token));
    ::close(report[0]);
    ::close(report[1]);
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL(0, WEXITSTATUS(status));
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
    Mutex mine(client, "childs");
    TEST_ASSERT_EQUAL(Status::ok, mine.acquire(2s));
    TEST_ASSERT_FALSE(mine.token().bytes() == ByteView(token, sizeof token));  // No shared randomness.
    TEST_ASSERT_EQUAL(Status::ok, mine.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

// The owner field of the hash kinds begins with the client's id, which a child must not share: with the page that the
// kernel wipes, and without.
TEST_ON_SERVER(test_forked_child_should_have_a_client_id_of_its_own) {
  for (const bool wiped : {true, false}) {
    const SeamScope scope;
    if (!wiped) {
      seam.fail_name = "madvise";
      seam.error = EINVAL;
    }
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    if (!wiped) TEST_ASSERT_EQUAL(std::string("madvise"), seam.failed);
    seam = Seam();
    Owner owner(client);
    ReentrantLock lock(owner, "k", {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    const std::string ours(lock.token().bytes().string_view());
    const pid_t child = ::fork();
    if (child == 0) {
      ReentrantLock mine(owner, "mine", {.lease = 20s});
      const bool held = mine.try_acquire() == Status::ok;
      const std::string theirs(mine.token().bytes().string_view());
      ::_exit(held && theirs.size() >= 38 && theirs.substr(0, 36) != ours.substr(0, 36) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    TEST_ASSERT_EQUAL(0, status);
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    server.command("DEL mine");
  }
}

// A pool that the kernel has wiped is empty, not full of zeros.
TEST_ON_SERVER(test_forked_children_should_draw_tokens_of_their_own) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  std::string tokens[2];
  for (std::string& token : tokens) {
    int report[2];
    TEST_ASSERT_EQUAL(0, ::pipe(report));
    const pid_t child = ::fork();
    if (child == 0) {
      Mutex lock(client, "childs");
      const bool held = lock.try_acquire() == Status::ok;
      (void)!::write(report[1], lock.token().bytes().data(), held ? lock.token().bytes().size() : 0);
      (void)lock.release();
      ::_exit(0);
    }
    ::close(report[1]);
    char bytes[token_text_size];
    TEST_ASSERT_EQUAL(static_cast<ssize_t>(sizeof bytes), ::read(report[0], bytes, sizeof bytes));
    ::close(report[0]);
    ::waitpid(child, nullptr, 0);
    token.assign(bytes, sizeof bytes);
  }
  TEST_ASSERT_TRUE(tokens[0] != tokens[1]);
  TEST_ASSERT_TRUE(tokens[0] != std::string(token_text_size, '0'));
}

TEST_ON_SERVER(test_destructors_in_a_child_should_leave_the_parents_hold) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  alignas(Mutex) unsigned char memory[sizeof(Mutex)];
  Mutex* const lock = new (memory) Mutex(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  const pid_t child = ::fork();
  if (child == 0) {
    lock->~Mutex();
    client.~Client();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  TEST_ASSERT_TRUE(lock->held());
  TEST_ASSERT_EQUAL(lock->token().bytes(), ByteView(server.command("GET k")));
  TEST_ASSERT_EQUAL(Status::ok, lock->renew());
  lock->~Mutex();
}

// ---- Addresses and settings --------------------------------------------------------------------------------------

TEST_ON_SERVER(test_names_should_be_resolved_and_literals_not) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(ByteView("redis://localhost:" + std::to_string(server.port()))));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  // The server goes and comes back: the cached address is tried first.
  server.stop();
  TEST_ASSERT_FALSE(lock.renew() == Status::ok);
  server.start();
  Status status = Status::ok;
  for (const Instant end = Client::now() + 10s; Client::now() < end;) {
    status = lock.renew();
    if (status == Status::lock_lost) break;
  }
  TEST_ASSERT_EQUAL(Status::lock_lost, status);
}

TEST_ON_SERVER(test_ipv6_literals_should_connect, "--bind", "127.0.0.1", "-::1") {
  const int probe = __real_socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has_ipv6 = probe >= 0 && ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (probe >= 0) ::close(probe);
  if (!has_ipv6) {
    DOCTEST_MESSAGE("this machine has no IPv6 loopback address");
    return;
  }
  Client client;
  TEST_ASSERT_TRUE(hold_once(client, config_for("redis://[::1]:" + std::to_string(server.port()))));
}

TEST_ON_SERVER(test_spin_should_change_nothing_but_the_waiting) {
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    ClientConfig config = hasty_config_for(url);
    config.spin = 50us;
    Client client;
    for (int round = 0; round < 50; ++round) TEST_ASSERT_TRUE(hold_once(client, config));
    Mutex lock(client, "k", {.lease = 20s});
    server.pause();
    TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
    server.resume();
    Status status = Status::ok;
    for (const Instant end = Client::now() + 5s; Client::now() < end;) {
      status = lock.try_acquire();
      if (status == Status::ok) break;
    }
    TEST_ASSERT_EQUAL(Status::ok, status);
  }
}

TEST_ON_SERVER(test_server_that_went_while_idle_should_be_noticed_before_a_request_is_lost) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.tcp_url())));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  // The probe is for connections that were idle for more than a second; this is the one wait that has no event.
  __real_ppoll(nullptr, 0, std::array<timespec, 1>{timespec{1, 50'000'000}}.data(), nullptr);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
}

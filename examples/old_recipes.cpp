// SPDX-License-Identifier: MIT
//
// Four old recipes for a lock in Redis, how each of them fails, and the same schedule with holdfast:
//
//     old_recipes SOCKET-PATH
//
// The server should be one of your own: the key `old-recipes/lock` is deleted. The recipes are sent as any program sends
// them, over two connections. What each side believes stands in its lane: `#` it takes itself for the holder, `|` it does
// not, `x` it is dead.
//
// Exit code 0 if every recipe failed as told and holdfast did not; else 1. 64: usage.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "holdfast/holdfast.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/resp_parser.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr char lock_name[] = "old-recipes/lock";
constexpr int exit_usage = 64;

[[noreturn]] void give_up(const std::string& why) {
  std::printf("old_recipes cannot go on: %s\n", why.c_str());
  std::exit(1);
}

// ---- The picture -------------------------------------------------------------------------------------------------

enum class Side : std::uint8_t { a, b };
enum class Belief : char { waits = '|', holds = '#', dead = 'x' };

// Two lanes side by side. A row says what one side does, and shows what both believe after it.
class Lanes {
 public:
  explicit Lanes(const char* title) { std::printf("   %s\n     A%*sB\n", title, static_cast<int>(width) + 1, ""); }
  void row(Side side, const std::string& text, Belief belief) {
    beliefs_[static_cast<int>(side)] = belief;
    row(side, text);
  }
  void row(Side side, const std::string& text) const {
    std::string line = std::string("     ") + static_cast<char>(beliefs_[0]) + ' ' + (side == Side::a ? text : "");
    line.resize(std::max(line.size(), width + 7), ' ');
    line += static_cast<char>(beliefs_[1]);
    if (side == Side::b) line += ' ' + text;
    std::printf("%s\n", line.c_str());
  }

 private:
  static constexpr std::size_t width = 46;
  Belief beliefs_[2] = {Belief::waits, Belief::waits};
};

int surprises = 0;

// What a recipe shows, or what holdfast promises.
void expect(bool as_told, const char* what) {
  if (!as_told) ++surprises;
  std::printf("     => %s%s\n", as_told ? "" : "NOT SEEN: ", what);
}

// ---- A connection that says anything -----------------------------------------------------------------------------

class Connection {
 public:
  explicit Connection(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) give_up("the path of the socket is too long");
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      give_up("no server answers at " + path);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The reply to one command, as text.
  std::string ask(std::initializer_list<std::string_view> words) {
    Argument arguments[8];
    std::size_t count = 0;
    for (const std::string_view word : words) arguments[count++] = ByteView(word.data(), word.size());
    char request[512];
    std::size_t size = 0;
    if (encode_command(MutableBytes{request, sizeof request}, Arguments(arguments, count), size) != Status::ok ||
        ::send(socket_, request, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size))
      give_up("a request could not be sent");
    RespValue value;
    ParseResult result = ParseResult::need_more;
    while ((result = parser_.poll_value(value)) == ParseResult::need_more) {
      const MutableBytes space = parser_.receive_space();
      const ssize_t received = ::recv(socket_, space.data, space.size, 0);
      if (received <= 0) give_up("the server has closed the connection");
      parser_.handle_received(static_cast<std::size_t>(received));
    }
    if (result == ParseResult::invalid) give_up(parser_.error());
    switch (value.kind()) {
      case RespKind::integer: return std::to_string(value.integer());
      case RespKind::null:
      case RespKind::array: return "nil";
      case RespKind::simple:
      case RespKind::error:
      case RespKind::bulk: return std::string(value.text().string_view());
    }
    return {};
  }

 private:
  int socket_;
  char buffer_[512];
  RespValue nodes_[4];
  RespParser parser_{MutableBytes{buffer_, sizeof buffer_}, nodes_, 4};
};

// Waits until `seen` says so. The server's clock decides, not ours: a slow machine changes nothing of what is shown.
template <class Seen>
void await(Seen&& seen) {
  while (!seen()) ::usleep(2000);
}

// ---- The stage ---------------------------------------------------------------------------------------------------

// Both sides by hand and by holdfast, and a third connection that only looks.
class Stage {
 public:
  explicit Stage(const std::string& path) : path_(path), a_(path), b_(path), onlooker_(path) {
    for (Client* const client : {&client_a_, &client_b_})
      if (client->connect(url()) != Status::ok) give_up("holdfast does not connect to " + path);
  }

  [[nodiscard]] std::string url() const { return "unix://" + path_; }
  [[nodiscard]] Client& client(Side side) { return side == Side::a ? client_a_ : client_b_; }
  void clear() { (void)onlooker_.ask({"DEL", lock_name}); }
  [[nodiscard]] std::int64_t remaining_ms() { return std::atoll(onlooker_.ask({"PTTL", lock_name}).c_str()); }
  void await_end() {
    await([&] { return onlooker_.ask({"EXISTS", lock_name}) == "0"; });
  }

  // One command of one side, which believes `belief` after this reply. Returns the reply.
  std::string say(Lanes& lanes, Side side, std::initializer_list<std::string_view> words, Belief belief) {
    const std::string reply = (side == Side::a ? a_ : b_).ask(words);
    std::string text;
    for (const std::string_view word : words) {
      text += word == lock_name ? std::string_view("lock") : word;
      text += ' ';
    }
    lanes.row(side, text + "-> " + reply, belief);
    return reply;
  }

  // One call of holdfast. A side holds after ok of an acquisition, and at no other time.
  Status tell(Lanes& lanes, Side side, const char* call, Status status, Belief belief) {
    lanes.row(side, std::string(call) + " -> " + std::string(to_string(status)), belief);
    return status;
  }
  Status tell_acquire(Lanes& lanes, Side side, const char* call, Status status) {
    return tell(lanes, side, call, status, status == Status::ok ? Belief::holds : Belief::waits);
  }

 private:
  std::string path_;
  Connection a_;
  Connection b_;
  Connection onlooker_;
  Client client_a_;
  Client client_b_;
};

// ---- 1. SETNX, then EXPIRE ---------------------------------------------------------------------------------------

// Takes the lock in a process of its own, which is then killed.
Status acquire_and_die(const std::string& url, Duration lease) {
  std::fflush(stdout);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) give_up("there is no new process");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Client client;
    if (::getppid() != parent || client.connect(url) != Status::ok) ::_exit(2);
    Mutex lock(client, lock_name, {.lease = lease});
    if (lock.try_acquire() != Status::ok) ::_exit(2);
    ::raise(SIGKILL);
  }
  int ended = 0;
  while (::waitpid(child, &ended, 0) < 0) {}
  return WIFSIGNALED(ended) ? Status::ok : Status::system_error;
}

void show_setnx_expire(Stage& stage) {
  std::printf("\n1. SETNX, then EXPIRE. Two commands, and a crash between them.\n");
  {
    Lanes lanes("By the recipe:");
    stage.clear();
    (void)stage.say(lanes, Side::a, {"SETNX", lock_name, "A"}, Belief::holds);
    lanes.row(Side::a, "(dies before it says EXPIRE)", Belief::dead);
    const std::string got = stage.say(lanes, Side::b, {"SETNX", lock_name, "B"}, Belief::waits);
    const std::string left = stage.say(lanes, Side::b, {"PTTL", lock_name}, Belief::waits);
    expect(got == "0" && left == "-1", "the lock has no end: nobody ever gets it again.");
  }
  Lanes lanes("With holdfast, whose request sets the lock and its end together:");
  stage.clear();
  stage.tell_acquire(lanes, Side::a, "try_acquire", acquire_and_die(stage.url(), 500ms));
  lanes.row(Side::a, "(dies)", Belief::dead);
  Mutex lock(stage.client(Side::b), lock_name, {.lease = 30s});
  const Status status = stage.tell_acquire(lanes, Side::b, "acquire(30s)", lock.acquire(30s));
  expect(status == Status::ok && lock.release() == Status::ok, "B has it when the lease of A is over.");
}

// ---- 2. SETNX, GET, GETSET ---------------------------------------------------------------------------------------

void show_getset(Stage& stage) {
  std::printf("\n2. SETNX, GET, GETSET. The value says when the lock ends, and each side looks at its own clock.\n");
  {
    Lanes lanes("By the recipe, where the clock of B is 10 s ahead of that of A:");
    stage.clear();
    // A writes 1005, five seconds after its 1000. For B it is 1010.
    (void)stage.say(lanes, Side::a, {"SETNX", lock_name, "1005"}, Belief::holds);
    const std::string got = stage.say(lanes, Side::b, {"SETNX", lock_name, "1015"}, Belief::waits);
    const std::string end = stage.say(lanes, Side::b, {"GET", lock_name}, Belief::waits);
    lanes.row(Side::b, "(for B it is 1010: \"over\")");
    const std::string former = stage.say(lanes, Side::b, {"GETSET", lock_name, "1015"}, Belief::holds);
    expect(got == "0" && end == "1005" && former == "1005", "two holders, as long as the lease of A lasts.");
  }
  Lanes lanes("With holdfast, where the server alone judges the end of a lock:");
  stage.clear();
  Mutex first(stage.client(Side::a), lock_name, {.lease = 30s});
  Mutex second(stage.client(Side::b), lock_name, {.lease = 30s});
  stage.tell_acquire(lanes, Side::a, "try_acquire", first.try_acquire());
  const Status status = stage.tell_acquire(lanes, Side::b, "try_acquire", second.try_acquire());
  expect(first.held() && status == Status::lock_busy, "one holder; the clock of B is asked for nothing.");
  if (first.release() != Status::ok) ++surprises;
}

// ---- 3. DEL to release -------------------------------------------------------------------------------------------

void show_plain_del(Stage& stage) {
  std::printf("\n3. DEL to release. A was held up for longer than its lease, and deletes what is there.\n");
  {
    Lanes lanes("By the recipe:");
    stage.clear();
    (void)stage.say(lanes, Side::a, {"SET", lock_name, "A", "NX", "PX", "300"}, Belief::holds);
    lanes.row(Side::a, "(stands still; the lease ends)");
    stage.await_end();
    const std::string got = stage.say(lanes, Side::b, {"SET", lock_name, "B", "NX", "PX", "30000"}, Belief::holds);
    const std::string deleted = stage.say(lanes, Side::a, {"DEL", lock_name}, Belief::waits);
    const std::string again = stage.say(lanes, Side::a, {"SET", lock_name, "A", "NX", "PX", "30000"}, Belief::holds);
    expect(got == "OK" && deleted == "1" && again == "OK", "A has deleted the lock of B: two holders.");
  }
  Lanes lanes("With holdfast, whose release compares the token:");
  stage.clear();
  Mutex first(stage.client(Side::a), lock_name, {.lease = 300ms});
  Mutex second(stage.client(Side::b), lock_name, {.lease = 30s});
  stage.tell_acquire(lanes, Side::a, "try_acquire", first.try_acquire());
  lanes.row(Side::a, "(stands still; the lease ends)", Belief::waits);
  stage.await_end();
  stage.tell_acquire(lanes, Side::b, "try_acquire", second.try_acquire());
  const Status released = stage.tell(lanes, Side::a, "release", first.release(), Belief::waits);
  const Status again = stage.tell_acquire(lanes, Side::a, "try_acquire", first.try_acquire());
  expect(second.held() && released == Status::lock_lost && again == Status::lock_busy,
         "A is told that it lost its lock; that of B is untouched.");
  if (second.release() != Status::ok) ++surprises;
}

// ---- 4. INCR -----------------------------------------------------------------------------------------------------

void show_incr(Stage& stage) {
  std::printf("\n4. INCR, and EXPIRE by everybody. Who gets 1 has the lock; nobody forgets the end of it.\n");
  // B tries when a third of the lease has passed, so a machine that stands still now and then changes nothing.
  constexpr std::int64_t third_ms = 1000;
  {
    Lanes lanes("By the recipe:");
    stage.clear();
    (void)stage.say(lanes, Side::a, {"INCR", lock_name}, Belief::holds);
    (void)stage.say(lanes, Side::a, {"PEXPIRE", lock_name, "3000"}, Belief::holds);
    lanes.row(Side::a, "(dies)", Belief::dead);
    await([&] { return stage.remaining_ms() <= 2 * third_ms; });
    const std::string got = stage.say(lanes, Side::b, {"INCR", lock_name}, Belief::waits);
    (void)stage.say(lanes, Side::b, {"PEXPIRE", lock_name, "3000"}, Belief::waits);
    expect(got == "2" && stage.remaining_ms() > 2 * third_ms,
           "each try in vain prolongs the lock of the dead: who asks often never gets it.");
  }
  Lanes lanes("With holdfast, where a refusal changes nothing:");
  stage.clear();
  stage.tell_acquire(lanes, Side::a, "try_acquire", acquire_and_die(stage.url(), 3s));
  lanes.row(Side::a, "(dies)", Belief::dead);
  await([&] { return stage.remaining_ms() <= 2 * third_ms; });
  Mutex lock(stage.client(Side::b), lock_name, {.lease = 30s});
  const Status tried = stage.tell_acquire(lanes, Side::b, "try_acquire", lock.try_acquire());
  const bool kept = stage.remaining_ms() <= 2 * third_ms;
  const Status status = stage.tell_acquire(lanes, Side::b, "acquire(30s)", lock.acquire(30s));
  expect(tried == Status::lock_busy && kept && status == Status::ok && lock.release() == Status::ok,
         "B has it when the lease of A is over, however often it asked.");
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::printf("usage: old_recipes SOCKET-PATH\n");
    return exit_usage;
  }
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Stage stage(arguments[1]);
  std::printf("# takes itself for the holder    | does not    x is dead\n");
  show_setnx_expire(stage);
  show_getset(stage);
  show_plain_del(stage);
  show_incr(stage);
  stage.clear();
  return surprises == 0 ? 0 : 1;
}

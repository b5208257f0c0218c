// SPDX-License-Identifier: MIT
//
// The programs of examples/firmware, on an emulated board, with a real server: what the board says, and what the host sees.
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <optional>

#include "board.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr const char* prefix = "board";
constexpr const char* lease_milliseconds = "6000";
// Shorter than the longest sleep of a waiter, and than the lease of `holdfast run`: who is granted sooner was woken.
constexpr Duration woken_within = 5s;

std::string folder_of(const RedisServer& server) {
  const std::string path = server.socket_path();
  return path.substr(0, path.rfind('/'));
}

// A board that is connected.
class ReadyBoard : public Board {
 public:
  explicit ReadyBoard(const RedisServer& server, const char* lease = lease_milliseconds)
      : Board("firmware", folder_of(server), {std::to_string(server.port()), prefix, lease}) {
    await("connection: up");
  }
  // Its last words are for ./dev firmware.
  void stop() {
    type("report");
    std::puts(await("report: ").c_str());
    type("stop");
    TEST_ASSERT_EQUAL(0, wait());
  }
};

long time_left(const RedisServer& server, const std::string& key) {
  return std::strtol(server.command("PTTL " + key).c_str(), nullptr, 10);
}

// A time to live only shrinks, unless somebody renews.
bool is_renewed(const RedisServer& server, const std::string& key) {
  long before = time_left(server, key);
  return eventually([&] {
    const long now = time_left(server, key);
    const bool grown = before > 0 && now > before;
    before = now;
    return grown;
  });
}

std::uint64_t fence_in(const std::string& line) {
  const std::string mark = "fence ";
  const std::size_t at = line.find(mark);
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at + mark.size(), nullptr, 10);
}

// Somebody hears of the lock's release.
bool listens(const RedisServer& server, const std::string& key) {
  const std::string channel = "redisson_lock__channel:{" + key + "}";
  return server.command("PUBSUB NUMSUB " + channel) == channel + " 1";
}

// A command of `holdfast run` that ends when the test says so.
class Holder {
 public:
  Holder(const RedisServer& server, const std::string& key)
      : fifo_(folder_of(server) + "/go"), made_(::mkfifo(fifo_.c_str(), 0600)) {
    TEST_ASSERT_EQUAL(0, made_);
    running_.emplace(server.tcp_url(),
                     Words{"run", "--kind", "reentrant", key, "--", "sh", "-c", "echo in; read x <" + fifo_});
    TEST_ASSERT_EQUAL("in", running_->line());
  }
  void let_go() { std::ofstream(fifo_) << "go\n"; }
  int wait() { return running_->wait(); }

 private:
  std::string fifo_;
  int made_;
  std::optional<Running> running_;
};

// What comes behind "NAME " in a line of numbers with names.
std::uint64_t number_behind(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name + " ");
  TEST_ASSERT_TRUE(at != std::string::npos);
  return std::strtoull(line.c_str() + at + name.size() + 1, nullptr, 10);
}

}  // namespace

// ---- A Mutex -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_board_should_exclude_the_command_and_renew_until_it_releases) {
  ReadyBoard board(server);
  TEST_ASSERT_EQUAL("0", server.command("EXISTS board/mutex"));
  board.type("take mutex");
  board.await("mutex: granted");
  const std::string token = server.command("GET board/mutex");
  TEST_ASSERT_EQUAL(std::size_t{32}, token.size());
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(server.tcp_url(), {"run", "--no-wait", "board/mutex", "--", "true"}));
  TEST_ASSERT_TRUE(is_renewed(server, "board/mutex"));
  TEST_ASSERT_TRUE(is_renewed(server, "board/mutex"));
  TEST_ASSERT_EQUAL(token, server.command("GET board/mutex"));
  board.type("take mutex");
  board.await("mutex: not granted: already_held");
  board.type("release mutex");
  board.await("mutex: released: ok");
  TEST_ASSERT_EQUAL("0", server.command("EXISTS board/mutex"));
  TEST_ASSERT_EQUAL(0, run_to_end(server.tcp_url(), {"run", "--no-wait", "board/mutex", "--", "true"}));
  board.stop();
}

TEST_ON_SERVER(test_board_should_not_take_what_the_command_holds) {
  ReadyBoard board(server);
  TEST_ASSERT_EQUAL("OK", server.command("SET board/mutex another PX 60000"));
  board.type("take mutex");
  board.await("mutex: not granted: lock_busy");
  TEST_ASSERT_EQUAL("another", server.command("GET board/mutex"));
  board.stop();
}

TEST_ON_SERVER(test_program_with_one_mutex_should_hold_it_and_let_it_go) {
  Board board("mutex", folder_of(server), {std::to_string(server.port()), "board/alone", "4"});
  board.await("acquire: ok");
  TEST_ASSERT_TRUE(is_renewed(server, "board/alone"));
  board.await("release: ok");
  TEST_ASSERT_EQUAL(0, board.wait());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS board/alone"));
}

TEST_ON_SERVER(test_task_of_freertos_should_hold_a_mutex_on_the_board_and_let_it_go) {
  Board board("freertos_on_board", folder_of(server), {std::to_string(server.port()), "board/task"});
  board.await("granted");
  TEST_ASSERT_EQUAL("1", server.command("EXISTS board/task"));
  board.await("renewed");
  board.await("released: ok");
  TEST_ASSERT_EQUAL(0, board.wait());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS board/task"));
}

// ---- A FencedLock ------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_fence_should_grow_from_grant_to_grant_also_through_the_command) {
  ReadyBoard board(server);
  board.type("take fenced");
  const std::uint64_t first = fence_in(board.await("fenced: granted"));
  TEST_ASSERT_TRUE(first != 0);
  TEST_ASSERT_EQUAL(std::to_string(first), server.command("GET redisson_lock_token:{board/fenced}"));
  board.type("release fenced");
  board.await("fenced: released: ok");
  const std::string told = output_of(
      server.tcp_url(), {"run", "--kind", "fenced", "board/fenced", "--", "sh", "-c", "echo $HOLDFAST_FENCE"}, 0);
  const std::uint64_t second = std::strtoull(told.c_str(), nullptr, 10);
  TEST_ASSERT_TRUE(second > first);
  board.type("take fenced 5");
  TEST_ASSERT_TRUE(fence_in(board.await("fenced: granted")) > second);
  board.stop();
}

// ---- Push --------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_board_should_be_woken_when_the_command_lets_go) {
  ReadyBoard board(server);
  Holder holder(server, "board/shared");
  board.type("take mutex");  // What it holds is renewed while it waits.
  board.await("mutex: granted");
  board.type("take shared 60");
  TEST_ASSERT_TRUE(eventually([&] { return listens(server, "board/shared"); }));
  TEST_ASSERT_TRUE(is_renewed(server, "board/mutex"));
  const Instant begin = Client::now();
  holder.let_go();
  board.await("shared: granted");
  TEST_ASSERT_TRUE(Client::now() - begin < woken_within);
  TEST_ASSERT_EQUAL(0, holder.wait());
  TEST_ASSERT_EQUAL("1", server.command("HLEN board/shared"));
  board.stop();
}

// ---- What goes wrong ---------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_hold_should_outlive_a_cable_that_is_pulled_for_less_than_its_lease) {
  ReadyBoard board(server, "10000");
  board.type("take mutex");
  board.await("mutex: granted");
  const std::string token = server.command("GET board/mutex");
  board.set_cable(false);
  board.await("cable: out");
  board.await("mutex: at risk");
  board.set_cable(true);
  board.await("cable: in");
  board.await("mutex: renewed");
  TEST_ASSERT_EQUAL(token, server.command("GET board/mutex"));
  TEST_ASSERT_TRUE(is_renewed(server, "board/mutex"));
  board.type("release mutex");
  board.await("mutex: released: ok");
  board.stop();
}

TEST_ON_SERVER(test_loss_should_be_told_while_the_cable_is_out_and_the_board_should_come_back) {
  ReadyBoard board(server, "3000");
  board.type("take mutex");
  board.await("mutex: granted");
  board.set_cable(false);
  board.await("mutex: lost");
  board.set_cable(true);
  board.await("connection: up");
  board.type("take mutex 20");
  board.await("mutex: granted");
  board.stop();
}

TEST_ON_SERVER(test_waiter_should_be_woken_also_when_its_cable_was_pulled_meanwhile) {
  ReadyBoard board(server);
  Holder holder(server, "board/shared");
  board.type("take shared 60");
  TEST_ASSERT_TRUE(eventually([&] { return listens(server, "board/shared"); }));
  board.set_cable(false);
  board.await("cable: out");
  // The server gives the subscription up, and the board cannot hear of that.
  TEST_ASSERT_EQUAL("1", server.command("CLIENT KILL TYPE pubsub"));
  board.set_cable(true);
  board.await("cable: in");
  TEST_ASSERT_TRUE(eventually([&] { return listens(server, "board/shared"); }));
  const Instant begin = Client::now();
  holder.let_go();
  board.await("shared: granted");
  TEST_ASSERT_TRUE(Client::now() - begin < woken_within);
  TEST_ASSERT_EQUAL(0, holder.wait());
  board.stop();
}

TEST_ON_SERVER(test_loss_should_be_told_while_the_server_is_silent) {
  ReadyBoard board(server, "3000");
  board.type("take mutex");
  board.await("mutex: granted");
  const std::string token = server.command("GET board/mutex");
  server.pause();
  board.await("mutex: at risk");
  board.await("mutex: lost");
  board.type("release mutex");
  board.await("mutex: released: lock_lost");
  server.resume();
  board.type("take mutex 20");
  board.await("mutex: granted");
  TEST_ASSERT_TRUE(server.command("GET board/mutex") != token);
  board.stop();
}

TEST_ON_SERVER(test_board_should_come_back_to_a_server_that_was_started_again) {
  ReadyBoard board(server);
  board.type("take mutex");
  board.await("mutex: granted");
  server.stop();
  board.await("connection: lost: transport_closed");
  server.start();
  // Its memory is empty: the renewal finds nothing of ours.
  board.await("mutex: lost");
  board.type("take mutex 20");
  board.await("mutex: granted");
  board.stop();
}

// ---- The program itself ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_memory_should_stay_within_what_is_promised) {
  ReadyBoard board(server);
  for (const char* name : {"mutex", "second", "fenced", "shared"}) {
    board.type(std::string("take ") + name);
    board.await(std::string(name) + ": granted");
  }
  for (const char* key : {"board/mutex", "board/second", "board/fenced", "board/shared"})
    TEST_ASSERT_TRUE(is_renewed(server, key));
  board.type("report");
  const std::string report = board.await("report: ");
  TEST_ASSERT_TRUE(number_behind(report, "stack") <= 4096);
  TEST_ASSERT_TRUE(number_behind(report, "node and locks") <= 6 * 1024);
  board.stop();
}

TEST_ON_SERVER(test_what_is_typed_wrongly_should_be_told_and_change_nothing) {
  ReadyBoard board(server);
  board.type("take everything");
  board.await("console: take or release one of mutex, second, fenced, shared");
  board.type("take mutex 4294967297");
  board.await("seconds are a number up to 3600");
  board.type("nonsense");
  board.await("console: no such command: nonsense");
  board.type("take mutex" + std::string(200, ' '));
  board.await("console: that line is too long");
  board.type("release mutex");
  board.await("mutex: released: not_held");
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  board.stop();
}

TEST_ON_SERVER(test_start_should_refuse_words_that_do_not_fit) {
  const std::string port = std::to_string(server.port());
  const std::string folder = folder_of(server);
  int run = 0;
  for (const Words& words :
       {Words{"0", "board"}, Words{"65536", "board"}, Words{port}, Words{port, std::string(42, 'k')},
        Words{port, "board", "4"}, Words{port, "board", "86400001"}}) {
    const std::string own = folder + "/" + std::to_string(run++);
    TEST_ASSERT_EQUAL(0, ::mkdir(own.c_str(), 0700));
    Board board("firmware", own, words);
    board.await("start: usage: ");
    TEST_ASSERT_EQUAL(exit_usage, board.wait());
  }
}

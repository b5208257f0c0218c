// SPDX-License-Identifier: MIT
//
// holdfast watch: what it says while locks of a real server change hands, what it asks of the server, and what it does on a
// terminal.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "answering_server.hpp"
#include "command_fixture.hpp"
#include "terminal_session.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

const std::string token = "0123456789abcdef0123456789abcdef";
const std::string other_token = "fedcba9876543210fedcba9876543210";
const std::string uuid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

// What its line says of an event, up to the next one: the rest of it.
bool tells(Running& watch, const std::string& event) {
  for (int lines = 0; lines < 1000; ++lines) {
    const std::string line = watch.line();
    TEST_MESSAGE(line);
    if (contains(line, event)) return true;
    if (contains(line, "(no line)")) return false;
  }
  return false;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void make_locks(RedisServer& server, int count) {
  server.command({"EVAL",
                  "for index = 1, ARGV[1] do redis.call('SET', 'lock/' .. index, string.format('%032x', index), 'PX', "
                  "3600000) end",
                  "0", std::to_string(count)});
}

constexpr char alternate_screen[] = "\x1b[?1049h";
constexpr char usual_screen[] = "\x1b[?1049l";
const Start on_xterm = {.environment = {{"TERM", "xterm"}}};

}  // namespace

// ---- What it tells ---------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_named_lock_should_be_followed_from_hand_to_hand) {
  Running watch(server.unix_url(), {"watch", "lock"});
  TEST_ASSERT_TRUE(tells(watch, " free lock"));
  server.command("SET lock " + token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " acquired lock: mutex 01234567.., "));
  server.command("SET lock " + other_token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " handed-over lock: mutex fedcba98.. after 01234567.., "));
  server.command("PEXPIRE lock 1000");
  TEST_ASSERT_TRUE(tells(watch, " cut-short lock: mutex fedcba98.."));
  TEST_ASSERT_TRUE(tells(watch, " ran-out lock: mutex fedcba98.."));
  server.command("SET lock " + token);
  TEST_ASSERT_TRUE(tells(watch, " acquired lock: mutex 01234567.., no TTL"));
  TEST_ASSERT_TRUE(tells(watch, " no-expiry lock"));
  server.command("DEL lock");
  TEST_ASSERT_TRUE(tells(watch, " released lock"));
  server.command("LPUSH lock x");
  TEST_ASSERT_TRUE(tells(watch, " no-lock lock"));
  watch.signal(SIGTERM);
  TEST_ASSERT_EQUAL(0, watch.wait());
}

TEST_ON_SERVER(test_a_real_hold_should_be_seen_with_its_renewals) {
  Running watch(server.unix_url(), {"watch", "--json"});
  TEST_ASSERT_EQUAL(0,
                    run_to_end(server.unix_url(), {"run", "-l", "0.6", "--kind", "fenced", "job", "--", "sleep", "1"}));
  TEST_ASSERT_TRUE(tells(watch, R"("lock": "job", "kind": "reentrant", "holder": ")"));
  std::string line;
  TEST_ASSERT_TRUE(eventually([&] { return contains(line = watch.line(), "\"event\": \"released\""); }));
  TEST_ASSERT_TRUE(std::strtol(line.c_str() + line.find("\"renewals\": ") + 12, nullptr, 10) >= 2);
  watch.signal(SIGINT);
  TEST_ASSERT_EQUAL(0, watch.wait());
}

TEST_ON_SERVER(test_what_looks_like_a_lock_should_be_found_and_nothing_else) {
  server.command("SET mutex " + token + " PX 30000");
  server.command("SET endless " + token);
  server.command("HSET reentrant " + uuid + ":1 1");
  server.command("HSET read mode read " + uuid + ":1 1 " + uuid + ":2 1");
  server.command("HSET write mode write " + uuid + ":1:write 1");
  for (const char* const hash : {"reentrant", "read", "write"})
    server.command(std::string("PEXPIRE ") + hash + " 30000");
  server.command("SET permits 2");
  server.command("ZADD {permits}:timeout " + std::to_string(std::time(nullptr) + 60) + "000 " + token);
  // None of these.
  server.command("SET text hello PX 30000");
  server.command("SET number 42 PX 30000");
  server.command("SET counter 42");
  server.command("SET redisson_lock_token:{a} 42");
  server.command("SET long " + std::string(1000, 'a') + " PX 30000");
  server.command("HSET user name bob mode dark");
  server.command("HSET person name bob");
  server.command("LPUSH list x");
  server.command("ZADD other:timeout 1 x");
  server.command("SET " + std::string(300, 'k') + " " + token + " PX 30000");
  const std::string text = output_of(server.unix_url(), {"watch", "--for", "0.5"}, 0);
  for (const char* const part :
       {" found mutex: mutex 01234567.., ", " found endless: mutex 01234567.., no TTL",
        " no-expiry endless: ", " found reentrant: reentrant 1b4e28ba..:1, ", " found read: read 1b4e28ba..:2, ",
        " found write: write 1b4e28ba..:1, ", " found permits: semaphore 01234567.., "})
    TEST_ASSERT_TRUE(contains(text, part));
  TEST_ASSERT_EQUAL(8, std::count(text.begin(), text.end(), '\n'));  // Of the readers, two.

  // Where a pattern says so, any string is one.
  const std::string by_pattern = output_of(server.unix_url(), {"watch", "--for", "0.5", "--pattern", "t[e]*"}, 0);
  TEST_ASSERT_TRUE(contains(by_pattern, " found text: mutex hello, "));
  TEST_ASSERT_EQUAL(1, std::count(by_pattern.begin(), by_pattern.end(), '\n'));
}

TEST_ON_SERVER(test_waiters_of_a_fair_lock_should_be_told) {
  Running watch(server.unix_url(), {"watch", "job"});
  TEST_ASSERT_TRUE(tells(watch, " free job"));
  const std::string fifo = server.socket_path() + ".go";
  TEST_ASSERT_EQUAL(0, ::mkfifo(fifo.c_str(), 0600));
  Running first(server.unix_url(), {"run", "--kind", "fair", "job", "--", "sh", "-c", "echo held; : <" + fifo});
  TEST_ASSERT_EQUAL(std::string("held"), first.line());
  Running second(server.unix_url(), {"run", "--kind", "fair", "job", "--", "sh", "-c", ": <" + fifo});
  TEST_ASSERT_TRUE(tells(watch, " waiting job: 1 in the queue, first "));
  ::close(::open(fifo.c_str(), O_WRONLY));
  TEST_ASSERT_TRUE(tells(watch, " handed-over job: "));
  ::close(::open(fifo.c_str(), O_WRONLY));
  TEST_ASSERT_EQUAL(0, first.wait());
  TEST_ASSERT_EQUAL(0, second.wait());
}

TEST_ON_SERVER(test_a_second_holder_should_be_told_as_stolen) {
  server.command("HSET lock " + uuid + ":1 1");
  server.command("PEXPIRE lock 30000");
  Running watch(server.unix_url(), {"watch", "lock"});
  TEST_ASSERT_TRUE(tells(watch, " found lock"));
  server.command("HSET lock " + uuid + ":2 1");
  TEST_ASSERT_TRUE(tells(watch, " stolen lock: reentrant 1b4e28ba..:2 beside 1b4e28ba..:1"));
}

// ---- What the server says by itself ----------------------------------------------------------------------------------

TEST_ON_SERVER(test_events_that_are_on_should_tell_a_lock_that_was_written_over) {
  server.command("CONFIG SET notify-keyspace-events KA");
  Running watch(server.unix_url(), {"watch", "lock"});
  TEST_ASSERT_TRUE(tells(watch, " free lock"));
  const auto subscribed = [&] { return contains(server.command("PUBSUB CHANNELS"), "__keyspace@0__:lock"); };
  TEST_ASSERT_TRUE(eventually(subscribed));
  server.command("SET lock " + token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " acquired lock"));
  server.command("SET lock " + other_token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " stolen lock: mutex fedcba98.. wrote over 01234567.."));
  server.command(
      {"EVAL", "redis.call('DEL', 'lock') return redis.call('SET', 'lock', ARGV[1], 'PX', 30000)", "0", token});
  TEST_ASSERT_TRUE(tells(watch, " handed-over lock: mutex 01234567.. after fedcba98.."));
  // And again after another connection.
  server.stop();
  TEST_ASSERT_TRUE(tells(watch, " silent: "));
  server.start();
  server.command("CONFIG SET notify-keyspace-events KA");
  TEST_ASSERT_TRUE(tells(watch, " answers after "));
  server.command("SET lock " + token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " acquired lock"));
  TEST_ASSERT_TRUE(eventually(subscribed));
  server.command("SET lock " + other_token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " stolen lock"));
}

TEST_ON_SERVER(test_events_that_are_off_should_stay_off_and_not_be_missed) {
  Running watch(server.unix_url(), {"watch", "lock"});
  TEST_ASSERT_TRUE(tells(watch, " free lock"));
  server.command("SET lock " + token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " acquired lock"));
  server.command("SET lock " + other_token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " handed-over lock"));
  TEST_ASSERT_EQUAL(std::string("notify-keyspace-events "), server.command("CONFIG GET notify-keyspace-events"));
}

TEST_ON_SERVER(test_a_user_who_may_not_subscribe_should_be_left_with_looks) {
  server.command("CONFIG SET notify-keyspace-events KA");
  server.command("ACL SETUSER bob on >x ~* resetchannels +@all");
  server.command("CONFIG RESETSTAT");
  Running watch("redis://bob:x@127.0.0.1:" + std::to_string(server.port()), {"watch", "lock", "--for", "2"});
  TEST_ASSERT_TRUE(tells(watch, " free lock"));
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO errorstats"), "NOPERM"); }));
  for (const char* const holder : {"a", "b", "c"}) {
    server.command(std::string("SET lock ") + holder + " PX 30000");
    TEST_ASSERT_TRUE(tells(watch, std::string(" mutex ") + holder));
  }
  TEST_ASSERT_EQUAL(0, watch.wait());
  TEST_ASSERT_TRUE(contains(server.command("INFO errorstats"), "errorstat_NOPERM:count=1\r"));  // It was asked once.
}

// ---- Hostile keys ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_names_and_holders_of_any_bytes_should_steer_nothing) {
  const std::string name = "a\n\x1b[2J\r</text><script>\"'&\\";
  server.command({"SET", name, std::string("x\n\x1b]0;y\x07\xff", 9), "PX", "30000"});
  server.command({"HSET", "b\nc", uuid + ":1", "1"});
  server.command("SET lock " + token + " PX 30000");
  const std::string svg = server.socket_path() + ".svg";
  for (const bool json : {false, true}) {
    Words words = {"watch", "--for", "0.5", "--pattern", "*", "--svg", svg};
    if (json) words.emplace_back("--json");
    const std::string text = output_of(server.unix_url(), words, 0);
    TEST_ASSERT_EQUAL(4, std::count(text.begin(), text.end(), '\n'));
    for (const std::string& each : {text, content(svg)}) {
      TEST_ASSERT_TRUE(std::all_of(each.begin(), each.end(),
                                   [](char byte) { return byte == '\n' || (byte >= ' ' && byte <= '~'); }));
      TEST_ASSERT_TRUE(contains(each, json ? "x0a" : "\\x0a"));
    }
    TEST_ASSERT_FALSE(contains(content(svg), "<script"));
    TEST_ASSERT_TRUE(contains(content(svg), "&lt;script&gt;"));
  }
}

// Keys that go, and change their type, from one moment to the next: it neither fails nor stops.
TEST_ON_SERVER(test_keys_that_vanish_and_change_should_end_nothing) {
  make_locks(server, 300);
  Running watch(server.unix_url(), {"watch", "--pattern", "lock/*"});
  TEST_ASSERT_TRUE(tells(watch, " found lock/"));
  for (int turn = 0; turn < 40; ++turn) {
    server.command("FLUSHALL");
    server.command(
        {"EVAL",
         "for index = 1, 300 do local name = 'lock/' .. index local kind = (index + ARGV[1]) % 5 "
         "if kind == 0 then redis.call('SET', name, string.format('%032x', index), 'PX', 1 + index % 7) "
         "elseif kind == 1 then redis.call('LPUSH', name, 'x') "
         "elseif kind == 2 then redis.call('HSET', name, 'mode', 'read') "
         "elseif kind == 3 then redis.call('ZADD', name, 1, 'x') redis.call('SET', 'holdfast_queue:{' .. name "
         ".. '}', 'x') else redis.call('SET', name, '7') redis.call('SET', '{' .. name .. '}:timeout', 'x') "
         "end end",
         "0", std::to_string(turn)});
  }
  server.command("FLUSHALL");
  server.command("SET lock/last " + token + " PX 30000");
  TEST_ASSERT_TRUE(eventually([&] { return contains(watch.line(), " lock/last: "); }));
  watch.signal(SIGINT);
  TEST_ASSERT_EQUAL(0, watch.wait());
}

TEST_ON_SERVER(test_a_lock_that_becomes_something_else_should_be_gone) {
  server.command("SET lock " + token + " PX 30000");
  Running watch(server.unix_url(), {"watch"});
  TEST_ASSERT_TRUE(tells(watch, " found lock"));
  server.command("SET lock text PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " released lock"));
}

// ---- What it asks ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_it_should_change_nothing_and_stay_within_its_rate) {
  make_locks(server, 10'000);
  const std::string before = server.command("INFO persistence");
  const auto changes = [](const std::string& info) {
    const std::size_t at = info.find("rdb_changes_since_last_save:");
    return info.substr(at, info.find('\r', at) - at);
  };
  server.command("CONFIG RESETSTAT");
  const Instant begin = Client::now();
  const std::string text = output_of(server.unix_url(), {"watch", "--for", "2"}, 0);
  const double seconds = std::chrono::duration<double>(Client::now() - begin).count();
  const auto lines = static_cast<long>(std::count(text.begin(), text.end(), '\n'));
  TEST_MESSAGE("lines: " << lines << ", keys: " << server.calls("type"));
  TEST_ASSERT_TRUE(lines > 100);
  // 500 keys per second, a round of 200 at once, and what SCAN adds to a step.
  TEST_ASSERT_TRUE(static_cast<double>(server.calls("type")) <= 1.2 * (500 * seconds + 200));
  for (const char* const command : {"set", "hset", "del", "pexpire", "config|set", "publish", "subscribe", "psubscribe",
                                    "monitor", "keys", "hgetall"})
    TEST_ASSERT_EQUAL(0, server.calls(command));
  TEST_ASSERT_EQUAL(changes(before), changes(server.command("INFO persistence")));
  TEST_ASSERT_EQUAL(std::string("notify-keyspace-events "), server.command("CONFIG GET notify-keyspace-events"));
}

TEST_ON_SERVER(test_a_user_without_the_rights_should_be_told_so) {
  server.command("ACL SETUSER bob on >x ~* &* +@all -scan");
  server.command("ACL SETUSER amy on >x ~mine* &* +@all");
  server.command("SET mine " + token + " PX 30000");
  server.command("SET yours " + token + " PX 30000");
  const std::string host = "@127.0.0.1:" + std::to_string(server.port());
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_permission, run_to_end("redis://bob:x" + host, {"watch", "--for", "5"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "cannot look at locks: "));
  const Outcome outcome = outcome_of("redis://amy:x" + host, {"watch", "--for", "0.5"});
  TEST_ASSERT_EQUAL(0, outcome.code);
  TEST_ASSERT_TRUE(contains(outcome.text, " found mine: "));
  TEST_ASSERT_FALSE(contains(outcome.text, "yours"));
  TEST_ASSERT_TRUE(contains(outcome.text, "holdfast: 1 keys are refused to this user"));
}

// As proto/interop.md grants them, and what all connections ask: nothing is refused.
TEST_ON_SERVER(test_a_user_with_the_rights_of_a_watcher_alone_should_see_every_kind) {
  server.command(
      "ACL SETUSER bob on >x ~* resetchannels -@all +eval +scan +type +pttl +getrange +strlen +hlen +hget +hkeys "
      "+zcard "
      "+zcount +zrangebyscore +time +zrange +info +client|id +client|setname");
  server.command("SET mutex " + token + " PX 30000");
  server.command("HSET reentrant " + uuid + ":1 1");
  server.command("PEXPIRE reentrant 30000");
  server.command("ZADD holdfast_queue:{reentrant} 1 " + uuid + ":2");
  server.command("HSET read mode read " + uuid + ":1 1");
  server.command("PEXPIRE read 30000");
  server.command("SET permits 2");
  server.command("ZADD {permits}:timeout " + std::to_string(std::time(nullptr) + 60) + "000 " + token);
  server.command("CONFIG RESETSTAT");
  const std::string text =
      output_of("redis://bob:x@127.0.0.1:" + std::to_string(server.port()), {"watch", "--for", "0.5"}, 0);
  for (const char* const part :
       {" found mutex: ", " found reentrant: ", " waiting reentrant: 1 in the queue, first 1b4e28ba..:2",
        " found read: ", " found permits: "})
    TEST_ASSERT_TRUE(contains(text, part));
  TEST_ASSERT_FALSE(contains(server.command("INFO errorstats"), "NOPERM"));
}

// ---- A server that goes --------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_server_that_stops_should_be_told_and_waited_for) {
  server.command("SET lock " + token + " PX 600000");
  Running watch(server.unix_url(), {"watch", "lock"});
  TEST_ASSERT_TRUE(tells(watch, " found lock"));
  server.pause();
  TEST_ASSERT_TRUE(tells(watch, " silent: " + server.socket_path() + ": No reply came in time."));
  server.resume();
  TEST_ASSERT_TRUE(tells(watch, " answers after "));
  server.stop();
  TEST_ASSERT_TRUE(tells(watch, " silent: "));
  server.start();
  TEST_ASSERT_TRUE(tells(watch, " answers after "));
  TEST_ASSERT_TRUE(tells(watch, " released lock"));  // It had forgotten the lock.
  watch.signal(SIGINT);
  TEST_ASSERT_EQUAL(0, watch.wait());
}

TEST_ON_SERVER(test_a_signal_should_end_it_while_the_server_is_silent) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string svg = server.socket_path() + ".svg";
    ::unlink(svg.c_str());
    Running watch(server.unix_url(), {"watch", "lock", "--svg", svg});
    TEST_ASSERT_TRUE(tells(watch, " free lock"));
    server.pause();
    TEST_ASSERT_TRUE(tells(watch, " silent: "));
    watch.signal(number);
    TEST_ASSERT_EQUAL(0, watch.wait());
    server.resume();
    TEST_ASSERT_TRUE(contains(content(svg), "class=\"silence\""));
  }
}

TEST_ON_SERVER(test_no_server_at_the_start_should_be_an_error) {
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(server.unix_url() + ".none", {"watch"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "no connection to "));
}

TEST_ON_SERVER(test_a_peer_that_answers_nonsense_should_end_it_with_a_text) {
  const std::string record = "*8\r\n$1\r\na\r\n$6\r\nstring\r\n:1\r\n:1\r\n$1\r\nx\r\n:0\r\n:0\r\n:";
  for (const std::string& reply :
       {std::string("+OK\r\n"), std::string(":1\r\n"), std::string("*0\r\n"), std::string("$-1\r\n"),
        std::string("*3\r\n$30\r\n123456789012345678901234567890\r\n:0\r\n:0\r\n"),
        std::string("*3\r\n$1\r\n0\r\n:-1\r\n:0\r\n"), std::string("*4\r\n$1\r\n0\r\n:0\r\n:0\r\n*0\r\n"),
        "*4\r\n$1\r\n0\r\n:0\r\n:0\r\n" + record + "1\r\n", "*4\r\n$1\r\n0\r\n:0\r\n:0\r\n" + record + "-1\r\n",
        "*4\r\n$1\r\n0\r\n:0\r\n:0\r\n" + record + "9223372036854775807\r\n"}) {
    TEST_MESSAGE(reply);
    AnsweringServer hostile(server.socket_path() + ".hostile", [&](const Words& words) -> std::string {
      return words[0] == "EVAL" && contains(words[1], "told_max") ? reply : "-ERR \x1b[2J\r\n";
    });
    const Outcome outcome = outcome_of(hostile.url(), {"watch", "--for", "10"});
    TEST_MESSAGE(outcome.text);
    TEST_ASSERT_EQUAL(76, outcome.code);
    TEST_ASSERT_TRUE(contains(outcome.text, "cannot look at locks: "));
    TEST_ASSERT_FALSE(contains(outcome.text, "\x1b"));
  }
}

// As a connection that breaks: the next one may lead to a server.
TEST_ON_SERVER(test_a_peer_that_does_not_speak_the_protocol_should_be_asked_again) {
  AnsweringServer hostile(server.socket_path() + ".hostile", [&](const Words& words) -> std::string {
    return words[0] == "EVAL" && contains(words[1], "told_max") ? "\x1b[2J\r\n" : "-ERR no\r\n";
  });
  const std::string text = output_of(hostile.url(), {"watch", "--for", "1"}, 0);
  TEST_ASSERT_TRUE(contains(text, " silent: "));
  TEST_ASSERT_FALSE(contains(text, "\x1b"));
}

// ---- The drawing -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_drawing_should_have_a_lane_per_holder_and_its_marks) {
  const std::string svg = server.socket_path() + ".svg";
  Running watch(server.unix_url(), {"watch", "lock", "--svg", svg});
  TEST_ASSERT_TRUE(tells(watch, " free lock"));
  server.command("SET lock " + token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, " acquired lock"));
  server.command("SET lock " + other_token + " PX 1000");
  TEST_ASSERT_TRUE(tells(watch, " ran-out lock"));
  TEST_ASSERT_EQUAL(std::string(), content(svg));  // Not before the end.
  watch.signal(SIGTERM);
  TEST_ASSERT_EQUAL(0, watch.wait());
  const std::string text = content(svg);
  for (const char* const part :
       {"<svg ", "</svg>", ">01234567..<", ">fedcba98..<", ": handed over, ", "lost: its lease ran out"})
    TEST_ASSERT_TRUE(contains(text, part));
}

TEST_ON_SERVER(test_a_drawing_that_cannot_be_written_should_be_said_at_the_start) {
  for (const std::string& file :
       {server.socket_path() + ".none/a.svg", std::string("/dev/null"), std::string("/tmp/")}) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_output, run_to_end(server.unix_url(), {"watch", "--svg", file}, &errors));
    TEST_ASSERT_TRUE(contains(errors, "--svg: " + file + ": "));
  }
}

TEST_ON_SERVER(test_an_output_that_cannot_be_written_should_be_said) {
  Running watch(server.unix_url(), {"-c", command_path() + " watch lock >/dev/full"}, {.path = "/bin/sh"});
  TEST_ASSERT_EQUAL(exit_output, watch.wait());
  TEST_ASSERT_TRUE(contains(watch.errors(), "standard output cannot be written: "));
}

TEST_ON_SERVER(test_a_reader_that_goes_should_end_it_and_the_drawing_be_written) {
  const std::string svg = server.socket_path() + ".svg";
  Running watch(server.unix_url(), {"-c", command_path() + " watch --svg " + svg + " lock | head -n 1; echo over"},
                {.path = "/bin/sh"});
  TEST_ASSERT_TRUE(tells(watch, " free lock"));
  server.command("SET lock " + token + " PX 30000");
  TEST_ASSERT_TRUE(tells(watch, "over"));
  TEST_ASSERT_TRUE(contains(content(svg), "</svg>"));
}

TEST_ON_SERVER(test_a_reader_that_does_not_read_should_hinder_no_end) {
  make_locks(server, 3000);
  const std::string svg = server.socket_path() + ".svg";
  Running watch(server.unix_url(), {"watch", "--svg", svg});
  const auto blocked = [&] { return contains(content("/proc/" + std::to_string(watch.pid()) + "/wchan"), "pipe"); };
  const Instant begin = Client::now();
  // Where that cannot be read, it is blocked by the time that it needs for some 64 KB.
  TEST_ASSERT_TRUE(eventually([&] { return blocked() || Client::now() - begin > 4s; }));
  watch.signal(SIGTERM);
  TEST_ASSERT_EQUAL(0, watch.wait());
  TEST_ASSERT_TRUE(contains(content(svg), "</svg>"));
}

// ---- The command line ------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_wrong_command_line_should_be_refused_with_a_text) {
  const std::string url = server.unix_url();
  for (const Words& words :
       {Words{"watch", "a", "--pattern", "b"}, Words{"watch", "--pattern", ""}, Words{"watch", "--for", "soon"},
        Words{"watch", "--svg", ""}, Words{"watch", "--url", url, "--url", server.tcp_url()}, Words{"watch", "a", "b"},
        Words{"watch", "--pattern", std::string(257, 'a')}, Words{"watch", std::string(257, 'a')}}) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(url, words, &errors));
    TEST_ASSERT_TRUE(contains(errors, "see holdfast watch --help"));
  }
}

// ---- A terminal ------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_table_should_follow_the_window_and_leave_it_as_it_was) {
  for (int index = 10; index < 40; ++index)
    server.command("SET lock/" + std::to_string(index) + " " + token + " PX 600000");
  TerminalSession session(server.unix_url(), Words{"watch"}, TerminalSession::Place::foreground, on_xterm);
  session.resize(13, 90);
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows(alternate_screen));
  TEST_ASSERT_TRUE(session.shows("30 held, 0 waiting"));
  TEST_ASSERT_TRUE(session.shows("and 21 more"));
  TEST_ASSERT_TRUE(session.shows("RENEWALS"));
  session.resize(40, 50);
  TEST_ASSERT_TRUE(session.shows("lock/39"));
  TEST_ASSERT_TRUE(session.shows("HOLDER\x1b[K"));  // What does not fit is not there.
  session.resize(6, 20);
  TEST_ASSERT_TRUE(session.shows("and 28 more"));
  TEST_ASSERT_FALSE(session.shows_now(usual_screen));
  session.type("\x03");  // ^C
  TEST_ASSERT_TRUE(session.shows(usual_screen));
  TEST_ASSERT_EQUAL(0, session.job());
}

TEST_ON_SERVER(test_every_signal_that_ends_it_should_put_the_terminal_right) {
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) {
    TerminalSession session(server.unix_url(), Words{"watch", "lock"}, TerminalSession::Place::foreground, on_xterm);
    const int watch = session.process();
    TEST_ASSERT_TRUE(session.shows("free"));
    ::kill(watch, number);
    TEST_ASSERT_TRUE(session.shows(usual_screen));
    TEST_ASSERT_EQUAL(0, session.job());
  }
}

TEST_ON_SERVER(test_it_should_stop_with_its_job_and_go_on) {
  TerminalSession session(server.unix_url(), Words{"watch", "lock"}, TerminalSession::Place::foreground, on_xterm);
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("free"));
  session.type("\x1a");  // ^Z
  TEST_ASSERT_TRUE(session.shows(usual_screen));
  TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
  server.command("SET lock " + token + " PX 600000");
  session.type("f\n");  // fg
  TEST_ASSERT_TRUE(session.shows("01234567.."));
  session.type("\x03");
  TEST_ASSERT_EQUAL(0, session.job());
}

TEST_ON_SERVER(test_a_silent_server_should_be_said_on_the_terminal_and_hinder_no_end) {
  TerminalSession session(server.unix_url(), Words{"watch", "lock"}, TerminalSession::Place::foreground, on_xterm);
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("free"));
  server.pause();
  TEST_ASSERT_TRUE(session.shows("NO ANSWER for "));
  session.type("\x03");
  TEST_ASSERT_EQUAL(0, session.job());
  server.resume();
  TEST_ASSERT_TRUE(session.shows(usual_screen));
}

TEST_ON_SERVER(test_a_terminal_that_can_do_nothing_should_get_lines) {
  TerminalSession session(server.unix_url(), Words{"watch", "lock"}, TerminalSession::Place::foreground,
                          {.environment = {{"TERM", "dumb"}}});
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows(" free lock"));
  TEST_ASSERT_FALSE(session.shows_now("\x1b"));
  session.type("\x03");
  TEST_ASSERT_EQUAL(0, session.job());
}

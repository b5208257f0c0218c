// SPDX-License-Identifier: MIT
//
// What a world does to a model server: chunks, time, connections that end, faults, and what it is told of them. That
// its replies are those of a server is test_model_fidelity.cpp's to show.
#include <string>
#include <vector>

#include "holdfast/proto/sha1.hpp"
#include "model_redis.hpp"
#include "printers.hpp"
#include "resp_request_parser.hpp"
#include "resp_text.hpp"
#include "scripts.hpp"
#include "sha1_text.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using holdfast::testing::bulk;
using holdfast::testing::command_of;

static void setUp() {}
static void tearDown() {}

namespace {

using Words = std::vector<std::string>;
constexpr WallMicros start = 1'700'000'000'000'000;

std::string text_of(const Script& script) { return std::string(script.text.string_view()); }
std::string sha_of(const Script& script) { return std::string(script.sha.bytes().string_view()); }

struct World {
  explicit World(ModelRedis::Settings settings = {}) : model(std::move(settings)), client(model.accept()) {}
  std::string say(const Words& words) { return say(client, words); }
  std::string say(ModelRedis::ConnectionId connection, const Words& words) {
    model.receive(connection, command_of(words));
    return model.take_output(connection);
  }
  ModelRedis model;
  ModelRedis::ConnectionId client;
};

std::string word(ModelRedis::EffectKind kind) {
  switch (kind) {
    case ModelRedis::EffectKind::set: return "set";
    case ModelRedis::EffectKind::deleted: return "deleted";
    case ModelRedis::EffectKind::expired: return "expired";
    case ModelRedis::EffectKind::evicted: return "evicted";
    case ModelRedis::EffectKind::flushed: return "flushed";
    case ModelRedis::EffectKind::expiry_changed: return "expiry";
    case ModelRedis::EffectKind::field_set: return "field";
    case ModelRedis::EffectKind::field_deleted: return "no field";
    case ModelRedis::EffectKind::list_changed: return "list";
    case ModelRedis::EffectKind::sorted_set_changed: return "sorted set";
    case ModelRedis::EffectKind::published: return "published";
  }
  return "";
}

}  // namespace

TEST(test_requests_should_be_executed_whole_whatever_their_chunks_are) {
  const std::string bytes = command_of({"SET", "a", "1"}) + command_of({"GET", "a"}) + command_of({"get", "b"});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    World world;
    world.model.receive(world.client, std::string_view(bytes).substr(0, cut));
    world.model.receive(world.client, std::string_view(bytes).substr(cut));
    TEST_ASSERT_EQUAL("+OK\r\n$1\r\n1\r\n$-1\r\n", world.model.take_output(world.client));
  }
  World world;
  for (const char byte : bytes) world.model.receive(world.client, {&byte, 1});
  TEST_ASSERT_EQUAL("+OK\r\n$1\r\n1\r\n$-1\r\n", world.model.take_output(world.client));
}

TEST(test_malformed_bytes_should_be_answered_and_the_connection_closed) {
  World world;
  world.model.receive(world.client, command_of({"PING"}) + "*1\r\n:1\r\n" + command_of({"PING"}));
  TEST_ASSERT_EQUAL("+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n", world.model.take_output(world.client));
  TEST_ASSERT_TRUE(world.model.closed(world.client));
  TEST_ASSERT_EQUAL(std::size_t{0}, world.model.receive(world.client, command_of({"PING"})));
}

TEST(test_a_key_should_be_gone_in_the_millisecond_after_its_expiry) {
  World world;
  world.say({"SET", "lock", "token", "PX", "1000"});
  world.model.set_now(start + 1'000'999);
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"PTTL", "lock"}));
  TEST_ASSERT_EQUAL(bulk("token"), world.say({"GET", "lock"}));
  TEST_ASSERT_TRUE(world.model.next_expiry() == std::optional<WallMicros>(start + 1'001'000));
  world.model.set_now(start + 1'001'000);
  TEST_ASSERT_EQUAL(":-2\r\n", world.say({"PTTL", "lock"}));
  TEST_ASSERT_TRUE(world.model.next_expiry() == std::nullopt);
}

TEST(test_a_clock_that_steps_should_free_a_lock_early_or_hold_it_longer) {
  World world;
  world.say({"SET", "early", "token", "PX", "30000"});
  world.model.set_now(start + 60'000'000);
  TEST_ASSERT_EQUAL("$-1\r\n", world.say({"GET", "early"}));
  world.say({"SET", "late", "token", "PX", "30000"});
  world.model.set_now(start - 540'000'000);
  TEST_ASSERT_EQUAL(":630000\r\n", world.say({"PTTL", "late"}));
}

TEST(test_keys_should_wait_for_a_touch_where_active_expiry_is_off) {
  World world({.active_expiry = false});
  std::vector<std::string> told;
  world.model.observe([&](const ModelRedis::Effect& effect) { told.push_back(word(effect.kind)); });
  world.say({"SET", "lock", "token", "PX", "10"});
  world.model.set_now(start + 1'000'000);
  TEST_ASSERT_EQUAL(":1\r\n", world.say({"DBSIZE"}));
  TEST_ASSERT_TRUE(world.model.find("lock") == nullptr);
  TEST_ASSERT_EQUAL(std::size_t{1}, told.size());
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"EXISTS", "lock"}));
  TEST_ASSERT_EQUAL("expired", told.back());
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"DBSIZE"}));
}

TEST(test_an_observer_should_be_told_of_each_change_and_of_who_made_it) {
  World world;
  std::string told;
  world.model.observe([&](const ModelRedis::Effect& effect) {
    told += word(effect.kind) + " " + std::string(effect.key) + " " + std::string(effect.member) + "=" +
            std::string(effect.value) + " by " + std::string(effect.command) + " of " +
            (effect.request.empty() ? "nobody" : std::string(effect.request[0])) + " " +
            std::to_string(effect.connection) + ", " +
            (effect.expiry_ms == no_expiry ? "-" : std::to_string(effect.expiry_ms - start / 1000)) + "\n";
  });
  world.say({"EVAL", text_of(scripts::reentrant_acquire), "1", "lock", "me:1", "30000"});
  TEST_ASSERT_EQUAL("field lock me:1=1 by hset of EVAL 1, -\nexpiry lock = by pexpire of EVAL 1, 30000\n", told);
  told.clear();
  world.say({"EVAL", text_of(scripts::reentrant_release), "1", "lock", "me:1", "wake"});
  TEST_ASSERT_EQUAL(
      "no field lock me:1= by hdel of EVAL 1, 30000\ndeleted lock = by hdel of EVAL 1, -\n"
      "published wake 0=0 by publish of EVAL 1, -\n",
      told);
  told.clear();
  world.say({"SET", "a", "b", "PX", "5"});
  world.model.set_now(start + 1'000'000);
  world.say({"RPUSH", "list", "x"});
  world.say({"ZADD", "set", "1.5", "x"});
  TEST_ASSERT_TRUE(world.model.evict("list"));
  TEST_ASSERT_FALSE(world.model.evict("list"));
  world.model.flush();
  TEST_ASSERT_EQUAL(
      "set a =b by set of SET 1, 5\nexpired a = by  of nobody 0, -\nlist list x= by rpush of RPUSH 1, -\n"
      "sorted set set x=1.5 by zadd of ZADD 1, -\nevicted list = by  of nobody 0, -\nflushed  = by  of nobody 0, -\n",
      told);
}

TEST(test_a_script_should_see_time_stand_still_and_a_database_of_its_own) {
  World world;
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("1700000000") + bulk("0"), world.say({"EVAL", "return redis.call('TIME')", "0"}));
  TEST_ASSERT_EQUAL(bulk("x"), world.say({"EVAL",
                                          "redis.call('SELECT', 3) redis.call('SET', 'a', 'x') "
                                          "return redis.call('GET', 'a')",
                                          "0"}));
  TEST_ASSERT_EQUAL("$-1\r\n", world.say({"GET", "a"}));
  TEST_ASSERT_TRUE(world.model.find("a", 3) != nullptr);
}

TEST(test_what_a_script_has_written_before_an_error_should_stay) {
  World world;
  TEST_ASSERT_EQUAL(
      "-WRONGTYPE Operation against a key holding the wrong kind of value script: " +
          std::string(sha1("redis.call('SET', 'a', 1)\nreturn redis.call('HLEN', 'a')").bytes().string_view()) +
          ", on @user_script:2.\r\n",
      world.say({"EVAL", "redis.call('SET', 'a', 1)\nreturn redis.call('HLEN', 'a')", "0"}));
  TEST_ASSERT_EQUAL(bulk("1"), world.say({"GET", "a"}));
}

TEST(test_scripts_should_be_known_by_their_digest_until_they_are_flushed) {
  World world;
  const Words release = {"EVALSHA", sha_of(scripts::mutex_release), "1", "lock", "token"};
  TEST_ASSERT_EQUAL("-NOSCRIPT No matching script. Please use EVAL.\r\n", world.say(release));
  TEST_ASSERT_EQUAL(bulk(release[1]), world.say({"SCRIPT", "LOAD", text_of(scripts::mutex_release)}));
  world.say({"SET", "lock", "token"});
  TEST_ASSERT_EQUAL(":1\r\n", world.say(release));
  TEST_ASSERT_EQUAL(":0\r\n", world.say(release));
  world.model.flush_scripts();
  TEST_ASSERT_EQUAL("-NOSCRIPT No matching script. Please use EVAL.\r\n", world.say(release));
}

TEST(test_a_digest_at_run_time_should_be_that_of_compile_time) {
  constexpr Sha1Hex known = sha1("The quick brown fox jumps over the lazy dog, and over the block of 64 bytes.");
  const Sha1Text text = sha1_text("The quick brown fox jumps over the lazy dog, and over the block of 64 bytes.");
  TEST_ASSERT_EQUAL(std::string(known.digits, 40), std::string(text.data(), 40));
  for (const Script* const script : {&scripts::mutex_release, &scripts::lock_info, &scripts::mutex_renew_batch}) {
    const Sha1Text digits = sha1_text(script->text.string_view());
    TEST_ASSERT_EQUAL(sha_of(*script), std::string(digits.data(), digits.size()));
  }
}

TEST(test_subscribers_should_be_told_in_the_order_in_which_they_came) {
  World world;
  const auto first = world.model.accept();
  const auto second = world.model.accept();
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("subscribe") + bulk("wake") + ":1\r\n", world.say(first, {"SUBSCRIBE", "wake"}));
  world.say(second, {"SUBSCRIBE", "wake"});
  TEST_ASSERT_TRUE(world.model.subscribers("wake") == std::vector<ModelRedis::ConnectionId>({first, second}));
  TEST_ASSERT_EQUAL(":2\r\n", world.say({"PUBLISH", "wake", "0"}));
  const std::string message = "*3\r\n" + bulk("message") + bulk("wake") + bulk("0");
  TEST_ASSERT_EQUAL(message, world.model.take_output(first));
  TEST_ASSERT_EQUAL(message, world.model.take_output(second));
  TEST_ASSERT_EQUAL(
      "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed "
      "in this context\r\n",
      world.say(first, {"GET", "a"}));
}

TEST(test_who_is_subscribed_to_a_slots_channel_should_be_told_what_is_published_there_and_when_the_slot_leaves) {
  World world;
  const auto listener = world.model.accept();
  const auto other = world.model.accept();
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("ssubscribe") + bulk("wake") + ":1\r\n",
                    world.say(listener, {"SSUBSCRIBE", "wake"}));
  TEST_ASSERT_EQUAL(":0\r\n", world.say(other, {"PUBLISH", "wake", "x"}));
  TEST_ASSERT_EQUAL(":1\r\n", world.say(other, {"SPUBLISH", "wake", "x"}));
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("smessage") + bulk("wake") + bulk("x"), world.model.take_output(listener));
  world.model.end_shard_channels([](std::string_view channel) { return channel == "sleep"; });
  TEST_ASSERT_EQUAL("", world.model.take_output(listener));
  world.model.end_shard_channels([](std::string_view channel) { return channel == "wake"; });
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("sunsubscribe") + bulk("wake") + ":0\r\n", world.model.take_output(listener));
  TEST_ASSERT_TRUE(world.model.subscribers("wake").empty());
}

TEST(test_a_subscriber_that_does_not_read_should_be_closed_at_the_limit) {
  World world({.subscriber_output_max = 200});
  const auto slow = world.model.accept();
  world.say(slow, {"SUBSCRIBE", "wake"});
  int told = 0;
  while (world.say({"PUBLISH", "wake", "0"}) == ":1\r\n") ++told;
  TEST_ASSERT_EQUAL(6, told);
  TEST_ASSERT_TRUE(world.model.closed(slow));
  TEST_ASSERT_EQUAL("", world.model.take_output(slow));
  TEST_ASSERT_TRUE(world.model.subscribers("wake").empty());
}

TEST(test_bytes_on_their_way_should_be_executed_after_their_client_has_closed) {
  World world;
  const auto leaver = world.model.accept();
  const std::string late = command_of({"SET", "lock", "late", "PX", "30000"});
  world.model.receive(leaver, std::string_view(late).substr(0, 9));
  world.model.close(leaver);
  TEST_ASSERT_EQUAL(std::size_t{1}, world.model.receive(leaver, std::string_view(late).substr(9)));
  TEST_ASSERT_EQUAL("", world.model.take_output(leaver));
  TEST_ASSERT_EQUAL(bulk("late"), world.say({"GET", "lock"}));
  TEST_ASSERT_EQUAL(std::size_t{2}, world.model.connection_count());
  world.model.receive_end(leaver);
  TEST_ASSERT_EQUAL(std::size_t{1}, world.model.connection_count());
}

TEST(test_a_killed_client_should_leave_nothing_in_the_socket_that_is_executed) {
  World world;
  const auto leaver = world.model.accept();
  const std::string id = std::to_string(world.model.client_id(leaver));
  world.model.close(leaver);
  TEST_ASSERT_EQUAL(":1\r\n", world.say({"CLIENT", "KILL", "ID", id}));
  TEST_ASSERT_EQUAL(std::size_t{0}, world.model.receive(leaver, command_of({"SET", "lock", "late"})));
  TEST_ASSERT_EQUAL("$-1\r\n", world.say({"GET", "lock"}));
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"CLIENT", "KILL", "ID", id}));
}

TEST(test_a_client_may_kill_itself_after_its_reply) {
  World world;
  const std::string id = std::to_string(world.model.client_id(world.client));
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"CLIENT", "KILL", "ID", id}));
  world.model.receive(world.client, command_of({"CLIENT", "KILL", "ID", id, "SKIPME", "no"}) + command_of({"PING"}));
  TEST_ASSERT_EQUAL(":1\r\n", world.model.take_output(world.client));
  TEST_ASSERT_TRUE(world.model.closed(world.client));
}

TEST(test_a_restart_should_forget_all_but_the_data_it_is_told_to_keep) {
  for (const ModelRedis::Data data : {ModelRedis::Data::kept, ModelRedis::Data::lost}) {
    World world;
    world.say({"SET", "lock", "token"});
    world.say({"SCRIPT", "LOAD", "return 1"});
    world.model.set_now(start + 100'000'000);
    world.model.restart(data, std::string(40, 'b'));
    TEST_ASSERT_TRUE(world.model.closed(world.client));
    const auto again = world.model.accept();
    TEST_ASSERT_EQUAL(":1\r\n", world.say(again, {"CLIENT", "ID"}));
    const std::string kept = data == ModelRedis::Data::kept ? bulk("token") : "$-1\r\n";
    TEST_ASSERT_EQUAL(kept, world.say(again, {"GET", "lock"}));
    TEST_ASSERT_EQUAL("*1\r\n:0\r\n",
                      world.say(again, {"SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"}));
    TEST_ASSERT_EQUAL("*6\r\n" + bulk(std::string(40, 'b')) + bulk("0") + bulk("7.0.15") + bulk("") +
                          bulk(std::string(40, 'b')) + bulk("-1standalonemaster"),
                      world.say(again, {"EVAL", text_of(scripts::server_identity), "0"}));
  }
}

TEST(test_a_promotion_should_be_told_until_the_next_restart) {
  World world;
  const auto standing = [&world](ModelRedis::ConnectionId connection) {
    const std::string said = world.say(connection, {"EVAL", text_of(scripts::server_identity), "0"});
    return said.substr(said.rfind("$"));
  };
  TEST_ASSERT_EQUAL(bulk("-1standalonemaster"), standing(world.client));
  world.model.faults().replica = true;
  TEST_ASSERT_EQUAL(bulk("-1standaloneslave"), standing(world.client));
  world.model.faults().replica = false;
  world.model.promote(std::string(40, 'd'));
  const std::string said = world.say(world.client, {"EVAL", text_of(scripts::server_identity), "0"});
  TEST_ASSERT_TRUE(said.find(bulk(std::string(40, 'd'))) != std::string::npos);
  TEST_ASSERT_TRUE(standing(world.client).find("-1") == std::string::npos);
  TEST_ASSERT_TRUE(standing(world.client).find("master") != std::string::npos);
  world.model.set_age(3600'000'000);
  TEST_ASSERT_TRUE(world.say(world.client, {"EVAL", text_of(scripts::server_identity), "0"}).find(bulk("3600")) !=
                   std::string::npos);
  world.model.restart(ModelRedis::Data::kept, std::string(40, 'b'));
  TEST_ASSERT_EQUAL(bulk("-1standalonemaster"), standing(world.model.accept()));
}

TEST(test_a_stale_copy_should_bring_back_what_was) {
  World world;
  world.say({"SET", "lock", "first", "PX", "30000"});
  const Databases stale = world.model.copy_data();
  world.say({"SET", "lock", "second", "PX", "90000"});
  world.say({"SELECT", "2"});
  world.say({"SET", "other", "x"});
  World promoted;
  promoted.model.load_data(stale);
  TEST_ASSERT_EQUAL(bulk("first"), promoted.say({"GET", "lock"}));
  TEST_ASSERT_EQUAL(":30000\r\n", promoted.say({"PTTL", "lock"}));
  TEST_ASSERT_TRUE(promoted.model.keys(2).empty());
  promoted.model.set_now(start + 40'000'000);
  TEST_ASSERT_TRUE(promoted.model.keys().empty());
}

TEST(test_a_client_too_many_should_be_told_so_unasked) {
  World world({.clients_max = 1});
  const auto second = world.model.accept();
  TEST_ASSERT_EQUAL("-ERR max number of clients reached\r\n", world.model.take_output(second));
  TEST_ASSERT_TRUE(world.model.closed(second));
  world.model.close(world.client);
  world.model.receive_end(world.client);
  TEST_ASSERT_FALSE(world.model.closed(world.model.accept()));
}

TEST(test_the_kinds_of_servers_should_have_their_own_commands) {
  for (const ServerKind kind : {ServerKind::redis_7_0, ServerKind::redis_8_4, ServerKind::valkey_9_0}) {
    World world({.kind = kind});
    world.say({"SET", "lock", "token"});
    world.say({"HSET", "hash", "a", "1"});
    const bool redis = kind == ServerKind::redis_8_4;
    const bool valkey = kind == ServerKind::valkey_9_0;
    const std::string delex = world.say({"DELEX", "lock", "IFEQ", "other"});
    TEST_ASSERT_EQUAL(
        redis ? ":0\r\n" : "-ERR unknown command 'DELEX', with args beginning with: 'lock' 'IFEQ' 'other' \r\n", delex);
    const std::string delifeq = world.say({"DELIFEQ", "lock", "other"});
    TEST_ASSERT_EQUAL(
        valkey ? ":0\r\n" : "-ERR unknown command 'DELIFEQ', with args beginning with: 'lock' 'other' \r\n", delifeq);
    TEST_ASSERT_EQUAL(redis || valkey ? "$-1\r\n" : "-ERR syntax error\r\n",
                      world.say({"SET", "lock", "next", "IFEQ", "other"}));
    TEST_ASSERT_EQUAL(redis || valkey ? "+OK\r\n" : "-ERR syntax error\r\n",
                      world.say({"SET", "lock", "next", "IFEQ", "token"}));
    if (redis) {
      TEST_ASSERT_EQUAL(":1\r\n", world.say({"DELEX", "lock", "IFEQ", "next"}));
      TEST_ASSERT_EQUAL("-ERR Key should be of string type if conditions are specified\r\n",
                        world.say({"DELEX", "hash", "IFEQ", "x"}));
    }
    if (valkey) {
      TEST_ASSERT_EQUAL(":1\r\n", world.say({"DELIFEQ", "lock", "next"}));
      TEST_ASSERT_EQUAL("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
                        world.say({"DELIFEQ", "hash", "x"}));
      TEST_ASSERT_EQUAL("-NOSCRIPT No matching script.\r\n", world.say({"EVALSHA", std::string(40, 'a'), "0"}));
      TEST_ASSERT_EQUAL("-ERR Unknown command called from script script: on @user_script:1.\r\n",
                        world.say({"EVAL", "return redis.call('nosuch')", "0"}));
    }
  }
}

TEST(test_faults_should_refuse_and_undo_nothing) {
  World world;
  world.say({"SET", "lock", "token"});
  const Words release = {"EVAL", text_of(scripts::mutex_release), "1", "lock", "token"};
  ModelRedis::Faults& faults = world.model.faults();
  faults.out_of_memory = true;
  TEST_ASSERT_EQUAL("-OOM command not allowed when used memory > 'maxmemory'.\r\n", world.say({"SET", "a", "1"}));
  TEST_ASSERT_EQUAL(":1\r\n", world.say(release));
  faults = {};
  faults.loading = true;
  TEST_ASSERT_EQUAL("-LOADING Redis is loading the dataset in memory\r\n", world.say(release));
  faults = {};
  faults.busy_script = true;
  TEST_ASSERT_EQUAL("-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
                    world.say(release));
  TEST_ASSERT_EQUAL("+OK\r\n", world.say({"SCRIPT", "KILL"}));
  TEST_ASSERT_EQUAL(":0\r\n", world.say(release));
}

TEST(test_a_replica_should_hide_what_has_expired_and_keep_it) {
  World world;
  world.say({"SET", "lock", "token", "PX", "10"});
  world.model.faults().replica = true;
  world.model.set_now(start + 1'000'000);
  TEST_ASSERT_EQUAL("$-1\r\n", world.say({"GET", "lock"}));
  TEST_ASSERT_EQUAL(":1\r\n", world.say({"DBSIZE"}));
  world.model.faults().replica = false;
  TEST_ASSERT_EQUAL("$-1\r\n", world.say({"GET", "lock"}));
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"DBSIZE"}));
}

// ---- The scripts of locks on several names -----------------------------------------------------------------------

namespace {

Words run(const Script& script, const Words& names, const Words& rest) {
  Words words = {"EVAL", text_of(script), std::to_string(names.size())};
  words.insert(words.end(), names.begin(), names.end());
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}
const Words three = {"a", "b", "{c}d"};

}  // namespace

TEST(test_names_should_be_taken_all_or_none) {
  for (const std::string& busy : three) {
    World world;
    world.say({"HSET", busy, "other", "1"});
    world.say({"PEXPIRE", busy, "5000"});
    const std::string place = busy == "a" ? "1" : busy == "b" ? "2" : "3";
    TEST_ASSERT_EQUAL("*2\r\n:5000\r\n:" + place + "\r\n",
                      world.say(run(scripts::multi_acquire, three, {"me:1", "30000"})));
    TEST_ASSERT_EQUAL(":1\r\n", world.say({"DBSIZE"}));
    world.say({"DEL", busy});
    TEST_ASSERT_EQUAL("+OK\r\n", world.say(run(scripts::multi_acquire, three, {"me:1", "30000"})));
    for (const std::string& name : three) {
      TEST_ASSERT_EQUAL(bulk("1"), world.say({"HGET", name, "me:1"}));
      TEST_ASSERT_EQUAL(":30000\r\n", world.say({"PTTL", name}));
    }
    TEST_ASSERT_EQUAL("*2\r\n:30000\r\n:1\r\n", world.say(run(scripts::multi_acquire, three, {"me:2", "30000"})));
  }
}

TEST(test_busy_should_be_the_name_that_stays_for_longest) {
  World world;
  world.say({"SET", "a", "x", "PX", "700"});
  world.say({"SET", "b", "x", "PX", "900"});
  world.say({"SET", "{c}d", "x", "PX", "800"});
  const Words acquire = run(scripts::multi_acquire, three, {"me:1", "30000"});
  const Words remaining = run(scripts::multi_remaining, three, {});
  TEST_ASSERT_EQUAL("*2\r\n:900\r\n:2\r\n", world.say(acquire));
  TEST_ASSERT_EQUAL(":900\r\n", world.say(remaining));
  for (const std::string& endless : {std::string("{c}d"), std::string("a")}) {
    world.say({"PERSIST", endless});
    TEST_ASSERT_EQUAL("*2\r\n:-1\r\n:" + std::string(endless == "a" ? "1" : "3") + "\r\n", world.say(acquire));
    TEST_ASSERT_EQUAL(":-1\r\n", world.say(remaining));
  }
  world.say({"DEL", "a", "b", "{c}d"});
  TEST_ASSERT_EQUAL(":-2\r\n", world.say(remaining));
}

// [rule 16] The observer would see a field that stands without an end behind the script.
TEST(test_nothing_should_be_created_before_its_expiry_is_known_to_be_allowed) {
  World world;
  int created = 0;
  world.model.observe(
      [&](const ModelRedis::Effect& effect) { created += effect.kind == ModelRedis::EffectKind::field_set ? 1 : 0; });
  world.model.faults().forbidden_commands = {"pexpire"};
  TEST_ASSERT_EQUAL('-', world.say(run(scripts::multi_acquire, three, {"me:1", "30000"}))[0]);
  TEST_ASSERT_EQUAL('-', world.say(run(scripts::reentrant_acquire, {"a"}, {"me:1", "30000"}))[0]);
  TEST_ASSERT_EQUAL('-', world.say(run(scripts::fenced_acquire, {"a", "fence"}, {"me:1", "30000"}))[0]);
  TEST_ASSERT_EQUAL(0, created);
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"DBSIZE"}));
  world.model.faults().forbidden_commands = {};
  TEST_ASSERT_EQUAL("+OK\r\n", world.say(run(scripts::multi_acquire, three, {"me:1", "30000"})));
  TEST_ASSERT_EQUAL(3, created);
}

TEST(test_step_should_set_the_count_of_all_or_of_none) {
  World world;
  world.say(run(scripts::multi_acquire, three, {"me:1", "30000"}));
  world.say({"PEXPIRE", "b", "90000"});
  TEST_ASSERT_EQUAL(":1\r\n", world.say(run(scripts::multi_step, three, {"me:1", "7", "40000"})));
  for (const std::string& name : three) {
    TEST_ASSERT_EQUAL(bulk("7"), world.say({"HGET", name, "me:1"}));
    TEST_ASSERT_EQUAL(name == "b" ? ":90000\r\n" : ":40000\r\n", world.say({"PTTL", name}));
  }
  world.say({"DEL", "{c}d"});
  TEST_ASSERT_EQUAL(":0\r\n", world.say(run(scripts::multi_step, three, {"me:1", "8", "99000"})));
  TEST_ASSERT_EQUAL(bulk("7"), world.say({"HGET", "a", "me:1"}));
  TEST_ASSERT_EQUAL(":40000\r\n", world.say({"PTTL", "a"}));
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"EXISTS", "{c}d"}));
}

// [rule 12] Two holds a call: the first has lost a name, and the second is extended.
TEST(test_renewal_should_answer_for_each_hold_and_extend_nothing_of_a_lost_one) {
  World world;
  const auto renew = [&] {
    return world.say(run(scripts::multi_renew, {"a", "b", "x", "y"}, {"me:1", "50000", "2", "me:2", "60000", "2"}));
  };
  world.say(run(scripts::multi_acquire, {"a", "b"}, {"me:1", "30000"}));
  world.say(run(scripts::multi_acquire, {"x", "y"}, {"me:2", "30000"}));
  world.say({"PEXPIRE", "y", "90000"});
  TEST_ASSERT_EQUAL("*2\r\n:1\r\n:1\r\n", renew());
  TEST_ASSERT_EQUAL(":50000\r\n", world.say({"PTTL", "b"}));
  TEST_ASSERT_EQUAL(":60000\r\n", world.say({"PTTL", "x"}));
  TEST_ASSERT_EQUAL(":90000\r\n", world.say({"PTTL", "y"}));
  world.model.set_now(start + 10'000'000);
  for (const char* const way : {"gone", "another's", "of another type"}) {
    world.say({"DEL", "b"});
    if (way[0] == 'a') world.say({"HSET", "b", "other", "1"});
    if (way[0] == 'o') world.say({"SET", "b", "text"});
    TEST_ASSERT_EQUAL("*2\r\n:0\r\n:1\r\n", renew());
    TEST_ASSERT_EQUAL(":40000\r\n", world.say({"PTTL", "a"}));
    TEST_ASSERT_EQUAL(":60000\r\n", world.say({"PTTL", "x"}));
    TEST_ASSERT_EQUAL(way[0] == 'g' ? ":0\r\n" : ":1\r\n", world.say({"EXISTS", "b"}));
  }
  world.say({"DEL", "a"});
  world.model.faults().forbidden_commands = {"pttl"};
  TEST_ASSERT_EQUAL("*2\r\n:0\r\n:-1\r\n", renew());
  const std::string alone = world.say(run(scripts::multi_renew, {"x", "y"}, {"me:2", "60000", "2"}));
  TEST_ASSERT_EQUAL('-', alone[0]);
  world.model.faults().forbidden_commands = {"hexists"};
  TEST_ASSERT_EQUAL("*2\r\n:-1\r\n:-1\r\n", renew());
}

TEST(test_release_should_free_what_is_ours_and_announce_it) {
  World world;
  const auto listener = world.model.accept();
  world.say(listener, {"SUBSCRIBE", "wake:{a}", "wake:{b}", "wake:{c}d"});
  const auto heard = [](const std::string& channel) { return "*3\r\n" + bulk("message") + bulk(channel) + bulk("0"); };
  const Words release = run(scripts::multi_release, three, {"me:1", "wake"});
  world.say(run(scripts::multi_acquire, three, {"me:1", "30000"}));
  world.say({"HSET", "b", "other", "1"});  // It stays. The message is a hint, and wakes who will find the name busy.
  TEST_ASSERT_EQUAL(":1\r\n", world.say(release));
  TEST_ASSERT_EQUAL(heard("wake:{a}") + heard("wake:{b}") + heard("wake:{c}d"), world.model.take_output(listener));
  TEST_ASSERT_EQUAL(":1\r\n", world.say({"DBSIZE"}));
  TEST_ASSERT_EQUAL(":0\r\n", world.say(release));
  world.say({"DEL", "b"});

  world.say(run(scripts::multi_acquire, three, {"me:1", "30000"}));
  world.say({"SET", "a", "text"});
  TEST_ASSERT_EQUAL(":0\r\n", world.say(release));
  TEST_ASSERT_EQUAL(heard("wake:{b}") + heard("wake:{c}d"), world.model.take_output(listener));
  TEST_ASSERT_EQUAL(":1\r\n", world.say({"DBSIZE"}));
  world.say({"DEL", "a"});

  world.say(run(scripts::multi_acquire, three, {"me:1", "30000"}));
  world.model.faults().forbidden_commands = {"publish"};
  TEST_ASSERT_EQUAL(":1\r\n", world.say(release));
  TEST_ASSERT_EQUAL(":0\r\n", world.say({"DBSIZE"}));
  world.model.faults().forbidden_commands = {"hdel"};
  TEST_ASSERT_EQUAL('-', world.say(release)[0]);
}

TEST(test_one_script_should_not_change_what_the_next_one_sees) {
  World world;
  const std::string refused = world.say({"EVAL", "redis.call = nil", "0"});
  TEST_ASSERT_TRUE(refused.find("Attempt to modify a readonly table") != std::string::npos);
  for (const char* const attempt : {"x = 1", "string.sub = nil", "rawset(_G, 'x', 1)", "setmetatable(_G, nil)",
                                    "table.insert(string, 1)", "KEYS = nil", "pcall(function() math.floor = nil end)"})
    world.say({"EVAL", attempt, "0"});
  TEST_ASSERT_EQUAL(bulk("ello"), world.say({"EVAL", "return string.sub('hello', 2)", "0"}));
  TEST_ASSERT_EQUAL(":3\r\n", world.say({"EVAL", "return math.floor(3.9) + #KEYS", "0"}));
  TEST_ASSERT_TRUE(world.say({"EVAL", "return x", "0"}).find("nonexistent global variable 'x'") != std::string::npos);
  for (const char* const absent : {"os", "io", "debug", "require", "package", "dofile", "loadfile", "print"})
    TEST_ASSERT_EQUAL(
        bulk("false"),
        world.say({"EVAL", std::string("return tostring((pcall(function() return ") + absent + " end)))", "0"})
            .substr(0, 11));
}

TEST(test_the_same_calls_should_give_the_same_bytes) {
  const auto play = [] {
    World world;
    std::string told;
    world.model.observe([&](const ModelRedis::Effect& effect) { told += word(effect.kind) + std::string(effect.key); });
    for (int index = 0; index < 200; ++index) {
      told += world.say({"SET", "key" + std::to_string(index * 7919 % 50), "x", "PX", std::to_string(1 + index % 9)});
      told += world.say({"EVAL", "return {math.random(1000), KEYS[1]}", "1", std::to_string(index)});
      if (index % 20 == 0) world.model.set_now(start + index * 1000);
      told += world.say({"KEYS", "*"});
    }
    return told;
  };
  TEST_ASSERT_EQUAL(play(), play());
}

TEST(test_a_wait_should_hold_its_connection_up_until_replicas_have_answered) {
  World world({.has_replicas = true});
  TEST_ASSERT_FALSE(world.model.wait_of(world.client).has_value());
  const std::string bytes = command_of({"SET", "a", "1"}) + command_of({"WAIT", "2", "30"}) + command_of({"GET", "a"});
  TEST_ASSERT_EQUAL(2, world.model.receive(world.client, bytes));
  TEST_ASSERT_EQUAL("+OK\r\n", world.model.take_output(world.client));
  const auto wait = world.model.wait_of(world.client);
  TEST_ASSERT_TRUE(wait.has_value() && wait->replicas == 2 && wait->timeout_ms == 30);
  TEST_ASSERT_EQUAL(0, world.model.receive(world.client, command_of({"GET", "b"})));
  TEST_ASSERT_EQUAL("$1\r\n1\r\n", world.say(world.model.accept(), {"GET", "a"}));  // Others are served.
  TEST_ASSERT_EQUAL(2, world.model.answer_wait(world.client, 1));
  TEST_ASSERT_EQUAL(":1\r\n$1\r\n1\r\n$-1\r\n", world.model.take_output(world.client));
  TEST_ASSERT_FALSE(world.model.wait_of(world.client).has_value());
  TEST_ASSERT_EQUAL("-ERR timeout is negative\r\n", world.say({"WAIT", "1", "-1"}));
  TEST_ASSERT_FALSE(world.model.wait_of(world.client).has_value());
  (void)world.say({"WAIT", "1", "0"});
  world.model.kill(world.client);
  TEST_ASSERT_FALSE(world.model.wait_of(world.client).has_value());
}

TEST(test_integers_should_be_read_as_the_server_reads_them) {
  std::int64_t number = 7;
  for (const char* const wrong : {"", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "0x1", "9223372036854775808",
                                  "-9223372036854775809", "99999999999999999999999"})
    TEST_ASSERT_FALSE(read_integer(wrong, number));
  TEST_ASSERT_EQUAL(7, number);
  TEST_ASSERT_TRUE(read_integer("-9223372036854775808", number));
  TEST_ASSERT_TRUE(number == INT64_MIN);
  TEST_ASSERT_TRUE(read_integer("0", number));
  TEST_ASSERT_EQUAL(0, number);
}

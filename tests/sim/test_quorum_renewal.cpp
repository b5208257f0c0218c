// SPDX-License-Identifier: MIT
//
// The script that writes a quorum's fence back, run by Lua on model servers.
#include <cstdint>
#include <string>
#include <vector>

#include "model_redis.hpp"
#include "printers.hpp"
#include "resp_text.hpp"
#include "scripts.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using holdfast::testing::bulk;
using holdfast::testing::command_of;

static void setUp() {}
static void tearDown() {}

namespace {

using Words = std::vector<std::string>;
// A clock whose microseconds have fewer digits than the counters below, so that those count.
constexpr WallMicros start = 5'000'000;

struct Node {
  Node() : model({.now = start}), client(model.accept()) {}

  std::string say(const Words& words) {
    model.receive(client, command_of(words));
    return model.take_output(client);
  }
  static std::string text_of(const Script& script) { return std::string(script.text.string_view()); }
  std::string renew(const std::string& token, const std::string& fence, const std::string& lease = "10000") {
    return say({"EVAL", text_of(scripts::quorum_renew), "2", "lock", "counter", token, lease, fence});
  }
  std::string acquire(const std::string& token, bool reentrant = false) {
    const Script& script = reentrant ? scripts::fenced_acquire : scripts::mutex_acquire_fenced;
    return say({"EVAL", text_of(script), "2", "lock", "counter", token, "10000"});
  }
  std::string release(const std::string& token) {
    return say({"EVAL", text_of(scripts::mutex_release), "1", "lock", token});
  }
  std::string counter() { return say({"GET", "counter"}); }
  std::string remaining() { return say({"PTTL", "lock"}); }
  void set_counter(const std::string& number) { TEST_ASSERT_EQUAL("+OK\r\n", say({"SET", "counter", number})); }

  ModelRedis model;
  ModelRedis::ConnectionId client;
};

}  // namespace

TEST(test_a_write_back_should_extend_what_is_ours_and_raise_the_counter) {
  for (const bool reentrant : {false, true}) {
    Node node;
    node.set_counter("9000000");
    TEST_ASSERT_EQUAL(bulk("9000001"), node.acquire("me:1", reentrant));
    node.model.set_now(start + 4'000'000);
    TEST_ASSERT_EQUAL(":6000\r\n", node.remaining());
    TEST_ASSERT_EQUAL(":1\r\n", node.renew("me:1", "9000123"));
    TEST_ASSERT_EQUAL(":10000\r\n", node.remaining());
    TEST_ASSERT_EQUAL(bulk("9000123"), node.counter());
  }
}

// Only a node that still holds this grant's token counts: nothing is touched elsewhere.
TEST(test_a_write_back_to_what_is_not_ours_should_change_nothing) {
  for (const bool reentrant : {false, true}) {
    Node node;
    node.set_counter("9000000");
    TEST_ASSERT_EQUAL(bulk("9000001"), node.acquire("other", reentrant));
    node.model.set_now(start + 4'000'000);
    TEST_ASSERT_EQUAL(":0\r\n", node.renew("me:1", "9999999"));
    TEST_ASSERT_EQUAL(bulk("9000001"), node.counter());
    TEST_ASSERT_EQUAL(":6000\r\n", node.remaining());
  }
  Node empty;
  TEST_ASSERT_EQUAL(":0\r\n", empty.renew("me:1", "9"));
  TEST_ASSERT_EQUAL(":0\r\n", empty.say({"EXISTS", "lock", "counter"}));
  Node expired;
  (void)expired.acquire("me:1");
  expired.model.set_now(start + 11'000'000);
  TEST_ASSERT_EQUAL(":0\r\n", expired.renew("me:1", "9999999"));
}

TEST(test_a_write_back_should_never_make_the_counter_smaller) {
  const char* const ordered[] = {"-5",
                                 "0",
                                 "1",
                                 "9",
                                 "10",
                                 "99",
                                 "100",
                                 "9007199254740991",
                                 "9007199254740992",
                                 "9007199254740993",
                                 "9223372036854775806",
                                 "9223372036854775807"};
  for (const std::string before : ordered)
    for (const std::string fence : ordered) {
      if (fence[0] == '-' || fence == "0") continue;
      TEST_MESSAGE(before << " and " << fence);
      Node node;
      (void)node.say({"SET", "lock", "me", "PX", "1000"});
      node.set_counter(before);
      TEST_ASSERT_EQUAL(":1\r\n", node.renew("me", fence));
      const bool larger = std::stoll(fence) > std::stoll(before);
      TEST_ASSERT_EQUAL(bulk(larger ? fence : before), node.counter());
    }
}

TEST(test_a_write_back_should_create_a_counter_without_an_end) {
  Node node;
  (void)node.say({"SET", "lock", "me", "PX", "1000"});
  TEST_ASSERT_EQUAL(":1\r\n", node.renew("me", "9007199254740993"));
  TEST_ASSERT_EQUAL(bulk("9007199254740993"), node.counter());
  TEST_ASSERT_EQUAL(":-1\r\n", node.say({"PTTL", "counter"}));
}

TEST(test_a_write_back_should_never_shorten_a_lease) {
  Node node;
  (void)node.say({"SET", "lock", "me", "PX", "60000"});
  TEST_ASSERT_EQUAL(":1\r\n", node.renew("me", "1", "10000"));
  TEST_ASSERT_EQUAL(":60000\r\n", node.remaining());
  TEST_ASSERT_EQUAL(":1\r\n", node.renew("me", "1", "60001"));
  TEST_ASSERT_EQUAL(":60001\r\n", node.remaining());
}

// One field of a hash is ours, another is not.
TEST(test_a_write_back_should_look_for_its_own_field) {
  Node node;
  (void)node.say({"HSET", "lock", "other", "1"});
  (void)node.say({"PEXPIRE", "lock", "1000"});
  TEST_ASSERT_EQUAL(":0\r\n", node.renew("me", "5"));
  (void)node.say({"HSET", "lock", "me", "2"});
  TEST_ASSERT_EQUAL(":1\r\n", node.renew("me", "5"));
  TEST_ASSERT_EQUAL(":10000\r\n", node.remaining());
}

TEST(test_a_write_back_should_be_known_by_its_digest) {
  Node node;
  (void)node.say({"SET", "lock", "me", "PX", "1000"});
  const Words by_sha = {
      "EVALSHA", std::string(scripts::quorum_renew.sha.bytes().string_view()), "2", "lock", "counter", "me", "10000",
      "77"};
  TEST_ASSERT_EQUAL("-NOSCRIPT No matching script. Please use EVAL.\r\n", node.say(by_sha));
  TEST_ASSERT_EQUAL(":1\r\n", node.renew("me", "76"));
  TEST_ASSERT_EQUAL(":1\r\n", node.say(by_sha));
  TEST_ASSERT_EQUAL(bulk("77"), node.counter());
}

TEST(test_a_server_that_refuses_writes_should_count_for_no_fence) {
  Node node;
  (void)node.acquire("me");
  node.model.faults().out_of_memory = true;
  TEST_ASSERT_EQUAL('-', node.renew("me", "99999999")[0]);
  TEST_ASSERT_EQUAL(bulk(std::to_string(start)), node.counter());
}

// Counters 10 million and ten, 0, 0. A is granted on 1 and 2; B's request takes 3. A writes back to 1 and 3: only 1 is its
// own, so its fence does not count. Had 3 taken it, or counted, A and a later C on 2 and 3 could have fences out of order.
TEST(test_a_fence_that_was_written_to_a_node_of_another_should_not_count) {
  Node one;
  Node two;
  Node three;
  one.set_counter("10000010");
  TEST_ASSERT_EQUAL(bulk("10000011"), one.acquire("A"));
  TEST_ASSERT_EQUAL(bulk("5000000"), two.acquire("A"));
  TEST_ASSERT_EQUAL(bulk("5000000"), three.acquire("B"));
  TEST_ASSERT_EQUAL(":1\r\n", one.renew("A", "10000011"));
  TEST_ASSERT_EQUAL(":0\r\n", three.renew("A", "10000011"));  // One of three: A is denied,
  TEST_ASSERT_EQUAL(bulk("5000000"), three.counter());
  TEST_ASSERT_EQUAL(":1\r\n", one.release("A"));  // and lets go.
  TEST_ASSERT_EQUAL(":1\r\n", two.release("A"));
  TEST_ASSERT_EQUAL(":1\r\n", three.release("B"));
  // C is granted on 2 and 3, with a smaller fence than A's, which nobody was given.
  TEST_ASSERT_EQUAL(bulk("5000001"), two.acquire("C"));
  TEST_ASSERT_EQUAL(bulk("5000001"), three.acquire("C"));
  TEST_ASSERT_EQUAL(":1\r\n", two.renew("C", "5000001"));
  TEST_ASSERT_EQUAL(":1\r\n", three.renew("C", "5000001"));
  TEST_ASSERT_EQUAL(":1\r\n", two.release("C"));
  TEST_ASSERT_EQUAL(":1\r\n", three.release("C"));
  // D on 1 and 2, written back to both: whoever comes after it, on whatever two, is above it.
  TEST_ASSERT_EQUAL(bulk("10000012"), one.acquire("D"));
  TEST_ASSERT_EQUAL(bulk("5000002"), two.acquire("D"));
  TEST_ASSERT_EQUAL(":1\r\n", one.renew("D", "10000012"));
  TEST_ASSERT_EQUAL(":1\r\n", two.renew("D", "10000012"));
  TEST_ASSERT_EQUAL(":1\r\n", two.release("D"));
  TEST_ASSERT_EQUAL(bulk("10000013"), two.acquire("E"));
  TEST_ASSERT_EQUAL(bulk("5000002"), three.acquire("E"));
}

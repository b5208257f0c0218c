// SPDX-License-Identifier: MIT
//
// Many holds kept alive, rule by rule. The rules are those of proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <cstring>
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "heard.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/core/renewal_schedule.hpp"
#include "printers.hpp"
#include "recorder.hpp"
#include "scripts.hpp"

namespace holdfast {

static doctest::String toString(RenewalEvent event) {
  static const char* const names[] = {"none", "at_risk", "lost"};
  return names[static_cast<int>(event)];
}

}  // namespace holdfast

using namespace holdfast;
using holdfast::testing::Heard;

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr Duration lease = 30s;
constexpr Duration interval = lease / 3;
constexpr Duration validity = lease - lease / 100 - 2ms;
constexpr Duration retry = lease / 30;
constexpr Duration window = lease / 24;

// A second kind, for calls that must not mix.
const LockKind other_kind = [] {
  LockKind kind = mutex_kind;
  kind.renew_batch = &scripts::reentrant_renew;
  return kind;
}();

// One application's hold.
struct Holder {
  std::string key;
  Token token;
  RenewalSchedule::Place* place = nullptr;
  bool alive = true;
  int asked = 0;  // May it be renewed?
  int renewed = 0;
  Instant confirmed_at = Instant();
  Instant valid_until = Instant();
};

bool may_renew(void* holder, Instant) noexcept {
  ++static_cast<Holder*>(holder)->asked;
  return static_cast<Holder*>(holder)->alive;
}
void renewed(const KeptHold& hold) noexcept {
  auto& it = *static_cast<Holder*>(hold.holder);
  ++it.renewed;
  it.confirmed_at = hold.confirmed_at;
  it.valid_until = hold.valid_until;
}
constexpr RenewalSchedule::Host host = {may_renew, renewed};

// A call as the server reads it.
struct SentCall {
  Request request;
  std::vector<std::string> words;
  Instant asked_at;

  bool by_text() const { return words[0] == "EVAL"; }
  std::size_t count() const { return std::stoul(words[2]); }
  std::vector<std::string> keys() const {
    return {words.begin() + 3, words.begin() + 3 + static_cast<std::ptrdiff_t>(count())};
  }
  std::string token(std::size_t index) const { return words[3 + count() + 2 * index]; }
  std::string lease_of(std::size_t index) const { return words[4 + count() + 2 * index]; }
};

std::vector<std::string> read_words(const std::string& bytes) {
  std::vector<std::string> words;
  std::size_t at = 1;
  const auto number = [&] {
    const std::size_t value = std::stoul(bytes.substr(at));
    at = bytes.find("\r\n", at) + 2;
    return value;
  };
  const std::size_t count = number();
  for (std::size_t index = 0; index < count; ++index) {
    TEST_ASSERT_EQUAL('$', bytes[at]);
    ++at;
    const std::size_t size = number();
    words.push_back(bytes.substr(at, size));
    at += size + 2;
  }
  TEST_ASSERT_EQUAL(bytes.size(), at);
  return words;
}

// A schedule and all that was sent and told.
struct Desk {
  explicit Desk(std::size_t places = 300, const RenewalSchedule::Host& asked = host)
      : places_(places), heap_(places), schedule(asked, {places_.data(), heap_.data(), places}, 1s) {}

  Holder& enter(const std::string& key, Instant confirmed_at = start, const LockKind& kind = mutex_kind,
                Duration held_for = lease) {
    holders.push_back({});
    Holder& holder = holders.back();
    holder.key = key;
    holder.token = Token(ByteView("token of " + key.substr(0, 32)));
    holder.place = schedule.enter(hold_of(holder, confirmed_at, kind, held_for), now);
    TEST_ASSERT_TRUE(holder.place != nullptr);
    return holder;
  }
  static KeptHold hold_of(Holder& holder, Instant confirmed_at, const LockKind& kind = mutex_kind,
                          Duration held_for = lease) {
    const Duration valid = held_for - held_for / 100 - 2ms;
    return {.holder = &holder,
            .kind = &kind,
            .key = Key(ByteView(holder.key)),
            .token = &holder.token,
            .lease = held_for,
            .validity = valid,
            .confirmed_at = confirmed_at,
            .valid_until = confirmed_at + valid};
  }

  // Everything that may go now. As many calls as came of it.
  std::size_t take(std::size_t room = 64 * 1024) {
    std::size_t count = 0;
    const std::unique_ptr<char[]> space(new char[room]);
    for (;; ++count) {
      SentCall call;
      call.request.repeatable = true;  // What was there before is not cleared.
      call.request.posted = true;
      call.request.compensation = &unrelated;
      if (!schedule.poll_request({space.get(), room}, call.request, size, now)) return count;
      TEST_ASSERT_TRUE(size <= room);
      call.words = read_words(std::string(space.get(), size));
      call.asked_at = now;
      sent.push_back(call);
    }
  }
  // The only call that may go now.
  SentCall take_one() {
    TEST_ASSERT_EQUAL(1U, take());
    return sent.back();
  }
  bool answer(const SentCall& call, const std::string& bytes) {
    const Heard parsed(bytes);
    return schedule.handle_reply(
        {.tag = call.request.tag, .outcome = Status::ok, .nothing_ran = false, .value = parsed.value}, now);
  }
  bool answer(const SentCall& call, const std::vector<int>& answers) {
    std::string bytes = "*" + std::to_string(answers.size()) + "\r\n";
    for (const int one : answers) bytes += ":" + std::to_string(one) + "\r\n";
    return answer(call, bytes);
  }
  bool answer_all(const SentCall& call, int one) { return answer(call, std::vector<int>(call.count(), one)); }
  bool fail(const SentCall& call, Status outcome) {
    return schedule.handle_reply({.tag = call.request.tag, .outcome = outcome, .nothing_ran = false, .value = {}}, now);
  }
  void to(Instant instant) {
    now = instant;
    schedule.handle_timeout(now);
  }
  // To when the next thing is to be done, and no further.
  void to_next() {
    const Instant next = schedule.poll_timeout();
    TEST_ASSERT_TRUE(next != Instant::max());
    TEST_ASSERT_TRUE(next >= now);
    to(next);
    TEST_ASSERT_TRUE(schedule.poll_timeout() > now);
  }
  RenewalEvent event(const Holder* of = nullptr) {
    void* holder = nullptr;
    const RenewalEvent event = schedule.poll_event(holder);
    if (event != RenewalEvent::none && of != nullptr) TEST_ASSERT_EQUAL(static_cast<const void*>(of), holder);
    return event;
  }
  Instant valid_until(const Holder& holder) const { return holder.place->hold.valid_until; }

  // Due at that very instant, however its place is spread.
  Holder& enter_due(const std::string& key, Instant due, Duration held_for = lease) {
    Holder& holder = enter(key, now, mutex_kind, held_for);
    const Instant confirmed_at = now - (holder.place->due - due);
    schedule.leave(*holder.place);
    holder.place = schedule.enter(hold_of(holder, confirmed_at, mutex_kind, held_for), now);
    TEST_ASSERT_EQUAL(due, holder.place->due);
    return holder;
  }

  std::vector<RenewalSchedule::Place> places_;
  std::vector<std::uint32_t> heap_;
  RenewalSchedule schedule;
  const Compensation unrelated{};
  std::deque<Holder> holders;  // Their tokens and keys are viewed.
  std::vector<SentCall> sent;
  std::size_t size = 0;  // Of the last call.
  Instant now = start;
};

// Places differ by their spread; by then every one is due.
constexpr Instant all_due = start + interval;

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- Calls -------------------------------------------------------------------------------------------------------

TEST(test_holds_that_may_not_go_together_should_go_in_calls_of_their_own) {
  RenewalSchedule::Host apart = host;
  apart.together = [](const KeptHold& one, const KeptHold& other) noexcept {
    return one.key.bytes()[0] == other.key.bytes()[0];
  };
  Desk desk(300, apart);
  for (const char* const key : {"a1", "b1", "a2", "b2", "a3"}) desk.enter(key);
  desk.to(all_due);
  TEST_ASSERT_EQUAL(2U, desk.take());
  TEST_ASSERT_EQUAL(5U, desk.sent[0].count() + desk.sent[1].count());
  for (const SentCall& call : desk.sent)
    for (const std::string& key : call.keys()) TEST_ASSERT_EQUAL(call.keys()[0][0], key[0]);
}

TEST(test_a_call_should_name_its_holders_until_it_is_answered) {
  Desk desk;
  Holder& one = desk.enter("one");
  Holder& two = desk.enter("two");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  void* holder = nullptr;
  std::size_t found = 0;
  for (std::size_t index = 0; desk.schedule.holder_in_call(call.request.tag, index, holder); ++index) {
    TEST_ASSERT_TRUE(holder == &one || holder == &two);
    ++found;
  }
  TEST_ASSERT_EQUAL(2U, found);
  desk.schedule.leave(*one.place);
  found = 0;
  for (std::size_t index = 0; desk.schedule.holder_in_call(call.request.tag, index, holder); ++index)
    found += holder == nullptr ? 10 : 1;
  TEST_ASSERT_EQUAL(11U, found);
  TEST_ASSERT_TRUE(desk.fail(call, Status::not_connected));
  TEST_ASSERT_FALSE(desk.schedule.holder_in_call(call.request.tag, 0, holder));
  // Nor when its place among the calls has another one.
  for (std::size_t other = 0; other < renewal_calls_max; ++other) {
    desk.to(desk.now + interval);
    const SentCall next = desk.take_one();
    TEST_ASSERT_FALSE(desk.schedule.holder_in_call(call.request.tag, 0, holder));
    TEST_ASSERT_TRUE(desk.schedule.holder_in_call(next.request.tag, 0, holder));
    TEST_ASSERT_TRUE(holder == &two);
    TEST_ASSERT_TRUE(desk.answer_all(next, 1));
  }
}

TEST(test_rule_of_who_goes_together_should_be_changed_while_nothing_is_on_its_way) {
  Desk desk;
  desk.enter("one");
  desk.enter("two");
  desk.schedule.set_together([](const KeptHold&, const KeptHold&) noexcept { return false; });
  desk.now = start + interval;
  TEST_ASSERT_TRUE(desk.schedule.wants_request(desk.now));
  TEST_ASSERT_EQUAL(2U, desk.take());
}

TEST(test_a_call_should_be_wanted_from_when_the_first_hold_is_due) {
  Desk desk;
  TEST_ASSERT_FALSE(desk.schedule.wants_request(desk.now));
  desk.enter("name");
  const Instant due = desk.schedule.poll_timeout();
  TEST_ASSERT_FALSE(desk.schedule.wants_request(due - 1ns));
  TEST_ASSERT_TRUE(desk.schedule.wants_request(due));
  desk.now = due;
  // It is due, and no timer says so any more, while there is no room for its call.
  TEST_ASSERT_EQUAL(0U, desk.take(1));
  TEST_ASSERT_TRUE(desk.schedule.wants_request(start));
  TEST_ASSERT_EQUAL(1U, desk.take());
  TEST_ASSERT_FALSE(desk.schedule.wants_request(desk.now));
}

TEST(test_a_schedule_should_know_its_own_places) {
  RenewalSchedule::Place places[3];
  std::uint32_t heap[1];
  const RenewalSchedule schedule(host, {places + 1, heap, 1}, 1s);
  TEST_ASSERT_FALSE(schedule.has(places[0]));
  TEST_ASSERT_TRUE(schedule.has(places[1]));
  TEST_ASSERT_FALSE(schedule.has(places[2]));
}

TEST(test_a_machines_hold_should_be_kept_as_the_machine_knows_it) {
  LockMachine machine(mutex_kind);
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("name"), {.lease = 20s, .drift = 1s}));
  const Token token(ByteView(std::string(token_text_size, 't')));
  TEST_ASSERT_EQUAL(Status::ok, machine.acquire(token, start, start + 1s));
  char space[512];
  Request request;
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok, machine.poll_request({space, sizeof space}, request, size));
  const Heard granted("+OK\r\n");
  machine.handle_reply({.tag = request.tag, .outcome = Status::ok, .nothing_ran = false, .value = granted.value},
                       start + 1ms);
  int holder = 0;
  const KeptHold hold = kept_hold(machine, &holder);
  TEST_ASSERT_TRUE(hold.holder == &holder && hold.kind == &mutex_kind && hold.token == &machine.token());
  TEST_ASSERT_EQUAL(ByteView("name"), hold.key.bytes());
  TEST_ASSERT_EQUAL(Duration(20s), hold.lease);
  TEST_ASSERT_EQUAL(Duration(19s), hold.validity);
  TEST_ASSERT_EQUAL(start, hold.confirmed_at);
  TEST_ASSERT_EQUAL(start + 19s, hold.valid_until);
}

TEST(test_a_hold_that_is_put_off_should_wait_for_a_pause_and_no_longer) {
  Desk desk;
  desk.to(all_due);
  Holder& holder = desk.enter("k");  // It would be due at once.
  desk.schedule.put_off(*holder.place, desk.now);
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.to(all_due + retry);
  TEST_ASSERT_EQUAL(1U, desk.take());
}

TEST(test_a_lost_hold_should_stay_lost_when_it_is_put_off) {
  Desk desk;
  Holder& holder = desk.enter("k");
  desk.to(start + validity);
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  desk.schedule.put_off(*holder.place, desk.now - 1s);
  TEST_ASSERT_TRUE(desk.schedule.lost(*holder.place));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(Instant::max(), desk.schedule.poll_timeout());
}

TEST(test_hastened_holds_should_be_those_of_the_schedule) {
  RenewalSchedule::Place places[2];
  std::uint32_t heap[1];
  RenewalSchedule schedule(host, {places, heap, 1}, 1s);
  Holder holder{.key = "k", .token = Token("token")};
  TEST_ASSERT_TRUE(schedule.enter(Desk::hold_of(holder, start), start) == places);
  places[1] = places[0];  // Behind the last place that it was given.
  const Instant due = places[1].due;
  schedule.hasten(start + 1s);
  TEST_ASSERT_EQUAL(start + 1s, places[0].due);
  TEST_ASSERT_EQUAL(due, places[1].due);
}

TEST(test_call_should_carry_keys_then_a_token_and_a_lease_for_each) {
  Desk desk;
  desk.enter("one");
  desk.enter("two", start, mutex_kind, 20s);
  desk.to(all_due);
  const SentCall call = desk.take_one();
  TEST_ASSERT_EQUAL("EVALSHA", call.words[0]);
  TEST_ASSERT_EQUAL(std::string(scripts::mutex_renew_batch.sha.bytes().string_view()), call.words[1]);
  TEST_ASSERT_EQUAL(9U, call.words.size());
  TEST_ASSERT_EQUAL(2U, call.count());
  for (std::size_t index = 0; index < 2; ++index) {
    const std::string key = call.keys()[index];
    TEST_ASSERT_EQUAL("token of " + key, call.token(index));
    TEST_ASSERT_EQUAL(std::string(key == "one" ? "30000" : "20000"), call.lease_of(index));
  }
  TEST_ASSERT_TRUE(Operation::renew == call.request.tag.operation);
  TEST_ASSERT_EQUAL(desk.now + 1s, call.request.deadline);
  TEST_ASSERT_TRUE(call.request.compensation == nullptr);
  TEST_ASSERT_FALSE(call.request.repeatable);
  TEST_ASSERT_FALSE(call.request.posted);
}

TEST(test_a_hold_should_be_asked_for_from_its_call_until_the_answer) {
  Desk desk;
  Holder& one = desk.enter("one");
  Holder& later_one = desk.enter("two", all_due);
  TEST_ASSERT_FALSE(desk.schedule.asks_for(*one.place));
  desk.to(all_due);
  const SentCall call = desk.take_one();
  TEST_ASSERT_TRUE(desk.schedule.asks_for(*one.place));
  TEST_ASSERT_FALSE(desk.schedule.asks_for(*later_one.place));
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_FALSE(desk.schedule.asks_for(*one.place));
}

// Each hold's names are keys of the call, and its answer is one.
TEST(test_call_for_holds_of_several_names_should_carry_all_names_and_their_number) {
  Desk desk;
  const ByteView two[] = {"b", "a"};
  const ByteView one[] = {"c"};
  const std::string keys[] = {std::string(NameList(two, 2).key().bytes().string_view()),
                              std::string(NameList(one, 1).key().bytes().string_view())};
  Holder& first = desk.enter(keys[0], start, multi_kind);
  Holder& second = desk.enter(keys[1], start, multi_kind, 20s);
  desk.enter("plain");  // Goes in a call of its own.
  desk.to(all_due);
  TEST_ASSERT_EQUAL(2U, desk.take());
  const SentCall& call = desk.sent[desk.sent[0].words.size() == 12 ? 0 : 1];
  TEST_ASSERT_EQUAL(std::string(scripts::multi_renew.sha.bytes().string_view()), call.words[1]);
  const bool in_order = call.words[3] == "a";
  const std::vector<std::string> expected =
      in_order
          ? std::vector<std::string>{"3",     "a", "b", "c", "token of " + keys[0], "30000", "2", "token of " + keys[1],
                                     "20000", "1"}
          : std::vector<std::string>{"3",     "c", "a", "b", "token of " + keys[1], "20000", "1", "token of " + keys[0],
                                     "30000", "2"};
  TEST_ASSERT_TRUE(expected == std::vector<std::string>(call.words.begin() + 2, call.words.end()));
  TEST_ASSERT_TRUE(desk.answer(call, in_order ? "*2\r\n:1\r\n:0\r\n" : "*2\r\n:0\r\n:1\r\n"));
  TEST_ASSERT_EQUAL(1, first.renewed);
  TEST_ASSERT_FALSE(desk.schedule.lost(*first.place));
  TEST_ASSERT_TRUE(desk.schedule.lost(*second.place));
}

// No more than renewal_batch_max keys a call, and never more than there is room for.
TEST(test_calls_for_many_holds_of_many_long_names_should_be_bounded) {
  Desk desk;
  for (int hold = 0; hold < 40; ++hold) {
    std::vector<std::string> texts;
    for (std::size_t index = 0; index < names_max; ++index)
      texts.push_back(std::to_string(100 + hold) + static_cast<char>('a' + index) +
                      std::string(key_size_max / names_max - 5, 'x'));
    const std::vector<ByteView> names(texts.begin(), texts.end());
    desk.enter(std::string(NameList(names.data(), names.size()).key().bytes().string_view()), start, multi_kind);
  }
  desk.to(all_due);
  std::size_t keys = 0;
  while (desk.take() != 0) {
    const std::vector<SentCall> calls = std::move(desk.sent);
    desk.sent.clear();
    for (const SentCall& call : calls) {
      TEST_ASSERT_TRUE(call.count() <= renewal_batch_max);
      TEST_ASSERT_EQUAL(std::size_t{0}, call.count() % names_max);
      keys += call.count();
      std::string reply = "*" + std::to_string(call.count() / names_max) + "\r\n";
      for (std::size_t index = 0; index < call.count() / names_max; ++index) reply += ":1\r\n";
      TEST_ASSERT_TRUE(desk.answer(call, reply));
    }
  }
  TEST_ASSERT_EQUAL(40 * names_max, keys);
  for (const Holder& holder : desk.holders) TEST_ASSERT_EQUAL(1, holder.renewed);
}

TEST(test_hastened_holds_should_all_be_renewed_at_once_and_then_in_their_turn) {
  Desk desk;
  for (const char* key : {"one", "two", "three", "four", "five"}) desk.enter(key);
  desk.to(start + 1s);
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.schedule.hasten(desk.now);
  const SentCall call = desk.take_one();
  TEST_ASSERT_EQUAL(5U, call.count());
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  desk.schedule.hasten(start);  // In vain: nothing is earlier than now.
  TEST_ASSERT_EQUAL(1U, desk.take());
  desk.schedule.hasten(desk.now);
  TEST_ASSERT_EQUAL(0U, desk.take());  // They are on their way.
}

TEST(test_nothing_should_be_sent_before_its_turn) {
  Desk desk;
  TEST_ASSERT_EQUAL(Instant::max(), desk.schedule.poll_timeout());
  desk.enter("one");
  TEST_ASSERT_EQUAL(0U, desk.take());
  const Instant due = desk.schedule.poll_timeout();
  TEST_ASSERT_TRUE(due <= start + interval);
  TEST_ASSERT_TRUE(due > start + interval - interval / 4);
  desk.to(due - 1ns);
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.to(due);
  TEST_ASSERT_EQUAL(1U, desk.take());
  TEST_ASSERT_EQUAL(1U, desk.schedule.calls_in_flight());
}

TEST(test_hold_whose_renewal_is_due_should_go_with_the_next_poll) {
  Desk desk;
  desk.now = start + interval;
  desk.enter("late", start);
  TEST_ASSERT_EQUAL(1U, desk.take());
}

TEST(test_holds_of_one_burst_should_fall_due_apart_and_no_later_than_a_third) {
  std::vector<RenewalSchedule::Place> places(1000);
  std::vector<std::uint32_t> heap(1000);
  RenewalSchedule schedule(host, {places.data(), heap.data(), 1000}, 1s);
  Holder holder{.key = "k", .token = Token("t")};
  int quarters[4] = {};
  for (std::size_t index = 0; index < 1000; ++index) {
    const RenewalSchedule::Place* place = schedule.enter(Desk::hold_of(holder, start), start);
    TEST_ASSERT_TRUE(place->due <= start + interval);
    TEST_ASSERT_TRUE(place->due > start + interval - interval / 4);
    ++quarters[(start + interval - place->due) / (interval / 16)];
  }
  for (const int quarter : quarters) TEST_ASSERT_TRUE(quarter > 200);
  TEST_ASSERT_TRUE(schedule.enter(Desk::hold_of(holder, start), start) == nullptr);
  TEST_ASSERT_EQUAL(1000U, schedule.size());
}

TEST(test_spread_should_differ_from_round_to_round) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  std::vector<std::int64_t> spreads;
  for (int round = 0; round < 4; ++round) {
    desk.to_next();
    const SentCall call = desk.take_one();
    (void)desk.answer_all(call, 1);
    spreads.push_back((call.asked_at + interval - holder.place->due).count());
    for (std::size_t before = 0; before + 1 < spreads.size(); ++before)
      TEST_ASSERT_TRUE(spreads[before] != spreads.back());
  }
}

TEST(test_holds_that_fall_due_soon_should_be_pulled_into_the_same_call) {
  Desk desk;
  std::vector<Instant> dues;
  for (int index = 0; index < 40; ++index) dues.push_back(desk.enter("k" + std::to_string(index)).place->due);
  desk.to_next();
  std::size_t expected = 0;
  for (const Instant due : dues)
    if (due <= desk.now + window) ++expected;
  TEST_ASSERT_TRUE(expected > 5);
  TEST_ASSERT_TRUE(expected < 40);
  TEST_ASSERT_EQUAL(expected, desk.take_one().count());
}

TEST(test_soonest_should_be_pulled_first_and_no_more_than_fit) {
  Desk desk;
  for (int index = 0; index < 250; ++index) desk.enter("k" + std::to_string(index));
  desk.to(all_due - interval / 4 + window);
  TEST_ASSERT_TRUE(desk.take() >= 1);
  TEST_ASSERT_EQUAL(renewal_batch_max, desk.sent[0].count());
  Instant latest = start;
  Instant earliest = Instant::max();
  for (const Holder& holder : desk.holders) {
    bool taken = false;
    for (const SentCall& call : desk.sent)
      for (const std::string& key : call.keys()) taken = taken || key == holder.key;
    if (taken)
      latest = later(latest, holder.place->due);
    else
      earliest = earlier(earliest, holder.place->due);
  }
  TEST_ASSERT_TRUE(latest <= earliest);
}

TEST(test_call_should_hold_no_more_keys_than_the_space_takes) {
  Desk desk;
  const std::string longest(key_size_max, 'k');
  for (int index = 0; index < 8; ++index) desk.enter(longest);
  desk.to(all_due);
  TEST_ASSERT_EQUAL(0U, desk.take(200));
  TEST_ASSERT_EQUAL(0U, desk.schedule.calls_in_flight());
  // Not sent for want of room: no timer, so that the driver does not turn in place.
  TEST_ASSERT_TRUE(desk.schedule.poll_timeout() > desk.now);
  TEST_ASSERT_EQUAL(renewal_calls_max, desk.take(1000));
  std::size_t keys = 0;
  for (const SentCall& call : desk.sent) {
    TEST_ASSERT_TRUE(call.count() >= 1);
    TEST_ASSERT_TRUE(call.count() <= 2);
    keys += call.count();
  }
  TEST_ASSERT_TRUE(keys > 4);
}

// Whatever the sizes of keys and tokens, what is reckoned is enough for what is written.
TEST(test_call_should_fit_whatever_the_room_is) {
  for (std::size_t room = 0; room < 1400; ++room) {
    for (const bool by_text : {false, true}) {
      Desk desk;
      desk.enter("a");
      desk.enter(std::string(key_size_max, 'k'), start, mutex_kind, lease_max).token =
          Token(ByteView(std::string(token_size_max, 't')));
      desk.enter(std::string(9, 'k'), start, mutex_kind, lease_min);
      desk.now = all_due;
      desk.enter(std::string(10, 'k'), start, mutex_kind, lease_max);
      if (by_text) {
        (void)desk.take();
        (void)desk.fail(desk.sent[0], Status::no_script);
      }
      (void)desk.take(room);
    }
  }
}

// The same of several names, which are packed into one key.
TEST(test_call_for_names_should_fit_whatever_the_room_is) {
  const auto packed = [](std::size_t count, std::size_t size) {
    std::vector<std::string> texts;
    for (std::size_t index = 0; index < count; ++index)
      texts.push_back(static_cast<char>('a' + index) + std::string(size - 1, 'x'));
    const std::vector<ByteView> names(texts.begin(), texts.end());
    return std::string(NameList(names.data(), names.size()).key().bytes().string_view());
  };
  const std::string keys[] = {packed(1, name_size_max), packed(2, 127), packed(names_max, 31),
                              packed(1, name_size_max)};
  for (std::size_t room = 0; room < 1800; ++room) {
    Desk desk;
    for (const std::string& key : keys)
      desk.enter(key, start, multi_kind, lease_max).token = Token(ByteView(std::string(token_size_max, 't')));
    desk.now = start + lease_max / 2;
    (void)desk.take(room);
    for (const SentCall& call : desk.sent) TEST_ASSERT_TRUE(call.count() != 0);
  }
}

TEST(test_fullest_call_should_fit) {
  const std::string longest(key_size_max, 'k');
  std::size_t needed = 0;
  for (std::size_t less = 0; less < 400; ++less) {
    Desk desk;
    desk.now = start + lease_max / 2;
    for (std::size_t index = 0; index < renewal_batch_max; ++index)
      desk.enter(longest, start, other_kind, lease_max).token = Token(ByteView(std::string(token_size_max, 't')));
    if (less == 0) {
      TEST_ASSERT_EQUAL(1U, desk.take());
      needed = desk.size;
      TEST_ASSERT_EQUAL(renewal_batch_max, desk.sent[0].count());
      TEST_ASSERT_TRUE(needed < 36 * 1024);
    }
    (void)desk.take(needed + 10 - less);
  }
}

TEST(test_hold_in_flight_should_not_be_asked_again_by_a_call_that_others_cause) {
  Desk desk;
  const Holder& first = desk.enter("first");
  desk.to(all_due);
  TEST_ASSERT_EQUAL("first", desk.take_one().keys()[0]);
  // Its next moment, at risk, comes within the window of the other's call.
  desk.to(start + interval * 2 - window / 2);
  desk.enter("second", start + interval - window);
  TEST_ASSERT_EQUAL("second", desk.take_one().keys()[0]);
  TEST_ASSERT_EQUAL(1U, desk.sent[1].count());
  TEST_ASSERT_TRUE(desk.answer_all(desk.sent[0], 1));
  TEST_ASSERT_EQUAL(1, first.renewed);
}

TEST(test_calls_in_flight_should_be_few_and_what_is_due_should_wait_without_a_timer) {
  Desk desk(600);
  for (int index = 0; index < 600; ++index) desk.enter("k" + std::to_string(index));
  desk.to(all_due);
  TEST_ASSERT_EQUAL(renewal_calls_max, desk.take());
  TEST_ASSERT_EQUAL(renewal_calls_max, desk.schedule.calls_in_flight());
  TEST_ASSERT_TRUE(desk.schedule.poll_timeout() > desk.now);
  TEST_ASSERT_TRUE(desk.answer_all(desk.sent[2], 1));
  TEST_ASSERT_EQUAL(1U, desk.take());
  TEST_ASSERT_EQUAL(renewal_batch_max, desk.sent[0].count());
  TEST_ASSERT_TRUE(desk.answer_all(desk.sent[0], 1));
  TEST_ASSERT_EQUAL(1U, desk.take());
  TEST_ASSERT_EQUAL(0U, desk.take());
}

TEST(test_calls_should_not_mix_kinds) {
  Desk desk;
  for (int index = 0; index < 20; ++index)
    desk.enter((index % 2 == 0 ? "m" : "o") + std::to_string(index), start, index % 2 == 0 ? mutex_kind : other_kind);
  desk.to(all_due);
  TEST_ASSERT_EQUAL(2U, desk.take());
  for (const SentCall& call : desk.sent) {
    TEST_ASSERT_EQUAL(10U, call.count());
    const Script& script = call.keys()[0][0] == 'm' ? scripts::mutex_renew_batch : scripts::reentrant_renew;
    TEST_ASSERT_EQUAL(std::string(script.sha.bytes().string_view()), call.words[1]);
    for (const std::string& key : call.keys()) TEST_ASSERT_EQUAL(call.keys()[0][0], key[0]);
  }
}

TEST(test_pulled_holds_should_be_of_the_same_kind) {
  Desk desk;
  const Holder& first = desk.enter("mutex");
  for (int index = 0; index < 30; ++index) desk.enter("other" + std::to_string(index), start, other_kind);
  while (first.place->due > desk.now) {
    desk.to_next();
    (void)desk.take();
  }
  for (const SentCall& call : desk.sent)
    for (const std::string& key : call.keys()) TEST_ASSERT_EQUAL(call.keys()[0][0], key[0]);
}

// ---- Renewed -----------------------------------------------------------------------------------------------------

// [rule 3] A renewal counts from its own send, less drift.
TEST(test_renewal_should_extend_from_its_own_send) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  desk.to(desk.now + 700ms);
  TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(all_due + validity, desk.valid_until(holder));
  TEST_ASSERT_EQUAL(all_due, holder.place->hold.confirmed_at);
  TEST_ASSERT_EQUAL(1, holder.renewed);
  TEST_ASSERT_EQUAL(all_due, holder.confirmed_at);
  TEST_ASSERT_EQUAL(all_due + validity, holder.valid_until);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(0U, desk.schedule.calls_in_flight());
  TEST_ASSERT_TRUE(desk.schedule.poll_timeout() > all_due + interval - interval / 4);
  TEST_ASSERT_TRUE(desk.schedule.poll_timeout() <= all_due + interval);
}

// [rule 3] What was asked for the lease before promises no more than that.
TEST(test_raised_lease_should_not_count_from_a_call_that_asked_for_the_shorter_one) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  const Instant raised_at = all_due - 1ms;
  desk.schedule.update(*holder.place, Desk::hold_of(holder, raised_at, mutex_kind, 2 * lease), desk.now);
  const Instant end = raised_at + 2 * lease - 2 * lease / 100 - 2ms;
  TEST_ASSERT_EQUAL(end, desk.valid_until(holder));
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(end, desk.valid_until(holder));
  TEST_ASSERT_EQUAL(0, holder.renewed);
  TEST_ASSERT_EQUAL(0U, desk.schedule.calls_in_flight());
  // Its turn comes by the longer one, and asks for it.
  desk.to(all_due + interval);
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.to(all_due + 2 * interval);
  TEST_ASSERT_EQUAL(std::to_string(2 * lease / 1ms), desk.take_one().lease_of(0));
}

TEST(test_raised_lease_should_end_the_doubt_and_lower_no_promise) {
  for (const bool told : {false, true}) {
    Desk desk;
    Holder& holder = desk.enter("one");
    desk.to(all_due);
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::loading));
    if (told) TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
    desk.to(desk.now + 1ms);
    desk.schedule.update(*holder.place, Desk::hold_of(holder, desk.now, mutex_kind, 2 * lease), desk.now);
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());  // Also if it was not told yet.
    // The next doubt is told as the first one was.
    desk.to(desk.now + 2 * interval);
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::loading));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  }

  Desk desk;
  Holder holder{.key = "one", .token = Token("token")};
  KeptHold hold = Desk::hold_of(holder, start);
  hold.valid_until = start + 9 * lease;
  holder.place = desk.schedule.enter(hold, start);
  desk.schedule.update(*holder.place, Desk::hold_of(holder, start + 1s, mutex_kind, 2 * lease), start + 1s);
  TEST_ASSERT_EQUAL(start + 9 * lease, desk.valid_until(holder));
}

TEST(test_raised_lease_should_be_spread_anew) {
  constexpr Duration share = interval / 1000;
  Desk desk;
  Holder& holder = desk.enter("one");
  const Duration before = holder.place->due - start;
  desk.schedule.update(*holder.place, Desk::hold_of(holder, start, mutex_kind, 2 * lease), start);
  const Duration after = holder.place->due - start;
  TEST_ASSERT_TRUE(after < 2 * before - share || after > 2 * before + share);
  TEST_ASSERT_TRUE(after <= 2 * interval);
}

TEST(test_update_with_the_same_lease_should_be_a_confirmation) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  desk.schedule.update(*holder.place, Desk::hold_of(holder, start + 1s), desk.now);
  TEST_ASSERT_EQUAL(start + 1s + validity, desk.valid_until(holder));
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(all_due + validity, desk.valid_until(holder));
}

TEST(test_raised_lease_should_not_revive_what_is_lost) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.to(start + validity);
  TEST_ASSERT_TRUE(desk.schedule.lost(*holder.place));
  desk.schedule.update(*holder.place, Desk::hold_of(holder, start + 1s, mutex_kind, 2 * lease), desk.now);
  TEST_ASSERT_TRUE(desk.schedule.lost(*holder.place));
  TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
}

// [rule 3] A renewal never lowers what a longer lease before it promised.
TEST(test_renewal_should_not_lower_a_later_valid_until) {
  Desk desk;
  Holder holder{.key = "one", .token = Token("token")};
  KeptHold hold = Desk::hold_of(holder, start);
  hold.valid_until = start + 2 * lease;
  holder.place = desk.schedule.enter(hold, start);
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), 1));
  TEST_ASSERT_EQUAL(start + 2 * lease, desk.valid_until(holder));
  TEST_ASSERT_EQUAL(start + 2 * lease, holder.valid_until);
  TEST_ASSERT_EQUAL(all_due, holder.confirmed_at);
}

// [rule 2] Only before the old valid_until has passed. Lost is final.
TEST(test_renewal_that_comes_after_the_end_should_revive_nothing) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(start + validity - 100ms);
  const SentCall call = desk.take_one();
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  desk.now = start + validity;  // Arrived replies are handled before the timeout.
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(0, holder.renewed);
  TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
  desk.to(desk.now + 1h);
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

TEST(test_renewal_that_comes_just_before_the_end_should_keep_the_hold) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(start + validity - 100ms);
  const SentCall call = desk.take_one();
  desk.now = start + validity - 1ns;
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(start + validity - 100ms + validity, desk.valid_until(holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

TEST(test_late_reply_should_not_revive_what_time_has_ended) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  desk.to(start + validity);
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(0, holder.renewed);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  desk.to(desk.now + 1h);
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_EQUAL(Instant::max(), desk.schedule.poll_timeout());
}

TEST(test_each_key_should_get_its_own_answer) {
  Desk desk;
  for (int index = 0; index < 5; ++index) desk.enter("k" + std::to_string(index));
  desk.to(all_due);
  const SentCall call = desk.take_one();
  TEST_ASSERT_TRUE(desk.answer(call, std::vector<int>{1, 0, 1, -1, 1}));
  for (Holder& holder : desk.holders) {
    std::size_t index = 0;
    while (call.keys()[index] != holder.key) ++index;
    TEST_ASSERT_EQUAL(index % 2 == 0 ? 1 : 0, holder.renewed);
    const bool kept = index % 2 == 0;
    TEST_ASSERT_EQUAL(kept ? all_due + validity : start + validity, desk.valid_until(holder));
  }
  const auto holder_at = [&](std::size_t index) {
    for (const Holder& holder : desk.holders)
      if (holder.key == call.keys()[index]) return &holder;
    return static_cast<const Holder*>(nullptr);
  };
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(holder_at(1)));
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(holder_at(3)));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

TEST(test_refusal_of_every_key_should_be_the_nodes_and_ask_none_alone) {
  Desk desk;
  for (int index = 0; index < 3; ++index) desk.enter("k" + std::to_string(index));
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), -1));
  desk.to(desk.now + 5s);
  TEST_ASSERT_EQUAL(3U, desk.take_one().keys().size());
}

// ---- Lost --------------------------------------------------------------------------------------------------------

// [rule 12] "Not yours" is a loss at once, with valid_until far away; nothing more is sent for it.
TEST(test_not_ours_should_be_lost_at_once_and_for_good) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), 0));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(Instant::max(), desk.schedule.poll_timeout());
  desk.schedule.confirm(*holder.place, desk.now, desk.now);
  TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
  desk.to(desk.now + 1h);
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(1U, desk.schedule.size());
  desk.schedule.leave(*holder.place);
  TEST_ASSERT_EQUAL(0U, desk.schedule.size());
}

TEST(test_wrong_type_should_be_a_loss_for_a_single_key) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::wrong_type));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
}

TEST(test_wrong_type_of_a_call_of_several_should_ask_each_alone) {
  Desk desk;
  desk.enter("one");
  desk.enter("two");
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::wrong_type));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(2U, desk.take());
}

TEST(test_hold_should_be_lost_when_valid_until_passes) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(start + validity - 1ns);
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(start + validity, desk.schedule.poll_timeout());
  desk.to(start + validity);
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(0U, desk.take());
}

TEST(test_hold_that_is_over_when_it_enters_should_be_lost_at_once) {
  Desk desk;
  desk.now = start + validity;
  const Holder& holder = desk.enter("one", start);
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.schedule.leave(*holder.place);
}

// ---- At risk -----------------------------------------------------------------------------------------------------

TEST(test_two_thirds_without_a_confirmation_should_put_at_risk_once) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to_next();  // Due; the session is not ready, so nothing is polled.
  TEST_ASSERT_EQUAL(start + interval * 2, desk.schedule.poll_timeout());
  desk.to(start + interval * 2 - 1ns);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  desk.to_next();
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  TEST_ASSERT_EQUAL(start + validity, desk.schedule.poll_timeout());
  desk.to(desk.now + 1s);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

// [rule 12] The first doubt is told, once; it is armed again when a renewal was confirmed.
TEST(test_failed_renewals_should_put_at_risk_once_until_one_is_confirmed) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  for (int round = 0; round < 3; ++round) {
    desk.to_next();
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::timed_out));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
    desk.to_next();
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::no_permission));
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
    desk.to_next();
    TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), 1));
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  }
}

TEST(test_doubt_that_is_over_before_it_was_told_should_not_be_told) {
  Desk desk;
  Holder& first = desk.enter("one");
  Holder& second = desk.enter("two");
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::timed_out));
  desk.to(desk.now + retry);
  const SentCall call = desk.take_one();
  TEST_ASSERT_TRUE(desk.answer(call, call.keys()[0] == "one" ? std::vector<int>{1, -1} : std::vector<int>{-1, 1}));
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&second));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(1, first.renewed);
}

TEST(test_doubt_should_be_told_before_the_loss) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(start + interval * 2);
  desk.to(start + validity);
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

TEST(test_events_should_be_told_in_the_order_in_which_they_came) {
  Desk desk;
  for (int index = 0; index < 4; ++index) desk.enter("k" + std::to_string(index), start + index * 1s);
  desk.to(start + 1h);
  for (const Holder& holder : desk.holders) TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

// ---- Lost replies and errors -------------------------------------------------------------------------------------

TEST(test_lost_replies_should_be_asked_again_together_after_a_while) {
  for (const Status outcome : {Status::timed_out, Status::transport_closed, Status::cancelled, Status::not_connected}) {
    Desk desk;
    desk.enter("one");
    desk.enter("two");
    desk.to(all_due);
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), outcome));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
    desk.to(desk.now + retry - 1ns);
    TEST_ASSERT_EQUAL(0U, desk.take());
    desk.to(desk.now + 1ns);
    TEST_ASSERT_EQUAL(2U, desk.take_one().count());
  }
}

TEST(test_delayed_hold_should_not_be_pulled_into_another_call) {
  Desk desk;
  Holder& failed = desk.enter("failed", start - 1s);
  desk.to(failed.place->due);
  (void)desk.take();
  (void)desk.fail(desk.sent.back(), Status::timed_out);
  const Instant again = desk.now + retry;
  TEST_ASSERT_EQUAL(again, failed.place->due);
  desk.to(desk.now + 1ms);
  desk.enter("other", desk.now - interval);
  TEST_ASSERT_EQUAL("other", desk.take_one().keys()[0]);
  desk.to(again);
  TEST_ASSERT_EQUAL("failed", desk.take_one().keys()[0]);
}

// An error of a call of several may be one key's: a cluster's proxy, one key's permission.
TEST(test_error_of_several_should_be_asked_again_at_once_a_key_a_call) {
  for (const Status outcome : {Status::cross_slot, Status::no_permission, Status::server_error, Status::moved}) {
    Desk desk;
    for (int index = 0; index < 3; ++index) desk.enter("k" + std::to_string(index));
    desk.to(all_due);
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), outcome));
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
    TEST_ASSERT_EQUAL(3U, desk.take());
    for (int index = 1; index <= 3; ++index) TEST_ASSERT_EQUAL(1U, desk.sent[static_cast<std::size_t>(index)].count());
    // One fails alone, and is asked alone again, later; a success clears the mark.
    TEST_ASSERT_TRUE(desk.answer_all(desk.sent[1], 1));
    TEST_ASSERT_TRUE(desk.answer_all(desk.sent[2], 1));
    TEST_ASSERT_TRUE(desk.fail(desk.sent[3], outcome));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
    TEST_ASSERT_EQUAL(0U, desk.take());
    desk.to(desk.now + retry);
    const SentCall again = desk.take_one();
    TEST_ASSERT_EQUAL(desk.sent[3].keys()[0], again.keys()[0]);
    TEST_ASSERT_TRUE(desk.fail(again, outcome));
    desk.to(all_due + interval);  // The two others are due, and so is it.
    TEST_ASSERT_EQUAL(2U, desk.take());
    const SentCall& pair = desk.sent[desk.sent.size() - 1];
    const SentCall& single = desk.sent[desk.sent.size() - 2];
    TEST_ASSERT_EQUAL(3U, pair.count() + single.count());
    TEST_ASSERT_TRUE(desk.answer_all(single, 1));
    TEST_ASSERT_TRUE(desk.answer_all(pair, 1));
    desk.to(desk.now + interval);
    TEST_ASSERT_EQUAL(3U, desk.take_one().count());
  }
}

// A success among others is no success alone.
TEST(test_mark_should_stay_until_a_success_alone) {
  Desk desk;
  const Holder& refused = desk.enter("refused");
  desk.enter("other");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  TEST_ASSERT_TRUE(desk.answer(call, call.keys()[0] == "refused" ? std::vector<int>{-1, 1} : std::vector<int>{1, -1}));
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&refused));
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.schedule.confirm(*refused.place, desk.now + 1ms, desk.now + 1ms);
  desk.to(desk.now + 1ms + interval);
  TEST_ASSERT_EQUAL(2U, desk.take());
  for (const std::size_t index : {1U, 2U}) {
    TEST_ASSERT_EQUAL(1U, desk.sent[index].count());
    TEST_ASSERT_TRUE(desk.answer_all(desk.sent[index], 1));
  }
  desk.to(desk.now + interval);
  TEST_ASSERT_EQUAL(2U, desk.take_one().count());
}

TEST(test_alone_should_mean_that_nothing_is_pulled_into_its_call) {
  Desk desk;
  desk.enter("one");
  desk.enter("two");
  desk.to(all_due);
  (void)desk.fail(desk.take_one(), Status::cross_slot);
  for (int index = 0; index < 20; ++index) desk.enter("k" + std::to_string(index), desk.now - interval + window / 2);
  (void)desk.take();
  for (const SentCall& call : desk.sent)
    for (const std::string& key : call.keys())
      if (&call != &desk.sent[0] && (key == "one" || key == "two")) TEST_ASSERT_EQUAL(1U, call.count());
}

// What the node refuses to everybody is not asked for key by key.
TEST(test_refusals_of_the_whole_node_should_be_asked_again_together) {
  for (const Status outcome : {Status::loading, Status::busy_script, Status::read_only, Status::stale_replica,
                               Status::too_few_replicas, Status::disk_error, Status::auth_required}) {
    Desk desk;
    desk.enter("one");
    desk.enter("two");
    desk.to(all_due);
    TEST_ASSERT_TRUE(desk.fail(desk.take_one(), outcome));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(0U, desk.take());
    desk.to(desk.now + retry);
    TEST_ASSERT_EQUAL(2U, desk.take_one().count());
  }
}

TEST(test_failures_should_be_survived_until_valid_until_and_no_longer) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  std::size_t tries = 0;
  while (desk.now < start + validity) {
    desk.to_next();
    for (; desk.take() == 1; ++tries) {
      (void)desk.fail(desk.sent.back(), Status::loading);
      TEST_ASSERT_TRUE(tries < 100);
    }
  }
  TEST_ASSERT_TRUE(tries >= 19);
  TEST_ASSERT_TRUE(tries <= 25);
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(start + validity, desk.now);
}

TEST(test_retries_of_the_shortest_leases_should_keep_the_floor) {
  Desk desk;
  const Holder& holder = desk.enter("one", start, mutex_kind, lease_min);
  desk.to_next();
  (void)desk.fail(desk.take_one(), Status::timed_out);
  TEST_ASSERT_EQUAL(desk.now + retry_delay_min, holder.place->due);
}

// [rule 11] Default-deny.
TEST(test_reply_of_another_shape_should_put_all_in_doubt_and_the_session_too) {
  const char* const odd[] = {"*1\r\n:1\r\n",
                             "*3\r\n:1\r\n:1\r\n:1\r\n",
                             "*0\r\n",
                             "$-1\r\n",
                             ":1\r\n",
                             "+OK\r\n",
                             "*2\r\n:1\r\n$1\r\n1\r\n",
                             "*2\r\n$-1\r\n:1\r\n",
                             "*2\r\n:1\r\n*1\r\n:1\r\n",
                             "$3\r\n1 1\r\n"};
  for (const char* bytes : odd) {
    TEST_MESSAGE(bytes);
    Desk desk;
    Holder& first = desk.enter("one");
    Holder& second = desk.enter("two");
    desk.to(all_due);
    TEST_ASSERT_FALSE(desk.answer(desk.take_one(), std::string(bytes)));
    TEST_ASSERT_EQUAL(0, first.renewed + second.renewed);
    TEST_ASSERT_EQUAL(start + validity, desk.valid_until(first));
    TEST_ASSERT_EQUAL(start + validity, desk.valid_until(second));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(0U, desk.schedule.calls_in_flight());
    TEST_ASSERT_EQUAL(0U, desk.take());
    desk.to(desk.now + retry);
    TEST_ASSERT_EQUAL(2U, desk.take_one().count());
  }
}

// [rule 11] An integer that no script returns is no success.
TEST(test_unlisted_integers_should_be_doubts) {
  for (const int odd : {-1, 2, -2, 10}) {
    Desk desk;
    const Holder& holder = desk.enter("one");
    desk.to(all_due);
    TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), odd));
    TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
    TEST_ASSERT_EQUAL(0, holder.renewed);
    TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
  }
}

TEST(test_replies_that_belong_to_no_call_should_change_nothing) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  for (std::uint32_t other = 0; other < 40; ++other) {
    SentCall stray = call;
    stray.request.tag.generation = other;
    if (other == call.request.tag.generation) continue;
    TEST_ASSERT_TRUE(desk.answer_all(stray, 0));
  }
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_TRUE(desk.answer_all(call, 0));  // A second one.
  TEST_ASSERT_EQUAL(1, holder.renewed);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

// ---- NOSCRIPT ----------------------------------------------------------------------------------------------------

// Nothing ran, so the same call goes out by text; it counts from its own send.
TEST(test_unknown_script_should_be_asked_again_by_its_text) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.enter("two");
  desk.to(all_due);
  const SentCall first = desk.take_one();
  desk.to(desk.now + 300ms);
  TEST_ASSERT_TRUE(desk.fail(first, Status::no_script));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  const SentCall again = desk.take_one();
  TEST_ASSERT_TRUE(again.by_text());
  TEST_ASSERT_EQUAL(std::string(scripts::mutex_renew_batch.text.string_view()), again.words[1]);
  TEST_ASSERT_EQUAL(2U, again.count());
  TEST_ASSERT_TRUE(again.request.tag.generation != first.request.tag.generation);
  TEST_ASSERT_TRUE(desk.answer_all(again, 1));
  TEST_ASSERT_EQUAL(all_due + 300ms + validity, desk.valid_until(holder));
  // From then on by its digest again.
  desk.to(desk.now + interval);
  TEST_ASSERT_FALSE(desk.take_one().by_text());
}

TEST(test_unknown_text_should_be_an_error_like_others) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::no_script));
  TEST_ASSERT_TRUE(desk.fail(desk.take_one(), Status::no_script));
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_TRUE(desk.schedule.poll_timeout() > desk.now);
  desk.to(desk.now + retry);
  TEST_ASSERT_TRUE(desk.take_one().by_text());
}

// ---- may_renew ---------------------------------------------------------------------------------------------------

TEST(test_hold_that_may_not_be_renewed_should_run_out) {
  Desk desk;
  Holder& holder = desk.enter("one");
  holder.alive = false;
  Instant at_risk;
  std::size_t turns = 0;
  for (; desk.now < start + validity; ++turns) {
    TEST_ASSERT_TRUE(turns < 100);
    desk.to_next();
    TEST_ASSERT_EQUAL(0U, desk.take());
    if (desk.now < start + validity && desk.event() == RenewalEvent::at_risk) at_risk = desk.now;
  }
  TEST_ASSERT_EQUAL(start + interval * 2, at_risk);
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_TRUE(holder.asked >= 18);
  TEST_ASSERT_TRUE(holder.asked <= 25);
  TEST_ASSERT_TRUE(turns <= 28);
}

TEST(test_hold_that_may_be_renewed_again_should_be_renewed) {
  Desk desk;
  Holder& holder = desk.enter("one");
  holder.alive = false;
  desk.to(all_due);
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_EQUAL(1, holder.asked);
  holder.alive = true;
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.to(all_due + retry);
  TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), 1));
  TEST_ASSERT_EQUAL(1, holder.renewed);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

TEST(test_those_that_may_not_be_renewed_should_not_keep_others_from_theirs) {
  Desk desk;
  for (int index = 0; index < 250; ++index) desk.enter("dead" + std::to_string(index), start - 1s).alive = false;
  Holder& holder = desk.enter("alive");
  desk.to(all_due);
  TEST_ASSERT_EQUAL("alive", desk.take_one().keys()[0]);
  TEST_ASSERT_EQUAL(1U, desk.sent[0].count());
  TEST_ASSERT_EQUAL(1, holder.asked);
  for (const Holder& dead : desk.holders) TEST_ASSERT_EQUAL(1, dead.asked);
}

// ---- Confirm -----------------------------------------------------------------------------------------------------

TEST(test_confirmation_from_elsewhere_should_count_as_a_renewal) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.to(start + interval * 2);
  desk.now = desk.now + 10ms;
  desk.schedule.confirm(*holder.place, desk.now - 10ms, desk.now);
  TEST_ASSERT_EQUAL(desk.now - 10ms + validity, desk.valid_until(holder));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());  // Overtaken.
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_TRUE(desk.schedule.poll_timeout() > desk.now + interval / 2);
  TEST_ASSERT_EQUAL(0, holder.renewed);
  desk.to(desk.now - 10ms + interval * 2);
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));  // Armed again.
}

// [rule 2] Nothing raises valid_until once it has passed.
TEST(test_confirmation_after_the_end_should_revive_nothing) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.now = start + validity;
  desk.schedule.confirm(*holder.place, desk.now - 1ms, desk.now);
  TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_EQUAL(0U, desk.take());
}

TEST(test_confirmation_that_is_older_should_lower_nothing_and_end_no_doubt) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.to(all_due);
  (void)desk.fail(desk.take_one(), Status::timed_out);
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  const Instant due = holder.place->due;
  for (const Instant old : {start, start - 1s, Instant()}) {
    desk.schedule.confirm(*holder.place, old, desk.now);
    TEST_ASSERT_EQUAL(start + validity, desk.valid_until(holder));
    TEST_ASSERT_EQUAL(start, holder.place->hold.confirmed_at);
    TEST_ASSERT_EQUAL(due, holder.place->due);
  }
  desk.to(start + interval * 2);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
}

// The reply to a call that was made before counts for no more than it says.
TEST(test_reply_that_was_overtaken_by_a_confirmation_should_lower_nothing) {
  struct {
    Status outcome;
    int answer;
    RenewalEvent expected;
  } const rows[] = {{Status::ok, 1, RenewalEvent::none},
                    {Status::ok, -1, RenewalEvent::none},
                    {Status::ok, 0, RenewalEvent::lost},
                    {Status::timed_out, 0, RenewalEvent::none},
                    {Status::server_error, 0, RenewalEvent::none}};
  for (const auto& row : rows) {
    Desk desk;
    Holder& holder = desk.enter("one");
    desk.to(all_due);
    const SentCall call = desk.take_one();
    desk.to(all_due + 500ms);
    desk.schedule.confirm(*holder.place, desk.now, desk.now);
    if (row.outcome == Status::ok)
      TEST_ASSERT_TRUE(desk.answer_all(call, row.answer));
    else
      TEST_ASSERT_TRUE(desk.fail(call, row.outcome));
    TEST_ASSERT_EQUAL(0, holder.renewed);
    TEST_ASSERT_EQUAL(row.expected, desk.event(&holder));
    TEST_ASSERT_EQUAL(all_due + 500ms + validity, desk.valid_until(holder));
    TEST_ASSERT_EQUAL(0U, desk.take());
    if (row.expected == RenewalEvent::none) {
      TEST_ASSERT_TRUE(desk.schedule.poll_timeout() > desk.now + interval / 2);
      TEST_ASSERT_TRUE(desk.schedule.poll_timeout() <= desk.now + interval);
    }
  }
}

// ---- Leave -------------------------------------------------------------------------------------------------------

TEST(test_hold_that_left_should_be_sent_and_told_nothing_of) {
  Desk desk;
  Holder& waiting = desk.enter("waiting");
  desk.schedule.leave(*waiting.place);
  TEST_ASSERT_EQUAL(Instant::max(), desk.schedule.poll_timeout());
  Holder& due = desk.enter("due", start - interval);
  desk.schedule.leave(*due.place);
  TEST_ASSERT_EQUAL(0U, desk.take());
  Holder& told = desk.enter("told", start - lease);
  Holder& other = desk.enter("other", start - lease);
  Holder& third = desk.enter("third", start - lease);
  desk.schedule.leave(*other.place);
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&told));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&third));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(2U, desk.schedule.size());
}

// [rule 2] A reply counts only for the hold that was there when it was asked.
TEST(test_reply_for_a_hold_that_left_should_not_touch_the_next_in_its_place) {
  for (const int answer : {0, 1, -1}) {
    Desk desk(2);
    Holder& first = desk.enter("first");
    Holder& neighbour = desk.enter("neighbour");
    desk.to(all_due);
    const SentCall call = desk.take_one();
    TEST_ASSERT_EQUAL(2U, call.count());
    desk.schedule.leave(*first.place);
    Holder& next = desk.enter("next", desk.now - 1s);
    TEST_ASSERT_EQUAL(first.place, next.place);
    TEST_ASSERT_EQUAL(0U, desk.take());
    TEST_ASSERT_TRUE(desk.answer_all(call, answer));
    TEST_ASSERT_EQUAL(all_due - 1s + validity, desk.valid_until(next));
    TEST_ASSERT_EQUAL(0, first.renewed + next.renewed);
    TEST_ASSERT_EQUAL(answer == 1 ? 1 : 0, neighbour.renewed);
    for (RenewalEvent event = desk.event(&neighbour); event != RenewalEvent::none;) event = desk.event(&neighbour);
    desk.to(all_due - 1s + interval);
    (void)desk.take();
    TEST_ASSERT_EQUAL("next", desk.sent[1].keys()[0]);
  }
}

// Also where the next hold is in flight itself, in another call.
TEST(test_reply_for_a_hold_that_left_should_not_answer_the_next_ones_own_call) {
  Desk desk(1);
  Holder& first = desk.enter("first");
  desk.to(all_due);
  const SentCall old = desk.take_one();
  desk.schedule.leave(*first.place);
  Holder& next = desk.enter("next", start);
  const SentCall own = desk.take_one();
  for (const int answer : {0, 1}) TEST_ASSERT_TRUE(desk.answer_all(old, answer));
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  TEST_ASSERT_EQUAL(0, next.renewed);
  TEST_ASSERT_TRUE(desk.answer_all(own, 1));
  TEST_ASSERT_EQUAL(1, next.renewed);
  TEST_ASSERT_EQUAL(all_due + validity, desk.valid_until(next));
}

TEST(test_place_should_carry_nothing_over_to_its_next_hold) {
  Desk desk(2);
  Holder& marked = desk.enter("marked");
  desk.to(all_due);
  (void)desk.answer_all(desk.take_one(), -1);  // At risk, alone and delayed.
  desk.schedule.leave(*marked.place);
  Holder& next = desk.enter("next", desk.now);
  TEST_ASSERT_EQUAL(marked.place, next.place);
  Holder& other = desk.enter("other", desk.now);
  TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
  desk.to(desk.now + interval);
  TEST_ASSERT_EQUAL(2U, desk.take_one().count());
  (void)desk.fail(desk.sent.back(), Status::timed_out);
  for (int count = 0; count < 2; ++count) TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event());
  TEST_ASSERT_EQUAL(0, next.renewed + other.renewed);
}

TEST(test_places_should_be_used_again) {
  Desk desk(3);
  for (int round = 0; round < 5; ++round) {
    Holder* entered[3];
    for (Holder*& holder : entered) holder = &desk.enter("k", desk.now);
    Holder none;
    none.key = "k";
    none.token = Token("t");
    TEST_ASSERT_TRUE(desk.schedule.enter(Desk::hold_of(none, desk.now), desk.now) == nullptr);
    for (Holder* holder : entered) desk.schedule.leave(*holder->place);
    TEST_ASSERT_EQUAL(0U, desk.schedule.size());
  }
}

// ---- Many --------------------------------------------------------------------------------------------------------

namespace {

// A server that answers after a while, and a driver, in virtual time.
struct Crowd {
  static constexpr std::size_t count = 100'000;
  static constexpr Duration lease = 2min;
  static constexpr Duration validity = lease - lease / 100 - 2ms;
  struct Member {
    Instant valid_until;
    std::uint32_t renewals = 0;
  };
  struct Waiting {
    ReplyTag tag;
    Instant at;
    std::size_t keys;
  };

  std::vector<RenewalSchedule::Place> places = std::vector<RenewalSchedule::Place>(count);
  std::vector<std::uint32_t> heap = std::vector<std::uint32_t>(count);
  std::vector<Member> members = std::vector<Member>(count);
  std::unique_ptr<char[]> space{new char[16 * 1024]};
  std::deque<Waiting> waiting;
  std::unique_ptr<Heard> replies[renewal_batch_max + 1];  // By their keys: to parse each would be most of the time.
  std::size_t calls = 0;
  std::size_t keys = 0;
  std::size_t most_at_once = 0;

  static bool may_renew(void*, Instant) noexcept { return true; }
  static void renewed(const KeptHold& hold) noexcept {
    auto& member = *static_cast<Member*>(hold.holder);
    member.valid_until = hold.valid_until;
    ++member.renewals;
  }
};

}  // namespace

// Ten minutes of a hundred thousand holds, acquired in one burst of two seconds.
TEST(test_a_hundred_thousand_holds_should_be_kept_for_ten_minutes) {
  Crowd crowd;
  RenewalSchedule schedule({Crowd::may_renew, Crowd::renewed}, {crowd.places.data(), crowd.heap.data(), Crowd::count},
                           1s);
  const Token token("0123456789abcdef0123456789abcdef");
  static std::string ones;
  ones.clear();
  for (std::size_t index = 0; index < renewal_batch_max; ++index) ones += ":1\r\n";
  Instant now = start;
  for (std::size_t index = 0; index < Crowd::count; ++index) {
    const Instant at = start + index * 20us;
    crowd.members[index].valid_until = at + Crowd::validity;
    (void)schedule.enter({.holder = &crowd.members[index],
                          .kind = &mutex_kind,
                          .key = Key("lock"),
                          .token = &token,
                          .lease = Crowd::lease,
                          .validity = Crowd::validity,
                          .confirmed_at = at,
                          .valid_until = at + Crowd::validity},
                         at);
    now = at;
  }
  const Instant end = now + 10min;
  while (now < end) {
    while (!crowd.waiting.empty() && crowd.waiting.front().at <= now) {
      const Crowd::Waiting reply = crowd.waiting.front();
      crowd.waiting.pop_front();
      std::unique_ptr<Heard>& parsed = crowd.replies[reply.keys];
      if (!parsed)
        parsed = std::make_unique<Heard>("*" + std::to_string(reply.keys) + "\r\n" + ones.substr(0, reply.keys * 4));
      TEST_ASSERT_TRUE(schedule.handle_reply(
          {.tag = reply.tag, .outcome = Status::ok, .nothing_ran = false, .value = parsed->value}, now));
    }
    schedule.handle_timeout(now);
    Request request;
    std::size_t size = 0;
    while (schedule.poll_request({crowd.space.get(), 16 * 1024}, request, size, now)) {
      ++crowd.calls;
      const std::size_t keys = (std::stoul(std::string(crowd.space.get() + 1, 4)) - 3) / 3;
      crowd.keys += keys;
      crowd.most_at_once = std::max(crowd.most_at_once, schedule.calls_in_flight());
      crowd.waiting.push_back({request.tag, now + 200us, keys});
    }
    void* holder = nullptr;
    TEST_ASSERT_EQUAL(RenewalEvent::none, schedule.poll_event(holder));
    const Instant next = schedule.poll_timeout();
    TEST_ASSERT_TRUE(next > now);
    now = crowd.waiting.empty() ? next : earlier(next, crowd.waiting.front().at);
  }
  for (const Crowd::Member& member : crowd.members) {
    TEST_ASSERT_TRUE(member.valid_until > end);
    TEST_ASSERT_TRUE(member.renewals >= 15);
    TEST_ASSERT_TRUE(member.renewals <= 19);
  }
  // Fifteen rounds at least, of a thousand full calls each; by the spread of a quarter and the pull, some more.
  TEST_ASSERT_TRUE(crowd.calls >= 15'000);
  TEST_ASSERT_TRUE(crowd.calls <= 18'000);
  TEST_ASSERT_TRUE(crowd.keys / crowd.calls >= 95);
  DOCTEST_MESSAGE(crowd.calls << " calls, " << crowd.keys << " keys, at most " << crowd.most_at_once << " at once");
}

// ---- Rarely met --------------------------------------------------------------------------------------------------

TEST(test_request_timeout_should_hold_for_the_next_call) {
  Desk desk;
  desk.enter("one");
  desk.schedule.set_request_timeout(7s);
  desk.to(all_due);
  TEST_ASSERT_EQUAL(all_due + 7s, desk.take_one().request.deadline);
}

TEST(test_place_should_be_lost_from_its_loss_until_it_is_left) {
  Desk desk(1);
  Holder& holder = desk.enter("one");
  TEST_ASSERT_FALSE(desk.schedule.lost(*holder.place));
  desk.to(all_due);
  (void)desk.answer_all(desk.take_one(), 0);
  TEST_ASSERT_TRUE(desk.schedule.lost(*holder.place));
  TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
  TEST_ASSERT_TRUE(desk.schedule.lost(*holder.place));
  desk.schedule.confirm(*holder.place, desk.now, desk.now);
  TEST_ASSERT_TRUE(desk.schedule.lost(*holder.place));
  desk.schedule.leave(*holder.place);
  TEST_ASSERT_FALSE(desk.schedule.lost(*desk.enter("next", desk.now).place));
}

TEST(test_fullest_call_should_go_where_no_byte_is_to_spare) {
  const std::string longest(key_size_max, 'k');
  for (const std::size_t spare : {std::size_t{0}, std::size_t{2}}) {
    Desk desk;
    desk.now = start + lease_max / 2;
    for (std::size_t index = 0; index < renewal_batch_max; ++index)
      desk.enter(longest, start, other_kind, lease_max).token = Token(ByteView(std::string(token_size_max, 't')));
    const std::size_t hold = 8 + key_size_max + 7 + token_size_max + 6 + 8;
    const std::size_t digest = std::strlen("*303\r\n$7\r\nEVALSHA\r\n$40\r\n\r\n$3\r\n100\r\n") + 40;
    (void)desk.take(digest + renewal_batch_max * hold + spare);
    // The length of a text has up to four digits, that of a digest two: two bytes are reckoned and not written.
    TEST_ASSERT_EQUAL(spare < 2 ? renewal_batch_max - 1 : renewal_batch_max, desk.sent[0].count());
  }
}

TEST(test_hold_should_be_pulled_up_to_the_end_of_the_window) {
  for (const Duration behind : {Duration(0), Duration(1)}) {
    Desk desk;
    const Holder& soon = desk.enter("soon");
    desk.to(soon.place->due - window - behind);
    desk.enter("now", desk.now - interval);
    TEST_ASSERT_EQUAL(behind == Duration(0) ? 2U : 1U, desk.take_one().count());
  }
}

// The window is that of the call's first, whatever is pulled.
TEST(test_pulled_hold_of_a_longer_lease_should_not_widen_the_window) {
  Desk desk;
  desk.now = start + lease_max;
  desk.enter_due("first", desk.now);
  desk.enter_due("longest", desk.now + window / 2, lease_max);
  desk.enter_due("later", desk.now + window * 2);
  TEST_ASSERT_EQUAL(2U, desk.take_one().count());
}

TEST(test_hold_that_was_delayed_should_be_pulled_again_once_it_is_renewed) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  (void)desk.fail(desk.take_one(), Status::timed_out);
  desk.to(desk.now + retry);
  TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), 1));
  desk.to(holder.place->due - window / 2);
  desk.enter("other", desk.now - interval);
  TEST_ASSERT_EQUAL(2U, desk.take_one().count());
}

TEST(test_hold_that_leaves_should_not_take_anothers_answer_along) {
  Desk desk;
  Holder& renewed = desk.enter("renewed");
  desk.to(all_due);
  TEST_ASSERT_TRUE(desk.answer_all(desk.take_one(), 1));
  const Holder& asked = desk.enter("asked", desk.now - interval);  // In the place of the other's call.
  const SentCall call = desk.take_one();
  desk.schedule.leave(*renewed.place);
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(1, asked.renewed);
}

// [rule 2] Also of the second call in flight, and where the hold was confirmed meanwhile.
TEST(test_reply_of_any_call_should_not_touch_who_came_into_a_place_that_was_left) {
  for (const std::size_t number : {0U, 1U})
    for (const bool confirmed : {false, true}) {
      Desk desk;
      desk.enter("mutex");
      desk.enter("other", start, other_kind);
      desk.to(all_due);
      TEST_ASSERT_EQUAL(2U, desk.take());
      Holder& left = desk.holders[desk.sent[number].keys()[0] == "mutex" ? 0 : 1];
      if (confirmed) desk.schedule.confirm(*left.place, desk.now + 1ms, desk.now + 1ms);
      desk.schedule.leave(*left.place);
      const Holder& next = desk.enter("next", desk.now);
      TEST_ASSERT_EQUAL(left.place, next.place);
      for (const SentCall& call : desk.sent) TEST_ASSERT_TRUE(desk.answer_all(call, 0));
      TEST_ASSERT_FALSE(desk.schedule.lost(*next.place));
    }
}

TEST(test_hold_in_flight_should_not_be_asked_again_before_its_reply) {
  Desk desk;
  Holder& holder = desk.enter("one");
  desk.to(all_due);
  const SentCall call = desk.take_one();
  desk.schedule.confirm(*holder.place, start, desk.now);  // Says nothing new.
  TEST_ASSERT_EQUAL(0U, desk.take());
  desk.to(start + interval * 2);  // At risk.
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
  TEST_ASSERT_EQUAL(0U, desk.take());
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(1, holder.renewed);
}

TEST(test_failure_of_what_was_asked_when_it_was_confirmed_should_be_no_doubt) {
  for (const bool answered : {false, true}) {
    Desk desk;
    Holder& holder = desk.enter("one");
    desk.to(all_due);
    const SentCall call = desk.take_one();
    desk.schedule.confirm(*holder.place, call.asked_at, desk.now);
    (void)(answered ? desk.answer_all(call, -1) : desk.fail(call, Status::timed_out));
    TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
    TEST_ASSERT_TRUE(holder.place->due > desk.now + interval / 2);
  }
}

TEST(test_failure_that_comes_after_the_end_should_be_a_loss_and_no_doubt) {
  for (const Duration late : {Duration(0), Duration(1)})
    for (const bool answered : {false, true}) {
      Desk desk;
      const Holder& holder = desk.enter("one");
      desk.to(all_due);
      const SentCall call = desk.take_one();
      desk.now = start + validity + late;
      (void)(answered ? desk.answer_all(call, -1) : desk.fail(call, Status::timed_out));
      TEST_ASSERT_EQUAL(RenewalEvent::lost, desk.event(&holder));
      TEST_ASSERT_EQUAL(RenewalEvent::none, desk.event());
    }
}

TEST(test_outcome_should_count_and_not_the_value_beside_it) {
  Desk desk;
  const Holder& holder = desk.enter("one");
  desk.to(all_due);
  const Heard parsed("*1\r\n:1\r\n");
  TEST_ASSERT_TRUE(desk.schedule.handle_reply(
      {.tag = desk.take_one().request.tag, .outcome = Status::timed_out, .nothing_ran = false, .value = parsed.value},
      desk.now));
  TEST_ASSERT_EQUAL(0, holder.renewed);
  TEST_ASSERT_EQUAL(RenewalEvent::at_risk, desk.event(&holder));
}

TEST(test_place_of_a_hold_that_was_asked_alone_should_not_ask_the_next_alone) {
  Desk desk(2);
  Holder& first = desk.enter("first");
  Holder& second = desk.enter("second");
  desk.to(all_due);
  (void)desk.fail(desk.take_one(), Status::cross_slot);
  desk.schedule.leave(*first.place);
  desk.schedule.leave(*second.place);
  desk.enter("third", desk.now - interval);
  desk.enter("fourth", desk.now - interval);
  TEST_ASSERT_EQUAL(2U, desk.take_one().count());
}

// A failure says nothing about the script; an answer to a call by its digest was on its way before.
TEST(test_unknown_script_should_be_asked_by_its_text_until_that_has_succeeded) {
  Desk desk;
  desk.enter("mutex");
  desk.enter("other", start, other_kind);
  desk.to(all_due);
  TEST_ASSERT_EQUAL(2U, desk.take());
  TEST_ASSERT_TRUE(desk.fail(desk.sent[0], Status::no_script));
  TEST_ASSERT_TRUE(desk.answer_all(desk.sent[1], 1));
  for (int round = 0; round < 3; ++round) {
    const SentCall call = desk.take_one();
    TEST_ASSERT_TRUE(call.by_text());
    TEST_ASSERT_TRUE(desk.fail(call, Status::timed_out));
    desk.to(desk.now + retry);
  }
  const SentCall call = desk.take_one();
  TEST_ASSERT_TRUE(call.by_text());
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  desk.to(desk.now + interval);
  (void)desk.take();
  TEST_ASSERT_FALSE(desk.sent.back().by_text());
}

// Whatever was done to it, the schedule wakes its driver for what comes first.
TEST(test_next_timeout_should_be_the_earliest_of_all_holds) {
  Desk desk(64);
  std::vector<Holder*> alive;
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int turn = 0; turn < 4000; ++turn) {
    const std::uint32_t choice = draw(8);
    if (choice < 3 && alive.size() < 64) {
      alive.push_back(&desk.enter("k", desk.now - draw(9000) * 1ms));
    } else if (choice == 3 && !alive.empty()) {
      desk.schedule.confirm(*alive[draw(static_cast<std::uint32_t>(alive.size()))]->place, desk.now, desk.now);
    } else if (choice == 4 && !alive.empty()) {
      const std::size_t index = draw(static_cast<std::uint32_t>(alive.size()));
      desk.schedule.leave(*alive[index]->place);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(index));
    } else if (choice == 5) {
      const std::size_t before = desk.sent.size();
      (void)desk.take(200 + draw(2000));
      for (std::size_t call = before; call < desk.sent.size(); ++call)
        (void)(draw(3) == 0 ? desk.fail(desk.sent[call], Status::timed_out) : desk.answer_all(desk.sent[call], 1));
    } else {
      desk.to(desk.now + draw(900) * 1ms);
    }
    Instant earliest = Instant::max();
    for (const Holder* holder : alive)
      if (!desk.schedule.lost(*holder->place)) earliest = earlier(earliest, holder->place->next);
    TEST_ASSERT_EQUAL(earliest, desk.schedule.poll_timeout());
  }
}

// ---- Who is told of it -------------------------------------------------------------------------------------------

TEST(test_a_witness_should_be_told_what_became_of_each_renewal_and_how_long_it_took) {
  holdfast::testing::Recorder recorder;
  Desk desk;
  desk.schedule.set_witness(&recorder);
  desk.enter("k");
  desk.to(all_due);
  SentCall call = desk.take_one();
  desk.to(desk.now + 6ns);
  TEST_ASSERT_TRUE(desk.answer_all(call, 1));
  TEST_ASSERT_EQUAL(std::string("renewed k ok 6"), recorder.take());
  desk.to(desk.now + interval);
  call = desk.take_one();
  desk.to(desk.now + 8ns);
  TEST_ASSERT_TRUE(desk.fail(call, Status::loading));
  TEST_ASSERT_EQUAL(std::string("renewed k loading 8"), recorder.take());
  desk.to(desk.now + retry);
  call = desk.take_one();
  TEST_ASSERT_TRUE(desk.answer_all(call, 0));
  TEST_ASSERT_EQUAL(std::string("renewed k lock_lost 0"), recorder.take());
}

TEST(test_a_witness_should_be_told_of_each_way_in_which_a_renewal_fails) {
  const struct {
    Status outcome;
    const char* answer;  // Where the outcome is ok.
    Duration later;
    const char* told;
  } rows[] = {{Status::ok, "*1\r\n:-1\r\n", 3ns, "renewed k server_error 3"},
              {Status::ok, "*1\r\n+OK\r\n", 4ns, "renewed k protocol_error 4"},
              {Status::wrong_type, nullptr, 5ns, "renewed k wrong_type 5"},
              {Status::ok, "*1\r\n:1\r\n", validity, "renewed k lock_lost"},
              {Status::no_script, nullptr, 6ns, ""}};
  for (const auto& row : rows) {
    holdfast::testing::Recorder recorder;
    Desk desk;
    desk.schedule.set_witness(&recorder);
    desk.enter("k");
    desk.to(all_due);
    const SentCall call = desk.take_one();
    desk.now = desk.now + row.later;  // The reply comes before anybody has looked at the clock.
    (void)(row.answer != nullptr ? desk.answer(call, std::string(row.answer)) : desk.fail(call, row.outcome));
    const std::string told = recorder.take();
    TEST_ASSERT_EQUAL(std::string(row.told), told.substr(0, std::strlen(row.told)));
    TEST_ASSERT_EQUAL(row.told[0] == '\0', told.empty());
  }
}

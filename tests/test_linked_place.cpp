// SPDX-License-Identifier: MIT
#include "holdfast/detail/linked_place.hpp"

#include <memory>
#include <string>

#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

struct Guest {
  explicit Guest(char letter) : name(letter) {}
  char name;
  LinkedPlace<Guest> place{this};
};

// The names of all members, first to last.
std::string names_of(const LinkedPlace<Guest>& list) {
  std::string names;
  for (const Guest* guest = list.first(); guest != nullptr; guest = guest->place.next()) names += guest->name;
  return names;
}

}  // namespace

TEST(test_an_empty_list_should_have_no_first) {
  const LinkedPlace<Guest> list;
  TEST_ASSERT_FALSE(list.linked());
  TEST_ASSERT_TRUE(list.first() == nullptr);
}

TEST(test_members_should_stand_in_the_order_in_which_they_came) {
  LinkedPlace<Guest> list;
  Guest a('a');
  Guest b('b');
  Guest c('c');
  TEST_ASSERT_FALSE(a.place.linked());
  for (Guest* const guest : {&a, &b, &c}) list.push_back(guest->place);
  TEST_ASSERT_EQUAL("abc", names_of(list));
  TEST_ASSERT_TRUE(list.linked());
  TEST_ASSERT_TRUE(b.place.linked());
  TEST_ASSERT_TRUE(c.place.next() == nullptr);
}

TEST(test_a_member_that_comes_again_should_stand_at_the_end_once) {
  LinkedPlace<Guest> list;
  Guest a('a');
  Guest b('b');
  list.push_back(a.place);
  list.push_back(b.place);
  list.push_back(a.place);
  TEST_ASSERT_EQUAL("ba", names_of(list));
  list.push_back(a.place);
  TEST_ASSERT_EQUAL("ba", names_of(list));
}

TEST(test_any_member_should_be_able_to_leave_and_to_leave_twice) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    LinkedPlace<Guest> list;
    Guest guests[3] = {Guest('a'), Guest('b'), Guest('c')};
    for (Guest& guest : guests) list.push_back(guest.place);
    guests[leaver].place.unlink();
    guests[leaver].place.unlink();
    TEST_ASSERT_FALSE(guests[leaver].place.linked());
    TEST_ASSERT_EQUAL(std::string(leaver == 0 ? "bc" : leaver == 1 ? "ac" : "ab"), names_of(list));
  }
}

TEST(test_a_member_that_goes_away_should_take_itself_out) {
  LinkedPlace<Guest> list;
  Guest a('a');
  auto b = std::make_unique<Guest>('b');
  Guest c('c');
  list.push_back(a.place);
  list.push_back(b->place);
  list.push_back(c.place);
  b.reset();
  TEST_ASSERT_EQUAL("ac", names_of(list));
  {
    Guest d('d');
    list.push_back(d.place);
  }
  TEST_ASSERT_EQUAL("ac", names_of(list));
}

TEST(test_a_list_that_goes_away_should_leave_its_members_linked_to_each_other_alone) {
  Guest a('a');
  Guest b('b');
  {
    LinkedPlace<Guest> list;
    list.push_back(a.place);
    list.push_back(b.place);
  }
  TEST_ASSERT_TRUE(a.place.next() == &b);
  b.place.unlink();
  TEST_ASSERT_FALSE(a.place.linked());
}

TEST(test_a_member_of_another_list_should_change_over) {
  LinkedPlace<Guest> one;
  LinkedPlace<Guest> other;
  Guest a('a');
  Guest b('b');
  one.push_back(a.place);
  one.push_back(b.place);
  other.push_back(a.place);
  TEST_ASSERT_EQUAL("b", names_of(one));
  TEST_ASSERT_EQUAL("a", names_of(other));
}

TEST(test_take_all_should_empty_the_other_list_and_keep_its_order) {
  LinkedPlace<Guest> one;
  LinkedPlace<Guest> other;
  Guest a('a');
  Guest b('b');
  Guest c('c');
  one.push_back(a.place);
  one.take_all(other);
  TEST_ASSERT_EQUAL("a", names_of(one));
  other.push_back(b.place);
  other.push_back(c.place);
  one.take_all(other);
  TEST_ASSERT_EQUAL("abc", names_of(one));
  TEST_ASSERT_FALSE(other.linked());
}

// SPDX-License-Identifier: MIT
//
// A list of hosts is one text, which is read again whenever somebody asks for a host of it.
#include "holdfast/core/host_list.hpp"

#include <string>

#include "place_number.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

std::string at(const HostList& list, std::size_t index) {
  ByteView host = "untouched";
  std::uint16_t port = 7;
  if (!list.at(index, host, port)) {
    TEST_ASSERT_EQUAL("untouched", std::string(host.string_view()));
    TEST_ASSERT_EQUAL(7, port);
    return "none";
  }
  return std::string(host.string_view()) + " " + std::to_string(port);
}

}  // namespace

TEST(test_hosts_should_be_counted_and_read_by_their_places) {
  const HostList list{"a,b:2,[::1],[fe80::2]:3", 26379};
  TEST_ASSERT_EQUAL(std::size_t{4}, list.count());
  TEST_ASSERT_EQUAL("a 26379", at(list, 0));
  TEST_ASSERT_EQUAL("b 2", at(list, 1));
  TEST_ASSERT_EQUAL("::1 26379", at(list, 2));
  TEST_ASSERT_EQUAL("fe80::2 3", at(list, 3));
  TEST_ASSERT_EQUAL("none", at(list, 4));
  TEST_ASSERT_EQUAL("none", at(list, 5));
  TEST_ASSERT_TRUE(list.problem() == nullptr);
}

TEST(test_an_empty_list_should_name_nobody) {
  for (const HostList& list : {HostList{ByteView(), 1}, HostList{"", 1}}) {
    TEST_ASSERT_EQUAL(std::size_t{0}, list.count());
    TEST_ASSERT_EQUAL("none", at(list, 0));
    TEST_ASSERT_EQUAL("none", at(list, 1));
    TEST_ASSERT_EQUAL(std::uint64_t{0}, list.sum());
    TEST_ASSERT_EQUAL("it must name 1 to 9 hosts", std::string(list.problem()));
  }
}

TEST(test_a_list_should_have_a_number_of_its_hosts_whatever_their_order) {
  const std::uint64_t a = PlaceNumber().add("a", 1).get();
  const std::uint64_t b = PlaceNumber().add("b", 2).get();
  TEST_ASSERT_TRUE(a != b);
  TEST_ASSERT_TRUE(a != PlaceNumber().add("a", 2).get());
  TEST_ASSERT_TRUE(a != PlaceNumber().add("a", 257).get());  // The port has two bytes.
  TEST_ASSERT_EQUAL(a, (HostList{"a", 1}.sum()));
  TEST_ASSERT_EQUAL(a + b, (HostList{"a:1,b:2", 6379}.sum()));
  TEST_ASSERT_EQUAL(a + b, (HostList{"b:2,a", 1}.sum()));
}

// SPDX-License-Identifier: MIT
//
// A file that is there as a whole or not at all.
#include "../src/cli/new_file.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "unity_style.hpp"

using namespace holdfast::cli;

namespace {

std::string folder;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::size_t files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

}  // namespace

static void setUp() {
  char name[] = "/tmp/holdfast-test-XXXXXX";
  TEST_ASSERT_TRUE(::mkdtemp(name) != nullptr);
  folder = name;
}
static void tearDown() { std::filesystem::remove_all(folder); }

TEST(test_a_file_should_be_written_and_replaced_with_its_rights) {
  const std::string path = folder + "/a";
  TEST_ASSERT_EQUAL(std::string(), write_new_file(path, "one"));
  TEST_ASSERT_EQUAL(std::string("one"), content(path));
  TEST_ASSERT_EQUAL(0, ::chmod(path.c_str(), 0600));
  TEST_ASSERT_EQUAL(std::string(), write_new_file(path, std::string("two\0", 4)));
  TEST_ASSERT_EQUAL(std::string("two\0", 4), content(path));
  struct stat file {};
  TEST_ASSERT_EQUAL(0, ::stat(path.c_str(), &file));
  TEST_ASSERT_EQUAL(0600U, file.st_mode & 0777U);
  TEST_ASSERT_EQUAL(1U, files());
}

TEST(test_what_a_link_leads_to_should_be_replaced_and_the_link_stay) {
  const std::string path = folder + "/link";
  std::ofstream(folder + "/a") << "one";
  TEST_ASSERT_EQUAL(0, ::symlink("a", path.c_str()));
  TEST_ASSERT_EQUAL(std::string(), write_new_file(path, "two"));
  TEST_ASSERT_EQUAL(std::string("two"), content(folder + "/a"));
  TEST_ASSERT_TRUE(std::filesystem::is_symlink(path));
}

TEST(test_what_cannot_be_replaced_should_be_said_and_stay) {
  TEST_ASSERT_FALSE(write_new_file("/dev/null", "x").empty());
  TEST_ASSERT_FALSE(write_new_file(folder, "x").empty());
  TEST_ASSERT_FALSE(write_new_file(folder + "/", "x").empty());
  TEST_ASSERT_FALSE(write_new_file(folder + "/none/a", "x").empty());
  const std::string fifo = folder + "/fifo";
  TEST_ASSERT_EQUAL(0, ::mkfifo(fifo.c_str(), 0600));
  TEST_ASSERT_FALSE(write_new_file(fifo, "x").empty());
  TEST_ASSERT_EQUAL(1U, files());
}

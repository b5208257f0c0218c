// SPDX-License-Identifier: MIT
//
// A file that is there as a whole or not at all.
#include "../src/cli/new_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

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

// Who was killed while it wrote has left what it had, with rights and a length of its own.
TEST(test_what_a_killed_writer_left_should_be_taken_and_not_be_joined_by_more) {
  const std::string left = folder + "/.holdfast-a.new";
  std::ofstream(left) << "the half of something that is longer than what comes";
  TEST_ASSERT_EQUAL(0, ::chmod(left.c_str(), 0600));
  TEST_ASSERT_EQUAL(std::string(), write_new_file(folder + "/a", "one"));
  TEST_ASSERT_EQUAL(std::string("one"), content(folder + "/a"));
  struct stat file {};
  TEST_ASSERT_EQUAL(0, ::stat((folder + "/a").c_str(), &file));
  TEST_ASSERT_TRUE((file.st_mode & 0400U) != 0 && file.st_nlink == 1);
  TEST_ASSERT_EQUAL(1U, files());
}

// Where others may write into the folder, they know the name.
TEST(test_what_somebody_put_into_the_way_should_not_be_written_to) {
  const std::string victim = folder + "/victim";
  const std::string trap = folder + "/.holdfast-a.new";
  std::ofstream(victim) << "precious";
  for (const int which : {0, 1, 2}) {
    if (which == 0) TEST_ASSERT_EQUAL(0, ::symlink("victim", trap.c_str()));
    if (which == 1) TEST_ASSERT_EQUAL(0, ::link(victim.c_str(), trap.c_str()));
    if (which == 2) TEST_ASSERT_EQUAL(0, ::mkfifo(trap.c_str(), 0600));
    TEST_ASSERT_EQUAL(std::string(), write_new_file(folder + "/a", "one"));
    TEST_ASSERT_EQUAL(std::string("precious"), content(victim));
    TEST_ASSERT_EQUAL(std::string("one"), content(folder + "/a"));
    TEST_ASSERT_FALSE(std::filesystem::is_symlink(folder + "/a"));
    TEST_ASSERT_EQUAL(2U, files());
  }
  TEST_ASSERT_EQUAL(0, ::mkdir(trap.c_str(), 0700));
  TEST_ASSERT_FALSE(write_new_file(folder + "/a", "two").empty());
  TEST_ASSERT_EQUAL(std::string("one"), content(folder + "/a"));
}

TEST(test_somebody_who_writes_should_be_waited_for_and_not_for_ever) {
  const std::string taken = folder + "/.holdfast-a.new";
  const int file = ::open(taken.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  TEST_ASSERT_TRUE(file >= 0 && ::write(file, "mine", 4) == 4 && ::flock(file, LOCK_EX) == 0);
  TEST_ASSERT_EQUAL(std::string("another process writes it"), write_new_file(folder + "/a", "one"));
  TEST_ASSERT_EQUAL(std::string("mine"), content(taken));
  ::close(file);
  TEST_ASSERT_EQUAL(std::string(), write_new_file(folder + "/a", "one"));
}

TEST(test_a_name_of_any_length_should_have_a_place_to_be_written_at) {
  const std::string path = folder + "/" + std::string(255, 'a');
  TEST_ASSERT_EQUAL(std::string(), write_new_file(path, "one"));
  TEST_ASSERT_EQUAL(std::string("one"), content(path));
}

// Of several who write at once each is read as a whole.
TEST(test_a_reader_should_never_see_a_part_of_a_file_nor_of_two) {
  constexpr int writers = 3;
  const std::string path = folder + "/a";
  TEST_ASSERT_EQUAL(std::string(), write_new_file(path, std::string(5000, 'z')));
  std::atomic<int> left = writers;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      for (int round = 0; round < 30; ++round)
        (void)write_new_file(
            path, std::string(static_cast<std::size_t>(4000 + 700 * writer), static_cast<char>('a' + writer)));
      --left;
    });
  bool whole = true;
  while (left != 0 && whole) {
    const std::string text = content(path);
    whole = text.size() >= 4000 && text.find_first_not_of(text[0]) == std::string::npos &&
            (text[0] == 'z' || text.size() == 4000 + 700 * static_cast<std::size_t>(text[0] - 'a'));
  }
  for (std::thread& thread : threads) thread.join();
  TEST_ASSERT_TRUE(whole);
  TEST_ASSERT_EQUAL(1U, files());
}

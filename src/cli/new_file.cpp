// SPDX-License-Identifier: MIT
#include "new_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>

namespace holdfast::cli {

namespace {

constexpr mode_t new_mode = 0644;  // Less the umask.

std::string words_of(int number) { return std::generic_category().message(number); }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file itself, where a link leads to one.
std::string target_of(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

// To be asked for it has to be changed, and another thread may start a process meanwhile: so it is asked for once.
mode_t mask() noexcept {
  static const mode_t asked = [] {
    const mode_t ours = ::umask(0);
    ::umask(ours);
    return ours;
  }();
  return asked;
}

// Where it is written until it is complete.
std::string workplace_of(const std::string& target) {
  // Of 255 bytes that a name may have. Two long names that begin alike have one place, and write one after the other.
  constexpr std::size_t name_part_max = 200;
  return folder_of(target) + "/.holdfast-" + target.substr(target.rfind('/') + 1).substr(0, name_part_max) + ".new";
}

// Is this open file still the one of that name, a plain one, and nobody else's? `made` by us just now, it is.
bool is_ours(int file, const std::string& path, bool made, bool& gone) noexcept {
  struct stat opened {};
  struct stat there {};
  gone = ::fstat(file, &opened) != 0 || ::lstat(path.c_str(), &there) != 0 || opened.st_dev != there.st_dev ||
         opened.st_ino != there.st_ino;
  return !gone && S_ISREG(opened.st_mode) && opened.st_nlink == 1 && (made || opened.st_uid == ::geteuid());
}

// The descriptor of that file, which nobody else writes as long as it is open; or -1, with errno: EBUSY where somebody does. Who
// was killed has left its file, which is taken; what somebody else has put there is taken away first, as it may be a trap.
int open_alone(const std::string& path) noexcept {
  constexpr int tries_max = 100;
  constexpr int pause_milliseconds = 10;
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  for (int tries = 0; tries < tries_max; ++tries) {
    int file = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
    const bool made = file >= 0;
    if (!made && errno != EEXIST) return -1;
    if (!made) file = ::open(path.c_str(), flags);
    const int number = errno;
    if (file < 0 && number == ENOENT) continue;  // Another one has just finished.
    // Some file systems have no such locks.
    const bool locked = file >= 0 && (::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    bool gone = false;
    if (locked && is_ours(file, path, made, gone)) return file;
    const bool foreign = file < 0 || (locked && !gone);
    if (file >= 0) ::close(file);
    if (foreign && ::unlink(path.c_str()) != 0) {
      errno = file < 0 ? number : errno;
      return -1;
    }
    if (file >= 0 && !locked) (void)::poll(nullptr, 0, pause_milliseconds);
  }
  errno = EBUSY;
  return -1;
}

bool write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return false;
  }
  return ::fsync(file) == 0;
}

}  // namespace

std::string new_file_problem(const std::string& path) {
  (void)mask();
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0) {
    // A rename would put a file in the place of a device.
    if (!S_ISREG(file.st_mode)) return "it is there, and is no regular file";
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
      struct stat ours {};
      if (::fstat(descriptor, &ours) == 0 && ours.st_dev == file.st_dev && ours.st_ino == file.st_ino)
        return "it is the file that this command prints to";
    }
  } else if (errno != ENOENT) {
    return words_of(errno);
  }
  if (path.back() == '/') return "it is a folder";
  if (::access(folder_of(target_of(path)).c_str(), W_OK | X_OK) != 0) return "its folder: " + words_of(errno);
  return "";
}

std::string write_new_file(const std::string& path, std::string_view text) {
  if (std::string problem = new_file_problem(path); !problem.empty()) return problem;
  const std::string target = target_of(path);
  const std::string beside = workplace_of(target);
  const int file = open_alone(beside);
  if (file < 0) return errno == EBUSY ? "another process writes it" : words_of(errno);
  struct stat before {};
  const mode_t mode = ::stat(target.c_str(), &before) == 0 ? before.st_mode & 0777U : new_mode & ~mask();
  const bool done = ::ftruncate(file, 0) == 0 && ::fchmod(file, mode) == 0 && write_all(file, text) &&
                    ::rename(beside.c_str(), target.c_str()) == 0;
  const int number = errno;
  if (!done) (void)::unlink(beside.c_str());  // Before anybody else has the lock.
  // What closing could say, fsync() has said.
  (void)::close(file);
  return done ? "" : words_of(number);
}

}  // namespace holdfast::cli

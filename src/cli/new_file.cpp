// SPDX-License-Identifier: MIT
#include "new_file.hpp"

#include <fcntl.h>
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
  std::string beside = folder_of(target) + "/.holdfast-XXXXXX";
  const int file = ::mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) return words_of(errno);
  struct stat before {};
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = ::stat(target.c_str(), &before) == 0 ? before.st_mode & 0777U : new_mode & ~mask;
  bool done = ::fchmod(file, mode) == 0 && write_all(file, text);
  int number = errno;
  if (::close(file) != 0 && done) {
    done = false;
    number = errno;
  }
  if (done && ::rename(beside.c_str(), target.c_str()) != 0) {
    done = false;
    number = errno;
  }
  if (done) return "";
  (void)::unlink(beside.c_str());
  return words_of(number);
}

}  // namespace holdfast::cli

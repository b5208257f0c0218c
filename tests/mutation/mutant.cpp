// SPDX-License-Identifier: MIT
#include "mutant.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace holdfast::mutation {

alignas(1 << 12) unsigned char reached[count_max];  // Whole pages.

namespace {

// HOLDFAST_REACHED names a file that gets a byte for each mutant: 1 where the run came past it. The record is in the file itself,
// so that what a child comes past counts, too, and what a run that crashes came past. Runners may have calls of their own by
// these names, hence syscall().
int choose() noexcept {
  if (const char* const name = std::getenv("HOLDFAST_REACHED"); name != nullptr) {
    const long file = ::syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const long grown = ::syscall(SYS_ftruncate, file, sizeof reached);
    const long place =
        ::syscall(SYS_mmap, reached, sizeof reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (file < 0 || grown != 0 || place < 0) std::perror("HOLDFAST_REACHED");
    ::syscall(SYS_close, file);
  }
  const char* const text = std::getenv("HOLDFAST_MUTANT");
  return text != nullptr ? std::atoi(text) : 0;
}

}  // namespace

int chosen = choose();

}  // namespace holdfast::mutation

// SPDX-License-Identifier: MIT
//
// What a forked child must not share with its parent stands in a page that the kernel wipes in the child
// (MADV_WIPEONFORK, Linux 4.14). Where the kernel does not, the process id tells, at the cost of a system call.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "holdfast/client.hpp"

namespace holdfast {

// Sixteen tokens a getrandom(): 0.06 system calls a hold. getrandom() never returns less than asked up to 256 bytes.
inline constexpr std::size_t entropy_pool_size = 256;

struct Client::WipedPage {
  std::uint32_t alive;      // 1; 0 in a forked child.
  std::uint32_t pool_left;  // Random bytes not handed out yet, at the pool's end. Wiped: none.
  pid_t owner;              // 0: the kernel wipes the page. Otherwise the process that may use it.
  char client_id[36];       // A UUID as text; begins with NUL until it is drawn.
  unsigned char pool[entropy_pool_size];
};

}  // namespace holdfast

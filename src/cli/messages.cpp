// SPDX-License-Identifier: MIT
#include "messages.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast::cli {

void say(std::string_view line) {
  // A pipe that is ready takes this many bytes without blocking (PIPE_BUF on Linux).
  constexpr std::size_t text_size_max = 4096;
  constexpr int patience_milliseconds = 10;
  std::string bytes = "holdfast: ";
  bytes += line;
  if (bytes.size() >= text_size_max) bytes.resize(text_size_max - 1);
  bytes += '\n';
  pollfd entry = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&entry, 1, patience_milliseconds) != 1 || (entry.revents & POLLOUT) == 0) return;
  // There is nobody left to tell when this fails.
  if (::write(STDERR_FILENO, bytes.data(), bytes.size()) < 0) return;
}

std::string output_problem() {
  return errno == EPIPE ? "" : "standard output cannot be written: " + std::generic_category().message(errno);
}

bool print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd entry = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      (void)::poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      if (const std::string problem = output_problem(); !problem.empty()) say(problem);
      return false;
    }
  }
  return true;
}

std::string escaped(BytesArgument bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes.view()) {
    const auto value = static_cast<unsigned char>(byte);
    if (byte == '\\') {
      text += "\\\\";
    } else if (value >= ' ' && value <= '~') {
      text += byte;
    } else {
      text += "\\x";
      text += digits[value >> 4];
      text += digits[value & 0xf];
    }
  }
  return text;
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
//
// Where passwords come from, and what keeps them secret: other users read command lines, a command and all that it starts
// read its environment, and what is written once into a log stays there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// What the environment says of servers. An empty HOLDFAST_URL is none that can be understood, so that a script's mistake never
// ends at the default server; the others count as not set.
struct Environment {
  std::optional<std::string> urls;           // HOLDFAST_URL
  std::optional<std::string> password;       // HOLDFAST_PASSWORD
  std::optional<std::string> password_file;  // HOLDFAST_PASSWORD_FILE
  std::optional<std::string> credential;     // holdfast.password in CREDENTIALS_DIRECTORY, where it is there.
  std::optional<std::string> token;          // HOLDFAST_TOKEN

  [[nodiscard]] static Environment inherited();
};

// The password's bytes in a URL, as they are written there, also in one that is malformed; empty: there is none.
[[nodiscard]] std::string_view password_in(std::string_view url) noexcept;
// That of the sentinels, after the '?' of a redis-sentinel URL; empty where there is none.
[[nodiscard]] std::string_view sentinel_password_in(std::string_view url) noexcept;

// A line of a file, without its end, which may be that of Windows. An error is a sentence without a full stop.
struct LineRead {
  std::string line;
  std::string error;
  bool last = false;  // Nothing stands after it.
};
// The first one. It is an error if that is longer than `size_max`, or cannot be read. REQUIRES: at most line_size_max.
[[nodiscard]] LineRead read_line(const std::string& path, std::size_t size_max);
inline constexpr std::size_t line_size_max = 1024;
// A file of one line with a password.
[[nodiscard]] LineRead read_password(const std::string& path);

// Overwrites the bytes.
void wipe(std::string& text) noexcept;

// Overwrites the passwords of our URLs in our own command line, where ps and /proc show them. What stands behind the first
// "--" is the command's, and stays.
void conceal_arguments(int count, char** arguments) noexcept;

// Overwrites the passwords in our own environment, where /proc shows them. REQUIRES: what they say has been copied.
void conceal_environment() noexcept;

// From here on no core file of ours is written: passwords and tokens are in our memory as long as we may have to connect anew.
void forbid_core_files() noexcept;
// In a process that becomes a command: what was allowed before is allowed again.
void restore_core_files() noexcept;

// Takes the variables with a password, or with where it is, out of the environment that a command will get. HOLDFAST_URL is one
// of them only where it has a password in it. True if it was taken.
bool take_secrets_from_environment() noexcept;

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
#include "secrets.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "holdfast/limits.hpp"

namespace holdfast::cli {

namespace {

constexpr char url_variable[] = "HOLDFAST_URL";
constexpr char password_variable[] = "HOLDFAST_PASSWORD";
constexpr char password_file_variable[] = "HOLDFAST_PASSWORD_FILE";

// Before forbid_core_files().
std::optional<rlimit> core_limit;

std::optional<std::string> variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? std::nullopt : std::optional<std::string>(text);
}

// What systemd hands to a unit that asks for it.
std::optional<std::string> password_credential() {
  const std::optional<std::string> folder = variable("CREDENTIALS_DIRECTORY");
  if (!folder) return std::nullopt;
  const std::string path = *folder + "/holdfast.password";
  return ::access(path.c_str(), F_OK) == 0 ? std::optional<std::string>(path) : std::nullopt;
}

// Of a list of URLs with spaces between them, one after the other.
template <class Use>
void for_each_url(char* text, Use&& use) {
  while (*text != '\0') {
    const std::size_t size = ::strcspn(text, " ");
    use(std::string_view(text, size));
    text += size;
    text += ::strspn(text, " ");
  }
}

void conceal_url(char* text) noexcept {
  for_each_url(text, [text](std::string_view url) {
    const std::string_view password = password_in(url);
    if (!password.empty()) ::memset(text + (password.data() - text), '*', password.size());
    const std::string_view other = sentinel_password_in(url);
    if (!other.empty()) ::memset(text + (other.data() - text), '*', other.size());
  });
}

}  // namespace

Environment Environment::inherited() {
  const char* const urls = std::getenv(url_variable);
  return {.urls = urls == nullptr ? std::nullopt : std::optional<std::string>(urls),
          .password = variable(password_variable),
          .password_file = variable(password_file_variable),
          .credential = password_credential(),
          .token = variable("HOLDFAST_TOKEN")};
}

// Between the first ':' of what stands in front of the last '@', and that: so are unescaped bytes of a password part of it.
std::string_view password_in(std::string_view url) noexcept {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t end = url.rfind('@');
  if (end == std::string_view::npos || end < begin) return {};
  const std::size_t colon = url.find(':', begin);
  return colon < end ? url.substr(colon + 1, end - colon - 1) : std::string_view();
}

std::string_view sentinel_password_in(std::string_view url) noexcept {
  constexpr std::string_view setting = "sentinel_password=";
  const std::size_t begin = url.find(setting);
  if (begin == std::string_view::npos) return {};
  url = url.substr(begin + setting.size());
  return url.substr(0, url.find('&'));
}

LineRead read_line(const std::string& path, std::size_t size_max) {
  LineRead read;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  char bytes[line_size_max + 3];  // A line's end, and a byte too much.
  const std::size_t space = size_max + 3;
  std::size_t size = 0;
  ssize_t count = file < 0 ? -1 : 0;
  while (file >= 0 && size < space) {
    count = ::read(file, bytes + size, space - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (count < 0) read.error = "cannot read it: " + std::generic_category().message(errno);
  if (file >= 0) ::close(file);
  if (count < 0) return read;
  const std::string_view text(bytes, size);
  const std::size_t end = std::min(text.find('\n'), size);
  read.last = end + 1 >= size;
  std::string_view line = text.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.size() > size_max)
    read.error = "its first line has more than " + std::to_string(size_max) + " bytes";
  else
    read.line = line;
  ::explicit_bzero(bytes, sizeof bytes);
  return read;
}

LineRead read_password(const std::string& path) {
  static_assert(password_size_max <= line_size_max);
  LineRead read = read_line(path, password_size_max);
  if (!read.error.empty()) return read;
  if (!read.last || read.line.find('\0') != std::string::npos)
    read.error = "it is one line with the password, and has more";
  else if (read.line.empty())
    read.error = "there is no password in it";
  if (!read.error.empty()) wipe(read.line);
  return read;
}

void wipe(std::string& text) noexcept { ::explicit_bzero(text.data(), text.size()); }

void conceal_arguments(int count, char** arguments) noexcept {
  constexpr std::string_view option = "--url";
  for (int index = 1; index < count; ++index) {
    const std::string_view word = arguments[index];
    if (word == "--") return;
    if (word == option && index + 1 < count) conceal_url(arguments[index + 1]);
    if (word.size() > option.size() && word.substr(0, option.size()) == option && word[option.size()] == '=')
      conceal_url(arguments[index] + option.size() + 1);
  }
}

void conceal_environment() noexcept {
  if (char* const urls = std::getenv(url_variable)) conceal_url(urls);
  if (char* const password = std::getenv(password_variable)) ::memset(password, '*', ::strlen(password));
}

bool take_secrets_from_environment() noexcept {
  ::unsetenv(password_variable);
  ::unsetenv(password_file_variable);
  bool secret = false;
  if (char* const urls = std::getenv(url_variable))
    for_each_url(urls, [&secret](std::string_view url) {
      secret = secret || !password_in(url).empty() || !sentinel_password_in(url).empty();
    });
  if (secret) ::unsetenv(url_variable);
  return secret;
}

void forbid_core_files() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  core_limit = limit;
  // A file needs more than a byte, and a program that takes cores from the kernel gets none where the limit is one: core(5).
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1);
  (void)::setrlimit(RLIMIT_CORE, &limit);
}

void restore_core_files() noexcept {
  if (core_limit) (void)::setrlimit(RLIMIT_CORE, &*core_limit);
}

}  // namespace holdfast::cli

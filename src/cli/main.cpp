// SPDX-License-Identifier: MIT
//
// The holdfast command.
#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <variant>

#include "acquire_command.hpp"
#include "doctor_command.hpp"
#include "exit_codes.hpp"
#include "info_command.hpp"
#include "messages.hpp"
#include "options.hpp"
#include "release_command.hpp"
#include "run_command.hpp"
#include "secrets.hpp"
#include "token_command.hpp"
#include "watch_command.hpp"

namespace {

using namespace holdfast::cli;

// With standard descriptors closed, a socket of ours would get the number of standard error, and our messages would go
// to the server. What stands in their place refuses what they are for: a text that nobody can read was not printed. The
// command still finds them closed.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // The lowest number that is free is the one that is looked at.
    if (::fcntl(descriptor, F_GETFD) < 0)
      (void)::open("/dev/null", (descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int execute(const Answered& answered) { return answered.exit_code; }
int execute(RunOptions& options) { return run(options); }
int execute(AcquireOptions& options) { return acquire(options); }
int execute(const RenewOptions& options) { return renew(options); }
int execute(const TokenReleaseOptions& options) { return release_by_token(options); }
int execute(const InfoOptions& options) { return info(options); }
int execute(DoctorOptions& options) { return doctor(options); }
int execute(WatchOptions& options) { return watch(options); }
int execute(const ReleaseOptions& options) { return release(options); }

// What it says is in the invocation by now.
Invocation take_invocation(int argument_count, char** arguments) {
  Environment environment = Environment::inherited();
  Invocation invocation = read_command_line(argument_count, arguments, environment);
  for (std::optional<std::string>* const text : {&environment.urls, &environment.password})
    if (*text) wipe(**text);
  conceal_arguments(argument_count, arguments);
  const RunOptions* const options = std::get_if<RunOptions>(&invocation);
  if (options == nullptr || !options->keep_environment) conceal_environment();
  return invocation;
}

}  // namespace

int main(int argument_count, char** arguments) {
  occupy_standard_descriptors();
  forbid_core_files();
  try {
    Invocation invocation = take_invocation(argument_count, arguments);
    return std::visit([](auto& chosen) { return execute(chosen); }, invocation);
  } catch (const std::exception& error) {
    say(std::string("a mistake of ours, please report it: ") + error.what());
    return exit_software;
  }
}

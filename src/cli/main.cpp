// SPDX-License-Identifier: MIT
//
// The holdfast command.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <variant>

#include "exit_codes.hpp"
#include "info_command.hpp"
#include "messages.hpp"
#include "options.hpp"
#include "release_command.hpp"
#include "run_command.hpp"

namespace {

using namespace holdfast::cli;

// With standard descriptors closed, a socket of ours would get the number of standard error, and our messages would go
// to the server. The command still finds them closed.
void occupy_standard_descriptors() {
  int descriptor = 0;
  do descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) ::close(descriptor);
}

int execute(const Answered& answered) { return answered.exit_code; }
int execute(const RunOptions& options) { return run(options); }
int execute(const InfoOptions& options) { return info(options); }
int execute(const ReleaseOptions& options) { return release(options); }

}  // namespace

int main(int argument_count, char** arguments) {
  occupy_standard_descriptors();
  try {
    const Invocation invocation = read_command_line(argument_count, arguments, std::getenv("HOLDFAST_URL"));
    return std::visit([](const auto& chosen) { return execute(chosen); }, invocation);
  } catch (const std::exception& error) {
    say(std::string("a mistake of ours, please report it: ") + error.what());
    return exit_software;
  }
}

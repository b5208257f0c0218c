// SPDX-License-Identifier: MIT
//
// What --help and --version print. Written by hand, so that it reads the same with every release of CLI11; holdfast.1
// says more.
#pragma once

namespace holdfast::cli {

inline constexpr char version_text[] = "holdfast " HOLDFAST_VERSION "\n";

inline constexpr char help_text[] =
    "Usage: holdfast run [OPTION...] NAME -- COMMAND [ARGUMENT...]\n"
    "       holdfast --help | --version\n"
    "\n"
    "Distributed locks on Redis and Valkey.\n"
    "\n"
    "Subcommands:\n"
    "  run         run a command while holding a lock; see holdfast run --help\n"
    "\n"
    "Options:\n"
    "  -h, --help  print this text\n"
    "  --version   print the version\n";

inline constexpr char run_help_text[] =
    "Usage: holdfast run [OPTION...] NAME -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Takes the lock NAME, runs COMMAND while renewing it, and lets it go when COMMAND and everything that COMMAND\n"
    "started have ended. If the lock is lost, or cannot be renewed in time, COMMAND is ended before anybody else can\n"
    "have the lock. NAME is the key on the server, byte for byte, 1 to 256 of them.\n"
    "\n"
    "Options (times in seconds; fractions are allowed):\n"
    "  -n, --no-wait      do not wait for the lock: somebody else has it, so exit with CODE\n"
    "  -w, --wait TIME    wait for the lock that long at the most, then exit with CODE; without -n or -w: for ever\n"
    "  -l, --lease TIME   how long the server keeps the lock without a renewal: 0.005 to 86400, default 30\n"
    "  -E, --busy-exit-code CODE\n"
    "                     the exit code when the lock was not acquired: 0 to 255, default 75\n"
    "  -k, --grace TIME   from TERM to KILL when COMMAND must end: at most half of the lease, default the lesser of\n"
    "                     5 and a sixth of the lease\n"
    "  --url URL          redis://[[user][:password]@]host[:port][/database], or\n"
    "                     unix://[[user][:password]@]/path/to/socket[?db=database];\n"
    "                     default: HOLDFAST_URL, else redis://127.0.0.1:6379\n"
    "  -v, --verbose      tell on standard error what happens\n"
    "  -h, --help         print this text\n"
    "\n"
    "A NAME that begins with a dash goes behind a -- of its own: holdfast run -- -NAME -- COMMAND.\n"
    "COMMAND finds HOLDFAST_NAME and HOLDFAST_TOKEN in its environment. Signals that holdfast gets go to COMMAND.\n"
    "\n"
    "Exit codes: COMMAND's own, or 128 + the signal that ended it, or\n"
    "   64  the command line or HOLDFAST_URL is wrong\n"
    "   69  no server, or one that serves no locks now\n"
    "   70  a mistake in holdfast itself\n"
    "   71  the operating system refused something\n"
    "   74  the text that was asked for could not be printed\n"
    "   75  not acquired (-E replaces it)\n"
    "   76  the peer does not speak the protocol of Redis\n"
    "   77  the server refuses the user, the password or a command\n"
    "   79  the lock was lost, or could not be kept, while COMMAND ran\n"
    "  126  COMMAND cannot be executed\n"
    "  127  COMMAND was not found\n";

}  // namespace holdfast::cli

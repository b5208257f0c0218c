// SPDX-License-Identifier: MIT
//
// What --help and --version print. Written by hand, so that it reads the same with every release of CLI11; holdfast.1
// says more.
#pragma once

namespace holdfast::cli {

inline constexpr char version_text[] = "holdfast " HOLDFAST_VERSION "\n";

inline constexpr char help_text[] =
    "Usage: holdfast run [OPTION...] NAME -- COMMAND [ARGUMENT...]\n"
    "       holdfast info [--url URL] NAME\n"
    "       holdfast release --force [--url URL] NAME\n"
    "       holdfast --help | --version\n"
    "\n"
    "Distributed locks on Redis and Valkey.\n"
    "\n"
    "Subcommands; each has a --help of its own:\n"
    "  run         run a command while holding a lock\n"
    "  info        show who holds a lock\n"
    "  release     take a lock from whoever holds it\n"
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
    "  --kind KIND        which kind of lock, see below: mutex (default), reentrant or fenced\n"
    "  --fence            give COMMAND a fence under a mutex, too\n"
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
    "Kinds:\n"
    "  KIND       shares the lock with                   take it when\n"
    "  mutex      redis-py, redsync, node-redlock, and   in doubt: commands on several machines must not run\n"
    "             all who do as redis.io says            at once\n"
    "  reentrant  Redisson's getLock()                   Java services hold that lock by Redisson\n"
    "  fenced     Redisson's getFencedLock()             COMMAND writes to something that compares fences, and so\n"
    "                                                    refuses a writer that was paused and came back too late\n"
    "All who share a lock should take the same kind.\n"
    "\n"
    "A NAME that begins with a dash goes behind a -- of its own: holdfast run -- -NAME -- COMMAND.\n"
    "COMMAND finds HOLDFAST_NAME, HOLDFAST_KIND and HOLDFAST_TOKEN in its environment, and HOLDFAST_FENCE where there\n"
    "is a fence: a number that grows with every grant. Signals that holdfast gets go to COMMAND.\n"
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

inline constexpr char info_help_text[] =
    "Usage: holdfast info [--url URL] NAME\n"
    "\n"
    "Shows who holds the lock NAME, of whatever client, in lines of `name: value`. Bytes that are not printable are\n"
    "shown as \\xNN, and a backslash as two.\n"
    "\n"
    "  name       NAME\n"
    "  state      held, free, or `no lock`: the key is there and is none that holdfast knows\n"
    "  kind       mutex, reentrant (fenced locks, too), or read/write; this and the next four if it is held\n"
    "  owner      what its holder proves itself by: the token, or the owner field; of several holders one\n"
    "  count      how often that owner holds it\n"
    "  owners     how many hold it, where that is not one: a read lock\n"
    "  remaining  how long the server keeps it without a renewal, or `no expiry`\n"
    "  fence      the last one that was given out, if any was\n"
    "\n"
    "Options:\n"
    "  --url URL   as in holdfast run; default: HOLDFAST_URL, else redis://127.0.0.1:6379\n"
    "  -h, --help  print this text\n"
    "\n"
    "A NAME that begins with a dash goes behind a --: holdfast info -- -NAME.\n"
    "\n"
    "Exit codes: 0 it is held, 1 it is free, 65 the key is no lock; 64, 69, 70, 71, 74, 76, 77 as in holdfast run.\n";

inline constexpr char release_help_text[] =
    "Usage: holdfast release --force [--url URL] NAME\n"
    "\n"
    "Takes the lock NAME from whoever holds it, and wakes who waits for it. The holder is not asked and goes on until\n"
    "its next renewal, so that for a while two may believe that they hold it: only for a holder that is known to be\n"
    "gone. A holdfast run that lost its lock in this way ends its command, with exit code 79.\n"
    "\n"
    "Options:\n"
    "  -f, --force  required, since only its holder can release a lock without force\n"
    "  --url URL    as in holdfast run; default: HOLDFAST_URL, else redis://127.0.0.1:6379\n"
    "  -h, --help   print this text\n"
    "\n"
    "A NAME that begins with a dash goes behind a --: holdfast release --force -- -NAME.\n"
    "\n"
    "Exit codes: 0 released, 1 it was free, 65 the key is no lock that can be released; 64, 69, 70, 71, 74, 76, 77 as\n"
    "in holdfast run.\n";

}  // namespace holdfast::cli

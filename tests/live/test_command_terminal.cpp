// SPDX-License-Identifier: MIT
//
// The holdfast command on a terminal, as part of a shell's job.
#include "terminal_session.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// holdfast run OPTION... lock -- sh -c SCRIPT, as a line of sh. The script has no single quotes.
std::string run_line(const std::string& script, const std::string& options = "") {
  return command_path() + " run " + options + " lock -- sh -c '" + script + "'";
}

constexpr char reads_a_word[] = "echo begin $$. >/dev/tty; read x </dev/tty; echo got-$x >/dev/tty; exit 5";

}  // namespace

// ---- The keys ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_command_should_have_the_terminal_and_its_keys_should_stop_the_job) {
  TerminalSession session(server.unix_url(),
                          {"run", "lock", "--", "sh", "-c", "echo begin $$.; read x; echo got-$x; exit 5"});
  const int job = session.process();
  TEST_ASSERT_TRUE(session.shows("."));
  const pid_t child = session.number_behind("begin ");
  session.type("\x1a");  // ^Z
  TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
  TEST_ASSERT_EQUAL("1", server.command("EXISTS lock"));
  session.type("f\n");  // fg
  TEST_ASSERT_TRUE(eventually([&] { return state_of(child) == 'S'; }));
  ::kill(job, SIGTSTP);
  TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
  session.type("f\n");
  TEST_ASSERT_TRUE(eventually([&] { return state_of(child) == 'S'; }));
  session.type("word\n");
  TEST_ASSERT_TRUE(session.shows("got-word"));
  TEST_ASSERT_EQUAL(5, session.job());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

TEST_ON_SERVER(test_a_job_that_was_stopped_for_longer_than_the_lease_should_be_killed) {
  TerminalSession session(server.unix_url(),
                          {"run", "-l", "0.5", "lock", "--", "sh", "-c", "echo begin; read x; echo got-$x"});
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("begin"));
  session.type("\x1a");
  TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") == "0"; }));
  session.type("f\n");
  TEST_ASSERT_EQUAL(exit_lost, session.job());
}

TEST_ON_SERVER(test_the_interrupt_key_should_end_the_command) {
  TerminalSession session(server.unix_url(), {"run", "lock", "--", "sh", "-c", "echo begin; exec sleep 1000"});
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("begin"));
  session.type("\x03");  // ^C
  TEST_ASSERT_EQUAL(128 + SIGINT, session.job());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

// ---- What an editor and a shell need -------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_command_in_raw_mode_should_get_every_key_as_a_byte) {
  TerminalSession session(server.unix_url(),
                          run_line("stty raw -echo; echo begin.; x=$(dd bs=1 count=5 2>/dev/null | od -An -tx1); stty "
                                   "sane; echo got $x.; exit 5"));
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("begin."));
  session.type("\x03\x1a\x1c\x11q");  // ^C ^Z ^\ ^Q
  TEST_ASSERT_TRUE(session.shows("got 03 1a 1c 11 71."));
  TEST_ASSERT_EQUAL(5, session.job());
}

TEST_ON_SERVER(test_the_command_should_hear_that_the_window_was_resized) {
  // Its child waits for a writer of the fifo, who never comes.
  const std::string fifo = server.socket_path() + ".never";
  TEST_ASSERT_EQUAL(0, ::mkfifo(fifo.c_str(), 0600));
  TerminalSession session(server.unix_url(),
                          {"run", "lock", "--", "sh", "-c",
                           "trap 'stty size' WINCH; : <" + fifo + " & echo begin; while :; do wait; done"});
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("begin"));
  session.resize(33, 77);
  TEST_ASSERT_TRUE(session.shows("33 77"));
  session.resize(50, 101);
  TEST_ASSERT_TRUE(session.shows("50 101"));
  session.type("\x03");
  TEST_ASSERT_EQUAL(128 + SIGINT, session.job());
}

TEST_ON_SERVER(test_a_shell_should_have_jobs_of_its_own) {
  TerminalSession session(server.unix_url(), {"run", "lock", "--", "sh", "-i"});
  TEST_ASSERT_TRUE(session.process() > 0);
  session.type("echo st''arted\n");
  TEST_ASSERT_TRUE(session.shows("started"));
  // What the job makes of a line says that it has the terminal.
  session.type("sed -u s/i/I-I/\nping\n");
  TEST_ASSERT_TRUE(session.shows("pI-Ing"));
  session.type("\x1a");  // ^Z
  TEST_ASSERT_TRUE(session.shows("Stopped"));
  TEST_ASSERT_EQUAL("1", server.command("EXISTS lock"));
  session.type("fg\nring\n");
  TEST_ASSERT_TRUE(session.shows("rI-Ing"));
  session.type("\x03");
  TEST_ASSERT_TRUE(session.shows("^C\r\n"));  // The shell's own line, once the job has gone.
  session.type("echo al''ive\n");
  TEST_ASSERT_TRUE(session.shows("alive"));
  session.type("exit 7\n");
  TEST_ASSERT_EQUAL(7, session.job());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

// ---- A command that asks for the terminal by its name ------------------------------------------------------------

TEST_ON_SERVER(test_a_command_that_reads_the_terminal_should_get_it_whatever_its_input_is) {
  const std::string lines[] = {
      run_line(reads_a_word) + " </dev/null",
      "echo data | " + run_line(reads_a_word),
      run_line(reads_a_word) + " </dev/null >/dev/null",
      run_line(reads_a_word) + " </dev/null 2>/dev/null | cat",
      "sleep 100 | " + run_line(reads_a_word) + "; code=$?; kill %1 2>/dev/null; exit $code",
  };
  for (const std::string& line : lines) {
    TEST_MESSAGE("line: " << line);
    TerminalSession session(server.unix_url(), line);
    TEST_ASSERT_TRUE(session.process() > 0);
    TEST_ASSERT_TRUE(session.shows("begin"));
    session.type("word\n");
    TEST_ASSERT_TRUE(session.shows("got-word"));
  }
}

// As ssh and sudo do: SIGTTIN is caught, and sent to itself when all is tidied up.
TEST_ON_SERVER(test_a_command_that_catches_the_stop_of_the_terminal_should_get_it_too) {
  const std::string reader =
      "trap \"trap - TTIN; sleep 0.05; kill -TTIN \\$\\$\" TTIN; echo begin >/dev/tty; "
      "until read x </dev/tty; do sleep 0.01; done; echo got-$x >/dev/tty";
  TerminalSession session(server.unix_url(),
                          "SCRIPT='" + reader + "'; export SCRIPT; sleep 100 | " + run_line("sh -c \"$SCRIPT\"; true"));
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("begin"));
  (void)::poll(nullptr, 0, 300);
  session.type("word\n");
  TEST_ASSERT_TRUE(session.shows("got-word"));
}

TEST_ON_SERVER(test_a_command_with_another_input_should_be_stopped_and_brought_back) {
  TerminalSession session(server.unix_url(), "exec " + run_line(reads_a_word) + " </dev/null");
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("."));
  const pid_t child = session.number_behind("begin ");
  for (int turn = 0; turn < 3; ++turn) {
    TEST_ASSERT_TRUE(eventually([&] { return state_of(child) == 'S'; }));
    session.type("\x1a");  // ^Z
    TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
    TEST_ASSERT_EQUAL('T', state_of(child));
    session.type("f\n");  // fg
  }
  TEST_ASSERT_TRUE(eventually([&] { return state_of(child) == 'S'; }));
  session.type("word\n");
  TEST_ASSERT_TRUE(session.shows("got-word"));
  TEST_ASSERT_EQUAL(5, session.job());
}

TEST_ON_SERVER(test_a_job_of_the_background_should_get_the_terminal_with_the_foreground) {
  for (const char* const input : {"</dev/null", ""}) {
    TerminalSession session(server.unix_url(), "exec " + run_line(reads_a_word) + " " + input,
                            TerminalSession::Place::background);
    TEST_ASSERT_TRUE(session.process() > 0);
    TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
    session.type("f\n");  // fg
    TEST_ASSERT_TRUE(session.shows("."));
    const pid_t child = session.number_behind("begin ");
    TEST_ASSERT_TRUE(eventually([&] { return state_of(child) == 'S'; }));
    session.type("word\n");
    TEST_ASSERT_TRUE(session.shows("got-word"));
    TEST_ASSERT_EQUAL(5, session.job());
  }
}

TEST_ON_SERVER(test_the_terminal_should_be_given_back_at_the_end) {
  for (const char* const end : {"", "; kill -9 $$"}) {
    TerminalSession session(server.unix_url(), run_line("read x </dev/tty; echo got-$x >/dev/tty" + std::string(end)) +
                                                   " </dev/null; read y; echo then-$y");
    TEST_ASSERT_TRUE(session.process() > 0);
    session.type("one\n");
    TEST_ASSERT_TRUE(session.shows("got-one"));
    session.type("two\n");
    TEST_ASSERT_TRUE(session.shows("then-two"));
    TEST_ASSERT_EQUAL(0, session.job());
  }
}

// Two fifos say whose turn it is.
TEST_ON_SERVER(test_others_of_the_job_should_get_the_terminal_when_they_ask_for_it) {
  const std::string mates_turn = server.socket_path() + ".mate", our_turn = server.socket_path() + ".ours";
  TEST_ASSERT_EQUAL(0, ::mkfifo(mates_turn.c_str(), 0600));
  TEST_ASSERT_EQUAL(0, ::mkfifo(our_turn.c_str(), 0600));
  TerminalSession session(
      server.unix_url(),
      "sh -c 'read turn <" + mates_turn + "; read y </dev/tty; echo mate-$y >/dev/tty; echo >" + our_turn +
          "' & exec " +
          run_line("echo begin >/dev/tty; read x </dev/tty; echo got-$x >/dev/tty; echo >" + mates_turn +
                   "; read turn <" + our_turn + "; read z </dev/tty; echo again-$z >/dev/tty"));
  TEST_ASSERT_TRUE(session.process() > 0);
  TEST_ASSERT_TRUE(session.shows("begin"));
  session.type("one\n");
  TEST_ASSERT_TRUE(session.shows("got-one"));
  session.type("two\n");
  TEST_ASSERT_TRUE(session.shows("mate-two"));
  session.type("three\n");
  TEST_ASSERT_TRUE(session.shows("again-three"));
  TEST_ASSERT_EQUAL(0, session.job());
}

// ---- A stopped command that is to end ----------------------------------------------------------------------------

TEST_ON_SERVER(test_a_stopped_command_should_hear_what_asks_for_its_end) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Running command(server.unix_url(), run_script({}, "ulimit -c 0; echo $$; exec sleep 1000"));
    const pid_t child = command.line_of_pid();
    ::kill(child, SIGSTOP);
    TEST_ASSERT_TRUE(eventually([&] { return state_of(child) == 'T'; }));
    command.signal(number);
    TEST_ASSERT_EQUAL(128 + number, command.wait());
  }
}

TEST_ON_SERVER(test_a_stopped_job_should_hear_what_asks_for_its_end) {
  TerminalSession session(server.unix_url(), "exec " + run_line("echo begin $$.; exec sleep 1000"));
  const int job = session.process();
  TEST_ASSERT_TRUE(session.shows("."));
  session.type("\x1a");
  TEST_ASSERT_EQUAL(TerminalSession::stopped + 0, session.job());
  ::kill(job, SIGTERM);
  ::kill(job, SIGCONT);
  session.type("f\n");  // Our shell looks only then.
  TEST_ASSERT_EQUAL(128 + SIGTERM, session.job());
}

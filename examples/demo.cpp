// SPDX-License-Identifier: MIT
//
// What a distributed lock is good for, shown on servers of its own in a few seconds:
//
//     demo PATH-OF-THE-HOLDFAST-COMMAND
//
// Exit code 0 if everything was as promised, else 1.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

pid_t demo = 0;
int checks = 0;
int broken = 0;

// Says whether a promise was kept, and remembers it for the end.
void check(bool kept, const char* promise) {
  ++checks;
  if (!kept) ++broken;
  std::printf("   %s: %s\n", kept ? "as promised" : "BROKEN", promise);
}

[[noreturn]] void give_up(const std::string& why) {
  std::printf("The demo cannot go on: %s\n", why.c_str());
  std::fflush(stdout);
  // What happens at exit is the demo's own business, not that of its workers.
  if (::getpid() != demo) ::_exit(1);
  std::exit(1);
}

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e9; }

void pause_for(Duration duration) { (void)::poll(nullptr, 0, static_cast<int>(duration / 1ms)); }

// ---- Processes ---------------------------------------------------------------------------------------------------

// Runs `work` in a process of its own, which ends with us. Returns its id.
pid_t start_process(const std::function<int()>& work) {
  std::fflush(stdout);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) give_up("there is no new process");
  if (pid > 0) return pid;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int result = ::getppid() == parent ? work() : 1;
  std::fflush(stdout);
  ::_exit(result);
}

int exit_code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

[[noreturn]] void execute(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

// A pipe for what processes tell each other.
struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) give_up("there is no pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  template <class Value>
  void tell(const Value& value) const {
    if (::write(ends[1], &value, sizeof value) != sizeof value) ::_exit(1);
  }
  template <class Value>
  [[nodiscard]] bool hear(Value& value) const {
    return ::read(ends[0], &value, sizeof value) == sizeof value;
  }
  // Everything up to the end.
  [[nodiscard]] std::string hear_all() {
    close_end(1);
    std::string text;
    char part[512];
    for (ssize_t count = 0; (count = ::read(ends[0], part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(count));
    return text;
  }

  int ends[2] = {-1, -1};
};

// ---- A server of our own -----------------------------------------------------------------------------------------

// Static, because the handler of ^C needs them. All of them are for the last part, which ends one; the first is for the others.
constexpr std::size_t server_count = 3;
struct Server {
  std::string socket_path;
  std::string log_path;
  pid_t pid = -1;
};
Server servers[server_count];
char folder[] = "/tmp/holdfast-demo-XXXXXX";
std::string counter_path;

// Async-signal-safe: also called by the handler of ^C.
void clean_up() {
  for (const Server& server : servers) {
    if (server.pid > 0) ::kill(server.pid, SIGKILL);
    ::unlink(server.socket_path.c_str());
    ::unlink(server.log_path.c_str());
  }
  ::unlink(counter_path.c_str());
  ::rmdir(folder);
}

void handle_end(int signal) {
  clean_up();
  ::_exit(128 + signal);
}

bool answers(const Server& server) {
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, server.socket_path.c_str(), sizeof address.sun_path - 1);
  const bool connected = ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(connection);
  return connected;
}

void await(Server& server) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (answers(server)) return;
    if (::waitpid(server.pid, nullptr, WNOHANG) == server.pid) {
      server.pid = -1;
      give_up("redis-server does not start; is it installed?");
    }
    pause_for(10ms);
  }
  give_up("redis-server does not answer");
}

// On Unix sockets in a folder of their own: no port is taken, nothing is stored.
void start_servers() {
  if (::mkdtemp(folder) == nullptr) give_up("there is no folder for the servers");
  counter_path = std::string(folder) + "/counter";
  for (std::size_t index = 0; index < server_count; ++index) {
    servers[index].socket_path = std::string(folder) + "/socket" + std::to_string(index + 1);
    servers[index].log_path = std::string(folder) + "/log" + std::to_string(index + 1);
  }
  ::atexit(clean_up);
  ::signal(SIGHUP, handle_end);
  for (Server& server : servers)
    server.pid = start_process([&] {
      execute({"redis-server", "--port", "0", "--unixsocket", server.socket_path, "--dir", folder, "--logfile",
               server.log_path, "--save", "", "--appendonly", "no"});
      return 127;
    });
  ::signal(SIGINT, handle_end);
  ::signal(SIGTERM, handle_end);
  for (Server& server : servers) await(server);
}

std::string url(const Server& server = servers[0]) { return "unix://" + server.socket_path; }

void connect(Client& client) {
  const Status status = client.connect(url());
  if (status != Status::ok) give_up(std::string(to_string(status)) + ": " + cause(status));
}

// ---- 1. A counter that loses nothing -----------------------------------------------------------------------------

constexpr int workers = 4;
constexpr int increments = 200;
constexpr int expected = workers * increments;

int read_counter() {
  int value = 0;
  if (std::FILE* file = std::fopen(counter_path.c_str(), "r")) {
    if (std::fscanf(file, "%d", &value) != 1) value = 0;
    std::fclose(file);
  }
  return value;
}

void write_counter(int value) {
  const std::string next = std::to_string(value) + "\n";
  const int file = ::open(counter_path.c_str(), O_WRONLY | O_CREAT, 0600);
  if (file < 0 || ::pwrite(file, next.data(), next.size(), 0) < 0) ::_exit(1);
  ::close(file);
}

// Reads, thinks for a moment, writes: who reads in that moment overwrites what we add.
void increment_counter() {
  const int value = read_counter();
  ::usleep(200);
  write_counter(value + 1);
}

int increment_unprotected() {
  for (int round = 0; round < increments; ++round) increment_counter();
  return 0;
}

int increment_protected(const Pipe& waits_told) {
  Client client;
  connect(client);
  Mutex lock(client, "demo/counter", {.lease = 5s});
  int waits = 0;
  for (int round = 0; round < increments; ++round) {
    Status status = lock.try_acquire();
    if (status == Status::lock_busy) {
      ++waits;
      status = lock.acquire(20s);
    }
    if (status != Status::ok) return 1;
    if (lock.held()) increment_counter();
    if (lock.release() != Status::ok) return 1;
    ::usleep(500);  // Work that needs no lock.
  }
  waits_told.tell(waits);
  return 0;
}

// Starts the workers, lets them begin together, and waits for them. True if all went well.
bool run_workers(const std::function<int()>& work) {
  write_counter(0);
  Pipe gate;
  std::vector<pid_t> started;
  for (int worker = 0; worker < workers; ++worker)
    started.push_back(start_process([&] {
      gate.close_end(1);
      char opened = 0;
      (void)gate.hear(opened);  // The end of the file: the gate is open.
      return work();
    }));
  gate.close_end(1);
  bool well = true;
  for (const pid_t pid : started) well = exit_code_of(pid) == 0 && well;
  return well;
}

void show_counter() {
  std::printf(
      "1. A counter that loses nothing\n"
      "   %d processes each add 1 to a number in a file, %d times: read it, add 1, write it back.\n",
      workers, increments);
  ::unlink(counter_path.c_str());
  (void)run_workers(increment_unprotected);
  const int unprotected = read_counter();
  std::printf("   Without a lock: expected %d, found %d. They overwrite each other: %d additions are lost.\n", expected,
              unprotected, expected - unprotected);

  ::unlink(counter_path.c_str());
  Pipe waits_told;
  const Instant begin = Client::now();
  const bool well = run_workers([&] { return increment_protected(waits_told); });
  const double taken = seconds(Client::now() - begin);
  waits_told.close_end(1);
  int waits = 0;
  for (int part = 0; waits_told.hear(part);) waits += part;
  const int found = read_counter();
  std::printf(
      "   Each addition under a holdfast lock: expected %d, found %d, in %.1f s.\n"
      "   The lock was taken %d times; %d times another process had it, and it was waited for.\n",
      expected, found, taken, expected, waits);
  check(well && found == expected, "with the lock no addition is lost");
}

// ---- 2. A holder that dies ---------------------------------------------------------------------------------------

void show_dead_holder() {
  constexpr Duration lease = 3s;
  std::printf(
      "\n2. A holder that dies\n"
      "   A lock has a lease, here of %.0f s: should its holder die, the server frees it by itself.\n",
      seconds(lease));
  Pipe told;
  const pid_t holder = start_process([&] {
    Client client;
    connect(client);
    Mutex lock(client, "demo/holder", {.lease = lease});
    const Instant asked = Client::now();
    if (lock.acquire(1s) != Status::ok) return 1;
    told.tell(asked);
    for (;;) ::pause();
  });
  Instant begin;
  if (!told.hear(begin)) give_up("the holder did not get the lock");
  const auto since_begin = [&] { return seconds(Client::now() - begin); };
  std::printf("   %5.2f s  process %d has the lock\n", 0.0, holder);
  pause_for(500ms);
  ::kill(holder, SIGKILL);
  (void)exit_code_of(holder);
  std::printf("   %5.2f s  it is killed (SIGKILL), and cannot say goodbye\n", since_begin());

  Client client;
  connect(client);
  Mutex lock(client, "demo/holder", {.lease = lease});
  std::printf("   %5.2f s  process %d wants the lock: %s\n", since_begin(), ::getpid(), to_string(lock.try_acquire()));
  std::fflush(stdout);
  const Status status = lock.acquire(10s);
  const Duration taken = Client::now() - begin;
  std::printf("   %5.2f s  process %d has waited for it: %s\n", seconds(taken), ::getpid(), to_string(status));
  check(status == Status::ok && taken >= lease && taken < lease + 1s,
        "the lock passes on when its lease is over, not earlier, and not much later");
  check(lock.release() == Status::ok, "and is let go again");
}

// ---- 3. The holdfast command -------------------------------------------------------------------------------------

std::string command;

// Runs `holdfast run OPTION... NAME -- sh -c SCRIPT`; what both print goes to `output`.
pid_t start_holdfast(std::vector<std::string> options, const char* name, const std::string& script,
                     const Pipe& output) {
  return start_process([&] {
    ::dup2(output.ends[1], STDOUT_FILENO);
    ::dup2(output.ends[1], STDERR_FILENO);
    std::vector<std::string> words = {command, "run", "--url", url()};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* word : {name, "--", "sh", "-c"}) words.emplace_back(word);
    words.push_back(script);
    execute(words);
    return 127;
  });
}

void print_indented(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::printf("      %s\n", text.substr(at, end - at).c_str());
    at = end + 1;
  }
}

void show_command() {
  std::printf(
      "\n3. The holdfast command\n"
      "   It guards any program:  holdfast run NAME -- COMMAND\n"
      "   Two of them at once, under one name:\n");
  std::fflush(stdout);
  Pipe output;
  const pid_t first = start_holdfast({}, "demo/report", "echo one begins; sleep 1; echo one ends", output);
  const pid_t second = start_holdfast({}, "demo/report", "echo two begins; sleep 1; echo two ends", output);
  const int codes = exit_code_of(first) + exit_code_of(second);
  std::string text = output.hear_all();
  print_indented(text);
  // Whoever waits says so, in a line of its own.
  if (const std::size_t at = text.find("holdfast: waiting"); at != std::string::npos)
    text.erase(at, text.find('\n', at) + 1 - at);
  check(codes == 0 && (text == "one begins\none ends\ntwo begins\ntwo ends\n" ||
                       text == "two begins\ntwo ends\none begins\none ends\n"),
        "one waits for the other");

  std::printf("   With -n it does not wait. While another one has the lock:\n");
  Pipe started;
  const pid_t busy = start_holdfast({}, "demo/report", "echo x; sleep 1", started);
  char told = 0;
  (void)started.hear(told);
  Pipe refused;
  const Instant begin = Client::now();
  const int code = exit_code_of(start_holdfast({"-n"}, "demo/report", "echo the command was run", refused));
  const Duration taken = Client::now() - begin;
  const std::string words = refused.hear_all();
  print_indented(words);
  std::printf("   holdfast run -n gave exit code %d after %.2f s.\n", code, seconds(taken));
  check(code == 75 && words.find("the command was run") == std::string::npos && taken < 1s,
        "-n refuses at once, and runs nothing");
  check(exit_code_of(busy) == 0, "the one that has the lock is not disturbed");

  const int passed = exit_code_of(start_holdfast({}, "demo/report", "exit 7", started));
  check(passed == 7, "the exit code of the guarded program comes through");
}

// ---- 4. Old recipes ----------------------------------------------------------------------------------------------

// The program that lies beside this one.
std::string neighbour(const char* name) {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, size < 0 ? 0 : static_cast<std::size_t>(size));
  return self.substr(0, self.rfind('/') + 1) + name;
}

void show_old_recipes() {
  std::printf(
      "\n4. Old recipes\n"
      "   Locks that many programs still take by hand, and the same schedule with holdfast:\n");
  Pipe output;
  const pid_t recipes = start_process([&] {
    ::dup2(output.ends[1], STDOUT_FILENO);
    execute({neighbour("example_old_recipes"), servers[0].socket_path});
    return 127;
  });
  print_indented(output.hear_all());
  check(exit_code_of(recipes) == 0, "each recipe fails as its picture shows, and holdfast does not");
}

// ---- 5. A lock on three servers ----------------------------------------------------------------------------------

// Acquires, and releases what it got.
Status try_quorum(RedlockMutex<server_count>& lock, Duration wait, Duration& taken) {
  const Instant begin = Client::now();
  const Status status = lock.acquire(wait);
  taken = Client::now() - begin;
  if (status == Status::ok && lock.release() != Status::ok) return Status::outcome_unknown;
  return status;
}

void show_quorum() {
  std::printf(
      "\n5. A lock on three servers\n"
      "   A lock on one server is gone with the server. This one is held while two of three servers hold it.\n");
  ClientConfig nodes[server_count];
  for (std::size_t index = 0; index < server_count; ++index)
    if (parse_url(url(servers[index]), nodes[index]) != Status::ok) give_up("there is no URL for a server");
  Quorum<server_count> quorum;
  // They have just started. With the guard they would not vote before the longest lease is over: they might have forgotten
  // a lock.
  if (quorum.connect(nodes, server_count, {.restart_guard = false}) != Status::ok) give_up("there is no quorum");
  RedlockMutex<server_count> lock(quorum, "demo/quorum", {.lease = 5s});
  Duration taken{};
  Status status = try_quorum(lock, 2s, taken);
  std::printf("   All three are up:             %s, after %.1f ms\n", to_string(status), seconds(taken) * 1e3);
  check(status == Status::ok, "three of three grant it");

  ::kill(servers[0].pid, SIGKILL);
  status = try_quorum(lock, 2s, taken);
  std::printf("   One is killed:                %s, after %.1f ms\n", to_string(status), seconds(taken) * 1e3);
  check(status == Status::ok, "two of three grant it");

  ::kill(servers[1].pid, SIGSTOP);
  status = try_quorum(lock, 1s, taken);
  std::printf("   Another one is stopped, too:  %s, after %.1f ms\n", to_string(status), seconds(taken) * 1e3);
  const ByteView why = quorum.error_text();
  const std::string words(why.data(), why.size());
  std::printf("   Why: %s\n", words.c_str());
  check(status == Status::no_quorum && taken < 3s && words.find("node 1") != std::string::npos &&
            words.find("node 2") != std::string::npos,
        "one of three is not enough: it is refused in time, and the two are named");

  ::kill(servers[1].pid, SIGCONT);
  status = try_quorum(lock, 10s, taken);
  std::printf("   The stopped one goes on:      %s, after %.1f ms\n", to_string(status), seconds(taken) * 1e3);
  check(status == Status::ok, "it is granted again");
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::printf("usage: demo PATH-OF-THE-HOLDFAST-COMMAND\n");
    return 1;
  }
  command = arguments[1];
  demo = ::getpid();
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  std::printf(
      "holdfast: locks that several processes, on one machine or many, share through Redis servers.\n"
      "This demo starts three of them for itself, and takes less than a minute.\n\n");
  const Instant begin = Client::now();
  start_servers();
  show_counter();
  show_dead_holder();
  show_command();
  show_old_recipes();
  show_quorum();
  std::printf("\n%s: %d of %d promises kept, in %.0f seconds.\n",
              broken == 0 ? "Everything was as promised" : "NOT everything was as promised", checks - broken, checks,
              seconds(Client::now() - begin));
  return broken == 0 ? 0 : 1;
}

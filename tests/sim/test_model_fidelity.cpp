// SPDX-License-Identifier: MIT
//
// The model against a real redis-server 7.0: the same random commands to both, and the same replies from both. Where
// there is a Valkey 9, also against that, with what locks are made of.
// Excepted: INFO, TIME, CLIENT ID and DBSIZE (which counts expired keys until the server finds them), the order of KEYS
// and PUBSUB CHANNELS, and numbers that hold the clock, which may be some seconds apart.
//
//   test_model_fidelity [FIRST_SEED [SEEDS [COMMANDS]]]
#include <poll.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model_redis.hpp"
#include "random_requests.hpp"
#include "redis_server.hpp"
#include "resp_text.hpp"

using namespace holdfast::sim;
using holdfast::testing::command_of;

namespace {

constexpr int skipped = 77;
constexpr std::int64_t clock_tolerance = 20'000'000;  // Microseconds; a fence is one.

std::int64_t wall_now() {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_usec;
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '\r')
      text += "\\r";
    else if (byte == '\n')
      text += "\\n";
    else if (code < ' ' || code > '~') {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(code));
      text += hex;
    } else
      text += byte;
  }
  return text;
}

struct Node {
  char kind = 0;
  bool null = false;
  std::string text;
  std::vector<Node> items;
};

// False: not whole. Both servers are trusted with the form of their replies: they are compared byte by byte.
bool read_node(std::string_view bytes, std::size_t& at, Node& node) {
  const std::size_t end = bytes.find("\r\n", at);
  if (end == std::string_view::npos) return false;
  node.kind = bytes[at];
  node.text = bytes.substr(at + 1, end - at - 1);
  at = end + 2;
  if (node.kind != '$' && node.kind != '*') return true;
  const long size = std::strtol(node.text.c_str(), nullptr, 10);
  if (size < 0) {
    node.null = true;
    return true;
  }
  if (node.kind == '$') {
    if (bytes.size() < at + static_cast<std::size_t>(size) + 2) return false;
    node.text = bytes.substr(at, static_cast<std::size_t>(size));
    at += static_cast<std::size_t>(size) + 2;
    return true;
  }
  for (long index = 0; index < size; ++index)
    if (!read_node(bytes, at, node.items.emplace_back())) return false;
  return true;
}

// Five digits: what is left of a read/write lock whose TTL was removed, in milliseconds.
bool close_numbers(const std::string& left, const std::string& right) {
  if (left.size() < 5 || left.find_first_not_of("0123456789") != std::string::npos ||
      right.find_first_not_of("0123456789") != std::string::npos)
    return false;
  const long long difference = std::atoll(left.c_str()) - std::atoll(right.c_str());
  return std::llabs(difference) < (left.size() == 5 ? clock_tolerance / 1000 : clock_tolerance);
}

bool close_enough(const Node& left, const Node& right) {
  if (left.kind != right.kind || left.null != right.null || left.items.size() != right.items.size()) return false;
  if (left.kind != '*' && left.text != right.text && !close_numbers(left.text, right.text)) return false;
  for (std::size_t index = 0; index < left.items.size(); ++index)
    if (!close_enough(left.items[index], right.items[index])) return false;
  return true;
}

bool same_reply(std::string_view left, std::string_view right, Comparison comparison) {
  if (left == right) return true;
  if (comparison == Comparison::exact || left.empty() || right.empty()) return false;
  std::size_t left_at = 0;
  std::size_t right_at = 0;
  Node left_node;
  Node right_node;
  if (!read_node(left, left_at, left_node) || !read_node(right, right_at, right_node)) return false;
  switch (comparison) {
    case Comparison::exact: return false;
    case Comparison::clock: return close_enough(left_node, right_node);
    case Comparison::unordered: {
      // What is of a fair lock may end between the two.
      const auto sort = [](Node& node) {
        std::erase_if(node.items, [](const Node& item) { return item.text.find("{q") != std::string::npos; });
        std::sort(node.items.begin(), node.items.end(), [](const Node& a, const Node& b) { return a.text < b.text; });
      };
      sort(left_node);
      sort(right_node);
      return close_enough(left_node, right_node);
    }
    case Comparison::ignored: return left_node.kind == right_node.kind;
  }
  return false;
}

// Cuts whole replies off the front. The rest stays.
std::vector<std::string> cut_replies(std::string& bytes, std::size_t most) {
  std::vector<std::string> replies;
  std::size_t done = 0;
  while (replies.size() < most) {
    std::size_t at = done;
    Node node;
    if (at >= bytes.size() || !read_node(bytes, at, node)) break;
    replies.push_back(bytes.substr(done, at - done));
    done = at;
  }
  bytes.erase(0, done);
  return replies;
}

// One client of both servers.
class Pair {
 public:
  Pair(const RedisServer& server, ModelRedis& model)
      : real_(std::make_unique<RawConnection>(server.socket_path())), model_(&model), id_(model.accept()) {}

  // Gives `bytes` to the real server and reads that many replies, or until it says no more.
  std::vector<std::string> real_replies(const std::string& bytes, std::size_t count) {
    std::vector<std::string> replies;
    std::size_t sent = 0;
    bool ended = false;
    while (!ended && (replies.size() < count || sent < bytes.size())) {
      pollfd ready{real_->descriptor(), static_cast<short>(sent < bytes.size() ? POLLIN | POLLOUT : POLLIN), 0};
      if (::poll(&ready, 1, 10000) <= 0) break;
      if ((ready.revents & POLLOUT) != 0) {
        const ssize_t some =
            ::send(real_->descriptor(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (some > 0) sent += static_cast<std::size_t>(some);
        ended = some < 0 && errno != EAGAIN;
      }
      if ((ready.revents & (POLLIN | POLLHUP)) != 0) {
        char buffer[65536];
        const ssize_t some = ::recv(real_->descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (some == 0) ended = true;
        if (some > 0) kept_.append(buffer, static_cast<std::size_t>(some));
        for (std::string& reply : cut_replies(kept_, count - replies.size())) replies.push_back(std::move(reply));
      }
    }
    if (replies.size() < count) replies.emplace_back(ended ? "(closed)" : "(nothing)");
    return replies;
  }
  // All that the real server says until it closes.
  std::string real_until_end(const std::string& bytes) {
    ::send(real_->descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string output;
    char buffer[4096];
    for (;;) {
      pollfd ready{real_->descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, 10000) <= 0) return output + "(not closed)";
      const ssize_t some = ::recv(real_->descriptor(), buffer, sizeof buffer, 0);
      if (some <= 0) return output;
      output.append(buffer, static_cast<std::size_t>(some));
    }
  }
  std::string model_until_end(const std::string& bytes) {
    model_->receive(id_, bytes);
    return model_->take_output(id_) + (model_->closed(id_) ? "" : "(not closed)");
  }
  std::string model_reply(const std::vector<std::string>& words) {
    model_->set_now(model_->now() + 1);  // Two that come one after the other have come at different times.
    model_->receive(id_, command_of(words));
    return model_->take_output(id_);
  }
  std::string model_pushes() { return model_->take_output(id_); }

  // To the real server alone: settings.
  std::string real(const std::vector<std::string>& words) { return real_->command(words); }
  void real_send(const std::vector<std::string>& words) {
    const std::string bytes = command_of(words);
    ::send(real_->descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  std::unique_ptr<RawConnection> real_;
  ModelRedis* model_;
  ModelRedis::ConnectionId id_;
  std::string kept_;
};

class Fidelity {
 public:
  Fidelity(const RedisServer& server, ServerKind kind, std::uint64_t seed)
      : server_(&server),
        seed_(seed),
        kind_(kind),
        model_(settings()),
        requests_(seed,
                  kind == ServerKind::redis_7_0 ? RandomRequests::Scope::everything : RandomRequests::Scope::locks),
        ordinary_(server, model_),
        other_(server, model_),
        subscriber_(server, model_) {}

  bool run(std::size_t commands) {
    other_.real({"select", "1"});
    static_cast<void>(other_.model_reply({"select", "1"}));
    while (executed_ < commands && good_) {
      model_.set_now(std::max(model_.now(), wall_now()));
      RandomSource& random = requests_.random();
      if (random.one_in(200)) {
        let_keys_expire();
        continue;
      }
      const bool subscribing = random.one_in(6);
      Pair& pair = subscribing ? subscriber_ : random.one_in(4) ? other_ : ordinary_;
      std::vector<RandomRequest> batch;
      for (std::size_t size = 1 + random.below(200); size > 0; --size)
        batch.push_back(subscribing ? requests_.subscriber_command() : requests_.command());
      compare(pair, batch);
      if (!subscribing) compare_pushes();
    }
    return good_;
  }

  // In each state that a server can be in: what it refuses, and how.
  bool run_refusals(std::size_t commands) {
    Pair admin(*server_, model_);
    ModelRedis::Faults& faults = model_.faults();
    const auto config = [&](const char* name, const char* value) { admin.real({"config", "set", name, value}); };
    const auto in_state = [&](const char* name, auto&& begin, auto&& end) {
      if (!good_) return;
      state_ = name;
      begin();
      for (std::size_t done = 0; done < commands && good_; done += 50) refused_batch();
      end();
      state_.clear();
      if (good_) compare(ordinary_, {{{"keys", "*"}, Comparison::unordered}});
    };
    in_state(
        "out of memory", [&] { config("maxmemory", "1"), faults.out_of_memory = true; },
        [&] { config("maxmemory", "0"), faults.out_of_memory = false; });
    in_state(
        "too few replicas", [&] { config("min-replicas-to-write", "1"), faults.too_few_replicas = true; },
        [&] { config("min-replicas-to-write", "0"), faults.too_few_replicas = false; });
    in_state(
        "read-only",
        [&] {
          admin.real({"replicaof", "127.0.0.1", "1"}), faults.replica = true;
        },
        [&] {
          admin.real({"replicaof", "no", "one"}), faults.replica = false;
        });
    in_state(
        "master down",
        [&] {
          config("replica-serve-stale-data", "no");
          admin.real({"replicaof", "127.0.0.1", "1"});
          faults.replica = faults.link_down = true;
        },
        [&] {
          admin.real({"replicaof", "no", "one"});
          config("replica-serve-stale-data", "yes");
          faults.replica = faults.link_down = false;
        });
    in_state(
        "forbidden commands",
        [&] {
          faults.forbidden_commands = {"del", "pexpire", "get", "hset", "client|setname", "evalsha"};
          for (const std::string& name : faults.forbidden_commands)
            admin.real({"acl", "setuser", "default", "-" + name});
        },
        [&] {
          faults.forbidden_commands.clear();
          admin.real({"acl", "setuser", "default", "+@all"});
        });
    in_state(
        "disk error", [&] { break_disk(admin), faults.disk_error = true; },
        [&] { config("save", ""), faults.disk_error = false; });
    in_state(
        "forbidden channels",
        [&] {
          // Who is subscribed to what is forbidden now would be closed.
          compare(subscriber_, {{{"reset"}, Comparison::exact}});
          admin.real({"acl", "setuser", "default", "resetchannels", "&c0"});
          faults.forbidden_channels = {"c1", "c2", "c3", "a"};
          channels_alone_ = true;
        },
        [&] {
          admin.real({"acl", "setuser", "default", "allchannels"});
          faults.forbidden_channels.clear();
          channels_alone_ = false;
        });
    in_state(
        "busy",
        [&] {
          config("busy-reply-threshold", "1");
          admin.real_send({"eval", "while true do end", "0"});
          ::poll(nullptr, 0, 100);
          faults.busy_script = true;
        },
        [&] {
          compare(ordinary_, {{{"script", "kill"}, Comparison::exact}});
          ::poll(nullptr, 0, 50);
          compare(ordinary_, {{{"script", "kill"}, Comparison::exact}});
        });
    return good_;
  }

  // While it reads its data. The server must allow DEBUG.
  bool run_loading(std::size_t commands) {
    // It looks at its connections after so many bytes: small keys would keep it from that.
    compare(ordinary_, {{{"flushall"}, Comparison::exact}});
    Pair admin(*server_, model_);
    admin.real({"select", "9"});
    for (int index = 0; index < 100; ++index) {
      std::string noise;
      for (int byte = 0; byte < 4000; ++byte) noise += static_cast<char>(requests_.random().below(256));
      admin.real({"set", "ballast" + std::to_string(index), noise});
    }
    admin.real({"config", "set", "loading-process-events-interval-bytes", "1024"});
    admin.real({"config", "set", "key-load-delay", "10000"});
    admin.real_send({"debug", "reload"});
    ::poll(nullptr, 0, 200);
    model_.faults().loading = true;
    state_ = "loading";
    for (std::size_t done = 0; done < commands && good_; done += 50) refused_batch();
    model_.faults().loading = false;
    admin.real_replies("", 1);
    state_.clear();
    admin.real({"config", "set", "key-load-delay", "0"});
    admin.real({"flushdb"});
    if (good_) compare(ordinary_, {{{"keys", "*"}, Comparison::unordered}});
    return good_;
  }

  // What is no request.
  bool run_malformed() {
    const std::string malformed[] = {
        "*x\r\n",
        "*2147483648\r\n",
        "*1\r\n+GET\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$x\r\n",
        "*1\r\n$536870913\r\n",
        "*1\r\n\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n:1\r\n",
        "*01\r\n",
        "*+1\r\n",
        "*" + std::string(70000, '1'),
        "*1\r\n$" + std::string(70000, '1'),
        "*1\r\n$4\r\nPING\r\n*1\r\n$04\r\n",
        "*0\r\n*-1\r\n*1\r\n$4\r\nPINGxx*1\r\nx$4\r\n",
        "*1\r\n$4\r\nquit\r\n*1\r\n$4\r\nPING\r\n",
        "*6\r\n$6\r\nclient\r\n$4\r\nkill\r\n$4\r\ntype\r\n$6\r\npubsub\r\n$6\r\nskipme\r\n$2\r\nno\r\n*1\r\n$"
        "4\r\nquit\r\n",
        "*1\r\n$5\r\nhost:\r\n",
        "*1\r\n$4\r\nPOST\r\n",
        "PING\r\n  echo  x \nquit\r\n",
        "echo \"x\r\n",
    };
    for (const std::string& bytes : malformed) {
      Pair pair(*server_, model_);
      expect_same("malformed", bytes.substr(0, 200), pair.real_until_end(bytes), pair.model_until_end(bytes));
    }
    // Before it has said its password.
    ModelRedis::Settings guarded = settings();
    guarded.password = "secret";
    ModelRedis model(guarded);
    Pair admin(*server_, model_);
    admin.real({"config", "set", "requirepass", "secret"});
    const std::string strange[] = {
        command_of({"get", "a"}) + command_of({"nosuch"}) + command_of({"ping"}) + command_of({"get"}) +
            command_of({"client"}) + command_of({"client", "x"}) + command_of({"auth", "wrong"}) +
            command_of({"auth", "default", "wrong"}) + command_of({"auth", "nobody", "secret"}) +
            command_of({"auth", "a", "b", "c"}) + command_of({"auth", "secret"}) + command_of({"ping"}) +
            command_of({"auth", "wrong"}) + command_of({"ping"}) + command_of({"reset"}) + command_of({"ping"}) +
            command_of({"auth", "default", "secret"}) + command_of({"echo", "1"}) + command_of({"quit"}),
        "*11\r\n",
        "*1\r\n$16385\r\n",
        command_of({"quit"}),
    };
    for (const std::string& bytes : strange) {
      Pair pair(*server_, model);
      expect_same("without a password", bytes, pair.real_until_end(bytes), pair.model_until_end(bytes));
    }
    admin.real({"config", "set", "requirepass", ""});
    return good_;
  }

  [[nodiscard]] std::size_t executed() const { return executed_; }

 private:
  [[nodiscard]] ModelRedis::Settings settings() const {
    ModelRedis::Settings its;
    its.kind = kind_;
    its.now = wall_now();
    return its;
  }

  // Told once: the rest follows from it.
  void expect_same(const std::string& what, const std::string& request, const std::string& real,
                   const std::string& model) {
    if (!good_ || real == model) return;
    tell(what, request, real, model);
  }
  void tell(const std::string& what, const std::string& request, const std::string& real, const std::string& model) {
    good_ = false;
    std::printf("seed %llu, command %zu%s%s: %s\n  request %s\n  server  %s\n  model   %s\n",
                static_cast<unsigned long long>(seed_), executed_, state_.empty() ? "" : ", ", state_.c_str(),
                what.c_str(), printable(request).c_str(), printable(real).c_str(), printable(model).c_str());
  }

  void compare(Pair& pair, const std::vector<RandomRequest>& batch) {
    std::string bytes;
    std::vector<std::string> expected;
    std::vector<const RandomRequest*> asked;
    for (const RandomRequest& request : batch) {
      bytes += command_of(request.words);
      std::string output = pair.model_reply(request.words);
      for (std::string& reply : cut_replies(output, static_cast<std::size_t>(-1))) {
        expected.push_back(std::move(reply));
        asked.push_back(&request);
      }
      if (!output.empty()) return tell("half a reply", command_of(request.words), "", output);
    }
    const std::vector<std::string> real = pair.real_replies(bytes, expected.size());
    for (std::size_t index = 0; index < expected.size() && good_; ++index) {
      ++executed_;
      const std::string said = index < real.size() ? real[index] : "(nothing)";
      if (same_reply(said, expected[index], asked[index]->comparison)) continue;
      std::string words;
      for (const std::string& word : asked[index]->words) words += word + " | ";
      tell("replies differ", words, said, expected[index]);
    }
  }

  void compare_pushes() {
    std::string output = subscriber_.model_pushes();
    const std::vector<std::string> model = cut_replies(output, static_cast<std::size_t>(-1));
    const std::vector<std::string> real = subscriber_.real_replies("", model.size());
    for (std::size_t index = 0; index < model.size(); ++index)
      expect_same("pushes differ", "", index < real.size() ? real[index] : "(nothing)", model[index]);
  }

  // Lifetimes that end while both look away.
  void let_keys_expire() {
    std::vector<RandomRequest> batch;
    for (int index = 0; index < 6; ++index) {
      const std::string key = requests_.key();
      batch.push_back({{"pexpire", key, "30"}, Comparison::exact});
      if (index == 0) batch.push_back({{"set", key, "x", "px", "30"}, Comparison::exact});
    }
    compare(ordinary_, batch);
    ::poll(nullptr, 0, 60);
    model_.set_now(wall_now());
    // Who counts keys sees those that have expired until somebody touches them.
    compare(ordinary_,
            {{{"exists", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "", "key with a blank"}, Comparison::exact}});
  }

  void refused_batch() {
    model_.set_now(wall_now());
    std::vector<RandomRequest> batch;
    while (batch.size() < 50) {
      RandomRequest request = requests_.command();
      const std::string& name = request.words[0];
      // A script that runs is ended by its own step. Which of all channels are allowed the model is told by name.
      if (state_ == "busy" && name == "script") continue;
      if (channels_alone_ && batch.size() % 2 == 0)
        request = {{"publish", requests_.random().pick<std::string>({"c0", "c1", "c2", "c3"}), "m"}, Comparison::exact};
      else if (channels_alone_)
        request = {{"eval", "return redis.call('publish', KEYS[1], ARGV[1])", "1",
                    requests_.random().pick<std::string>({"c0", "c1", "c2", "c3"}), "m"},
                   Comparison::exact};
      batch.push_back(std::move(request));
    }
    compare(ordinary_, batch);
    if (state_ != "busy" && state_ != "loading") compare_pushes();
  }

  // A snapshot into a folder that has gone.
  static void break_disk(Pair& admin) {
    const std::string answer = admin.real({"config", "get", "dir"});
    const std::string folder = answer.substr(answer.find(' ') + 1);
    const std::string gone = folder + "/gone";
    std::filesystem::create_directory(gone);
    admin.real({"config", "set", "save", "3600 1"});
    admin.real({"config", "set", "dir", gone});
    std::filesystem::remove(gone);
    admin.real({"bgsave"});
    for (int tries = 0; tries < 200; ++tries) {
      if (admin.real({"info", "persistence"}).find("rdb_last_bgsave_status:err") != std::string::npos) break;
      ::poll(nullptr, 0, 10);
    }
    admin.real({"config", "set", "dir", folder});
  }

  const RedisServer* server_;
  std::uint64_t seed_;
  ServerKind kind_;
  ModelRedis model_;
  RandomRequests requests_;
  Pair ordinary_, other_, subscriber_;
  std::size_t executed_ = 0;
  bool good_ = true;
  bool channels_alone_ = false;
  std::string state_;
};

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int index, unsigned long long otherwise) {
    return index < count ? std::strtoull(arguments[index], nullptr, 10) : otherwise;
  };
  const unsigned long long first = number(1, 1);
  const unsigned long long seeds = number(2, 2);
  const auto commands = static_cast<std::size_t>(number(3, 60000));
  struct Peer {
    std::string binary;
    ServerKind kind;
  };
  std::vector<Peer> peers;
  for (const std::string& binary : server_binaries()) {
    const std::string info = RedisServer(binary).command("INFO server");
    if (info.find("valkey_version:9.") != std::string::npos)
      peers.push_back({binary, ServerKind::valkey_9_0});
    else if (info.find("redis_version:7.0.") != std::string::npos)
      peers.push_back({binary, ServerKind::redis_7_0});
  }
  if (peers.empty()) {
    std::puts("skipped: there is neither a redis-server 7.0 nor a valkey-server 9 to compare with");
    return skipped;
  }
  std::size_t total = 0;
  for (const Peer& peer : peers)
    for (unsigned long long seed = first; seed < first + seeds; ++seed) {
      const RedisServer server(peer.binary, {"--enable-debug-command", "yes", "--enable-protected-configs", "yes"});
      Fidelity fidelity(server, peer.kind, seed);
      if ((peer.kind == ServerKind::redis_7_0 && !fidelity.run_malformed()) || !fidelity.run(commands) ||
          !fidelity.run_refusals(500) || !fidelity.run_loading(200))
        return 1;
      total += fidelity.executed();
    }
  std::printf("%zu replies of %llu seeds are the same\n", total, seeds);
  return 0;
}

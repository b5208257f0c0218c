// SPDX-License-Identifier: MIT
//
// Theorem: whatever a sentinel says, in whatever pieces, and whatever the clock and the connections do:
//   1. The node is left once in switch_pause_min at most, and only after something new was heard: without raw bytes, not more often
//      than there were messages and answers of this service.
//   2. A node that was left has a failed session, and one that was not left has not.
//   3. A sentinel is asked once in switch_check_min at most on one connection.
//   4. What a session says of itself is so. Once all that is due is done, nothing is due: nobody spins.
//   5. No assertion of the library fails.
//
// Input: a program. Each step is a letter and a parameter, a digit or any byte:
//   a    all that was asked is answered by an honest sentinel       c n  the master is number n for it from here on
//   m n  a message that it is number n         f n  a message of another service, or a malformed one
//   e    a message that calls for the question o n  the client is connected to number n
//   k    the sentinel's connection ends, and another one is made    + n  time passes
//   x n  the next n bytes of the input, from the sentinel, raw
// Spaces and line ends between steps are nothing.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "holdfast/core/switch_watch.hpp"
#include "holdfast/sentinels.hpp"
#include "resp_text.hpp"
#include "theorem.hpp"
#include "wire_pieces.hpp"

using namespace holdfast;
using namespace holdfast::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t steps_max = 300;
constexpr char letters[] = "acmfeok+x";

std::string host(unsigned number) { return "10.0.0." + std::to_string(number % 10); }
std::string address(unsigned number) { return "*2\r\n" + bulk(host(number)) + bulk("6379"); }
std::string message(const std::string& channel, const std::string& text) {
  return "*3\r\n" + bulk("message") + bulk(channel) + bulk(text);
}

struct World {
  explicit World(std::string text) : program(std::move(text)) {
    ClientConfig config;
    config.topology = &sentinels;
    client->configure(config, nullptr);
    reach(*client, 0,
          "*6\r\n" + bulk(std::string(40, 'f')) + bulk("1") + bulk("7.0.15") + bulk("") + bulk(std::string(40, '0')) +
              bulk("-1master"));
    lane->configure(news.follow(*client), nullptr);
    reach_sentinel();
  }
  void transmit(Node& node, std::string& sent) {
    std::size_t limit = SIZE_MAX;
    do {
      if (node.session().wants_look()) node.session().handle_drained();
    } while (transmit_piece(node.session(), now, sent, limit));
  }
  void receive(Node& node, std::string_view bytes) {
    while (receive_piece(node.session(), now, bytes)) poll(node);
  }
  void poll(Node& node) {
    Reply reply;
    while (node.session().poll_reply(reply, now)) {}
    HOLDFAST_THEOREM(node.session().invariants(), program);
  }
  void close(Node& node) {
    node.handle_closed(now, 0);
    poll(node);
  }
  // Every name is resolved, and every host is reached at once.
  bool dial(Node& node) {
    for (int turns = 0; turns < 100; ++turns) switch (node.poll_dial(now, 0)) {
        case DialAction::none: now = now + 100ms; break;
        case DialAction::hang_up: break;
        case DialAction::resolve: {
          const SocketAddress found[] = {SocketAddress{}};
          node.handle_addresses(found, 1, now, 0);
          break;
        }
        case DialAction::dial: node.handle_connected(now); return true;
      }
    return false;
  }
  void reach(Node& node, unsigned number, const std::string& identity) {
    std::string sent;
    HOLDFAST_THEOREM(dial(node), program);
    transmit(node, sent);
    receive(node, "+OK\r\n:7\r\n" + address(number));
    if (identity.empty()) return;
    if (node.session().state() == SessionState::failed) close(node);
    HOLDFAST_THEOREM(dial(node), program);
    transmit(node, sent);
    receive(node, "+OK\r\n:7\r\n" + identity);
    HOLDFAST_THEOREM(node.handle_ready(now), program);
  }
  void reach_sentinel() {
    reach(*lane, named, "");
    HOLDFAST_THEOREM(lane->handle_ready(now), program);
    news.handle_ready(now);
    asked = Instant();
    to_answer.clear();
  }
  void reconnect() {
    close(*lane);
    news.handle_closed(*lane);
    reach_sentinel();
  }
  void come_back(unsigned number) {
    close(*client);
    reach(*client, number,
          "*6\r\n" + bulk(std::string(40, 'f')) + bulk("1") + bulk("7.0.15") + bulk("") + bulk(std::string(40, '0')) +
              bulk("-1master"));
    at = number % 10;
  }
  void answer() {
    std::string bytes;
    for (std::size_t from = 0; from < to_answer.size();) {
      std::size_t next = to_answer.find("\r\n*", from);
      next = next == std::string::npos ? to_answer.size() : next + 2;
      const std::string_view words = std::string_view(to_answer).substr(from, next - from);
      const bool early = words.find("+failover") != words.npos;
      const std::string channel = early ? "+failover-state-reconf-slaves" : "+switch-master";
      if (words.find("UNSUBSCRIBE") != words.npos)
        bytes += "*3\r\n" + bulk("unsubscribe") + bulk(channel) + ":0\r\n";
      else if (words.find("SUBSCRIBE") != words.npos)
        bytes += "*3\r\n" + bulk("subscribe") + bulk(channel) + ":1\r\n";
      else
        bytes += address(named), ++heard;
      from = next;
    }
    to_answer.clear();
    receive(*lane, bytes);
  }
  // All that a driver does in a turn.
  void turn() {
    lane->session().handle_timeout(now);
    poll(*lane);
    if (lane->session().state() == SessionState::failed) reconnect();
    std::string sent;
    news.work(*lane, now, 0);
    transmit(*lane, sent);
    if (!sent.empty()) {
      HOLDFAST_THEOREM(asked == Instant() || now - asked >= switch_check_min, program);
      asked = now;
      to_answer += sent;
    }
    const bool doubted = news.doubt(*lane, *client, now, 0);
    HOLDFAST_THEOREM(doubted == (client->session().state() == SessionState::failed), program);
    HOLDFAST_THEOREM(news.poll_timeout(*lane, *client) > now || doubted, program);
    if (!doubted) return;
    HOLDFAST_THEOREM(left == Instant() || now - left >= switch_pause_min, program);
    left = now;
    ++doubts;
    HOLDFAST_THEOREM(raw || doubts <= heard, program);
    come_back(at);
  }

  std::string program;
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  Sentinels sentinels{{.hosts = "s1,s2", .service = "mymaster"}};
  std::unique_ptr<NodeBuffers> client_buffers = std::make_unique<NodeBuffers>();
  std::unique_ptr<SwitchWatch::Buffers> lane_buffers = std::make_unique<SwitchWatch::Buffers>();
  std::unique_ptr<Node> client = std::make_unique<Node>(client_buffers->storage());
  std::unique_ptr<Node> lane = std::make_unique<Node>(lane_buffers->storage());
  SwitchWatch news;
  std::string to_answer;
  unsigned named = 0;
  unsigned at = 0;
  Instant asked;
  Instant left;
  int doubts = 0;
  int heard = 0;
  bool raw = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  World world{std::string(rest)};
  world.turn();
  for (std::size_t step = 0; step < steps_max && !rest.empty(); ++step) {
    const char first = next_byte(rest);
    if (first == ' ' || first == '\n') continue;
    const char letter = letter_of(first, letters);
    const bool plain = letter == 'a' || letter == 'e' || letter == 'k';
    const unsigned number = plain ? 0 : static_cast<std::uint8_t>(next_byte(rest));
    const std::string text = "mymaster 10.0.0.0 6379 " + host(number) + " 6379";
    switch (letter) {
      case 'a': world.answer(); break;
      case 'c': world.named = number; break;
      case 'm':
        ++world.heard;
        world.receive(*world.lane, message("+switch-master", text));
        break;
      case 'f': {
        constexpr std::size_t port_size = 4;  // With a digit of it left, it would be a message of another port.
        const std::string cut = text.substr(0, number % (text.size() - port_size));
        const std::string others[] = {"other" + text, text + " 1", text + "x", cut};
        world.receive(*world.lane, message("+switch-master", others[number % 4]));
        break;
      }
      case 'e': world.receive(*world.lane, message("+failover-state-reconf-slaves", "master mymaster")); break;
      case 'o': world.come_back(number); break;
      case 'k': world.reconnect(); break;
      case '+': world.now = world.now + (number - '0' < 10U ? 50ms * (1 << (number - '0')) : 1ms); break;
      case 'x': {
        world.raw = true;
        world.receive(*world.lane, rest.substr(0, number));
        rest.remove_prefix(rest.size() < number ? rest.size() : number);
        break;
      }
    }
    world.turn();
  }
  return 0;
}

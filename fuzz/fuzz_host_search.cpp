// SPDX-License-Identifier: MIT
//
// Theorem: whatever sentinels, nodes of a cluster and those whom they name say, in whatever pieces, and whatever the resolver, the
// sockets and the clock do, a node whose server is found by asking hosts:
//   1. dials no host but one of its list, or one that a host has named in full; and every name is one of a host. (S19)
//   2. is ready only where the last host has said that it is a master, as its topology wants it; and not in the list of sentinels.
//   3. goes in one attempt to the hosts of its list and to redirections_max others at most, at each of their addresses; and attempts
//      are reconnect_delay_min / 2 apart at least, but after a connection that was ready, or after addresses that came late. (S10)
//   4. dials only addresses of the host that is meant, however late the resolver tells them.
//   5. is due nowhere once all that is due is done, and what its session says of itself is so. (S10)
//   6. finds its server as soon as that and one host of the list are honest, whatever was before, while the others are silent. No
//      assertion of the library fails. (S12)
//
// Input: a letter for the topology: s sentinels, c a cluster, m a cluster of any slot; then a program. Each step is a letter and a
// parameter, a digit or any byte:
//   r n  the resolver finds n addresses, modulo 3       d    the host takes the connection      f    it does not
//   a n  the handshake is answered, by answer number n  q    a question is asked                e n  and answered, by error number n
//   k    the connection ends                            + n  time passes
//   x n  the next n bytes of the input, from the host, raw
// Spaces and line ends between steps are nothing.
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "holdfast/cluster.hpp"
#include "holdfast/core/host_list.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/sentinels.hpp"
#include "resp_text.hpp"
#include "theorem.hpp"
#include "wire_pieces.hpp"

using namespace holdfast;
using namespace holdfast::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t steps_max = 300;
constexpr char letters[] = "rdfaqek+x";
constexpr const char* listed = "10.0.0.1:7000,s2:7000,10.0.0.3:7000";
constexpr std::size_t listed_places[] = {0, 14, 22};
constexpr std::size_t listed_count = sizeof listed_places / sizeof listed_places[0];
constexpr const char* good_host = "10.0.0.9";  // Who serves, in the end.

constexpr std::size_t addresses_found_max = 2;

// Those behind the 20th are odd, and most are no names at all.
std::string host(unsigned number) {
  const std::string odd[] = {"", "h 1", "h/1", "h\n1", "?", std::string(listed_host_size_max, 'h')};
  if (number == 31) return std::string(listed_host_size_max + 1, 'h');
  if (number >= 20) return odd[number % 6];
  return (number < 10 ? "10.0.0." : "h") + std::to_string(number % 10);
}
bool is_literal(std::string_view host) { return host.find_first_not_of("0123456789.") == host.npos; }
// The address of a host that has a name.
SocketAddress address_of(std::string_view host) {
  SocketAddress address{};
  address.size = 16;
  std::memcpy(address.bytes, host.data(), host.size() < sizeof address.bytes ? host.size() : sizeof address.bytes);
  return address;
}

// The text has this name, as a whole: in a list or behind MOVED, or as a bulk string.
bool has_name(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || std::string_view(" ,\n").find(text[at - 1]) != text.npos;
    if (begins && end != text.size() && (text[end] == ':' || text[end] == '\r')) return true;
  }
  return false;
}

struct World {
  World(std::string text, char topology) : program(std::move(text)), of_sentinels(topology == 's') {
    if (topology == 'm') cluster.take_any_slot();
    ClientConfig config;
    config.connect_timeout = 2s;
    config.request_timeout = 500ms;
    if (of_sentinels)
      config.topology = &sentinels;
    else
      config.topology = &cluster;
    node->configure(config, nullptr);
  }

  // ---- What a driver does ----

  void poll() {
    Reply reply;
    while (node->session().poll_reply(reply, now)) {}
    HOLDFAST_THEOREM(node->session().invariants(), program);
  }
  void transmit() {
    std::string sent;
    std::size_t limit = SIZE_MAX;
    do {
      if (node->session().wants_look()) node->session().handle_drained();
    } while (transmit_piece(node->session(), now, sent, limit));
  }
  void receive(std::string_view bytes) {
    if (!node->open()) return;
    heard.append(bytes);
    while (receive_piece(node->session(), now, bytes)) {
      node->handle_used(now);
      poll();
    }
  }
  void close() {
    if (!node->open()) return;
    node->handle_closed(now, random);
    poll();
    HOLDFAST_THEOREM(!node->open() && !node->ready(), program);
  }
  void dialled() {
    const std::string_view name = node->config().host.view().string_view();
    HOLDFAST_THEOREM(is_host(ByteView(name)), program);
    HOLDFAST_THEOREM(std::strlen(node->config().host.c_str()) == name.size(), program);
    HOLDFAST_THEOREM(has_name(listed, name) || has_name(heard, name), program);
    HOLDFAST_THEOREM(node->config().port != 0, program);
    HOLDFAST_THEOREM(++dials <= (listed_count + redirections_max) * addresses_found_max, program);
    const SocketAddress* const address = node->address();
    HOLDFAST_THEOREM(address != nullptr, program);
    const SocketAddress meant = address_of(name);
    HOLDFAST_THEOREM(is_literal(name) || std::memcmp(address->bytes, meant.bytes, sizeof meant.bytes) == 0, program);
    HOLDFAST_THEOREM(node->dialer().handshake_deadline() > now, program);
    raw = proved = false;
    answered = false;
  }
  void begin_attempt() {
    HOLDFAST_THEOREM(excused || now - began >= reconnect_delay_min / 2, program);
    began = now;
    dials = 0;
    excused = false;
  }
  // All that is due. A dial that is under way stays so.
  void turn() {
    node->session().handle_timeout(now);
    poll();
    for (int rounds = 0;; ++rounds) {
      HOLDFAST_THEOREM(rounds < 1000, program);
      if (node->session().state() == SessionState::failed) close();
      if (node->dialer().due(now)) begin_attempt();
      const DialAction action = node->poll_dial(now, random);
      if (action == DialAction::resolve) {
        HOLDFAST_THEOREM(!asking, program);
        asking = true;
        asked_for = std::string(node->config().host.view().string_view());
      }
      if (action == DialAction::dial) dialled();
      if (action == DialAction::none && node->dialer().poll_timeout() > now) break;
    }
    if (node->handle_ready(now)) {
      HOLDFAST_THEOREM(proved || raw, program);
      excused = true;
    }
    transmit();
    HOLDFAST_THEOREM(node->timeout() > now, program);
  }

  // ---- What happens ----

  void resolve(unsigned count) {
    if (!asking) return;
    asking = false;
    const bool late = node->dialer().state() == DialState::waiting;
    const SocketAddress found[addresses_found_max] = {address_of(asked_for), address_of(asked_for)};
    node->handle_addresses(found, static_cast<std::uint8_t>(count), now, random);
    excused = excused || late;
  }
  void connect(bool taken) {
    if (!node->dialling()) return;
    if (taken)
      node->handle_connected(now);
    else
      node->dialer().handle_dial_failed(Status::connect_failed, now, random);
  }
  [[nodiscard]] std::string moved(unsigned number) const {
    return "-MOVED " + std::to_string(cluster.slot()) + " " + host(number) + ":6379\r\n";
  }
  [[nodiscard]] static std::string identity(const std::string& standing) {
    return "*6\r\n" + bulk(std::string(40, 'f')) + bulk("1") + bulk("7.0.15") + bulk("") + bulk(std::string(40, '0')) +
           bulk(standing);
  }
  [[nodiscard]] static std::string address(unsigned number) { return "*2\r\n" + bulk(host(number)) + bulk("6379"); }
  void answer(unsigned number) {
    transmit();
    if (answered || !node->open()) return;
    answered = true;
    const unsigned other = number >> 3;
    const std::string others[] = {of_sentinels ? address(other) : moved(other),
                                  identity(of_sentinels ? "-1master" : "-1clustermaster"),
                                  identity(of_sentinels ? "-1slave" : "-1clusterslave"),
                                  "-ASK " + std::to_string(cluster.slot()) + " " + host(other) + ":6379\r\n",
                                  "-LOADING Redis is loading the dataset in memory\r\n",
                                  "*-1\r\n",
                                  "-CLUSTERDOWN Hash slot not served\r\n",
                                  moved(other).replace(7, 1, "9")};
    proved = number % 8 == 1;
    receive("+OK\r\n:7\r\n" + others[number % 8]);
  }
  void ask() {
    const Argument words[] = {"GET", "k"};
    if (node->ready()) (void)node->ask(words, {.operation = Operation::query}, now);
    transmit();
  }
  void fail(unsigned number) {
    const unsigned other = number >> 3;
    const std::string errors[] = {moved(other),
                                  moved(other).replace(7, 1, "9"),
                                  "-ASK " + std::to_string(cluster.slot()) + " " + host(other) + ":6379\r\n",
                                  "-READONLY You can't write against a read only replica.\r\n",
                                  "-CLUSTERDOWN Hash slot not served\r\n",
                                  "-NOREPLICAS Not enough good replicas to write.\r\n",
                                  "-MASTERDOWN Link with MASTER is down\r\n",
                                  "-MOVED " + std::to_string(cluster.slot()) + " ?:6379\r\n"};
    receive(errors[number % 8]);
  }

  // ---- In the end ----

  // Who serves, and one of the list, are honest. The others say nothing.
  void settle() {
    close();
    const unsigned honest = random % listed_count;
    const Instant end = now + 60s;
    while (!node->ready()) {
      HOLDFAST_THEOREM(now < end, program);
      turn();
      resolve(1);
      turn();
      const std::string_view name = node->config().host.view().string_view();
      const bool serves = name == good_host;
      const bool tells = std::string_view(listed).substr(listed_places[honest]).substr(0, name.size()) == name;
      if (serves || tells) connect(true);
      if (serves) answer(1);
      if (tells) answer(9U << 3);
      turn();
      now = now + 10ms;
    }
    HOLDFAST_THEOREM(node->config().host.view() == ByteView(std::string_view(good_host)), program);
  }

  std::string program;
  bool of_sentinels;
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  std::uint16_t random = 0;
  Sentinels sentinels{{.hosts = ByteView(std::string_view(listed)), .service = "mymaster"}};
  Cluster cluster{{.hosts = ByteView(std::string_view(listed)), .name = "k"}};
  std::unique_ptr<NodeBuffers> buffers = std::make_unique<NodeBuffers>();
  std::unique_ptr<Node> node = std::make_unique<Node>(buffers->storage());
  std::string heard;  // All that any host has said.
  Instant began = Instant::from_nanoseconds(0);
  std::size_t dials = 0;  // Of this attempt.
  bool excused = false;   // The next attempt may follow at once.
  bool asking = false;    // The resolver is,
  std::string asked_for;  // for this name.
  bool answered = false;  // The handshake is, on this connection:
  bool proved = false;    // by a master,
  bool raw = false;       // or by raw bytes.
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const char topology = letter_of(next_byte(rest), "scm");
  const auto owner = std::make_unique<World>(std::string(reinterpret_cast<const char*>(data), size), topology);
  World& world = *owner;
  world.turn();
  for (std::size_t step = 0; step < steps_max && !rest.empty(); ++step) {
    const char first = next_byte(rest);
    if (first == ' ' || first == '\n') continue;
    const char letter = letter_of(first, letters);
    const bool plain = letter == 'd' || letter == 'f' || letter == 'q' || letter == 'k';
    const unsigned number = plain ? 0 : static_cast<std::uint8_t>(next_byte(rest));
    world.random = static_cast<std::uint16_t>(world.random * 31U + number + step);
    switch (letter) {
      case 'r': world.resolve(number % (addresses_found_max + 1)); break;
      case 'd': world.connect(true); break;
      case 'f': world.connect(false); break;
      case 'a': world.answer(number); break;
      case 'q': world.ask(); break;
      case 'e': world.fail(number); break;
      case 'k': world.close(); break;
      case '+': world.now = world.now + (number - '0' < 10U ? 50ms * (1 << (number - '0')) : 1ms); break;
      case 'x':
        world.raw = true;
        world.transmit();
        world.receive(rest.substr(0, number));
        rest.remove_prefix(rest.size() < number ? rest.size() : number);
        break;
    }
    world.turn();
  }
  world.settle();
  return 0;
}

// SPDX-License-Identifier: MIT
#include "key_events.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "exit_codes.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/proto/server_error.hpp"
#include "secrets.hpp"
#include "stream.hpp"
#include "wait_for.hpp"

namespace holdfast::cli {

namespace {

std::string command_of(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

bool is_later(int number) noexcept { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }

}  // namespace

KeyEvents::KeyEvents(ClientBase& client, const std::string& name)
    : client_(client), channel_("__keyspace@" + std::to_string(client.config().database) + "__:" + name) {}

KeyEvents::~KeyEvents() {
  wipe(unsent_);
  stream_.close();
}

short KeyEvents::poll_events() const noexcept {
  return events_of(state_ == State::dialling, stream_.waits_to_send(!unsent_.empty()));
}

void KeyEvents::close(Instant now, std::uint32_t random) noexcept {
  stream_.close();
  parser_.reset();
  wipe(unsent_);
  unsent_.clear();
  if (state_ != State::off) state_ = State::closed;
  next_ = now + back_off_.next(random);
}

void KeyEvents::dial(Instant now, std::uint32_t random) {
  if (state_ == State::closed) {
    // It goes where the client goes, which looks for an address by itself.
    if (now < next_ || !client_.connected()) return;
    int socket = -1;
    bool connected = false;
    const Status status = client_.connection().begin_connect(socket, connected);
    stream_.adopt(socket);
    if (status != Status::ok) return close(now, random);
    state_ = State::dialling;
    if (!connected) return;
  } else {
    pollfd entry = {.fd = stream_.socket(), .events = POLLOUT, .revents = 0};
    if (::poll(&entry, 1, 0) != 1) return;
    if (Connection::connect_outcome(stream_.socket()) != Status::ok) return close(now, random);
  }
  // Where the client is on its way to another host, the address of this one is not known any more.
  if (!client_.connected() || client_.connection().set_up(stream_) != Status::ok) return close(now, random);
  state_ = State::open;
  begin();
}

// What the connection says first.
void KeyEvents::begin() {
  const auto text = [](ByteView bytes) { return std::string(bytes.string_view()); };
  const std::string user = text(client_.config().user.view());
  std::string password = text(client_.config().password.view());
  if (!password.empty())
    unsent_ = command_of(user.empty() ? std::vector<std::string>{"AUTH", password}
                                      : std::vector<std::string>{"AUTH", user, password});
  wipe(password);
  unsent_ += command_of({"SUBSCRIBE", channel_});
}

// False: the connection is over.
bool KeyEvents::send() {
  while (!unsent_.empty() || stream_.unsent()) {
    const std::ptrdiff_t sent = stream_.send(ByteView(std::string_view(unsent_)), MSG_DONTWAIT);
    if (sent < 0) return is_later(errno);
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool KeyEvents::take_value(const RespValue& value, std::vector<std::string>& events) {
  if (value.is_simple("OK")) return true;  // AUTH.
  if (value.count() != 3 || !value.at(0).is(RespKind::bulk)) return false;
  if (value.at(0).text() == ByteView("subscribe")) {
    back_off_.reset();
    return true;
  }
  if (value.at(0).text() != ByteView("message") || !value.at(2).is(RespKind::bulk)) return false;
  events.emplace_back(value.at(2).text().string_view());
  return true;
}

// False: as above.
bool KeyEvents::receive(std::vector<std::string>& events) {
  for (std::size_t before = events.size(); before <= events_at_once_max; before = events.size()) {
    const MutableBytes space = parser_.receive_space();
    const std::ptrdiff_t count = stream_.receive(space, MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0) return is_later(errno);
    parser_.handle_received(static_cast<std::size_t>(count));
    RespValue value;
    ParseResult result = ParseResult::need_more;
    while ((result = parser_.poll_value(value)) == ParseResult::value)
      if (!take_value(value, events)) {
        const bool later = value.is(RespKind::error) && heals(classify_error(value.text()).status);
        if (!later) state_ = State::off;
        return false;
      }
    if (result == ParseResult::invalid) return false;
  }
  return true;
}

std::vector<std::string> KeyEvents::take(Instant now, std::uint32_t random) {
  std::vector<std::string> events;
  if (state_ == State::closed || state_ == State::dialling) dial(now, random);
  if (state_ != State::open) return events;
  if (!send() || !receive(events)) close(now, random);
  return events;
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: MIT
//
// Board is a program of examples/firmware on an emulated board: its serial line and QEMU's monitor are sockets of the test's.
// HOLDFAST_FIRMWARE_FOLDER says in which folder the programs are.
#pragma once

#include <string>

#include "command_fixture.hpp"

// A Unix socket that one peer connects to.
class Line {
 public:
  explicit Line(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 1) != 0)
      throw std::runtime_error("no socket at " + path);
  }
  ~Line() {
    ::close(peer_);
    ::close(listener_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // False where nobody comes.
  [[nodiscard]] bool accept() {
    if (readable(listener_)) peer_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    return peer_ >= 0;
  }
  void write(const std::string& text) const { (void)::send(peer_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Without its end.
  std::string read_line() const {
    std::string text;
    for (char byte = 0; readable(peer_) && ::recv(peer_, &byte, 1, 0) == 1;) {
      if (byte == '\n') return text;
      text += byte;
    }
    return text + " (no line)";
  }

 private:
  static bool readable(int descriptor) {
    pollfd entry = {.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(patience / 1ms)) == 1;
  }

  int listener_ = -1;
  int peer_ = -1;
};

class Board {
 public:
  // `folder` is the test's own. The program finds `words` at its start.
  Board(const std::string& program, const std::string& folder, const Words& words)
      : serial_(folder + "/serial"),
        monitor_(folder + "/monitor"),
        emulator_("", arguments(program, folder, words), start()) {
    if (!serial_.accept() || !monitor_.accept()) throw std::runtime_error("no emulator: " + emulator_.errors());
  }

  void type(const std::string& line) const { serial_.write(line + "\n"); }
  std::string line() const { return serial_.read_line(); }
  // The next line with this text in it; others before it are passed over.
  std::string await(const std::string& text) const {
    for (;;) {
      std::string said = line();
      TEST_MESSAGE("board: " << said);
      if (contains(said, text)) return said;
      TEST_ASSERT_FALSE(contains(said, "(no line)"));
    }
  }
  // The cable of its network.
  void set_cable(bool in) const { monitor_.write(in ? "set_link cable on\n" : "set_link cable off\n"); }
  int wait() { return emulator_.wait(); }

 private:
  static Start start() { return {.path = "qemu-system-arm"}; }
  static Words arguments(const std::string& program, const std::string& folder, const Words& words) {
    const char* const built = std::getenv("HOLDFAST_FIRMWARE_FOLDER");
    std::string semihosting = "enable=on,target=native";
    for (const std::string& word : words) semihosting += ",arg=" + word;
    return {"-M", "mps2-an386", "-display", "none", "-kernel",
            std::string(built == nullptr ? "." : built) + "/" + program + ".elf", "-serial",
            "unix:" + folder + "/serial", "-monitor", "unix:" + folder + "/monitor",
            // The range for documents; the host's loopback interface answers at .2.
            "-nic", "user,model=lan9118,id=cable,net=192.0.2.0/24,host=192.0.2.2", "-semihosting-config", semihosting};
  }

  Line serial_;
  Line monitor_;
  Running emulator_;
};

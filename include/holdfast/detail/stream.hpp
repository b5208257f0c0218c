// SPDX-License-Identifier: MIT
//
// Stream carries the bytes of one connection: a socket or, where the configuration has a StreamSecurity, a layer over one that
// encrypts them. receive() and send() are recv(2) and send(2) in either case: how many bytes, or -1 and errno. Connecting is the
// socket's alone; a layer shakes hands with its peer while bytes are received and sent.
//
// Not thread-safe: one owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/proto/bytes.hpp"

namespace holdfast {

class StreamSecurity;

// What a StreamSecurity knows of one connection.
struct StreamLayer {
  StreamSecurity* security = nullptr;
  bool established = false;  // The peer has proved itself, as far as that was asked for.
  bool pending = false;      // Bytes were decrypted that did not fit into the last receive: no poll(2) sees them.
  bool unsent = false;       // Bytes were taken by send() that the socket has not taken yet.
  // Why the last receive or send failed, where errno is EPROTO: a sentence without a full stop. Valid while the layer lives.
  const char* problem = nullptr;
};

// Makes the layers. The one that there is is Tls (tls.hpp), which has a library of its own.
class StreamSecurity {
 public:
  struct Table {
    // A layer over this connected socket, to this host; nullptr: there is no place, or no memory.
    StreamLayer* (*open)(StreamSecurity& security, int socket, const char* host) noexcept;
    // As recv(2) and send(2), with their flags. What send() takes has left as far as the layer's user is concerned.
    std::ptrdiff_t (*receive)(StreamLayer& layer, MutableBytes space, int flags) noexcept;
    std::ptrdiff_t (*send)(StreamLayer& layer, ByteView bytes, int flags) noexcept;
    // Says nothing to the peer.
    void (*close)(StreamLayer& layer) noexcept;
  };

  StreamSecurity(const StreamSecurity&) = delete;
  StreamSecurity& operator=(const StreamSecurity&) = delete;

  [[nodiscard]] const Table& table() const noexcept { return table_; }

 protected:
  explicit constexpr StreamSecurity(const Table& table) noexcept : table_(table) {}
  ~StreamSecurity() = default;

 private:
  const Table& table_;
};

class Stream {
 public:
  [[nodiscard]] int socket() const noexcept { return socket_; }
  [[nodiscard]] bool is_open() const noexcept { return socket_ >= 0; }
  [[nodiscard]] bool pending() const noexcept { return layer_ != nullptr && layer_->pending; }
  [[nodiscard]] bool unsent() const noexcept { return layer_ != nullptr && layer_->unsent; }
  // There is no layer, or its peer has proved itself.
  [[nodiscard]] bool established() const noexcept { return layer_ == nullptr || layer_->established; }
  // To wait for the socket to take bytes is of use; `unsent`: the user has some. A layer that shakes hands takes none: it waits for
  // its peer.
  [[nodiscard]] bool waits_to_send(bool unsent) const noexcept {
    return layer_ == nullptr ? unsent : layer_->unsent | (unsent & layer_->established);
  }
  // Why the last receive or send failed, where the layer knows; or nullptr.
  [[nodiscard]] const char* problem() const noexcept { return layer_ == nullptr ? nullptr : layer_->problem; }

  // The socket is the stream's from here on; -1: there is none, or another owner closes it.
  void adopt(int socket) noexcept { socket_ = socket; }
  // The connection is secured by this; nullptr: it is not. False: there was no place for it.
  [[nodiscard]] bool secure(StreamSecurity* security, const char* host) noexcept {
    if (security == nullptr) return true;
    layer_ = security->table().open(*security, socket_, host);
    return layer_ != nullptr;
  }
  // What was said of the layer is forgotten; the socket stays.
  void drop_layer() noexcept {
    if (layer_ != nullptr) layer_->security->table().close(*layer_);
    layer_ = nullptr;
  }
  void close() noexcept;

  [[nodiscard]] std::ptrdiff_t receive(MutableBytes space, int flags) noexcept;
  [[nodiscard]] std::ptrdiff_t send(ByteView bytes, int flags) noexcept;

 private:
  int socket_ = -1;
  StreamLayer* layer_ = nullptr;
};

}  // namespace holdfast

// SPDX-License-Identifier: MIT
//
// KeptConfig is the configuration that a node goes by: its texts stand in storage of the node's, and take as much of it as
// they have bytes.
#pragma once

#include <cstddef>

#include "holdfast/core/client_config.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

// A view of a text, with a NUL behind it.
class KeptBytes {
 public:
  template <std::size_t array_size>
  constexpr KeptBytes(const char (&literal)[array_size]) noexcept : text_(literal, array_size - 1) {}
  constexpr KeptBytes() noexcept : KeptBytes("") {}

  // REQUIRES: a NUL stands behind it, and it outlives this.
  constexpr explicit KeptBytes(ByteView text) noexcept : text_(text) {}

  [[nodiscard]] constexpr ByteView view() const noexcept { return text_; }
  [[nodiscard]] constexpr const char* c_str() const noexcept { return text_.data(); }
  [[nodiscard]] constexpr bool empty() const noexcept { return text_.empty(); }

 private:
  friend struct KeptConfig;
  ByteView text_;
};
template <std::size_t>
using KeptText = KeptBytes;

struct KeptConfig : ClientConfigOf<KeptText> {
  // The first text of a valid configuration that does not fit into so many bytes, with those before it.
  [[nodiscard]] static ConfigProblem misfit(const ClientConfig& config, std::size_t space_size) noexcept {
    return take_texts(config, {nullptr, space_size}, nullptr);
  }
  // Takes it over, and its texts into `space`. REQUIRES: it is valid, and misfit() has found nothing.
  void keep(const ClientConfig& config, MutableBytes space) noexcept;
  // Another's, whose texts stand at `from` on, and have been copied as they are to `to`.
  void keep_copy(const KeptConfig& other, const char* from, const char* to) noexcept;
  // As it was given; but of a Unix socket without the host, which is not used, and with Sentinels or a Cluster the host of now.
  operator ClientConfig() const noexcept;  // NOLINT(google-explicit-constructor): it is one.

 private:
  static ConfigProblem take_texts(const ClientConfig& config, MutableBytes space, KeptConfig* into) noexcept;
};

// What any configuration takes: a host or a path, the other texts, and a NUL behind each.
inline constexpr std::size_t config_texts_size_max =
    host_size_max + user_size_max + password_size_max + client_name_size_max + 4;
static_assert(host_size_max >= socket_path_size_max, "a path must fit where a host does");

}  // namespace holdfast

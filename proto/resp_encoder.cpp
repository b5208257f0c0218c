// SPDX-License-Identifier: MIT
#include "holdfast/resp_encoder.hpp"

#include "decimal.hpp"

namespace holdfast {

namespace {

std::size_t payload_size(const Argument& argument) noexcept {
  return argument.is_integer() ? decimal_size(argument.integer()) : argument.bytes().size();
}

char* write_header(char* out, char type, std::size_t number) noexcept {
  *out++ = type;
  out = write_decimal(out, static_cast<std::uint64_t>(number));
  *out++ = '\r';
  *out++ = '\n';
  return out;
}

// The caller made sure that it fits. Reports where the payload of argument `watched` stands.
void write_command(char* out, Arguments arguments, std::size_t watched, std::size_t& watched_offset) noexcept {
  char* at = write_header(out, '*', arguments.count());
  std::size_t index = 0;
  for (const Argument& argument : arguments) {
    at = write_header(at, '$', payload_size(argument));
    if (index++ == watched) watched_offset = static_cast<std::size_t>(at - out);
    if (argument.is_integer()) {
      at = write_decimal(at, argument.integer());
    } else if (!argument.bytes().empty()) {
      std::memcpy(at, argument.bytes().data(), argument.bytes().size());
      at += argument.bytes().size();
    }
    *at++ = '\r';
    *at++ = '\n';
  }
}

}  // namespace

std::size_t encoded_size(Arguments arguments) noexcept {
  constexpr std::size_t header_overhead = 3;  // The type byte, CR and LF.
  std::size_t size = header_overhead + decimal_size(static_cast<std::uint64_t>(arguments.count()));
  for (const Argument& argument : arguments) {
    const std::size_t payload = payload_size(argument);
    size += header_overhead + decimal_size(static_cast<std::uint64_t>(payload)) + payload + 2;
  }
  return size;
}

Status encode_command(MutableBytes out, Arguments arguments, std::size_t& size) noexcept {
  if (arguments.count() == 0) return Status::invalid_argument;
  const std::size_t needed = encoded_size(arguments);
  if (needed > out.size) return Status::buffer_too_small;
  std::size_t unused = 0;
  write_command(out.data, arguments, SIZE_MAX, unused);
  size = needed;
  return Status::ok;
}

Status RequestTemplate::prepare(Arguments arguments, std::size_t patched) noexcept {
  HOLDFAST_ASSERT(patched < arguments.count() && !arguments.begin()[patched].is_integer());
  const std::size_t needed = encoded_size(arguments);
  if (needed > sizeof bytes_) return Status::buffer_too_small;
  std::size_t offset = 0;
  write_command(bytes_, arguments, patched, offset);
  size_ = static_cast<std::uint16_t>(needed);
  patched_offset_ = static_cast<std::uint16_t>(offset);
  patched_size_ = static_cast<std::uint16_t>(arguments.begin()[patched].bytes().size());
  return Status::ok;
}

}  // namespace holdfast

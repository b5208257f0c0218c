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

constexpr std::size_t header_overhead = 3;  // The type byte, CR and LF.

char* write_argument(char* at, const Argument& argument) noexcept {
  at = write_header(at, '$', payload_size(argument));
  if (argument.is_integer()) {
    at = write_decimal(at, argument.integer());
  } else if (!argument.bytes().empty()) {
    std::memcpy(at, argument.bytes().data(), argument.bytes().size());
    at += argument.bytes().size();
  }
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

std::size_t command_header_size(std::size_t count) noexcept {
  return header_overhead + decimal_size(static_cast<std::uint64_t>(count));
}

std::size_t argument_size(const Argument& argument) noexcept {
  const std::size_t payload = payload_size(argument);
  return header_overhead + decimal_size(static_cast<std::uint64_t>(payload)) + payload + 2;
}

// encode_command(), and reports where the payload of argument `watched` stands.
Status encode(MutableBytes out, Arguments arguments, std::size_t& size, std::size_t watched,
              std::size_t& watched_offset) noexcept {
  if (arguments.count() == 0) return Status::invalid_argument;
  const std::size_t needed = encoded_size(arguments);
  if (needed > out.size) return Status::buffer_too_small;
  size = needed;
  char* at = write_header(out.data, '*', arguments.count());
  std::size_t index = 0;
  for (const Argument& argument : arguments) {
    at = write_argument(at, argument);
    // The payload stands before the CR LF that ends its argument.
    if (index++ == watched) watched_offset = static_cast<std::size_t>(at - out.data) - 2 - payload_size(argument);
  }
  return Status::ok;
}

}  // namespace

std::size_t encoded_size(Arguments arguments) noexcept {
  std::size_t size = command_header_size(arguments.count());
  for (const Argument& argument : arguments) size += argument_size(argument);
  return size;
}

Status encode_command(MutableBytes out, Arguments arguments, std::size_t& size) noexcept {
  std::size_t unused = 0;
  return encode(out, arguments, size, SIZE_MAX, unused);
}

CommandWriter::CommandWriter(MutableBytes out, std::size_t count) noexcept : out_(out), missing_(count) {
  HOLDFAST_ASSERT(count != 0);
  const std::size_t needed = command_header_size(count);
  fits_ = needed <= out.size;
  if (!fits_) return;
  write_header(out.data, '*', count);
  size_ = needed;
}

CommandWriter& CommandWriter::append(const Argument& argument) noexcept {
  HOLDFAST_ASSERT(missing_ != 0);
  --missing_;
  fits_ = fits_ && argument_size(argument) <= out_.size - size_;
  if (fits_) size_ = static_cast<std::size_t>(write_argument(out_.data + size_, argument) - out_.data);
  return *this;
}
CommandWriter& CommandWriter::add(ByteView bytes) noexcept { return append(Argument(bytes)); }
CommandWriter& CommandWriter::add(std::int64_t integer) noexcept { return append(Argument(integer)); }

Status CommandWriter::finish(std::size_t& size) const noexcept {
  HOLDFAST_ASSERT(missing_ == 0);
  if (!fits_) return Status::buffer_too_small;
  size = size_;
  return Status::ok;
}

Status RequestTemplate::prepare(Arguments arguments, std::size_t patched) noexcept {
  HOLDFAST_ASSERT(patched < arguments.count() && !arguments.begin()[patched].is_integer());
  std::size_t size = 0;
  std::size_t offset = 0;
  if (const Status status = encode({bytes_, sizeof bytes_}, arguments, size, patched, offset); status != Status::ok)
    return status;
  size_ = static_cast<std::uint16_t>(size);
  patched_offset_ = static_cast<std::uint16_t>(offset);
  patched_size_ = static_cast<std::uint16_t>(arguments.begin()[patched].bytes().size());
  return Status::ok;
}

}  // namespace holdfast

// SPDX-License-Identifier: MIT
#include "holdfast/proto/resp_encoder.hpp"

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

std::size_t bulk_size(std::size_t payload) noexcept {
  return header_overhead + decimal_size(static_cast<std::uint64_t>(payload)) + payload + 2;
}

}  // namespace

std::size_t encoded_size(Arguments arguments) noexcept {
  std::size_t size = command_header_size(arguments.count());
  for (const Argument& argument : arguments) size += bulk_size(payload_size(argument));
  return size;
}

Status encode_command(MutableBytes out, Arguments arguments, std::size_t& size) noexcept {
  if (arguments.count() == 0) return Status::invalid_argument;
  const std::size_t needed = encoded_size(arguments);
  if (needed > out.size) return Status::buffer_too_small;
  size = needed;
  char* at = write_header(out.data, '*', arguments.count());
  for (const Argument& argument : arguments) at = write_argument(at, argument);
  return Status::ok;
}

CommandWriter::CommandWriter(MutableBytes out, std::size_t count) noexcept
    : begin_(out.data), at_(out.data), end_(out.data + out.size), announced_(static_cast<std::uint32_t>(count)) {
  HOLDFAST_ASSERT(count != 0);
  if (command_header_size(count) > out.size)
    overflow();
  else
    at_ = write_header(out.data, '*', count);
}

inline char* CommandWriter::begin_bulk(std::size_t size) noexcept {
  const std::size_t digits = size < 10 ? 1 : size < 100 ? 2 : decimal_size(std::uint64_t{size});
  if (room() < 1 + digits + 2 + size + 2) [[unlikely]] {
    overflow();
    return nullptr;
  }
  *at_ = '$';
  if (digits > 2) return end_line(write_decimal(at_ + 1, size, digits));
  const auto small = static_cast<std::uint32_t>(size);
  if (digits == 2) at_[1] = static_cast<char>('0' + small / 10);
  at_[digits] = static_cast<char>('0' + small % 10);
  return end_line(at_ + 1 + digits);
}

CommandWriter& CommandWriter::add(ByteView bytes) noexcept {
  ++count_;
  char* const payload = begin_bulk(bytes.size());
  if (payload == nullptr) [[unlikely]]
    return *this;
  if (!bytes.empty()) std::memcpy(payload, bytes.data(), bytes.size());
  at_ = end_line(payload + bytes.size());
  return *this;
}

CommandWriter& CommandWriter::add(std::int64_t integer) noexcept {
  char digits[decimal_size_max];
  return add(ByteView(digits, static_cast<std::size_t>(write_decimal(digits, integer) - digits)));
}

CommandWriter& CommandWriter::add_encoded(ByteView bytes, std::size_t count) noexcept {
  if (char* const place = claim(bytes.size(), count); place != nullptr) [[likely]]
    std::memcpy(place, bytes.data(), bytes.size());
  return *this;
}

// What was announced, has ten arguments or more, or none, or did not fit.
Status CommandWriter::finish_other(std::size_t& size) noexcept {
  HOLDFAST_ASSERT(announced_ == 0 ? count_ < 100 : count_ == announced_);
  if (count_ == 0) return Status::invalid_argument;
  if (begin_ == nullptr) return Status::buffer_too_small;
  if (announced_ == 0) {  // The arguments make way for the second digit of their number.
    if (room() == 0) return Status::buffer_too_small;
    char* const digits = begin_ + 1;
    std::memmove(digits + 1, digits, static_cast<std::size_t>(at_++ - digits));
    digits[0] = static_cast<char>('0' + count_ / 10);
    digits[1] = static_cast<char>('0' + count_ % 10);
    announced_ = count_;
  }
  size = static_cast<std::size_t>(at_ - begin_);
  return Status::ok;
}

}  // namespace holdfast

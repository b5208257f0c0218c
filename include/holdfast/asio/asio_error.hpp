// SPDX-License-Identifier: MIT
//
// Status as a std::error_code, for the handlers of the Asio client:
//
//     lock.async_acquire(2s, [](std::error_code error) { if (error == holdfast::Status::lock_busy) ...; });
//
// A cancelled operation also equals std::errc::operation_canceled, one that took too long std::errc::timed_out.
#pragma once

#include <system_error>

#include "holdfast/status.hpp"

namespace holdfast {

// The category "holdfast"; its messages say what happened and what to do about it.
[[nodiscard]] const std::error_category& status_category() noexcept;

// ok is the error_code that is none.
[[nodiscard]] inline std::error_code make_error_code(Status status) noexcept {
  if (status == Status::ok) return {};
  return {static_cast<int>(status), status_category()};
}

// What a holdfast handler was given, as a Status again; ok of no error, system_error of another category's.
[[nodiscard]] inline Status to_status(const std::error_code& error) noexcept {
  if (!error) return Status::ok;
  return error.category() == status_category() ? static_cast<Status>(error.value()) : Status::system_error;
}

}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::Status> : std::true_type {};

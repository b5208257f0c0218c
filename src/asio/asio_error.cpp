// SPDX-License-Identifier: MIT
#include "holdfast/asio/asio_error.hpp"

#include <string>

namespace holdfast {

namespace {

class StatusCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "holdfast"; }
  [[nodiscard]] std::string message(int value) const override {
    const auto status = static_cast<Status>(value);
    return std::string(to_string(status)) + ": " + cause(status) + " " + remedy(status);
  }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Status>(value)) {
      case Status::cancelled: return std::errc::operation_canceled;
      case Status::timed_out: return std::errc::timed_out;
      case Status::not_connected: return std::errc::not_connected;
      case Status::invalid_argument: return std::errc::invalid_argument;
      default: return {value, *this};
    }
  }
};

}  // namespace

const std::error_category& status_category() noexcept {
  static const StatusCategory category;
  return category;
}

}  // namespace holdfast

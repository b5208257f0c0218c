// SPDX-License-Identifier: MIT
//
// A file that is there as a whole or not at all: written beside its place under another name, and renamed when it is complete. Who
// reads it while it is written reads what was there before. The other name is always the same one, .holdfast-NAME.new: who is
// killed meanwhile leaves one such file, however often, and the next one to write takes it. Two processes write one after the
// other.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// Why it could not be written, as a sentence without a full stop; empty: it can, as far as can be told without writing it.
[[nodiscard]] std::string new_file_problem(const std::string& path);

// Replaces the file. Where it is a symbolic link, what that leads to. Empty, or why not; nothing has changed then. Waits for
// another process that writes it for a second at most. Any thread, once new_file_problem() was called.
[[nodiscard]] std::string write_new_file(const std::string& path, std::string_view text);

}  // namespace holdfast::cli

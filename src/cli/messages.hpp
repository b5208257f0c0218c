// SPDX-License-Identifier: MIT
//
// What the command says: one line each on standard error, "holdfast: ...", and on standard output what was asked for.
#pragma once

#include <string>
#include <string_view>

#include "holdfast/proto/bytes.hpp"

namespace holdfast::cli {

// Prints one line. A reader who is slow must not cost us the lock, so a line that would have to wait for more than a
// moment is dropped.
void say(std::string_view line);

// Why it was not possible to write to standard output just now, by errno. Empty where its reader is gone, who wants to know nothing.
[[nodiscard]] std::string output_problem();

// Prints a text that was asked for, whole, however long its reader takes. False if that is not possible: it says output_problem().
[[nodiscard]] bool print(std::string_view text);

// Printable ASCII as it is, a backslash doubled, every other byte as \xNN: a name or a server's text must not steer
// the terminal.
[[nodiscard]] std::string escaped(BytesArgument bytes);

}  // namespace holdfast::cli

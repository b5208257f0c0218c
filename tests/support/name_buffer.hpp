// SPDX-License-Identifier: MIT
//
// A name as C programs write it: in an array, with whatever was there before after its NUL.
#pragma once

#include <cstdio>
#include <cstring>

struct NameBuffer {
  NameBuffer(const char* text, char rest) {
    std::memset(name, rest, sizeof name);
    (void)std::snprintf(name, sizeof name, "%s", text);
  }
  char name[64];
};

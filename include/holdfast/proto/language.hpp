// SPDX-License-Identifier: MIT
//
// Every header includes this one before it says anything in C++20, so that an older language is told in one sentence.
#pragma once

#if __cplusplus < 202002L
#error "holdfast needs C++20: compile with -std=c++20"
#include <holdfast/needs_c++20>  // There is no such file: an #error alone does not stop the compilers.
#endif

// Where size counts, all who call it share one copy. Else the compiler chooses.
#ifdef __OPTIMIZE_SIZE__
#define HOLDFAST_ONE_COPY [[gnu::noinline]]
#else
#define HOLDFAST_ONE_COPY
#endif

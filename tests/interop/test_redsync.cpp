// SPDX-License-Identifier: MIT
//
// The Mutex and redsync on one server, and the RedlockMutex and redsync on three.
#include "redlock_tests.hpp"
#include "string_key_tests.hpp"

static void setUp() {}
static void tearDown() {}

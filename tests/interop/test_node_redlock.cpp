// SPDX-License-Identifier: MIT
//
// The Mutex and node-redlock on one server, and the RedlockMutex and node-redlock on three.
#include "redlock_tests.hpp"
#include "string_key_tests.hpp"

static void setUp() {}
static void tearDown() {}

// SPDX-License-Identifier: MIT
//
// The Mutex and node-redlock on one server.
#include "string_key_tests.hpp"

static void setUp() {}
static void tearDown() {}

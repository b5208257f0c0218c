// SPDX-License-Identifier: MIT
#include "run_tests.hpp"

int main(int count, char** arguments) { return run_tests(count, arguments); }

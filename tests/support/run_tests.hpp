// SPDX-License-Identifier: MIT
//
// Runs the tests of a program as its arguments say. Besides doctest's own options there is one:
//
//   --part=K/N   only every Nth test, in the order of the source, beginning with the Kth: K is 1 to N. All N parts
//                together run each test once, and a new test needs no number anywhere. Neighbours, which often take
//                equally long, are in different parts.
//
// It combines with doctest's filters: a part runs those of its tests that pass them.
#pragma once

// What main returns: 0 if all tests passed.
int run_tests(int count, char** arguments);

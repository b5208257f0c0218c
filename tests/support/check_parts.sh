#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: check_parts.sh TEST-PROGRAM
#
# Runs a quick test program in parts (--part=K/N), and asks for what run_tests.hpp promises: all parts together run each
# test once, no part is larger than another by more than one test, and what is no part runs nothing.
set -euo pipefail

read -ra program <<<"${MESON_EXE_WRAPPER:-} ${1:?usage: check_parts.sh TEST-PROGRAM}"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

tests_run() {  # tests_run ARGUMENT...: the names of the tests that really ran, one per line
  "${program[@]}" --reporters=xml --no-skipped-summary "$@" | sed -nE 's/.*<TestCase name="([^"]*)".*/\1/p'
}

all=$(tests_run)
count=$(wc -l <<<"$all")
((count >= 5)) || fail "too few tests to be split: $count"

for parts in 1 2 3 $((count - 1)) "$count"; do
  together=()
  for ((part = 1; part <= parts; ++part)); do
    mapfile -t names < <(tests_run "--part=$part/$parts")
    ((${#names[@]} == count / parts || ${#names[@]} == (count + parts - 1) / parts)) ||
      fail "part $part of $parts has ${#names[@]} of $count tests"
    together+=("${names[@]}")
  done
  diff <(sort <<<"$all") <(printf '%s\n' "${together[@]}" | sort) ||
    fail "$parts parts together do not run each test once (left: all tests, right: those of the parts)"
done

# A filter goes on top of a part: it takes away, and brings no test of another part.
first=$(head -n 1 <<<"$all")
[[ $(tests_run --part=1/2 "--test-case=$first") == "$first" ]] || fail "a filter does not find its test in its part"
[[ -z $(tests_run --part=2/2 "--test-case=$first") ]] || fail "a filter brings a test of another part"

for wrong in '' 1 0/2 3/2 -1/2 1/0 x/2 1/2x "1/$((count + 1))"; do
  ! ran=$(tests_run "--part=$wrong" 2>/dev/null) || fail "--part=$wrong is taken"
  [[ -z $ran ]] || fail "--part=$wrong runs tests"
done
echo "ok: $count tests"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What does a hand-off cost the loop, counted instead of timed? User instructions (callgrind) of one name that goes through
# all waiters of one Asio loop, for each of them. If it grows with their number, somebody is looked at who has nothing to do.
#
#     tests/bench/count_handoff.sh BENCH_ASIO [WAITERS...]      (default: 100 1000)
#
# Instructions depend on the optimisation level: the figures in proto/verification.md are of -O2.
set -euo pipefail
export LC_ALL=C

((${#} >= 1)) || { sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bench_asio=$(readlink -f "$1")
shift
(($#)) || set -- 100 1000
for tool in valgrind redis-server; do
  command -v "$tool" >/dev/null || { printf 'count_handoff.sh: skipped, there is no %s\n' "$tool" >&2; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for waiters in "$@"; do
  valgrind --tool=callgrind --callgrind-out-file="$folder/callgrind" --toggle-collect='*Crowd::run_chain*' \
    "$bench_asio" --part crowd --holds 10 --waiters "$waiters" --lease 3 --out "$folder" >"$folder/out" 2>&1
  awk -v waiters="$waiters" '/Collected : / {
    printf "%5d waiters: %d user instructions a hand-off\n", waiters, $NF / waiters
  }' "$folder/out"
done

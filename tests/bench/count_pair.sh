#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What does one pair of acquire and release cost, counted instead of timed? System calls (strace), user instructions
# (callgrind) and heap allocations (memcheck): each is the difference of two runs of bench_pairs, or bench_asio, that
# differ in nothing but the number of pairs, so that start, connection and end drop out. Prints a line for each contender.
#
#     tests/bench/count_pair.sh BENCH_PAIRS [CONTENDER...]      (default: holdfast raw hiredis)
#     tests/bench/count_pair.sh BENCH_ASIO callbacks-512 coroutines-512 ...
#
# Instructions are those of the whole process: holdfast, libc and the bench's own, not the kernel's. They depend on the
# optimisation level: the promise is for -O2 (meson setup --buildtype=debugoptimized). proto/verification.md says more.
set -euo pipefail
export LC_ALL=C

((${#} >= 1)) || { sed -n '4,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
readonly bench_pairs=$1
shift
(($#)) || set -- holdfast raw hiredis

readonly few=1000 many=5000
for tool in strace valgrind redis-server redis-cli; do
  command -v "$tool" >/dev/null || { printf 'count_pair.sh: skipped, there is no %s\n' "$tool" >&2; exit 77; }
done

folder=$(mktemp -d)
redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' >"$folder/log" &
readonly server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$folder"' EXIT
for ((tries = 0; tries < 100; ++tries)); do
  [[ $(redis-cli -s "$folder/socket" ping 2>/dev/null) != PONG ]] || break
  sleep 0.05
done

# run CONTENDER PAIRS COMMAND...: the command in front of that many pairs
run() {
  local contender=$1 pairs=$2
  shift 2
  "$@" "$bench_pairs" --only "$contender" --pairs "$pairs" --transport unix --socket "$folder/socket"
}

# strace's table as "name calls" lines.
system_calls() {
  run "$1" "$2" strace -f -c -U name,calls -o "$folder/strace"
  awk '$2 ~ /^[0-9]+$/ { print $1, $2 }' "$folder/strace"
}

instructions() {
  run "$1" "$2" valgrind --tool=callgrind --callgrind-out-file="$folder/callgrind" 2>&1 | sed -n 's/.*Collected : //p'
}

allocations() {
  run "$1" "$2" valgrind --leak-check=no 2>&1 | sed -n 's/.*total heap usage: \([0-9,]*\) allocs.*/\1/p' | tr -d ,
}

per_pair() {  # per_pair COUNT-OF-FEW COUNT-OF-MANY FORMAT
  awk -v few="$1" -v many="$2" -v pairs=$((many - few)) -v format="$3" \
    'BEGIN { printf format, (many - few) / pairs }'
}

for contender in "$@"; do
  system_calls "$contender" "$few" >"$folder/few"
  system_calls "$contender" "$many" >"$folder/many"
  calls=$(awk -v pairs=$((many - few)) '
    NR == FNR { few[$1] = $2; next }
    $2 != few[$1] { printf "%s%s %.4g", separator, $1, ($2 - few[$1]) / pairs; separator = ", " }
  ' "$folder/few" "$folder/many")
  printf '%-18s %s user instructions, %s allocations, system calls: %s\n' "$contender" \
    "$(per_pair "$(instructions "$contender" "$few")" "$(instructions "$contender" "$many")" %.0f)" \
    "$(per_pair "$(allocations "$contender" "$few")" "$(allocations "$contender" "$many")" %.4g)" \
    "$calls"
done

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What does `holdfast watch` cost a server that has many locks? The CPU time of a server of its own while it is watched, less that
# of a time as long without a watcher: INFO's used_cpu, and commandstats of what it ran for it.
#
#     tests/bench/watch_cost.sh HOLDFAST [LOCKS [SECONDS]]      (default: 10000 locks, 30 seconds)
#
# Half of the locks are strings as a Mutex has them, half are hashes as a ReentrantLock has them.
set -euo pipefail
export LC_ALL=C

((${#} >= 1)) || { sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
holdfast=$(readlink -f "$1")
readonly holdfast locks=${2:-10000} seconds=${3:-30}
for tool in redis-server redis-cli; do
  command -v "$tool" >/dev/null || { printf 'watch_cost.sh: skipped, there is no %s\n' "$tool" >&2; exit 77; }
done

folder=$(mktemp -d)
redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' >"$folder/log" &
readonly server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$folder"' EXIT
ask() { redis-cli -s "$folder/socket" "$@"; }
# It says when it listens. The reader of its log ends with it.
grep -q -m 1 'eady to accept connections' < <(exec tail -n +1 -f --pid="$server" "$folder/log")
ask eval "for index = 1, ARGV[1] / 2 do
  redis.call('SET', 'order/' .. index, string.format('%032x', index), 'PX', 3600000)
  redis.call('HSET', 'job/' .. index, string.format('%08x-0000-4000-8000-%012x:1', index, index), 1)
  redis.call('PEXPIRE', 'job/' .. index, 3600000) end" 0 "$locks" >/dev/null

cpu() { ask info cpu | tr -d '\r' | awk -F: '/^used_cpu_(sys|user):/ { sum += $2 } END { print sum }'; }

begin=$(cpu)
sleep "$seconds"
idle=$(cpu)
ask config resetstat >/dev/null
HOLDFAST_URL=unix://$folder/socket "$holdfast" watch --for "$seconds" >"$folder/lines"
watched=$(cpu)
awk -v begin="$begin" -v idle="$idle" -v watched="$watched" -v seconds="$seconds" -v locks="$locks" \
  -v lines="$(wc -l <"$folder/lines")" 'BEGIN {
    printf "%d locks, %d s: %.2f %% of a core beside an idle server, %d lines\n", locks, seconds,
      100 * ((watched - idle) - (idle - begin)) / seconds, lines
  }'
ask info commandstats | tr -d '\r' | sed -nE 's/^cmdstat_(eval|scan|type):(calls=[0-9]+,usec=[0-9]+).*/  \1: \2/p'

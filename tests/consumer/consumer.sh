# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the scripts here share: a folder for a consumer, and a server to lock on. Read with `source`; `work` is a folder of one's own.

server_pid=

# A sanitizer's or a wrapper's settings of the build that runs us are not the consumer's.
unset CFLAGS CXXFLAGS LDFLAGS DESTDIR

clean_up() {
  if [[ -n $server_pid ]]; then kill "$server_pid" 2>/dev/null || true; wait "$server_pid" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap clean_up EXIT

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

quietly() {  # quietly COMMAND...: its output only if it fails
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }
}

find_server() {
  local candidate
  IFS=: read -ra candidates <<<"${HOLDFAST_SERVERS:-redis-server:valkey-server}"
  for candidate in "${candidates[@]}"; do
    if command -v "$candidate"; then return 0; fi
  done
  echo "skipped: no redis-server and no valkey-server" >&2
  exit 77
}

start_server() {  # start_server [ARGUMENT...]: on a socket in `work`, and as the arguments say
  local server line said=
  server=$(find_server) || exit $?
  exec {server_log}< <(exec "$server" --port 0 --unixsocket "$work/socket" --save '' --appendonly no --dir "$work" "$@" 2>&1)
  server_pid=$!
  while IFS= read -r -t 20 line <&"$server_log"; do
    if [[ $line == *'eady to accept connections'* ]]; then return 0; fi
    said+=$line$'\n'
  done
  printf '%s' "$said" >&2
  fail "$server did not start"
}

lock_with() {  # lock_with PROGRAM: must say that it held the lock
  [[ $("$1" "unix://$work/socket") == 'held: yes' ]] || fail "$1 did not lock"
}

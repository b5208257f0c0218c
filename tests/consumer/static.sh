#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: static.sh PROGRAM
#
# PROGRAM, a holdfast command, runs in a root that has nothing else in it: no library, no /dev, no /proc, no /etc. There it takes
# locks by IP and by a Unix socket, runs a command (itself), and says what it has not: host names without /etc, and TLS.
# Exits 77 (skipped) where roots cannot be changed, or there is no server.
set -euo pipefail

program=$(readlink -f "${1:?usage: static.sh PROGRAM}")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-static.XXXXXX")
# shellcheck source=/dev/null
source "$here/consumer.sh"

# Into a network of its own, where every port is free.
if [[ ${HOLDFAST_IN_NAMESPACE:-} != yes ]]; then
  trap - EXIT
  rmdir "$work"
  spaces=(--net --mount)
  ((EUID == 0)) || spaces+=(--user --map-root-user)
  unshare "${spaces[@]}" true 2>/dev/null || { echo "skipped: no right to change roots" >&2; exit 77; }
  HOLDFAST_IN_NAMESPACE=yes exec unshare "${spaces[@]}" "${BASH_SOURCE[0]}" "$program"
fi
unset HOLDFAST_IN_NAMESPACE "${!HOLDFAST_@}"
python3 - <<'END'
import fcntl, socket, struct  # `ip link set lo up`, which may not be here.
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))
END

! readelf --program-headers --dynamic "$program" | grep -E 'INTERP|NEEDED' >&2 || fail "$program needs a loader or a library"

mkdir "$work/root"
cp "$program" "$work/root/holdfast"
start_server --port 6379 --bind 127.0.0.1 --unixsocket "$work/root/socket"
alone() { chroot "$work/root" /holdfast "$@"; }  # Nothing but PROGRAM and the server's socket is there.

for url in redis://127.0.0.1 unix:///socket; do
  said=$(alone run -n -l 10 --url "$url" job -- /holdfast info --url "$url" job) || fail "run by $url: $said"
  grep -qE '^state: +held$' <<<"$said" || fail "run by $url did not hold: $said"
  token=$(alone acquire -n -l 10 --url "$url" step) || fail "acquire by $url"
  [[ $(alone acquire -n -l 10 --url "$url" step 2>&1; echo $?) == *75 ]] || fail "two hold a lock by $url"
  alone release --url "$url" --token "${token%%$'\n'*}" step || fail "release by $url"
  result=0
  said=$(alone info --url "$url" step) || result=$?
  ((result == 1)) || fail "not released by $url: $said"
  echo "ok: locks by $url"
done

# Names need /etc: without it the resolver asks 127.0.0.1, where nobody answers.
result=0
said=$(timeout 60 chroot "$work/root" /holdfast info --url redis://somewhere.example name 2>&1) || result=$?
((result == 69)) || fail "a host that nobody knows: $result, $said"
echo "ok: a host name in an empty root: $said"
mkdir "$work/root/etc"
echo '127.0.0.1 somewhere.example' >"$work/root/etc/hosts"
token=$(alone acquire -n -l 10 --url redis://somewhere.example named) || fail "by a name in /etc/hosts"
echo "ok: a host name in /etc/hosts"

result=0
said=$(alone info --url rediss://127.0.0.1 name 2>&1) || result=$?
((result == 64)) && [[ $said == *TLS* ]] || fail "TLS, which is not in it: $result, $said"
echo "ok: TLS is refused: ${said%%$'\n'*}"

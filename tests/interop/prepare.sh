#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# prepare.sh PEER FOLDER [COMMAND...]
#
# Makes FOLDER/PEER/peer: a program that takes locks with another language's client, as peer.hpp describes. PEER is a
# folder beside this script. Then runs COMMAND, if there is one, with HOLDFAST_PEER set to that program.
#
# What is fetched has its version pinned beside the peer's source. It is fetched once: a second run finds the stamp,
# wants no network and takes no time. Nothing is written outside of FOLDER, the tools' caches included. HOLDFAST_PEERS
# names another folder instead, which several builds may share.
#
# Exits with 77 and a reason where the language is missing or cannot be fetched, with 1 where the peer does not build.
set -euo pipefail

(($# >= 2)) || { echo "usage: prepare.sh PEER FOLDER [COMMAND...]" >&2; exit 2; }
readonly peer=$1
readonly source=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/$peer
readonly folder=${HOLDFAST_PEERS:-$2}
mkdir -p "$folder/$peer"
readonly here=$(cd "$folder/$peer" && pwd)
readonly log=$here/log
shift 2

skip() { printf 'skipped: %s\n' "$*"; exit 77; }
want() { command -v "$1" >/dev/null || skip "$peer needs $1 (Debian: $2)"; }

# A failed download is no failed test, but its reason is shown: the first line that speaks of an error, or the last.
fetch() {
  "$@" >>"$log" 2>&1 || skip "$peer: cannot fetch what it needs: $(reason_in "$log")"
}
reason_in() {
  local lines
  lines=$(sed -e 's/\x1b\[[0-9;]*m//g' -e '/^[[:space:]]*$/d' "$1" | cut -c 1-300)
  grep -i -m 1 error <<<"$lines" || tail -n 1 <<<"$lines"
}
build() {
  "$@" >>"$log" 2>&1 && return 0
  tail -n 40 "$log" >&2
  printf 'prepare.sh: %s does not build; see %s\n' "$peer" "$log" >&2
  exit 1
}
# The peer itself: a line of shell that becomes the program, so that it keeps the process that was spawned.
write_peer() {
  printf '#!/bin/sh\nexec %s\n' "$*" >"$here/peer"
  chmod +x "$here/peer"
}

# ---- Two functions a peer: its tools, whose versions are part of the stamp, and how it is made ------------------

tools_redisson() {
  want mvn maven
  want javac default-jdk-headless
  javac -version 2>&1
}
prepare_redisson() {
  rm -rf "$here/jars" "$here/classes"
  fetch mvn --batch-mode --quiet -Dstyle.color=never -f "$source/pom.xml" "-Dmaven.repo.local=$here/repository" \
    dependency:copy-dependencies "-DoutputDirectory=$here/jars"
  build javac --release 17 -proc:none -cp "$here/jars/*" -d "$here/classes" "$source/Peer.java"
  # Started for seconds only, so it is not worth the second compiler's while.
  write_peer java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "'$here/classes:$here/jars/*'" Peer
}

tools_redis_py() {
  want python3 python3
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "redis_py needs Python 3.10"
  python3 -c 'import ensurepip' 2>/dev/null || skip "redis_py needs Python's ensurepip (Debian: python3-venv)"
  python3 --version
}
prepare_redis_py() {
  rm -rf "$here/environment"
  build python3 -m venv "$here/environment"
  fetch "$here/environment/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --retries 1 \
    --only-binary :all: --require-hashes -r "$source/requirements.txt"
  write_peer "'$here/environment/bin/python'" -B "'$source/peer.py'"
}

tools_node_redlock() {
  want node nodejs
  want npm npm
  node --version
}
prepare_node_redlock() {
  # Node looks for packages in the folders above the program, so the program goes to the packages.
  rm -rf "$here/node_modules"
  cp "$source/package.json" "$source/package-lock.json" "$source/peer.mjs" "$here"
  fetch npm ci --prefix "$here" --cache "$here/cache" --fetch-retries 1 --ignore-scripts --no-audit --no-fund
  write_peer node "'$here/peer.mjs'"
}

tools_redsync() {
  want go golang-go
  GOTOOLCHAIN=local go version
}
prepare_redsync() {
  # The modules are writable, or nobody but root could delete the build folder.
  export GOTOOLCHAIN=local GOMODCACHE=$here/modules GOCACHE=$here/cache
  export GOFLAGS='-modcacherw -buildvcs=false' CGO_ENABLED=0
  cd "$source"
  fetch go list -deps -f '{{""}}' .
  build go build -mod=readonly -trimpath -o "$here/redsync-peer" .
  write_peer "'$here/redsync-peer'"
}

# ---- The stamp ---------------------------------------------------------------------------------------------------

[[ -d $source ]] && declare -F "prepare_$peer" >/dev/null || { echo "prepare.sh: no such peer: $peer" >&2; exit 2; }

# Tests of several builds may share the folder.
exec 9>"$here/lock"
flock 9
tools=$(tools_"$peer") || { printf '%s\n' "$tools"; exit 77; }
wanted=$(printf '%s\n' "$tools" "$here" "$source" | cat - "$0" "$source"/* | sha256sum)
if [[ ! -x $here/peer || $(cat "$here/stamp" 2>/dev/null) != "$wanted" ]]; then
  rm -f "$here/stamp" "$here/peer"
  : >"$log"
  (prepare_"$peer") 9>&-
  printf '%s\n' "$wanted" >"$here/stamp"
fi
exec 9>&-

(($# == 0)) || HOLDFAST_PEER=$here/peer exec "$@"

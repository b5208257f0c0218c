#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: floors.sh SOURCE-ROOT
#
# Reads which headers each floor of the house includes: a floor may include what stands below it, and nothing else.
set -euo pipefail

cd "${1:?usage: floors.sh SOURCE-ROOT}"

# What a user writes, and every floor may know.
values='holdfast/(core/instant|proto/key|limits|status)\.hpp'
settings='holdfast/(cluster|sentinels)\.hpp'
# What a driver asks the system for, and nobody waits for.
system='holdfast/(detail/(clock|connection|hold_places|keeping|linked_place|meter|random_source|shared_count|shared_tick|shared_value|split_value|stream))\.hpp'

# Written over a lock that is yet to be named, so over that of any driver.
guards='holdfast/scoped_lock\.hpp'

private() { find "$@" -name '*.hpp' -printf '%f\n' | sed 's/\./\\./' | paste -sd'|'; }
proto="$values|holdfast/proto/.*|$(private proto)"
core="$proto|$settings|holdfast/core/.*|scripts\.hpp|$(private src/core)"
kinds="$core|$(private src/kinds)"
system_floor="$core|$system|$(private src/system)"
asio="$system_floor|$guards|holdfast/(asio|url)\.hpp|holdfast/asio/.*|$(private src/asio)"
posix="$system_floor|holdfast/(detail/.*|[a-z_]*\.hpp)|$(private src/posix)"

failed=0
files=0
check() {  # check ALLOWED PLACE...
  local allowed=$1 line
  shift
  while IFS= read -r line; do
    files=$((files + 1))
    [[ ${line#*:} =~ ^($allowed)$ ]] && continue
    echo "FAILED: ${line%%:*} includes ${line#*:}, which does not stand below it" >&2
    failed=1
  done < <(grep -rHoE '^ *# *include +"[^"]+"' --include='*.[hc]pp' "$@" | sed -E 's/: *# *include +"/:/;s/"$//')
}
check "$values" include/holdfast/scoped_lock.hpp
check "$proto" include/holdfast/proto proto
check "$core" include/holdfast/core src/core
check "$kinds" src/kinds
check "$system_floor" src/system
check "$asio" include/holdfast/asio include/holdfast/asio.hpp src/asio
check "$posix" include/holdfast/detail src/posix
check "$posix|holdfast(_tls)?\.h|$(private src/c)" src/c

top=$(find include/holdfast -maxdepth 1 -name '*.hpp' | wc -l)
((top <= 26)) || { echo "FAILED: $top headers at the top of include/holdfast; what a user does not include stands below" >&2; failed=1; }
((files > 300)) || { echo "FAILED: only $files includes were read" >&2; failed=1; }
((failed == 0)) || exit 1
echo "ok: $files includes, $top headers at the top"

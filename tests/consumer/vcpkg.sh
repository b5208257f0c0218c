#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: vcpkg.sh SOURCE-ROOT BUILD-ROOT
#
# The port for vcpkg, .dev/vcpkg/holdfast, as far as it can be seen without vcpkg: its manifest by rules of vcpkg's schema, its
# steps by vcpkg.cmake, and a program that uses what they leave, for Debug and for Release. vcpkg itself is not run.
# Exits 77 (skipped) where there is no CMake, or no server to lock on.
set -euo pipefail

source_root=$(readlink -f "${1:?usage: vcpkg.sh SOURCE-ROOT BUILD-ROOT}")
build_root=$(readlink -f "${2:?usage: vcpkg.sh SOURCE-ROOT BUILD-ROOT}")
here=$source_root/tests/consumer
port=$source_root/.dev/vcpkg/holdfast
command -v cmake >/dev/null || { echo "skipped: no cmake" >&2; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-vcpkg.XXXXXX")
# shellcheck source=/dev/null
source "$here/consumer.sh"
export CMAKE_GENERATOR=Ninja

python3 -B "$here/vcpkg_manifest.py" "$source_root" || fail "vcpkg.json"
echo "ok: the manifest"

start_server
features=
if [[ -n $(find "$build_root/src" -name libholdfast-tls.a) ]]; then features=tls; fi
quietly nice cmake -D PORT_DIR="$port" -D FEATURES="$features" -D WORK="$work/vcpkg" -P "$here/vcpkg.cmake"
echo "ok: the steps of the port, with the features '$features'"

# Not where it was made, and by the targets that `usage` names.
mv "$work/vcpkg/installed" "$work/moved"
for type in Debug Release; do
  quietly cmake -S "$here/cmake" -B "$work/$type" -DCMAKE_BUILD_TYPE="$type" -DCMAKE_PREFIX_PATH="$work/moved/x64-linux"
  quietly nice cmake --build "$work/$type"
  lock_with "$work/$type/locker"
  if [[ -n $features ]]; then "$work/$type/secure" || fail "a file that is no certificate was taken"; fi
  links=$(grep -ho '[^ ]*libholdfast\.a' "$work/$type/build.ninja" | sort -u)
  folder=lib
  if [[ $type == Debug ]]; then folder=debug/lib; fi
  [[ $links == "$work/moved/x64-linux/$folder/libholdfast.a" ]] || fail "a program of $type links $links"
  echo "ok: a program for $type"
done
sed -nE 's/^.*(holdfast::[a-z]+).*$/\1/p' "$port/usage" | sort -u | grep -qx holdfast::holdfast || fail "usage names no target"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: cmake.sh SOURCE-ROOT BUILD-ROOT
#
# Uses the sources by CMake, and what it installs. BUILD-ROOT is Meson's build of the same sources: what comes out of both must be
# the same scripts and functions. Exits 77 (skipped) where there is no CMake, or no server to lock on.
set -euo pipefail

source_root=$(readlink -f "${1:?usage: cmake.sh SOURCE-ROOT BUILD-ROOT}")
build_root=$(readlink -f "${2:?usage: cmake.sh SOURCE-ROOT BUILD-ROOT}")
here=$source_root/tests/consumer
command -v cmake >/dev/null || { echo "skipped: no cmake" >&2; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-cmake.XXXXXX")
# shellcheck source=/dev/null
source "$here/consumer.sh"
export CMAKE_GENERATOR=Ninja

try() {  # try BUILD: its programs
  lock_with "$1/locker"
  "$1/codec" || fail "the codec did not read a reply"
  if [[ -z $(find "$build_root/src" -name libholdfast-tls.a) ]]; then return 0; fi
  [[ -e $1/secure ]] || fail "there is no holdfast::tls"
  "$1/secure" || fail "a file that is no certificate was taken"
}

functions_of() {  # functions_of ARCHIVE: what it defines for others, whatever the optimisation
  nm --defined-only --extern-only --format=posix "$1" 2>/dev/null | awk '$2 == "T" { print $1 }' | sort
}

same_functions() {  # same_functions ARCHIVE: of both builds, where Meson has it
  local theirs ours
  theirs=$(find "$build_root/src" "$build_root/proto" -name "$1.a")
  ours=$(find "$work/build" -name "$1.a")
  if [[ -z $theirs && -z $ours ]]; then echo "skipped: $1, which is not built"; return 0; fi
  [[ -n $theirs && -n $ours ]] || fail "only one of both builds has $1: '$theirs', '$ours'"
  [[ $(functions_of "$ours" | wc -l) -gt 3 ]] || fail "$ours has no functions"
  diff <(functions_of "$theirs") <(functions_of "$ours") >&2 || fail "$1 is another one by CMake (right) than by Meson (left)"
  echo "ok: the same functions in $1"
}

# The Asio client takes longest to compile, and check.sh links it as Meson has installed it. So here it is seen that CMake would
# compile all of it, and that a program compiles with what the target says.
asio_from_source() {
  if [[ -z $(find "$build_root/src" -name libholdfast-asio.a) ]]; then echo "skipped: Asio, which is not here"; return 0; fi
  quietly cmake -S "$here/cmake" -B "$work/asio" -DHOLDFAST_SOURCE="$source_root" -DHOLDFAST_ASIO=ON \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror'
  diff <(cd "$source_root/src/asio" && printf '%s\n' *.cpp) \
    <(sed -nE 's|^ *"file": ".*/src/asio/(.*)"[,]?$|\1|p' "$work/asio/compile_commands.json" | sort) >&2 ||
    fail "CMake compiles other sources of src/asio (right)"
  local target
  for target in asio_error.cpp.o coroutine.cpp.o; do
    quietly ninja -C "$work/asio" "$(ninja -C "$work/asio" -t targets all | sed -nE "s/^(.*$target): .*/\1/p")"
  done
  echo "ok: Asio from source, by CMake"
}

start_server
quietly cmake -S "$here/cmake" -B "$work/build" -DHOLDFAST_SOURCE="$source_root" -DHOLDFAST_INSTALL=ON -DHOLDFAST_ASIO=OFF \
  -DCMAKE_INSTALL_PREFIX="$work/prefix" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror'
quietly nice cmake --build "$work/build"
try "$work/build"
echo "ok: from source, by CMake"

diff "$build_root/proto/scripts.hpp" "$(find "$work/build" -name scripts.hpp)" >&2 || fail "other scripts by CMake (right)"
echo "ok: the same scripts"
for archive in libholdfast libholdfast-proto libholdfast-tls; do same_functions "$archive"; done

asio_from_source

quietly cmake --install "$work/build"
mv "$work/prefix" "$work/moved"  # A package may be moved.
quietly cmake -S "$here/cmake" -B "$work/installed" -DCMAKE_PREFIX_PATH="$work/moved"
quietly nice cmake --build "$work/installed"
try "$work/installed"
echo "ok: installed by CMake, and moved"

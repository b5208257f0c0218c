#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: check.sh SOURCE-ROOT
#
# Uses holdfast as its users do: as a Meson subproject, and installed, by pkg-config and CMake. Takes a real lock each time, where
# Asio is there in a coroutine too. Exits 77 (skipped) where there is no server to lock on.
set -euo pipefail

source_root=$(readlink -f "${1:?usage: check.sh SOURCE-ROOT}")
here=$source_root/tests/consumer
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-consumer.XXXXXX")

# shellcheck source=/dev/null
source "$here/consumer.sh"

# As a release is: a tarball, and a wrap file that says which dependencies come out of it. What is in the tarball is what lies in
# the source tree, committed or not.
wrap_of_tarball() {  # wrap_of_tarball SUBPROJECTS
  local tarball=$1/packagefiles/holdfast.tar.gz
  mkdir -p "$1/packagefiles"
  # By the names that are there: another test may write beside them meanwhile, which tar would tell of the folder as an error.
  (cd "$source_root" && find . -mindepth 1 -maxdepth 1 ! -name build ! -name .git -print0) |
    tar -C "$source_root" --exclude=__pycache__ --transform 's|^\.|holdfast-release|' -czf "$tarball" --null --files-from=-
  cat >"$1/holdfast.wrap" <<WRAP
[wrap-file]
directory = holdfast-release
source_filename = holdfast.tar.gz
source_hash = $(sha256sum "$tarball" | cut -d' ' -f1)

[provide]
dependency_names = holdfast, holdfast-proto, holdfast-asio, holdfast-tls
WRAP
}

as_subproject() {
  local project=$work/project
  mkdir -p "$project/subprojects"
  cp "$here"/meson.build "$here"/*.cpp "$project"
  wrap_of_tarball "$project/subprojects"
  # Whether sources are united is the project's to say, and must not matter.
  quietly meson setup "$project/build" "$project" -Ddebug=false -Dunity=subprojects -Dunity_size=1000
  nothing_of_ours_but_libraries "$project/build"
  quietly nice ninja -C "$project/build"
  lock_with "$project/build/locker"
  "$project/build/codec" || fail "the codec did not read a reply"
  echo "ok: as a subproject, by a wrap file from a tarball"
  if [[ -e $project/build/coroutine ]]; then
    lock_with "$project/build/coroutine"
    echo "ok: as a subproject, with Asio"
  else
    echo "skipped: a subproject with Asio, which is not here (Debian: libasio-dev)"
  fi
}

# Asio is no need of a project that does not ask for it.
as_subproject_without_asio() {
  quietly meson setup "$work/project/build-without-asio" "$work/project" -Dholdfast:asio=disabled
  ! meson introspect --targets "$work/project/build-without-asio" | grep -oE 'libholdfast-asio|coroutine\.cpp' >&2 ||
    fail "without Asio something of it is built"
  echo "ok: as a subproject without Asio"
}

# A consumer builds libraries; our tests, fuzz targets, command and examples are not its business.
nothing_of_ours_but_libraries() {  # nothing_of_ours_but_libraries BUILD
  local others
  others=$(meson introspect --targets "$1" | python3 -c '
import json, sys
ours = [t for t in json.load(sys.stdin) if t.get("subproject")]
print(" ".join(t["name"] for t in ours if t["type"] not in ("static library", "shared library")))')
  [[ -z $others ]] || fail "the subproject brings its own targets along: $others"
}

prefix=$work/prefix
as_package() {
  local flags
  # United: source by source they are compiled by the build whose tests these are.
  quietly meson setup "$work/build" "$source_root" --prefix "$prefix" -Ddebug=false -Dunited=true \
    -Dtests=disabled -Dfuzz=disabled -Dcli=disabled -Dasio=disabled
  quietly nice meson install -C "$work/build"
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name holdfast.pc)")
  export PKG_CONFIG_PATH

  read -ra flags <<<"$(pkg-config --cflags --libs holdfast)"
  quietly g++ -std=c++20 "$here/main.cpp" "${flags[@]}" -o "$work/locker"
  lock_with "$work/locker"
  echo "ok: installed, by pkg-config"

  read -ra flags <<<"$(pkg-config --cflags holdfast)"
  quietly g++ -std=c++20 -fno-exceptions -fno-rtti "${flags[@]}" -c "$here/main.cpp" -o "$work/main.o"
  read -ra flags <<<"$(pkg-config --libs holdfast)"
  quietly gcc "$work/main.o" "${flags[@]}" -o "$work/locker-by-gcc"
  lock_with "$work/locker-by-gcc"
  echo "ok: linked by plain gcc"

  read -ra flags <<<"$(pkg-config --cflags --libs holdfast-proto)"
  quietly g++ -std=c++20 "$here/codec.cpp" "${flags[@]}" -o "$work/codec"
  "$work/codec" || fail "the codec did not read a reply"
  echo "ok: the codec alone"

  ! grep -rlE --exclude=holdfast-config.cmake 'asio' "$prefix" >&2 || fail "without Asio something of it is installed"
  ! pkg-config --exists holdfast-asio || fail "without Asio there is a holdfast-asio.pc"
  echo "ok: installed without Asio"
}

program_of_guide() {  # program_of_guide LANGUAGE PAGE: the block of a page that is a whole program
  awk -v begin="^\`\`\`$1\$" '$0 ~ begin { inside = 1; text = ""; next }
    /^```$/ && inside { inside = 0; if (text ~ /int main/) printf "%s", text; next }
    inside { text = text $0 "\n" }' "$source_root/proto/guide/$2.md"
}

# What a project for another machine sees of this package. A number that no machine has is enough.
other_pointers_are_refused() {
  local version
  version=$(find "$prefix" -name holdfast-config-version.cmake)
  cat >"$work/other.cmake" <<CMAKE
set(CMAKE_SIZEOF_VOID_P 5)
include("$version")
if(NOT PACKAGE_VERSION_UNSUITABLE)
  message(FATAL_ERROR "taken")
endif()
CMAKE
  quietly cmake -P "$work/other.cmake"
}

# By each compiler for C, which links nothing of C++. That they work is seen by the test of the examples.
as_package_in_c() {
  local flags tls_flags compiler program
  program_of_guide c c >"$work/readme.c"
  grep -q 'int main' "$work/readme.c" || fail "the guide has no program in C"
  read -ra flags <<<"$(pkg-config --cflags --libs holdfast)"
  for compiler in gcc clang; do
    if ! command -v "$compiler" >/dev/null; then echo "skipped: C by $compiler, which is not here"; continue; fi
    for program in "$source_root"/examples/c/*.c "$work/readme.c"; do
      quietly "$compiler" -std=c11 -pedantic -Wall -Wextra -Wconversion -Werror "$program" "${flags[@]}" -o "$work/in-c"
    done
    echo "ok: installed, in C by $compiler"
    if ! pkg-config --exists holdfast-tls; then
      [[ ! -e $prefix/include/holdfast_tls.h ]] || fail "without TLS its header is installed"
      echo "skipped: TLS in C by $compiler, which is not here"
      continue
    fi
    read -ra tls_flags <<<"$(pkg-config --cflags --libs holdfast-tls)"
    quietly "$compiler" -std=c11 -pedantic -Wall -Wextra -Wconversion -Werror "$here/secure.c" "${tls_flags[@]}" \
      -o "$work/secure-in-c"
    "$work/secure-in-c" || fail "a file that is no certificate was taken"
    echo "ok: installed with TLS, in C by $compiler"
  done
}

# What Meson has installed, for CMake.
as_package_by_cmake() {
  if ! command -v cmake >/dev/null; then echo "skipped: installed, by CMake, which is not here"; return 0; fi
  quietly cmake -S "$here/cmake" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror'
  quietly nice cmake --build "$work/cmake"
  lock_with "$work/cmake/locker"
  "$work/cmake/codec" || fail "the codec did not read a reply"
  if [[ $(find "$prefix" -name libholdfast-asio.a) ]]; then
    [[ -e $work/cmake/coroutine ]] || fail "there is no holdfast::asio"
    lock_with "$work/cmake/coroutine"
  fi
  echo "ok: installed, by CMake"
  # A project that has no compiler for C++.
  quietly cmake -S "$here/cmake" -B "$work/cmake-c" -G Ninja -DLANGUAGE=C -DCMAKE_PREFIX_PATH="$prefix" \
    -DPROGRAM_IN_C="$source_root/examples/c/minimal.c"
  quietly cmake --build "$work/cmake-c"
  [[ $("$work/cmake-c/in-c" "unix://$work/socket" | tail -n 1) == 'acquire and release: ok' ]] || fail "C did not lock"
  if pkg-config --exists holdfast-tls; then
    "$work/cmake-c/secure-in-c" || fail "a file that is no certificate was taken, or there is no holdfast::tls in C"
  fi
  other_pointers_are_refused
  echo "ok: installed, by CMake in C"
}

as_package_with_asio() {
  local flags compiler
  quietly meson configure "$work/build" -Dasio=auto
  quietly meson install -C "$work/build"
  if ! pkg-config --exists holdfast-asio; then
    echo "skipped: installed with Asio, which is not here (Debian: libasio-dev)"
    return 0
  fi
  read -ra flags <<<"$(pkg-config --cflags --libs holdfast-asio)"
  for compiler in g++ clang++; do
    if ! command -v "$compiler" >/dev/null; then echo "skipped: a coroutine by $compiler, which is not here"; continue; fi
    quietly "$compiler" -std=c++20 -Wall -Wextra -Werror "$here/coroutine.cpp" "${flags[@]}" -o "$work/coroutine-$compiler"
    lock_with "$work/coroutine-$compiler"
    echo "ok: installed with Asio, a coroutine by $compiler"
  done
  program_of_guide cpp asio_loop >"$work/readme.cpp"
  quietly g++ -std=c++20 -Wall -Wextra -Werror "$work/readme.cpp" "${flags[@]}" -o "$work/readme"
  echo "ok: the program in the guide compiles"
  ! g++ -std=c++20 "${flags[@]}" -UHOLDFAST_ASIO_VERSION -DHOLDFAST_ASIO_VERSION=101000 -fsyntax-only "$here/coroutine.cpp" \
    2>"$work/log" || fail "another Asio than the library's was taken"
  grep -q 'another version of Asio' "$work/log" || { cat "$work/log" >&2; fail "no word about another Asio"; }
  echo "ok: another version of Asio is refused"
}

start_server
as_subproject
as_subproject_without_asio
as_package
as_package_in_c
as_package_with_asio
as_package_by_cmake

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: language.sh SOURCE-ROOT COMPILER...
#
# Compiles each public header by itself in C++17: it says in one sentence what is wanted, and nothing else. In C++20 there is
# nothing to say. Headers that include Asio are compiled where it is there.
set -euo pipefail

include=$(readlink -f "${1:?usage: language.sh SOURCE-ROOT COMPILER...}")/include
shift
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

compile() {  # compile STANDARD HEADER COMPILER...: what the compiler says about a source that includes it
  local standard=$1 header=$2
  shift 2
  LC_ALL=C "$@" "-std=$standard" -Wall -Wextra -Wpedantic -fsyntax-only -I"$include" -DASIO_STANDALONE -x c++ - \
    <<<"#include <holdfast/$header>" 2>&1
}

count=0
for path in "$include"/holdfast/{,*/}*.hpp; do
  header=${path#"$include"/holdfast/}
  if grep -q '#include <asio' "$path"; then
    "$@" -std=c++20 -fsyntax-only -include asio/version.hpp -x c++ /dev/null 2>/dev/null || continue
  fi
  said=$(compile c++17 "$header" "$@") && fail "$header compiles in C++17"
  # The second error is the file that is missing, so that the compiler stops.
  [[ $(grep -c 'error:' <<<"$said") == 2 && $said == *'error'*'holdfast needs C++20'* ]] ||
    fail "$header says in C++17: $said"
  count=$((count + 1))
done
((count > 20)) || fail "only $count headers in $include/holdfast"
said=$(compile c++20 holdfast.hpp "$@") || fail "holdfast.hpp does not compile in C++20: $said"
[[ -z $said ]] || fail "holdfast.hpp says in C++20: $said"
echo "ok: $count headers ask for C++20"

# That of C is for C11 on, and for every C++ from C++11 on.
for standard in c11 c17 c++11 c++14 c++17 c++20; do
  language=c
  [[ $standard != c++* ]] || language=c++
  for header in holdfast.h holdfast_tls.h; do
    said=$("$@" "-std=$standard" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$include" -x "$language" - \
      <<<"#include <$header>" 2>&1) ||
      fail "$header says in $standard: $said"
  done
done
! "$@" -std=c11 -fshort-enums -fsyntax-only -I"$include" -x c - <<<"#include <holdfast.h>" 2>/dev/null ||
  fail "holdfast.h compiles with -fshort-enums"
echo "ok: holdfast.h and holdfast_tls.h compile in C11 and C++11"

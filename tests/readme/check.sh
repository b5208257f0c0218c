#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: check.sh SOURCE-ROOT
#
# What extract.py promises: it takes README.md and the guide as they are, and refuses what no test runs.
set -euo pipefail

source_root=$(readlink -f "${1:?usage: check.sh SOURCE-ROOT}")
extract=$source_root/tests/readme/extract.py
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-readme.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"
ln -s "$source_root/.dev" "$source_root/examples" "$work"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

refused() {  # refused WORDS: the pages in the work folder are refused, with these words
  ! "$extract" "$work" "$work/out" 2>"$work/err" || fail "not refused: $1"
  grep -qF "$1" "$work/err" || fail "no word of '$1': $(cat "$work/err")"
}

as_they_are() {
  mkdir -p "$work/proto/guide"
  cp "$source_root/README.md" "$work"
  cp "$source_root"/proto/guide/*.md "$work/proto/guide"
}

with() { as_they_are; printf '%s\n' "$@" >>"$work/README.md"; }

in_guide() { as_they_are; printf '%s\n' "$@" >>"$work/proto/guide/tutorial.md"; }

without() { as_they_are; sed -i "s|$1|$2|" "$work/README.md" "$work"/proto/guide/*.md; }

as_they_are
"$extract" "$work" "$work/out" || fail "the pages are refused"

with '```cpp' 'holdfast::Unheard lock(client);' '```'
refused 'no test knows how to run this block'
with '```c++' 'holdfast::Mutex lock(client);' '```'
refused 'no test knows what to do with this block'
with '```' 'holdfast::Mutex lock(client);' '```'
refused 'no test knows what to do with this block'
with '```cpp' 'holdfast::Mutex lock(client, "a");' '```'
refused 'a second block of the example mutex'
with '```cpp' 'holdfast::Mutex lock(client, "a");'
refused 'the block has no end'
with '```sh' 'holdfast info nightly-report' '```'
refused 'no test knows how to run this line'
with '```sh' './dev nonsense' '```'
refused 'no test knows how to run this line'
without 'holdfast::FencedLock lock' 'holdfast::Unheard lock'
refused 'no test knows how to run this block'
without 'holdfast run --url' 'holdfast ran --url'
refused 'no test knows how to run this line'
without 'held(): no I/O, any thread' 'kept alive'
refused 'says that a hold is kept'
without '// \.\.\. co_await' '// ... and'
refused 'none that is known how to fill'
without 'redis://10.0.0.3' 'redis://localhost'
refused 'none that is known how to fill'

in_guide '```cpp' '  std::printf("acquired\n");' '```'
"$extract" "$work" "$work/out" || fail "a part of a program of the guide is refused"
in_guide '```cpp' '  std::printf("acquired later\n");' '```'
refused 'no test knows how to run this block'
with '```cpp' '  std::printf("acquired\n");' '```'
refused 'no test knows how to run this block'
with '```console' '$ holdfast info report' '```'
refused 'no test knows what to do with this block'
in_guide '```rust' 'lock()' '```'
refused 'no test knows what to do with this block'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: check.sh SOURCE-ROOT
#
# What ./dev promises whatever its verbs do: each verb is documented, it can be called from anywhere, and on a bare
# machine it says what is missing. Nothing is built here.
set -euo pipefail

source_root=$(readlink -f "${1:?usage: check.sh SOURCE-ROOT}")
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-dev.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

verbs() {  # the scripts in .dev/ without a suffix
  find "$source_root/.dev" -maxdepth 1 -type f ! -name '*.*' -printf '%f\n' | sort
}

documented_verbs() {  # the first words of the lines that ./dev prints, indented by two spaces
  "$source_root/dev" | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort -u
}

scripts_should_be_well_formed() {
  local script
  for script in "$source_root"/dev "$source_root"/.dev/*.sh; do bash -n "$script"; done
  for script in $(verbs); do bash -n "$source_root/.dev/$script"; done
}

each_verb_should_be_documented() {
  # ./dev prints this list itself, so `help` is not on it.
  diff <(verbs | grep -vx help) <(documented_verbs) ||
    fail "./dev does not list the scripts of .dev/ (left: the scripts, right: what it lists)"
}

each_shared_script_should_be_introduced() {  # in the head of ./dev, for who looks for something
  local script
  for script in "$source_root"/.dev/*.sh; do
    grep -q "^#   ${script##*/} " "$source_root/dev" || fail "the head of ./dev does not mention ${script##*/}"
  done
}

usage_should_come_from_anywhere() {
  ln -s "$source_root/dev" "$work/link"
  diff <("$source_root/dev" help) <(cd / && "$work/link") || fail "./dev through a link prints something else"
  diff <("$source_root/dev" help) <(cd "$work" && bash link help) || fail "./dev by bash prints something else"
}

another_word_should_be_refused() {
  local word
  for word in nonsense needs.sh programs_of.py ../dev --help ' '; do
    ! "$source_root/dev" "$word" >"$work/out" 2>"$work/err" || fail "./dev takes '$word' for a verb"
    [[ ! -s $work/out ]] || fail "./dev prints the usage of '$word' to its standard output"
    grep -q '^usage: ./dev VERB' "$work/err" || fail "./dev does not print its usage for '$word'"
    [[ $(tail -n 1 "$work/err") == "dev: no such verb: $word" ]] || fail "./dev does not say that '$word' is no verb"
  done
}

each_test_that_a_paper_names_should_be_there() {
  local name
  for name in $(grep -ohE '`test_[a-z0-9_]+`' "$source_root"/proto/*.md "$source_root"/*.md | tr -d '`' | sort -u); do
    grep -rqE "\\($name[,)]" "$source_root/tests" --include='*.cpp' --include='*.hpp' || fail "a paper names $name, which is no test"
  done
  for name in $(sed -n '/^## What stands behind/,/^## The simulator/p' "$source_root/proto/verification.md" |
    grep -oE 'canar(y|ies) (`[a-z_]+`(, )?)+' | grep -oE '`[a-z_]+`' | tr -d '`' | sort -u); do
    grep -q "{\"$name\"" "$source_root/tests/sim/canary.cpp" || fail "verification.md names $name, which is no canary"
  done
}

bare_machine_should_be_told_what_is_missing() {  # there is bash and coreutils, and no apt-get
  local tool verb result
  mkdir "$work/bin" "$work/clone"
  cp -R "$source_root/dev" "$source_root/.dev" "$work/clone"
  for tool in bash cut dirname env mkdir readlink sort; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
  for verb in $(verbs); do
    case $verb in help | clean | servers) continue ;; esac  # These need nothing, or ask for apt-get by name.
    result=0
    env -i PATH="$work/bin" "$work/clone/dev" "$verb" >"$work/out" 2>"$work/err" || result=$?
    ((result == 1)) || fail "./dev $verb exits with $result on a bare machine"
    grep -q '^missing here: ' "$work/err" && grep -q 'Please install: ' "$work/err" ||
      fail "./dev $verb does not say what is missing: $(cat "$work/err")"
    ! grep -q 'command not found' "$work/err" || fail "./dev $verb calls what may not be there: $(cat "$work/err")"
    if [[ $verb == test ]]; then
      [[ $(tail -n 1 "$work/out") == '0 passed, 1 failed'* ]] || fail "./dev test does not count that: $(cat "$work/out")"
    fi
  done
}

scripts_should_be_well_formed
each_verb_should_be_documented
each_shared_script_should_be_introduced
usage_should_come_from_anywhere
another_word_should_be_refused
each_test_that_a_paper_names_should_be_there
bare_machine_should_be_told_what_is_missing
echo "ok"

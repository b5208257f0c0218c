#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: completions.sh COMMAND FOLDER bash | zsh | fish
#
# What a shell offers, from the file in FOLDER, is what COMMAND takes. In bash: each option that is offered after a subcommand is
# one that it knows, each other one it refuses, and each option of its --help is offered. The others offer what bash does.
# Exits 77 (skipped) where the shell is not here.
set -euo pipefail

command=$(readlink -f "${1:?usage: completions.sh COMMAND FOLDER SHELL}")
folder=$(readlink -f "${2:?usage: completions.sh COMMAND FOLDER SHELL}")
shell=${3:?usage: completions.sh COMMAND FOLDER SHELL}
command -v "$shell" >/dev/null || { echo "skipped: no $shell" >&2; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-completions.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset "${!HOLDFAST_@}"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# shellcheck source=/dev/null
source "$folder/holdfast"
in_bash() {  # in_bash WORD...: what is offered for the last of them
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _holdfast
  printf '%s\n' "${COMPREPLY[@]}" | sort
}
is_known() {  # is_known VERB OPTION: NAME is missing or a value is wrong, but the option is one
  local said
  said=$(timeout 20 "$command" "$1" "$2" 2>&1 </dev/null || true)
  [[ -n $said ]] || fail "$command $1 $2 says nothing"
  [[ $said != *'not expected'* ]]
}

mapfile -t verbs < <(in_bash holdfast '')
mapfile -t documented < <("$command" --help | sed -nE 's/^  ([a-z]+)  .*/\1/p' | sort)
[[ ${verbs[*]} == "${documented[*]}" && ${#verbs[@]} -ge 6 ]] || fail "subcommands '${verbs[*]}', documented '${documented[*]}'"

mapfile -t all < <(for verb in "${verbs[@]}"; do in_bash holdfast "$verb" -; done | sort -u)
((${#all[@]} > 30)) || fail "only these options: ${all[*]}"

as_the_command_has_it() {
  local verb option
  for verb in "${verbs[@]}"; do
    in_bash holdfast "$verb" - >"$work/offered"
    for option in "${all[@]}"; do
      if grep -qxe "$option" "$work/offered"; then
        is_known "$verb" "$option" || fail "bash offers $option to $verb, which does not know it"
      else
        ! is_known "$verb" "$option" || fail "bash does not offer $option to $verb, which knows it"
      fi
    done
    "$command" "$verb" --help | grep -E '^  -' | sed -E 's/^ +//; s/  .*//' | grep -oE -- '--?[a-zA-Z][a-z-]*[a-zA-Z]|-[a-zA-Z]\b' |
      grep -vx -e '--tls' | sort -u >"$work/documented"
    if grep -vxFf "$work/offered" "$work/documented"; then fail "these options of $verb --help are not offered"; fi
  done
  echo "ok: bash, ${#all[@]} options of ${#verbs[@]} subcommands"

  [[ $(in_bash holdfast run --kind re) == $'read\nreentrant' ]] || fail "kinds in bash: $(in_bash holdfast run --kind re)"
  [[ $(in_bash holdfast run --kind = re) == $'read\nreentrant' ]] || fail "kinds after a = in bash"
  touch "$work/password"
  [[ $(in_bash holdfast info --password-file "$work/pass") == "$work/password" ]] || fail "files in bash"
  [[ -z $(in_bash holdfast run --lease '') ]] || fail "bash offers a lease"
  [[ $(in_bash holdfast run name -- "$(basename "$BASH")") == *"$(basename "$BASH")"* ]] || fail "no command after the -- in bash"
  [[ -z $(in_bash holdfast info -- -) ]] || fail "options after the -- in bash"
  echo "ok: values, files and commands in bash"
}

as_in_bash_by_fish() {
  local verb
  export HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work
  in_fish() { fish --no-config -c "set -gx PATH $(dirname "$command") \$PATH; source $folder/holdfast.fish; complete -C \"$1\"" | cut -f 1 | sort -u; }
  [[ $(in_fish 'holdfast ' | grep -vx -e '-.*') == $(printf '%s\n' "${verbs[@]}") ]] || fail "subcommands in fish: $(in_fish 'holdfast ')"
  for verb in "${verbs[@]}"; do
    diff <(in_bash holdfast "$verb" - | grep -e '^--') <(in_fish "holdfast $verb --" | sed 's/=$//') >&2 || fail "another completion of $verb in fish (right)"
  done
  [[ $(in_fish 'holdfast run --kind re') == $'read\nreentrant' ]] || fail "kinds in fish: $(in_fish 'holdfast run --kind re')"
  [[ $(in_fish 'holdfast run name -- basena') == basename ]] || fail "no command after the -- in fish: $(in_fish 'holdfast run name -- basena')"
  [[ -z $(in_fish 'holdfast info -- --') ]] || fail "options after the -- in fish"
  echo "ok: fish"
}

# zsh completes in its line editor alone: it is given a terminal, and a completion that prints what it was offered.
as_in_bash_by_zsh() {
  local verb
  cat >"$work/capture.zsh" <<'ZSH'
zmodload zsh/zpty
zpty shell zsh -f -i
ask() { zpty -w shell "$1"; }
ask 'PS1= PS2= PROMPT_EOL_MARK= ; unsetopt zle_bracketed_paste 2>/dev/null; stty -echo 2>/dev/null'
ask "fpath=($FOLDER \$fpath) PATH=${COMMAND:h}:\$PATH; autoload -Uz compinit; compinit -u -D"
ask "compadd() { if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd \"\$@\"; return; fi; builtin compadd -A offered_ \"\$@\"; print -rl -- offered:\${^offered_}; builtin compadd \"\$@\" }"
ask "finish() { print done:offered; zle -U ''; zle kill-whole-line }; zle -N finish; bindkey '^X' finish; bindkey '^I' complete-word; setopt list_ambiguous no_list_beep; zstyle ':completion:*' list-prompt ''; zstyle ':completion:*' menu no; print ready:now"
local line
repeat 200; do zpty -r shell line || exit 1; [[ $line == *ready:now* && $line != *print* ]] && break; done
zpty -w -n shell "$1"$'\t\x18'
repeat 2000; do zpty -r shell line || break; [[ $line == *done:offered* ]] && break; [[ $line == *offered:* ]] && print -r -- ${${line#*offered:}%%$'\r'*}; done
zpty -d shell
ZSH
  in_zsh() { FOLDER=$folder COMMAND=$command timeout 60 zsh -f "$work/capture.zsh" "$1" | sort -u; }
  zsh -n "$folder/_holdfast" || fail "zsh cannot read _holdfast"
  [[ $(in_zsh 'holdfast ') == $(printf '%s\n' "${verbs[@]}") ]] || fail "subcommands in zsh: $(in_zsh 'holdfast ')"
  for verb in "${verbs[@]}"; do
    diff <(in_bash holdfast "$verb" - | grep -e '^--') <(in_zsh "holdfast $verb --" | sed 's/=$//') >&2 || fail "another completion of $verb in zsh (right)"
  done
  [[ $(in_zsh 'holdfast run --kind re') == $'read\nreentrant' ]] || fail "kinds in zsh: $(in_zsh 'holdfast run --kind re')"
  echo "ok: zsh"
}

case $shell in
  bash) as_the_command_has_it ;;
  fish) as_in_bash_by_fish ;;
  zsh) as_in_bash_by_zsh ;;
esac

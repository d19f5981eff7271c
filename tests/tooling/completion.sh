#!/usr/bin/env bash
# completion.sh ESPY: the completions complete, in bash, and in zsh and fish where they are installed. Status 77 without espy.
set -uo pipefail
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
[ -x "$1" ] || { printf 'completion.sh:1: Skipped\nespy is not built\n'; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$(realpath "$1")" "$scratch/espy"
export PATH=$scratch:$PATH HOME=$scratch
failed=no
sorted() { tr ' ' '\n' <<<"$1" | LC_ALL=C sort; }
check() { # SHELL LINE EXPECTED GOT: in any order, because shells sort differently
  [ "$(sorted "$4")" = "$(sorted "$3")" ] && return
  echo "$1 completes '$2' to '$4', not to '$3'"
  failed=yes
}

. "$docs/espy.bash"
in_bash() { # WORD...
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _espy
  echo "${COMPREPLY[*]}"
}
in_fish() { fish -c "source $docs/espy.fish; complete -C '$*'" | cut -f1 | tr '\n' ' ' | sed 's/ $//'; }

check bash 'espy --fo' '--follow --follow-new --format' "$(in_bash espy --fo)"
check bash 'espy trace --gr' '--graph' "$(in_bash espy trace --gr)"
check bash 'espy check --gr' '' "$(in_bash espy check --gr)"
check bash 'espy opensn' 'opensnoop' "$(in_bash espy opensn)"
check bash 'espy opensnoop --pi' '--pid' "$(in_bash espy opensnoop --pi)"
check bash 'espy tra' 'trace' "$(in_bash espy tra)"
check bash 'espy list kret' 'kretprobe:' "$(in_bash espy list kret)"
check bash 'espy -B ' 'line full none' "$(in_bash espy -B '')"
check bash 'espy -l kret' 'kretprobe:' "$(in_bash espy -l kret)"
if command -v fish >/dev/null; then
  check fish 'espy --fo' '--follow --follow-new --format --for' "$(in_fish espy --fo)"
  check fish 'espy -B ' 'line full none' "$(in_fish 'espy -B ')"
  check fish 'espy -l kret' 'kretprobe:' "$(in_fish espy -l kret)"
  check fish 'espy in' 'info' "$(in_fish espy in)"
  check fish 'espy opensn' 'opensnoop' "$(in_fish espy opensn)"
fi
if command -v zsh >/dev/null; then
  zsh -n "$docs/espy.zsh" || failed=yes
fi
[ $failed = no ]

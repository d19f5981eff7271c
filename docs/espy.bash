# Completion of espy in bash: options, probe types and, behind `tracepoint:` and its like, what `espy -l` finds.

# begin generated: make docs
_espy_commands='info trace record check snapshot build lsp'
_espy_options='-e -l --list -p --pid -c --cmd --follow --follow-new --cgroup --container --user -i --input --record --rotate --keep --last --from --to -o --output -f --format -B --buffer --listen --watch -v --verbose --cost --budget --check-cost --yes --strict -q --quiet -k --warnings --no-warnings --unsafe -I --include --debuginfo --traceable-functions --dwarf-pid --usdt-file-activation --test --bench --mode --probe-filter --no-feature --info --dry-run --dump -d --time --fmt -b --btf --examples -h --help -V --version -s --stack-order --graph --depth --when --slower-than --before -n --events --for --size --parents --kstack --ustack --on --espy --systemd'
_espy_probes='begin: end: interval: profile: software: hardware: kprobe: kretprobe: fentry: fexit: uprobe: uretprobe: usdt: tracepoint: rawtracepoint: watchpoint: iter: self: test: bench:'
# The choices of an option's argument, or what it is, in capitals; nothing if the option takes none.
_espy_argument() {
  case $1 in
    -e) echo 'PROGRAM' ;;
    -p | --pid) echo 'PID' ;;
    -c | --cmd) echo 'COMMAND' ;;
    --cgroup) echo 'PATH' ;;
    --container) echo 'ID' ;;
    --user) echo 'NAME' ;;
    -i | --input) echo 'FILE' ;;
    --record) echo 'FILE' ;;
    --rotate) echo 'SIZE' ;;
    --keep) echo 'N' ;;
    --last) echo 'TIME' ;;
    --from) echo 'TIME' ;;
    --to) echo 'TIME' ;;
    -o | --output) echo 'FILE' ;;
    -f | --format) echo 'text json trace folded flame pprof speedscope otlp' ;;
    -B | --buffer) echo 'line full none' ;;
    --listen) echo 'ADDRESS:PORT' ;;
    --watch) echo 'INTERVAL' ;;
    --budget) echo 'SHARE' ;;
    -I) echo 'DIRECTORY' ;;
    --include) echo 'FILE' ;;
    --debuginfo) echo 'DIRECTORIES' ;;
    --traceable-functions) echo 'FILE' ;;
    --dwarf-pid) echo 'PID' ;;
    --mode) echo 'test bench' ;;
    --probe-filter) echo 'REGEX' ;;
    --no-feature) echo 'NAMES' ;;
    --dump) echo 'script tokens ast types ir opt bpf program events verifier' ;;
    --depth) echo 'N' ;;
    --when) echo 'EXPR' ;;
    --slower-than) echo 'TIME' ;;
    --before) echo 'N' ;;
    -n | --events) echo 'N' ;;
    --for) echo 'SCRIPT' ;;
    --size) echo 'BYTES' ;;
    --parents) echo 'N' ;;
    --on) echo 'KERNEL' ;;
    --espy) echo 'FILE' ;;
  esac
}
# end generated

_espy() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  # Readline takes a colon for the end of a word; this glues the pieces of an attach point together again.
  if declare -F _get_comp_words_by_ref >/dev/null; then _get_comp_words_by_ref -n : -c word -p before; fi
  local argument=$(_espy_argument "$before")
  case $argument in
    '') ;;
    PID) COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word")); return ;;
    COMMAND) COMPREPLY=($(compgen -c -- "$word")); return ;;
    FILE | DIRECTORY | DIRECTORIES) COMPREPLY=($(compgen -f -- "$word")); return ;;
    [A-Z]*) return ;;
    *) COMPREPLY=($(compgen -W "$argument" -- "$word")); return ;;
  esac
  local commands=$(compgen -W "$_espy_commands" -- "$word")
  if [[ $COMP_CWORD == 1 && -n $word && -n $commands ]]; then
    COMPREPLY=($commands $(compgen -f -- "$word"))
    return
  fi
  if [[ $word != -* && " $_espy_commands " == *" ${COMP_WORDS[1]} "* ]]; then
    COMPREPLY=($(compgen -W "$(espy -l "kprobe:$word*" 2>/dev/null | sed 's/^kprobe://')" -- "$word") $(compgen -f -- "$word"))
    return
  fi
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$_espy_options" -- "$word"))
  elif [[ " ${COMP_WORDS[*]} " =~ \ (-l|-lv|--list)\  ]]; then
    local found=$_espy_probes
    if [[ $word == *:* ]]; then found=$(espy -l "$word*" 2>/dev/null); fi
    COMPREPLY=($(compgen -W "$found" -- "$word"))
    if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$word"; fi
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _espy espy

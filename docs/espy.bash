# Completion of espy in bash: commands, tools, options, probe types and, after `tracepoint:` and its like, what
# `espy list` finds.

# begin generated: make docs
_espy_commands='run trace strace count latency stacks args profile record tools list info explain examples help check format build lsp features snapshot version'
_espy_tools='bashreadline bindsnoop bioerr biolatency biolatpcts biopattern biosnoop biostacks biotop bitesize bpflist bpfsnoop brkstack cachestat cachetop capable cgroupsnoop cgrouptop compactsnoop cpudist cpustat cpuunclaimed cpuwalk criticalstat dbslower dbstat dcsnoop dcstat deadlock dirtop dnssnoop drsnoop elfsnoop errsnoop execsnoop exitsnoop faults fdleak filegone filelife filelocks fileslower filetop forksnoop fsdist fsrwstat fsslower futexctn gethostlatency hardirqs keysnoop killsnoop klockstat kmem kmemleak kpages kvmexit llcstat loads mdflush memleak migrations mmapfiles modsnoop mountsnoop naptime netqtop netsize nssnoop numamove nvmelatency offcputime offwaketime oomkill opensnoop pidpersec pmheld pmlock ptracesnoop readahead runqlat runqlen runqslower scsilatency segvsnoop setuids shmsnoop signals sigsnoop skbdrop slabratetop soconnect sofamily sofdsnoop softirqs softirqslower solisten ssllatency sslsnoop statsnoop swapin syncsnoop syscount tcpaccept tcpcong tcpconnect tcpconnlat tcpdrop tcplife tcppktlat tcpreset tcpretrans tcprtt tcpstates tcpsubnet tcpsynbl tcptop tcptracer tcpwin threadsnoop timerlat ttysnoop ucalls udpdrop udptop uflow ugc undump uobjnew ustat uthreads vfscount vfsstat vmscan wakeuptime wqlat writeback writesync xfsdist'
_espy_options='-p --pid -c --cmd --follow --follow-new --comm --cgroup --container --duration --user -o --output --append --reopen -f --format -B --buffer --watch --listen -q --quiet -v --verbose --no-warnings --cost --budget --check-cost --yes --strict -k --warnings -i --input --record --rotate --keep --last --from --to -e --unsafe -I --include --probe-filter --test --bench --mode --debuginfo --dwarf-pid --traceable-functions --no-feature --usdt-file-activation -b --btf --dry-run --dump -d --time -l --list --examples -h --help --fmt --info -V --version'
_espy_tool_options='-p --pid -c --cmd --follow --follow-new --comm --cgroup --container -d --duration --user -o --output --append --reopen -f --format -B --buffer --watch --listen -q --quiet -v --verbose --no-warnings --cost --budget --check-cost --yes --strict -k --warnings --unsafe --probe-filter --debuginfo --no-feature --dry-run --dump --help'
_espy_probes='begin: end: interval: profile: software: hardware: kprobe: kretprobe: fentry: fexit: uprobe: uretprobe: usdt: tracepoint: rawtracepoint: watchpoint: iter: self: test: bench:'
# The options of a command.
_espy_options_of() {
  case $1 in
    run) echo '-p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format --watch --listen -q --quiet -v --verbose --cost --budget --strict -i --input --record -e --unsafe --help' ;;
    trace) echo '-s --stack-order --graph --addresses --depth --when --slower-than --before -n --events -p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format -q --quiet --dump --help' ;;
    strace) echo '-e -z --successful-only -Z --failed-only -o --output -s --string-limit -v --no-abbrev -x -c --summary-only -C --summary -S --summary-sort-by -t -r --relative-timestamps -T --syscall-times -n --syscall-number -q --quiet -f -p --pid --comm --cgroup --container --duration --user --help' ;;
    count) echo '-d --duration --interval --by -p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format --strict --help' ;;
    latency) echo '-d --duration --interval --by -p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format --strict --help' ;;
    stacks) echo '-d --duration --interval --kstack --ustack -p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format --strict --help' ;;
    args) echo '-d --duration --interval --frequency -p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format --strict --help' ;;
    profile) echo '-d --duration -F --frequency --off-cpu -p --pid -c --cmd --follow --comm --cgroup --container -o --output -f --format --strict --help' ;;
    record) echo '--for --size --depth --parents --kstack --ustack -p --pid -c --cmd --follow --comm -o --output -q --quiet --rotate --keep --last --help' ;;
    tools) echo '--show --help' ;;
    list) echo '-p --pid -v --verbose -e --probe-filter --help' ;;
    info) echo '-p --pid --debuginfo --help' ;;
    explain) echo ' --help' ;;
    examples) echo ' --help' ;;
    help) echo ' --help' ;;
    check) echo '--on -f --format -I --include --debuginfo --help' ;;
    format) echo '-e --help' ;;
    build) echo '--for --espy --on --systemd --comm --cgroup --user -o --output -f --format --budget --strict -e --help' ;;
    lsp) echo ' --help' ;;
    features) echo '--cost --no-feature --help' ;;
    snapshot) echo '-o --output --help' ;;
    version) echo ' --help' ;;
  esac
}
# The choices of an option's argument, or what it is, in capitals; nothing if the option takes none.
_espy_argument() {
  case $1 in
    -p | --pid) echo 'PID' ;;
    -c | --cmd) echo 'COMMAND' ;;
    --comm) echo 'NAME' ;;
    --cgroup) echo 'PATH' ;;
    --container) echo 'ID' ;;
    --duration) echo 'TIME' ;;
    --user) echo 'NAME' ;;
    -o | --output) echo 'FILE' ;;
    -f | --format) echo 'text json trace folded tree flame pprof speedscope otlp' ;;
    -B | --buffer) echo 'line full none' ;;
    --watch) echo 'INTERVAL' ;;
    --listen) echo 'ADDRESS:PORT' ;;
    --budget) echo 'SHARE' ;;
    -i | --input) echo 'FILE' ;;
    --record) echo 'FILE' ;;
    --rotate) echo 'SIZE' ;;
    --keep) echo 'N' ;;
    --last) echo 'TIME' ;;
    --from) echo 'TIME' ;;
    --to) echo 'TIME' ;;
    -e) echo 'PROGRAM' ;;
    -I) echo 'DIRECTORY' ;;
    --include) echo 'FILE' ;;
    --probe-filter) echo 'REGEX' ;;
    --mode) echo 'test bench' ;;
    --debuginfo) echo 'DIRECTORIES' ;;
    --dwarf-pid) echo 'PID' ;;
    --traceable-functions) echo 'FILE' ;;
    --no-feature) echo 'NAMES' ;;
    --dump) echo 'script tokens ast types ir opt bpf program events verifier' ;;
    --depth) echo 'N' ;;
    --when) echo 'EXPR' ;;
    --slower-than) echo 'TIME' ;;
    --before) echo 'N' ;;
    -n | --events) echo 'N' ;;
    -e) echo 'EXPR' ;;
    -s | --string-limit) echo 'SIZE' ;;
    -S | --summary-sort-by) echo 'KEY' ;;
    --interval) echo 'TIME' ;;
    --by) echo 'EXPR' ;;
    --for) echo 'SCRIPT' ;;
    --size) echo 'BYTES' ;;
    --parents) echo 'N' ;;
    --show) echo 'NAME' ;;
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
  local chosen=${COMP_WORDS[1]}
  if [[ $COMP_CWORD == 1 && -n $word && $word != -* && $word != */* ]]; then
    COMPREPLY=($(compgen -W "$_espy_commands $_espy_tools" -- "$word") $(compgen -f -- "$word"))
    return
  fi
  if [[ $word == -* ]]; then
    local options=$_espy_options
    if [[ $COMP_CWORD -gt 1 && " $_espy_commands " == *" $chosen "* ]]; then options=$(_espy_options_of "$chosen"); fi
    if [[ $COMP_CWORD -gt 1 && " $_espy_tools " == *" $chosen "* ]]; then options=$_espy_tool_options; fi
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  local wants=files
  case $chosen in
    help) wants="$_espy_commands $_espy_tools options target" ;;
    tools) wants=$_espy_tools ;;
    list | trace | record | info) wants=probes ;;
  esac
  if [[ " ${COMP_WORDS[*]} " =~ \ (-l|-lv|--list)\  ]]; then wants=probes; fi
  if [[ $wants == files ]]; then
    COMPREPLY=($(compgen -f -- "$word"))
  elif [[ $wants != probes ]]; then
    COMPREPLY=($(compgen -W "$wants" -- "$word"))
  else
    # Inside quotes as well: `espy list 'tracepoint:sched:<TAB>`.
    local quote=${word%%[!\'\"]*} found=$_espy_probes
    local bare=${word#"$quote"}
    if [[ $bare == *:* ]]; then found=$(espy list "$bare*" 2>/dev/null)
    elif [[ $chosen == trace || $chosen == info ]]; then found+=" $(espy list "kprobe:$bare*" 2>/dev/null | sed 's/^kprobe://')"; fi
    COMPREPLY=($(compgen -W "$found" -- "$bare"))
    if [[ $chosen == trace || $chosen == info ]]; then COMPREPLY+=($(compgen -f -- "$bare")); fi
    if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$word"; fi
  fi
}
complete -o filenames -F _espy espy

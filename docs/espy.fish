# Completion of espy in fish: options, probe types and, behind `tracepoint:` and its like, what `espy -l` finds.

# begin generated: make docs
set -g __espy_commands info trace record check snapshot build lsp
set -g __espy_probes begin: end: interval: profile: software: hardware: kprobe: kretprobe: fentry: fexit: uprobe: uretprobe: usdt: tracepoint: rawtracepoint: watchpoint: iter: self: test: bench:
complete -c espy -s e -x -d 'run this program; the last -e counts'
complete -c espy -s l -l list -d 'list the probes that match a pattern, or those of a program; with -v their arguments'
complete -c espy -s p -l pid -x -a '(__fish_complete_pids)' -d 'trace only this process, and end when it ends'
complete -c espy -s c -l cmd -x -a '(__fish_complete_command)' -d 'start this command once all probes are attached, and end when it ends'
complete -c espy -l follow -d 'with -p or -c: trace this process, those it has started and those it starts, and end when all have ended'
complete -c espy -l follow-new -d 'the same without the processes that it has started already'
complete -c espy -l cgroup -x -d 'trace only the tasks of this control group and of those below it, and end when it is removed'
complete -c espy -l container -x -d 'the same for a container of docker, podman or containerd, by the beginning of its id, or for a unit of systemd'
complete -c espy -l user -x -d 'once the probes are attached, run as this user, without capabilities'
complete -c espy -s i -l input -r -F -d 'take the events from this recording, which `espy record` has made; of a ring, by its name or by several -i'
complete -c espy -l record -r -F -d 'also write what the script reads of its events to a recording, for `espy -i FILE`'
complete -c espy -l rotate -x -d 'of --record and `espy record`: write FILE.000001, FILE.000002, ...: the next one before a file exceeds this size (100M)'
complete -c espy -l keep -x -d 'with --rotate or --last: keep the newest N of these files, delete the others'
complete -c espy -l last -x -d 'keep what is younger than this (10m): write such files, a tenth of it long, delete older ones'
complete -c espy -l from -x -d 'with -i: leave out what was before this time since the beginning: 10s, 1.5m, 200ms'
complete -c espy -l to -x -d 'with -i: leave out what was after it'
complete -c espy -s o -l output -r -F -d 'write the output to this file'
complete -c espy -s f -l format -x -a 'text json trace folded flame pprof speedscope otlp' -d 'text (default): lines for people, as bpftrace prints them; json: one JSON object a line; trace: spans for chrome://tracing and Perfetto, to FILE.pftrace in the format of Perfetto; folded: maps keyed by stacks, a line for each stack; flame: maps keyed by stacks, as a flame graph (SVG); pprof: maps keyed by stacks, as a profile for go tool pprof; speedscope: maps keyed by stacks, for www.speedscope.app; otlp: spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON'
complete -c espy -s B -l buffer -x -a 'line full none' -d 'output buffering: line (default), full or none'
complete -c espy -l listen -x -d 'show the run while it goes on: a page at /, metrics for Prometheus at /metrics; without ADDRESS for this machine only'
complete -c espy -l watch -x -d 'show the maps while the run goes on, at a terminal in place as top(1) does, elsewhere after each interval (1s)'
complete -c espy -s v -l verbose -d 'show at the end how often each probe fired, and what it missed; with -l: its arguments'
complete -c espy -l cost -d 'show at the end what the probes cost; with --cost=INTERVAL (5s) also while they run; with --info: what reaching a probe costs'
complete -c espy -l budget -x -d 'let the probes take at most this share of a CPU (2%) or of all (2%/all): the dearest are off for a part of the time'
complete -c espy -l check-cost -d 'count events for 20 ms first, and end if the probes will take more than a tenth of a CPU, or ask at a terminal; the command of -c has not begun then'
complete -c espy -l yes -d 'with --check-cost: go on in any case'
complete -c espy -l strict -d 'fail with a reason if any number shown is not exact'
complete -c espy -s q -l quiet -d 'do not say how many probes were attached'
complete -c espy -s k -l warnings -d 'say where in the script a kernel helper failed'
complete -c espy -l no-warnings -d 'show no warnings about the program, nor those of warnf()'
complete -c espy -l unsafe -d 'allow system(), signal() and others that change the machine'
complete -c espy -s I -x -a '(__fish_complete_directories)' -d 'search this directory for included headers'
complete -c espy -l include -r -F -d 'include this header before the first line of the program'
complete -c espy -l debuginfo -x -a '(__fish_complete_directories)' -d 'search these directories for separate debug files (colon-separated)'
complete -c espy -l traceable-functions -r -F -d 'read the names of traceable kernel functions from this file, one a line'
complete -c espy -l dwarf-pid -x -a '(__fish_complete_pids)' -d 'read the unwind tables of this process before tracing begins; those of others are read when they appear'
complete -c espy -l usdt-file-activation -d 'accepted; semaphores of USDT probes always count for every process of a file'
complete -c espy -l test -d 'run the program\'s `test` probes, and show which fail'
complete -c espy -l bench -d 'run the program\'s `bench` probes, and show how long they take'
complete -c espy -l mode -x -a 'test bench' -d 'test: the same as --test; bench: the same as --bench'
complete -c espy -l probe-filter -x -d 'attach only the probes whose names match this regular expression'
complete -c espy -l no-feature -x -d 'treat these kernel features as missing (comma-separated; --info lists them)'
complete -c espy -l info -d 'show what this kernel offers'
complete -c espy -l dry-run -d 'compile, load and attach, and end; no action runs'
complete -c espy -l dump -x -a 'script tokens ast types ir opt bpf program events verifier' -d 'show stages of the compilation and end (comma-separated): script, tokens, ast, types, ir, opt, bpf, program, events, verifier'
complete -c espy -s d -d 'short for --dump; without stages, ast,ir,bpf'
complete -c espy -l time -d 'show how many milliseconds each stage took, and its budget'
complete -c espy -l fmt -d 'print the formatted program and end'
complete -c espy -s b -l btf -d 'accepted for old scripts; BTF is always used'
complete -c espy -l examples -d 'print one-liners, those with a word or all, and end'
complete -c espy -s h -l help -d 'show this page'
complete -c espy -s V -l version -d 'show the version'
complete -c espy -s s -l stack-order -d 'show only calls within each other in the order of the targets'
complete -c espy -l graph -d 'show calls as a graph, as C with durations'
complete -c espy -l depth -x -d 'show only N levels of calls within calls'
complete -c espy -l when -x -d 'show only the first target\'s calls that fit, and what they call: \'return < 0\''
complete -c espy -l slower-than -x -d 'show only calls that take longer: 10us, 2ms; with --graph, as --when'
complete -c espy -l before -x -d 'with --when: show the thread\'s last N calls before, too'
complete -c espy -s n -l events -x -d 'end after N events'
complete -c espy -l for -x -d 'record what this script reads of its probes (may be given again)'
complete -c espy -l size -x -d 'record this much of each text and struct that an argument points to (256)'
complete -c espy -l parents -x -d 'record the ids and names of this many parents of each task (1)'
complete -c espy -l kstack -d 'record the kernel stack of each event'
complete -c espy -l ustack -d 'record the user stack of each event'
complete -c espy -l on -x -d 'check for this kernel, a file that espy snapshot has written (may be given again)'
complete -c espy -l espy -r -F -d 'the executable of espy that becomes the tool, if not this one'
complete -c espy -l systemd -d 'also write TOOL.service, with which systemd runs the tool'
# end generated

function __espy_patterns
    set -l word (commandline -ct)
    if string match -q '*:*' -- $word
        espy -l "$word*" 2>/dev/null
    else
        printf '%s\n' $__espy_probes
    end
end

function __espy_functions
    espy -l "kprobe:"(commandline -ct)"*" 2>/dev/null | string replace -r '^kprobe:' ''
end

complete -c espy -n __fish_use_subcommand -a '$__espy_commands'
complete -c espy -n '__fish_contains_opt -s l list' -f -a '(__espy_patterns)'
complete -c espy -n '__fish_seen_subcommand_from $__espy_commands' -a '(__espy_functions)'

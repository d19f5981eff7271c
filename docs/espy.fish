# Completion of espy in fish: options, probe types and, behind `tracepoint:` and its like, what `espy -l` finds.

# begin generated: make docs
set -g __espy_commands run trace count latency stacks args profile record tools list info explain examples help check format build lsp features snapshot version
set -g __espy_tools bashreadline bindsnoop bioerr biolatency biolatpcts biopattern biosnoop biostacks biotop bitesize bpflist bpfsnoop brkstack cachestat cachetop capable cgroupsnoop cgrouptop compactsnoop cpudist cpustat cpuunclaimed cpuwalk criticalstat dbslower dbstat dcsnoop dcstat deadlock dirtop dnssnoop drsnoop elfsnoop errsnoop execsnoop exitsnoop faults fdleak filegone filelife filelocks fileslower filetop forksnoop fsdist fsrwstat fsslower futexctn gethostlatency hardirqs keysnoop killsnoop klockstat kmem kmemleak kpages kvmexit llcstat loads mdflush memleak migrations mmapfiles modsnoop mountsnoop naptime netqtop netsize nssnoop numamove nvmelatency offcputime offwaketime oomkill opensnoop pidpersec pmheld pmlock ptracesnoop readahead runqlat runqlen runqslower scsilatency segvsnoop setuids shmsnoop signals sigsnoop skbdrop slabratetop soconnect sofamily sofdsnoop softirqs softirqslower solisten ssllatency sslsnoop statsnoop swapin syncsnoop syscount tcpaccept tcpcong tcpconnect tcpconnlat tcpdrop tcplife tcppktlat tcpreset tcpretrans tcprtt tcpstates tcpsubnet tcpsynbl tcptop tcptracer tcpwin threadsnoop timerlat ttysnoop ucalls udpdrop udptop uflow ugc undump uobjnew ustat uthreads vfscount vfsstat vmscan wakeuptime wqlat writeback writesync xfsdist
set -g __espy_probes begin: end: interval: profile: software: hardware: kprobe: kretprobe: fentry: fexit: uprobe: uretprobe: usdt: tracepoint: rawtracepoint: watchpoint: iter: self: test: bench:
complete -c espy -s p -l pid -x -a '(__fish_complete_pids)' -d 'trace these processes (12,13), and end with the last'
complete -c espy -s c -l cmd -x -a '(__fish_complete_command)' -d 'start this command once all probes are attached, and end when it ends'
complete -c espy -l follow -d 'with -p or -c: also trace existing and new children, and end with the last'
complete -c espy -l follow-new -d 'like --follow, and skip existing children'
complete -c espy -l comm -x -d 'trace only threads of this name (may be repeated)'
complete -c espy -l cgroup -x -d 'trace only the tasks in this control group and below, and end when it is removed'
complete -c espy -l container -x -d 'like --cgroup, for a container (ID or a prefix of it) or a systemd unit'
complete -c espy -l duration -x -d 'end after this time, such as 10s or 500ms, like Ctrl-C; in tools also -d'
complete -c espy -l user -x -d 'run as this user, without capabilities, once the probes are attached'
complete -c espy -s o -l output -r -F -d 'write the output to this file'
complete -c espy -l append -d 'with -o: append to the file instead of emptying it'
complete -c espy -l reopen -d 'like --append; open the file again at SIGHUP (logrotate)'
complete -c espy -s f -l format -x -a 'text json trace folded tree flame pprof speedscope otlp' -d 'text (default): lines to read, in the format of bpftrace; json: one JSON object a line; trace: spans for chrome://tracing and Perfetto, to FILE.pftrace in the format of Perfetto; folded: maps keyed by stacks, a line for each stack; tree: maps keyed by stacks, as an indented tree; else as text; flame: maps keyed by stacks, as a flame graph (SVG); pprof: maps keyed by stacks, as a profile for go tool pprof; speedscope: maps keyed by stacks, for www.speedscope.app; otlp: spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON'
complete -c espy -s B -l buffer -x -a 'line full none' -d 'output buffering: line (default), full or none'
complete -c espy -l watch -x -d 'show the maps while they change, again after each interval (1s)'
complete -c espy -l listen -x -d 'serve a page at / and Prometheus metrics at /metrics; only to this machine by default'
complete -c espy -s q -l quiet -d 'do not print the number of attached probes'
complete -c espy -s v -l verbose -d 'show events and losses of each probe at the end; with `espy list`: arguments'
complete -c espy -l no-warnings -d 'hide warnings about the program and of warnf()'
complete -c espy -l cost -d 'show the cost of the probes at the end, and each INTERVAL; with `espy features`: the cost of a probe'
complete -c espy -l budget -x -d 'limit the probes to this share of a CPU (2%) or of all (2%/all): turn off some of the time'
complete -c espy -l check-cost -d 'count events for 20 ms first, and stop or ask if the probes would use over 10% of a CPU'
complete -c espy -l yes -d 'with --check-cost: continue without asking'
complete -c espy -l strict -d 'fail with a reason if any number shown is not exact'
complete -c espy -s k -l warnings -d 'show where in the script a kernel helper failed'
complete -c espy -s i -l input -r -F -d 'read events from this recording; for a ring, give its name, or repeat -i'
complete -c espy -l record -r -F -d 'also record the data that the script reads, for `espy -i FILE`'
complete -c espy -l rotate -x -d 'split the recording into FILE.000001, FILE.000002, ... of at most SIZE, such as 100M'
complete -c espy -l keep -x -d 'with --rotate or --last: keep the newest N files, and delete the others'
complete -c espy -l last -x -d 'keep the last TIME, such as 10m, in files that each cover a tenth of it'
complete -c espy -l from -x -d 'with -i: skip events before this time since the start, such as 10s, 1.5m, 200ms'
complete -c espy -l to -x -d 'with -i: skip events after this time'
complete -c espy -s e -x -d 'run this program (the last -e wins)'
complete -c espy -l unsafe -d 'allow system(), signal() and others that change the machine'
complete -c espy -s I -x -a '(__fish_complete_directories)' -d 'search this directory for included headers'
complete -c espy -l include -r -F -d 'include this header before the first line of the program'
complete -c espy -l probe-filter -x -d 'attach only the probes whose names match this regular expression'
complete -c espy -l test -d 'run the `test` probes, and show which fail'
complete -c espy -l bench -d 'run the `bench` probes, and show how long they take'
complete -c espy -l mode -x -a 'test bench' -d 'test: the same as --test; bench: the same as --bench'
complete -c espy -l debuginfo -x -a '(__fish_complete_directories)' -d 'search these directories for separate debug files (colon-separated)'
complete -c espy -l dwarf-pid -x -a '(__fish_complete_pids)' -d 'read the unwind tables of this process before tracing starts'
complete -c espy -l traceable-functions -r -F -d 'read the names of traceable kernel functions from this file, one a line'
complete -c espy -l no-feature -x -d 'treat these kernel features as missing (comma-separated; see `espy features`)'
complete -c espy -l usdt-file-activation -d 'no effect: USDT semaphores always count for every process of a file'
complete -c espy -s b -l btf -d 'no effect: BTF is always used'
complete -c espy -l dry-run -d 'compile, load and attach, and end; no action runs'
complete -c espy -l dump -x -a 'script tokens ast types ir opt bpf program events verifier' -d 'show stages of the compilation and end (comma-separated): script, tokens, ast, types, ir, opt, bpf, program, events, verifier'
complete -c espy -s d -d 'short for --dump; without stages, ast,ir,bpf'
complete -c espy -l time -d 'show how many milliseconds each stage took, and its budget'
complete -c espy -s l -l list -d 'the same as `espy list`'
complete -c espy -l examples -d 'the same as `espy examples`'
complete -c espy -s h -l help -d 'show help, of the command before it'
complete -c espy -l fmt -d 'the same as `espy format`'
complete -c espy -l info -d 'the same as `espy features`'
complete -c espy -s V -l version -d 'the same as `espy version`'
complete -c espy -s s -l stack-order -d 'show only calls nested in the order of the targets'
complete -c espy -l graph -d 'show calls as an indented graph with durations'
complete -c espy -l addresses -d 'show pointers to structs alone, without the struct'
complete -c espy -l depth -x -d 'show only N levels of nested calls'
complete -c espy -l when -x -d 'show only calls of the first target that meet EXPR, with what they call'
complete -c espy -l slower-than -x -d 'show only calls that take longer, such as 10us, 2ms; with --graph: as --when'
complete -c espy -l before -x -d 'with --when: also show the last N calls of the thread before'
complete -c espy -s n -l events -x -d 'end after N events'
complete -c espy -l interval -x -d 'show the numbers of each interval, such as 1s or 0.2'
complete -c espy -l by -x -d 'show one number for each value of EXPR, such as an argument'
complete -c espy -l kstack -d 'count kernel stacks'
complete -c espy -l ustack -d 'count user stacks'
complete -c espy -l frequency -d 'count each value instead of a histogram'
complete -c espy -l off-cpu -d 'show how long threads wait, and where, in us'
complete -c espy -l for -x -d 'record the data that this script reads (may be repeated)'
complete -c espy -l size -x -d 'record this many bytes of each string and struct (256)'
complete -c espy -l parents -x -d 'record the ids and names of this many parents of each task (1)'
complete -c espy -l show -x -d 'print the script of this tool'
complete -c espy -l on -x -d 'check for this kernel, a file of `espy snapshot`; may be repeated (the running kernel)'
complete -c espy -l espy -r -F -d 'make the tool from this espy binary (the running one)'
complete -c espy -l systemd -d 'also write TOOL.service, a systemd unit'
# end generated

function __espy_patterns
    set -l word (commandline -ct)
    if string match -q '*:*' -- $word
        espy list "$word*" 2>/dev/null
    else
        printf '%s\n' $__espy_probes
    end
end

function __espy_functions
    espy list "kprobe:"(commandline -ct)"*" 2>/dev/null | string replace -r '^kprobe:' ''
end

complete -c espy -n __fish_use_subcommand -a '$__espy_commands' -d command
complete -c espy -n __fish_use_subcommand -a '$__espy_tools' -d tool
complete -c espy -n '__fish_contains_opt -s l list' -f -a '(__espy_patterns)'
complete -c espy -n '__fish_seen_subcommand_from list record' -f -a '(__espy_patterns)'
complete -c espy -n '__fish_seen_subcommand_from help' -f -a '$__espy_commands $__espy_tools options target'
complete -c espy -n '__fish_seen_subcommand_from tools' -f -a '$__espy_tools'
complete -c espy -n '__fish_seen_subcommand_from trace info' -a '(__espy_functions)'

#compdef espy
# Completion of espy in zsh: options, probe types and, behind `tracepoint:` and its like, what `espy -l` finds.

# begin generated: make docs
local -a espy_commands=(run trace strace count latency stacks args profile record tools list info explain examples help check format build lsp features snapshot version)
local -a espy_tools=(bashreadline bindsnoop bioerr biolatency biolatpcts biopattern biosnoop biostacks biotop bitesize bpflist bpfsnoop brkstack cachestat cachetop capable cgroupsnoop cgrouptop compactsnoop cpudist cpustat cpuunclaimed cpuwalk criticalstat dbslower dbstat dcsnoop dcstat deadlock dirtop dnssnoop drsnoop elfsnoop errsnoop execsnoop exitsnoop faults fdleak filegone filelife filelocks fileslower filetop forksnoop fsdist fsrwstat fsslower futexctn gethostlatency hardirqs keysnoop killsnoop klockstat kmem kmemleak kpages kvmexit llcstat loads mdflush memleak migrations mmapfiles modsnoop mountsnoop naptime netqtop netsize nssnoop numamove nvmelatency offcputime offwaketime oomkill opensnoop pidpersec pmheld pmlock ptracesnoop readahead runqlat runqlen runqslower scsilatency segvsnoop setuids shmsnoop signals sigsnoop skbdrop slabratetop soconnect sofamily sofdsnoop softirqs softirqslower solisten ssllatency sslsnoop statsnoop swapin syncsnoop syscount tcpaccept tcpcong tcpconnect tcpconnlat tcpdrop tcplife tcppktlat tcpreset tcpretrans tcprtt tcpstates tcpsubnet tcpsynbl tcptop tcptracer tcpwin threadsnoop timerlat ttysnoop ucalls udpdrop udptop uflow ugc undump uobjnew ustat uthreads vfscount vfsstat vmscan wakeuptime wqlat writeback writesync xfsdist)
local -a espy_probes=(begin: end: interval: profile: software: hardware: kprobe: kretprobe: fentry: fexit: uprobe: uretprobe: usdt: tracepoint: rawtracepoint: watchpoint: iter: self: test: bench:)
local -a espy_options=(
  '*-p[trace these processes (12,13), and end with the last]:PID:_pids'
  '*--pid[trace these processes (12,13), and end with the last]:PID:_pids'
  '*-c[start this command once all probes are attached, and end when it ends]:COMMAND:_cmdstring'
  '*--cmd[start this command once all probes are attached, and end when it ends]:COMMAND:_cmdstring'
  '*--follow[with -p or -c\: also trace existing and new children, and end with the last]'
  '*--follow-new[like --follow, and skip existing children]'
  '*--comm[trace only threads of this name (may be repeated)]:NAME: '
  '*--cgroup[trace only the tasks in this control group and below, and end when it is removed]:PATH: '
  '*--container[like --cgroup, for a container (ID or a prefix of it) or a systemd unit]:ID: '
  '*--duration[end after this time, such as 10s or 500ms, like Ctrl-C; in tools also -d]:TIME: '
  '*--user[run as this user, without capabilities, once the probes are attached]:NAME: '
  '*-o[write the output to this file]:FILE:_files'
  '*--output[write the output to this file]:FILE:_files'
  '*--append[with -o\: append to the file instead of emptying it]'
  '*--reopen[like --append; open the file again at SIGHUP (logrotate)]'
  '*-f[text (default)\: lines to read, in the format of bpftrace; json\: one JSON object a line; trace\: spans for chrome\://tracing and Perfetto, to FILE.pftrace in the format of Perfetto; folded\: maps keyed by stacks, a line for each stack; tree\: maps keyed by stacks, as an indented tree; else as text; flame\: maps keyed by stacks, as a flame graph (SVG); pprof\: maps keyed by stacks, as a profile for go tool pprof; speedscope\: maps keyed by stacks, for www.speedscope.app; otlp\: spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON]:FORMAT:(text json trace folded tree flame pprof speedscope otlp)'
  '*--format[text (default)\: lines to read, in the format of bpftrace; json\: one JSON object a line; trace\: spans for chrome\://tracing and Perfetto, to FILE.pftrace in the format of Perfetto; folded\: maps keyed by stacks, a line for each stack; tree\: maps keyed by stacks, as an indented tree; else as text; flame\: maps keyed by stacks, as a flame graph (SVG); pprof\: maps keyed by stacks, as a profile for go tool pprof; speedscope\: maps keyed by stacks, for www.speedscope.app; otlp\: spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON]:FORMAT:(text json trace folded tree flame pprof speedscope otlp)'
  '*-B[output buffering\: line (default), full or none]:MODE:(line full none)'
  '*--buffer[output buffering\: line (default), full or none]:MODE:(line full none)'
  '*--watch[show the maps while they change, again after each interval (1s)]:INTERVAL: '
  '*--listen[serve a page at / and Prometheus metrics at /metrics; only to this machine by default]:ADDRESS:PORT: '
  '*-q[do not print the number of attached probes]'
  '*--quiet[do not print the number of attached probes]'
  '*-v[show events and losses of each probe at the end; with `espy list`\: arguments]'
  '*--verbose[show events and losses of each probe at the end; with `espy list`\: arguments]'
  '*--no-warnings[hide warnings about the program and of warnf()]'
  '*--cost[show the cost of the probes at the end, and each INTERVAL; with `espy features`\: the cost of a probe]'
  '*--budget[limit the probes to this share of a CPU (2%) or of all (2%/all)\: turn off some of the time]:SHARE: '
  '*--check-cost[count events for 20 ms first, and stop or ask if the probes would use over 10% of a CPU]'
  '*--yes[with --check-cost\: continue without asking]'
  '*--strict[fail with a reason if any number shown is not exact]'
  '*-k[show where in the script a kernel helper failed]'
  '*--warnings[show where in the script a kernel helper failed]'
  '*-i[read events from this recording; for a ring, give its name, or repeat -i]:FILE:_files'
  '*--input[read events from this recording; for a ring, give its name, or repeat -i]:FILE:_files'
  '*--record[also record the data that the script reads, for `espy -i FILE`]:FILE:_files'
  '*--rotate[split the recording into FILE.000001, FILE.000002, ... of at most SIZE, such as 100M]:SIZE: '
  '*--keep[with --rotate or --last\: keep the newest N files, and delete the others]:N: '
  '*--last[keep the last TIME, such as 10m, in files that each cover a tenth of it]:TIME: '
  '*--from[with -i\: skip events before this time since the start, such as 10s, 1.5m, 200ms]:TIME: '
  '*--to[with -i\: skip events after this time]:TIME: '
  '*-e[run this program (the last -e wins)]:PROGRAM: '
  '*--unsafe[allow system(), signal() and others that change the machine]'
  '*-I[search this directory for included headers]:DIRECTORY:_files -/'
  '*--include[include this header before the first line of the program]:FILE:_files'
  '*--probe-filter[attach only the probes whose names match this regular expression]:REGEX: '
  '*--test[run the `test` probes, and show which fail]'
  '*--bench[run the `bench` probes, and show how long they take]'
  '*--mode[test\: the same as --test; bench\: the same as --bench]:MODE:(test bench)'
  '*--debuginfo[search these directories for separate debug files (colon-separated)]:DIRECTORIES:_files -/'
  '*--dwarf-pid[read the unwind tables of this process before tracing starts]:PID:_pids'
  '*--traceable-functions[read the names of traceable kernel functions from this file, one a line]:FILE:_files'
  '*--no-feature[treat these kernel features as missing (comma-separated; see `espy features`)]:NAMES: '
  '*--usdt-file-activation[no effect\: USDT semaphores always count for every process of a file]'
  '*-b[no effect\: BTF is always used]'
  '*--btf[no effect\: BTF is always used]'
  '*--dry-run[compile, load and attach, and end; no action runs]'
  '*--dump[show stages of the compilation and end (comma-separated)\: script, tokens, ast, types, ir, opt, bpf, program, events, verifier]:STAGES:(script tokens ast types ir opt bpf program events verifier)'
  '*-d[short for --dump; without stages, ast,ir,bpf]'
  '*--time[show how many milliseconds each stage took, and its budget]'
  '*-l[the same as `espy list`]'
  '*--list[the same as `espy list`]'
  '*--examples[the same as `espy examples`]'
  '*-h[show help, of the command before it]'
  '*--help[show help, of the command before it]'
  '*--fmt[the same as `espy format`]'
  '*--info[the same as `espy features`]'
  '*-V[the same as `espy version`]'
  '*--version[the same as `espy version`]'
  '*-s[show only calls nested in the order of the targets]'
  '*--stack-order[show only calls nested in the order of the targets]'
  '*--graph[show calls as an indented graph with durations]'
  '*--addresses[show pointers to structs alone, without the struct]'
  '*--depth[show only N levels of nested calls]:N: '
  '*--when[show only calls of the first target that meet EXPR, with what they call]:EXPR: '
  '*--slower-than[show only calls that take longer, such as 10us, 2ms; with --graph\: as --when]:TIME: '
  '*--before[with --when\: also show the last N calls of the thread before]:N: '
  '*-n[end after N events]:N: '
  '*--events[end after N events]:N: '
  '*-e[show these calls (trace=SET or SET) or results (status=SET)]:EXPR: '
  '*-z[show only calls that succeed]'
  '*--successful-only[show only calls that succeed]'
  '*-Z[show only calls that fail]'
  '*--failed-only[show only calls that fail]'
  '*-s[show this much of a text or buffer (32)]:SIZE: '
  '*--string-limit[show this much of a text or buffer (32)]:SIZE: '
  '*-v[show all members of structs]'
  '*--no-abbrev[show all members of structs]'
  '*-x[show texts that are not ASCII in hexadecimal (-xx all texts)]'
  '*-c[count calls, errors and time, and show no calls]'
  '*--summary-only[count calls, errors and time, and show no calls]'
  '*-C[like -c, and show the calls]'
  '*--summary[like -c, and show the calls]'
  '*-S[sort -c by time, calls, errors, name or avg-time (time)]:KEY: '
  '*--summary-sort-by[sort -c by time, calls, errors, name or avg-time (time)]:KEY: '
  '*-t[show the time of day (-tt with microseconds, -ttt since 1970)]'
  '*-r[show the time since the line before]'
  '*--relative-timestamps[show the time since the line before]'
  '*-T[show how long each call takes]'
  '*--syscall-times[show how long each call takes]'
  '*-n[show the number of each call]'
  '*--syscall-number[show the number of each call]'
  '*-f[follow child processes, which espy always does]'
  '*--interval[show the numbers of each interval, such as 1s or 0.2]:TIME: '
  '*--by[show one number for each value of EXPR, such as an argument]:EXPR: '
  '*--kstack[count kernel stacks]'
  '*--ustack[count user stacks]'
  '*--frequency[count each value instead of a histogram]'
  '*--off-cpu[show how long threads wait, and where, in us]'
  '*--for[record the data that this script reads (may be repeated)]:SCRIPT: '
  '*--size[record this many bytes of each string and struct (256)]:BYTES: '
  '*--parents[record the ids and names of this many parents of each task (1)]:N: '
  '*--show[print the script of this tool]:NAME: '
  '*--on[check for this kernel, a file of `espy snapshot`; may be repeated (the running kernel)]:KERNEL: '
  '*--espy[make the tool from this espy binary (the running one)]:FILE:_files'
  '*--systemd[also write TOOL.service, a systemd unit]'
)
# end generated

_espy_patterns() {
  if [[ $PREFIX == *:* ]]; then
    compadd -- ${(f)"$(_call_program probes espy list ${(q)PREFIX}\\\* 2>/dev/null)"}
  else
    compadd -S '' -a espy_probes
  fi
}

_espy_operands() {
  if (( CURRENT == 2 )); then
    compadd -a espy_commands
    compadd -a espy_tools
    _files
  elif (( ${words[(I)(-l|-lv|--list)]} )) || [[ ${words[2]} == (list|record) ]]; then
    _espy_patterns
  elif [[ ${words[2]} == help ]]; then
    compadd -a espy_commands
    compadd -a espy_tools
    compadd options target
  elif [[ ${words[2]} == tools ]]; then
    compadd -a espy_tools
  elif [[ ${words[2]} == (trace|info) ]]; then
    if [[ $PREFIX == *:* ]]; then _espy_patterns; fi
    compadd -- ${${(f)"$(_call_program functions espy list ${(q):-kprobe:$PREFIX}\\\* 2>/dev/null)"}#kprobe:}
    _files
  else
    _files
  fi
}

_arguments -s $espy_options '*:operand:_espy_operands'

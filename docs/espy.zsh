#compdef espy
# Completion of espy in zsh: options, probe types and, behind `tracepoint:` and its like, what `espy -l` finds.

# begin generated: make docs
local -a espy_commands=(info trace record check snapshot build lsp)
local -a espy_probes=(begin: end: interval: profile: software: hardware: kprobe: kretprobe: fentry: fexit: uprobe: uretprobe: usdt: tracepoint: rawtracepoint: watchpoint: iter: self: test: bench:)
local -a espy_options=(
  '*-e[run this program; the last -e counts]:PROGRAM: '
  '*-l[list the probes that match a pattern, or those of a program; with -v their arguments]'
  '*--list[list the probes that match a pattern, or those of a program; with -v their arguments]'
  '*-p[trace only this process, and end when it ends]:PID:_pids'
  '*--pid[trace only this process, and end when it ends]:PID:_pids'
  '*-c[start this command once all probes are attached, and end when it ends]:COMMAND:_cmdstring'
  '*--cmd[start this command once all probes are attached, and end when it ends]:COMMAND:_cmdstring'
  '*--follow[with -p or -c\: trace this process, those it has started and those it starts, and end when all have ended]'
  '*--follow-new[the same without the processes that it has started already]'
  '*--cgroup[trace only the tasks of this control group and of those below it, and end when it is removed]:PATH: '
  '*--container[the same for a container of docker, podman or containerd, by the beginning of its id, or for a unit of systemd]:ID: '
  '*--user[once the probes are attached, run as this user, without capabilities]:NAME: '
  '*-i[take the events from this recording, which `espy record` has made; of a ring, by its name or by several -i]:FILE:_files'
  '*--input[take the events from this recording, which `espy record` has made; of a ring, by its name or by several -i]:FILE:_files'
  '*--record[also write what the script reads of its events to a recording, for `espy -i FILE`]:FILE:_files'
  '*--rotate[of --record and `espy record`\: write FILE.000001, FILE.000002, ...\: the next one before a file exceeds this size (100M)]:SIZE: '
  '*--keep[with --rotate or --last\: keep the newest N of these files, delete the others]:N: '
  '*--last[keep what is younger than this (10m)\: write such files, a tenth of it long, delete older ones]:TIME: '
  '*--from[with -i\: leave out what was before this time since the beginning\: 10s, 1.5m, 200ms]:TIME: '
  '*--to[with -i\: leave out what was after it]:TIME: '
  '*-o[write the output to this file]:FILE:_files'
  '*--output[write the output to this file]:FILE:_files'
  '*-f[text (default)\: lines for people, as bpftrace prints them; json\: one JSON object a line; trace\: spans for chrome\://tracing and Perfetto, to FILE.pftrace in the format of Perfetto; folded\: maps keyed by stacks, a line for each stack; flame\: maps keyed by stacks, as a flame graph (SVG); pprof\: maps keyed by stacks, as a profile for go tool pprof; speedscope\: maps keyed by stacks, for www.speedscope.app; otlp\: spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON]:FORMAT:(text json trace folded flame pprof speedscope otlp)'
  '*--format[text (default)\: lines for people, as bpftrace prints them; json\: one JSON object a line; trace\: spans for chrome\://tracing and Perfetto, to FILE.pftrace in the format of Perfetto; folded\: maps keyed by stacks, a line for each stack; flame\: maps keyed by stacks, as a flame graph (SVG); pprof\: maps keyed by stacks, as a profile for go tool pprof; speedscope\: maps keyed by stacks, for www.speedscope.app; otlp\: spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON]:FORMAT:(text json trace folded flame pprof speedscope otlp)'
  '*-B[output buffering\: line (default), full or none]:MODE:(line full none)'
  '*--buffer[output buffering\: line (default), full or none]:MODE:(line full none)'
  '*--listen[show the run while it goes on\: a page at /, metrics for Prometheus at /metrics; without ADDRESS for this machine only]:ADDRESS:PORT: '
  '*--watch[show the maps while the run goes on, at a terminal in place as top(1) does, elsewhere after each interval (1s)]:INTERVAL: '
  '*-v[show at the end how often each probe fired, and what it missed; with -l\: its arguments]'
  '*--verbose[show at the end how often each probe fired, and what it missed; with -l\: its arguments]'
  '*--cost[show at the end what the probes cost; with --cost=INTERVAL (5s) also while they run; with --info\: what reaching a probe costs]'
  '*--budget[let the probes take at most this share of a CPU (2%) or of all (2%/all)\: the dearest are off for a part of the time]:SHARE: '
  '*--check-cost[count events for 20 ms first, and end if the probes will take more than a tenth of a CPU, or ask at a terminal; the command of -c has not begun then]'
  '*--yes[with --check-cost\: go on in any case]'
  '*--strict[fail with a reason if any number shown is not exact]'
  '*-q[do not say how many probes were attached]'
  '*--quiet[do not say how many probes were attached]'
  '*-k[say where in the script a kernel helper failed]'
  '*--warnings[say where in the script a kernel helper failed]'
  '*--no-warnings[show no warnings about the program, nor those of warnf()]'
  '*--unsafe[allow system(), signal() and others that change the machine]'
  '*-I[search this directory for included headers]:DIRECTORY:_files -/'
  '*--include[include this header before the first line of the program]:FILE:_files'
  '*--debuginfo[search these directories for separate debug files (colon-separated)]:DIRECTORIES:_files -/'
  '*--traceable-functions[read the names of traceable kernel functions from this file, one a line]:FILE:_files'
  '*--dwarf-pid[read the unwind tables of this process before tracing begins; those of others are read when they appear]:PID:_pids'
  '*--usdt-file-activation[accepted; semaphores of USDT probes always count for every process of a file]'
  '*--test[run the program'\''s `test` probes, and show which fail]'
  '*--bench[run the program'\''s `bench` probes, and show how long they take]'
  '*--mode[test\: the same as --test; bench\: the same as --bench]:MODE:(test bench)'
  '*--probe-filter[attach only the probes whose names match this regular expression]:REGEX: '
  '*--no-feature[treat these kernel features as missing (comma-separated; --info lists them)]:NAMES: '
  '*--info[show what this kernel offers]'
  '*--dry-run[compile, load and attach, and end; no action runs]'
  '*--dump[show stages of the compilation and end (comma-separated)\: script, tokens, ast, types, ir, opt, bpf, program, events, verifier]:STAGES:(script tokens ast types ir opt bpf program events verifier)'
  '*-d[short for --dump; without stages, ast,ir,bpf]'
  '*--time[show how many milliseconds each stage took, and its budget]'
  '*--fmt[print the formatted program and end]'
  '*-b[accepted for old scripts; BTF is always used]'
  '*--btf[accepted for old scripts; BTF is always used]'
  '*--examples[print one-liners, those with a word or all, and end]'
  '*-h[show this page]'
  '*--help[show this page]'
  '*-V[show the version]'
  '*--version[show the version]'
  '*-s[show only calls within each other in the order of the targets]'
  '*--stack-order[show only calls within each other in the order of the targets]'
  '*--graph[show calls as a graph, as C with durations]'
  '*--depth[show only N levels of calls within calls]:N: '
  '*--when[show only the first target'\''s calls that fit, and what they call\: '\''return < 0'\'']:EXPR: '
  '*--slower-than[show only calls that take longer\: 10us, 2ms; with --graph, as --when]:TIME: '
  '*--before[with --when\: show the thread'\''s last N calls before, too]:N: '
  '*-n[end after N events]:N: '
  '*--events[end after N events]:N: '
  '*--for[record what this script reads of its probes (may be given again)]:SCRIPT: '
  '*--size[record this much of each text and struct that an argument points to (256)]:BYTES: '
  '*--parents[record the ids and names of this many parents of each task (1)]:N: '
  '*--kstack[record the kernel stack of each event]'
  '*--ustack[record the user stack of each event]'
  '*--on[check for this kernel, a file that espy snapshot has written (may be given again)]:KERNEL: '
  '*--espy[the executable of espy that becomes the tool, if not this one]:FILE:_files'
  '*--systemd[also write TOOL.service, with which systemd runs the tool]'
)
# end generated

_espy_patterns() {
  if [[ $PREFIX == *:* ]]; then
    compadd -- ${(f)"$(_call_program probes espy -l ${(q)PREFIX}\\\* 2>/dev/null)"}
  else
    compadd -S '' -a espy_probes
  fi
}

_espy_operands() {
  if (( ${words[(I)(-l|-lv|--list)]} )); then
    _espy_patterns
  elif (( ${espy_commands[(Ie)${words[2]}]} && CURRENT > 2 )); then
    compadd -- ${${(f)"$(_call_program functions espy -l ${(q):-kprobe:$PREFIX}\\\* 2>/dev/null)"}#kprobe:}
    _files
  else
    (( CURRENT == 2 )) && compadd -a espy_commands
    _files
  fi
}

_arguments -s $espy_options '*:operand:_espy_operands'

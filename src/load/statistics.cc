// What the kernel counts of programs and maps.
#include <fmt/format.h>
#include <linux/bpf.h>

#include <algorithm>

#include "base/strings.h"
#include "load/linux.h"

namespace espy::load {

namespace {

Machine::Runs runs_of(int fd) {
  bpf_prog_info info = {};
  InfoAttr attr{static_cast<uint32_t>(fd), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, attr) < 0) return {};
  return {info.run_cnt, info.run_time_ns};
}

// Runs a program once. Returns its result.
Result<uint32_t> run_once(int fd) {
  TestRunAttr attr;
  attr.prog_fd = static_cast<uint32_t>(fd);
  if (const long result = bpf(Command::kTestRun, attr); result < 0)
    return fail_errno("cannot run a program", static_cast<int>(-result));
  return attr.retval;
}

OwnedFd load_empty_program() {
  const program::BpfInsn code[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0}, {BPF_JMP | BPF_EXIT, 0, 0, 0}};
  ProgLoadAttr attr;
  attr.prog_type = number_of(program::ProgramKind::kRawTracepoint);
  attr.insn_cnt = std::size(code);
  attr.insns = address_of(code);
  attr.license = address_of("GPL");
  return OwnedFd(static_cast<int>(bpf(Command::kProgLoad, attr)));
}

}  // namespace

// While a descriptor of BPF_ENABLE_STATS is open (Linux 5.8).
Status LinuxMachine::count_runs(bool on) {
  statistics_ = {};
  if (!on) return {};
  EnableStatsAttr enable;
  const long fd = bpf(Command::kEnableStats, enable);
  if (fd < 0) return fail_errno("the kernel does not count runs", static_cast<int>(-fd));
  statistics_ = OwnedFd(static_cast<int>(fd));
  return {};
}

Machine::Runs LinuxMachine::counted_runs(ProgramId program) { return runs_of(programs_[program].get()); }

// The least of several averages: others interrupt, and the first runs are slow.
uint64_t LinuxMachine::counting_ns() {
  constexpr int kBatches = 8, kRuns = 32;
  const OwnedFd empty = load_empty_program();
  EnableStatsAttr enable;
  const OwnedFd statistics(static_cast<int>(bpf(Command::kEnableStats, enable)));
  if (!empty.valid() || !statistics.valid()) return 0;
  uint64_t least = UINT64_MAX;
  for (int batch = 0; batch < kBatches; ++batch) {
    const Runs before = runs_of(empty.get());
    for (int i = 0; i < kRuns; ++i)
      if (!run_once(empty.get())) return 0;
    const Runs after = runs_of(empty.get());
    if (after.count > before.count) least = std::min(least, (after.ns - before.ns) / (after.count - before.count));
  }
  return least == UINT64_MAX ? 0 : least;
}

// Before Linux 6.4 the kernel estimates it by the shape of the map.
uint64_t LinuxMachine::memory_bytes(MapId map) {
  const auto text = read_file(fmt::format("/proc/self/fdinfo/{}", maps_[map].fd.get()));
  if (!text) return 0;
  constexpr std::string_view kKey = "memlock:";
  for (const std::string_view line : split(*text, '\n'))
    if (line.starts_with(kKey)) return static_cast<uint64_t>(parse_int(trim(line.substr(kKey.size()))).value_or(0));
  return 0;
}

// Without statistics, the measured time includes the system calls.
Result<Machine::Measured> LinuxMachine::measure(ProgramId program, uint64_t count) {
  const int fd = programs_[program].get();
  EnableStatsAttr enable;
  const OwnedFd statistics(static_cast<int>(bpf(Command::kEnableStats, enable)));
  const Runs before = runs_of(fd);
  const uint64_t started = now_ns();
  uint32_t result = 0;
  for (uint64_t i = 0; i < count; ++i) result = TRY(run_once(fd));
  const uint64_t elapsed = now_ns() - started;
  const Runs after = runs_of(fd);
  if (after.count > before.count) return Measured{result, (after.ns - before.ns) / (after.count - before.count)};
  return Measured{result, elapsed / std::max<uint64_t>(count, 1)};
}

std::optional<uint64_t> LinuxMachine::process_cpu_ns(uint32_t pid) { return kernel::process_cpu_ns(pid); }

std::optional<kernel::SchedulingTimes> LinuxMachine::scheduling_times(uint32_t pid) {
  return kernel::scheduling_times(pid);
}

}  // namespace espy::load

#include "load/hook_costs.h"

#include <link.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/arch/arch.h"
#include "load/bpf.h"
#include "load/machine.h"

namespace espy::load {

namespace {

using program::Hook;
using program::ProgramId;

constexpr program::ProgramId kOnly{0};
constexpr const char* kSystemCall = "sys_enter";
constexpr const char* kSystemCallReturn = "sys_exit";
constexpr double kLeastNs = 0.5;  // what is less is printed as 0, which no hook takes
// getppid(2) calls it once or twice, on all CPUs.
constexpr const char* kKernelFunction = "__task_pid_nr_ns";

// ---- The events

// User probes are on their first instruction, which the kernel need not execute out of its place.
__attribute__((noinline, patchable_function_entry(1))) uint64_t at_entry(uint64_t n) {
  asm volatile("" : "+r"(n));
  return n + 1;
}

__attribute__((noinline, patchable_function_entry(1))) uint64_t at_step(uint64_t n) {
  asm volatile("" : "+r"(n));
  return n + 3;
}

__attribute__((noinline, patchable_function_entry(1))) uint64_t at_return(uint64_t n) {
  asm volatile("" : "+r"(n));
  return n + 2;
}

double cpu_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// What a program does between two events. A CPU executes it ahead while it waits for other instructions, but not across
// a trap, which so takes more of a program than of a loop that does nothing else.
void work() {
  constexpr int kRounds = 300;
  static volatile uint64_t sum;
  for (int i = 0; i < kRounds; ++i) sum = sum + 1;
}

using Event = void (*)();
void make_system_call() { ::syscall(SYS_getppid); }
void call_entry() { at_entry(1); }
void call_return() { at_return(1); }
void call_stepped() { at_step(1); }

// Returns the average time of an event of several batches, to some of which other work of the machine adds: the median
// of those of traps, and the least of those of system calls, which take so little that they would be lost in the noise.
double event_ns(Event event) {
  constexpr int kBatches = 17, kEvents = 200;
  const bool is_trap = event != make_system_call;
  std::array<double, kBatches> averages = {};
  for (double& average : averages) {
    const double begin = cpu_ns();
    for (int i = 0; i < kEvents; ++i) {
      if (is_trap) work();
      event();
    }
    average = (cpu_ns() - begin) / kEvents;
  }
  std::ranges::sort(averages);
  return averages[is_trap ? kBatches / 2 : 0];
}

// Where a function is in the file of this program.
uint64_t file_offset(const void* function) {
  struct Search {
    uint64_t address, offset;
  } search{reinterpret_cast<uint64_t>(function), 0};
  const auto visit = [](dl_phdr_info* info, size_t, void* data) {
    auto& found = *static_cast<Search*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      const uint64_t start = info->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || found.address < start || found.address >= start + segment.p_memsz) continue;
      found.offset = found.address - start + segment.p_offset;
    }
    return 0;
  };
  ::dl_iterate_phdr(visit, &search);
  return search.offset;
}

// ---- Attaching

program::Program empty_program(program::ProgramKind kind, uint32_t attach_type = 0, uint32_t btf_id = 0) {
  program::Program out;
  program::BpfProgram code;
  code.name = "espy_cost";
  code.kind = kind;
  code.expected_attach_type = attach_type;
  code.attach_btf_id = btf_id;
  code.code = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0}, {BPF_JMP | BPF_EXIT, 0, 0, 0}};
  out.programs.add(std::move(code));
  return out;
}

class Meter {
 public:
  explicit Meter(kernel::Kernel& kernel) : kernel_(kernel) {}

  Result<double> measure(Hook hook, bool is_return, bool is_stepped) {
    switch (hook) {
      case Hook::kSystemCalls: return added(make_system_call, [&] { return attach_raw(kSystemCall); });
      case Hook::kRawTracepoint: {  // the first one also makes all system calls slower
        if (!machines_.contains_raw) TRY_STATUS(attach_raw(kSystemCall));
        return added_by_one_of_several(make_system_call, [&] { return attach_raw(kSystemCallReturn); });
      }
      case Hook::kTracepoint: return added_by_one_of_several(make_system_call, [&] { return attach_tracepoint(); });
      case Hook::kKernelFunction:
        return added(make_system_call, [&] { return is_stepped ? attach_trap() : attach_kprobe(is_return); });
      case Hook::kTrampoline: return added(make_system_call, [&] { return attach_trampoline(is_return); });
      case Hook::kUserFunction:
        if (is_stepped) return added(call_stepped, [&] { return attach_stepped(); });
        return added(is_return ? call_return : call_entry, [&] {
          return attach_uprobe(file_offset(reinterpret_cast<const void*>(is_return ? at_return : at_entry)), is_return);
        });
      case Hook::kNone:
      case Hook::kOther: break;
    }
    return fail("it is not measured");
  }

 private:
  // Fails if events take no longer with the program than without. Another tracer that ends meanwhile does that.
  Result<double> added(Event event, const std::function<Status()>& attach) {
    const double before = event_ns(event);
    TRY_STATUS(attach());
    const double ns = event_ns(event) - before;
    if (ns < kLeastNs) return fail("other work on this machine disturbs the measurement");
    return ns;
  }

  // For hooks of which each program takes the same time, however many there are: one more is measured.
  Result<double> added_by_one_of_several(Event event, const std::function<Status()>& attach) {
    constexpr int kTries = 5;
    Result<double> ns = added(event, attach);
    for (int i = 1; i < kTries && !ns; ++i) ns = added(event, attach);
    return ns;
  }

  // A machine with an empty program; it stays attached.
  Result<Machine*> load(program::Program program) {
    programs_.push_back(std::make_unique<program::Program>(std::move(program)));
    machines_.all.push_back(open_linux());
    Machine& machine = *machines_.all.back();
    TRY_STATUS(machine.load(*programs_.back(), types_, sources_));
    return &machine;
  }

  Status attach_raw(const char* tracepoint) {
    Machine* machine = TRY(load(empty_program(program::ProgramKind::kRawTracepoint)));
    machines_.contains_raw = true;
    return machine->attach_raw_tracepoint(kOnly, tracepoint, 0);
  }

  Status attach_tracepoint() {
    const std::string path = "/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id";
    const auto id = parse_int(trim(TRY(read_file(path))));
    if (!id) return fail("the tracepoint has no number");
    Machine* machine = TRY(load(empty_program(program::ProgramKind::kTracepoint)));
    PerfEvent event;
    event.type = PERF_TYPE_TRACEPOINT;
    event.config = static_cast<uint64_t>(*id);
    return machine->attach_perf_event(kOnly, event, 0);
  }

  Status attach_kprobe(bool is_return) {
    if (!kernel_.has(kernel::Feature::kKprobe)) return fail("this kernel has no kprobes");
    const bool is_multi = kernel_.has(kernel::Feature::kKprobeMulti);
    Machine* machine = TRY(load(empty_program(program::ProgramKind::kKprobe, is_multi ? kAttachKprobeMulti : 0)));
    if (is_multi) return machine->attach_kprobe_multi(kOnly, {{kKernelFunction}, {0}, {}, is_return});
    return machine->attach_kprobe(kOnly, {.function = kKernelFunction, .is_return = is_return}, 0);
  }

  // Behind the place of ftrace: at the first instruction there that the kernel takes. The kernel puts a jump in the
  // place of the trap later, if at all.
  Status attach_trap() {
    if (!kernel_.has(kernel::Feature::kKprobe)) return fail("this kernel has no kprobes");
    constexpr uint64_t kFirst = 12, kEnd = 32;
    Machine* machine = TRY(load(empty_program(program::ProgramKind::kKprobe)));
    Status status;
    for (uint64_t offset = kFirst; offset < kEnd; ++offset) {
      status = machine->attach_kprobe(kOnly, {.function = kKernelFunction, .offset = offset, .is_return = false}, 0);
      if (status) break;
    }
    return status;
  }

  Status attach_trampoline(bool is_return) {
    const auto id = kernel_.kfunc_id(kKernelFunction);
    if (!kernel_.has(kernel::Feature::kFentry) || !id) return fail("this kernel has no fentry");
    const auto kind = is_return ? program::ProgramKind::kFexit : program::ProgramKind::kFentry;
    Machine* machine = TRY(load(empty_program(kind, is_return ? kAttachTraceFexit : kAttachTraceFentry, *id)));
    return machine->attach_tracing(kOnly, 0);
  }

  // At the first instruction of the function that is stepped.
  Status attach_stepped() {
    const auto* code = reinterpret_cast<const std::byte*>(at_step);
    const kernel::Arch& arch = kernel_.arch();
    uint32_t at = 0;
    for (int i = 0; i < 4; ++i) {
      const std::span<const std::byte> rest(code + at, arch.max_instruction_bytes);
      if (!kernel::is_emulated(arch, rest)) return attach_uprobe(file_offset(code) + at, false);
      at += arch.instruction_length({reinterpret_cast<const uint8_t*>(rest.data()), rest.size()});
    }
    return fail("there is no such instruction");
  }

  Status attach_uprobe(uint64_t offset, bool is_return) {
    const bool is_multi = kernel_.has(kernel::Feature::kUprobeMulti);
    Machine* machine = TRY(load(empty_program(program::ProgramKind::kKprobe, is_multi ? kAttachUprobeMulti : 0)));
    const std::string path = "/proc/self/exe";
    const auto pid = static_cast<uint32_t>(::getpid());
    if (!is_multi) return machine->attach_uprobe(kOnly, path, offset, 0, is_return, pid, 0);
    return machine->attach_uprobe_multi(kOnly, {.path = path,
                                                .offsets = {offset},
                                                .reference_counters = {},
                                                .cookies = {},
                                                .pid = pid,
                                                .is_return = is_return});
  }

  struct Machines {
    std::vector<std::unique_ptr<Machine>> all;
    bool contains_raw = false;
  };

  kernel::Kernel& kernel_;
  Machines machines_;
  std::vector<std::unique_ptr<program::Program>> programs_;
  types::Types types_;
  source::Sources sources_;
};

// ---- The child

struct Wanted {
  Hook hook;
  bool is_return = false;
  bool is_stepped = false;
};

struct Answer {
  double ns = 0;
  char problem[120] = {};
};

int answer_all(int to, kernel::Kernel& kernel, const std::vector<Wanted>& wanted) {
  auto* meter = new Meter(kernel);  // never deleted: the exit closes the links
  for (const auto& [hook, is_return, is_stepped] : wanted) {
    Answer answer;
    const Result<double> ns = meter->measure(hook, is_return, is_stepped);
    if (ns) {
      answer.ns = *ns;
    } else {
      const size_t length = ns.error().message.copy(answer.problem, sizeof(answer.problem) - 1);
      answer.problem[length] = '\0';
    }
    if (::write(to, &answer, sizeof(answer)) != static_cast<ssize_t>(sizeof(answer))) break;
  }
  ::close(to);
  return EXIT_SUCCESS;
}

HookCosts measure(kernel::Kernel& kernel, const std::vector<Wanted>& wanted) {
  std::vector<HookCost> out;
  for (const auto& [hook, is_return, is_stepped] : wanted)
    out.push_back({hook, is_return, is_stepped, 0, "the measurement failed"});
  int ends[2] = {-1, -1};
  if (wanted.empty() || ::pipe(ends) != 0) return HookCosts(std::move(out));
  const OwnedFd from(ends[0]);
  OwnedFd to(ends[1]);
  // It closes its links for some time. If it does not start, the pipe ends without an answer.
  static_cast<void>(start_orphan([&] { return answer_all(to.get(), kernel, wanted); }));
  to = OwnedFd();
  Answer answer;
  for (HookCost& cost : out) {
    if (::read(from.get(), &answer, sizeof(answer)) != static_cast<ssize_t>(sizeof(answer))) break;
    cost.ns = answer.ns;
    cost.problem = answer.problem;
  }
  return HookCosts(std::move(out));
}

// One program at entry and return.
bool is_session(const program::BpfProgram& program) {
  return program.expected_attach_type == kAttachKprobeSession || program.expected_attach_type == kAttachUprobeSession;
}

bool has_returns(Hook hook) {
  return hook == Hook::kKernelFunction || hook == Hook::kTrampoline || hook == Hook::kUserFunction;
}

}  // namespace

std::optional<double> HookCosts::find(Hook hook, bool is_return, bool is_stepped) const {
  for (const HookCost& cost : all_)
    if (cost.hook == hook && cost.is_return == is_return && cost.is_stepped == is_stepped && cost.problem.empty())
      return cost.ns;
  return std::nullopt;
}

HookCosts HookCosts::assumed() {
  return HookCosts({{Hook::kSystemCalls, false, false, 75},
                    {Hook::kRawTracepoint, false, false, 50},
                    {Hook::kTracepoint, false, false, 100},
                    {Hook::kKernelFunction, false, false, 100},
                    {Hook::kKernelFunction, true, false, 200},
                    {Hook::kTrampoline, false, false, 20},
                    {Hook::kTrampoline, true, false, 40},
                    {Hook::kUserFunction, false, false, 500},
                    {Hook::kUserFunction, true, false, 700}});
}

// Of the system calls' slow path, each program that is there has its part.
double HookCosts::of_system_calls(const program::Program& whole, double first_ns) const {
  const auto count = std::ranges::count(whole.programs, Hook::kSystemCalls, &program::BpfProgram::hook);
  const double alone_ns = std::min(find(Hook::kRawTracepoint, false, false).value_or(first_ns), first_ns);
  return alone_ns + (first_ns - alone_ns) / static_cast<double>(count);
}

// What a return does not take if its entry has a probe as well. That of a kernel function is measured so.
double shared_ns(Hook hook, double entry_ns, double step_ns) {
  return hook == Hook::kKernelFunction ? step_ns : entry_ns + step_ns;
}

// The step adds to entry and return alike.
std::optional<double> HookCosts::of(const program::Program& whole, program::ProgramId id) const {
  const program::BpfProgram& program = whole.programs[id];
  auto ns = find(program.hook, program.sees_returns, false);
  if (!ns) return std::nullopt;
  if (program.hook == Hook::kSystemCalls) return of_system_calls(whole, *ns);
  const auto entry_ns = find(program.hook, false, false), stepped_ns = find(program.hook, false, true);
  const auto share = stepped_share_.find(id);
  double step_ns = 0;
  if (entry_ns && stepped_ns && share != stepped_share_.end())
    step_ns = std::max(*stepped_ns - *entry_ns, 0.0) * share->second;
  ns = *ns + step_ns;
  if (const auto shared = shared_traps_.find(id); entry_ns && shared != shared_traps_.end())
    ns = std::max(*ns - shared_ns(program.hook, *entry_ns, step_ns) * shared->second, 0.0);
  return is_session(program) ? *ns / 2 : *ns;
}

namespace {

// Reads the code of probes; the files are kept open, as many probes are in one.
class CodeReader {
 public:
  explicit CodeReader(const kernel::Arch& arch) : arch_(arch) {}

  bool is_stepped(const program::Probe& probe) {
    const auto [file, is_new] = files_.try_emplace(probe.target);
    if (is_new)
      if (auto opened = open_untrusted(probe.target, max_binary_bytes()); opened && opened->state() == probe.file)
        file->second = std::move(*opened);
    if (!file->second.fd.valid()) return false;
    const auto code = file->second.read_at(probe.address, arch_.max_instruction_bytes);
    return code && !code->empty() && !kernel::is_emulated(arch_, std::as_bytes(std::span(*code)));
  }

 private:
  const kernel::Arch& arch_;
  std::map<std::string, UntrustedFile> files_;
};

// Probes of wildcards are of ftrace's list.
bool is_trap(kernel::Kernel& kernel, const program::BpfProgram& code, const program::Probe& probe) {
  if (code.expected_attach_type != 0 || probe.is_optional) return false;
  return probe.offset > 0 || probe.address > 0 || kernel.functions(probe.function).empty();
}

// What is probed: two of the same have the same.
using Place = std::tuple<Hook, std::string_view, std::string_view, uint64_t, uint64_t>;

Place place_of(Hook hook, const program::Probe& probe) {
  if (hook == Hook::kUserFunction) return {hook, probe.target, {}, probe.address, 0};
  return {hook, probe.target, probe.function, probe.address, probe.offset};
}

}  // namespace

void HookCosts::look_at_probes(const program::Program& program, kernel::Kernel* kernel) {
  CodeReader reader(*program.arch);
  std::map<program::ProgramId, std::pair<double, double>> counts;  // stepped, all
  for (const program::Probe& probe : program.probes) {
    if (!probe.program.valid()) continue;
    const program::BpfProgram& code = program.programs[probe.program];
    const bool is_of_kernel = kernel != nullptr && code.hook == Hook::kKernelFunction;
    if (code.hook != Hook::kUserFunction && !is_of_kernel) continue;
    auto& [stepped, all] = counts[probe.program];
    const bool is_stepped = is_of_kernel ? is_trap(*kernel, code, probe) : reader.is_stepped(probe);
    stepped += is_stepped ? 1 : 0;
    all += 1;
  }
  for (const auto& [id, count] : counts) stepped_share_[id] = count.first / count.second;
  look_for_shared_traps(program);
}

// A probe of a return begins with a trap at the entry, which a probe there takes anyway.
void HookCosts::look_for_shared_traps(const program::Program& program) {
  std::set<Place> entries;
  std::map<program::ProgramId, std::pair<double, double>> counts;  // shared, all
  const auto visit = [&](bool sees_returns, const auto& take) {
    for (const program::Probe& probe : program.probes) {
      if (!probe.program.valid()) continue;
      const program::BpfProgram& code = program.programs[probe.program];
      const bool traps = code.hook == Hook::kUserFunction || code.hook == Hook::kKernelFunction;
      if (traps && code.sees_returns == sees_returns && !is_session(code)) take(place_of(code.hook, probe), probe);
    }
  };
  visit(false, [&](const Place& place, const program::Probe&) { entries.insert(place); });
  visit(true, [&](const Place& place, const program::Probe& probe) {
    auto& [shared, all] = counts[probe.program];
    shared += entries.contains(place) ? 1 : 0;
    all += 1;
  });
  for (const auto& [id, count] : counts) shared_traps_[id] = count.first / count.second;
}

namespace {

std::vector<Wanted> wanted_of(const std::vector<Hook>& hooks, bool has_kernel_traps) {
  std::vector<Wanted> out;
  for (const Hook hook : {Hook::kSystemCalls, Hook::kRawTracepoint, Hook::kTracepoint, Hook::kKernelFunction,
                          Hook::kTrampoline, Hook::kUserFunction}) {
    const auto has = [&](Hook each) { return std::ranges::find(hooks, each) != hooks.end(); };
    if (!has(hook) && !(hook == Hook::kRawTracepoint && has(Hook::kSystemCalls))) continue;
    out.push_back({hook});
    if (has_returns(hook)) out.push_back({hook, true});
    const bool is_stepped = hook == Hook::kUserFunction || (hook == Hook::kKernelFunction && has_kernel_traps);
    if (is_stepped) out.push_back({hook, false, true});
  }
  return out;
}

bool has_kernel_traps(kernel::Kernel& kernel, const program::Program& program) {
  return std::ranges::any_of(program.probes, [&](const program::Probe& probe) {
    if (!probe.program.valid()) return false;
    const program::BpfProgram& code = program.programs[probe.program];
    return code.hook == Hook::kKernelFunction && is_trap(kernel, code, probe);
  });
}

}  // namespace

HookCosts measure_hook_costs(kernel::Kernel& kernel, const program::Program& program) {
  std::vector<Hook> hooks;
  for (const program::BpfProgram& each : program.programs) hooks.push_back(each.hook);
  HookCosts out = measure(kernel, wanted_of(hooks, has_kernel_traps(kernel, program)));
  out.look_at_probes(program, &kernel);
  return out;
}

HookCosts measure_hook_costs(kernel::Kernel& kernel) {
  return measure(kernel, wanted_of({Hook::kSystemCalls, Hook::kRawTracepoint, Hook::kTracepoint, Hook::kKernelFunction,
                                    Hook::kTrampoline, Hook::kUserFunction},
                                   true));
}

std::string name_of(const HookCost& cost) {
  switch (cost.hook) {
    case Hook::kSystemCalls: return "system calls (raw tracepoint, the first on the machine)";
    case Hook::kRawTracepoint: return "raw tracepoint";
    case Hook::kTracepoint: return "tracepoint by a perf event";
    case Hook::kKernelFunction:
      if (cost.is_stepped) return "kprobe where ftrace has no place for it";
      return cost.is_return ? "kretprobe" : "kprobe";
    case Hook::kTrampoline: return cost.is_return ? "fexit" : "fentry";
    case Hook::kUserFunction:
      if (cost.is_stepped) return "uprobe at an instruction that the kernel does not emulate";
      return cost.is_return ? "uretprobe" : "uprobe";
    case Hook::kNone:
    case Hook::kOther: break;
  }
  return "other";
}

}  // namespace espy::load

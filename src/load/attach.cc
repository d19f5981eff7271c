#include "load/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/cpu_list.h"
#include "kernel/features.h"
#include "kernel/functions.h"
#include "load/linux.h"

namespace espy::load {

namespace {

constexpr long kCalls = 8;  // the kernel may replace the nop after the first
constexpr char kRight = 'r', kWrong = 'w';
constexpr int kNotSupported = 524;  // ENOTSUPP, which the kernel returns but does not publish

using Function = long (*)(long);

// A file in memory with the code; the kernel probes files.
OwnedFd make_file(std::span<const uint8_t> code) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC (Linux 6.3)
  OwnedFd out(::memfd_create("espy-nop", MFD_CLOEXEC | kExecutable));
  if (!out.valid()) out = OwnedFd(::memfd_create("espy-nop", MFD_CLOEXEC));
  const std::string_view bytes(reinterpret_cast<const char*>(code.data()), code.size());
  if (out.valid() && !write_all(out.get(), bytes)) return {};
  return out;
}

// Calls the function once a byte has come, and tells whether it was right; says nothing if the sender has ended.
int call_in_child(Function function, int start, int result) {
  char byte = 0;
  if (::read(start, &byte, 1) != 1) return EXIT_FAILURE;
  byte = kRight;
  for (long i = 1; i <= kCalls; ++i)
    if (function(i) != i) byte = kWrong;
  return ::write(result, &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

struct Pipe {
  OwnedFd reader, writer;
};

std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

// Returns a perf event on the instruction, without a program: it counts.
Result<OwnedFd> probe_in(pid_t process, const OwnedFd& file, uint32_t offset) {
  const std::string path = descriptor_path(file);
  perf_event_attr attr = {};
  attr.type = TRY(pmu_type("uprobe"));
  attr.config1 = address_of(path.c_str());
  attr.config2 = offset;
  const long fd = open_perf_event(attr, process, -1);
  if (fd < 0) return fail("no probe", static_cast<int>(-fd));
  return OwnedFd(static_cast<int>(fd));
}

NopProbe try_in(pid_t child, const OwnedFd& file, uint32_t offset, Pipe& start, Pipe& result) {
  const auto probe = probe_in(child, file, offset);
  if (!probe) return probe.error().code == kNotSupported ? NopProbe::kRefused : NopProbe::kUnknown;
  result.writer.reset();
  if (!write_all(start.writer.get(), "s")) return NopProbe::kUnknown;
  char byte = 0;
  if (::read(result.reader.get(), &byte, 1) != 1 || byte == kWrong) return NopProbe::kBreaks;
  uint64_t hits = 0;
  const bool is_read = ::read(probe->get(), &hits, sizeof(hits)) == sizeof(hits);
  return is_read && hits == kCalls ? NopProbe::kWorks : NopProbe::kUnknown;
}

}  // namespace

// The code is mapped before the probe, since the kernel looks at the instruction where it is mapped.
NopProbe try_probe_on(const kernel::ProbedNop& nop) {
  const OwnedFd file = make_file(nop.example);
  auto start = make_pipe(), result = make_pipe();
  if (!file.valid() || !start || !result) return NopProbe::kUnknown;
  const size_t size = nop.example.size();
  void* code = ::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (code == MAP_FAILED) return NopProbe::kUnknown;
  const auto call = [&] {
    start->writer.reset();
    return call_in_child(reinterpret_cast<Function>(code), start->reader.get(), result->writer.get());
  };
  const Result<pid_t> child = start_child(call, {.parent_end_signal = SIGKILL});
  const NopProbe out = child ? try_in(*child, file, nop.example_offset, *start, *result) : NopProbe::kUnknown;
  start->writer.reset();
  if (child) wait_for_child(*child);
  ::munmap(code, size);
  return out;
}

namespace {

constexpr const char* kTracefs = "/sys/kernel/tracing";

// Writes a line to kprobe_events. Appends, as opening it for anything else may remove the probes of others.
Status command(const std::string& line) {
  const OwnedFd file(::open(fmt::format("{}/kprobe_events", kTracefs).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid()) return fail_errno("cannot open kprobe_events", errno);
  if (::write(file.get(), line.data(), line.size()) < 0) return fail_errno("cannot define a probe", errno);
  return {};
}

// Removes those of a group that are not in use. Returns whether none is left.
bool remove_unused(const std::string& group) {
  const auto events = read_file(fmt::format("{}/kprobe_events", kTracefs));
  if (!events) return true;
  bool is_empty = true;
  for (const std::string_view line : split(*events, '\n')) {  // r4096:GROUP/EVENT vfs_read
    const size_t begin = line.find(':' + group + '/');
    if (begin == std::string_view::npos) continue;
    const std::string_view name = line.substr(begin + 1, line.find(' ', begin) - begin - 1);
    if (!command(fmt::format("-:{}", name))) is_empty = false;
  }
  return is_empty;
}

// The perf events are closed after the end of the process that has them, each by a grace period.
void remove_when_unused(const std::string& group) {
  constexpr int kSeconds = 60;
  const timespec pause = {0, 20'000'000};
  for (int i = 0; i < kSeconds * 50 && !remove_unused(group); ++i) ::nanosleep(&pause, nullptr);
}

// A name that no other process has used, as it may be in another namespace of pids.
std::string new_group() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return fmt::format("espy_{}_{:x}{:08x}", ::getpid(), now.tv_sec, now.tv_nsec);
}

}  // namespace

ReturnProbes::~ReturnProbes() {
  if (janitor_) janitor_->outlive();
}

Result<uint64_t> ReturnProbes::define(const std::string& function, uint32_t max_calls) {
  if (::access(fmt::format("{}/kprobe_events", kTracefs).c_str(), W_OK) != 0)
    return fail_errno("cannot write kprobe_events", errno);
  if (!janitor_)
    janitor_.emplace(TRY(Janitor::start([]() -> Result<std::string> { return new_group(); }, remove_when_unused)));
  const std::string event = fmt::format("{}/r{}", janitor_->made(), count_++);
  TRY_STATUS(command(fmt::format("r{}:{} {}", max_calls, event, function)));
  const std::string id = TRY(read_file(fmt::format("{}/events/{}/id", kTracefs, event)));
  const auto number = parse_int(trim(id));
  if (!number) return fail("an event of tracefs has no number");
  return static_cast<uint64_t>(*number);
}

// ---- Attaching and detaching of programs.

long open_perf_event(perf_event_attr& attr, int pid, int cpu) {
  attr.size = sizeof(attr);
  const long fd = ::syscall(__NR_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

Result<uint32_t> pmu_type(const std::string& name) {
  const std::string text = TRY(read_file("/sys/bus/event_source/devices/" + name + "/type"));
  const auto number = parse_int(trim(text));
  if (!number) return fail("the kernel's " + name + " PMU has no number");
  return static_cast<uint32_t>(*number);
}

namespace {

// Some distributions have further levels of perf_event_paranoid, at which CAP_PERFMON is not enough.
tl::unexpected<Error> no_perf_events() {
  const auto level = read_file("/proc/sys/kernel/perf_event_paranoid");
  return fail(fmt::format("only root may open perf events here (kernel.perf_event_paranoid = {})",
                          level ? trim(*level) : std::string_view("?")),
              EACCES);
}

// A file that is probed again later. Its path may be that of a descriptor, which is closed by then.
class KeptFile {
 public:
  explicit KeptFile(const std::string& path)
      : file_(std::make_shared<OwnedFd>(::open(path.c_str(), O_PATH | O_CLOEXEC))), first_(state_of(*file_)) {}
  std::string path() const { return descriptor_path(*file_); }
  // Fails if its code may be another now.
  Status check() const {
    if (!first_) return tl::unexpected<Error>(first_.error());
    const FileState now = TRY(state_of(*file_));
    if (now.identity == first_->identity) return {};
    return fail("a file was written to while its probes were off to keep the budget", ESTALE);
  }

 private:
  std::shared_ptr<OwnedFd> file_;
  Result<FileState> first_;
};

}  // namespace

Status LinuxMachine::may_attach() const {
  if (is_cancelled_ && is_cancelled_()) return fail("interrupted", ECANCELED);
  return {};
}

// Takes the result of bpf(2): a descriptor or -errno. `what`: for the error.
Status LinuxMachine::keep_link(ProgramId program, long fd, std::string_view what, Closing closing) {
  if (fd < 0) return fail_errno("cannot attach to " + std::string(what), static_cast<int>(-fd));
  own_link(program, OwnedFd(static_cast<int>(fd)), closing);
  const uint32_t type = attach_types_[program];
  if (type == kAttachKprobeMulti || type == kAttachKprobeSession)
    counting_links_.emplace_back(program, static_cast<int>(fd));
  return {};
}

void LinuxMachine::own_link(ProgramId program, OwnedFd fd, Closing closing) {
  if (keeps_attachments_) open_links_[program].push_back(fd.get());
  (closing == Closing::kQuick ? links_ : slow_to_close_).push_back(std::move(fd));
}

void LinuxMachine::keep_attachment(ProgramId program, std::function<Status()> attach) {
  if (!closing_.contains(program)) attachments_[program].push_back(std::move(attach));
}

Status LinuxMachine::attach_raw_tracepoint(ProgramId program, const std::string& name, uint64_t cookie) {
  TRY_STATUS(may_attach());
  RawTracepointAttr attr;
  attr.name = address_of(name.c_str());
  attr.prog_fd = static_cast<uint32_t>(programs_[program].get());
  attr.cookie = cookie;
  TRY_STATUS(keep_link(program, bpf(Command::kRawTracepointOpen, attr), "the raw tracepoint " + name, Closing::kQuick));
  if (keeps_attachments_) keep_attachment(program, [=, this] { return attach_raw_tracepoint(program, name, cookie); });
  return {};
}

Status LinuxMachine::attach_tracing(ProgramId program, uint64_t cookie) {
  TRY_STATUS(may_attach());
  LinkCreateAttr attr;
  attr.prog_fd = static_cast<uint32_t>(programs_[program].get());
  attr.attach_type = attach_types_[program];
  attr.tracing.cookie = cookie;
  const bool is_tracepoint = attr.attach_type == kAttachTraceRawTp;
  long link = bpf(Command::kLinkCreate, attr);
  if (link == -EINVAL && cookie == 0) {  // before 5.18
    RawTracepointAttr old;
    old.prog_fd = attr.prog_fd;
    link = bpf(Command::kRawTracepointOpen, old);
  }
  return keep_link(program, link, "a kernel function", is_tracepoint ? Closing::kQuick : Closing::kSlow);
}

Status LinuxMachine::attach_perf_event(ProgramId program, const PerfEvent& event, uint64_t cookie) {
  TRY_STATUS(may_attach());
  perf_event_attr attr = {};
  attr.type = event.type;
  attr.config = event.config;
  attr.config1 = event.path.empty() ? event.config1 : address_of(event.path.c_str());
  attr.config2 = event.config2;
  attr.sample_period = event.period;
  attr.freq = event.is_frequency ? 1 : 0;
  attr.bp_type = event.breakpoint_type;
  attr.inherit = event.for_new_threads ? 1 : 0;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  const int cpu = event.pid < 0 && event.cpu < 0 ? 0 : event.cpu;
  const long fd = open_perf_event(attr, event.pid, cpu);
  // Since July 2025, also in updates of older kernels (perf_uprobe_event_init).
  if (fd == -EACCES && event.is_user_probe)
    return fail("user probes need CAP_SYS_ADMIN on this kernel", EACCES,
                "from Linux 6.6 on CAP_BPF and CAP_PERFMON do");
  if (fd == -EACCES) return no_perf_events();
  if (fd < 0)
    return fail_errno("cannot open the perf event", static_cast<int>(-fd), fd == -EPERM ? why_not_permitted() : "");
  OwnedFd perf(static_cast<int>(fd));

  LinkCreateAttr link;
  link.prog_fd = static_cast<uint32_t>(programs_[program].get());
  link.target_fd = static_cast<uint32_t>(perf.get());
  link.attach_type = kAttachPerfEvent;
  link.perf_event.cookie = cookie;
  const long link_fd = bpf(Command::kLinkCreate, link);
  if (link_fd < 0) {  // before 5.15: no perf links, no cookies
    if (::ioctl(perf.get(), PERF_EVENT_IOC_SET_BPF, programs_[program].get()) < 0)
      return fail_errno("cannot attach to the perf event", errno);
    missed_events_[program] = std::nullopt;
  } else {
    own_link(program, OwnedFd(static_cast<int>(link_fd)), Closing::kSlow);
    if (!event.is_user_probe) counting_links_.emplace_back(program, static_cast<int>(link_fd));
  }
  if (event.is_user_probe && may_miss_user_probes()) missed_events_[program] = std::nullopt;
  if (::ioctl(perf.get(), PERF_EVENT_IOC_ENABLE, 0) < 0) return fail_errno("cannot enable the perf event", errno);
  // With a budget, events are closed and opened again.
  if (event.pid < 0 && event.cpu >= 0 && !event.is_user_probe && !keeps_attachments_)
    cpu_events_.push_back({static_cast<uint32_t>(event.cpu), perf.get(), clock_ns(CLOCK_MONOTONIC), event.on_each_cpu});
  if (event.type == PERF_TYPE_BREAKPOINT) watchpoints_.emplace_back(event.config1, perf.get());
  own_link(program, std::move(perf), Closing::kSlow);
  if (keeps_attachments_) {
    const KeptFile file(event.is_user_probe ? event.path : "");
    if (event.is_user_probe)
      idle_links_[program] = [=] {
        const std::string path = file.path();
        perf_event_attr again = attr;
        again.config1 = address_of(path.c_str());
        return open_perf_event(again, ::getpid(), -1);
      };
    keep_attachment(program, [=, this]() -> Status {
      PerfEvent again = event;
      if (again.is_user_probe) TRY_STATUS(file.check());
      if (again.is_user_probe) again.path = file.path();
      return attach_perf_event(program, again, cookie);
    });
  }
  return {};
}

// Disables the events; closing would wait for a grace period.
void LinuxMachine::detach_watchpoints(uint64_t address) {
  for (const auto& [watched, event] : watchpoints_)
    if (watched == address) ::ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
}

namespace {

// Returns how many events of a link did not reach its program because another kprobe was running on the CPU, or too
// many calls of a function had not returned. nullopt if that is not counted: before Linux 6.7, and for perf samples,
// which are dropped while any program runs on the CPU. From Linux 6.0 on, programs of uprobes are never dropped.
std::optional<uint64_t> missed_by(int link) {
  LinkInfo info;
  InfoAttr attr{static_cast<uint32_t>(link), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, attr) < 0 || attr.info_len < sizeof(info)) return std::nullopt;
  if (info.type == LinkInfo::kKprobeMulti) return info.kprobe_multi.missed;
  switch (info.perf_event.type) {
    case LinkInfo::kPerfKprobe:
    case LinkInfo::kPerfKretprobe: return info.perf_event.missed;
    case LinkInfo::kPerfSample: return std::nullopt;
    default: return 0;
  }
}

}  // namespace

std::optional<uint64_t> LinuxMachine::missed_events(ProgramId program) const {
  std::optional<uint64_t> sum = 0;
  if (const auto known = missed_events_.find(program); known != missed_events_.end()) sum = known->second;
  for (const auto& [attached, link] : counting_links_) {
    if (attached != program) continue;
    const auto more = missed_by(link);
    sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
  }
  return sum;
}

void LinuxMachine::note_missed_events() {
  std::map<ProgramId, std::optional<uint64_t>> sums;
  for (const auto& [program, link] : counting_links_)
    if (!sums.contains(program)) sums[program] = missed_events(program);
  counting_links_.clear();
  for (const auto& [program, sum] : sums) missed_events_[program] = sum;
}

// The time that an event is enabled stops when its CPU goes offline (perf_event_open(2)). Of all CPUs, it runs by one
// clock, which differs from CLOCK_MONOTONIC by a little.
void LinuxMachine::note_unwatched_cpus() {
  constexpr int64_t kMostNs = 20'000'000;  // between reading the clock and the event, on a busy machine
  std::vector<std::pair<uint32_t, int64_t>> missed;
  for (const CpuEvent& each : cpu_events_) {
    uint64_t values[2] = {};  // the count, and the time
    if (::read(each.perf_event, values, sizeof(values)) != sizeof(values)) continue;
    const uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - each.enabled_at_ns;
    missed.emplace_back(each.cpu, static_cast<int64_t>(since_ns - values[1]));
  }
  if (missed.empty()) return;
  const int64_t least = std::ranges::min_element(missed, {}, [](const auto& each) { return each.second; })->second;
  std::set<uint32_t> out;
  for (const auto& [cpu, missed_ns] : missed)
    if (missed_ns - least > kMostNs) out.insert(cpu);
  const bool sees_all = std::ranges::any_of(cpu_events_, &CpuEvent::on_each_cpu);
  for (const uint32_t cpu : kernel::online_cpus())
    if (sees_all && std::ranges::find(cpu_events_, cpu, &CpuEvent::cpu) == cpu_events_.end()) out.insert(cpu);
  unwatched_cpus_.assign(out.begin(), out.end());
  cpu_events_.clear();
}

std::optional<SkippedRuns> LinuxMachine::skipped_runs(ProgramId program) {
  bpf_prog_info info = {};
  InfoAttr attr{static_cast<uint32_t>(programs_[program].get()), sizeof(info), address_of(&info)};
  const auto missed = missed_events(program);
  if (!missed || bpf(Command::kObjectInfo, attr) < 0) return std::nullopt;
  return SkippedRuns{*missed + info.recursion_misses, *missed > 0 && limited_calls_.contains(program)};
}

Status LinuxMachine::attach_uprobe(ProgramId program, const std::string& path, uint64_t offset,
                                   uint64_t reference_counter, bool is_return, std::optional<uint32_t> pid,
                                   uint64_t cookie) {
  constexpr int kReferenceCounterShift = 32;  // /sys/bus/event_source/devices/uprobe/format/ref_ctr_offset
  PerfEvent event;
  event.type = TRY(pmu_type("uprobe"));
  event.config = (is_return ? 1 : 0) | reference_counter << kReferenceCounterShift;
  event.path = path;
  event.config2 = offset;
  event.is_user_probe = true;
  if (is_return) missed_events_[program] = std::nullopt;  // returns of deeply nested calls are missed, and not counted
  if (pid) event.pid = static_cast<int32_t>(*pid);
  return attach_perf_event(program, event, cookie);
}

Status LinuxMachine::attach_uprobe_multi(ProgramId program, const UprobeMulti& probes) {
  TRY_STATUS(may_attach());
  constexpr uint32_t kReturnFlag = 1;  // BPF_F_UPROBE_MULTI_RETURN
  LinkCreateAttr attr;
  attr.prog_fd = static_cast<uint32_t>(programs_[program].get());
  attr.attach_type = attach_types_[program];
  attr.uprobe_multi = {};
  attr.uprobe_multi.path = address_of(probes.path.c_str());
  attr.uprobe_multi.offsets = address_of(probes.offsets.data());
  attr.uprobe_multi.ref_ctr_offsets =
      probes.reference_counters.empty() ? 0 : address_of(probes.reference_counters.data());
  attr.uprobe_multi.cookies = probes.cookies.empty() ? 0 : address_of(probes.cookies.data());
  attr.uprobe_multi.count = static_cast<uint32_t>(probes.offsets.size());
  attr.uprobe_multi.flags = probes.is_return ? kReturnFlag : 0;
  attr.uprobe_multi.pid = probes.pid;
  if (probes.is_return) missed_events_[program] = std::nullopt;  // see attach_uprobe
  TRY_STATUS(keep_link(program, bpf(Command::kLinkCreate, attr), probes.path, Closing::kSlow));
  if (keeps_attachments_) {
    const KeptFile file(probes.path);
    idle_links_[program] = [=, offset = probes.offsets.front()] {
      const std::string path = file.path();
      LinkCreateAttr again = attr;
      again.uprobe_multi = {};
      again.uprobe_multi.path = address_of(path.c_str());
      again.uprobe_multi.offsets = address_of(&offset);
      again.uprobe_multi.count = 1;
      again.uprobe_multi.flags = attr.uprobe_multi.flags;
      again.uprobe_multi.pid = static_cast<uint32_t>(::getpid());
      return bpf(Command::kLinkCreate, again);
    };
    keep_attachment(program, [=, this]() -> Status {
      TRY_STATUS(file.check());
      UprobeMulti again = probes;
      again.path = file.path();
      return attach_uprobe_multi(program, again);
    });
  }
  return {};
}

Status LinuxMachine::attach_kprobe(ProgramId program, const Kprobe& probe, uint64_t cookie) {
  PerfEvent event;
  if (probe.is_return && probe.max_calls > 0 && !probe.function.empty()) {
    const auto id = return_probes_.define(probe.function, probe.max_calls);
    event.type = PERF_TYPE_TRACEPOINT;
    event.config = id.value_or(0);
    if (id) return attach_perf_event(program, event, cookie);
  }
  event.type = TRY(pmu_type("kprobe"));
  event.config = probe.is_return ? 1 : 0;
  event.path = probe.function;
  event.config2 = probe.function.empty() ? probe.address : probe.offset;
  const Status status = attach_perf_event(program, event, cookie);
  if (status || status.error().code != EPERM) return status;
  const std::string forbidden =
      kernel::forbidden_by(kernel::read_lockdown(""), kernel::Lockdown::kConfidentiality, "kprobes there");
  if (forbidden.empty()) return status;
  return fail(forbidden, EPERM,
              "`fentry` and `fexit` may be used, and kprobe_multi (Linux 5.18) where espy --info has it");
}

std::vector<std::vector<uint64_t>> LinuxMachine::kernel_addresses(const std::vector<std::string>& functions) {
  return kernel::find_addresses("/proc/kallsyms", functions);
}

Status LinuxMachine::attach_kprobe_multi(ProgramId program, const KprobeMulti& probes) {
  TRY_STATUS(may_attach());
  constexpr uint32_t kReturnFlag = 1;  // BPF_F_KPROBE_MULTI_RETURN
  std::vector<uint64_t> names;
  for (const std::string& function : probes.functions) names.push_back(address_of(function.c_str()));
  LinkCreateAttr attr;
  attr.prog_fd = static_cast<uint32_t>(programs_[program].get());
  attr.attach_type = attach_types_[program];
  attr.kprobe_multi = {};
  attr.kprobe_multi.flags = probes.is_return ? kReturnFlag : 0;
  attr.kprobe_multi.count = static_cast<uint32_t>(names.size());
  if (probes.addresses.empty())
    attr.kprobe_multi.syms = address_of(names.data());
  else
    attr.kprobe_multi.addrs = address_of(probes.addresses.data());
  attr.kprobe_multi.cookies = address_of(probes.cookies.data());
  // fprobe_init_rethook() in kernel/trace/fprobe.c
  const bool follows_calls = probes.is_return || attach_types_[program] == kAttachKprobeSession;
  if (follows_calls && !try_feature(kernel::Feature::kFprobeGraph)) limited_calls_.insert(program);
  const std::string more = names.size() > 1 ? fmt::format(" and {} more functions", names.size() - 1) : "";
  TRY_STATUS(keep_link(program, bpf(Command::kLinkCreate, attr), probes.functions.front() + more, Closing::kSlow));
  if (keeps_attachments_) keep_attachment(program, [=, this] { return attach_kprobe_multi(program, probes); });
  return {};
}

// ---- Detaching for a while

// Returns the descriptor of a link at a user probe of the program that acts in this process only, or -1.
//
// To change the breakpoints of any program, the kernel takes a lock (dup_mmap_sem in kernel/events/uprobes.c), for
// which it waits for a grace period of RCU unless one that held it has just begun. Of links that are closed, the
// program is removed before this lock is taken: without the wait here, threads would take the trap for nothing as long
// as it lasts.
int LinuxMachine::add_idle_link(ProgramId program) {
  const auto add = idle_links_.find(program);
  return add == idle_links_.end() ? -1 : static_cast<int>(add->second());
}

Status LinuxMachine::suspend(ProgramId program) {
  if (!closer_) closer_ = TRY(LinkCloser::start());
  missed_events_[program] = missed_events(program);
  std::erase_if(counting_links_, [&](const auto& counting) { return counting.first == program; });
  std::vector<int> descriptors = std::move(open_links_[program]);
  open_links_[program].clear();
  if (const int idle = add_idle_link(program); idle >= 0) descriptors.push_back(idle);
  const auto job = closer_->close_soon(descriptors);
  if (!job) return fail("the process that closes links has gone");
  for (std::vector<OwnedFd>* owners : {&links_, &slow_to_close_})
    std::erase_if(*owners, [&](OwnedFd& owner) {
      if (std::ranges::find(descriptors, owner.get()) == descriptors.end()) return false;
      owner.release();  // the process closes it
      return true;
    });
  closing_[program] = *job;
  return {};
}

bool LinuxMachine::is_suspended(ProgramId program) {
  const auto job = closing_.find(program);
  return job != closing_.end() && closer_->has_closed(job->second);
}

Status LinuxMachine::resume(ProgramId program) {
  for (const auto& attach : attachments_[program]) TRY_STATUS(attach());
  return {};
}

namespace {

// Reads an iterator to its end, which runs its program for each object. The output comes through the ring.
int run_iterator(int iterator) {
  char nothing[4 * 1024];
  long got = 0;
  do got = ::read(iterator, nothing, sizeof(nothing));
  while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
  return EXIT_SUCCESS;
}

}  // namespace

Result<uint32_t> LinuxMachine::link_iterator(ProgramId program, std::span<const uint32_t> target) {
  LinkCreateAttr attr;
  attr.iterator.info = target.empty() ? 0 : address_of(target.data());
  attr.iterator.info_bytes = static_cast<uint32_t>(target.size_bytes());
  attr.prog_fd = static_cast<uint32_t>(programs_[program].get());
  attr.attach_type = kAttachTraceIter;
  TRY_STATUS(keep_link(program, bpf(Command::kLinkCreate, attr), "the iterator", Closing::kQuick));
  return static_cast<uint32_t>(links_.back().get());
}

// Another process pins it, and removes the file also if espy is killed.
Status LinuxMachine::pin_iterator(ProgramId program, std::span<const uint32_t> target, const std::string& path) {
  PinAttr pin;
  pin.path = address_of(path.c_str());
  pin.bpf_fd = TRY(link_iterator(program, target));
  auto pinned = Janitor::start(
      [&]() -> Result<std::string> {
        const long result = bpf(Command::kObjectPin, pin);
        if (result < 0) return fail_errno("cannot make " + path, static_cast<int>(-result));
        return path;
      },
      [](const std::string& made) { ::unlink(made.c_str()); });
  if (!pinned)
    return fail(std::move(pinned.error().message), pinned.error().code,
                "a BPF file system has to be there: mount -t bpf bpf /sys/fs/bpf");
  pins_.push_back(std::move(*pinned));
  return {};
}

// In another process, so that this one drains the ring meanwhile.
Status LinuxMachine::start_iterator(ProgramId program, std::span<const uint32_t> target) {
  IterCreateAttr create{TRY(link_iterator(program, target)), 0};
  const OwnedFd iterator(static_cast<int>(bpf(Command::kIterCreate, create)));
  if (!iterator.valid()) return fail("cannot start the iterator");
  const pid_t child =
      TRY(start_child([&] { return run_iterator(iterator.get()); },
                      {.parent_end_signal = SIGKILL, .failure = "cannot start a process for the iterator"}));
  OwnedFd process(static_cast<int>(::syscall(__NR_pidfd_open, child, 0)));
  if (!process.valid()) {
    const int code = errno;
    end_child(child);
    return fail_errno("cannot wait for the process of the iterator", code);
  }
  iterators_.push_back(std::move(process));
  return {};
}

std::vector<int> LinuxMachine::iterators() const {
  std::vector<int> out;
  for (const OwnedFd& process : iterators_) out.push_back(process.get());
  return out;
}

namespace {

// In the closing helper: waits for the end of its parent, closes stdin, stdout and stderr, and exits, which closes the
// rest.
int close_when_orphaned(pid_t parent) {
  block_all_signals();
  wait_for_death_of(parent);
  for (int fd = 0; fd <= 2; ++fd) ::close(fd);
  return EXIT_SUCCESS;
}

}  // namespace

// Closing a perf event waits for an RCU grace period, 50 to 100 ms each, closing a link of functions for 30 ms, and so
// does exiting with one open; many other links take long, too. A child that shares the descriptor table does the
// waiting: our exit then closes nothing.
void LinuxMachine::detach_all() {
  constexpr size_t kQuickLinks = 4;
  note_missed_events();
  note_unwatched_cpus();
  for (const Janitor& pin : pins_) ::unlink(pin.made().c_str());
  pins_.clear();
  if (links_.size() > kQuickLinks) std::ranges::move(links_, std::back_inserter(slow_to_close_));
  links_.clear();
  if (slow_to_close_.empty()) return;
  for (const OwnedFd& fd : slow_to_close_) ::ioctl(fd.get(), PERF_EVENT_IOC_DISABLE, 0);  // no effect on links
  const pid_t parent = ::getpid();
  if (start_child([&] { return close_when_orphaned(parent); }, {.shares_descriptors = true}))
    for (OwnedFd& fd : slow_to_close_) fd.release();  // the child closes them
  slow_to_close_.clear();
}

}  // namespace espy::load

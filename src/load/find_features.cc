#include "load/find_features.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/strings.h"
#include "kernel/arch/arch.h"
#include "load/attach.h"
#include "load/linux.h"

namespace espy::load {

namespace {

using kernel::Feature;

constexpr std::string_view kFormat = "espy features 1";
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr size_t kMaxCacheBytes = 8 * 1024;

std::string content_of(const char* path) {
  const auto text = read_file(path);
  return text ? std::string(trim(*text)) : "";
}

// The effective capabilities, the user namespace, and the label of a security module.
std::string rights() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  struct stat user_namespace = {};
  ::syscall(SYS_capget, &header, data);
  ::stat("/proc/self/ns/user", &user_namespace);
  return fmt::format("{:x}{:08x} {} {}", data[1].effective, data[0].effective, user_namespace.st_ino,
                     content_of("/proc/self/attr/current"));
}

// What is neither in BTF nor in files, which are not slower than the cache, nor changed by settings at run time:
// fentry by kernel.ftrace_enabled, reading and writing of memory by lockdown.
bool can_be_kept(Feature feature) {
  if (feature == Feature::kFentry || feature == Feature::kProbeReadKernel || feature == Feature::kProbeWriteUser)
    return false;
  const std::string_view how = kernel::feature_rows()[static_cast<size_t>(feature)].how;
  return how == "program" || how == "map" || how == "link" || how == "helper" || how == "process";
}

// Whether the file or directory is of this user and has this mode.
bool is_own(const struct stat& status, mode_t mode) {
  return status.st_uid == ::geteuid() && (status.st_mode & 07777) == mode;
}

}  // namespace

std::optional<std::string> feature_cache_key() {
  if (::geteuid() != 0 || ::prctl(PR_GET_SECCOMP) != 0) return std::nullopt;
  const std::string boot = content_of("/proc/sys/kernel/random/boot_id");
  const std::string compiler = content_of("/proc/sys/net/core/bpf_jit_enable");
  utsname kernel = {};
  struct stat executable = {};
  if (boot.empty() || compiler.empty() || ::uname(&kernel) != 0 || ::stat("/proc/self/exe", &executable) != 0)
    return std::nullopt;
  const std::string key = fmt::format("{} {} {} {} {}.{} {} {} {}", boot, compiler, kernel.release, kernel.version,
                                      executable.st_mtim.tv_sec, executable.st_mtim.tv_nsec, executable.st_size,
                                      executable.st_ino, rights());
  if (key.find('\n') != std::string::npos) return std::nullopt;
  return key;
}

FeatureCache::FeatureCache(const std::string& directory, std::string name, std::optional<std::string> key)
    : name_(std::move(name)), key_(std::move(key)) {
  if (!key_) return;
  open_directory(directory);
  if (directory_.valid()) read();
}

FeatureCache::~FeatureCache() {
  if (is_changed_ && directory_.valid()) write();
}

void FeatureCache::open_directory(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  OwnedFd found(::open(path.c_str(), kFlags));
  if (!found.valid() && ::mkdir(path.c_str(), kDirectoryMode) == 0) found = OwnedFd(::open(path.c_str(), kFlags));
  struct stat status = {};
  if (found.valid() && ::fstat(found.get(), &status) == 0 && is_own(status, kDirectoryMode))
    directory_ = std::move(found);
}

void FeatureCache::read() {
  const OwnedFd file(::openat(directory_.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || !is_own(status, kFileMode) || status.st_nlink != 1) return;
  std::string text(kMaxCacheBytes, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0 || static_cast<size_t>(got) == text.size()) return;
  text.resize(static_cast<size_t>(got));
  if (!text.ends_with('\n')) return;
  const std::string start = fmt::format("{}\n{}\n", kFormat, *key_);
  if (!text.starts_with(start)) return;
  std::set<Feature> found;
  for (const std::string_view name : split(std::string_view(text).substr(start.size()), '\n')) {
    const auto feature = kernel::find_feature(name);
    if (name.empty()) continue;
    if (!feature || !can_be_kept(*feature)) return;
    found.insert(*feature);
  }
  known_ = std::move(found);
}

void FeatureCache::add(Feature feature) {
  if (!directory_.valid() || !can_be_kept(feature)) return;
  known_.insert(feature);
  is_changed_ = true;
}

// By a new file of this process, so that another one reads either the old content or the new. A failure costs the next
// run its time.
void FeatureCache::write() const {
  std::string text = fmt::format("{}\n{}\n", kFormat, *key_);
  for (const Feature feature : known_) {
    text += kernel::feature_rows()[static_cast<size_t>(feature)].name;
    text += '\n';
  }
  if (text.size() >= kMaxCacheBytes) return;
  const std::string temporary = fmt::format("{}.{}", name_, ::getpid());
  ::unlinkat(directory_.get(), temporary.c_str(), 0);
  const OwnedFd file(
      ::openat(directory_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) return;
  const bool is_written = ::fchmod(file.get(), kFileMode) == 0 &&
                          ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written || ::renameat(directory_.get(), temporary.c_str(), directory_.get(), name_.c_str()) != 0)
    ::unlinkat(directory_.get(), temporary.c_str(), 0);
}

// ---- Detects features of the kernel by operations that need them.

namespace {

using kernel::Feature;
using program::BpfInsn;

constexpr uint8_t kJump32 = 0x06;         // BPF_JMP32
constexpr uint8_t kMayGoto = 0xe5;        // BPF_JMP | BPF_JCOND
constexpr int32_t kStoreRelease = 0x110;  // BPF_STORE_REL
constexpr BpfInsn kExit = {BPF_JMP | BPF_EXIT, 0, 0, 0};
constexpr BpfInsn mov(uint8_t reg, int32_t imm) { return {BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, imm}; }
constexpr BpfInsn call(int32_t helper) { return {BPF_JMP | BPF_CALL, 0, 0, helper}; }

OwnedFd try_load(std::span<const BpfInsn> code, ProgLoadAttr attr, std::string* log = nullptr) {
  attr.insns = address_of(code.data());
  attr.insn_cnt = static_cast<uint32_t>(code.size());
  attr.license = address_of("GPL");
  if (log != nullptr) {
    log->assign(4 * 1024, '\0');
    attr.log_level = 1;
    attr.log_buf = address_of(log->data());
    attr.log_size = static_cast<uint32_t>(log->size());
  }
  return OwnedFd(static_cast<int>(bpf(Command::kProgLoad, attr)));
}

bool loads(std::initializer_list<BpfInsn> code, uint32_t type = BPF_PROG_TYPE_RAW_TRACEPOINT) {
  return try_load({code.begin(), code.size()}, {.prog_type = type}).valid();
}

bool exists(const char* path) { return ::access(path, F_OK) == 0; }

bool can_create_map(uint32_t type, uint32_t key_size, uint32_t value_size, uint32_t entries) {
  MapCreateAttr attr;
  attr.map_type = type;
  attr.key_size = key_size;
  attr.value_size = value_size;
  attr.max_entries = entries;
  return OwnedFd(static_cast<int>(bpf(Command::kMapCreate, attr))).valid();
}

// Tries an array larger than any memory. Before it looks for the memory, a kernel that limits the length of a value
// says E2BIG (array_map_alloc_check in kernel/bpf/arraymap.c).
bool has_large_array_values() {
  MapCreateAttr attr{
      .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = (4 << 20) + 8, .max_entries = 1 << 30};
  return bpf(Command::kMapCreate, attr) != -E2BIG;
}

// Returns the result of bpf(2) for a link of this type of a program that does nothing.
long try_link(uint32_t attach_type, LinkCreateAttr attr) {
  const BpfInsn code[] = {mov(0, 0), kExit};
  const OwnedFd program = try_load(code, {.prog_type = BPF_PROG_TYPE_KPROBE, .expected_attach_type = attach_type});
  if (!program.valid()) return -EINVAL;
  attr.prog_fd = static_cast<uint32_t>(program.get());
  attr.attach_type = attach_type;
  return bpf(Command::kLinkCreate, attr);
}

// Tries a link on a directory: EBADF if the kernel knows the link type and has come to check the path.
bool has_uprobe_link(uint32_t attach_type) {
  const uint64_t offset = 0;
  LinkCreateAttr attr;
  attr.uprobe_multi = {};
  attr.uprobe_multi.path = address_of("/");
  attr.uprobe_multi.offsets = address_of(&offset);
  attr.uprobe_multi.count = 1;
  return try_link(attach_type, attr) == -EBADF;
}

// With a map that is not preallocated, which sleepable programs may use since Linux 6.1. Only where probes do not need
// perf, which until Linux 6.10 (1b8f85defbc8) holds a buffer of the CPU meanwhile: no other thread would pass a probe
// there, and a thread that the page depends on might be among them.
bool has_sleeping_uprobe() {
  if (!has_uprobe_link(kAttachUprobeMulti)) return false;
  constexpr uint8_t kLoadMap = BPF_PSEUDO_MAP_FD << 4;
  constexpr uint8_t kStackPointer = 10 << 4;
  MapCreateAttr map;
  map.map_type = BPF_MAP_TYPE_PERCPU_HASH;
  map.key_size = map.value_size = 8;
  map.max_entries = 1;
  map.map_flags = BPF_F_NO_PREALLOC;
  const OwnedFd fd(static_cast<int>(bpf(Command::kMapCreate, map)));
  if (!fd.valid()) return false;
  const BpfInsn code[] = {{BPF_ALU64 | BPF_MOV | BPF_X, 1 | kStackPointer, 0, 0},
                          {BPF_ALU64 | BPF_ADD, 1, 0, -8},
                          mov(2, 8),
                          mov(3, 0),
                          call(BPF_FUNC_copy_from_user),
                          {BPF_LD | BPF_IMM | BPF_DW, 1 | kLoadMap, 0, fd.get()},
                          {},
                          mov(0, 0),
                          kExit};
  return try_load(code, {.prog_type = BPF_PROG_TYPE_KPROBE, .prog_flags = BPF_F_SLEEPABLE}).valid();
}

// With a perf event's program, the last type that could not.
bool has_hash_allocation() {
  constexpr uint8_t kLoadMap = BPF_PSEUDO_MAP_FD << 4;
  MapCreateAttr map;
  map.map_type = BPF_MAP_TYPE_HASH;
  map.key_size = 1024;
  map.value_size = 8;
  map.max_entries = 1;
  map.map_flags = BPF_F_NO_PREALLOC;
  const OwnedFd fd(static_cast<int>(bpf(Command::kMapCreate, map)));
  if (!fd.valid()) return false;
  const BpfInsn code[] = {{BPF_LD | BPF_IMM | BPF_DW, 1 | kLoadMap, 0, fd.get()}, {}, mov(0, 0), kExit};
  return try_load(code, {.prog_type = BPF_PROG_TYPE_PERF_EVENT}).valid();
}

// Tries a link on a function that does not exist: ESRCH or ENOENT if the kernel has the link type, EOPNOTSUPP without
// CONFIG_FPROBE.
bool has_kprobe_link(uint32_t attach_type) {
  const char* symbol = "espy_no_such_function";
  const uint64_t symbols[] = {address_of(symbol)};
  LinkCreateAttr attr;
  attr.kprobe_multi = {};
  attr.kprobe_multi.count = 1;
  attr.kprobe_multi.syms = address_of(symbols);
  const long result = try_link(attach_type, attr);
  return result == -ESRCH || result == -ENOENT;
}

// Tries a bad descriptor: EBADF if the kernel knows the cookie, otherwise an error for the unknown tail of the
// attribute.
bool has_raw_tracepoint_cookie() {
  RawTracepointAttr attr;
  attr.name = address_of("sys_enter");
  attr.prog_fd = ~0U;
  attr.cookie = 1;
  return bpf(Command::kRawTracepointOpen, attr) == -EBADF;
}

// Attaches to a function of the kernel's tests, which is not called otherwise. Kernels without fentry fail at the load
// or at the link.
bool has_fentry(uint32_t function_btf_id) {
  const BpfInsn code[] = {mov(0, 0), kExit};
  const OwnedFd program = try_load(code, {.prog_type = BPF_PROG_TYPE_TRACING,
                                          .expected_attach_type = kAttachTraceFentry,
                                          .attach_btf_id = function_btf_id});
  if (!program.valid()) return false;
  RawTracepointAttr attr;
  attr.prog_fd = static_cast<uint32_t>(program.get());
  return OwnedFd(static_cast<int>(bpf(Command::kRawTracepointOpen, attr))).valid();
}

// bpf_modify_return_test(int, int *) is a function of the kernel's tests. Before Linux 5.17 the verifier does not let a
// program load a pointer to an integer from the arguments (btf_ctx_access in kernel/bpf/btf.c).
bool has_int_pointer_arguments(uint32_t function_btf_id) {
  const BpfInsn code[] = {{BPF_LDX | BPF_MEM | BPF_DW, 0 | 1 << 4, 8, 0}, mov(0, 0), kExit};
  return try_load(code, {.prog_type = BPF_PROG_TYPE_TRACING,
                         .expected_attach_type = kAttachTraceFentry,
                         .attach_btf_id = function_btf_id})
      .valid();
}

// Not every kernel has a function to try it on, so this looks for what came with it: where registers hold six
// arguments, a function of the kernel's tests with seven (commit 5e9cf77d81f9), else a struct of arm64's compiler of
// BPF (commit 9014cf56f13d).
bool has_stack_arguments(const Machine::BtfLookup& btf) {
  if (kernel::host_arch().argument_offsets.size() < 7)
    return btf.kfunc && btf.kfunc("bpf_modify_return_test2").has_value();
  return btf.struct_tag && btf.struct_tag("arg_aux").has_value();
}

// The release that skips programs which call themselves also counts what it skips, at the end of a longer struct.
bool has_recursion_guard() {
  const BpfInsn code[] = {mov(0, 0), kExit};
  const OwnedFd program = try_load(code, {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT});
  bpf_prog_info info = {};
  InfoAttr attr{static_cast<uint32_t>(program.get()), sizeof(info), address_of(&info)};
  return program.valid() && bpf(Command::kObjectInfo, attr) >= 0 &&
         attr.info_len >= offsetof(bpf_prog_info, recursion_misses) + sizeof(info.recursion_misses);
}

// Runs a program that compares the first two frames of its own stack, of which the first is itself. Before Linux 6.1
// the second may be, too: perf_callchain_kernel() in arch/x86/events/core.c adds the address where the stack begins,
// which __unwind_start() in arch/x86/kernel/unwind_orc.c does not leave out.
bool has_first_frame_once() {
  constexpr uint8_t kFrameRegister = 10;
  constexpr int32_t kBytes = 16;
  const BpfInsn code[] = {{BPF_ST | BPF_MEM | BPF_DW, kFrameRegister, -kBytes, 0},
                          {BPF_ST | BPF_MEM | BPF_DW, kFrameRegister, -kBytes + 8, 0},
                          {BPF_ALU64 | BPF_MOV | BPF_X, 2 | kFrameRegister << 4, 0, 0},
                          {BPF_ALU64 | BPF_ADD, 2, 0, -kBytes},
                          mov(3, kBytes),
                          mov(4, 0),
                          call(BPF_FUNC_get_stack),
                          {BPF_JMP | BPF_JNE, 0, 5, kBytes},
                          {BPF_LDX | BPF_MEM | BPF_DW, 1 | kFrameRegister << 4, -kBytes, 0},
                          {BPF_LDX | BPF_MEM | BPF_DW, 2 | kFrameRegister << 4, -kBytes + 8, 0},
                          mov(0, 1),
                          {BPF_JMP | BPF_JEQ | BPF_X, 1 | 2 << 4, 1, 0},
                          mov(0, 0),
                          kExit};
  const OwnedFd program = try_load(code, {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT});
  TestRunAttr run;
  run.prog_fd = static_cast<uint32_t>(program.get());
  const bool is_doubled = program.valid() && bpf(Command::kTestRun, run) >= 0 && run.retval == 1;
  return !is_doubled;
}

// Whether the verifier accepts a main program and a function with the largest frames, of which a stack has room for
// one. It does where each frame has memory of its own (check_max_stack_depth in kernel/bpf/verifier.c). If
// `has_tail_call`, the program has one, which is never reached.
bool may_have_two_frames(bool has_tail_call) {
  constexpr uint8_t kFrameRegister = 10;
  constexpr BpfInsn kFillFrame = {BPF_ST | BPF_MEM | BPF_DW, kFrameRegister, -512, 0};
  std::vector<BpfInsn> code;
  if (has_tail_call) code = {mov(0, 0), {BPF_JMP | BPF_JEQ, 0, 1, 0}, call(BPF_FUNC_tail_call)};
  code.insert(code.end(),
              {kFillFrame, {BPF_JMP | BPF_CALL, BPF_PSEUDO_CALL << 4, 0, 1}, kExit, kFillFrame, mov(0, 0), kExit});
  return try_load(code, {.prog_type = BPF_PROG_TYPE_KPROBE}).valid();
}

bool works(const std::optional<kernel::ProbedNop>& nop, bool if_there_is_none) {
  return nop ? try_probe_on(*nop) == NopProbe::kWorks : if_there_is_none;
}

bool has_hardware_counters() {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  return OwnedFd(static_cast<int>(::syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC))).valid();
}

}  // namespace

// Most calls are refused, for lack of arguments; the log says if it is because the helper does not exist.
bool LinuxMachine::try_helper(uint32_t helper, uint32_t program_type) {
  std::string log;
  const BpfInsn code[] = {call(static_cast<int32_t>(helper)), mov(0, 0), kExit};
  if (try_load(code, {.prog_type = program_type}, &log).valid()) return true;
  return std::strstr(log.c_str(), "unknown func") == nullptr && std::strstr(log.c_str(), "invalid func") == nullptr &&
         std::strstr(log.c_str(), "cannot use helper") == nullptr && log[0] != '\0';
}

// Most calls are refused, for lack of arguments; the log says if it is because the function is not allowed. A tracing
// program needs an attach target: the iterator over tasks, which all kernels have.
bool LinuxMachine::try_kfunc(uint32_t btf_id, uint32_t program_type) {
  const BpfInsn code[] = {
      {BPF_JMP | BPF_CALL, BPF_PSEUDO_KFUNC_CALL << 4, 0, static_cast<int32_t>(btf_id)}, mov(0, 0), kExit};
  ProgLoadAttr attr{.prog_type = program_type};
  if (program_type == BPF_PROG_TYPE_TRACING) {
    attr.expected_attach_type = kAttachTraceIter;
    attr.attach_btf_id = btf_.kfunc ? btf_.kfunc("bpf_iter_task").value_or(0) : 0;
  }
  if (program_type == BPF_PROG_TYPE_SYSCALL) attr.prog_flags = BPF_F_SLEEPABLE;
  std::string log;
  if (try_load(code, attr, &log).valid()) return true;
  // "reserved fields" where no program may call such functions (before Linux 5.13).
  const auto says = [&](const char* what) { return std::strstr(log.c_str(), what) != nullptr; };
  return log[0] != '\0' && !says("is not allowed") && !says("reserved fields");
}

// Up to Linux 5.19 (trace_call_bpf) a perf uprobe is dropped, and not counted, while another perf program or a system
// call on a map runs on its CPU. The release that changed this also made such programs sleepable
// (bpf_prog_run_array_sleepable), which can be detected.
bool LinuxMachine::may_miss_user_probes() {
  const BpfInsn code[] = {mov(0, 0), kExit};
  if (!may_miss_user_probes_)
    may_miss_user_probes_ = !try_load(code, {.prog_type = BPF_PROG_TYPE_KPROBE, .prog_flags = BPF_F_SLEEPABLE}).valid();
  return *may_miss_user_probes_;
}

bool LinuxMachine::try_rdonly_cast(int32_t type_id) {
  const auto kfunc = btf_.kfunc ? btf_.kfunc("bpf_rdonly_cast") : std::nullopt;
  if (!kfunc || type_id < 0) return false;
  constexpr uint8_t kToR1FromR0 = 1;
  const BpfInsn code[] = {call(BPF_FUNC_get_current_task),
                          {BPF_ALU64 | BPF_MOV | BPF_X, kToR1FromR0, 0, 0},
                          mov(2, type_id),
                          {BPF_JMP | BPF_CALL, BPF_PSEUDO_KFUNC_CALL << 4, 0, static_cast<int32_t>(*kfunc)},
                          {BPF_LDX | BPF_MEM | BPF_DW, 0, 0, 0},
                          mov(0, 0),
                          kExit};
  return try_load(code, {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT}).valid();
}

bool LinuxMachine::try_feature(Feature feature) {
  constexpr uint8_t kFrameRegister = 10;
  constexpr uint32_t kRawTp = BPF_PROG_TYPE_RAW_TRACEPOINT;
  switch (feature) {
    case Feature::kBpfV3: return loads({mov(0, 0), {kJump32 | BPF_JEQ | BPF_K, 0, 0, 0}, kExit});
    case Feature::kBpfV4: return loads({mov(0, 0), {BPF_ALU64 | BPF_MOV | BPF_X, 0, 8, 0}, kExit});
    case Feature::kRingbuf: {
      const auto page_bytes = static_cast<uint32_t>(::sysconf(_SC_PAGESIZE));
      return can_create_map(BPF_MAP_TYPE_RINGBUF, 0, 0, page_bytes);
    }
    case Feature::kLargeArrayValues: return has_large_array_values();
    case Feature::kLongKeys: return can_create_map(BPF_MAP_TYPE_HASH, kernel::kShortKeyBytes + 8, 8, 1);
    case Feature::kAtomicFetch:
      return loads({mov(0, 0),
                    {BPF_STX | BPF_MEM | BPF_DW, kFrameRegister, -8, 0},
                    {BPF_STX | BPF_ATOMIC | BPF_DW, kFrameRegister, -8, BPF_XCHG},
                    mov(0, 0),
                    kExit});
    case Feature::kRawTracepointCookie: return has_raw_tracepoint_cookie();
    case Feature::kTpBtf: return exists("/sys/kernel/btf/vmlinux");
    case Feature::kHashAllocation: return has_hash_allocation();
    case Feature::kKprobe: return exists("/sys/bus/event_source/devices/kprobe/type");
    case Feature::kKprobeMulti: return has_kprobe_link(kAttachKprobeMulti);
    case Feature::kKprobeSession: return has_kprobe_link(kAttachKprobeSession);
    case Feature::kFprobeGraph: return btf_.struct_tag && btf_.struct_tag("fprobe_hlist_node").has_value();
    case Feature::kUprobeMulti: return has_uprobe_link(kAttachUprobeMulti);
    case Feature::kUprobeSession: return has_uprobe_link(kAttachUprobeSession);
    case Feature::kUprobeSleep: return has_sleeping_uprobe();
    case Feature::kUprobeKeepsStack: return works(kernel::host_arch().callable_nop, true);
    case Feature::kUprobePrefixedNop: return works(kernel::host_arch().prefixed_nop, false);
    case Feature::kRdonlyCastVoid: return try_rdonly_cast(0);
    case Feature::kRdonlyCastTyped: {
      const auto task = btf_.struct_tag ? btf_.struct_tag("task_struct") : std::nullopt;
      return try_rdonly_cast(task ? static_cast<int32_t>(*task) : -1);
    }
    case Feature::kStoreRelease:
      return loads({mov(0, 0), {BPF_STX | BPF_ATOMIC | BPF_DW, kFrameRegister, -8, kStoreRelease}, kExit});
    case Feature::kMayGoto:  // up to Linux 6.13 (check_cond_jmp_op) it must not lead to the next instruction
      return loads({mov(0, 0), {kMayGoto, 0, 1, 0}, mov(0, 0), kExit});
    case Feature::kOpenCodedIterators: return btf_.kfunc && btf_.kfunc("bpf_iter_num_new").has_value();
    case Feature::kStringKfuncs: return btf_.kfunc && btf_.kfunc("bpf_strlen").has_value();
    case Feature::kMapLookupPercpu: return try_helper(BPF_FUNC_map_lookup_percpu_elem, kRawTp);
    case Feature::kForEachMapElem: return try_helper(BPF_FUNC_for_each_map_elem, kRawTp);
    case Feature::kBpfLoop: return try_helper(BPF_FUNC_loop, kRawTp);
    case Feature::kGetCurrentTaskBtf: return try_helper(BPF_FUNC_get_current_task_btf, kRawTp);
    case Feature::kGetAttachCookie:
    case Feature::kPerfLinkCookie: return try_helper(BPF_FUNC_get_attach_cookie, BPF_PROG_TYPE_PERF_EVENT);
    case Feature::kTaskStorage:
      // Before Linux 6.2 it failed where a program had interrupted another that used it. bpf_task_storage_get_recur()
      // ended that, until the storage's locks became bpf_res_spin_lock, which is older than this change of the storage.
      return btf_.kfunc && (btf_.kfunc("bpf_task_storage_get_recur") || btf_.kfunc("bpf_res_spin_lock")) &&
             try_helper(BPF_FUNC_task_storage_get, kRawTp);
    case Feature::kGetFuncIp: return try_helper(BPF_FUNC_get_func_ip, BPF_PROG_TYPE_KPROBE);
    case Feature::kSendSignal: return try_helper(BPF_FUNC_send_signal, kRawTp);
    case Feature::kProbeReadKernel: return try_helper(BPF_FUNC_probe_read_kernel, kRawTp);
    case Feature::kProbeWriteUser: return try_helper(BPF_FUNC_probe_write_user, kRawTp);
    case Feature::kPerfEventHardware: return has_hardware_counters();
    case Feature::kRecursionGuard: return has_recursion_guard();
    case Feature::kRunStatistics: {
      EnableStatsAttr enable;
      return OwnedFd(static_cast<int>(bpf(Command::kEnableStats, enable))).valid();
    }
    case Feature::kIntPointerArguments: {
      const auto function = btf_.kfunc ? btf_.kfunc("bpf_modify_return_test") : std::nullopt;
      return function && has_int_pointer_arguments(*function);
    }
    case Feature::kFentry: {
      const auto function = btf_.kfunc ? btf_.kfunc("bpf_fentry_test1") : std::nullopt;
      return function && has_fentry(*function);
    }
    case Feature::kStructArguments: return btf_.has_member && btf_.has_member("btf_func_model", "arg_flags");
    case Feature::kStackArguments: return has_stack_arguments(btf_);
    case Feature::kFirstFrameOnce: return has_first_frame_once();
    case Feature::kPrivateStack: return may_have_two_frames(false);
    case Feature::kTailCallStack: return !may_have_two_frames(true);
    case Feature::kCount: break;
  }
  UNREACHABLE("feature");
}

}  // namespace espy::load

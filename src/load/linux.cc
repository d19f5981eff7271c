#include "load/linux.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"
#include "base/strings.h"
#include "kernel/btf.h"
#include "kernel/cpu_list.h"
#include "load/bpf.h"
#include "load/program_btf.h"

namespace espy::load {

namespace {

bool is_per_cpu(program::MapKind kind) {
  return kind == program::MapKind::kPercpuArray || kind == program::MapKind::kPercpuHash ||
         kind == program::MapKind::kLruPercpuHash;
}

bool is_hash(program::MapKind kind) { return kind == program::MapKind::kHash || kind == program::MapKind::kPercpuHash; }

// Loads BTF for programs and maps of this process.
Result<OwnedFd> load_btf(const std::string& blob) {
  BtfLoadAttr attr;
  attr.btf = address_of(blob.data());
  attr.btf_size = static_cast<uint32_t>(blob.size());
  const long fd = bpf(Command::kBtfLoad, attr);
  if (fd < 0) return fail_errno("cannot load types (BTF) into the kernel", static_cast<int>(-fd));
  return OwnedFd(static_cast<int>(fd));
}

uint32_t round_up_to_8(uint32_t size) { return (size + 7) & ~7U; }

// The number of values in a per-CPU value: one for each possible CPU, present or not.
uint32_t possible_cpus() {
  static const uint32_t count =
      kernel::possible_cpu_count().value_or(static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF)));
  return count;
}

size_t mapped_size(const program::BpfMap& shape) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = static_cast<size_t>(round_up_to_8(shape.value_size)) * shape.max_entries;
  return (bytes + page - 1) & ~(page - 1);
}

}  // namespace

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

std::unique_ptr<Machine> open_linux() { return std::make_unique<LinuxMachine>(); }

uint64_t LinuxMachine::now_ns() { return clock_ns(CLOCK_BOOTTIME); }

namespace {

// A perf event takes two descriptors, and a wildcard may match thousands of functions.
constexpr rlim_t kEnoughDescriptors = 1 << 20;

}  // namespace

Status LinuxMachine::load(const program::Program& program, const types::Types& /*types*/,
                          const source::Sources& sources) {
  raise_limit(RLIMIT_NOFILE, kEnoughDescriptors);
  maps_ = {};
  added_arrays_.clear();
  programs_ = {};
  attach_types_ = {};
  refusal_.reset();
  for (const program::BpfMap& shape : program.maps) TRY_STATUS(create_map(shape));
  for (const ProgramId id : program.programs.ids()) TRY_STATUS(load_program(id, program, sources));
  return {};
}

// ---- Maps ---------------------------------------------------------------------------------------------------------

namespace {

constexpr uint32_t kMostOldKeyBytes = 512;

struct KernelLimits {
  bool has_long_keys = true;
  bool has_large_array_values = true;
};

// Stacks have at most as many frames as kernel.perf_event_max_stack says (kernel/bpf/stackmap.c).
tl::unexpected<Error> refused_map(const program::BpfMap& shape, int error, const KernelLimits& limits) {
  constexpr const char* kHint = "strings in it take max_strlen bytes each";
  if (shape.kind == program::MapKind::kStackTrace && error == EINVAL) {
    const uint32_t frames = shape.value_size / 8;
    return fail(fmt::format("the kernel does not keep stacks of {} frames", frames), error,
                fmt::format("`sysctl kernel.perf_event_max_stack` shows the most; `sysctl -w "
                            "kernel.perf_event_max_stack={}` allows them",
                            frames));
  }
  if (error == E2BIG && shape.kind == program::MapKind::kArray && !limits.has_large_array_values)
    return fail(fmt::format("the script is too large for the kernel: its values need {} bytes on all CPUs together, of "
                            "4 MiB at most; Linux 5.11 takes more",
                            shape.value_size),
                error, kHint);
  if (error == E2BIG && shape.key_size > kMostOldKeyBytes && !limits.has_long_keys)
    return fail(fmt::format("the map `{}` is too large for the kernel: keys of {} bytes, where it takes {}; Linux 5.11 "
                            "takes longer ones",
                            shape.name, shape.key_size, kMostOldKeyBytes),
                error, kHint);
  if (error == E2BIG)
    return fail(fmt::format("the map `{}` is too large for the kernel: {} bytes of key and {} of value", shape.name,
                            shape.key_size, shape.value_size),
                error, kHint);
  return fail_errno("cannot create the map `" + shape.name + "`", error, error == EPERM ? why_not_permitted() : "");
}

}  // namespace

Result<OwnedFd> LinuxMachine::open_map(const program::BpfMap& shape) {
  MapCreateAttr attr;
  attr.map_type = number_of(shape.kind);
  attr.key_size = shape.key_size;
  attr.value_size = shape.value_size;
  attr.max_entries = shape.max_entries;
  if (shape.is_mmapable) attr.map_flags |= BPF_F_MMAPABLE;
  if (shape.is_read_only) attr.map_flags |= BPF_F_RDONLY_PROG;
  if (is_hash(shape.kind) && !shape.is_preallocated) attr.map_flags |= BPF_F_NO_PREALLOC;
  OwnedFd btf;
  if (shape.kind == program::MapKind::kTaskStorage) {  // requires types (bpf_local_storage_map_alloc_check)
    const MapBtf types = make_map_btf(attr.value_size);
    btf = TRY(load_btf(types.blob));
    attr.btf_fd = static_cast<uint32_t>(btf.get());
    attr.btf_key_type_id = types.key_id;
    attr.btf_value_type_id = types.value_id;
    attr.map_flags |= BPF_F_NO_PREALLOC;
  }
  copy_name(attr.map_name, shape.name);
  if (shape.like.valid()) attr.inner_map_fd = static_cast<uint32_t>(maps_[shape.like].fd.get());
  const long fd = bpf(Command::kMapCreate, attr);
  if (fd == -E2BIG)
    return refused_map(shape, E2BIG,
                       {try_feature(kernel::Feature::kLongKeys), try_feature(kernel::Feature::kLargeArrayValues)});
  if (fd < 0) return refused_map(shape, static_cast<int>(-fd), {});
  return OwnedFd(static_cast<int>(fd));
}

Status LinuxMachine::create_map(const program::BpfMap& shape) {
  OwnedFd fd = TRY(open_map(shape));
  const uint32_t copies = is_per_cpu(shape.kind) ? possible_cpus() : 1;
  const MapId id = maps_.add(LoadedMap{std::move(fd), shape, {}, 0});
  maps_[id].stored_value_size = copies == 1 ? shape.value_size : round_up_to_8(shape.value_size) * copies;
  return fill_and_map(maps_[id]);
}

namespace {

tl::unexpected<Error> cannot_map(const program::BpfMap& shape) {
  return fail_errno("cannot map `" + shape.name + "` into memory", errno);
}

tl::unexpected<Error> cannot_write(const program::BpfMap& shape, long error) {
  return fail_errno("cannot write to the map `" + shape.name + "`", static_cast<int>(-error));
}

constexpr uint64_t kExist = 2;  // BPF_EXIST

long write_element(const OwnedFd& map, std::span<const std::byte> key, std::span<const std::byte> value,
                   uint64_t flags) {
  MapElementAttr attr;
  attr.map_fd = static_cast<uint32_t>(map.get());
  attr.key = address_of(key.data());
  attr.value = address_of(value.data());
  attr.flags = flags;
  return bpf(Command::kMapUpdate, attr);
}

}  // namespace

// Maps the first bytes of a value of an array at its reserved addresses. Values are whole pages.
Status LinuxMachine::map_part(const LoadedMap& map, uint32_t index, size_t size) {
  const size_t at = size_t{index} * map.shape.value_size;
  void* start = ::mmap(map.mapping.bytes().data() + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                       map.fd.get(), static_cast<off_t>(at));
  if (start == MAP_FAILED) return cannot_map(map.shape);
  return {};
}

Status LinuxMachine::map_value(MapId id, uint32_t index) {
  return map_part(maps_[id], index, maps_[id].shape.value_size);
}

Status LinuxMachine::fill_and_map(LoadedMap& map) {
  if (map.shape.is_mmapable) {
    const size_t size = mapped_size(map.shape);
    const bool is_whole = map.shape.first_bytes == 0;
    void* start = is_whole ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, map.fd.get(), 0)
                           : ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return cannot_map(map.shape);
    map.mapping = Mapping(static_cast<std::byte*>(start), size);
    for (uint32_t i = 0; !is_whole && i < map.shape.max_entries; ++i)
      if (const Status done = map_part(map, i, map.shape.first_bytes); !done) return done;
  }
  OwnedFd group;  // the map keeps the group that its descriptor stands for
  std::string value = map.shape.initial;
  if (!map.shape.cgroup.empty()) {
    group = OwnedFd(::open(map.shape.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!group.valid()) return fail_errno("cannot open the control group " + map.shape.cgroup, errno);
    const int fd = group.get();
    value.assign(reinterpret_cast<const char*>(&fd), sizeof(fd));
  }
  if (!value.empty()) {
    value.resize(map.shape.value_size);
    const uint32_t zero = 0;
    MapElementAttr attr;
    attr.map_fd = static_cast<uint32_t>(map.fd.get());
    attr.key = address_of(&zero);
    attr.value = address_of(value.data());
    if (const long result = bpf(Command::kMapUpdate, attr); result < 0)
      return fail_errno("cannot fill the map `" + map.shape.name + "`", static_cast<int>(-result));
  }
  if (map.shape.is_read_only) {
    MapFreezeAttr attr{static_cast<uint32_t>(map.fd.get())};
    if (const long result = bpf(Command::kMapFreeze, attr); result < 0)
      return fail_errno("cannot freeze the map `" + map.shape.name + "`", static_cast<int>(-result));
  }
  return {};
}

// By one call where the kernel can (not 5.10), as each one waits for an RCU grace period, tens of milliseconds (before
// Linux 6.8, for each array).
Result<std::vector<std::span<std::byte>>> LinuxMachine::add_arrays(MapId map, uint32_t first, uint32_t count) {
  const program::BpfMap& shape = maps_[maps_[map].shape.like].shape;
  std::vector<LoadedMap> added;
  std::vector<uint32_t> keys, descriptors;
  std::vector<std::span<std::byte>> out;
  for (uint32_t i = 0; i < count; ++i) {
    LoadedMap& array = added.emplace_back(LoadedMap{TRY(open_map(shape)), shape, {}, shape.value_size});
    TRY_STATUS(fill_and_map(array));
    keys.push_back(first + i);
    descriptors.push_back(static_cast<uint32_t>(array.fd.get()));
    out.push_back(array.mapping.bytes());
  }
  MapBatchAttr attr;
  attr.map_fd = static_cast<uint32_t>(maps_[map].fd.get());
  attr.keys = address_of(keys.data());
  attr.values = address_of(descriptors.data());
  attr.count = count;
  constexpr long kNotSupported = 524;  // ENOTSUPP of the kernel (include/linux/errno.h)
  const long result = bpf(Command::kMapUpdateBatch, attr);
  if (result < 0 && result != -kNotSupported) return cannot_write(maps_[map].shape, result);
  for (uint32_t i = 0; i < count && result < 0; ++i)
    TRY_STATUS(update(map, std::as_bytes(std::span(&keys[i], 1)), std::as_bytes(std::span(&descriptors[i], 1))));
  added_arrays_.insert(added_arrays_.end(), std::move_iterator(added.begin()), std::move_iterator(added.end()));
  return out;
}

std::span<std::byte> LinuxMachine::memory(MapId map) { return maps_[map].mapping.bytes(); }

Status LinuxMachine::for_each(
    MapId id, const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit) {
  return visit_batches(maps_[id], visit);
}

namespace {

// The number of elements to read at once. A value has a copy for each possible CPU, and may be a histogram of thousands
// of buckets.
uint32_t batch_capacity(size_t element_bytes, uint32_t max_entries) {
  constexpr size_t kMaxBytes = 1 << 20, kMaxElements = 4 * 1024;
  const size_t fitting = std::clamp<size_t>(kMaxBytes / std::max<size_t>(element_bytes, 1), 1, kMaxElements);
  return std::clamp<uint32_t>(max_entries, 1, static_cast<uint32_t>(fitting));
}

}  // namespace

// BPF_MAP_LOOKUP_BATCH returns whole hash buckets: it fails with ENOSPC if a bucket does not fit the batch.
Status LinuxMachine::visit_batches(
    const LoadedMap& map, const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit) {
  uint32_t capacity = batch_capacity(size_t{map.shape.key_size} + map.stored_value_size, map.shape.max_entries);
  std::vector<std::byte> keys, values;
  uint64_t position[8] = {};  // opaque; hashes use four bytes, other maps up to a key's size
  bool is_first = true;
  for (;;) {
    keys.resize(size_t{capacity} * map.shape.key_size);
    values.resize(size_t{capacity} * map.stored_value_size);
    MapBatchAttr attr;
    attr.map_fd = static_cast<uint32_t>(map.fd.get());
    attr.in_batch = is_first ? 0 : address_of(position);
    attr.out_batch = address_of(position);
    attr.keys = address_of(keys.data());
    attr.values = address_of(values.data());
    attr.count = capacity;
    const long result = bpf(Command::kMapLookupBatch, attr);
    if (result == -ENOSPC) {
      capacity *= 2;
      continue;
    }
    if (result < 0 && result != -ENOENT)
      return fail_errno("cannot read the map `" + map.shape.name + "`", static_cast<int>(-result));
    for (uint32_t i = 0; i < attr.count; ++i) {
      visit(std::span(keys).subspan(size_t{i} * map.shape.key_size, map.shape.key_size),
            std::span(values).subspan(size_t{i} * map.stored_value_size, map.stored_value_size));
    }
    if (result == -ENOENT) return {};
    is_first = false;
  }
}

std::optional<std::vector<std::byte>> LinuxMachine::lookup(MapId id, std::span<const std::byte> key) {
  const LoadedMap& map = maps_[id];
  std::vector<std::byte> value(map.stored_value_size);
  MapElementAttr attr;
  attr.map_fd = static_cast<uint32_t>(map.fd.get());
  attr.key = address_of(key.data());
  attr.value = address_of(value.data());
  if (bpf(Command::kMapLookup, attr) < 0) return std::nullopt;
  return value;
}

// Since Linux 5.19 kernel.unprivileged_bpf_disabled is about what creates objects alone (commit "bpf: refine kernel.
// unprivileged_bpf_disabled behaviour"); before, about every command. A descriptor that is none shows it.
bool LinuxMachine::refuses_maps() {
  MapElementAttr attr;
  attr.map_fd = UINT32_MAX;
  return bpf(Command::kMapLookup, attr) == -EPERM;
}

Status LinuxMachine::update(MapId id, std::span<const std::byte> key, std::span<const std::byte> value) {
  if (const long result = write_element(maps_[id].fd, key, value, 0); result < 0)
    return cannot_write(maps_[id].shape, result);
  return {};
}

Result<bool> LinuxMachine::replace(MapId id, std::span<const std::byte> key, std::span<const std::byte> value) {
  const long result = write_element(maps_[id].fd, key, value, kExist);
  if (result < 0 && result != -ENOENT) return cannot_write(maps_[id].shape, result);
  return result == 0;
}

Result<bool> LinuxMachine::remove(MapId id, std::span<const std::byte> key) {
  MapElementAttr attr;
  attr.map_fd = static_cast<uint32_t>(maps_[id].fd.get());
  attr.key = address_of(key.data());
  const long result = bpf(Command::kMapDelete, attr);
  if (result < 0 && result != -ENOENT)
    return fail_errno("cannot delete from the map `" + maps_[id].shape.name + "`", static_cast<int>(-result));
  return result == 0;
}

// ---- Programs -----------------------------------------------------------------------------------------------------

namespace {

constexpr uint32_t kLeastLogBytes = 4 * 1024;  // the kernel requires 128
constexpr uint32_t kWholeLogBytes = 1 << 26;
// Of a program that is too complex: the log of a million instructions takes longer than their verification.
constexpr uint32_t kComplexLogBytes = 64 * 1024;

std::vector<program::BpfInsn> patched(const program::BpfProgram& program, const std::function<int(MapId)>& fd_of) {
  std::vector<program::BpfInsn> code = program.code;
  for (const program::MapReference& reference : program.map_references) code[reference.insn].imm = fd_of(reference.map);
  return code;
}

// Sets what the program attaches to. Returns the descriptor that `attr` refers to, which must stay open until the
// program is loaded; none if the target needs no descriptor.
Result<OwnedFd> set_attach_target(ProgLoadAttr& attr, const program::BpfProgram& program) {
  attr.expected_attach_type = program.expected_attach_type;
  if (program.kind == program::ProgramKind::kTracingRawTracepoint) attr.expected_attach_type = kAttachTraceRawTp;
  attr.attach_btf_id = program.attach_btf_id;
  OwnedFd out;
  if (program.attach_program != 0) {
    out = TRY(open_program(program.attach_program));
  } else if (!program.attach_btf_module.empty()) {
    out = TRY(open_module_btf(program.attach_btf_module));
  }
  if (out.valid()) attr.attach_btf_obj_fd = static_cast<uint32_t>(out.get());  // in a union with attach_prog_fd
  return out;
}

// Loads the program's BTF and refers to it in `attr`. The kernel needs it for callbacks, and for source lines in the
// log.
Result<OwnedFd> add_btf(ProgLoadAttr& attr, const ProgramBtf& btf) {
  OwnedFd fd = TRY(load_btf(btf.blob));
  attr.prog_btf_fd = static_cast<uint32_t>(fd.get());
  attr.func_info = address_of(btf.functions.data());
  attr.func_info_cnt = static_cast<uint32_t>(btf.functions.size());
  attr.func_info_rec_size = sizeof(FuncInfoRecord);
  attr.line_info = address_of(btf.lines.data());
  attr.line_info_cnt = static_cast<uint32_t>(btf.lines.size());
  attr.line_info_rec_size = sizeof(LineInfoRecord);
  return fd;
}

// Whether the log has its end, with the reason: what the verifier says last is how much it processed.
bool has_end(std::string_view log) {
  const size_t at = log.rfind("\nprocessed ");
  return at != log.npos && log.find('\n', at + 1) >= log.size() - 1;
}

// Loads the program once more, for the verifier's log. Returns the descriptor, or the negative errno of the refusal
// `refused` if the kernel only complains about the size of the log. If the log is too long, the kernel keeps its end;
// before Linux 6.4 its beginning, so that the buffer is made larger, except for E2BIG, which says enough without a log.
long load_with_log(ProgLoadAttr& attr, std::string& log, size_t log_bytes, bool is_verbose, long refused) {
  attr.log_level = is_verbose ? 2 | 4 : 1;
  for (;; log_bytes = std::min<size_t>(log_bytes * 8, kWholeLogBytes)) {
    log.assign(log_bytes, '\0');
    attr.log_size = static_cast<uint32_t>(log.size());
    attr.log_buf = address_of(log.data());
    const long fd = bpf(Command::kProgLoad, attr);
    log.resize(std::strlen(log.c_str()));
    if (fd == -ENOSPC && log_bytes < kWholeLogBytes && !has_end(log)) {
      if (refused != -E2BIG) continue;
      log.clear();
    }
    return fd == -ENOSPC && !is_verbose ? refused : fd;
  }
}

}  // namespace

// Most programs load at the first attempt, without BTF and log.
Status LinuxMachine::load_program(ProgramId id, const program::Program& whole, const source::Sources& sources) {
  const program::BpfProgram& program = whole.programs[id];
  const std::vector<program::BpfInsn> code = patched(program, [&](MapId map) { return maps_[map].fd.get(); });
  static_assert(sizeof(program::BpfInsn) == 8);
  const bool needs_btf = std::ranges::any_of(
      program.functions, [](const program::FunctionInfo& f) { return f.is_callback || f.is_global; });
  ProgLoadAttr attr;
  attr.prog_type = number_of(program.kind);
  attr.insn_cnt = static_cast<uint32_t>(code.size());
  attr.insns = address_of(code.data());
  attr.license = address_of(whole.license.c_str());
  attr.prog_flags = program.is_sleepable || program.kind == program::ProgramKind::kSyscall ? BPF_F_SLEEPABLE : 0;
  const OwnedFd target = TRY(set_attach_target(attr, program));
  attach_types_.add(attr.expected_attach_type);
  copy_name(attr.prog_name, program.name);

  long fd = -1;
  if (!needs_btf && !keep_log_) fd = bpf(Command::kProgLoad, attr);
  if (fd < 0) {
    const ProgramBtf btf = make_program_btf(program, sources);
    const Result<OwnedFd> btf_fd = add_btf(attr, btf);
    if (needs_btf && !btf_fd) return tl::unexpected(btf_fd.error());
    if (needs_btf && !keep_log_) fd = bpf(Command::kProgLoad, attr);
    std::string log;
    const size_t log_bytes = keep_log_      ? kWholeLogBytes
                             : fd == -E2BIG ? kComplexLogBytes
                                            : std::max(whole.verifier_log_bytes, kLeastLogBytes);
    if (fd < 0) fd = load_with_log(attr, log, log_bytes, keep_log_, fd);
    if (keep_log_) log_ += "program " + program.name + ":\n" + log;
    if (fd < 0) return refused(id, program, std::move(log), static_cast<int>(-fd));
  }
  programs_.add(OwnedFd(static_cast<int>(fd)));
  return {};
}

// Returns the first call of a helper that this kernel does not have, and which feature that is.
std::optional<uint32_t> LinuxMachine::find_missing_helper(const program::BpfProgram& program,
                                                          kernel::Feature& feature) {
  using kernel::Feature;
  constexpr std::pair<int32_t, Feature> kLaterHelpers[] = {
      {BPF_FUNC_for_each_map_elem, Feature::kForEachMapElem},       {BPF_FUNC_loop, Feature::kBpfLoop},
      {BPF_FUNC_map_lookup_percpu_elem, Feature::kMapLookupPercpu}, {BPF_FUNC_task_storage_get, Feature::kTaskStorage},
      {BPF_FUNC_get_current_task_btf, Feature::kGetCurrentTaskBtf}, {BPF_FUNC_get_func_ip, Feature::kGetFuncIp},
  };
  for (uint32_t i = 0; i < program.code.size(); ++i) {
    const program::BpfInsn& insn = program.code[i];
    if (insn.code != (BPF_JMP | BPF_CALL) || insn.registers >> 4 != 0) continue;
    const auto* found = std::ranges::find(kLaterHelpers, insn.imm, &std::pair<int32_t, Feature>::first);
    if (found == std::end(kLaterHelpers) || try_feature(found->second)) continue;
    feature = found->second;
    return i;
  }
  return std::nullopt;
}

Status LinuxMachine::refused(ProgramId id, const program::BpfProgram& program, std::string log, int code) {
  refusal_ = read_refusal(id, std::move(log), code);
  kernel::Feature feature = {};
  if (const auto insn = find_missing_helper(program, feature)) {
    refusal_->insn = *insn;
    refusal_->missing_feature = feature;
  }
  return fail_errno("the kernel refused the program `" + program.name + "`", code,
                    code == EPERM ? why_not_permitted() : "");
}

Status LinuxMachine::run(ProgramId program) {
  TestRunAttr attr;
  attr.prog_fd = static_cast<uint32_t>(programs_[program].get());
  if (const long result = bpf(Command::kTestRun, attr); result < 0)
    return fail_errno("cannot run a begin or end probe", static_cast<int>(-result));
  return {};
}

namespace {

// The BTF of a program.
std::unique_ptr<kernel::Btf> types_of(uint32_t btf_id) {
  NextIdAttr wanted{btf_id, 0, 0};  // start_id is in one union with btf_id
  const OwnedFd fd(static_cast<int>(bpf(Command::kBtfById, wanted)));
  if (!fd.valid()) return nullptr;
  BtfInfo info;
  InfoAttr size{static_cast<uint32_t>(fd.get()), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, size) < 0) return nullptr;
  std::string bytes(info.btf_size, '\0');
  info = {};
  info.btf = address_of(bytes.data());
  info.btf_size = static_cast<uint32_t>(bytes.size());
  InfoAttr whole{static_cast<uint32_t>(fd.get()), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, whole) < 0) return nullptr;
  auto parsed = kernel::Btf::parse(std::move(bytes));
  return parsed ? std::move(*parsed) : nullptr;
}

void append_functions(uint32_t program_id, std::vector<LoadedFunction>& out) {
  const auto program = open_program(program_id);
  if (!program) return;
  bpf_prog_info info = {};
  InfoAttr first{static_cast<uint32_t>(program->get()), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, first) < 0 || info.btf_id == 0) return;
  if (info.type == BPF_PROG_TYPE_TRACING || info.type == BPF_PROG_TYPE_EXT) return;
  std::vector<FuncInfoRecord> functions(info.nr_func_info);
  const uint32_t btf_id = info.btf_id;
  info = {};
  info.nr_func_info = static_cast<uint32_t>(functions.size());
  info.func_info_rec_size = sizeof(FuncInfoRecord);
  info.func_info = address_of(functions.data());
  InfoAttr second{static_cast<uint32_t>(program->get()), sizeof(info), address_of(&info)};
  const auto types = types_of(btf_id);
  if (!types || bpf(Command::kObjectInfo, second) < 0) return;
  for (const FuncInfoRecord& function : functions)
    if (const auto record = types->record(function.type_id))
      out.push_back({program_id, function.type_id, std::string(types->name(*record))});
}

}  // namespace

std::vector<LoadedFunction> loaded_functions() {
  std::vector<LoadedFunction> out;
  NextIdAttr attr;
  while (bpf(Command::kProgramNextId, attr) >= 0) {
    append_functions(attr.next_id, out);
    attr.start_id = attr.next_id;
  }
  return out;
}

Result<OwnedFd> open_program(uint32_t id) {
  NextIdAttr wanted{id, 0, 0};
  const long fd = bpf(Command::kProgramById, wanted);
  if (fd < 0) return fail_errno("cannot open the BPF program " + std::to_string(id), static_cast<int>(-fd));
  return OwnedFd(static_cast<int>(fd));
}

// ---- What the kernel counts of programs and maps.

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

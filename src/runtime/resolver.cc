#include "runtime/resolver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/processes.h"
#include "program/unwind_layout.h"

namespace espy::runtime {

namespace {

std::vector<uint64_t> stack_addresses(load::Machine& machine, const program::Program& program, types::TypeId type,
                                      int64_t reference) {
  const auto stacks = std::ranges::find(program.stacks, type, &program::StackMaps::type);
  if (stacks == program.stacks.end()) return {};
  const auto id = static_cast<uint32_t>(reference);
  const uint32_t map = id >> program::kStackMapShift;
  const uint32_t key = id & ((1U << program::kStackMapShift) - 1);
  if (map != program::kStackByContent && map >= stacks->by_hash.size()) return {};
  const auto bytes = machine.lookup(map == program::kStackByContent ? stacks->contents : stacks->by_hash[map],
                                    std::as_bytes(std::span(&key, 1)));
  if (!bytes) return {};
  std::vector<uint64_t> addresses(bytes->size() / sizeof(uint64_t));
  std::memcpy(addresses.data(), bytes->data(), addresses.size() * sizeof(uint64_t));
  while (!addresses.empty() && addresses.back() == 0) addresses.pop_back();
  return addresses;
}

output::Frame kernel_frame(symbols::Symbolizer& symbols, uint64_t address) {
  const auto symbol = symbols.kernel(address);
  if (!symbol) return {address, {}, 0, {}, {}};
  return {address, symbol->name, symbol->offset, symbol->module, {}};
}

// Addresses in user stacks may have a program::CodeTag.
output::Frame bare_frame(uint64_t address) {
  output::Frame frame{program::code_address(address), {}, 0, {}, {}};
  frame.code_tag = program::code_tag(address);
  return frame;
}

output::Frame user_frame(symbols::Symbolizer& symbols, uint32_t pid, uint64_t address) {
  output::Frame frame = bare_frame(address);
  if (auto module = symbols.user_module(pid, address)) {
    frame.module = std::move(module->path);
    frame.module_address = module->address;
  }
  if (const auto symbol = symbols.user(pid, address)) {
    frame.symbol = symbol->name;
    frame.offset = symbol->offset;
  }
  return frame;
}

// Whether the signal trampoline of the C library begins at `address`. It is in a file, or in the vdso; a name of code
// that was made at run time may have to be searched for.
bool is_signal_trampoline(symbols::Symbolizer& symbols, std::string_view trampoline, uint32_t pid, uint64_t address) {
  if (!symbols.user_module(pid, address)) return false;
  const auto symbol = symbols.user(pid, address);
  return symbol && symbol->name == trampoline;
}

output::Frame file_frame(symbols::Symbolizer& symbols, uint32_t pid, uint64_t address) {
  output::Frame frame = bare_frame(address);
  if (const auto place = symbols.build_id_offset(pid, address)) {
    frame.build_id = place->build_id;
    frame.offset = place->offset;
  }
  return frame;
}

std::shared_ptr<const output::CodeFile> code_file(symbols::Symbolizer& symbols, uint32_t pid, uint64_t address) {
  auto segment = symbols.code_segment(pid, address);
  if (!segment) return nullptr;
  return std::make_shared<const output::CodeFile>(
      output::CodeFile{std::move(segment->build_id), segment->address, segment->size_bytes, segment->file_offset});
}

// The frames at an address of a stack. Looks up the call instruction, one byte before the return address: a call may be
// the last instruction of a function, so that the return address is in the next one. The frame that a signal trampoline
// returns to did not make a call.
std::vector<output::Frame> stack_frames(symbols::Symbolizer& symbols, std::string_view signal_trampoline, uint32_t pid,
                                        uint64_t address, bool is_caller, StackDetail detail) {
  const bool is_trampoline = is_caller && is_signal_trampoline(symbols, signal_trampoline, pid, address);
  const uint64_t code = address - (is_caller && !is_trampoline ? 1 : 0);
  output::Frame frame = user_frame(symbols, pid, code);
  frame.address = program::code_address(address);
  if (!frame.symbol.empty()) frame.offset += address - code;
  if (frame.module_address) *frame.module_address += address - code;
  if (detail.has_files) frame.code = code_file(symbols, pid, code);
  std::vector<output::Frame> out;
  const auto sources = detail.has_source ? symbols.source(pid, code) : std::vector<symbols::SourceFrame>();
  for (const symbols::SourceFrame& each : sources) {
    output::Frame shown = frame;
    shown.file = each.file;
    shown.line = each.line;
    shown.is_inlined = each.is_inlined;
    if (each.is_inlined) shown.symbol = each.function;
    out.push_back(std::move(shown));
  }
  if (out.empty()) out.push_back(std::move(frame));
  return out;
}

std::vector<output::Frame> recorded_frames(const recording::FrameNames& names, const recording::Place& place) {
  const auto found = names.find(place);
  std::vector<output::Frame> out;
  if (found != names.end())
    for (const recording::Frame& each : found->second)
      out.push_back({place.address,
                     each.symbol,
                     each.offset,
                     each.module,
                     {},
                     each.file,
                     each.line,
                     each.is_inlined,
                     each.has_module_address ? std::optional(each.module_address) : std::nullopt});
  if (out.empty()) out.push_back({place.address, {}, 0, {}, {}});
  if (place.pid == 0) return out;  // of the kernel
  for (output::Frame& frame : out) {
    frame.code_tag = program::code_tag(place.address);
    frame.address = program::code_address(place.address);
  }
  return out;
}

// Names of addresses come from the recording.
void use_recorded_names(output::Resolver& resolver, const recording::FrameNames& names) {
  resolver.kernel_symbol = [&names](uint64_t address) { return recorded_frames(names, {0, false, address}).back(); };
  resolver.user_symbol = [&names](uint32_t pid, uint64_t address) {
    return recorded_frames(names, {pid, false, address}).back();
  };
  resolver.user_frames = [&names](uint32_t pid, uint64_t address, types::StackMode mode,
                                  bool is_caller) -> std::vector<output::Frame> {
    if (mode == types::StackMode::kRaw) return {bare_frame(address)};
    return recorded_frames(names, {pid, is_caller, address});
  };
}

// Reads /etc/passwd only: a static program cannot load the modules of nsswitch.conf.
std::map<uint32_t, std::string> read_users() {
  std::map<uint32_t, std::string> users;
  const auto text = read_untrusted("/etc/passwd", kMaxTextBytes);
  if (!text) return users;
  for (const std::string_view line : split(*text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    if (const auto uid = parse_int(fields[2])) users.emplace(static_cast<uint32_t>(*uid), fields[0]);
  }
  return users;
}

// A cgroup's id is the id of its kernfs node, which is a complete file handle (open_by_handle_at(2)).
std::string cgroup_path(uint64_t id) {
  if (id == UINT64_MAX) return "";  // a hierarchy that the script does not show
  static const std::string mount_path = kernel::control_group_mount();
  constexpr int kKernfsHandle = 0xfe;  // FILEID_KERNFS
  alignas(file_handle) std::byte memory[sizeof(file_handle) + sizeof(id)];
  auto* handle = new (memory) file_handle{};
  handle->handle_bytes = sizeof(id);
  handle->handle_type = kKernfsHandle;
  std::memcpy(memory + sizeof(file_handle), &id, sizeof(id));
  const OwnedFd root(::open(mount_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return std::to_string(id);
  const OwnedFd mount(::openat(root.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const OwnedFd found(::open_by_handle_at(mount.get(), handle, O_PATH | O_CLOEXEC));
  if (!found.valid()) return std::to_string(id);
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(found.get());
  const ssize_t length = ::readlink(link.c_str(), path, sizeof(path));
  if (length <= 0) return std::to_string(id);  // longer than a path can be
  std::string_view text(path, static_cast<size_t>(length));
  if (mount_path.size() > 1 && text.starts_with(mount_path)) text.remove_prefix(mount_path.size());
  return "unified:" + (text.empty() ? "/" : std::string(text));
}

// Measures the offset a few times. The shortest measurement is the most exact.
int64_t measure_wall_clock_offset_ns(clockid_t clock, int times) {
  int64_t shortest = INT64_MAX, offset = 0;
  for (int i = 0; i < times; ++i) {
    const auto before = static_cast<int64_t>(clock_ns(clock));
    const auto wall = static_cast<int64_t>(clock_ns(CLOCK_REALTIME));
    const auto after = static_cast<int64_t>(clock_ns(clock));
    if (after - before >= shortest) continue;
    shortest = after - before;
    offset = wall - (before + after) / 2;
  }
  return offset;
}

struct WallClock {
  int64_t first_ns = 0, offset_ns = 0;
};

std::map<uint32_t, WallClock>& wall_clocks() {
  static std::map<uint32_t, WallClock> clocks;
  return clocks;
}

}  // namespace

// A measurement errs by some hundred nanoseconds, so the first one is kept until the clock is set: a time is
// shown the same whenever it is formatted. Adjustments of the clock's speed apply to both clocks.
int64_t wall_clock_offset_ns(uint32_t clock) {
  constexpr int64_t kStepNs = 100'000;
  const auto id = static_cast<clockid_t>(clock);
  const auto [found, is_new] = wall_clocks().try_emplace(clock);
  int64_t& offset = found->second.offset_ns;
  if (is_new || std::abs(measure_wall_clock_offset_ns(id, 1) - offset) > kStepNs)
    offset = measure_wall_clock_offset_ns(id, 3);
  if (is_new) found->second.first_ns = offset;
  return offset;
}

double wall_clock_step_seconds() {
  constexpr int64_t kLeastNs = 1'000'000;  // a measurement that is interrupted errs by less
  int64_t largest = 0;
  for (const auto& [clock, known] : wall_clocks()) {
    const int64_t step = wall_clock_offset_ns(clock) - known.first_ns;
    if (std::abs(step) > std::abs(largest)) largest = step;
  }
  return std::abs(largest) < kLeastNs ? 0 : static_cast<double>(largest) / static_cast<double>(kNsPerSecond);
}

std::string format_time(std::string_view format, uint64_t ns, uint32_t clock) {
  if (clock != CLOCK_REALTIME) ns += static_cast<uint64_t>(wall_clock_offset_ns(clock));
  std::string with_micros;
  for (size_t at = 0; at < format.size();) {
    const std::string_view conversion = format.substr(at, format[at] == '%' ? 2 : 1);
    with_micros += conversion == "%f" ? fmt::format("{:06}", ns % kNsPerSecond / 1000) : std::string(conversion);
    at += conversion.size();
  }
  const auto seconds = static_cast<time_t>(ns / kNsPerSecond);
  tm local = {};
  ::localtime_r(&seconds, &local);
  std::string out(256 + with_micros.size() * 4, '\0');
  out.resize(::strftime(out.data(), out.size(), with_micros.c_str(), &local));
  return out;
}

output::Resolver make_resolver(load::Machine& machine, const program::Program& program, symbols::Symbolizer& symbols,
                               const UnwoundStacks& unwound_stacks, StackDetail detail) {
  output::Resolver resolver;
  resolver.stack = [&](types::TypeId type, int64_t reference) {
    return stack_addresses(machine, program, type, reference);
  };
  resolver.unwound_stack = [&](types::TypeId type, uint64_t key) { return unwound_stacks.addresses(type, key); };
  resolver.kernel_symbol = [&](uint64_t address) { return kernel_frame(symbols, address); };
  resolver.user_symbol = [&](uint32_t pid, uint64_t address) {
    // A value of the script has no tag.
    return address > program::kCodeAddress ? output::Frame{address, {}, 0, {}, {}} : user_frame(symbols, pid, address);
  };
  resolver.signal_trampoline = program.arch->signal_trampoline;
  resolver.user_frames = [&symbols, detail, trampoline = resolver.signal_trampoline](
                             uint32_t pid, uint64_t address, types::StackMode mode,
                             bool is_caller) -> std::vector<output::Frame> {
    if (mode == types::StackMode::kRaw) return {bare_frame(address)};
    if (mode == types::StackMode::kBuildId) return {file_frame(symbols, pid, address)};
    return stack_frames(symbols, trampoline, pid, address, is_caller, detail);
  };
  resolver.username = [users = std::shared_ptr<std::map<uint32_t, std::string>>()](uint32_t uid) mutable {
    if (!users) users = std::make_shared<std::map<uint32_t, std::string>>(read_users());
    const auto at = users->find(uid);
    return at == users->end() ? std::to_string(uid) : at->second;
  };
  resolver.cgroup_path = cgroup_path;
  resolver.timestamp = [&machine](std::string_view format, uint64_t ns, uint32_t clock) {
    const auto offset = clock == CLOCK_REALTIME ? std::nullopt : machine.wall_clock_offset_ns();
    return offset ? format_time(format, ns + static_cast<uint64_t>(*offset), CLOCK_REALTIME)
                  : format_time(format, ns, clock);
  };
  if (const recording::FrameNames* names = machine.frame_names()) use_recorded_names(resolver, *names);
  resolver.probe = [&](uint64_t index) -> const program::Probe* {
    const program::ProbeId id{static_cast<uint32_t>(index)};
    return program.probes.contains(id) ? &program.probes[id] : nullptr;
  };
  return resolver;
}

}  // namespace espy::runtime

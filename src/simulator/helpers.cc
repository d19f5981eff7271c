// The kernel's helpers, as far as compiled programs call them.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ir/ir.h"
#include "simulator/interpreter.h"

namespace espy::simulator {

namespace {

using ir::Helper;

constexpr uint64_t kTaiOffsetNs = 37'000'000'000;
constexpr uint64_t kNsPerJiffy = 4'000'000;
constexpr uint64_t kUserStackFlag = 1 << 8, kSkipMask = 0xff;
constexpr uint64_t kProgramAddress = 0xffff'ffff'a000'0000;
constexpr uint64_t kMaxIterations = 1 << 23;

uint64_t error(int code) { return static_cast<uint64_t>(-int64_t{code}); }

}  // namespace

Result<SimMap*> Interpreter::map_of(uint64_t handle) {
  const uint64_t offset = handle - reinterpret_cast<uint64_t>(maps_.data());
  if (offset % sizeof(SimMap) != 0 || offset / sizeof(SimMap) >= maps_.size()) return fail("r1 is not a map");
  return &maps_[offset / sizeof(SimMap)];
}

Result<std::span<std::byte>> Interpreter::bytes(uint64_t address, uint64_t size_bytes, Access access,
                                                std::string_view what) {
  std::byte* found = own_bytes(address, size_bytes, access);
  if (found == nullptr)
    return fail(fmt::format("{}: {} bytes at {:#x} are not the program's", what, size_bytes, address));
  return std::span(found, size_bytes);
}

tl::unexpected<Error> Interpreter::unrecorded_memory(uint64_t address) {
  unrecorded_address_ = address;
  return unrecorded("the memory that this reads");
}

namespace {

// Nothing is ever mapped in the first and the last 4 KB: reads there fail, as programs want it where they only clear
// memory.
bool may_be_mapped(uint64_t address) {
  constexpr uint64_t kUnmappedBytes = 1 << 12;
  return address >= kUnmappedBytes && address < -kUnmappedBytes;
}

// What a helper gives that recordings do not have; "" if they do.
std::string_view missing_of(Helper helper, const World& world) {
  switch (helper) {
    case Helper::get_current_pid_tgid:
    case Helper::get_current_uid_gid:
    case Helper::get_current_cgroup_id:
    case Helper::get_current_comm:
    case Helper::get_ns_current_pid_tgid: return world.has_task ? "" : "the task that ran then";
    case Helper::get_prandom_u32: return "the random number";
    case Helper::get_numa_node_id: return "the NUMA node";
    case Helper::jiffies64: return "the count of jiffies";
    case Helper::ktime_get_tai_ns: return "the time of the TAI clock";
    case Helper::get_current_task:
    case Helper::get_current_task_btf: return world.current_task != 0 ? "" : "the task_struct of the task";
    default: return "";
  }
}

}  // namespace

Result<uint64_t> Interpreter::helper(int32_t number, const Arguments& a) {
  if (world_.is_recorded)
    if (const std::string_view missing = missing_of(static_cast<Helper>(number), world_); !missing.empty())
      return unrecorded(missing);
  switch (static_cast<Helper>(number)) {
    case Helper::map_lookup_elem:
    case Helper::map_update_elem:
    case Helper::map_delete_elem:
    case Helper::map_lookup_percpu_elem:
    case Helper::for_each_map_elem:
    case Helper::task_storage_get: return map_helper(number, a);
    case Helper::probe_read_kernel:
    case Helper::probe_read_user:
    case Helper::copy_from_user:
    case Helper::probe_read_kernel_str:
    case Helper::probe_read_user_str:
    case Helper::probe_write_user: return read_helper(number, a);
    case Helper::get_stackid:
    case Helper::get_stack: return stack_helper(number, a);
    case Helper::loop: return loop(a);
    case Helper::strncmp: return strncmp(a);
    case Helper::ktime_get_ns:
    case Helper::ktime_get_boot_ns: return world_.now_ns;
    case Helper::ktime_get_tai_ns: return world_.now_ns + kTaiOffsetNs;
    case Helper::jiffies64: return world_.now_ns / kNsPerJiffy;
    case Helper::get_prandom_u32:
      world_.random = world_.random * 6364136223846793005 + 1442695040888963407;
      return world_.random >> 33;
    default: return task_helper(number, a);
  }
}

tl::unexpected<Error> Interpreter::unrecorded(std::string_view what, std::string_view hint) {
  return fail(fmt::format("{} was not recorded", what), kUnrecorded, std::string(hint));
}

Result<uint64_t> Interpreter::task_helper(int32_t number, const Arguments& a) {
  const Task& task = world_.task;
  switch (static_cast<Helper>(number)) {
    case Helper::get_smp_processor_id: return world_.cpu;
    case Helper::get_numa_node_id: return 0;
    case Helper::get_current_pid_tgid: return uint64_t{task.pid} << 32 | task.tid;
    case Helper::get_current_uid_gid: return uint64_t{task.gid} << 32 | task.uid;
    case Helper::get_current_cgroup_id: return task.cgroup;
    case Helper::get_current_task: return world_.current_task;
    case Helper::get_current_task_btf: casts_.push_back(world_.current_task); return world_.current_task;
    case Helper::get_attach_cookie: return world_.cookie;
    case Helper::get_current_comm: {
      const auto out = TRY(bytes(a[0], a[1], Access::kWrite, "get_current_comm"));
      if (out.empty()) return error(EINVAL);
      std::memset(out.data(), 0, out.size());
      std::memcpy(out.data(), task.comm.data(), std::min(task.comm.size(), std::min<size_t>(out.size() - 1, 15)));
      return 0;
    }
    case Helper::get_ns_current_pid_tgid: {
      const auto out = TRY(bytes(a[2], a[3], Access::kWrite, "get_ns_current_pid_tgid"));
      const uint32_t ids[2] = {task.tid, task.pid};
      std::memcpy(out.data(), ids, std::min(out.size(), sizeof(ids)));
      return 0;
    }
    case Helper::send_signal: world_.deeds.push_back(fmt::format("signal {}", a[0])); return 0;
    case Helper::send_signal_thread: world_.deeds.push_back(fmt::format("signal_thread {}", a[0])); return 0;
    case Helper::override_return:
      world_.deeds.push_back(fmt::format("override {}", static_cast<int64_t>(a[1])));
      return 0;
    case Helper::trace_printk: return 0;
    default: return fail(fmt::format("helper {} is not simulated", number));
  }
}

Result<uint64_t> Interpreter::map_helper(int32_t number, const Arguments& a) {
  SimMap& map = *TRY(map_of(a[0]));
  const auto which = static_cast<Helper>(number);
  if (which == Helper::for_each_map_elem) return for_each(map, a);
  if (which == Helper::task_storage_get)
    return reinterpret_cast<uint64_t>(map.task_value(world_.task.tid, (a[3] & 1) != 0));
  const auto key = TRY(bytes(a[1], map.shape().key_size, Access::kRead, "the key"));
  switch (which) {
    case Helper::map_lookup_elem: return reinterpret_cast<uint64_t>(map.lookup(key, world_.cpu));
    case Helper::map_lookup_percpu_elem:
      return reinterpret_cast<uint64_t>(map.lookup(key, static_cast<uint32_t>(a[2])));
    case Helper::map_delete_elem: return static_cast<uint64_t>(map.remove(key));
    default: break;
  }
  const auto value = TRY(bytes(a[2], map.shape().value_size, Access::kRead, "the value"));
  return static_cast<uint64_t>(map.update(key, value, a[3], world_.cpu));
}

// callback(map, key, value, context) until it gives 1. Goes over the keys there were at the start.
Result<uint64_t> Interpreter::for_each(SimMap& map, const Arguments& a) {
  if ((a[1] & kFunctionTag) != kFunctionTag) return fail("for_each_map_elem: r2 is not a function");
  uint64_t count = 0;
  for (std::vector<std::byte>& key : map.keys()) {
    std::byte* value = map.lookup(key, world_.cpu);
    if (value == nullptr) continue;
    const ScopedRegion region(world_.memory, key, true);
    ++count;
    const uint64_t stop =
        TRY(call(static_cast<uint32_t>(a[1] & ~kFunctionTag),
                 {a[0], reinterpret_cast<uint64_t>(key.data()), reinterpret_cast<uint64_t>(value), a[2]}));
    if (stop != 0) break;
  }
  return count;
}

Result<uint64_t> Interpreter::loop(const Arguments& a) {
  if ((a[1] & kFunctionTag) != kFunctionTag) return fail("loop: r2 is not a function");
  if (a[0] > kMaxIterations) return error(E2BIG);
  for (uint64_t i = 0; i < a[0]; ++i)
    if (TRY(call(static_cast<uint32_t>(a[1] & ~kFunctionTag), {i, a[2]})) != 0) return i + 1;
  return a[0];
}

Result<uint64_t> Interpreter::strncmp(const Arguments& a) {
  const auto first = TRY(bytes(a[0], a[1], Access::kRead, "strncmp"));
  std::vector<std::byte> second(a[1]);
  if (!read_anywhere(a[2], second)) return fail("strncmp: r3 is no string");
  return static_cast<uint64_t>(int64_t{
      std::strncmp(reinterpret_cast<const char*>(first.data()), reinterpret_cast<const char*>(second.data()), a[1])});
}

// Where the second string begins in the first, or an error.
Result<uint64_t> Interpreter::strstr(const Arguments& a) {
  std::string texts[2];
  for (size_t i = 0; i < 2; ++i) {
    std::byte c{};
    for (uint64_t at = a[i]; read_anywhere(at, std::span(&c, 1)) && c != std::byte{0}; ++at)
      texts[i] += static_cast<char>(c);
  }
  const size_t found = texts[0].find(texts[1]);
  return found == std::string::npos ? error(ENOENT) : found;
}

Result<uint64_t> Interpreter::read_helper(int32_t number, const Arguments& a) {
  const auto which = static_cast<Helper>(number);
  if (which == Helper::probe_write_user) {
    const auto from = TRY(bytes(a[1], a[2], Access::kRead, "probe_write_user"));
    return world_.memory.write_foreign(a[0], from) ? 0 : error(EFAULT);
  }
  const auto out = TRY(bytes(a[0], a[1], Access::kWrite, "the read's destination"));
  const bool is_text = which == Helper::probe_read_kernel_str || which == Helper::probe_read_user_str;
  if (const size_t size = out.empty() ? 0 : world_.memory.read_lent(a[2], out, is_text); size > 0) {
    if (is_text) {
      if (size == out.size()) out.back() = std::byte{0};
      return size;
    }
    return 0;
  }
  if (is_text) {
    for (size_t i = 0; i < out.size(); ++i) {
      if (!read_anywhere(a[2] + i, out.subspan(i, 1))) {
        if (world_.is_recorded && may_be_mapped(a[2])) return unrecorded_memory(a[2]);
        std::memset(out.data(), 0, out.size());
        return error(EFAULT);
      }
      if (out[i] == std::byte{0}) return i + 1;
    }
    if (!out.empty()) out.back() = std::byte{0};
    return out.size();
  }
  if (read_anywhere(a[2], out)) return 0;
  if (world_.is_recorded && may_be_mapped(a[2])) return unrecorded_memory(a[2]);
  std::memset(out.data(), 0, out.size());
  return error(EFAULT);
}

Result<uint64_t> Interpreter::stack_helper(int32_t number, const Arguments& a) {
  const bool by_id = static_cast<Helper>(number) == Helper::get_stackid;
  const uint64_t flags = by_id ? a[2] : a[3];
  const bool is_user = (flags & kUserStackFlag) != 0;
  if (world_.is_recorded && !(is_user ? world_.has_user_stack : world_.has_kernel_stack))
    return is_user ? unrecorded("the user stack", "`espy record --ustack` records it")
                   : unrecorded("the kernel stack", "`espy record --kstack` records it");
  std::vector<uint64_t> all = is_user ? world_.user_stack : world_.kernel_stack;
  // Where no registers say where the event was, a stack begins with the program itself and with what ran it.
  const bool starts_here = program_.kind == program::ProgramKind::kRawTracepoint ||
                           program_.kind == program::ProgramKind::kTracingRawTracepoint;
  if (!is_user && starts_here && !all.empty()) all.insert(all.begin(), {kProgramAddress, kProgramAddress + 8});
  const size_t skip = std::min<size_t>(flags & kSkipMask, all.size());
  const std::span<const uint64_t> stack = std::span(all).subspan(skip);
  if (stack.empty()) return error(EFAULT);
  if (by_id) return static_cast<uint64_t>(TRY(map_of(a[1]))->stack_id(stack));
  const auto out = TRY(bytes(a[1], a[2], Access::kWrite, "get_stack"));
  const size_t size = std::min(out.size(), stack.size_bytes());
  std::memset(out.data(), 0, out.size());
  std::memcpy(out.data(), stack.data(), size);
  return size;
}

}  // namespace espy::simulator

// --follow is a map and three small programs. The map has a key for each process that the traced process, or one of the
// others in the map, has started: its id in the initial pid namespace, so that processes in containers are followed
// too. The processes of -p themselves have no keys: their ids are constants in the code.
//
//   sched_process_fork  adds a key, before the new process runs for the first time
//   sched_process_exit  of the last thread: sets the value to 0, so that espy stops waiting for the process
//   sched_process_free  removes the key; no probe can fire in the process any more
//
// If the id is reused before that, the new process would lose its key. That requires that all ids were assigned in
// between.
#include "lower/process_ids.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>

#include "base/byte_reader.h"
#include "lower/ir_functions.h"
#include "lower/mappings.h"

namespace espy::lower {
namespace {

using ir::BlockId;
using ir::Builder;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using kernel::Feature;

constexpr uint32_t kMaxProcesses = 65536;
constexpr uint64_t kAlive = 1;

ValueId key_of(Builder& ir, ValueId process) {
  const ValueId key = ir.slot(ir.add_slot(8, 8, "process"));
  ir.store(4, key, process);
  return key;
}

bool can_read(kernel::Kernel& kernel) {
  return kernel.has(Feature::kProbeReadKernel) || kernel.has(Feature::kRdonlyCastTyped);
}

// Reads 4 or 8 bytes of the kernel's memory. Requires can_read(). `type` is the struct at `base`.
ValueId read(Builder& ir, types::Types& types, kernel::Kernel& kernel, ValueId base, int64_t offset_bytes,
             std::string_view struct_name, uint8_t size_bytes) {
  const TypeId type = kernel.find_struct(types, std::string(struct_name));
  const auto location = type.valid() ? kernel.btf_location(types, type) : std::nullopt;
  if (!kernel.has(Feature::kProbeReadKernel) && kernel.has(Feature::kRdonlyCastTyped) && location) {
    const ValueId typed = ir.kfunc(*kernel.kfunc_id("bpf_rdonly_cast"), {base, ir.constant(location->btf_id)}, true);
    return ir.load(size_bytes, typed, offset_bytes);
  }
  const ValueId copy = ir.slot(ir.add_slot(8, 8, "member"));
  ir.call(Helper::probe_read_kernel, {copy, ir.constant(size_bytes), ir.binary(Op::k_add, base, offset_bytes)});
  return ir.load(size_bytes, copy);
}

// A member of 4 or 8 bytes of the struct at `base`. Uses a plain load if lockdown disables the helper that copies.
ValueId read_member(Builder& ir, types::Types& types, kernel::Kernel& kernel, ValueId base,
                    std::string_view struct_name, std::string_view name, uint8_t size_bytes) {
  return read(ir, types, kernel, base, std::max<int64_t>(member_offset(kernel, types, struct_name, name), 0),
              struct_name, size_bytes);
}

// Branches to `same` if the current process started when the wanted one did, else to `other`.
void compare_start(Builder& ir, ModuleContext& module, const spec::ProcessStart& start, BlockId same, BlockId other) {
  const int64_t leader_at = member_offset(module.kernel, module.types, "task_struct", "group_leader");
  const int64_t start_at = member_offset(module.kernel, module.types, "task_struct", "start_boottime");
  const bool has_typed_task = module.kernel.has(Feature::kGetCurrentTaskBtf);
  if (leader_at < 0 || start_at < 0 || (!has_typed_task && !can_read(module.kernel))) return ir.jump(same);
  ValueId started;
  if (has_typed_task) {
    started = ir.load(8, ir.load(8, ir.call(Helper::get_current_task_btf, {}), leader_at), start_at);
  } else {
    const ValueId leader =
        read(ir, module.types, module.kernel, ir.call(Helper::get_current_task, {}), leader_at, "task_struct", 8);
    started = read(ir, module.types, module.kernel, leader, start_at, "task_struct", 8);
  }
  const ValueId later = ir.binary(Op::k_sub, started, ir.constant(static_cast<int64_t>(start.earliest_ns)));
  ir.branch(Condition::ult, later, ir.constant(static_cast<int64_t>(start.precision_ns)), same, other);
}

// Adds a program on a raw tracepoint; `body` writes it.
class Follower {
 public:
  Follower(ModuleContext& module, std::string_view tracepoint, const std::function<void(Follower&)>& body)
      : module_(module), function_{.name = std::string(tracepoint)}, ir_(function_) {
    program_ = module.program.programs.add({.name = std::string(tracepoint)});
    ir_.enter(ir_.add_block("entry"));
    body(*this);
    ir_.ret(0);
    const ir::FunctionId id = module.ir.functions.add(std::move(function_));
    module.ir.units.push_back({program_, {id}});
    module.program.following.programs.emplace_back(tracepoint, program_);
  }

  Builder& ir() { return ir_; }
  ValueId map() { return ir_.map(module_.program.following.processes); }
  ValueId argument(uint32_t index) { return ir_.load(8, ir_.context(), index * 8); }

  ValueId member(ValueId base, std::string_view struct_name, std::string_view name, uint8_t size_bytes) {
    return read_member(ir_, module_.types, module_.kernel, base, struct_name, name, size_bytes);
  }

  void count_loss(program::LossKind kind, std::string_view what) { module_.count_loss(ir_, program_, kind, what); }

 private:
  ModuleContext& module_;
  ir::Function function_;
  Builder ir_;
  program::ProgramId program_;
};

}  // namespace

ValueId current_process(Builder& ir) { return ir.binary(Op::k_shr, ir.call(Helper::get_current_pid_tgid, {}), 32); }

// A task has an id in each namespace from the initial one to its own (struct pid), of which the helper compares the
// last only.
ValueId own_id(Builder& ir, types::Types& types, kernel::Kernel& kernel, const spec::PidNamespace& space,
               bool is_process) {
  constexpr int64_t kMostLevels = 32;  // MAX_PID_NS_LEVEL in include/linux/pid_namespace.h
  const ValueId ids = ir.slot(ir.add_slot(8, 8, "ids"));
  ir.call(Helper::get_ns_current_pid_tgid, {ir.constant(static_cast<int64_t>(space.device)),
                                            ir.constant(static_cast<int64_t>(space.inode)), ids, ir.constant(8)});
  const ValueId direct = ir.load(4, ids, is_process ? 4 : 0);
  const auto at = [&](std::string_view tag, std::string_view name) { return member_offset(kernel, types, tag, name); };
  const int64_t numbers = at("pid", "numbers"), level = at("pid", "level"), number = at("upid", "nr"),
                of_upid = at("upid", "ns"), common = at("pid_namespace", "ns"), inode = at("ns_common", "inum");
  if (std::min({numbers, level, number, of_upid, common, inode}) < 0 || !can_read(kernel)) return direct;
  const int64_t upid_bytes = types[kernel.find_struct(types, "upid")].size_bytes;
  const ValueId out = ir.slot(ir.add_variable("own_id"));
  ir.store(8, out, direct);
  when(ir, Condition::eq, direct, ir.constant(0), [&] {
    ValueId task = ir.call(Helper::get_current_task, {});
    if (is_process) task = read_member(ir, types, kernel, task, "task_struct", "group_leader", 8);
    const ValueId pid = read_member(ir, types, kernel, task, "task_struct", "thread_pid", 8);
    const ValueId depth = read(ir, types, kernel, pid, level, "pid", 4);
    ir.count_up(kMostLevels, [&](ValueId index, BlockId done) {
      const BlockId look = ir.add_block("look"), found = ir.add_block("found"), next = ir.add_block("next");
      ir.branch(Condition::ult, index, depth, look, done);
      ir.enter(look);
      const ValueId entry =
          ir.binary(Op::k_add, pid, ir.binary(Op::k_add, ir.binary(Op::k_mul, index, upid_bytes), numbers));
      const ValueId outer = read(ir, types, kernel, entry, of_upid, "upid", 8);
      const ValueId its_inode = read(ir, types, kernel, outer, common + inode, "pid_namespace", 4);
      ir.branch(Condition::eq, its_inode, ir.constant(static_cast<int64_t>(space.inode)), found, next);
      ir.enter(found);
      ir.store(8, out, read(ir, types, kernel, entry, number, "upid", 4));
      ir.jump(done);
      ir.enter(next);
    });
  });
  return ir.load(8, out);
}

ValueId has_wanted_name(Builder& ir, const spec::Config& config, ValueId name) {
  ValueId out;
  for (const std::string& wanted : config.tracee.thread_names) {
    std::array<std::byte, kTaskNameBytes> bytes = {};
    std::memcpy(bytes.data(), wanted.data(), std::min(wanted.size(), bytes.size() - 1));
    ValueId differs;
    for (int64_t at = 0; at < static_cast<int64_t>(kTaskNameBytes); at += 8) {
      const auto word = static_cast<int64_t>(load_le(bytes, static_cast<size_t>(at), 8));
      const ValueId difference = ir.binary(Op::k_xor, ir.load(8, name, at), ir.constant(word));
      differs = differs.valid() ? ir.binary(Op::k_or, differs, difference) : difference;
    }
    const ValueId is_wanted = ir.binary(Op::k_eq, differs, 0);
    out = out.valid() ? ir.binary(Op::k_or, out, is_wanted) : is_wanted;
  }
  return out;
}

ValueId current_name(Builder& ir) {
  const ValueId out = ir.slot(ir.add_slot(kTaskNameBytes, 8, "name"));
  // Kernels up to 6.1 stop writing at the word with the NUL.
  for (uint32_t at = 0; at < kTaskNameBytes; at += 8) ir.store(8, out, ir.constant(0), at);
  ir.call(Helper::get_current_comm, {out, ir.constant(kTaskNameBytes)});
  return out;
}

void skip_other_names(Builder& ir, ModuleContext& module) {
  if (module.checked.config.tracee.thread_names.empty()) return;
  end_program_if(ir, Condition::eq, has_wanted_name(ir, module.checked.config, current_name(ir)), 0);
}

// The helper returns 1 for the tasks of the group in the map, and of all groups below it; it takes 10 ns, where
// bpf_get_current_ancestor_cgroup_id() takes 27.
void skip_other_tasks(Builder& ir, ModuleContext& module) {
  if (const MapId group = module.program.cgroup; group.valid())
    end_program_if(ir, Condition::ne, ir.call(Helper::current_task_under_cgroup, {ir.map(group), ir.constant(0)}), 1);
  skip_other_names(ir, module);
  skip_other_processes(ir, module);
}

// Another process can have got the number since the wanted one ended.
void skip_other_processes(Builder& ir, ModuleContext& module) {
  const spec::Config& config = module.checked.config;
  const std::vector<spec::TracedProcess> only = config.tracee.only_processes();
  if (only.empty()) return;
  const BlockId other = ir.add_block("other_process");
  const BlockId same = ir.add_block("same_process");
  const MapId started = module.program.following.processes;
  const BlockId maybe = started.valid() ? ir.add_block("maybe_started") : other;
  const ValueId id = config.tracee.pid_namespace
                         ? own_id(ir, module.types, module.kernel, *config.tracee.pid_namespace, true)
                         : current_process(ir);
  for (size_t i = 0; i < only.size(); ++i) {
    const BlockId numbered = only[i].start ? ir.add_block("same_number") : same;
    const BlockId next = i + 1 < only.size() ? ir.add_block("next_process") : maybe;
    ir.branch(Condition::eq, id, only[i].pid, numbered, next);
    if (only[i].start) {
      ir.enter(numbered);
      compare_start(ir, module, *only[i].start, same, maybe);
    }
    if (next != maybe) ir.enter(next);
  }
  if (started.valid()) {
    ir.enter(maybe);
    const ValueId found = ir.call(Helper::map_lookup_elem, {ir.map(started), key_of(ir, current_process(ir))});
    ir.branch(Condition::ne, found, 0, same, other);
  }
  end_program_in(ir, other, same);
}

void add_cgroup_map(ModuleContext& module) {
  if (const auto& group = module.checked.config.tracee.cgroup)
    module.program.cgroup = module.program.maps.add(
        {.name = "cgroup", .kind = program::MapKind::kCgroupArray, .value_size = 4, .cgroup = group->path});
}

void add_followed_map(ModuleContext& module) {
  if (!module.checked.config.tracee.follows) return;
  module.program.following.processes =
      module.program.maps.add({.name = "processes", .kind = program::MapKind::kHash, .max_entries = kMaxProcesses});
}

void add_followers(ModuleContext& module) {
  if (!module.checked.config.tracee.follows) return;
  // The program that removes keys is attached before the one that adds them, so that no key stays for ever.
  const Follower free(module, "sched_process_free", [](Follower& f) {  // (task)
    const ValueId process = f.member(f.argument(0), "task_struct", "tgid", 4);
    end_program_if(f.ir(), Condition::ne, process, f.member(f.argument(0), "task_struct", "pid", 4));
    f.ir().call(Helper::map_delete_elem, {f.map(), key_of(f.ir(), process)});
  });
  const Follower exit(module, "sched_process_exit", [](Follower& f) {  // (task)
    const ValueId task = f.argument(0);
    const ValueId process = f.member(task, "task_struct", "tgid", 4);
    const ValueId found = f.ir().call(Helper::map_lookup_elem, {f.map(), key_of(f.ir(), process)});
    end_program_if(f.ir(), Condition::eq, found, 0);
    const ValueId threads = f.member(f.member(task, "task_struct", "signal", 8), "signal_struct", "live", 4);
    end_program_if(f.ir(), Condition::ne, threads, 0);
    f.ir().store(8, found, f.ir().constant(0));
  });
  const Follower fork(module, "sched_process_fork", [&](Follower& f) {  // (parent, child), in the parent
    skip_other_processes(f.ir(), module);
    const ValueId started = f.member(f.argument(1), "task_struct", "tgid", 4);
    end_program_if(f.ir(), Condition::eq, started, current_process(f.ir()));  // it is a thread
    const ValueId alive = f.ir().slot(f.ir().add_slot(8, 8, "alive"));
    f.ir().store(8, alive, f.ir().constant(kAlive));
    const ValueId failed =
        f.ir().call(Helper::map_update_elem, {f.map(), key_of(f.ir(), started), alive, f.ir().constant(0)});
    end_program_if(f.ir(), Condition::eq, failed, 0);
    f.count_loss(program::LossKind::kUpdate, "new process(es) lost: too many processes were followed at a time");
  });
}

void add_first_thread_watch(ModuleContext& module) {
  constexpr int64_t kSignalGroupExit = 4;  // SIGNAL_GROUP_EXIT in include/linux/sched/signal.h
  const auto is_user_probe = [](const program::BpfProgram& each) { return each.hook == program::Hook::kUserFunction; };
  if (!module.checked.config.tracee.only_process_for_kernel() ||
      std::ranges::none_of(module.program.programs, is_user_probe))
    return;
  if (!can_read(module.kernel) || !module.kernel.find_struct(module.types, "task_struct").valid()) return;
  const Follower exit(module, "sched_process_exit", [&](Follower& f) {  // (task)
    skip_other_processes(f.ir(), module);
    const ValueId ids = f.ir().call(Helper::get_current_pid_tgid, {});
    const ValueId thread = f.ir().binary(Op::k_and, ids, 0xffffffff);
    end_program_if(f.ir(), Condition::ne, thread, f.ir().binary(Op::k_shr, ids, 32));
    const ValueId signal = f.member(f.argument(0), "task_struct", "signal", 8);
    end_program_if(f.ir(), Condition::eq, f.member(signal, "signal_struct", "live", 4), 0);
    const ValueId flags = f.member(signal, "signal_struct", "flags", 4);
    end_program_if(f.ir(), Condition::ne, f.ir().binary(Op::k_and, flags, kSignalGroupExit), 0);
    f.count_loss(
        program::LossKind::kMissed,
        "process(es) lost: the first thread of the -p process ended, or another thread executed a program, and "
        "user probes see no later events (--follow sees them)");
  });
}

}  // namespace espy::lower

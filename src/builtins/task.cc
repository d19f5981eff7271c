// The current task, in whose context the probe fired, and the machine that it runs on.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "builtins/builtin_support.h"
#include "lower/mappings.h"
#include "lower/process_ids.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using spec::BuiltinKind;
using spec::CallSite;
using types::AddressSpace;
using types::Kind;
using types::TypeId;

constexpr uint32_t kCommBytes = 16;  // TASK_COMM_LEN

Operand uint32_operand(Lowering& lowering, ValueId value) {
  return lowering.scalar_operand(lowering.types().int_type(4, false), value);
}

// Splits a helper's result into two 32-bit numbers: bpf_get_current_pid_tgid() has the tgid in the upper half, the
// thread id in the lower one.
Operand half(Lowering& lowering, ValueId both, bool is_high) {
  ir::Builder& ir = lowering.ir();
  return uint32_operand(lowering, is_high ? ir.binary(Op::k_shr, both, 32) : ir.unary(Op::k_zext32, both));
}

// Warns that espy runs an iterator that is not pinned, so that the value would describe espy.
TypeId check_current(Checker& checker, const CallSite& call) {
  const bool has_task = checker.unit().context.kind == program::ProgramKind::kIter && checker.unit().context.task;
  if (!has_task || !call.arguments.empty() || !checker.first_probe().target.empty()) return {};
  const auto* name = checker.ast().get<syntax::Name>(call.expr);
  checker.warning("task-of-reader", call.span,
                  fmt::format("espy itself reads {}, so `{}` describes espy", checker.first_probe().name,
                              name != nullptr ? name->name : "it"),
                  "`ctx.task` is the task of the object, with `ctx.task.comm`; its process is `ctx.task.tgid`");
  return {};
}

// ---- pid, tid: in the pid namespace of espy -------------------------------------------------------------------------
//
// The helper returns the ids of the initial namespace. In a container, the user expects the ids that `ps` shows there.
// A process outside of espy's namespace and the namespaces below it has no id there and is shown as 0.

using OwnNamespace = std::optional<spec::PidNamespace>;

TypeId check_namespace(Checker& checker, const CallSite& call) {
  check_current(checker, call);
  if (!call.arguments.empty()) {
    const std::vector<std::string> words = {"curr_ns", "init"};
    const auto word = checker.text(call.arguments[0]);
    if (word && std::ranges::find(words, *word) == words.end())
      checker.error("unknown-namespace", checker.ast()[call.arguments[0]].span,
                    "no pid namespace is named `" + *word + "`", suggestion(*word, words));
  }
  return checker.types().int_type(4, false);
}

// ---- Members of the current task, by plain loads --------------------------------------------------------------------
//
// A helper call takes about 9 ns. bpf_get_current_task_btf() returns a typed pointer, through which the verifier allows
// plain loads; loading `comm` by words takes 1 ns instead of 9.5. Names are map keys, so the bytes after the NUL must
// be zeros: __set_task_comm() pads them since 5.17, the release that also added bpf_loop, which serves as the test. The
// pointer is itself the result of a helper, so `pid` and `tid` use it only if `comm` needs it anyway.

std::optional<uint32_t> task_offset_bytes(Lowering& lowering, std::string_view member, uint32_t size_bytes) {
  kernel::Kernel& kernel = lowering.kernel();
  if (!kernel.has(kernel::Feature::kGetCurrentTaskBtf) || !kernel.has(kernel::Feature::kBpfLoop)) return std::nullopt;
  const TypeId task = kernel.find_struct(lowering.types(), "task_struct");
  if (!task.valid()) return std::nullopt;
  kernel.complete(lowering.types(), task);
  const auto found = types::find_member(lowering.types(), task, member);
  if (!found || lowering.types()[found->type].size_bytes != size_bytes) return std::nullopt;
  return found->offset_bits / 8;
}

Operand lower_comm(Lowering& lowering, const CallSite& call);

Operand id_in(Lowering& lowering, const OwnNamespace& own, bool is_process, bool has_task) {
  ir::Builder& ir = lowering.ir();
  if (!own) {
    const auto offset = has_task ? task_offset_bytes(lowering, is_process ? "tgid" : "pid", 4) : std::nullopt;
    if (!offset) return half(lowering, ir.call(Helper::get_current_pid_tgid, {}), is_process);
    return uint32_operand(lowering, ir.load(4, ir.call(Helper::get_current_task_btf, {}), *offset));
  }
  return uint32_operand(lowering, lower::own_id(ir, lowering.types(), lowering.kernel(), *own, is_process));
}

template <bool kIsProcess>
Operand lower_id(Lowering& lowering, const CallSite& call) {
  const bool wants_init = !call.arguments.empty() && lowering.text(call.arguments[0]) == "init";
  const OwnNamespace own = wants_init ? std::nullopt : lowering.checked().config.tracee.pid_namespace;
  return id_in(lowering, own, kIsProcess, lowering.calls(lower_comm));
}

template <bool kIsGroup>
Operand lower_user(Lowering& lowering, const CallSite&) {
  return half(lowering, lowering.ir().call(Helper::get_current_uid_gid, {}), kIsGroup);
}

Operand lower_username(Lowering& lowering, const CallSite& call) {
  return lowering.scalar_operand(lowering.types().simple(Kind::kUsername), lower_user<false>(lowering, call).value);
}

// ---- comm -----------------------------------------------------------------------------------------------------------

// comm(pid) needs bpf_task_from_pid() (Linux 6.2), which only some program types may call.
bool can_look_up(program::ProgramKind kind) {
  return kind != program::ProgramKind::kRawTracepoint && kind != program::ProgramKind::kKprobe;
}

TypeId check_comm(Checker& checker, const CallSite& call) {
  check_current(checker, call);
  if (!call.arguments.empty()) {
    const bool has_kfuncs =
        checker.kernel().kfunc_id("bpf_task_from_pid") && checker.kernel().kfunc_id("bpf_task_release");
    const bool is_allowed = can_look_up(checker.unit().context.kind);
    if (!has_kfuncs || !is_allowed)
      checker.error(
          "comm-of-pid", call.span,
          has_kfuncs ? "the kernel does not allow `" + checker.first_probe().provider + "` probes to look up a process"
                     : "this kernel lacks `bpf_task_from_pid`, which `comm(pid)` needs",
          "store `comm` in a map by pid, at a probe that runs in that process");
  }
  return checker.types().string(kCommBytes);
}

// Emits the name of the process with this id, "" if there is none. The kfunc takes a reference to the task, which must
// be released.
ValueId comm_of_pid(Lowering& lowering, syntax::ExprId pid, ValueId destination, uint32_t capacity_bytes) {
  ir::Builder& ir = lowering.ir();
  kernel::Kernel& kernel = lowering.kernel();
  const uint32_t size = std::min(capacity_bytes, kCommBytes);
  lowering.zero(destination, size);
  const ValueId task = ir.kfunc(*kernel.kfunc_id("bpf_task_from_pid"), {lowering.scalar(pid)});
  lowering.when(Condition::ne, task, ir.constant(0), [&] {
    const TypeId type = kernel.find_struct(lowering.types(), "task_struct");
    const Operand name = kernel_member(lowering, task, type, {"comm"});
    ir.call(Helper::probe_read_kernel_str, {destination, ir.constant(size), name.value});
    ir.kfunc(*kernel.kfunc_id("bpf_task_release"), {task});
  });
  return ir.constant(kCommBytes - 1);
}

ValueId lower_comm_into(Lowering& lowering, const CallSite& call, ValueId destination, uint32_t capacity_bytes) {
  if (!call.arguments.empty()) return comm_of_pid(lowering, call.arguments[0], destination, capacity_bytes);
  ir::Builder& ir = lowering.ir();
  const auto offset = task_offset_bytes(lowering, "comm", kCommBytes);
  if (offset && capacity_bytes >= kCommBytes) {
    const ValueId task = ir.call(Helper::get_current_task_btf, {});
    for (uint32_t at = 0; at < kCommBytes; at += 8) {  // `store` handles the alignment of keys
      const ValueId place = at ? ir.binary(Op::k_add, destination, at) : destination;
      lowering.store(place, lowering.scalar_operand(lowering.types().uint64(), ir.load(8, task, *offset + at)));
    }
  } else {
    // Older kernels (6.1) stop writing at the word with the NUL, but map keys must be zero-padded.
    lowering.zero(destination, std::min(capacity_bytes, kCommBytes));
    ir.call(Helper::get_current_comm, {destination, ir.constant(std::min(capacity_bytes, kCommBytes))});
  }
  return ir.constant(kCommBytes - 1);
}

Operand lower_comm(Lowering& lowering, const CallSite& call) {
  Operand out{lowering.types().string(kCommBytes), lowering.memory(kCommBytes, "comm"), true};
  lower_comm_into(lowering, call, out.value, kCommBytes);
  return out;
}

// ---- Parent and group leader, of the current task or of the one given -----------------------------------------------

Operand task_member(Lowering& lowering, const CallSite& call, std::initializer_list<std::string_view> path) {
  const TypeId task = lowering.kernel().find_struct(lowering.types(), "task_struct");
  const ValueId base =
      call.arguments.empty() ? lowering.ir().call(Helper::get_current_task, {}) : lowering.scalar(call.arguments[0]);
  if (!task.valid()) return lowering.scalar_operand(lowering.types().int64(), lowering.ir().constant(0));
  return kernel_member(lowering, base, task, path);
}

// Recordings and scripts may describe a part of the struct.
TypeId check_task_id(Checker& checker, const CallSite& call) {
  check_current(checker, call);
  types::Types& types = checker.types();
  const TypeId task = checker.kernel().find_struct(types, "task_struct");
  if (task.valid()) checker.kernel().complete(types, task);
  const auto has = [&](std::string_view name) { return types::find_member(types, task, name).has_value(); };
  if (!task.valid() || !has("real_parent") || !has("group_leader") || !has("tgid") || !has("pid") || !has("comm"))
    checker.error("no-btf", call.span, "this needs the type information of the kernel (BTF)");
  return checker.types().int_type(4, false);
}

TypeId check_task_comm(Checker& checker, const CallSite& call) {
  check_task_id(checker, call);
  return checker.types().string(kCommBytes);
}

Operand lower_ppid(Lowering& lowering, const CallSite& call) {
  const Operand found = task_member(lowering, call, {"real_parent", "tgid"});
  return uint32_operand(lowering, lowering.ir().unary(Op::k_zext32, found.value));
}

Operand lower_leader_tid(Lowering& lowering, const CallSite& call) {
  const Operand found = task_member(lowering, call, {"group_leader", "pid"});
  return uint32_operand(lowering, lowering.ir().unary(Op::k_zext32, found.value));
}

Operand lower_name_of(Lowering& lowering, const CallSite& call, std::string_view member) {
  Operand found = task_member(lowering, call, {member, "comm"});
  found.type = lowering.types().string(kCommBytes);
  return lowering.in_our_memory(found);
}

Operand lower_pcomm(Lowering& lowering, const CallSite& call) { return lower_name_of(lowering, call, "real_parent"); }
Operand lower_leader_comm(Lowering& lowering, const CallSite& call) {
  return lower_name_of(lowering, call, "group_leader");
}

TypeId check_curtask(Checker& checker, const CallSite&) {
  types::Types& types = checker.types();
  const TypeId task = checker.kernel().find_struct(types, "task_struct");
  return task.valid() ? types.pointer(task, AddressSpace::kKernel) : types.uint64();
}

Operand lower_curtask(Lowering& lowering, const CallSite& call) {
  return lowering.scalar_operand(lowering.type(call.expr), lowering.ir().call(Helper::get_current_task, {}));
}

// ---- The child of -c

TypeId check_cpid(Checker& checker, const CallSite& call) {
  if (!checker.config().tracee.has_child)
    checker.warning("no-child", call.span, "`cpid` is the process started by -c, which is not given: it is 0",
                    "test `has_cpid` first");
  checker.fold(call.expr, int64_t{checker.config().tracee.has_child ? checker.config().tracee.child_pid : 0});
  return checker.types().int_type(4, false);
}

TypeId check_has_cpid(Checker& checker, const CallSite& call) {
  checker.fold(call.expr, int64_t{checker.config().tracee.has_child});
  return checker.types().bool_type();
}

// ---- The filters of the command line

bool has_filter(const spec::Config& config) {
  return !config.tracee.only_processes().empty() || !config.tracee.thread_names.empty() || config.tracee.cgroup;
}

// The id of the group of --cgroup is the number of its directory.
std::optional<int64_t> id_of_group(const spec::Config& config) {
  struct stat found = {};
  if (!config.tracee.cgroup || ::stat(config.tracee.cgroup->path.c_str(), &found) != 0) return std::nullopt;
  return static_cast<int64_t>(found.st_ino);
}

// Where the kernel keeps the groups above a group, and the group itself.
struct GroupOffsets {
  int64_t level, ids, pointers, node, id;
  GroupOffsets(kernel::Kernel& kernel, types::Types& types) {
    const auto at = [&](std::string_view tag, std::string_view name) {
      return lower::member_offset(kernel, types, tag, name);
    };
    level = at("cgroup", "level");
    ids = at("cgroup", "ancestor_ids");    // before Linux 6.1
    pointers = at("cgroup", "ancestors");  // since then
    node = at("cgroup", "kn");
    id = at("kernfs_node", "id");
  }
  bool are_known() const { return level >= 0 && (ids >= 0 || (pointers >= 0 && node >= 0 && id >= 0)); }
};

TypeId check_traced(Checker& checker, const CallSite& call) {
  checker.act_in_all_tasks();
  const spec::Config& config = checker.config();
  if (!has_filter(config)) checker.fold(call.expr, int64_t{1});
  if (!has_filter(config) || call.arguments.empty()) return checker.types().bool_type();
  check_task_id(checker, call);
  if (config.tracee.pid_namespace && !config.tracee.only_processes().empty())
    checker.error("traced-in-namespace", call.span, "cannot find the process of another task in a pid namespace",
                  "run espy in the initial pid namespace");
  if (config.tracee.cgroup && (!id_of_group(config) || !GroupOffsets(checker.kernel(), checker.types()).are_known()))
    checker.error("traced-in-group", call.span, "cannot find the control group of another task here");
  return checker.types().bool_type();
}

ValueId is_in_group(Lowering& lowering, ValueId task) {
  constexpr int64_t kMostLevels = 32;
  ir::Builder& ir = lowering.ir();
  const GroupOffsets at(lowering.kernel(), lowering.types());
  const int64_t wanted = id_of_group(lowering.checked().config).value_or(0);
  const auto read = [&](ValueId base, int64_t offset, uint8_t size_bytes) {
    return lowering.read_scalar(base, offset, size_bytes, false, AddressSpace::kKernel);
  };
  const TypeId type = lowering.kernel().find_struct(lowering.types(), "task_struct");
  const ValueId group = kernel_member(lowering, task, type, {"cgroups", "dfl_cgrp"}).value;
  const ValueId first = ir.binary(Op::k_add, group, at.ids >= 0 ? at.ids : at.pointers);
  const ValueId level = read(group, at.level, 4);
  const ValueId out = ir.slot(ir.add_variable("is_in_group"));
  ir.store(8, out, ir.constant(0));
  ir.count_up(kMostLevels, [&](ValueId index, ir::BlockId done) {
    const ir::BlockId look = ir.add_block("look"), found = ir.add_block("found"), next = ir.add_block("next");
    ir.branch(Condition::ult, level, index, done, look);
    ir.enter(look);
    const ValueId above = read(ir.binary(Op::k_add, first, ir.binary(Op::k_shl, index, 3)), 0, 8);
    const ValueId id = at.ids >= 0 ? above : read(read(above, at.node, 8), at.id, 8);
    ir.branch(Condition::eq, id, ir.constant(wanted), found, next);
    ir.enter(found);
    ir.store(8, out, ir.constant(1));
    ir.jump(done);
    ir.enter(next);
  });
  return ir.load(8, out);
}

ValueId is_started(Lowering& lowering, ValueId process) {
  ir::Builder& ir = lowering.ir();
  const ValueId key = ir.slot(ir.add_slot(8, 8, "process"));
  ir.store(4, key, process);
  const ValueId found = ir.call(Helper::map_lookup_elem, {ir.map(lowering.program().following.processes), key});
  return lowering.select(
      Condition::ne, found, ir.constant(0), [&] { return ir.constant(1); }, [&] { return ir.constant(0); });
}

ValueId is_in_processes(Lowering& lowering, ValueId task, const std::vector<spec::TracedProcess>& only) {
  ir::Builder& ir = lowering.ir();
  const auto& space = lowering.checked().config.tracee.pid_namespace;
  const TypeId type = lowering.kernel().find_struct(lowering.types(), "task_struct");
  const ValueId process = task.valid() ? ir.unary(Op::k_zext32, kernel_member(lowering, task, type, {"tgid"}).value)
                                       : lower::current_process(ir);
  const ValueId numbered =
      space && !task.valid() ? lower::own_id(ir, lowering.types(), lowering.kernel(), *space, true) : process;
  ValueId started;  // read once
  ValueId is_only = ir.constant(0);
  for (const spec::TracedProcess& wanted : only) {
    ValueId is_this = ir.binary(Op::k_eq, numbered, int64_t{wanted.pid});
    if (wanted.start && !started.valid())
      started = task.valid() ? kernel_member(lowering, task, type, {"group_leader", "start_boottime"}).value
                             : lowering.current_task_field({"group_leader", "start_boottime"});
    if (wanted.start) {
      const ValueId later = ir.binary(Op::k_sub, started, static_cast<int64_t>(wanted.start->earliest_ns));
      const ValueId is_then = ir.binary(Op::k_ult, later, static_cast<int64_t>(wanted.start->precision_ns));
      is_this = ir.binary(Op::k_and, is_this, is_then);
    }
    is_only = ir.binary(Op::k_or, is_only, is_this);
  }
  if (!lowering.program().following.processes.valid()) return is_only;
  return ir.binary(Op::k_or, is_only, is_started(lowering, process));
}

// The name of another task may have more than zeros after its end.
ValueId is_named(Lowering& lowering, ValueId task) {
  ir::Builder& ir = lowering.ir();
  if (!task.valid()) return lower::has_wanted_name(ir, lowering.checked().config, lower::current_name(ir));
  const TypeId type = lowering.kernel().find_struct(lowering.types(), "task_struct");
  const ValueId name = ir.slot(ir.add_slot(lower::kTaskNameBytes, 8, "name"));
  for (uint32_t at = 0; at < lower::kTaskNameBytes; at += 8) ir.store(8, name, ir.constant(0), at);
  ir.call(Helper::probe_read_kernel_str,
          {name, ir.constant(lower::kTaskNameBytes), kernel_member(lowering, task, type, {"comm"}).value});
  return lower::has_wanted_name(ir, lowering.checked().config, name);
}

Operand lower_traced(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ValueId task = call.arguments.empty() ? ValueId() : lowering.scalar(call.arguments[0]);
  ValueId out = ir.constant(1);
  if (const program::MapId group = lowering.program().cgroup; group.valid()) {
    const auto current = [&] {
      return ir.binary(Op::k_eq, ir.call(Helper::current_task_under_cgroup, {ir.map(group), ir.constant(0)}), 1);
    };
    out = ir.binary(Op::k_and, out, task.valid() ? is_in_group(lowering, task) : current());
  }
  if (!lowering.checked().config.tracee.thread_names.empty()) out = ir.binary(Op::k_and, out, is_named(lowering, task));
  const std::vector<spec::TracedProcess> only = lowering.checked().config.tracee.only_processes();
  if (!only.empty()) out = ir.binary(Op::k_and, out, is_in_processes(lowering, task, only));
  return lowering.scalar_operand(lowering.types().bool_type(), out);
}

// ---- The machine

Operand lower_cpu(Lowering& lowering, const CallSite&) { return uint32_operand(lowering, lowering.cpu()); }

TypeId check_ncpus(Checker& checker, const CallSite& call) {
  checker.fold(call.expr, int64_t{checker.kernel().cpu_count()});
  return checker.types().int_type(4, false);
}

template <Helper kHelper>
Operand lower_helper32(Lowering& lowering, const CallSite&) {
  return uint32_operand(lowering, lowering.ir().unary(Op::k_zext32, lowering.ir().call(kHelper, {})));
}

Operand lower_cgroup(Lowering& lowering, const CallSite&) {
  return lowering.scalar_operand(lowering.types().uint64(), lowering.ir().call(Helper::get_current_cgroup_id, {}));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "uint32 pid(literal string namespace = \"curr_ns\")",
     .doc = "The process id, in espy's own pid namespace (`curr_ns`) or in the initial one (`init`).",
     .kind = BuiltinKind::kVariable,
     .check = check_namespace,
     .lower = lower_id<true>,
     .example = "begin { if (pid > 0 && pid(init) > 0) { print(\"a process\"); } }"},
    {.sig = "uint32 tid(literal string namespace = \"curr_ns\")",
     .doc = "The thread id, in the namespaces of `pid`.",
     .kind = BuiltinKind::kVariable,
     .check = check_namespace,
     .lower = lower_id<false>,
     .example = "begin { if (tid > 0) { print(\"a thread\"); } }"},
    {.sig = "uint32 uid",
     .doc = "The user id.",
     .kind = BuiltinKind::kVariable,
     .check = check_current,
     .lower = lower_user<false>,
     .example = "begin { print(uid); }"},
    {.sig = "uint32 gid",
     .doc = "The group id.",
     .kind = BuiltinKind::kVariable,
     .check = check_current,
     .lower = lower_user<true>,
     .example = "begin { print(gid); }"},
    {.sig = "username username",
     .doc = "The name of the user, looked up when it is printed.",
     .kind = BuiltinKind::kVariable,
     .check = check_current,
     .lower = lower_username,
     .example = "begin { print(username); }"},
    {.sig = "any comm(int pid = 0)",
     .doc = "The name of the thread, at most 15 bytes; with an argument, the name of the process with that id, or an "
            "empty string.",
     .kind = BuiltinKind::kVariable,
     .check = check_comm,
     .lower = lower_comm,
     .lower_into = lower_comm_into,
     .kept = spec::Kept::kWithArguments,
     .example = "begin { print(comm); }"},
    {.sig = "any pcomm(struct task_struct *task = curtask)",
     .doc = "The name of the parent process.",
     .kind = BuiltinKind::kVariable,
     .check = check_task_comm,
     .lower = lower_pcomm,
     .kept = spec::Kept::kWithArguments,
     .is_in_recordings = true,
     .example = "begin { print(pcomm); }"},
    {.sig = "any ppid(struct task_struct *task = curtask)",
     .doc = "The id of the parent process.",
     .kind = BuiltinKind::kVariable,
     .check = check_task_id,
     .lower = lower_ppid,
     .kept = spec::Kept::kWithArguments,
     .is_in_recordings = true,
     .example = "begin { if (ppid > 0) { print(\"has a parent\"); } }"},
    {.sig = "any traced(struct task_struct *task = curtask)",
     .doc = "Whether a task is one of those to which `-p`, `--follow`, `--comm` and `--cgroup` limit the probes: the "
            "current one, or `task`. True without these options. The probes of a script that asks act in all tasks.",
     .kind = BuiltinKind::kVariable,
     .check = check_traced,
     .lower = lower_traced,
     .example = "tracepoint:sched:sched_switch { if (traced) { @left = count(); exit(); } }"},
    {.sig = "any leader_comm(struct task_struct *task = curtask)",
     .doc = "The name of the process's first thread.",
     .kind = BuiltinKind::kVariable,
     .check = check_task_comm,
     .lower = lower_leader_comm,
     .kept = spec::Kept::kYes,
     .is_in_recordings = true,
     .example = "begin { print(leader_comm); }"},
    {.sig = "any leader_tid(struct task_struct *task = curtask)",
     .doc = "The thread id of the process's first thread.",
     .kind = BuiltinKind::kVariable,
     .check = check_task_id,
     .lower = lower_leader_tid,
     .kept = spec::Kept::kYes,
     .is_in_recordings = true,
     .example = "begin { if (leader_tid == pid) { print(\"of course\"); } }"},
    {.sig = "any cpid",
     .doc = "The id of the process that runs the command of `-c`.",
     .kind = BuiltinKind::kVariable,
     .check = check_cpid},
    {.sig = "any has_cpid",
     .doc = "True if a command was given with `-c`.",
     .kind = BuiltinKind::kVariable,
     .check = check_has_cpid,
     .example = "begin { print(has_cpid); }"},
    {.sig = "any curtask",
     .doc = "The current task, as a `struct task_struct *`.",
     .kind = BuiltinKind::kVariable,
     .check = check_curtask,
     .lower = lower_curtask,
     .kept = spec::Kept::kYes,
     .is_in_recordings = true,
     .example = "begin { print(curtask->comm); }"},
    {.sig = "uint64 cgroup",
     .doc = "The id of the control group (version 2) of the current task.",
     .kind = BuiltinKind::kVariable,
     .check = check_current,
     .lower = lower_cgroup,
     .example = "begin { if (cgroup > 0) { print(\"in a group\"); } }"},
    {.sig = "uint32 cpu",
     .doc = "The CPU that the probe fired on.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_cpu,
     .example = "begin { if (cpu < ncpus) { print(\"of course\"); } }"},
    {.sig = "any ncpus",
     .doc = "The number of possible CPUs.",
     .kind = BuiltinKind::kVariable,
     .check = check_ncpus,
     .example = "begin { if (ncpus > 0) { print(\"of course\"); } }"},
    {.sig = "uint32 numaid",
     .doc = "The NUMA node of the CPU that the probe fired on.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_helper32<Helper::get_numa_node_id>,
     .kept = spec::Kept::kYes,
     .example = "begin { print(numaid); }"},
    {.sig = "uint32 rand",
     .doc = "A random number.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_helper32<Helper::get_prandom_u32>,
     .kept = spec::Kept::kYes,
     .example = "begin { if (rand != rand) { print(\"twice\"); } }"},
};

}  // namespace

CurrentTask current_task(Lowering& lowering) {
  const OwnNamespace& own = lowering.checked().config.tracee.pid_namespace;
  return {id_in(lowering, own, true, true), id_in(lowering, own, false, true), lower_comm(lowering, {})};
}

extern const spec::BuiltinFamily kTask = {.title = "Tasks and processes", .rows = kRows};

}  // namespace espy::builtins

// kstack and ustack. In BPF a stack is an id; user space looks up its frames and their names when it prints the stack.
//
// Kernel stacks, and user stacks with frame pointers, are captured by bpf_get_stackid(), which keeps one stack for each
// hash, or by their content if another stack has the place (program::StackMaps). User stacks without frame pointers are
// unwound by tables (unwind.cc).
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>

#include "builtins/builtin_support.h"
#include "builtins/unwind_frame.h"
#include "recording/recording.h"
#include "runtime/handler_context.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using runtime::EventRecord;
using spec::BuiltinKind;
using spec::CallSite;
using types::StackMode;
using types::TypeId;

constexpr uint32_t kDefaultFrames = 127;
constexpr int64_t kMaxFrames = 1024;

struct ModeRow {
  std::string_view word;
  StackMode mode;
};
constexpr ModeRow kModes[] = {
    {"bpftrace", StackMode::kBpftrace},
    {"perf", StackMode::kPerf},
    {"raw", StackMode::kRaw},
    {"build_id", StackMode::kBuildId},
};

// An iterator runs in the process that reads it, whose stack tells nothing of the object.
void check_stack_of_object(Checker& checker, const CallSite& call, bool is_user) {
  const spec::ProbeContext& context = checker.unit().context;
  if (context.kind != program::ProgramKind::kIter) return;
  const std::string name = is_user ? "ustack" : "kstack";
  const std::string probe = checker.first_probe().name;
  if (!context.task)
    checker.error("stack-of-reader", call.span,
                  fmt::format("`{}` would be the stack of the process that reads {}, because its objects are not tasks",
                              name, probe),
                  "`iter:task`, `iter:task_file` and `iter:task_vma` have the stacks of their tasks");
  else if (is_user)
    checker.error(
        "stack-of-other", call.span,
        fmt::format("`{}` is not known in {}: the kernel does not walk the user stack of another task", name, probe),
        "a `profile` probe has the user stacks of the tasks that run");
  else if (!checker.kernel().has(kernel::Feature::kHashAllocation))
    checker.error("kernel-lacks", call.span,
                  kernel::missing_feature(kernel::Feature::kHashAllocation, "`kstack` of an iterator"));
}

// `ctx.task` of an iterator: the task whose stack it has anyway. Reports other values.
bool is_task_of_object(Checker& checker, const CallSite& call, syntax::ExprId argument, std::string_view name) {
  const auto* access = checker.ast().get<syntax::Access>(argument);
  const auto* base = access != nullptr ? checker.ast().get<syntax::Name>(access->base) : nullptr;
  if (checker.unit().context.task && base != nullptr && base->name == "ctx" && access->name == "task") return true;
  const types::Type& type = checker.types()[checker.type(argument)];
  const bool is_task = type.kind == types::Kind::kPointer && checker.types()[type.element].name == "task_struct";
  const source::Span span = checker.ast()[argument].span;
  if (is_task)
    checker.error(
        "stack-of-other", span,
        fmt::format("`{}` shows the stack of the current task, or of `ctx.task` in iterators over tasks", name),
        "iter:task { print(kstack(ctx.task)); }");
  else if (call.arguments[0] == argument)
    checker.error("not-constant", span, fmt::format("`{}`'s first argument must be a constant", name));
  return false;
}

// `kstack($1)` without the parameter is `kstack`.
bool is_parameter_not_given(Checker& checker, syntax::ExprId argument) {
  const auto* parameter = checker.ast().get<syntax::Positional>(argument);
  return parameter != nullptr && parameter->index > checker.config().arguments.positional.size();
}

// Accepts (mode), (frames) and (mode, frames); for the mode also (task).
template <bool kIsUser>
TypeId check_stack(Checker& checker, const CallSite& call) {
  check_stack_of_object(checker, call, kIsUser);
  StackMode mode = checker.config().symbols.stack_mode;
  uint32_t frames = kDefaultFrames;
  bool has_task = false;
  for (const syntax::ExprId argument : call.arguments) {
    const source::Span span = checker.ast()[argument].span;
    if (const auto word = checker.text(argument)) {
      const auto row = std::ranges::find(kModes, *word, &ModeRow::word);
      if (row == std::end(kModes) || (row->mode == StackMode::kBuildId && !kIsUser)) {
        std::vector<std::string> words = {"bpftrace", "perf", "raw"};
        if (kIsUser) words.emplace_back("build_id");
        checker.error("stack-mode", span, "unknown stack mode `" + *word + "`", suggestion(*word, words));
      } else {
        mode = row->mode;
      }
    } else if (is_parameter_not_given(checker, argument)) {
      continue;
    } else if (const auto number = checker.integer(argument)) {
      if (*number < 1 || *number > kMaxFrames)
        checker.error("stack-frames", span, "the number of frames must be from 1 to 1024");
      else
        frames = static_cast<uint32_t>(*number);
    } else {
      has_task |= is_task_of_object(checker, call, argument, kIsUser ? "ustack" : "kstack");
    }
  }
  if (call.arguments.size() == 2 && !has_task && (!checker.text(call.arguments[0]) || checker.text(call.arguments[1])))
    checker.error("stack-arguments", call.span, "the arguments must be the mode, then the number of frames");
  return checker.types().stack(kIsUser, mode, frames);
}

// Emits a look-up of the stack by its content, and adds the stack if it is new. Returns the stack's id, or an error
// below 0: EEXIST if the maps are full, else the error of the capture.
ValueId keep_by_content(Lowering& lowering, TypeId type, const program::StackMaps& maps) {
  ir::Builder& ir = lowering.ir();
  constexpr int64_t kNoExist = 1;  // BPF_NOEXIST
  const uint32_t size_bytes = lowering.types()[type].count * 8;
  const ValueId frames = lowering.memory(size_bytes, "stack_frames");
  const ValueId number = lowering.memory(8, "stack_number");
  lowering.zero(frames, size_bytes);
  const ValueId captured_bytes = get_stack(lowering, lowering.types()[type], frames, size_bytes);
  const auto find = [&](const std::function<ValueId()>& otherwise) {
    const ValueId entry = ir.call(Helper::map_lookup_elem, {ir.map(maps.by_content), frames});
    return lowering.select(
        Condition::ne, entry, ir.constant(0),
        [&] {
          constexpr int64_t kMap = int64_t{program::kStackByContent} << program::kStackMapShift;
          return ir.binary(Op::k_or, ir.load(8, entry), kMap);
        },
        otherwise);
  };
  const auto find_or_add = [&] {
    return find([&] {
      // The frames first: a number that other CPUs can find has its frames.
      const ValueId given =
          ir.atomic(Op::k_atomic_fetch_add, 8, ir.map_value(lowering.program().globals, maps.last_number_offset),
                    {ir.constant(1)});
      ir.store(8, number, ir.binary(Op::k_and, given, (1 << program::kStackMapShift) - 1));
      const ValueId no_exist = ir.constant(kNoExist);
      const ValueId contents = ir.map(maps.contents);
      const ValueId refused = ir.call(Helper::map_update_elem, {contents, number, frames, no_exist});
      lowering.when(Condition::eq, refused, ir.constant(0), [&] {
        const ValueId has_other = ir.call(Helper::map_update_elem, {ir.map(maps.by_content), frames, number, no_exist});
        lowering.when(Condition::ne, has_other, ir.constant(0), [&] {
          ir.call(Helper::map_delete_elem, {contents, number});
        });
      });
      return find([&] { return ir.constant(-EEXIST); });
    });
  };
  return lowering.select(
      Condition::slt, captured_bytes, ir.constant(0), [&] { return captured_bytes; }, find_or_add);
}

// Emits the capture of a stack in the maps by hash, of which `first` is the next to try, or by content. Returns its id,
// or an error below 0: EEXIST if there is no room for it, EFAULT if there is no such stack, as the user stack of a
// kernel thread.
ValueId capture_in(Lowering& lowering, TypeId type, const program::StackMaps& maps, uint32_t first) {
  ir::Builder& ir = lowering.ir();
  if (first == maps.by_hash.size())
    return maps.by_content.valid() ? keep_by_content(lowering, type, maps) : ir.constant(-EEXIST);
  const ValueId place = ir.call(
      Helper::get_stackid, {ir.context(), ir.map(maps.by_hash[first]), stack_flags(lowering, lowering.types()[type])});
  const auto id = [&] {
    if (first == 0) return place;
    return lowering.select(
        Condition::slt, place, ir.constant(0), [&] { return place; },
        [&] { return ir.binary(Op::k_or, place, ir.constant(int64_t{first} << program::kStackMapShift)); });
  };
  return lowering.select(
      Condition::eq, place, ir.constant(-EEXIST), [&] { return capture_in(lowering, type, maps, first + 1); }, id);
}

ValueId lose_stack(Lowering& lowering) {
  lowering.count_loss(program::LossKind::kStack, "stack(s) lost: iterators cannot read the stacks of tasks that run");
  return lowering.ir().constant(-EFAULT);
}

// Emits the capture of a stack. Returns its id; if the script takes the length of stacks, with the number of frames in
// the upper 32 bits.
ValueId capture_stack(Lowering& lowering, TypeId type) {
  ir::Builder& ir = lowering.ir();
  if (is_without_stack(lowering, lowering.types()[type])) return lose_stack(lowering);
  const program::StackMaps maps = lowering.stack_maps(type);
  // bpf_get_stackid() has no form for other tasks.
  const bool is_of_other = lowering.unit().context.task.has_value();
  const ValueId id = is_of_other ? keep_by_content(lowering, type, maps) : capture_in(lowering, type, maps, 0);
  lowering.when(Condition::eq, id, ir.constant(-EEXIST),
                [&] { lowering.count_loss(program::LossKind::kStack, no_room_for_stacks(lowering)); });
  if (!lowering.checked().measures_stacks) return id;
  return lowering.select(
      Condition::slt, id, ir.constant(0), [&] { return id; },
      [&] {
        const ValueId frames = frame_count(lowering, lowering.types()[type]);
        return ir.binary(Op::k_or, id, ir.binary(Op::k_shl, frames, 32));
      });
}

Operand lower_kstack(Lowering& lowering, const CallSite& call) {
  const TypeId type = lowering.type(call.expr);
  return lowering.scalar_operand(type, capture_stack(lowering, type));
}

// Writes the 16 bytes of a user stack, captured by bpf_get_stackid(), which follows frame pointers.
void capture_by_frame_pointers(Lowering& lowering, TypeId type, ValueId destination) {
  lowering.ir().store(8, destination, capture_stack(lowering, type));
  lowering.ir().store(4, destination, lowering.ir().constant(0), 12);
}

Operand lower_ustack(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const TypeId type = lowering.type(call.expr);
  const ValueId pid = process_in_proc(lowering);
  remember_process(lowering, pid, call.span);
  const Operand out{type, lowering.memory(16, "ustack"), true};
  ir.store(4, out.value, pid, 8);
  const auto by_kernel = [&] { capture_by_frame_pointers(lowering, type, out.value); };
  const bool can_unwind = cannot_unwind(lowering.kernel(), lowering.types()).empty();
  if (can_unwind && !is_without_stack(lowering, lowering.types()[type]))
    lower_unwound_stack(lowering, type, pid, out.value, call.span, by_kernel);
  else
    by_kernel();
  return out;
}

constexpr const char* kUnwound = "dw_ustack";

// Whether a recording has stacks by unwinding.
bool has_unwound(const recording::Description& description) {
  return std::ranges::any_of(description.layouts, [](const recording::Layout& layout) {
    return std::ranges::find(layout.fields, kUnwound, &recording::Field::name) != layout.fields.end();
  });
}

TypeId check_dw_ustack(Checker& checker, const CallSite& call) {
  const std::string why = cannot_unwind(checker.kernel(), checker.types());
  if (const recording::Description* description = checker.kernel().recording()) {
    if (!has_unwound(*description))
      checker.warning("not-recorded", call.span, "the recording has stacks by frame pointers, like `ustack`",
                      "`espy record --for SCRIPT` records the stacks that a script reads");
  } else if (!why.empty())
    checker.warning("no-unwinding", call.span, why, "it follows frame pointers, as `ustack` does");
  return check_stack<true>(checker, call);
}

// Unwinding met a file without a table: builds the table, for later stacks.
void handle_missing_table(EventRecord& event) {
  const auto number = [&](size_t index) { return static_cast<uint64_t>(event.integer(index)); };
  const auto pid = static_cast<uint32_t>(number(0));
  const auto file = program::UnwindFileKey::from({number(2), number(3), number(4)});
  runtime::UnwindTables& tables = event.context().unwind_tables();
  if (tables.add_missing(pid, number(1), file)) return;
  // The process has ended, and the next one with that file may be as short-lived.
  if (const auto module = event.context().symbols().user_module(pid, number(1))) tables.add_missing(module->path, file);
}

void handle_remember(EventRecord& event) {
  event.context().symbols().remember(static_cast<uint32_t>(event.integer(0)), static_cast<uint64_t>(event.integer(1)));
}

void handle_mapping(EventRecord& event) {
  constexpr int kMinorBits = 20;  // MINORBITS of the kernel's include/linux/kdev_t.h
  const auto number = [&](size_t index) { return static_cast<uint64_t>(event.integer(index)); };
  const auto file = program::UnwindFileKey::from({number(4), number(5), number(6)});
  const auto path = event.context().unwind_tables().path_of(file);
  const uint64_t start = number(1), bias = number(3);
  if (!path) return;
  event.context().symbols().remember_mapping(
      static_cast<uint32_t>(number(0)),
      {.start = start,
       .end = start + number(2),
       .file_offset = start + bias,
       .path = *path,
       .device = makedev(file.device >> kMinorBits, file.device & ((1u << kMinorBits) - 1)),
       .inode = file.inode,
       .executable = true});
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any kstack(mode or task mode = bpftrace, literal any frames = 127)",
     .doc = "The kernel stack, with at most `frames` frames: `kstack(3)`. Modes are `bpftrace`, `perf` and `raw`. In "
            "`iter:task`, `iter:task_file` and `iter:task_vma`, it is the stack of `ctx.task`.",
     .kind = BuiltinKind::kVariable,
     .check = check_stack<false>,
     .lower = lower_kstack,
     .capability = "CAP_SYSLOG",
     .example = "tracepoint:raw_syscalls:sys_enter { @[kstack(3)] = count(); exit(); }"},
    {.sig = "any ustack(mode or task mode = bpftrace, literal any frames = 127)",
     .doc = "The user stack, with at most `frames` frames. Modes are `bpftrace`, `perf`, `raw` and `build_id`. Code "
            "without frame pointers is unwound by its `.eh_frame` if the kernel allows it (Linux 6.1), other "
            "code by frame pointers. Not in iterators: the kernel does not walk the user stacks of other tasks.",
     .kind = BuiltinKind::kVariable,
     .check = check_stack<true>,
     .lower = lower_ustack,
     .capability = "CAP_SYS_PTRACE",
     .example = "tracepoint:raw_syscalls:sys_enter { @[ustack(perf, 5)] = count(); exit(); }"},
    {.sig = "any dw_ustack(mode or task mode = bpftrace, literal any frames = 127)",
     .doc = "Like `ustack`, with a warning if the kernel does not support unwinding by `.eh_frame`.",
     .kind = BuiltinKind::kVariable,
     .check = check_dw_ustack,
     .lower = lower_ustack,
     .capability = "CAP_SYS_PTRACE",
     .example = "tracepoint:raw_syscalls:sys_enter { @[dw_ustack(3)] = count(); exit(); }"},
    {.sig = "void __remember_process(int pid, int time)",
     .doc = "Internal: reports a process to the symbolizer before it ends.",
     .handle = handle_remember},
    {.sig = "void __unwind_table_missing(int pid, int pc, int size, int inode, int origin)",
     .doc = "Internal: requests the unwind table of a file.",
     .handle = handle_missing_table},
    {.sig = "void __mapping_seen(int pid, int start, int size, int bias, int file_size, int inode, int origin)",
     .doc = "Internal: reports a mapping of a file to the symbolizer.",
     .handle = handle_mapping},
};

}  // namespace

extern const spec::BuiltinFamily kStack = {.title = "Stacks", .rows = kRows};

}  // namespace espy::builtins

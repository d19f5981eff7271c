// A user stack without frame pointers, walked in BPF.
//
// The kernel unwinds user stacks by frame pointers, but most distributions' code uses the register for other values: the
// stack ends, or is wrong, in the first library. The kernel does not read .eh_frame. Copying the stack to user space and
// unwinding it there, as profilers do, costs 8 KiB and more per sample.
//
// Instead, user space converts the .eh_frame of each file to a table of rows (symbols/unwind.cc) in an array that
// programs read (program/unwind.h). For each frame, the program finds the file and the offset of its code, does a
// binary search, and reads the stack once or twice:
//
//   registers of the task as it entered the kernel           bpf_task_pt_regs
//   repeat for each frame                                    bpf_loop, verified once
//     code address -> mapping: start, end, file              find_mapping
//     file (inode, size) -> table                            a hash
//     offset in the file -> row                              find_rule
//     row -> SP, FP, IP of the caller                        go_up
//
// A list of mappings kept by user space would miss the first stacks of each new process, often its only ones.
// bpf_find_vma takes the mmap lock and in an interrupt (a profile's) works once: the lock is released by a queued
// irq_work, of which a CPU has one. So the program walks the maple tree of the mm itself: without a lock, in any
// context, with three reads of 256 bytes for some hundred mappings. Another thread may change the tree meanwhile: the
// result may be wrong then, but reads cannot fault, a mapping must contain the address that was looked up, and the next
// stack is right. Most frames of a stack are in few mappings, so the last four are cached until a mapping changes
// (mm_lock_seq).
//
// Files are identified by inode and size, so one table serves all processes, and a new process finds the tables of its
// libraries. A file without a table is reported to user space, at most every 200 ms; until the table exists, stacks are
// unwound by frame pointers from that frame on, and counted. The same holds for JIT-compiled code, which is in no file,
// and for code whose rule a row cannot express.
//
// A process may end before user space reads its /proc/PID/maps. So each mapping is reported when a walk meets it for
// the first time, and stacks of ended processes have names.
//
// Not supported: 32-bit tasks; rules based on registers other than the stack and frame pointers (kUnknown); CPUs whose
// calls leave the return address in a register; files that are rewritten in place while espy runs; stacks of tasks other
// than the current one.
// See lib/maple_tree.c (mtree_range_walk) and include/linux/maple_tree.h of the kernel.
#include "builtins/unwind.h"

#include "builtins/common.h"
#include "builtins/unwind_frame.h"
#include "program/unwind.h"

namespace espy::builtins {

namespace {

using ir::BlockId;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using kernel::Kernel;
using lower::Lowering;
using types::TypeId;

// ---- Maps -----------------------------------------------------------------------------------------------------------

constexpr uint32_t kFiles = 8192;
constexpr uint32_t kStacks = 16384;
constexpr uint32_t kAskedFiles = 1024;
constexpr uint32_t kReportedMappings = 8192;

void add_maps(Lowering& lowering) {
  program::Program& program = lowering.program();
  if (program.unwinding.files.valid()) return;
  program.unwinding.files = program.maps.add({.name = "unwind_files",
                                              .kind = program::MapKind::kHash,
                                              .key_size = sizeof(program::UnwindFileKey),
                                              .value_size = sizeof(program::UnwindFile),
                                              .max_entries = kFiles});
  program.unwinding.cells = program.maps.add({.name = "unwind_cells",
                                              .value_size = static_cast<uint32_t>(unwind_cell_count(lowering) * 8),
                                              .is_mmapable = true});
}

program::MapId stacks_map(Lowering& lowering, TypeId type) {
  program::Program& program = lowering.program();
  for (const auto& [known, map] : program.unwinding.stacks)
    if (known == type) return map;
  const program::MapId map = program.maps.add({.name = "unwind_stacks",
                                               .kind = program::MapKind::kHash,
                                               .key_size = 8,
                                               .value_size = 8 + lowering.types()[type].count * 8,
                                               .max_entries = kStacks});
  program.unwinding.stacks.emplace_back(type, map);
  return map;
}

// ---- A walk ---------------------------------------------------------------------------------------------------------

constexpr const char* kMissing = "__unwind_table_missing";

// The mappings that the last walk met are good if it was in the same process and nothing was mapped since. That is
// known by mm_lock_seq, which each writer of the mappings changes (Linux 6.4; an int at first, then a seqcount_t).
void keep_known_mappings(Lowering& lowering, ValueId state) {
  ir::Builder& ir = lowering.ir();
  const int64_t sequence = member_offset(lowering.kernel(), lowering.types(), "mm_struct", "mm_lock_seq");
  const ValueId root = lowering.current_task_field({"mm", "mm_mt", "ma_root"});
  ValueId differs = ir.constant(1);
  if (sequence >= 0) {
    const ValueId mm = lowering.current_task_field({"mm"});
    const ValueId now = lowering.read_scalar(mm, sequence, 4, false, types::AddressSpace::kKernel);
    differs = ir.binary(Op::k_or, ir.binary(Op::k_xor, root, ir.load(8, state, UnwindState::kRoot)),
                        ir.binary(Op::k_xor, now, ir.load(8, state, UnwindState::kSequence)));
    ir.store(8, state, now, UnwindState::kSequence);
  }
  ir.store(8, state, root, UnwindState::kRoot);
  lowering.when(Condition::ne, differs, ir.constant(0), [&] {
    for (int64_t i = 0; i < UnwindMap::kCount; ++i)
      ir.store(8, state, ir.constant(0), UnwindState::kMaps + (i << UnwindMap::kShift) + UnwindMap::kSize);
  });
}

// The registers that the task had when it last entered the kernel: by the probe itself, if it fires in user code.
void start(Lowering& lowering, ValueId state) {
  ir::Builder& ir = lowering.ir();
  const kernel::Arch& arch = lowering.kernel().arch();
  const ValueId registers = ir.call(Helper::task_pt_regs, {ir.call(Helper::get_current_task_btf, {})});
  lowering.zero(state, UnwindState::kPerWalk);
  ir.store(8, state, ir.load(8, registers, arch.instruction_pointer_offset), UnwindState::kIp);
  ir.store(8, state, ir.load(8, registers, arch.stack_pointer_offset), UnwindState::kSp);
  ir.store(8, state, ir.load(8, registers, arch.frame_pointer_offset), UnwindState::kFp);
  ir.store(8, state, lowering.current_task_field({"mm", "context", "vdso"}), UnwindState::kVdso);
  ir.store(8, state, ir.constant(0), UnwindState::kFrameCount);
  keep_known_mappings(lowering, state);
}

// Reports the first file without a table to user space, at most once every kPatienceNs.
void report_missing(Lowering& lowering, ValueId state, ValueId pid, source::Span span) {
  constexpr int64_t kPatienceNs = 200'000'000;
  ir::Builder& ir = lowering.ir();
  const ValueId pc = ir.load(8, state, UnwindState::kMissingPc);
  lowering.when(Condition::ne, pc, ir.constant(0), [&] {
    lowering.count_loss(program::LossKind::kGuess,
                        "user stacks that follow frame pointers from code on whose unwind table was not there yet");
    ir.store(8, state, ir.constant(0), UnwindState::kRoot);                   // the next walk looks again
    const ValueId map = seen_map(lowering, "unwind_asked", 16, kAskedFiles);  // until when
    const ValueId key = ir.binary(Op::k_add, state, UnwindState::kMissing);
    const ValueId now = ir.call(Helper::ktime_get_ns, {});
    const ValueId asked = ir.call(Helper::map_lookup_elem, {map, key});
    const ValueId next = lowering.select(
        Condition::eq, asked, ir.constant(0), [&] { return ir.constant(0); }, [&] { return ir.load(8, asked); });
    lowering.when(Condition::uge, now, next, [&] {
      const ValueId later = ir.binary(Op::k_add, state, UnwindState::kWords);
      ir.store(8, later, ir.binary(Op::k_add, now, kPatienceNs));
      ir.call(Helper::map_update_elem, {map, key, later, ir.constant(0)});
      const auto number = [&](ValueId value) {
        return lower::EventArgument{{}, lowering.scalar_operand(lowering.types().uint64(), value)};
      };
      lowering.emit_event(kMissing,
                          {number(pid), number(pc), number(ir.load(8, state, UnwindState::kMissing)),
                           number(ir.load(8, state, UnwindState::kMissing + 8))},
                          span);
    });
  });
}

constexpr const char* kMapping = "__mapping_seen";

// Reports a mapping of a process to user space, once: the process may end before its /proc/PID/maps is read.
void report_mapping(Lowering& lowering, ValueId map, ValueId pid, source::Span span) {
  ir::Builder& ir = lowering.ir();
  const ValueId key = lowering.memory(16, "mapping_key");
  const ValueId start = ir.load(8, map, UnwindMap::kStart);
  const ValueId inode = ir.load(8, map, UnwindMap::kKey + 8);
  ir.store(8, key, ir.binary(Op::k_or, ir.binary(Op::k_shl, inode, 32), pid));
  ir.store(8, key, start, 8);
  notify_once(lowering, seen_map(lowering, "unwind_reported", 16, kReportedMappings), key, [&] {
    const auto number = [&](ValueId each) {
      return lower::EventArgument{{}, lowering.scalar_operand(lowering.types().uint64(), each)};
    };
    lowering.emit_event(
        kMapping,
        {number(pid), number(start), number(ir.load(8, map, UnwindMap::kSize)),
         number(ir.load(8, map, UnwindMap::kBias)), number(ir.load(8, map, UnwindMap::kKey)), number(inode)},
        span);
  });
}

void report_mappings(Lowering& lowering, ValueId state, ValueId pid, source::Span span) {
  ir::Builder& ir = lowering.ir();
  lowering.when(Condition::ne, ir.load(8, state, UnwindState::kHasNew), ir.constant(0), [&] {
    for (int64_t i = 0; i < UnwindMap::kCount; ++i) {
      const ValueId map = ir.binary(Op::k_add, state, UnwindState::kMaps + (i << UnwindMap::kShift));
      const ValueId is_new = ir.load(8, map, UnwindMap::kIsNew);
      ir.store(8, map, ir.constant(0), UnwindMap::kIsNew);
      lowering.when(Condition::ne, is_new, ir.constant(0), [&] { report_mapping(lowering, map, pid, span); });
    }
  });
}

// Keeps the stack that was found, once, and gives its key.
ValueId keep_stack(Lowering& lowering, ValueId state, program::MapId stacks) {
  ir::Builder& ir = lowering.ir();
  const ValueId map = ir.map(stacks);
  const ValueId key = lowering.memory(8, "stack_key");
  constexpr int64_t kPositive = INT64_MAX;  // negative ones are errors
  const ValueId hash = ir.binary(Op::k_and, ir.load(8, state, UnwindState::kHash), kPositive);
  ir.store(8, key, hash);
  lowering.when(Condition::eq, ir.call(Helper::map_lookup_elem, {map, key}), ir.constant(0), [&] {
    const ValueId value = ir.binary(Op::k_add, state, UnwindState::kFrameCount);
    const ValueId result = ir.call(Helper::map_update_elem, {map, key, value, ir.constant(0)});
    lowering.when(Condition::ne, result, ir.constant(0), [&] {
      lowering.count_loss(program::LossKind::kStack,
                          "user stacks that found no room among the different ones, and are empty");
    });
  });
  return hash;
}

}  // namespace

std::string cannot_unwind(Kernel& kernel, types::Types& types) {
  if (kernel.arch().return_address_bytes == 0)
    return "stacks are unwound by tables only on CPUs whose calls push the return address";
  for (const kernel::Feature feature : {kernel::Feature::kBpfLoop, kernel::Feature::kGetCurrentTaskBtf})
    if (!kernel.has(feature)) return "this kernel lacks what unwinding needs: bpf_loop (5.17)";
  if (!kernel.has(kernel::Feature::kProbeReadKernel))
    return "lockdown (confidentiality) forbids to read what unwinding needs of the kernel's memory";
  if (!knows_mappings(kernel, types))
    return "this kernel does not tell where it keeps mappings as espy knows it (a maple tree, since 6.1, and BTF)";
  return "";
}

void lower_unwound_stack(Lowering& lowering, TypeId type, ValueId pid, ValueId destination, source::Span span,
                         const std::function<void()>& otherwise) {
  constexpr int64_t kNoStack = -14;  // EFAULT, as the kernel's helper says: a thread of the kernel has no user stack
  ir::Builder& ir = lowering.ir();
  add_maps(lowering);
  const program::MapId stacks = stacks_map(lowering, type);
  const uint32_t frames = lowering.types()[type].count;
  const ValueId is_ready = ir.load(8, ir.map_value(lowering.program().unwinding.cells, 0));
  lowering.when(
      Condition::ne, is_ready, ir.constant(0),
      [&] {
        const ValueId state = lowering.memory(static_cast<uint32_t>(UnwindState::kFrames) + frames * 8, "unwind");
        start(lowering, state);
        // On the stack in any case: the helper takes no other address.
        const ValueId argument = ir.slot(ir.add_slot(8, 8, "unwind_state"));
        ir.store(8, argument, state);
        const ir::FunctionId step =
            lowering.callback("unwind_" + std::to_string(frames), 2, [&] { write_unwind_step(lowering, frames); });
        ir.call(Helper::loop, {ir.constant(frames), ir.function_address(step), argument, ir.constant(0)});
        report_missing(lowering, state, pid, span);
        report_mappings(lowering, state, pid, span);
        const ValueId count = ir.load(4, state, UnwindState::kFrameCount);
        ir.store(4, destination, count, 12);
        const ValueId key = lowering.select(
            Condition::ne, count, ir.constant(0), [&] { return keep_stack(lowering, state, stacks); },
            [&] { return ir.constant(kNoStack); });
        ir.store(8, destination, key);
      },
      otherwise);
}

}  // namespace espy::builtins

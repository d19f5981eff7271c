// Unwinding of user stacks without frame pointers, in BPF.
//
// The problem. bpf_get_stack() follows frame pointers, but most code of most distributions is compiled without frame
// pointers, so such a stack ends, or goes wrong, in the first library. Compilers describe the frames in .eh_frame,
// which the kernel does not read. Profilers copy the stack and unwind it in user space, at 8 KiB and more per sample.
//
// The approach. User space converts the .eh_frame of each file to a sorted table of rows (symbols/unwind.cc), in an
// array that programs can read (program/unwind_layout.h). For each frame, the program finds the file of the code
// address and the offset in it; the rest is a binary search, and two or three words of the stack:
//
//   registers of the task as it entered the kernel           bpf_task_pt_regs
//   repeat for each frame                                    a function that is verified once
//     code address -> mapping: start, end, file              find_mapping
//     file -> table                                          a hash
//     offset in the file -> row                              find_rule
//     row -> SP, FP, IP of the caller                        move_to_caller
//
// Most of a read of user memory is its checks, which cost the same for a word and for 512 bytes. So the stack is read
// in pieces of 512 bytes, which hold several frames.
//
// Mappings. A list of mappings that user space keeps would be late for the first stacks of a new process, which are
// often its only ones. bpf_find_vma() takes the mmap lock; in an interrupt, such as a profile probe, it works only
// once, because the lock is released by a queued irq_work, of which a CPU has one. So the program walks the maple tree
// of the mm itself, without a lock and in any context: three reads of 256 bytes for some hundred mappings. Before Linux
// 6.1 it is a red-black tree: some ten reads of 56 bytes. If another thread changes the tree at the same time, a lookup
// may fail or be wrong; but reads cannot fault, a mapping is used only if it contains the address, and the next stack
// is right again. Most frames of a stack are in few mappings, so the last four are cached, from stack to stack, until
// the mappings of the process change (mm_lock_seq). So are the rules of 256 code addresses, which spares most frames
// both lookups.
//
// Tables. The key of a file is of its inode, so a table serves all processes, and a new process finds the tables of its
// libraries ready. The program requests the table of an unknown file from user space, at a limited rate; until the
// table is ready, stacks follow frame pointers from that frame on, and are counted. Frame pointers are also used for
// code without a file, as of a JIT compiler, and for rows whose rule is unknown.
//
// Names. A process may end before user space has read its /proc/PID/maps. The program knows the mappings of its frames,
// so it reports each one once, and these stacks can be symbolized.
//
// 32-bit tasks. The kernel follows their frame pointers, as in other stacks that are not unwound.
//
// Limits. Frames that need registers other than FP and SP (kUnknown); files that are rewritten in place
// during the run; stacks of tasks other than the current one.
//
// See also: lib/maple_tree.c (mtree_range_walk) and include/linux/maple_tree.h in the kernel.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "builtins/builtin_support.h"
#include "builtins/unwind_frame.h"
#include "program/unwind_layout.h"

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
constexpr uint32_t kRequestedFiles = 1024;
constexpr uint32_t kReportedMappings = 8192;

void add_maps(Lowering& lowering) {
  program::Program& program = lowering.program();
  if (program.unwinding.files.valid()) return;
  program.unwinding.epoch_offset_bytes = lowering.add_global(4);
  program.unwinding.files = program.maps.add({.name = "unwind_files",
                                              .kind = program::MapKind::kHash,
                                              .key_size = sizeof(program::UnwindFileKey),
                                              .value_size = sizeof(program::UnwindFile),
                                              .max_entries = kFiles});
  // A chunk of 8 MB holds the tables of most runs; a lower limit of rows has smaller chunks.
  constexpr uint64_t kLeastCells = 1 << 10, kLeastChunks = 16;
  const uint64_t most_cells = lowering.kernel().has(kernel::Feature::kLargeArrayValues) ? 1 << 20 : 1 << 19;
  const uint64_t rows = lowering.config().limits.unwind_table_rows;
  const auto cells = static_cast<uint32_t>(std::clamp(std::bit_floor(rows / kLeastChunks), kLeastCells, most_cells));
  program.unwinding.cells = program.maps.add({.name = "unwind_cells", .value_size = cells * 8, .is_mmapable = true});
  program.unwinding.more_cells = program.maps.add({.name = "unwind_more",
                                                   .kind = program::MapKind::kArrayOfMaps,
                                                   .value_size = 4,
                                                   .max_entries = static_cast<uint32_t>((rows + cells - 1) / cells),
                                                   .like = program.unwinding.cells});
}

const program::Program::UnwoundStacks& stacks_of(Lowering& lowering, TypeId type) {
  program::Program& program = lowering.program();
  for (const auto& known : program.unwinding.stacks)
    if (known.type == type) return known;
  const program::MapId map =
      program.maps.add({.name = "unwind_stacks",
                        .kind = program::MapKind::kHash,
                        .key_size = 8,
                        .value_size = 8 + lowering.types()[type].count * 8,
                        .max_entries = static_cast<uint32_t>(lowering.config().limits.max_stacks)});
  program.unwinding.stacks.push_back({type, map, lowering.add_global(8)});
  return program.unwinding.stacks.back();
}

// ---- Unwinding

// Kernel stacks of x86-64 and arm64; a larger page makes them larger (THREAD_SIZE).
constexpr int64_t kLeastKernelStackBytes = 16384;

int64_t registers_bytes(Kernel& kernel, types::Types& types) {
  const TypeId type = kernel.find_struct(types, "pt_regs");
  return type.valid() ? types[type].size_bytes : 0;
}

constexpr const char* kMissing = "__unwind_table_missing";

// Emits the root of the tree of the current task's mappings; 0 if it has none.
ValueId root_of_mappings(Lowering& lowering) {
  const bool is_maple_tree = member_offset(lowering.kernel(), lowering.types(), "mm_struct", "mm_mt") >= 0;
  return is_maple_tree ? lowering.current_task_field({"mm", "mm_mt", "ma_root"})
                       : lowering.current_task_field({"mm", "mm_rb", "rb_node"});
}

// Invalidates the cached mappings and rules if the process is another one, or its mappings have changed: each writer
// changes mm_lock_seq (Linux 6.4; an int at first, later a seqcount_t). Without it, the cache is used for one stack
// only.
void invalidate_stale_mappings(Lowering& lowering, ValueId state, ValueId pid) {
  ir::Builder& ir = lowering.ir();
  const int64_t sequence = member_offset(lowering.kernel(), lowering.types(), "mm_struct", "mm_lock_seq");
  const ValueId root = root_of_mappings(lowering);
  ValueId differs = ir.constant(1);
  if (sequence >= 0) {
    const ValueId mm = lowering.current_task_field({"mm"});
    const ValueId now = lowering.read_scalar(mm, sequence, 4, false, types::AddressSpace::kKernel);
    differs = ir.binary(Op::k_xor, root, ir.load(8, state, UnwindState::kRoot));
    // A new process may have the tree's memory of one that has ended, and as many changes.
    const auto compare = [&](ValueId value, int64_t member) {
      differs = ir.binary(Op::k_or, differs, ir.binary(Op::k_xor, value, ir.load(4, state, member)));
      ir.store(4, state, value, member);
    };
    compare(now, UnwindState::kSequence);
    compare(pid, UnwindState::kPid);
  }
  ir.store(8, state, root, UnwindState::kRoot);
  lowering.when(Condition::ne, differs, ir.constant(0), [&] {
    const ValueId generation = ir.load(4, state, UnwindState::kGeneration);
    ir.store(4, state, ir.binary(Op::k_add, generation, 1), UnwindState::kGeneration);
    for (int64_t i = 0; i < UnwindMap::kCount; ++i)
      ir.store(8, state, ir.constant(0), UnwindState::kMaps + (i << UnwindMap::kShift) + UnwindMap::kSize);
  });
}

using LoadRegister = std::function<ValueId(int64_t offset)>;

// Emits a function that loads a word of the registers with which the task entered the kernel. Without the helper
// bpf_task_pt_regs(), they are read from the end of the kernel's stack, where kernels so old reserve nothing behind
// them.
LoadRegister task_registers(Lowering& lowering) {
  ir::Builder& ir = lowering.ir();
  kernel::Kernel& kernel = lowering.kernel();
  // The helper came with get_attach_cookie.
  if (kernel.has(kernel::Feature::kGetCurrentTaskBtf) && kernel.has(kernel::Feature::kGetAttachCookie)) {
    const ValueId registers = ir.call(Helper::task_pt_regs, {ir.call(Helper::get_current_task_btf, {})});
    return [&ir, registers](int64_t offset) { return ir.load(8, registers, offset); };
  }
  const int64_t stack_bytes = std::max<int64_t>(kLeastKernelStackBytes, kernel.page_size_bytes());
  const ValueId end = ir.binary(Op::k_add, lowering.current_task_field({"stack"}), stack_bytes);
  const ValueId registers = ir.binary(Op::k_sub, end, registers_bytes(kernel, lowering.types()));
  return [&lowering, registers](int64_t offset) {
    return lowering.read_scalar(registers, offset, 8, false, types::AddressSpace::kKernel);
  };
}

// Emits the initialization of the state from the registers with which the task entered the kernel, or with which a
// probe in user code fired.
void start(Lowering& lowering, ValueId state, ValueId pid, const LoadRegister& load_register) {
  ir::Builder& ir = lowering.ir();
  const kernel::Arch& arch = lowering.kernel().arch();
  lowering.zero(state, UnwindState::kPerWalk);
  ir.store(8, state, load_register(arch.instruction_pointer_offset), UnwindState::kIp);
  ir.store(8, state, load_register(arch.stack_pointer_offset), UnwindState::kSp);
  ir.store(8, state, load_register(arch.frame_pointer_offset), UnwindState::kFp);
  if (arch.return_address_bytes == 0) ir.store(8, state, load_register(arch.link_register_offset), UnwindState::kLink);
  ir.store(8, state, lowering.current_task_field({"mm", "context", "vdso"}), UnwindState::kVdso);
  ir.store(8, state, ir.constant(0), UnwindState::kFrameCount);
  invalidate_stale_mappings(lowering, state, pid);
}

// Emits a request for the table of the first file without one, unless the process made that request within kRetryNs:
// one that does not have the file mapped any more, when user space looks, must not hold up the others.
void request_missing_table(Lowering& lowering, ValueId state, ValueId pid, source::Span span) {
  constexpr int64_t kRetryNs = 200'000'000;
  ir::Builder& ir = lowering.ir();
  const ValueId pc = ir.load(8, state, UnwindState::kMissingPc);
  lowering.when(Condition::ne, pc, ir.constant(0), [&] {
    lowering.count_loss(
        program::LossKind::kGuess,
        "user stack(s) may be incomplete: unwind tables were not loaded in time (-p, -c or --dwarf-pid load them "
        "before tracing starts)");
    ir.store(8, state, ir.constant(0), UnwindState::kRoot);  // so that the next stack looks up the file again
    constexpr auto kKeyBytes = static_cast<uint32_t>(UnwindState::kMissingPc - UnwindState::kMissing);
    ir.store(8, state, pid, UnwindState::kMissingIn);
    const ValueId map = seen_map(lowering, "unwind_asked", kKeyBytes, kRequestedFiles);  // value: when to retry
    const ValueId key = ir.binary(Op::k_add, state, UnwindState::kMissing);
    const ValueId now = ir.call(Helper::ktime_get_ns, {});
    const ValueId retry_entry = ir.call(Helper::map_lookup_elem, {map, key});
    const ValueId next = lowering.select(
        Condition::eq, retry_entry, ir.constant(0), [&] { return ir.constant(0); },
        [&] { return ir.load(8, retry_entry); });
    lowering.when(Condition::uge, now, next, [&] {
      const ValueId later = ir.binary(Op::k_add, state, UnwindState::kWords);
      ir.store(8, later, ir.binary(Op::k_add, now, kRetryNs));
      ir.call(Helper::map_update_elem, {map, key, later, ir.constant(0)});
      const auto number = [&](ValueId value) {
        return lower::EventArgument{{}, lowering.scalar_operand(lowering.types().uint64(), value)};
      };
      lowering.emit_event(
          kMissing,
          {number(pid), number(pc), number(ir.load(8, state, UnwindState::kMissing)),
           number(ir.load(8, state, UnwindState::kMissing + 8)), number(ir.load(8, state, UnwindState::kMissing + 16))},
          span);
    });
  });
}

constexpr const char* kMapping = "__mapping_seen";

// Emits a record with a mapping and its file, once for each mapping: the process may have ended before user space can
// read /proc/PID/maps.
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
    lowering.emit_event(kMapping,
                        {number(pid), number(start), number(ir.load(8, map, UnwindMap::kSize)),
                         number(ir.load(8, map, UnwindMap::kBias)), number(ir.load(8, map, UnwindMap::kKey)),
                         number(inode), number(ir.load(8, map, UnwindMap::kKey + 16))},
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

// Emits the count of a stack that ends before its outermost caller: at the limit, or in code that was made at run time,
// of which no table tells where its caller is. A limit that the script has set lower is a wish for so many frames.
void count_short_stack(Lowering& lowering, ValueId state, uint32_t frames) {
  ir::Builder& ir = lowering.ir();
  const ValueId count = ir.load(4, state, UnwindState::kFrameCount);
  lowering.when(
      Condition::ult, count, ir.constant(frames),
      [&] {
        const int64_t anonymous = int64_t{program::kAnonymousCode} << program::kCodeTagShift;
        lowering.when(Condition::eq, ir.load(8, state, UnwindState::kTag), ir.constant(anonymous), [&] {
          lowering.count_loss(program::LossKind::kGuess,
                              "user stack(s) truncated at JIT code, which has no frame pointers");
        });
      },
      [&] {
        if (frames < program::kWholeStackFrames) return;
        lowering.count_loss(program::LossKind::kGuess,
                            fmt::format("user stack(s) may have more than {} frames", frames));
      });
}

// Emits the insertion of the stack into `stacks`, unless it is there already. Returns its key.
ValueId store_stack(Lowering& lowering, ValueId state, const program::Program::UnwoundStacks& stacks) {
  ir::Builder& ir = lowering.ir();
  const program::Program& program = lowering.program();
  const ValueId map = ir.map(stacks.map);
  const ValueId epoch = ir.load(4, ir.map_value(program.globals, program.unwinding.epoch_offset_bytes));
  const ValueId key = lowering.memory(8, "stack_key");
  constexpr int64_t kPositive = INT64_MAX;  // negative values are errors
  const ValueId hash = ir.binary(Op::k_and, ir.load(8, state, UnwindState::kHash), kPositive);
  ir.store(8, key, hash);
  const ValueId entry = ir.call(Helper::map_lookup_elem, {map, key});
  lowering.when(
      Condition::eq, entry, ir.constant(0),
      [&] {
        const ValueId value = ir.binary(Op::k_add, state, UnwindState::kFrameCount);
        ir.store(4, value, epoch, 4);
        const ValueId result = ir.call(Helper::map_update_elem, {map, key, value, ir.constant(0)});
        lowering.when(
            Condition::eq, result, ir.constant(0),
            [&] { ir.atomic_add(8, ir.map_value(program.globals, stacks.added_offset_bytes), ir.constant(1)); },
            [&] { lowering.count_loss(program::LossKind::kStack, no_room_for_stacks(lowering)); });
      },
      [&] {
        // Seldom: a store for each event would move the entry between the CPUs.
        lowering.when(Condition::ne, ir.load(4, entry, 4), epoch, [&] { ir.store(4, entry, epoch, 4); });
      });
  return hash;
}

// Emits whether there are tables for the current task: 0 before user space has made the first ones, and for 32-bit
// tasks.
ValueId has_tables(Lowering& lowering, const LoadRegister& load_register) {
  ir::Builder& ir = lowering.ir();
  const ValueId is_ready = ir.load(8, ir.map_value(lowering.program().unwinding.cells, 0));
  const auto& compat = lowering.kernel().arch().compat_task;
  if (!compat) return is_ready;
  const ValueId mode = ir.binary(Op::k_and, load_register(compat->offset_bytes), compat->mask);
  return lowering.select(
      Condition::eq, mode, ir.constant(compat->value), [&] { return ir.constant(0); }, [&] { return is_ready; });
}

// Emits the walk from frame to frame. Returns the state at its end.
ValueId walk(Lowering& lowering, uint32_t frames, ValueId pid, const LoadRegister& load_register) {
  ir::Builder& ir = lowering.ir();
  const auto state_bytes = static_cast<uint32_t>(UnwindState::kFrames) + frames * 8;
  const std::string name = "unwind_" + std::to_string(frames);
  if (lowering.kernel().has(kernel::Feature::kBpfLoop)) {
    const ValueId state = lowering.memory(state_bytes, "unwind");
    start(lowering, state, pid, load_register);
    // On the BPF stack, because the verifier accepts no other address for the argument of a callback.
    const ValueId argument = ir.slot(ir.add_slot(8, 8, "unwind_state"));
    ir.store(8, argument, state);
    const ir::FunctionId step = lowering.callback(
        name, 2, [&] { write_unwind_step(lowering, frames, lowering.ir().load(8, lowering.ir().param(1))); });
    ir.call(Helper::loop, {ir.constant(frames), ir.function_address(step), argument, ir.constant(0)});
    return state;
  }
  // Of the CPU, since a global function gets no pointers: kernels so old do not preempt the programs that come here, or
  // skip them where they would run twice on a CPU.
  const ValueId state = lowering.cpu_memory(name, state_bytes);
  start(lowering, state, pid, load_register);
  const ir::FunctionId step = lowering.global_function(
      name, 1, [&] { write_unwind_step(lowering, frames, lowering.cpu_memory(name, state_bytes)); });
  ir.count_up(frames, [&](ValueId index, BlockId done) {
    const BlockId next = ir.add_block("next");
    ir.branch(Condition::eq, ir.call_function(step, {index}), 0, next, done);
    ir.enter(next);
  });
  return state;
}

}  // namespace

std::string cannot_unwind(Kernel& kernel, types::Types& types) {
  if (!kernel.has(kernel::Feature::kProbeReadKernel))
    return "lockdown (confidentiality) forbids reading kernel memory, which unwinding needs";
  if (!lower::MappingOffsets(kernel, types).are_known() || registers_bytes(kernel, types) == 0)
    return "unwinding needs the types of the kernel (BTF), which say where it keeps a process's mappings";
  return "";
}

void lower_unwound_stack(Lowering& lowering, TypeId type, ValueId pid, ValueId destination, source::Span span,
                         const std::function<void()>& otherwise) {
  constexpr int64_t kNoStack = -14;  // EFAULT, as of bpf_get_stackid(): a kernel thread has no user stack
  ir::Builder& ir = lowering.ir();
  add_maps(lowering);
  const program::Program::UnwoundStacks stacks = stacks_of(lowering, type);
  const auto load_register = task_registers(lowering);
  lowering.when(
      Condition::ne, has_tables(lowering, load_register), ir.constant(0),
      [&] {
        const ValueId state = walk(lowering, lowering.types()[type].count, pid, load_register);
        request_missing_table(lowering, state, pid, span);
        report_mappings(lowering, state, pid, span);
        count_short_stack(lowering, state, lowering.types()[type].count);
        const ValueId count = ir.load(4, state, UnwindState::kFrameCount);
        ir.store(4, destination, count, 12);
        const ValueId key = lowering.select(
            Condition::ne, count, ir.constant(0), [&] { return store_stack(lowering, state, stacks); },
            [&] { return ir.constant(kNoStack); });
        ir.store(8, destination, key);
      },
      otherwise);
}

}  // namespace espy::builtins

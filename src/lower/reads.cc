// Reading memory that is not ours.
//
// The problem. A script follows pointers: `((struct task_struct *)arg0)->mm->owner->comm`. Any of them may be bad:
// NULL, freed, never a pointer at all. A plain load through a bad pointer is a fault in the kernel, so the verifier
// accepts loads only through pointers whose origin it knows. The usual way around this is a helper,
// probe_read_kernel(): it copies into our memory, with faults caught, and the value is loaded from there. It is safe
// and works everywhere, and costs 5 to 15 ns: a call, two range checks, a region of the exception table, and a store
// and a load of the stack. A chain of four members pays this four times, and that is most of what a probe then costs.
//
// The solution. Faults of loads in JIT-compiled programs can be caught as well: for pointers of some kinds the JIT
// enters each load into an exception table, and on a fault the register becomes 0 and the program continues. These are
// the semantics that the language wants, at 0.4 ns. bpf_rdonly_cast(pointer, id) makes such a pointer from any number.
// It is not a call: the verifier replaces it by a register move. There are two forms:
//
//   - With id 0 (Linux 6.18, "bpf: add bpf_features enum", rdonly_cast to void *) the result is untyped read-only
//     memory. Any offset and width may be loaded, and what is loaded is a number, which may be cast again: kCast.
//   - With the BTF id of a struct (Linux 6.2) the result is that struct, and the verifier checks each load against its
//     members: it must begin where a member begins and have its width. kTypedCast, used for members that fit. A pointer
//     loaded this way is typed as well, and the verifier then rejects most arithmetic on it, which a script may want
//     (`$p & 0xfff`); such members are read by the helper. So are bit fields, members of unions whose layout does not
//     match, and structs that only the script defines.
//
// Casts are marked pure: `opt` merges those of the same pointer. On a fault, both forms give 0 for that load;
// probe_read_kernel gives zeros too, so a script sees the same whichever is used.
//
// Strings and whole structs are copied by a helper in any case, since their bytes must be in our memory, and a helper
// copies faster than a loop of loads. User memory cannot be loaded plainly: kernel code may not touch user pages
// outside of its accessors (SMAP), which the exception table does not change. It is read by probe_read_user, which
// fails for a page that is not present, although the program itself could read it: a page of a file that was not
// touched yet, or one that was swapped out. Programs of user probes may sleep (Linux 6.1). There, after a read that
// failed, copy_from_user touches the page, which brings it in as an access of the program would, and the read is
// repeated. The first read costs the same as before. See fault_in(). A process can hold its pages back for ever, and a
// run that waits keeps its region of scratch, of which a CPU has few. So only the runs in the first regions wait. The
// reads of others fail, and the probe goes on in other processes.
//
// Limits. Plain loads do not report faults. Where those of the kernel are reported (-k) or counted (-v, --strict), all
// reads go through the helper. A read that races with the object being freed returns what is there, as with the helper.
// Offsets beyond 16 bits are added to the pointer before the cast, which makes each of them a cast of its own. Kernels
// before 6.2, and pointers in structs from 6.2 to 6.17, use the helper.
//
// kernel_read() alone decides which form is used.
#include <fmt/format.h>

#include <algorithm>

#include "lower/lowering.h"

namespace espy::lower {
namespace {

constexpr int64_t kLargestOffset = 32000;  // of a load instruction, with some space for the width

}  // namespace

// True if `struct_type` has an integer of exactly this size at this offset; or a pointer, if the helper is not
// available.
bool Lowering::is_plain_member(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes) {
  const types::Type& type = types()[struct_type];
  if (type.kind != Kind::kStruct || type.is_union) return false;
  for (const types::Member& member : type.members) {
    const int64_t begin = member.offset_bytes();
    const types::Type& inner = types()[member.type];
    if (member.bit_size || offset_bytes < begin || offset_bytes >= begin + inner.size_bytes) continue;
    if (inner.kind == Kind::kStruct) return is_plain_member(member.type, offset_bytes - begin, size_bytes);
    const bool is_fit = types::is_integer(inner) || (inner.kind == Kind::kPointer && !may_copy_from_kernel());
    return is_fit && offset_bytes == begin && inner.size_bytes == size_bytes;
  }
  return false;
}

Lowering::KernelRead Lowering::kernel_read(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes) {
  const bool needs_faults = config().warn_helper_errors || config().counting.losses;
  if ((needs_faults && may_copy_from_kernel()) || !kernel().kfunc_id("bpf_rdonly_cast")) return KernelRead::kCopy;
  if (kernel().has(kernel::Feature::kRdonlyCastVoid)) return KernelRead::kCast;
  if (!struct_type.valid() || !kernel().has(kernel::Feature::kRdonlyCastTyped)) return KernelRead::kCopy;
  const auto location = kernel().btf_location(types(), struct_type);
  const bool fits = location && location->module_index == 0 && is_plain_member(struct_type, offset_bytes, size_bytes);
  return fits ? KernelRead::kTypedCast : KernelRead::kCopy;
}

ValueId Lowering::read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                              AddressSpace space, TypeId struct_type) {
  if (space == AddressSpace::kBpf) return load_scalar(base, offset_bytes, size_bytes, is_signed);
  // Loads through an iterator's typed context are allowed under lockdown as well.
  if (is_iterator_context(base) && !may_copy_from_kernel()) return ir().load(size_bytes, base, offset_bytes, is_signed);
  const bool is_far = offset_bytes < -kLargestOffset || offset_bytes > kLargestOffset;
  const KernelRead kind = space == AddressSpace::kUser
                              ? KernelRead::kCopy
                              : kernel_read(is_far ? TypeId{} : struct_type, offset_bytes, size_bytes);
  if (kind == KernelRead::kCopy) return read_scalar_by_helper(base, offset_bytes, size_bytes, is_signed, space);
  if (is_far) {
    base = offset(base, offset_bytes);
    offset_bytes = 0;
  }
  const uint32_t id = kind == KernelRead::kTypedCast ? kernel().btf_location(types(), struct_type)->btf_id : 0;
  const ValueId cast = ir().kfunc(*kernel().kfunc_id("bpf_rdonly_cast"), {base, ir().constant(id)}, true);
  // Not all kernels catch faults of sign-extending loads, so the extension is separate.
  const ValueId raw = ir().load(size_bytes, cast, offset_bytes, false);
  return is_signed ? extend(raw, size_bytes, true) : raw;
}

bool Lowering::is_iterator_context(ValueId base) {
  return context_.kind == program::ProgramKind::kIter && functions_.function().values[base].op == Op::k_context;
}

ValueId Lowering::read_scalar_by_helper(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                                        AddressSpace space) {
  const ValueId copy = memory(8, "read");
  read(copy, size_bytes, offset(base, offset_bytes), space);
  return ir().load(size_bytes, copy, 0, is_signed);
}

void Lowering::read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space) {
  if (size_bytes == 0) return;
  if (space == AddressSpace::kBpf) return copy(destination, source, size_bytes);
  read_dynamic(destination, ir().constant(size_bytes), size_bytes, source, space);
}

void Lowering::read_dynamic(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source,
                            AddressSpace space) {
  if (space == AddressSpace::kBpf && !may_copy_from_kernel()) return copy(destination, source, most_bytes);
  const Helper helper = space == AddressSpace::kUser ? Helper::probe_read_user : Helper::probe_read_kernel;
  call_reader(helper, destination, size, most_bytes, source);
}

// All reading helpers zero the destination if they fail.
ValueId Lowering::call_reader(Helper helper, ValueId destination, ValueId size, uint32_t most_bytes, ValueId source) {
  const ValueId got = ir().call(helper, {destination, size, source});
  const bool is_user = helper == Helper::probe_read_user || helper == Helper::probe_read_user_str;
  if (!is_user || !may_sleep_here()) {
    report_failure(helper, got);
    return got;
  }
  const ir::SlotId result = new_slot("read");
  write_slot(result, got);
  const auto wait = [&] {
    when(Condition::eq, fault_in(destination, size, most_bytes, source), ir().constant(0), [&] {
      write_slot(result, ir().call(helper, {destination, size, source}));
    });
    report_failure(helper, read_slot(result));
  };
  const auto do_not_wait = [&] {
    emit_failure(helper, got);
    count_loss(
        program::LossKind::kRead,
        fmt::format("memory read(s) failed and returned 0: {} other threads were running this program on the same CPU",
                    kWaitingRegions));
  };
  when(Condition::slt, got, ir().constant(0),
       [&] { when(Condition::ult, scratch_region_number(), ir().constant(kWaitingRegions), wait, do_not_wait); });
  return read_slot(result);
}

// Touches each page of `size` bytes at `source`. Returns 0 if the first page is present then; later ones may be past a
// string's end and need not exist. Overwrites the first byte of `destination`. The process may hold the page back for
// as long as it likes: meanwhile the run counts as one that waits.
ValueId Lowering::fault_in(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source) {
  const uint32_t page_bytes = kernel().page_size_bytes();
  sleeps_ = true;
  const uint32_t waiting = module_.waiting_counter(functions_.program());
  const auto count_waiting = [&](int64_t change) {
    ir().atomic_add(8, ir().map_value(module_.program.globals, waiting), ir().constant(change));
  };
  const auto touch = [&](ValueId at) { return ir().call(Helper::copy_from_user, {destination, ir().constant(1), at}); };
  count_waiting(1);
  const ValueId first = touch(source);
  when(Condition::eq, first, ir().constant(0), [&] {
    for (uint32_t at = page_bytes; at < most_bytes; at += page_bytes) touch(offset(source, at));
    touch(ir().binary(Op::k_sub, ir().binary(Op::k_add, source, size), 1));
  });
  count_waiting(-1);
  return first;
}

ValueId Lowering::read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space,
                              bool zero_rest) {
  if (zero_rest) zero(destination, capacity_bytes);
  if (space == AddressSpace::kBpf && !may_copy_from_kernel()) return copy_text(destination, source, capacity_bytes);
  const Helper helper = space == AddressSpace::kUser ? Helper::probe_read_user_str : Helper::probe_read_kernel_str;
  const ValueId got = call_reader(helper, destination, ir().constant(capacity_bytes), capacity_bytes, source);
  // `got` is the length including the NUL, or a negative error.
  return select(
      Condition::sgt, got, ir().constant(0), [&] { return ir().binary(Op::k_sub, got, 1); },
      [&] { return ir().constant(0); });
}

// The helpers replace the last byte of what fills the destination by a NUL, so that byte is read again.
ValueId Lowering::read_text(ValueId destination, const Operand& text, bool zero_rest) {
  const types::Type& string = types()[text.type];
  const uint32_t count = string.count;
  const bool may_lack_nul = string.may_lack_nul;
  const ValueId length = read_string(destination, count, text.value, text.space, zero_rest);
  if (!may_lack_nul) return length;
  return select(
      Condition::eq, length, ir().constant(count - 1),
      [&] {
        read(offset(destination, count - 1), 1, offset(text.value, count - 1), text.space);
        const ValueId last = ir().load(1, destination, count - 1);
        return ir().binary(Op::k_add, length, ir().binary(Op::k_ne, last, ir().constant(0)));
      },
      [&] { return length; });
}

// Strings are zero-padded, but a struct was copied with the bytes that its char arrays have behind their ends.
Operand Lowering::padded_text(ValueId address, TypeId string) {
  const ValueId copy = memory(types()[string].size_bytes, "text");
  const ValueId length = read_text(copy, {string, address, true}, true);
  return {string, copy, true, AddressSpace::kBpf, length};
}

// A typed pointer allows a plain load of a number in the task itself. Through others the kernel may not let a program
// load: those that are followed are untyped.
ValueId Lowering::current_task_field(std::span<const std::string_view> path) {
  ValueId base = ir().call(Helper::get_current_task, {});
  bool is_in_task = true;
  TypeId type = kernel().find_struct(types(), "task_struct");
  int64_t offset_bytes = 0;
  TypeId outer = type;
  for (const std::string_view name : path) {
    if (types()[type].kind == Kind::kPointer) {
      base = read_scalar(base, offset_bytes, 8, false, AddressSpace::kKernel, outer);
      offset_bytes = 0;
      type = outer = types()[type].element;
      is_in_task = false;
    }
    if (!type.valid()) return ir().constant(0);
    module_.complete(type);
    const auto found = types::find_member(types(), type, name);
    if (!found) return ir().constant(0);
    offset_bytes += found->offset_bits / 8;
    type = found->type;
  }
  const types::Type& last = types()[type];
  if (types::is_by_reference(last)) return offset(base, offset_bytes);
  if (is_in_task && types::is_integer(last) && kernel().has(kernel::Feature::kGetCurrentTaskBtf)) {
    const ValueId task = ir().call(Helper::get_current_task_btf, {});
    const auto size_bytes = static_cast<uint8_t>(last.size_bytes);
    return extend(ir().load(size_bytes, task, offset_bytes), size_bytes, last.is_signed);
  }
  return read_scalar(base, offset_bytes, static_cast<uint8_t>(last.size_bytes), last.is_signed, AddressSpace::kKernel,
                     outer);
}

Operand Lowering::read_typed(ValueId address, int64_t offset_bytes, TypeId type, AddressSpace space,
                             TypeId struct_type) {
  module_.complete(type);
  const types::Type& layout = types()[type];
  if (layout.kind == Kind::kString && layout.may_lack_nul && space == AddressSpace::kBpf)
    return padded_text(offset(address, offset_bytes), type);
  if (types::is_by_reference(layout)) return {type, offset(address, offset_bytes), true, space};
  if (layout.size_bytes == 0) return {type, ir().constant(0)};
  return {type, read_scalar(address, offset_bytes, static_cast<uint8_t>(layout.size_bytes), layout.is_signed, space,
                            struct_type)};
}

Operand Lowering::dereference(Operand pointer, TypeId type) {
  const types::Type from = types()[pointer.type];
  const AddressSpace space = from.kind == Kind::kPointer ? from.space : AddressSpace::kKernel;
  return through_pointer(pointer, type, [&](ValueId address) {
    return read_typed(address, 0, type, pointer.is_address ? pointer.space : space);
  });
}

bool Lowering::may_be_null(Operand pointer) {
  const types::Type& type = types()[pointer.type];
  if (pointer.is_address || type.kind != Kind::kPointer || type.space != AddressSpace::kBpf) return false;
  const types::Type& target = types()[type.element];
  return target.kind != Kind::kStruct || target.name != context_.context_struct;
}

// A scalar is loaded in a branch: the verifier refuses loads from an address that is the context's in one branch only.
Operand Lowering::through_pointer(Operand pointer, TypeId type, const std::function<Operand(ValueId)>& read_at) {
  if (types::is_by_reference(types()[module_.complete(type)]) || !may_be_null(pointer))
    return read_at(readable_address(pointer));
  return {type, select(
                    Condition::ne, pointer.value, ir().constant(0), [&] { return read_at(pointer.value).value; },
                    [&] { return ir().constant(0); })};
}

ValueId Lowering::readable_address(Operand pointer) {
  if (!may_be_null(pointer)) return pointer.value;
  const uint32_t size = std::max(types()[module_.complete(types()[pointer.type].element)].size_bytes, 1u);
  return select(
      Condition::ne, pointer.value, ir().constant(0), [&] { return pointer.value; },
      [&] { return zeros(round_up(size, 8)); });
}

}  // namespace espy::lower

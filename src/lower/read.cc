// Reading memory that is not ours.
//
// The problem. A script follows pointers: `((struct task_struct *)arg0)->mm->owner->comm`. Any of them may be bad:
// NULL, freed, never a pointer at all. A plain load through a bad pointer is a fault in the kernel, so the verifier
// lets a program load only through pointers whose origin it knows. The classic way round is a helper,
// probe_read_kernel(): it copies with faults caught, into memory of ours, from where the value is loaded. It is safe
// and works everywhere, and costs 5 to 15 ns a time: a call, two range checks, an exception-table region, a trip
// through the stack. A chain of four members pays it four times, and that is most of what a probe then costs.
//
// The trick. Loads by a just-in-time compiled program can themselves be caught: for pointers of some kinds the compiler
// enters each load instruction into an exception table, and on a fault the register reads as 0 and the program goes on.
// Exactly the semantics that the language wants, at 0.4 ns. What is needed is a pointer of such a kind, and
// bpf_rdonly_cast(pointer, id) makes one from any number. It is not even a call: the verifier replaces it by a register
// move. There are two grades of it:
//
//   - With id 0 (Linux 6.18, "bpf: add bpf_features enum", rdonly_cast to void *) the result is untyped read-only
//     memory. Any offset and width may be loaded, and what comes back is a number, which may be cast again. This is all
//     one could ask for: kCast.
//   - With the BTF id of a struct (Linux 6.2) the result is that struct, and the verifier checks each load against its
//     members: it must begin where a member begins and be just as wide. kTypedCast, used for members that fit. A
//     pointer that is loaded so is typed as well, and the verifier then forbids most arithmetic with it, which a script
//     may want (`$p & 0xfff`); such members are read the classic way. So are bit fields, members of unions whose layout
//     we cannot match, and structs that only the script knows.
//
// Casts are marked pure: `opt` merges those of the same pointer. Should a fault occur, both grades give 0 for the one
// load; probe_read_kernel gives zeros too, so all ways agree in what a script sees.
//
// Strings and whole structs are still copied by a helper, as their bytes must land in our memory anyway and a helper
// copies faster than a loop of loads. User memory cannot be loaded plainly at all: the exception table would not help,
// since kernel mode may not touch user pages outside of its accessors (SMAP). So: probe_read_user, which fails for a
// page that is not there, though the program itself would find it: one of a file that nobody has touched yet, or one
// that was swapped out. Programs of user probes may sleep (Linux 6.1), and there a read that failed touches the page by
// copy_from_user, which brings it in as an access of the program would, and is tried again. The first try costs what it
// did. See fault_in().
//
// What this leaves out. A fault is not reported for plain loads: there is nobody to tell us. So where faults are to be
// reported (-k) or counted (-v, --strict), all reads go the classic way. A read that races with the object being freed
// gives whatever is there, as it always did. Offsets beyond 16 bits are added to the pointer before the cast, which
// makes them one cast each. On kernels before 6.2, and for pointers in structs between 6.2 and 6.17, the classic way is
// taken and costs what it costs.
//
// Which way is taken is decided in one place, kernel_read(); the rest of this file only follows it.
#include <algorithm>
#include <bit>

#include "lower/unit.h"

namespace espy::lower {
namespace {

constexpr int64_t kLargestOffset = 32000;  // that an instruction takes with room for the width

}  // namespace

ValueId UnitLowering::extend(ValueId value, uint8_t size_bytes, bool is_signed) {
  switch (size_bytes) {
    case 1: return ir().unary(is_signed ? Op::k_sext8 : Op::k_zext8, value);
    case 2: return ir().unary(is_signed ? Op::k_sext16 : Op::k_zext16, value);
    case 4: return ir().unary(is_signed ? Op::k_sext32 : Op::k_zext32, value);
    default: return value;
  }
}

// True if `struct_type` has a number of just this size at this offset; or a pointer, where nothing else reads one.
bool UnitLowering::is_plain_member(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes) {
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

UnitLowering::KernelRead UnitLowering::kernel_read(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes) {
  const bool needs_faults = config().warn_helper_errors || config().counts_losses;
  if ((needs_faults && may_copy_from_kernel()) || !kernel().kfunc_id("bpf_rdonly_cast")) return KernelRead::kCopy;
  if (kernel().has(kernel::Feature::kRdonlyCastVoid)) return KernelRead::kCast;
  if (!struct_type.valid() || !kernel().has(kernel::Feature::kRdonlyCastTyped)) return KernelRead::kCopy;
  const auto location = kernel().btf_location(types(), struct_type);
  const bool fits = location && location->module_index == 0 && is_plain_member(struct_type, offset_bytes, size_bytes);
  return fits ? KernelRead::kTypedCast : KernelRead::kCopy;
}

ValueId UnitLowering::read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                                  AddressSpace space, TypeId struct_type) {
  // What an iterator's context points to has its type from there: lockdown does not forbid it.
  const bool is_walk =
      main_unit_.context.kind == program::ProgramKind::kIter && function().values[base].op == Op::k_context;
  if (space == AddressSpace::kBpf || (is_walk && !may_copy_from_kernel()))
    return ir().load(size_bytes, base, offset_bytes, is_signed);
  const bool is_far = offset_bytes < -kLargestOffset || offset_bytes > kLargestOffset;
  const KernelRead way = space == AddressSpace::kUser
                             ? KernelRead::kCopy
                             : kernel_read(is_far ? TypeId{} : struct_type, offset_bytes, size_bytes);
  if (way == KernelRead::kCopy) return copied_scalar(base, offset_bytes, size_bytes, is_signed, space);
  if (is_far) {
    base = offset(base, offset_bytes);
    offset_bytes = 0;
  }
  const uint32_t id = way == KernelRead::kTypedCast ? kernel().btf_location(types(), struct_type)->btf_id : 0;
  const ValueId cast = ir().kfunc(*kernel().kfunc_id("bpf_rdonly_cast"), {base, ir().constant(id)}, true);
  // Sign-extending loads are not caught everywhere: extend afterwards.
  const ValueId raw = ir().load(size_bytes, cast, offset_bytes, false);
  return is_signed ? extend(raw, size_bytes, true) : raw;
}

ValueId UnitLowering::copied_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                                    AddressSpace space) {
  const ValueId copy = memory(8, "read");
  read(copy, size_bytes, offset(base, offset_bytes), space);
  return ir().load(size_bytes, copy, 0, is_signed);
}

void UnitLowering::read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space) {
  if (size_bytes == 0) return;
  if (space == AddressSpace::kBpf) return copy(destination, source, size_bytes);
  read_dynamic(destination, ir().constant(size_bytes), size_bytes, source, space);
}

void UnitLowering::read_dynamic(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source,
                                AddressSpace space) {
  if (space == AddressSpace::kBpf && !may_copy_from_kernel()) return copy(destination, source, most_bytes);
  const Helper helper = space == AddressSpace::kUser ? Helper::probe_read_user : Helper::probe_read_kernel;
  call_reader(helper, destination, size, most_bytes, source);
}

// The helpers zero what they could not read, all of them.
ValueId UnitLowering::call_reader(Helper helper, ValueId destination, ValueId size, uint32_t most_bytes,
                                  ValueId source) {
  const ValueId got = ir().call(helper, {destination, size, source});
  const bool is_user = helper == Helper::probe_read_user || helper == Helper::probe_read_user_str;
  if (!is_user || !may_sleep_here()) {
    report_failure(helper, got);
    return got;
  }
  const ir::SlotId result = new_slot("read");
  write_slot(result, got);
  when(Condition::slt, got, ir().constant(0), [&] {
    when(Condition::eq, fault_in(destination, size, most_bytes, source), ir().constant(0), [&] {
      write_slot(result, ir().call(helper, {destination, size, source}));
    });
    report_failure(helper, read_slot(result));
  });
  return read_slot(result);
}

// Touches each page of `size` bytes at `source`; 0 if the first is there now. Another may be behind a string's end, and
// need not. What is read on the way lands in `destination`, which is written again then.
ValueId UnitLowering::fault_in(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source) {
  const uint32_t page_bytes = kernel().page_size_bytes();
  sleeps_ = true;
  const auto touch = [&](ValueId at) { return ir().call(Helper::copy_from_user, {destination, ir().constant(1), at}); };
  const ValueId first = touch(source);
  when(Condition::eq, first, ir().constant(0), [&] {
    for (uint32_t at = page_bytes; at < most_bytes; at += page_bytes) touch(offset(source, at));
    touch(ir().binary(Op::k_sub, ir().binary(Op::k_add, source, size), 1));
  });
  return first;
}

ValueId UnitLowering::read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space,
                                  bool zero_rest) {
  if (zero_rest) zero(destination, capacity_bytes);
  if (space == AddressSpace::kBpf && !may_copy_from_kernel()) return copy_text(destination, source, capacity_bytes);
  const Helper helper = space == AddressSpace::kUser ? Helper::probe_read_user_str : Helper::probe_read_kernel_str;
  const ValueId got = call_reader(helper, destination, ir().constant(capacity_bytes), capacity_bytes, source);
  // Gives the length with its NUL, or a negative error.
  return select(
      Condition::sgt, got, ir().constant(0), [&] { return ir().binary(Op::k_sub, got, 1); },
      [&] { return ir().constant(0); });
}

ValueId UnitLowering::current_task_field(std::span<const std::string_view> path) {
  ValueId base = ir().call(Helper::get_current_task, {});
  TypeId type = kernel().find_struct(types(), "task_struct");
  int64_t offset_bytes = 0;
  TypeId outer = type;
  for (const std::string_view name : path) {
    if (types()[type].kind == Kind::kPointer) {
      base = read_scalar(base, offset_bytes, 8, false, AddressSpace::kKernel, outer);
      offset_bytes = 0;
      type = outer = types()[type].element;
    }
    if (!type.valid()) return ir().constant(0);
    kernel().complete(types(), type);
    const auto found = types::find_member(types(), type, name);
    if (!found) return ir().constant(0);
    offset_bytes += found->offset_bits / 8;
    type = found->type;
  }
  const types::Type& last = types()[type];
  if (types::is_by_reference(last)) return offset(base, offset_bytes);
  return read_scalar(base, offset_bytes, static_cast<uint8_t>(last.size_bytes), last.is_signed, AddressSpace::kKernel,
                     outer);
}

// ---- What the probe gives

Operand UnitLowering::context_field(const spec::ContextField& field) {
  using Recipe = spec::Recipe;
  const Recipe& recipe = field.recipe;
  const ValueId context = ir().context();
  const bool is_reference = types::is_by_reference(types()[field.type]);
  const auto as_field = [&](ValueId base, int64_t at, AddressSpace space) -> Operand {
    if (is_reference) return {field.type, offset(base, at), true, space};
    return {field.type, read_scalar(base, at, recipe.size_bytes, recipe.is_signed, space, {})};
  };
  switch (recipe.kind) {
    case Recipe::Kind::kContext: {
      // Contexts of raw probes are words; narrower arguments are the words' low bits.
      const program::ProgramKind kind = main_unit_.context.kind;
      const bool has_words = kind != program::ProgramKind::kTracepoint && kind != program::ProgramKind::kPerfEvent &&
                             kind != program::ProgramKind::kKprobe && kind != program::ProgramKind::kIter;
      if (!has_words || recipe.size_bytes == 8)
        return {field.type, ir().load(recipe.size_bytes, context, recipe.offset_bytes, recipe.is_signed)};
      return {field.type, extend(ir().load(8, context, recipe.offset_bytes), recipe.size_bytes, recipe.is_signed)};
    }
    case Recipe::Kind::kContextAddress:
      return {field.type, offset(context, recipe.offset_bytes), is_reference, AddressSpace::kKernel};
    case Recipe::Kind::kDataLoc:
    case Recipe::Kind::kRelativeLoc: {
      const ValueId where = ir().unary(Op::k_zext16, ir().load(4, context, recipe.offset_bytes));
      const ValueId address = ir().binary(Op::k_add, context, where);
      const int64_t behind = recipe.kind == Recipe::Kind::kRelativeLoc ? int64_t{recipe.offset_bytes} + 4 : 0;
      return {field.type, offset(address, behind), is_reference, AddressSpace::kKernel};
    }
    case Recipe::Kind::kBehindPointer:
      return as_field(ir().load(8, context, recipe.offset_bytes), recipe.inner_offset_bytes, AddressSpace::kKernel);
    case Recipe::Kind::kTaskRegister: {
      const ValueId registers = ir().call(Helper::task_pt_regs, {ir().call(Helper::get_current_task_btf, {})});
      const ValueId word = ir().load(8, registers, recipe.inner_offset_bytes);
      return {field.type, extend(word, recipe.size_bytes, recipe.is_signed)};
    }
    case Recipe::Kind::kUserStackWord:
      return as_field(ir().load(8, context, recipe.offset_bytes), recipe.inner_offset_bytes, AddressSpace::kUser);
    case Recipe::Kind::kConstant: return {field.type, ir().constant(recipe.displacement)};
    case Recipe::Kind::kUserMemory: return as_field(user_address(recipe), 0, AddressSpace::kUser);
    case Recipe::Kind::kLocation: return placed(field);
  }
  UNREACHABLE("a recipe of no kind");
}

// Base, index, scale and displacement, as an operand of the CPU has them.
ValueId UnitLowering::user_address(const spec::Recipe& recipe) {
  ValueId address = ir().constant(recipe.displacement);
  if (recipe.has_base) address = offset(ir().load(8, ir().context(), recipe.offset_bytes), recipe.displacement);
  if (recipe.index_scale == 0) return address;
  const ValueId index = ir().load(8, ir().context(), recipe.index_offset_bytes);
  return ir().binary(Op::k_add, address, ir().binary(Op::k_mul, index, ir().constant(recipe.index_scale)));
}

ValueId UnitLowering::register_value(const kernel::Register& reg) {
  const spec::ProbeContext& context = main_unit_.context;
  if (!context.registers_offset_bytes) return ir().constant(0);
  const auto size = static_cast<uint8_t>(reg.size_bytes);
  if (!context.registers_behind_pointer)
    return ir().load(size, ir().context(), *context.registers_offset_bytes + reg.offset_bytes);
  const ValueId registers = ir().load(8, ir().context(), *context.registers_offset_bytes);
  return read_scalar(registers, reg.offset_bytes, size, false, AddressSpace::kKernel, {});
}

}  // namespace espy::lower

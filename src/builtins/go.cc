// goid: the id of the current goroutine.
//
// Goroutines are `runtime.g` objects in the memory of the program. Code compiled by Go since 1.17 keeps the address of
// the current one in a reserved register; DWARF has the offset of its id. C and assembly code in the same
// binary use this register freely, so the address is checked first: the stack pointer must be in the stack that the
// object describes. Otherwise the result is 0, which is not a valid id.
#include "builtins/builtin_support.h"
#include "symbols/symbols.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Condition;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using spec::BuiltinKind;
using spec::CallSite;
using types::AddressSpace;
using types::TypeId;

// Offsets of members of runtime.g. The stack is a pair of addresses, the lower one first.
struct Goroutine {
  uint32_t id_bytes = 0;
  uint32_t stack_bytes = 0;
};

Result<Goroutine> read_goroutine(const symbols::ElfFile& file, const kernel::Arch& arch) {
  const std::optional<symbols::GoBinary>& go = file.go_binary();
  if (!go) return fail(file.path() + " is not a Go program");
  if (!go->uses_registers) return fail("`goid` needs a program built by Go 1.17 or later");
  if (!arch.go.goroutine) return fail("`goid` is not available on this CPU");
  const auto debug = TRY(file.debug_info());
  const auto id = debug->member_offset("runtime.g", "goid");
  const auto stack = debug->member_offset("runtime.g", "stack");
  if (!id || !stack) return fail("the debug information of " + file.path() + " does not describe `runtime.g`");
  return Goroutine{*id, *stack};
}

TypeId check_goid(Checker& checker, const CallSite& call) {
  const TypeId number = checker.types().uint64();
  symbols::Symbolizer* symbols = checker.symbols();
  if (symbols == nullptr) return number;
  const auto file = symbols->elf_file(checker.first_probe().target);
  const auto found = file ? read_goroutine(**file, checker.kernel().arch()) : tl::unexpected(file.error());
  if (!found)
    checker.error("no-goroutine", call.span, "the goroutine cannot be found: " + found.error().message,
                  found.error().hint);
  return number;
}

Operand lower_goid(Lowering& lowering, const CallSite&) {
  ir::Builder& ir = lowering.ir();
  const TypeId number = lowering.types().uint64();
  const kernel::Arch& arch = lowering.kernel().arch();
  const auto file = probed_file(lowering);
  const auto goroutine = file ? read_goroutine(*file, arch) : fail("");
  if (!goroutine) return {number, ir.constant(0)};
  const auto unknown = [&] { return ir.constant(0); };
  const ValueId g = lowering.register_value(*arch.go.goroutine);
  const ValueId stack_pointer = lowering.register_value({"", arch.stack_pointer_offset});
  const ValueId stack = lowering.memory(16, "stack");
  // If the register holds something else, the read may fail. The helper then zeroes the buffer, and the check below
  // fails too.
  ir.call(ir::Helper::probe_read_user, {stack, ir.constant(16), ir.binary(Op::k_add, g, goroutine->stack_bytes)});
  const ValueId id = lowering.select(
      Condition::uge, stack_pointer, ir.load(8, stack),
      [&] {
        return lowering.select(
            Condition::ult, stack_pointer, ir.load(8, stack, 8),
            [&] { return lowering.read_scalar(g, goroutine->id_bytes, 8, false, AddressSpace::kUser); }, unknown);
      },
      unknown);
  return {number, id};
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any goid",
     .doc = "The id of the current goroutine, in a Go program with debug information; 0 in code that was not compiled "
            "by Go.",
     .kind = BuiltinKind::kVariable,
     .check = check_goid,
     .lower = lower_goid,
     .kept = spec::Kept::kYes,
     .providers = "uprobe,uretprobe"},
};

}  // namespace

extern const spec::BuiltinFamily kGo = {.title = "Goroutines", .rows = kRows};

}  // namespace espy::builtins

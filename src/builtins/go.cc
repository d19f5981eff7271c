// goid: which goroutine it was.
//
// A goroutine is a `runtime.g` in the program's memory. Go's functions keep its address in a reserved register (since
// Go 1.17), and debug information has the offset of the number in it. But a Go program may contain C or assembly code,
// which uses the register for something else. So its value is used only if the stack pointer is on the stack that the
// goroutine names; else the number is 0, which no goroutine has.
#include "builtins/common.h"
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

// Offsets in runtime.g; its stack is two addresses, the lower first.
struct Goroutine {
  uint32_t id_bytes = 0;
  uint32_t stack_bytes = 0;
};

Result<Goroutine> read_goroutine(const symbols::ElfFile& file, const kernel::Arch& arch) {
  const std::optional<symbols::GoBinary>& go = file.go_binary();
  if (!go) return fail(file.path() + " is no Go program");
  if (!go->uses_registers || !arch.go.goroutine)
    return fail("espy finds the goroutine in a register, which Go uses only since Go 1.17 and not on every CPU");
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
    checker.error("no-goroutine", call.span, "there are no goroutines here: " + found.error().message,
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
  const ValueId here = lowering.register_value({"", arch.stack_pointer_offset});
  const ValueId stack = lowering.memory(16, "stack");
  // Where the register is no goroutine this fails, which is no loss. The helper zeroes what it could not read.
  ir.call(ir::Helper::probe_read_user, {stack, ir.constant(16), ir.binary(Op::k_add, g, goroutine->stack_bytes)});
  const ValueId id = lowering.select(
      Condition::uge, here, ir.load(8, stack),
      [&] {
        return lowering.select(
            Condition::ult, here, ir.load(8, stack, 8),
            [&] { return lowering.read_scalar(g, goroutine->id_bytes, 8, false, AddressSpace::kUser); }, unknown);
      },
      unknown);
  return {number, id};
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any goid",
     .doc =
         "The number of the goroutine that runs, in a Go program with debug information; 0 in code that is not Go's.",
     .kind = BuiltinKind::kVariable,
     .check = check_goid,
     .lower = lower_goid,
     .providers = "uprobe,uretprobe"},
};

}  // namespace

extern const spec::BuiltinFamily kGo = {.title = "Goroutines", .rows = kRows};

}  // namespace espy::builtins

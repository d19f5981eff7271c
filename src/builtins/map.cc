// Map functions that take effect at once, in BPF. (clear, zero and print take effect in user space: output.cc.)
#include "builtins/builtin_support.h"

namespace espy::builtins {

namespace {

using check::Checker;
using lower::Lowering;
using lower::Operand;
using spec::CallSite;
using syntax::ExprId;
using types::Kind;
using types::TypeId;

bool is_element(const syntax::Ast& ast, ExprId expr) { return ast.get<syntax::Index>(expr) != nullptr; }

// The key type of a map is known only after all of its uses are checked, so this decides by the syntax.
TypeId check_delete(Checker& checker, const CallSite& call) {
  if (call.arguments.size() == 2 && is_element(checker.ast(), call.arguments[0]))
    checker.error("not-a-map", checker.ast()[call.arguments[0]].span, "the map must be given without a key",
                  "write `delete(@m, key)`");
  return checker.types().bool_type();
}

Lowering::MapElement named_element(Lowering& lowering, const CallSite& call) {
  const program::ScriptMapId map = lowering.unit().fact(call.arguments[0]).map;
  return call.arguments.size() > 1 ? lowering.element(map, call.arguments[1]) : lowering.element(call.arguments[0]);
}

Operand lower_delete(Lowering& lowering, const CallSite& call) {
  const bool is_statement = lowering.unit().fact(call.expr).is_statement;
  const ir::ValueId was_there = lowering.remove(named_element(lowering, call), is_statement);
  return lowering.scalar_operand(lowering.types().bool_type(), was_there);
}

Operand lower_has_key(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ir::ValueId result = lowering.memory(8, "has_key");
  ir.store(8, result, ir.constant(0));
  lowering.with_value(
      named_element(lowering, call), [&](ir::ValueId) { ir.store(8, result, ir.constant(1)); }, nullptr);
  return lowering.scalar_operand(lowering.types().bool_type(), ir.load(8, result));
}

Operand lower_find(Lowering& lowering, const CallSite& call) {
  const Lowering::MapElement element = named_element(lowering, call);
  return lowering.scalar_operand(lowering.types().bool_type(), lowering.find_into(element, call.arguments[2]));
}

// ---- len: the keys of a map, the elements of an array, the frames of a stack ----------------------------------------
//
// The value of a stack is an id, and only user space can look up its frames. So if the script takes the length of a
// stored stack, stacks store their number of frames too; for a stack that is captured in place, the frames are counted.

bool is_stack(const types::Type& type) { return type.kind == Kind::kKernelStack || type.kind == Kind::kUserStack; }

bool captures_stack(const syntax::Ast& ast, ExprId expr, const types::Type& type) {
  const auto* name = ast.get<syntax::Name>(expr);
  const auto* call = ast.get<syntax::Call>(expr);
  const std::string_view word = name ? std::string_view(name->name) : call ? std::string_view(call->name) : "";
  return type.kind == Kind::kKernelStack ? word == "kstack" : word == "ustack" || word == "dw_ustack";
}

// A user stack that was unwound by tables stores its number of frames; otherwise, emits `otherwise`.
ir::ValueId user_length(Lowering& lowering, ir::ValueId address, const std::function<ir::ValueId()>& otherwise) {
  const ir::ValueId unwound = lowering.ir().load(4, address, 12);
  return lowering.select(
      ir::Condition::ne, unwound, lowering.ir().constant(0), [&] { return unwound; }, otherwise);
}

// The number of frames that is stored with the stack; 0 if it could not be captured.
ir::ValueId stored_length(Lowering& lowering, const Operand& stack) {
  ir::Builder& ir = lowering.ir();
  const auto of_reference = [&](ir::ValueId reference) {
    return lowering.select(
        ir::Condition::slt, reference, ir.constant(0), [&] { return ir.constant(0); },
        [&] { return ir.binary(ir::Op::k_shr, reference, 32); });
  };
  if (!stack.is_address) return of_reference(stack.value);
  const ir::ValueId address = lowering.in_our_memory(stack).value;
  return user_length(lowering, address, [&] { return of_reference(ir.load(8, address)); });
}

// The number of frames of a stack that is captured here, whose value has none.
ir::ValueId captured_length(Lowering& lowering, ExprId argument, const types::Type& type) {
  if (type.kind == Kind::kKernelStack) return frame_count(lowering, type);
  const ir::ValueId address = lowering.in_our_memory(lowering.value(argument)).value;
  return user_length(lowering, address, [&] { return frame_count(lowering, type); });
}

// True for an element of a map of recent(), or for such a map without keys.
bool holds_recent(const types::Type& type, const syntax::Ast& ast, ExprId argument, bool is_keyed) {
  return type.kind == Kind::kRecent && (is_element(ast, argument) || !is_keyed);
}

TypeId check_len(Checker& checker, const CallSite& call) {
  const ExprId argument = call.arguments[0];
  // A map without an assignment has no type.
  const types::Type type = checker.type(argument) ? checker.types()[checker.type(argument)] : types::Type{};
  const bool is_in_map = checker.unit().fact(argument).map.valid();
  if (is_in_map && holds_recent(type, checker.ast(), argument, checker.is_keyed(argument)))
    return checker.types().int64();
  if (is_stack(type) && !checker.is_keyed(argument)) {
    if (!captures_stack(checker.ast(), argument, type)) checker.measure_stacks();
    return checker.types().int64();
  }
  if (is_in_map && !is_element(checker.ast(), argument)) {
    if (type.kind != Kind::kVoid && !checker.is_keyed(argument))
      checker.error("map-has-no-key", checker.ast()[argument].span,
                    "this map holds one value, and has no keys to count");
    if (!checker.kernel().kfunc_id("bpf_map_sum_elem_count") && !checker.kernel().has(kernel::Feature::kForEachMapElem))
      checker.error("kernel-lacks", call.span,
                    kernel::missing_feature(kernel::Feature::kForEachMapElem, "`len` of a map"));
    return checker.types().int64();
  }
  if (type.kind != Kind::kArray && type.kind != Kind::kTuple) {
    checker.error(
        "wrong-argument", checker.ast()[argument].span,
        "`len`'s first argument must be a map or an array, not " + to_string(checker.types(), checker.type(argument)),
        type.kind == Kind::kString ? "use `strlen`" : "");
  }
  if (type.kind == Kind::kArray) checker.fold(call.expr, int64_t{type.count});
  if (type.kind == Kind::kTuple) checker.fold(call.expr, static_cast<int64_t>(type.members.size()));
  return checker.types().int64();
}

Operand lower_len(Lowering& lowering, const CallSite& call) {
  const ExprId argument = call.arguments[0];
  const TypeId value_type = lowering.type(argument);
  const types::Type type = value_type ? lowering.types()[value_type] : types::Type{};
  const program::ScriptMapId map = lowering.unit().fact(argument).map;
  const bool is_whole_map = map.valid() && !is_element(lowering.ast(), argument);
  const bool is_keyed = is_whole_map && lowering.types()[lowering.checked().maps[map].key].kind != Kind::kVoid;
  if (holds_recent(type, lowering.ast(), argument, is_keyed))
    return lowering.scalar_operand(lowering.types().int64(), lowering.kept_count(lowering.element(argument)));
  if (is_stack(type) && !is_keyed) {
    const bool is_captured = captures_stack(lowering.ast(), argument, type);
    const ir::ValueId length =
        is_captured ? captured_length(lowering, argument, type) : stored_length(lowering, lowering.value(argument));
    return lowering.scalar_operand(lowering.types().int64(), length);
  }
  return lowering.scalar_operand(lowering.types().int64(), lowering.length(lowering.unit().fact(argument).map));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "bool delete(map or element m, any key = 0)",
     .doc =
         "Removes a key, or the value of a map without keys. True if it existed. `delete(@m[key])` is the older form.",
     .check = check_delete,
     .lower = lower_delete,
     .removes_keys = true,
     .example = "begin { @x[1] = 1; @x[2] = 2; delete(@x, 1); delete(@x[2]); }"},
    {.sig = "int64 percentile(histogram h, int part, literal int whole = 100)",
     .doc = "A percentile of a histogram: `part` percent of the values, or `part` of `whole`, are at most this number. "
            "It is "
            "the largest value of a bucket. It is `max` for values above an `lhist`, and 0 for an empty histogram.",
     .check = check_percentile,
     .lower = lower_percentile,
     .example = "begin { @[1] = hist(20); @[1] = hist(1000); printf(\"%d %d\\n\", percentile(@[1], 50), "
                "percentile(@[1], 999, 1000)); }"},
    {.sig = "bool has_key(map m, any key)",
     .doc = "True if the map has the key.",
     .lower = lower_has_key,
     .example = "begin { @x[1] = 1; if (has_key(@x, 1)) { print(\"yes\"); } }"},
    {.sig = "bool find(map m, any key, variable value)",
     .doc = "True if the map has the key. Then its value is assigned to the variable, which else stays as it is.",
     .lower = lower_find,
     .example = "begin { @x[1] = 5; if (find(@x, 1, $value)) { print($value); } }"},
    {.sig = "any len(any or map m)",
     .doc = "The number of keys of a map, of elements of an array, of frames of a stack, or of values that `recent` "
            "has kept.",
     .check = check_len,
     .lower = lower_len,
     .example = "begin { @x[1] = 1; @x[2] = 2; print(len(@x)); }"},
};

}  // namespace

extern const spec::BuiltinFamily kMap = {.title = "Maps", .rows = kRows};

}  // namespace espy::builtins

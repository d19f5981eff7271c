// What the tests of `lower` share: a few builtins and probe types of their own, and a script's way to IR and into the
// kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "../support/fake_kernel.h"
#include "check/check.h"
#include "check/checker.h"
#include "ir/ir_text.h"
#include "lower/lower.h"
#include "lower/lowering.h"
#include "opt/pipeline.h"
#include "spec/registry.h"
#include "syntax/parser.h"

namespace espy::lower {

inline types::TypeId count_type(check::Checker& c, const spec::CallSite&) {
  return c.types().simple(types::Kind::kCount);
}
inline types::TypeId text16(check::Checker& c, const spec::CallSite&) { return c.types().string(16); }
inline types::TypeId text256(check::Checker& c, const spec::CallSite&) { return c.types().string(256); }

inline Operand lower_pid(Lowering& lowering, const spec::CallSite&) {
  ir::Builder& ir = lowering.ir();
  const ValueId both = ir.call(ir::Helper::get_current_pid_tgid, {});
  return {lowering.types().int_type(4, false), ir.binary(ir::Op::k_shr, both, 32)};
}
inline ValueId comm_into(Lowering& lowering, const spec::CallSite&, ValueId destination, uint32_t capacity) {
  lowering.ir().call(ir::Helper::get_current_comm, {destination, lowering.ir().constant(capacity)});
  return lowering.ir().constant(capacity - 1);
}
inline ValueId str_into(Lowering& lowering, const spec::CallSite& call, ValueId destination, uint32_t capacity) {
  const Operand source = lowering.value(call.arguments[0]);
  return lowering.read_string(destination, capacity, source.value, types::AddressSpace::kUser, false);
}
inline Operand lower_printf(Lowering& lowering, const spec::CallSite& call) {
  std::vector<EventArgument> values;
  for (size_t i = 1; i < call.arguments.size(); ++i) values.push_back({call.arguments[i], {}});
  lowering.emit_event("printf", std::move(values), call.span, {*lowering.text(call.arguments[0])});
  return {};
}
inline Operand lower_exit(Lowering& lowering, const spec::CallSite&) {
  lowering.set_exit_flag(lowering.ir().constant(0));
  lowering.end_action();
  return {};
}
inline void update_count(Lowering& lowering, const spec::CallSite&, ValueId address, bool) {
  ir::Builder& ir = lowering.ir();
  ir.store(8, address, ir.binary(ir::Op::k_add, ir.load(8, address), 1));
}
inline Operand lower_delete(Lowering& lowering, const spec::CallSite& call) {
  return {lowering.types().bool_type(), lowering.remove(lowering.element(call.arguments[0]), false)};
}
inline Operand lower_len(Lowering& lowering, const spec::CallSite& call) {
  return {lowering.types().int64(), lowering.length(lowering.unit().fact(call.arguments[0]).map)};
}

inline constexpr spec::Builtin kRows[] = {
    {.sig = "uint32 pid", .kind = spec::BuiltinKind::kVariable, .lower = lower_pid},
    {.sig = "any comm", .kind = spec::BuiltinKind::kVariable, .check = text16, .lower_into = comm_into},
    {.sig = "any str(any p)", .check = text256, .lower_into = str_into},
    {.sig = "void printf(literal string format, ...)", .lower = lower_printf},
    {.sig = "void exit(int code = 0)", .lower = lower_exit, .ends_action = true},
    {.sig = "bool delete(any m)", .lower = lower_delete, .removes_keys = true},
    {.sig = "int64 len(map m)", .lower = lower_len},
    {.sig = "any count()", .kind = spec::BuiltinKind::kAggregation, .check = count_type, .lower_update = update_count},
};

inline std::vector<spec::BoundProbe> bind_here(spec::BindRequest& request) {
  spec::BoundProbe out;
  out.probe.provider = out.probe.name = std::string(request.point.provider.text);
  out.probe.span = request.point.span;
  return {out};
}
inline spec::ProbeContext run_context(spec::ContextRequest&) {
  return {.kind = program::ProgramKind::kSyscall, .returns_value = true};
}
inline spec::ProbeContext raw_context(spec::ContextRequest& request) {
  spec::ProbeContext out{.kind = program::ProgramKind::kRawTracepoint};
  for (uint32_t i = 0; i < 3; ++i) {
    spec::ContextField field{"arg" + std::to_string(i), request.types.uint64(), {}};
    field.recipe.offset_bytes = i * 8;
    out.arguments.push_back(field);
  }
  return out;
}
// 65,600 probes with a number each: their indices need more than 16 bits.
inline constexpr uint32_t kManyProbes = 65600;
inline std::vector<spec::BoundProbe> bind_many(spec::BindRequest& request) {
  std::vector<spec::BoundProbe> out(kManyProbes, bind_here(request).front());
  for (uint32_t i = 0; i < kManyProbes; ++i) {
    out[i].probe.name += std::to_string(i);
    out[i].probe.number = i;
  }
  return out;
}
inline spec::ProbeContext many_context(spec::ContextRequest&) {
  return {.kind = program::ProgramKind::kRawTracepoint, .dispatch = spec::ProbeContext::Dispatch::kNumber};
}
inline const spec::Provider kMany{.name = "many", .bind = bind_many, .context = many_context};
inline const spec::Provider kBegin{.name = "begin", .bind = bind_here, .context = run_context};
inline const spec::Provider kRaw{.name = "raw", .bind = bind_here, .context = raw_context};

// One script, lowered. `kernel` must outlive it.
struct Script {
  source::Sources sources;
  types::Types types;
  source::Diagnostics diagnostics;
  spec::Registry registry{{{.rows = kRows}}, {&kBegin, &kRaw, &kMany}};
  check::Checked checked;
  Lowered lowered;

  Script(std::string text, kernel::Kernel& kernel) {
    const source::SourceId id = sources.add("t", std::move(text));
    syntax::Ast ast = syntax::parse(sources, id, diagnostics);
    check::CheckRequest request{sources, registry, kernel, types, nullptr, {}, diagnostics};
    checked = check::check(std::move(ast), request);
    EXPECT_FALSE(diagnostics.has_errors()) << source::render(diagnostics, sources);
    if (diagnostics.has_errors()) return;
    lowered = lower(checked, types, kernel);
    EXPECT_EQ(ir::verify(lowered.ir), "") << ir::print(lowered.ir);
  }

  std::string optimized() {
    opt::optimize(lowered.ir, opt::verify_after_pass);
    EXPECT_EQ(ir::verify(lowered.ir), "") << ir::print(lowered.ir);
    return ir::print(lowered.ir);
  }
};

}  // namespace espy::lower

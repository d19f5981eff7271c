// What the tests of `check` share: a few builtins and probe types of their own, and a way to say what came out.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>

#include "../support/fake_kernel.h"
#include "check/check.h"
#include "check/checker.h"
#include "syntax/parser.h"

namespace espy::check {

inline types::TypeId count_type(Checker& c, const spec::CallSite&) { return c.types().simple(types::Kind::kCount); }
inline types::TypeId sum_type(Checker& c, const spec::CallSite& call) {
  return c.types().simple(types::Kind::kSum, c.types()[c.type(call.arguments[0])].is_signed);
}
inline types::TypeId hist_type(Checker& c, const spec::CallSite&) { return c.types().hist(0); }
inline types::TypeId text16(Checker& c, const spec::CallSite&) { return c.types().string(16); }
inline types::TypeId text64(Checker& c, const spec::CallSite&) { return c.types().string(64); }
inline types::TypeId kernel_stack(Checker& c, const spec::CallSite&) {
  return c.types().stack(false, types::StackMode::kBpftrace, 127);
}

inline constexpr spec::Builtin kRows[] = {
    {.sig = "uint32 pid", .kind = spec::BuiltinKind::kVariable},
    {.sig = "uint32 tid", .kind = spec::BuiltinKind::kVariable},
    {.sig = "uint64 nsecs(literal any clock = boot)", .kind = spec::BuiltinKind::kVariable},
    {.sig = "any comm", .kind = spec::BuiltinKind::kVariable, .check = text16},
    {.sig = "probe_name probe", .kind = spec::BuiltinKind::kVariable},
    {.sig = "any kstack(literal any mode = bpftrace, literal int frames = 127)",
     .kind = spec::BuiltinKind::kVariable,
     .check = kernel_stack},
    {.sig = "void printf(literal string format, ...)"},
    {.sig = "void print(any value, int top = 0, int div = 0)"},
    {.sig = "void clear(map m)"},
    {.sig = "bool delete(map or element m, any key = 0)"},
    {.sig = "bool has_key(map m, any key)"},
    {.sig = "void exit(int code = 0)", .ends_action = true},
    {.sig = "void system(literal string format, ...)", .is_unsafe = true},
    {.sig = "any str(pointer p, int length = 64)", .check = text64},
    {.sig = "ksym ksym(int address)"},
    {.sig = "bool override(int code)", .needs = kernel::Feature::kKprobe, .providers = "tracepoint"},
    {.sig = "any count()", .kind = spec::BuiltinKind::kAggregation, .check = count_type},
    {.sig = "any sum(int n)", .kind = spec::BuiltinKind::kAggregation, .check = sum_type},
    {.sig = "any hist(int n, literal int bits = 0)", .kind = spec::BuiltinKind::kAggregation, .check = hist_type},
};

inline std::vector<spec::BoundProbe> bind_edge(spec::BindRequest& request) {
  spec::BoundProbe out;
  out.probe.name = std::string(request.point.provider.text);
  out.probe.span = request.point.span;
  return {out};
}
inline spec::ProbeContext empty_context(spec::ContextRequest&) { return {}; }
inline std::vector<spec::BoundProbe> bind_tracepoint(spec::BindRequest& request) {
  std::vector<spec::BoundProbe> out;
  if (request.parts.size() != 2) {
    request.diagnostics.error("bad-attach-point", request.point.span, "write `tracepoint:CATEGORY:EVENT`");
    return out;
  }
  for (const std::string& name : request.kernel.tracepoints(request.parts[0], request.parts[1])) {
    spec::BoundProbe bound;
    bound.probe.name = "tracepoint:" + name;
    bound.probe.target = name.substr(0, name.find(':'));
    bound.probe.function = name.substr(name.find(':') + 1);
    bound.share.place = request.uses.args ? name : "";
    out.push_back(bound);
  }
  return out;
}
inline spec::ProbeContext tracepoint_context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  const auto found = request.kernel.tracepoint(request.types, request.probes[0].target, request.probes[0].function);
  if (request.uses.args)
    for (const auto& field : found->fields) out.args.push_back({field.name, field.type, {}});
  return out;
}
inline spec::ProbeContext kprobe_context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  for (int i = 0; i < 6; ++i) out.arguments.push_back({"arg" + std::to_string(i), request.types.uint64(), {}});
  return out;
}
inline spec::ProbeContext kretprobe_context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  out.retval = spec::ContextField{"retval", request.types.int64(), {}};
  return out;
}

// Arguments as debug information of a program can claim them.
inline spec::ProbeContext huge_context(spec::ContextRequest& request) {
  types::Types& types = request.types;
  spec::ProbeContext out;
  for (const char* name : {"first", "second"}) {
    const types::TypeId type = types.declare_struct(name, false, {});
    types.define_struct(type, {{"a", types.int64(), 0, 0}}, uint32_t{1} << 31, 8);
    out.args.push_back({name, type, {}});
  }
  return out;
}
inline spec::ProbeContext wide_context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  for (int i = 0; i < 3000; ++i) out.args.push_back({"a" + std::to_string(i), request.types.int64(), {}});
  return out;
}

inline const spec::Provider kHuge{.name = "huge", .bind = bind_edge, .context = huge_context};
inline const spec::Provider kWide{.name = "wide", .bind = bind_edge, .context = wide_context};
inline const spec::Provider kBegin{.name = "begin", .bind = bind_edge, .context = empty_context};
inline const spec::Provider kEnd{.name = "end", .bind = bind_edge, .context = empty_context};
inline const spec::Provider kKprobe{.name = "kprobe", .aliases = {"k"}, .bind = bind_edge, .context = kprobe_context};
inline const spec::Provider kKretprobe{
    .name = "kretprobe", .aliases = {"kr"}, .bind = bind_edge, .context = kretprobe_context};
inline const spec::Provider kTracepoint{
    .name = "tracepoint", .aliases = {"t"}, .bind = bind_tracepoint, .context = tracepoint_context};

// One script, checked.
struct Session {
  source::Sources sources;
  types::Types types;
  testing::FakeKernel kernel;
  source::Diagnostics diagnostics;
  spec::Registry registry{{{.rows = kRows}}, {&kBegin, &kEnd, &kKprobe, &kKretprobe, &kTracepoint, &kHuge, &kWide}};
  Checked checked;

  explicit Session(std::string script, spec::Config config = {}) {
    const source::SourceId id = sources.add("t", std::move(script));
    syntax::Ast ast = syntax::parse(sources, id, diagnostics);
    CheckRequest request{sources, registry, kernel, types, nullptr, std::move(config), diagnostics};
    checked = check(std::move(ast), request);
  }

  std::string rendered() const { return source::render(diagnostics, sources); }

  // "$a int8; @m[uint32] count_t": variables of all units in order, then maps.
  std::string typed() const {
    if (diagnostics.has_errors()) return rendered();
    std::string out;
    const auto add = [&](const std::string& item) { out += (out.empty() ? "" : "; ") + item; };
    for (const Unit& unit : checked.units)
      for (const Variable& variable : unit.variables)
        add(variable.name + " " + (variable.type.valid() ? to_string(types, variable.type) : "?"));
    for (const CheckedMap& map : checked.maps) {
      const bool keyed = types[map.key].kind != types::Kind::kVoid;
      add(map.name + (keyed ? "[" + to_string(types, map.key) + "]" : "") + " " + to_string(types, map.value));
    }
    return out;
  }
};

}  // namespace espy::check

// Clocks and timestamps.
#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/strings.h"
#include "builtins/builtin_support.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Helper;
using ir::Op;
using lower::Lowering;
using lower::Operand;
using spec::BuiltinKind;
using spec::CallSite;
using types::TypeId;

struct Clock {
  std::string_view word;
  Helper helper;
  clockid_t id;
};

// The first one is the default; it includes time in suspend.
constexpr Clock kClocks[] = {
    {"boot", Helper::ktime_get_boot_ns, CLOCK_BOOTTIME},
    {"monotonic", Helper::ktime_get_ns, CLOCK_MONOTONIC},
    {"tai", Helper::ktime_get_tai_ns, CLOCK_TAI},
    // For kernels before 6.1, which have no helper for CLOCK_TAI: boot time plus the offset when espy started.
    {"sw_tai", Helper::ktime_get_boot_ns, CLOCK_TAI},
};

const Clock* find_clock(std::string_view word) {
  const auto found = std::ranges::find(kClocks, word, &Clock::word);
  return found == std::end(kClocks) ? nullptr : &*found;
}

TypeId check_nsecs(Checker& checker, const CallSite& call) {
  const TypeId result = checker.types().uint64();
  if (call.arguments.empty()) return result;
  const auto word = checker.text(call.arguments[0]);
  if (!word || find_clock(*word)) return result;
  std::vector<std::string> words;
  for (const Clock& clock : kClocks) words.emplace_back(clock.word);
  checker.error("unknown-clock", checker.ast()[call.arguments[0]].span, "no clock is named `" + *word + "`",
                suggestion(*word, words));
  return result;
}

Operand lower_nsecs(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const Clock& clock = call.arguments.empty() ? kClocks[0] : *find_clock(*lowering.text(call.arguments[0]));
  ir::ValueId now = ir.call(clock.helper, {});
  if (clock.word == "sw_tai")
    now = ir.binary(Op::k_add, now, static_cast<int64_t>(clock_ns(CLOCK_TAI) - clock_ns(CLOCK_BOOTTIME)));
  return lowering.scalar_operand(lowering.types().uint64(), now);
}

// The session stores its start time in `globals`.
Operand lower_elapsed(Lowering& lowering, const CallSite&) {
  ir::Builder& ir = lowering.ir();
  const ir::ValueId now = ir.call(Helper::ktime_get_boot_ns, {});
  const ir::ValueId start = ir.load(8, ir.map_value(lowering.program().globals, lowering.program().start_offset));
  return lowering.scalar_operand(lowering.types().uint64(), ir.binary(Op::k_sub, now, start));
}

Operand lower_jiffies(Lowering& lowering, const CallSite&) {
  return lowering.scalar_operand(lowering.types().uint64(), lowering.ir().call(Helper::jiffies64, {}));
}

// ---- strftime: a number with its format and clock, formatted when it is printed -------------------------------------

// Returns the name of a variable or of a map, also if `expr` is an element of it; "" if it is something else.
std::string_view storage_name(const syntax::Ast& ast, syntax::ExprId expr) {
  if (const auto* index = ast.get<syntax::Index>(expr)) return storage_name(ast, index->base);
  if (const auto* variable = ast.get<syntax::Variable>(expr)) return variable->name;
  const auto* map = ast.get<syntax::Map>(expr);
  return map ? std::string_view(map->name) : "";
}

// Returns the clock of a call of nsecs() with the name of one; nullptr for any other expression.
const Clock* clock_of_call(const syntax::Ast& ast, syntax::ExprId expr) {
  const auto* call = ast.get<syntax::Call>(expr);
  const bool is_nsecs = call && call->name == "nsecs" && call->arguments.size() == 1;
  const auto* word = is_nsecs ? ast.get<syntax::Name>(call->arguments[0]) : nullptr;
  return word ? find_clock(word->name) : nullptr;
}

// Returns the clock of nsecs(), or of the nsecs() that is assigned to a variable or a map; CLOCK_BOOTTIME for others.
clockid_t clock_of(const syntax::Ast& ast, syntax::ExprId expr) {
  if (const Clock* clock = clock_of_call(ast, expr)) return clock->id;
  const std::string_view name = storage_name(ast, expr);
  if (name.empty()) return CLOCK_BOOTTIME;
  for (const syntax::Stmt& each : ast.stmts) {
    const auto* assign = std::get_if<syntax::Assign>(&each.node);
    const auto* let = std::get_if<syntax::Let>(&each.node);
    const Clock* clock = nullptr;
    if (assign && !assign->op && storage_name(ast, assign->target) == name) clock = clock_of_call(ast, assign->value);
    if (let && let->name == name) clock = clock_of_call(ast, let->value);
    if (clock) return clock->id;
  }
  return CLOCK_BOOTTIME;
}

Operand timestamp(Lowering& lowering, const CallSite& call, ir::ValueId ns) {
  ir::Builder& ir = lowering.ir();
  std::vector<std::string>& formats = lowering.program().formats;
  const std::string format = *lowering.text(call.arguments[0]);
  const auto known = std::ranges::find(formats, format);
  const auto index = known - formats.begin();
  if (known == formats.end()) formats.push_back(format);
  Operand out;
  out.type = lowering.types().simple(types::Kind::kTimestamp);
  out.value = lowering.memory(16, "timestamp");
  out.is_address = true;
  ir.store(8, out.value, ns);
  ir.store(4, out.value, ir.constant(index), 8);
  ir.store(4, out.value, ir.constant(clock_of(lowering.ast(), call.arguments[1])), 12);
  return out;
}

Operand lower_strftime(Lowering& lowering, const CallSite& call) {
  return timestamp(lowering, call, lowering.scalar(call.arguments[1]));
}

}  // namespace

std::vector<lower::EventArgument> values_from(Lowering& lowering, const CallSite& call, size_t first) {
  std::map<clockid_t, ir::ValueId> now;  // read once
  std::vector<lower::EventArgument> out;
  for (const syntax::ExprId argument : call.arguments.subspan(first)) {
    const auto* inner = lowering.ast().get<syntax::Call>(argument);
    const spec::Builtin* builtin = lowering.unit().fact(argument).builtin;
    const syntax::ExprId time = inner && builtin && builtin->lower == lower_strftime ? inner->arguments[1] : argument;
    const spec::Builtin* clock = lowering.unit().fact(time).builtin;
    if (time == argument || clock == nullptr || clock->lower != lower_nsecs) {
      out.push_back({argument, {}});
      continue;
    }
    const auto [read, is_new] = now.try_emplace(clock_of(lowering.ast(), time));
    if (is_new) read->second = lowering.scalar(time);
    const CallSite inner_call{argument, lowering.ast()[argument].span, inner->arguments};
    out.push_back({{}, timestamp(lowering, inner_call, read->second)});
  }
  return out;
}

namespace {

constexpr spec::Builtin kRows[] = {
    {.sig = "any nsecs(literal string clock = \"boot\")",
     .doc = "Nanoseconds of a clock: `boot` (since boot, including suspend), `monotonic`, `tai` or `sw_tai`.",
     .kind = BuiltinKind::kVariable,
     .check = check_nsecs,
     .lower = lower_nsecs,
     .kept = spec::Kept::kWithArguments,
     .is_in_recordings = true,
     .example = "begin { $a = nsecs; if (nsecs >= $a && nsecs(tai) > nsecs(monotonic)) { print(\"later\"); } }"},
    {.sig = "uint64 elapsed",
     .doc = "Nanoseconds since the start of tracing.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_elapsed,
     .example = "begin { if (elapsed > 0) { print(\"started\"); } }"},
    {.sig = "uint64 jiffies",
     .doc = "The kernel's tick counter.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_jiffies,
     .kept = spec::Kept::kYes,
     .example = "begin { if (jiffies > 0) { print(\"ticks\"); } }"},
    {.sig = "timestamp strftime(literal string format, int ns)",
     .doc = "A time of `nsecs` as text, by strftime(3) and `%f` for microseconds. Formatted when it is printed.",
     .lower = lower_strftime,
     .example = "begin { printf(\"%s\\n\", strftime(\"%H:%M:%S.%f\", nsecs)); }"},
};

}  // namespace

extern const spec::BuiltinFamily kTime = {.title = "Time", .rows = kRows};

}  // namespace espy::builtins

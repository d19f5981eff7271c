#include "support/differential.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/byte_reader.h"
#include "check/check.h"
#include "compile/compile.h"
#include "run/environment.h"
#include "simulator/simulator.h"
#include "syntax/parser.h"

namespace espy::differential {

namespace {

using program::Storage;

// Not a failure: nobody runs what was not optimized.
constexpr std::string_view kTooLarge = "too large without optimization";
constexpr uint32_t kMostTries = 5;  // again, of a run in which the kernel was busy

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(b));
  return out;
}

// The words of all CPUs added: one CPU ran the program, the others have zeros.
std::vector<std::byte> add_up(std::span<const std::byte> bytes, size_t size, size_t stride, uint32_t copies) {
  std::vector<std::byte> out((size + 7) & ~size_t{7});
  for (uint32_t copy = 0; copy < copies; ++copy) {
    for (size_t at = 0; at + 8 <= out.size(); at += 8) {
      uint64_t sum = 0, one = 0;
      std::memcpy(&sum, out.data() + at, 8);
      std::memcpy(&one, bytes.data() + copy * stride + at, 8);
      sum += one;
      std::memcpy(out.data() + at, &sum, 8);
    }
  }
  out.resize(size);
  return out;
}

void read_map(load::Machine& machine, const program::Program& program, const types::Types& types,
              const program::ScriptMap& map, Effect& effect) {
  const size_t size = types[map.value].size_bytes;
  if (map.storage == Storage::kGlobal || map.storage == Storage::kGlobalPerCpu) {
    const uint32_t copies = map.storage == Storage::kGlobal ? 1 : program.cpu_count;
    const auto bytes = machine.memory(program.globals).subspan(map.offset_bytes);
    const auto assigned = add_up(bytes, 8, map.stride_bytes, copies);
    if (hex(assigned) != std::string(16, '0'))
      effect.maps[map.name] = hex(add_up(bytes.subspan(8), size, map.stride_bytes, copies));
    return;
  }
  if (map.storage == Storage::kThread) {
    effect.unseen.insert(map.name);
    return;
  }
  const uint32_t copies = map.storage == Storage::kHash ? 1 : program.cpu_count;
  const Status done = machine.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    effect.maps[fmt::format("{}[{}]", map.name, hex(key))] =
        hex(add_up(value, size, map.storage == Storage::kSlotHash ? map.stride_bytes : value.size() / copies, copies));
  });
  if (!done) effect.failure = done.error().message;
}

std::string errors_of(const source::Diagnostics& diagnostics, const source::Sources& sources) {
  return diagnostics.has_errors() ? render(diagnostics, sources) : "";
}

// What has to live as long as a compilation.
struct Compilation {
  types::Types types;
  source::Sources sources;
  source::Diagnostics diagnostics;
  spec::Registry registry = run::make_registry();
};

Result<program::Program> compile(const std::string& script, kernel::Kernel& kernel, Way way, Compilation& c,
                                 Effect& effect) {
  const source::SourceId source = c.sources.add("generated", script);
  syntax::Ast ast = syntax::parse(c.sources, source, c.diagnostics);
  effect.rejected = errors_of(c.diagnostics, c.sources);
  if (!effect.rejected.empty()) return fail("rejected");
  check::CheckRequest request{c.sources, c.registry, kernel, c.types, nullptr, {}, c.diagnostics};
  const check::Checked checked = check::check(std::move(ast), request);
  effect.rejected = errors_of(c.diagnostics, c.sources);
  if (!effect.rejected.empty()) return fail("rejected");
  compile::Options options;
  options.optimize = way != Way::kSimulatedUnoptimized && way != Way::kKernelUnoptimized;
  options.loops_for_unroll = way == Way::kSimulatedLoops || way == Way::kKernelLoops;
  // The simulator runs loops as they are written: this is the reference for all other ways.
  options.outline_loops = way != Way::kSimulatedUnoptimized;
  options.after_pass = opt::verify_after_pass;
  compile::Compiled compiled = compile::compile(checked, c.types, kernel, options);
  if (compiled.diagnostics.has_errors()) {
    if (!options.optimize) return fail(std::string(kTooLarge));
    return fail("the stack is too large");
  }
  return std::move(compiled.program);
}

}  // namespace

struct Judges::State {
  std::unique_ptr<kernel::Kernel> recorded;
  std::unique_ptr<kernel::Kernel> running;
  std::unique_ptr<load::Machine> prober;
};

Judges::Judges(const std::string& recorded_kernel) : state_(std::make_unique<State>()) {
  if (auto recorded = kernel::open_recorded_kernel(recorded_kernel)) state_->recorded = std::move(*recorded);
  state_->prober = load::open_linux();
  load::Machine* prober = state_->prober.get();
  if (!prober->try_feature(kernel::Feature::kBpfV3)) return;
  if (auto running = kernel::open_kernel("/", {[prober](kernel::Feature f) { return prober->try_feature(f); }}))
    state_->running = std::move(*running);
  if (kernel::Kernel* kernel = state_->running.get())
    prober->use_btf({[kernel](std::string_view name) { return kernel->kfunc_id(name); }, nullptr});
}

Judges::~Judges() = default;

bool Judges::has_kernel() const { return state_->running != nullptr; }

Effect Judges::run(const std::string& script, Way way) {
  Effect effect;
  const bool is_simulated = way < Way::kKernel;
  kernel::Kernel* kernel = is_simulated ? state_->recorded.get() : state_->running.get();
  if (kernel == nullptr) {
    effect.failure = "there is no kernel";
    return effect;
  }
  Compilation c;
  const auto program = compile(script, *kernel, way, c, effect);
  if (!program) {
    if (effect.rejected.empty()) effect.failure = program.error().message;
    return effect;
  }
  std::unique_ptr<load::Machine> machine;
  if (is_simulated) {
    machine = std::make_unique<simulator::Simulator>();
  } else {
    machine = load::open_linux();
  }
  machine->use_btf({[kernel](std::string_view name) { return kernel->kfunc_id(name); }, nullptr});
  Status done = machine->load(*program, c.types, c.sources);
  for (const program::Probe& probe : program->probes)
    if (done) done = machine->run(probe.program);
  if (!done) {
    effect.failure = done.error().message;
    if (machine->refusal()) effect.failure += "\n" + machine->refusal()->sentence;
    return effect;
  }
  for (const program::ScriptMap& map : program->script_maps) read_map(*machine, *program, c.types, map, effect);
  for (const program::LossCounter& counter : program->loss_counters)
    if (counter.kind == program::LossKind::kUpdate)
      effect.lost_updates += load_le(machine->memory(program->globals), counter.offset_bytes, 8);
  return effect;
}

namespace {

std::string compare(const Effect& a, const char* a_name, const Effect& b, const char* b_name) {
  std::string out;
  // Kernels differ in what they can keep with a thread.
  const auto is_unseen = [&](const std::string& name) {
    const std::string map = name.substr(0, name.find('['));
    return a.unseen.contains(map) || b.unseen.contains(map);
  };
  for (const auto& [name, value] : a.maps) {
    if (is_unseen(name)) continue;
    const auto other = b.maps.find(name);
    const std::string got = other == b.maps.end() ? "nothing" : other->second;
    if (got != value) out += fmt::format("{}: {} by {}, {} by {}\n", name, value, a_name, got, b_name);
  }
  for (const auto& [name, value] : b.maps)
    if (!a.maps.contains(name) && !is_unseen(name))
      out += fmt::format("{}: nothing by {}, {} by {}\n", name, a_name, value, b_name);
  return out;
}

// @a3, written with literals, against @b3, with variables.
std::string compare_forms(const Effect& effect) {
  std::string out;
  for (const auto& [name, value] : effect.maps) {
    if (!name.starts_with("@a") || name.size() < 3 || name[2] < '0' || name[2] > '9') continue;
    const auto other = effect.maps.find("@b" + name.substr(2));
    if (other == effect.maps.end() || other->second != value)
      out += fmt::format("{}: {} folded, {} computed\n", name, value,
                         other == effect.maps.end() ? "nothing" : other->second);
  }
  return out;
}

}  // namespace

std::string judge(Judges& judges, const std::string& script, bool& is_rejected) {
  Effect plain = judges.run(script, Way::kSimulatedUnoptimized);
  const char* plain_name = "unoptimized";
  if (plain.failure == kTooLarge) {
    plain = judges.run(script, Way::kSimulated);
    plain_name = "optimized";
  }
  is_rejected = !plain.rejected.empty();
  if (is_rejected && std::getenv("SHOW_REJECTED") != nullptr) return "rejected: " + plain.rejected;
  if (is_rejected) return "";
  std::string out = plain.failure.empty() ? compare_forms(plain) : "simulator: " + plain.failure + "\n";
  struct Other {
    Way way;
    const char* name;
  };
  const bool has_unroll = script.find("unroll(") != std::string::npos;
  std::vector<Other> others = {{Way::kSimulated, "optimized"}};
  if (has_unroll) others.push_back({Way::kSimulatedLoops, "with loops for unroll"});
  if (judges.has_kernel()) {
    others.push_back({Way::kKernel, "kernel"});
    others.push_back({Way::kKernelUnoptimized, "kernel, unoptimized"});
    if (has_unroll) others.push_back({Way::kKernelLoops, "kernel, with loops for unroll"});
  }
  for (const auto& [way, name] : others) {
    Effect effect = judges.run(script, way);
    // Where another program was preempted within a map, the kernel finds the map busy, which the script counts.
    for (uint32_t tries = 0; tries < kMostTries && effect.lost_updates > plain.lost_updates; ++tries)
      effect = judges.run(script, way);
    // What nobody runs may be too much for the stack, or for the verifier, which loops then walk in memory.
    // The log of a long program may end before it says so.
    const auto says = [&](std::string_view text) { return effect.failure.find(text) != std::string::npos; };
    const bool is_too_complex = says("is too large") || says("jumps is too complex") ||
                                (says("refused the program") && says(std::strerror(E2BIG)));
    if (is_too_complex && way != Way::kKernelUnoptimized) ++judges.too_complex;
    if (effect.failure == kTooLarge || is_too_complex) continue;
    if (!effect.failure.empty() || !effect.rejected.empty()) {
      out += fmt::format("{}: {}{}\n", name, effect.failure, effect.rejected);
    } else if (plain.failure.empty()) {
      out += compare(plain, plain_name, effect, name);
    }
  }
  return out;
}

}  // namespace espy::differential

#include "trace/profile_script.h"

#include <string>
#include <utility>
#include <vector>

#include "syntax/build.h"

namespace espy::trace {

namespace {

using syntax::BinaryOp;
using syntax::ExprId;
using syntax::StmtId;

class ProfileScript {
 public:
  explicit ProfileScript(const ProfileOptions& options) : options_(options) {}

  TraceScript finish() {
    build_.config("print_maps_on_exit", build_.truth(false));
    build_.config("show_debug_info", build_.truth(false));
    build_.config("max_map_keys", build_.number(64 * 1024));
    if (options_.is_off_cpu)
      add_off_cpu();
    else
      add_samples();
    TraceScript out;
    out.script = std::move(script_);
    return out;
  }

 private:
  ExprId name(const char* name) const { return build_.name(name); }
  ExprId variable(const char* name) const { return build_.variable(name); }
  ExprId of_switch(const char* member) const { return build_.member(name("args"), member); }
  ExprId item(ExprId tuple, uint32_t index) const { return build_.add(syntax::TupleAccess{tuple, index}); }
  StmtId run(const char* function, std::vector<ExprId> arguments) const {
    return build_.run(build_.call(function, std::move(arguments)));
  }

  void add_action(const std::string& provider, std::vector<std::string> parts, std::vector<StmtId> body) {
    build_.action({build_.attach_point(provider, parts)}, std::move(body));
    script_.probes.emplace_back();
  }

  // The idle thread of a CPU is no program.
  void add_samples() {
    std::vector<ExprId> key;
    if (!options_.is_one_process) key.push_back(name("comm"));
    key.push_back(name("ustack"));
    key.push_back(name("kstack"));
    const StmtId count = build_.assign(build_.index(build_.map("@samples"), key), build_.call("count", {}));
    const ExprId runs = build_.binary(BinaryOp::kNotEqual, name("tid"), build_.number(0));
    add_action("profile", {"hz", std::to_string(options_.hz)}, {build_.when(runs, {count})});
    add_action("end", {}, {run("print", {build_.map("@samples")})});
  }

  // At a switch, the thread that leaves is still the current one, so that the stacks are its own.
  void add_off_cpu() {
    // EXIT_DEAD and EXIT_ZOMBIE: a thread that has ended does not wait.
    constexpr uint64_t kEnded = 0x30;
    const ExprId ended = build_.binary(BinaryOp::kBitAnd, of_switch("prev_state"), build_.number(kEnded));
    const ExprId waits = build_.binary(BinaryOp::kEqual, ended, build_.number(0));
    const ExprId is_program = build_.binary(BinaryOp::kNotEqual, of_switch("prev_pid"), build_.number(0));
    const ExprId leaves =
        build_.binary(BinaryOp::kLogicalAnd, build_.binary(BinaryOp::kLogicalAnd, is_program, waits), name("traced"));
    const StmtId remember =
        build_.assign(build_.index(build_.map("@left"), {of_switch("prev_pid")}),
                      build_.tuple({variable("$now"), name("comm"), name("ustack"), name("kstack")}));
    const ExprId returns = build_.call("find", {build_.map("@left"), of_switch("next_pid"), variable("$was")});
    const auto add = [&](const auto& was) {
      std::vector<ExprId> key;
      if (!options_.is_one_process) key.push_back(item(was(), 1));
      key.push_back(item(was(), 2));
      key.push_back(item(was(), 3));
      const ExprId waited = build_.binary(BinaryOp::kSubtract, variable("$now"), item(was(), 0));
      return build_.assign(build_.index(build_.map("@waited_us"), key),
                           build_.call("sum", {build_.binary(BinaryOp::kDivide, waited, build_.number(1000))}));
    };
    const auto was = [&] { return variable("$was"); };
    add_action("tracepoint", {"sched", "sched_switch"},
               {build_.assign(variable("$now"), name("nsecs")), build_.when(leaves, {remember}),
                build_.when(returns, {add(was), run("delete", {build_.map("@left"), of_switch("next_pid")})})});
    // Threads that still wait.
    const auto left = [&] { return item(variable("$left"), 1); };
    const ExprId body = build_.add(syntax::Block{{add(left)}, {}});
    const StmtId each = build_.add(syntax::ForMap{"$left", build_.span, build_.map("@left"), body});
    const ExprId count = build_.call("len", {build_.map("@left")});
    add_action("end", {},
               {build_.assign(variable("$now"), name("nsecs")), each, run("print", {build_.map("@waited_us")}),
                run("printf", {build_.text("%d threads still wait: the output includes their time so far\n"), count})});
  }

  const ProfileOptions& options_;
  run::BuiltScript script_;
  syntax::Build build_{script_.ast, {}};
};

}  // namespace

Result<TraceScript> write_profile_script(const ProfileOptions& options, run::Environment&) {
  return ProfileScript(options).finish();
}

}  // namespace espy::trace

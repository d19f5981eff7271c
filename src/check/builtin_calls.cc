#include "check/builtin_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "check/signature.h"

namespace espy::check {

TypeId BuiltinCalls::check(ExprId id, const spec::Builtin& builtin, const std::vector<ExprId>& arguments) {
  facts_.fact(id).builtin = &builtin;
  const Span span = facts_.span(id);
  const Signature signature = parse_signature(builtin.sig);
  const bool allowed = is_allowed(builtin, span) && is_recorded(builtin, !arguments.empty(), span);
  const size_t errors = reporter_.error_count();
  arguments_.check(builtin, signature, arguments);
  if (const auto problem = arity_problem(spec::name_of(builtin), signature, arguments.size())) {
    reporter_.error("wrong-arity", span, *problem, fmt::format("it is `{}`", builtin.sig));
    return {};
  }
  TypeId result = signature_type(facts_.types(), kernel_, signature.result);
  if (signature.result == "int") result = facts_.types().int64();
  const bool is_known = std::ranges::all_of(
      arguments, [&](ExprId argument) { return facts_.type(argument).valid() || facts_.fact(argument).map.valid(); });
  if (!allowed || !is_known || reporter_.error_count() != errors || !builtin.check) return result;
  const TypeId found = builtin.check(checker_, {id, span, arguments});
  return signature.result == "any" || !result ? found : result;
}

bool BuiltinCalls::is_recorded(const spec::Builtin& builtin, bool has_arguments, Span span) {
  const bool is_kept =
      builtin.kept == spec::Kept::kYes || (builtin.kept == spec::Kept::kWithArguments && has_arguments);
  if (kernel_.recording() == nullptr || !is_kept || builtin.is_in_recordings) return true;
  reporter_.error("not-recorded", span, fmt::format("this value of `{}` was not recorded", spec::name_of(builtin)),
                  "`espy record --for SCRIPT` records what the probes of a script read");
  return false;
}

bool BuiltinCalls::is_allowed(const spec::Builtin& builtin, Span span) {
  const std::string name = "`" + std::string(spec::name_of(builtin)) + "`";
  bool allowed = true;
  if (builtin.is_unsafe && !config_.allow_unsafe) {
    reporter_.error("unsafe", span, name + " can change the system", "run with --unsafe to allow it");
    allowed = false;
  }
  if (builtin.needs && !kernel_.has(*builtin.needs)) {
    report_missing_feature(*builtin.needs, name, span);
    allowed = false;
  }
  allowed &= works_in_probe(builtin, name, span);
  if (builtin.ends_action && variables_.is_in_loop())
    reporter_.error("exit-in-loop", span, name + " cannot be called in a loop",
                    "use `break`, and call it after the loop");
  return allowed;
}

void BuiltinCalls::report_missing_feature(kernel::Feature feature, const std::string& name, Span span) {
  const std::string forbidden = feature == kernel::Feature::kProbeWriteUser
                                    ? forbidden_by(kernel_.lockdown(), kernel::Lockdown::kIntegrity, name)
                                    : "";
  reporter_.error("kernel-lacks", span, !forbidden.empty() ? forbidden : kernel::missing_feature(feature, name));
}

bool BuiltinCalls::works_in_probe(const spec::Builtin& builtin, const std::string& name, Span span) {
  if (builtin.providers.empty() || !facts_.unit().action) return true;
  std::vector<std::string> providers;
  for (const std::string_view provider : split(builtin.providers, ',')) providers.emplace_back(trim(provider));
  const std::string& provider = facts_.first_probe().provider;
  if (std::ranges::find(providers, provider) != providers.end()) return true;
  reporter_.error("wrong-probe", span, name + " does not work in a `" + provider + "` probe",
                  "it works in " + join(providers, ", "));
  return false;
}

}  // namespace espy::check

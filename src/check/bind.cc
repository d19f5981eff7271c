#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/fatal.h"
#include "base/strings.h"
#include "check/check_passes.h"
#include "check/signature.h"
#include "check/type_rules.h"
#include "syntax/lexer.h"

namespace espy::check {

namespace {

struct Uses : spec::Uses {
  std::vector<std::pair<std::string_view, std::string_view>> fields = {};  // args.NAME and locals.NAME
};

bool is_argument_name(std::string_view name) {
  const std::string_view rest = name.starts_with("sarg")  ? name.substr(4)
                                : name.starts_with("arg") ? name.substr(3)
                                                          : "";
  return !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
}

void add_use(std::string_view name, const spec::Registry& registry, Uses& uses) {
  if (name == "args") uses.args = true;
  if (name == "locals") uses.locals = true;
  if (name == "retval") uses.retval = true;
  if (name == "retval" || is_argument_name(name)) uses.context = true;
  if (const spec::Builtin* builtin = registry.find_builtin(name)) {
    uses.context |= builtin->reads_context;
    uses.file |= builtin->reads_file;
  } else {
    // It may be an enumerator of the file. One without a capital that differs between files is refused later.
    uses.file |= std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
  }
}

Uses uses_of(const syntax::Ast& ast, CheckRequest& request, const syntax::Action& action) {
  Uses uses;
  const auto visit = [&](ExprId id) {
    if (const auto* name = ast.get<syntax::Name>(id)) add_use(name->name, request.registry, uses);
    if (const auto* call = ast.get<syntax::Call>(id)) add_use(call->name, request.registry, uses);
    const auto* access = ast.get<syntax::Access>(id);
    const auto* word = access ? ast.get<syntax::Name>(access->base) : nullptr;
    if (word && (word->name == "args" || word->name == "locals")) uses.fields.emplace_back(word->name, access->name);
  };
  // Names that neither the language nor the script defines may be those of types and enumerators of a file.
  const auto visit_type = [&](syntax::TypeNameId id) {
    const syntax::TypeName& type = ast[id];
    const bool has_word = type.tag != syntax::TypeName::Tag::kNone;
    const bool is_of_language = !has_word && (type.name.empty() || c_integer(request.types, type.name) ||
                                              signature_type(request.types, request.kernel, type.name));
    uses.file |= !is_of_language;
  };
  walk(ast, action.predicate, visit, visit_type);
  walk(ast, action.body, visit, visit_type);
  return uses;
}

// Why a field that the action names cannot be read in this context; "" if all can, or if parts of a struct may.
std::string why_unreadable(const spec::ProbeContext& context, const Uses& uses) {
  for (const auto& [word, name] : uses.fields) {
    const auto find = [&, wanted = name](const std::vector<spec::ContextField>& fields) -> const spec::ContextField* {
      const auto found = std::ranges::find(fields, wanted, &spec::ContextField::name);
      return found == fields.end() ? nullptr : &*found;
    };
    const spec::ContextField* field = word == "locals" ? find(context.locals) : nullptr;
    if (!field) field = find(context.args);
    if (!field) return fmt::format("`{}` is not visible", name);
    if (field->recipe.place.pieces.empty() && !field->unreadable.empty()) return field->unreadable;
  }
  return "";
}

// Replaces `$1` by the parameter and `$#` by their number, anywhere in a part, in quotes too.
std::string with_parameters(std::string_view text, const std::vector<std::string>& positional) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (text[i] != '$') {
      out += text[i];
    } else if (end > i + 1) {
      size_t number = 0;
      for (size_t k = i + 1; k < end && number < 10000; ++k) number = number * 10 + static_cast<size_t>(text[k] - '0');
      if (number >= 1 && number <= positional.size()) out += positional[number - 1];
      i = end - 1;
    } else if (end < text.size() && text[end] == '#') {
      out += std::to_string(positional.size());
      i = end;
    } else {
      out += '$';
    }
  }
  return out;
}

class Binder {
 public:
  Binder(Checked& checked, CheckRequest& request, ResultTypes results)
      : checked_(checked), request_(request), results_(results) {
    if (checked.config.probe_filter.empty()) return;
    if (auto filter = Regex::compile(checked.config.probe_filter)) filter_ = std::move(*filter);
  }

  // Whether an attach point has functions that return different types.
  bool has_mixed_results() const { return has_mixed_results_; }

  // Reports what was left out, and if no probe is left to run or there are more programs than allowed. Returns false if
  // there are too many.
  bool finish() {
    const bool is_testing = checked_.config.runs_tests || checked_.config.runs_benchmarks;
    report_left_out();
    if (is_testing ? !has_work_ : has_skipped_ && (filter_ ? !has_work_ : checked_.probes.empty())) no_probe_left();
    const bool too_many_programs = checked_.units.size() > checked_.config.limits.max_bpf_progs;
    if (too_many_programs)
      request_.diagnostics.error("too-many-programs", checked_.units.back().action->span,
                                 fmt::format("{} BPF programs would be loaded, max_bpf_progs allows {}",
                                             checked_.units.size(), checked_.config.limits.max_bpf_progs),
                                 "set max_bpf_progs higher, or BPFTRACE_MAX_BPF_PROGS");
    return !too_many_programs && !too_many_;
  }

  void bind_action(const syntax::Action& action) {
    if (too_many_) return;
    const Uses uses = uses_of(checked_.ast, request_, action);
    Groups groups;
    unmatched_.clear();
    seen_.clear();
    known_groups_.clear();
    const std::span<const spec::BoundProbe> bound = bound_already(action);
    has_several_points_ = bound.empty() && action.attach_points.size() > 1;
    for (size_t i = 0; i < action.attach_points.size() && !too_many_; ++i) {
      const syntax::AttachPoint& point = action.attach_points[i];
      if (bound.empty())
        bind_point(point, uses, groups);
      else
        add(*request_.registry.find_provider(bound[i].probe.provider), point, bound[i], groups);
    }
    if (too_many_) return;
    for (const Unmatched& point : unmatched_) missing(point, !groups.empty());
    for (Group& group : groups) {
      Unit unit;
      unit.action = &action;
      if (checked_.units.size() >= checked_.config.limits.max_bpf_progs) {  // refused: only the number is of interest
        checked_.units.push_back(std::move(unit));
        continue;
      }
      unit.probes = std::move(group.probes);
      unit.context = context_of(*group.provider, group.share, unit.probes, uses);
      if (results_ == ResultTypes::kNumbersInWildcards && bound.empty())
        use_plain_result(unit, *group.provider, group.share, uses);
      checked_.units.push_back(std::move(unit));
    }
  }

 private:
  struct Group {  // what becomes a unit
    const spec::Provider* provider;
    spec::Share share;
    std::vector<ProbeId> probes;
  };
  using Groups = std::vector<Group>;  // in the order of first appearance
  struct Unmatched {
    const syntax::AttachPoint* point;
    const spec::Provider* provider;  // null: several, matched by a wildcard
    std::vector<std::string> parts;
    std::vector<source::Diagnostic> reasons = {};  // of the provider
  };

  std::span<const spec::BoundProbe> bound_already(const syntax::Action& action) const {
    const auto index = static_cast<size_t>(&action - checked_.ast.actions.data());
    if (index >= request_.bound.size() || request_.bound[index].empty()) return {};
    CHECK(request_.bound[index].size() == action.attach_points.size());
    return request_.bound[index];
  }

  // "did you mean `tracepoint:syscalls:sys_enter_openat`?" of "sys_enter_openat".
  std::string event_named(const std::string& word) const {
    if (has_wildcard(word)) return "";
    const std::vector<std::string> found = request_.kernel.tracepoints("*", word);
    return found.empty() ? "" : fmt::format("did you mean `tracepoint:{}`?", found.front());
  }

  const spec::Provider* find(const syntax::AttachPoint& point, const std::string& word) {
    if (const spec::Provider* provider = request_.registry.find_provider(word)) return provider;
    std::vector<std::string> names;
    for (const spec::Provider* known : request_.registry.providers()) names.emplace_back(known->name);
    std::string hint;
    for (size_t i = 0; i < word.size() && hint.empty(); ++i) hint = syntax::foreign_character(word.substr(i));
    if (hint.empty()) hint = did_you_mean(to_lower(word), names);
    if (hint.empty() && point.parts.empty()) hint = event_named(word);
    request_.diagnostics.error("unknown-probe", point.provider.span, "no probe type named `" + word + "`", hint);
    return nullptr;
  }

  // The provider's word and the parts, with parameters replaced. A parameter alone may be a whole attach point, which
  // is split.
  std::pair<std::string, std::vector<std::string>> words(const syntax::AttachPoint& point) {
    const auto& given = checked_.config.arguments.positional;
    std::vector<std::string> out;
    const auto add = [&](const syntax::AttachPart& part) {
      const std::string text = with_parameters(part.text, given);
      const bool whole = part.text.starts_with('$') && text != part.text && !part.quoted;
      if (!whole || !point.parts.empty()) return out.push_back(text);
      for (const std::string_view piece : split(text, ':')) out.emplace_back(piece);
    };
    add(point.provider);
    for (const syntax::AttachPart& part : point.parts) out.push_back(with_parameters(part.text, given));
    std::string provider = out.front();
    out.erase(out.begin());
    return {std::move(provider), std::move(out)};
  }

  void bind_point(const syntax::AttachPoint& point, const Uses& uses, Groups& groups) {
    const auto [word, parts] = words(point);
    if (has_wildcard(word)) return bind_all(point, word, parts, uses, groups);
    const spec::Provider* provider = find(point, word);
    if (provider) bind_to(*provider, point, parts, uses, groups, true);
  }

  // A wildcard in the provider's word: binds to every match that lists its probes.
  void bind_all(const syntax::AttachPoint& point, const std::string& pattern, const std::vector<std::string>& parts,
                const Uses& uses, Groups& groups) {
    const size_t before = checked_.probes.size();
    for (const spec::Provider* provider : request_.registry.providers()) {
      if (glob_match(to_lower(pattern), provider->name) && provider->list && !provider->needs_target_to_list)
        bind_to(*provider, point, parts, uses, groups, false);
    }
    if (checked_.probes.size() == before) unmatched_.push_back({&point, nullptr, parts});
  }

  // With --test or --bench nothing is attached.
  bool is_skipped(const spec::Provider& provider) const {
    const bool is_testing = checked_.config.runs_tests || checked_.config.runs_benchmarks;
    return is_testing && provider.phase == spec::Provider::Phase::kAttached;
  }

  static bool is_run_by_session(const spec::Provider& provider) {
    return provider.phase == spec::Provider::Phase::kBegin || provider.phase == spec::Provider::Phase::kEnd;
  }

  // --probe-filter does not apply to begin and end.
  bool is_filtered(const spec::Provider& provider, const std::string& name) const {
    return filter_ && !is_run_by_session(provider) && !filter_->matches_somewhere(name);
  }

  void bind_to(const spec::Provider& provider, const syntax::AttachPoint& point, const std::vector<std::string>& parts,
               const Uses& uses, Groups& groups, bool must_match) {
    if (is_skipped(provider)) {
      has_skipped_ = true;
      return;
    }
    source::Diagnostics found_wrong, missing;
    spec::BindRequest bind{.point = point,
                           .parts = parts,
                           .kernel = request_.kernel,
                           .types = request_.types,
                           .symbols = request_.symbols,
                           .config = checked_.config,
                           .diagnostics = found_wrong,
                           .missing = missing,
                           .earlier = {checked_.probes.begin(), checked_.probes.end()},
                           .binding = request_.binding,
                           .uses = uses,
                           .provider = &provider};
    std::vector<spec::BoundProbe> bound = provider.bind(bind);
    if (uses.retval && provider.find_type != nullptr && !bound.empty() && bound[0].probe.is_optional)
      has_mixed_results_ |= std::ranges::any_of(bound, [&](const auto& each) { return each.share != bound[0].share; });
    if (must_match || !found_wrong.has_errors())
      for (const source::Diagnostic& said : found_wrong.all()) request_.diagnostics.add(said);
    if (bound.empty() && !found_wrong.has_errors() && must_match)
      unmatched_.push_back({&point, &provider, parts, missing.all()});
    leave_out_unreadable(provider, point, uses, bound);
    for (spec::BoundProbe& probe : bound) add(provider, point, std::move(probe), groups);
  }

  // A line or a function may have several addresses, as inlined copies. Drops those at which the action cannot read all
  // fields that it names, if there are others.
  void leave_out_unreadable(const spec::Provider& provider, const syntax::AttachPoint& point, const Uses& uses,
                            std::vector<spec::BoundProbe>& bound) {
    struct Copies {
      std::set<spec::Share> shares = {};
      size_t readable = 0, unreadable = 0;
      std::string why = {};
    };
    if (uses.fields.empty() || bound.size() < 2) return;
    std::map<std::string, Copies> by_name;
    for (const spec::BoundProbe& each : bound) by_name[each.probe.name].shares.insert(each.share);
    std::map<spec::Share, std::string> reasons;
    const auto reason = [&](const spec::BoundProbe& each) -> const std::string& {
      const auto [known, is_new] = reasons.try_emplace(each.share);
      if (is_new) known->second = why_unreadable(context_in(provider, {&each.probe, 1}, each.share, uses), uses);
      return known->second;
    };
    for (const spec::BoundProbe& each : bound) {
      Copies& copies = by_name[each.probe.name];
      if (copies.shares.size() < 2) continue;
      const std::string& why = reason(each);
      ++(why.empty() ? copies.readable : copies.unreadable);
      if (copies.why.empty()) copies.why = why;
    }
    for (const auto& [name, copies] : by_name)
      if (copies.readable > 0 && copies.unreadable > 0)
        request_.diagnostics.warning("copies-left-out", point.span,
                                     fmt::format("espy skips {} of {} places, because there {}", copies.unreadable,
                                                 copies.readable + copies.unreadable, copies.why),
                                     fmt::format("`espy -lv '{}'` shows what can be read in each", name));
    std::erase_if(bound, [&](const spec::BoundProbe& each) {
      const Copies& copies = by_name[each.probe.name];
      return copies.readable > 0 && copies.unreadable > 0 && !reason(each).empty();
    });
  }

  void add(const spec::Provider& provider, const syntax::AttachPoint& point, spec::BoundProbe bound, Groups& groups) {
    if (!bound.is_wanted || is_filtered(provider, bound.probe.name)) {
      has_skipped_ = true;
      return;
    }
    has_work_ |= !is_run_by_session(provider);
    has_attached_ |= provider.attach != nullptr;
    has_events_ |= provider.attach != nullptr && provider.timer != spec::Timer::kOnOneCpu;
    if (checked_.probes.size() >= checked_.config.limits.max_probes) {
      if (!too_many_)
        request_.diagnostics.error(
            "too-many-probes", point.span,
            fmt::format("more than {} probes would be attached", checked_.config.limits.max_probes),
            "set max_probes higher, or BPFTRACE_MAX_PROBES");
      too_many_ = true;
      return;
    }
    if (bound.probe.provider.empty()) bound.probe.provider = provider.name;
    if (!bound.probe.span.valid()) bound.probe.span = point.span;
    const ProbeId id = checked_.probes.add(std::move(bound.probe));
    // An address that two attach points of an action name fires once for each, in units of their own.
    const size_t round = has_several_points_ ? seen_[{&provider, bound.share, location_of(checked_.probes[id])}]++ : 0;
    const auto [known, is_new] = known_groups_.try_emplace({&provider, bound.share, round}, groups.size());
    if (is_new) groups.push_back({&provider, std::move(bound.share), {}});
    groups[known->second].probes.push_back(id);
  }

  // "did you mean ...": the listed probe whose last part is nearest to the script's.
  std::string suggestion(const spec::Provider& provider, const std::vector<std::string>& parts) {
    if (!provider.list || parts.empty() || (provider.needs_target_to_list && parts.size() < 2)) return "";
    const auto target = std::span(parts).first(provider.needs_target_to_list ? 1 : 0);
    spec::ListRequest list{target, false, request_.kernel, request_.types, request_.symbols, checked_.config};
    std::map<std::string, std::string> by_last_part;
    for (spec::ListedProbe& probe : provider.list(list)) {
      if (probe.name.ends_with(':')) probe.name.pop_back();
      by_last_part.emplace(probe.name.substr(probe.name.rfind(':') + 1), std::move(probe.name));
    }
    std::vector<std::string_view> names;
    for (const auto& [last, name] : by_last_part) names.push_back(last);
    // A number is not the name: software:cpu-clock:1.
    const bool has_number = parts.size() > 1 && parse_int(parts.back()).has_value();
    const std::string near = nearest(has_number ? parts[parts.size() - 2] : parts.back(), names);
    return near.empty() ? "" : "did you mean `" + by_last_part[near] + "`?";
  }

  // What there is instead: the nearest name, unless the provider names it as well.
  std::string what_else(const spec::Provider& provider, const std::vector<std::string>& parts) {
    const std::string near = suggestion(provider, parts);
    if (!provider.tell_similar) return near;
    spec::ListRequest request{parts, false, request_.kernel, request_.types, request_.symbols, checked_.config};
    request.provider = &provider;
    const std::string similar = provider.tell_similar(request);
    const std::string name = near.substr(std::min(near.rfind(':'), near.size()));  // ":NAME`?"
    const bool is_named = !name.empty() && similar.find(name.substr(1, name.size() - 2)) != similar.npos;
    if (similar.empty() || near.empty() || is_named) return similar.empty() ? near : similar;
    return near + " " + similar;
  }

  // Reports an attach point without a match. If others of the action match, a wildcard without one is a warning:
  // scripts name clones of functions that a compiler may or may not have made.
  void missing(const Unmatched& what, bool has_others) {
    const bool is_wildcard = has_wildcard(request_.sources.text(what.point->span));
    auto how = checked_.config.missing_probes;
    if (has_others && is_wildcard && how == spec::MissingProbes::kError) how = spec::MissingProbes::kWarn;
    std::vector<source::Diagnostic> reasons = what.reasons;
    if (reasons.empty()) reasons.push_back(no_match(what, has_others, how == spec::MissingProbes::kError));
    for (source::Diagnostic& each : reasons) {
      if (how == spec::MissingProbes::kError)
        request_.diagnostics.add(std::move(each));
      else
        left_out_.emplace_back(std::move(each), how == spec::MissingProbes::kWarn);
    }
  }

  source::Diagnostic no_match(const Unmatched& what, bool has_others, bool has_hint) {
    const std::string text(request_.sources.text(what.point->span));
    source::Diagnostic out{
        .id = "no-such-probe", .span = what.point->span, .message = "no probe matches `" + text + "`"};
    if (!has_hint) return out;
    if (what.provider && !has_wildcard(text)) out.hint = what_else(*what.provider, what.parts);
    if (out.hint.empty() && has_others) out.hint = "`config = { missing_probes = \"warn\" }` continues without it";
    if (out.hint.empty()) out.hint = "`espy list WORD` searches in the names of probes";
    return out;
  }

  // Attach points that match nothing are warnings or not reported, unless nothing else is left to attach, or only
  // intervals, which would show that nothing happened.
  void report_left_out() {
    const bool is_testing = checked_.config.runs_tests || checked_.config.runs_benchmarks;
    const bool is_needed = !has_attached_ && !is_testing && !has_skipped_ && !request_.diagnostics.has_errors();
    const bool has_only_intervals = has_attached_ && !has_events_ && !has_skipped_;
    for (auto& [said, is_shown] : left_out_) {
      if (is_needed) said.hint += (said.hint.empty() ? "" : "; ") + std::string("nothing else is left to attach");
      said.severity = is_needed ? source::Severity::kError : source::Severity::kWarning;
      if (is_needed || is_shown || has_only_intervals) request_.diagnostics.add(std::move(said));
    }
  }

  spec::ProbeContext context_of(const spec::Provider& provider, const spec::Share& share,
                                const std::vector<ProbeId>& ids, const Uses& uses) {
    CHECK(provider.context != nullptr);
    std::vector<program::Probe> probes;
    for (const ProbeId id : ids) probes.push_back(checked_.probes[id]);
    return context_in(provider, probes, share, uses);
  }

  spec::ProbeContext context_in(const spec::Provider& provider, std::span<const program::Probe> probes,
                                const spec::Share& share, const Uses& uses) {
    spec::ContextRequest context{.probes = probes,
                                 .share = share,
                                 .kernel = request_.kernel,
                                 .types = request_.types,
                                 .symbols = request_.symbols,
                                 .uses = uses,
                                 .provider = &provider};
    spec::ProbeContext out = provider.context(context);
    out.fires_rarely = provider.fires_rarely;
    set_capacities(out.args);
    return out;
  }

  bool is_cut_shorter(types::TypeId type) const {
    return request_.kernel.recording() != nullptr && request_.types[type].count < checked_.config.limits.max_strlen;
  }

  // Of the strings whose length is in the record. Those of a recording are cut already.
  void set_capacities(std::vector<spec::ContextField>& fields) {
    const types::TypeId text = request_.types.string(static_cast<uint32_t>(checked_.config.limits.max_strlen), true);
    for (spec::ContextField& field : fields)
      if (field.type && request_.types[field.type].may_be_cut && !is_cut_shorter(field.type)) field.type = text;
  }

  // The optional probes of programs are those of wildcards, and of names that several functions have.
  void use_plain_result(Unit& unit, const spec::Provider& provider, const spec::Share& share, Uses uses) {
    const program::Probe& probe = checked_.probes[unit.probes.front()];
    auto& result = unit.context.retval;
    if (!result || !probe.is_optional || provider.find_type == nullptr) return;
    if (is_int_like(request_.types[result->type])) return;
    uses.retval = false;
    result = context_of(provider, share, unit.probes, uses).retval;
  }

  void no_probe_left() {
    const source::Span at = checked_.ast.actions.front().span;
    if (filter_)
      request_.diagnostics.error("no-probe-left", at, "no probe matches --probe-filter");
    else if (checked_.config.runs_tests)
      request_.diagnostics.error("no-probe-left", at, "there are no tests", "a test is `test:NAME { ... }`");
    else if (checked_.config.runs_benchmarks)
      request_.diagnostics.error("no-probe-left", at, "there are no benchmarks", "a benchmark is `bench:NAME { ... }`");
    else
      request_.diagnostics.error("no-probe-left", at, "there are only tests and benchmarks",
                                 "--test and --bench run them");
  }

  Checked& checked_;
  CheckRequest& request_;
  // Of the action being bound:
  std::vector<Unmatched> unmatched_;
  bool has_several_points_ = false;
  // A share is unique only within its provider.
  template <class More>
  using ByShare = std::map<std::tuple<const spec::Provider*, spec::Share, More>, size_t>;
  ByShare<decltype(location_of(program::Probe()))> seen_;  // how often
  ByShare<size_t> known_groups_;                           // by round: the index
  ResultTypes results_;
  bool has_mixed_results_ = false;
  std::optional<Regex> filter_;
  bool has_skipped_ = false;
  bool has_work_ = false;                                      // more than begin and end
  bool has_attached_ = false;                                  // a probe of the kernel
  bool has_events_ = false;                                    // one besides intervals
  std::vector<std::pair<source::Diagnostic, bool>> left_out_;  // as config.missing_probes allows; whether as a warning
  bool too_many_ = false;
};

}  // namespace

BindResult bind_probes(Checked& checked, CheckRequest& request, ResultTypes results) {
  Binder binder(checked, request, results);
  for (const syntax::Action& action : checked.ast.actions) binder.bind_action(action);
  const bool is_within_limits = binder.finish();
  for (const syntax::Function& function : checked.ast.functions) {
    Unit unit;
    unit.function = &function;
    checked.units.push_back(std::move(unit));
  }
  return {binder.has_mixed_results(), is_within_limits};
}

}  // namespace espy::check

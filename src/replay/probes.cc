#include "replay/probes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/strings.h"
#include "load/machine.h"
#include "recording/recording.h"
#include "replay/player.h"
#include "symbols/demangle.h"

namespace espy::replay {

namespace {

using recording::FieldKind;
using recording::FieldRole;
using spec::Recipe;

constexpr std::string_view kRecorded = "recorded";  // of probes that the recording has

const RecordedProvider& row_of(const spec::Provider* provider) {
  return static_cast<const RecordedProvider&>(*provider);
}

// A file may be written as it was given to the recorder, as a path with wildcards, or by its last name: `libc` is
// /usr/lib/libc.so.6.
bool is_file(std::string_view pattern, std::string_view path) {
  if (glob_match(pattern, path)) return true;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view wanted = pattern.substr(pattern.rfind('/') + 1);
  return path.find('/') != path.npos && (glob_match(wanted, name) || name.starts_with(std::string(wanted) + ".so"));
}

// As it is in C++ or Rust; a name in the symbol table has neither.
bool is_source_name(std::string_view name) { return name.find("::") != name.npos || name.ends_with(')'); }

// `pattern` may name all overloads of a function, or all instances of a template.
bool is_function(const std::string& pattern, const std::string& name) {
  if (glob_match(pattern, name) || pattern == name) return true;
  if (!is_source_name(name)) return false;
  const std::string_view plain = symbols::name_of_signature(name);
  return glob_match(pattern, plain) || pattern == plain || pattern == symbols::without_template_arguments(plain);
}

// Without quotes, `shop::add` is three parts.
std::vector<std::string> joined(std::span<const std::string> parts) {
  std::vector<std::string> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_torn = out.size() > 1 && parts[i].empty() && i + 1 < parts.size();
    if (is_torn)
      out.back() += "::" + parts[++i];
    else
      out.push_back(parts[i]);
  }
  return out;
}

// The last part is the event or function. Parts before it may be left out, as modules are.
bool matches(const recording::Probe& probe, std::span<const std::string> given) {
  if (fmt::format("{}", fmt::join(given, ":")) == probe.given) return true;
  const bool may_be_torn = !probe.parts.empty() && is_source_name(probe.parts.back());
  const std::vector<std::string> parts =
      may_be_torn ? joined(given) : std::vector<std::string>(given.begin(), given.end());
  if (parts.empty() || probe.parts.empty()) return parts.empty() && probe.parts.empty();
  if (!is_function(parts.back(), probe.parts.back())) return false;
  size_t at = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    while (at + 1 < probe.parts.size() && !is_file(parts[i], probe.parts[at])) ++at;
    if (at + 1 >= probe.parts.size()) return false;
    ++at;
  }
  return true;
}

void report_not_recorded(spec::BindRequest& request) {
  const std::string name = request.parts.empty()
                               ? std::string(request.provider->name)
                               : fmt::format("{}:{}", request.provider->name, fmt::join(request.parts, ":"));
  request.missing.error(
      "not-recorded", request.point.span, fmt::format("`{}` was not recorded", name),
      fmt::format("`espy record -o FILE '{}'` records it; `espy -i FILE -l` lists the recorded probes", name));
}

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  const RecordedProvider& provider = row_of(request.provider);
  const std::vector<recording::Probe>& recorded = request.kernel.recording()->probes;
  const bool reads = request.uses.args || request.uses.context || request.uses.retval;
  std::vector<spec::BoundProbe> out;
  for (uint32_t i = 0; i < recorded.size(); ++i) {
    const recording::Probe& each = recorded[i];
    if (each.provider != provider.name || !matches(each, request.parts)) continue;
    spec::BoundProbe bound;
    bound.probe.provider = provider.name;
    bound.probe.name = each.name;
    bound.probe.function = each.function;
    bound.probe.target = each.target;
    bound.probe.number = i;
    bound.probe.is_optional = std::ranges::any_of(request.parts, has_wildcard);
    bound.probe.span = request.point.span;
    bound.share.method = kRecorded;
    if (reads) bound.share.layout = std::to_string(each.layout);
    out.push_back(std::move(bound));
  }
  if (!out.empty()) return out;
  if (provider.original->timer != spec::Timer::kNone) return provider.original->bind(request);
  report_not_recorded(request);
  return out;
}

// ---- Contexts

Recipe recipe_of(const recording::Field& field, uint32_t offset_bytes, const types::Type& type) {
  Recipe out{Recipe::Kind::kContext, offset_bytes, 0, 8, type.is_signed};
  switch (field.kind) {
    case FieldKind::kNumber: out.size_bytes = static_cast<uint8_t>(std::clamp<uint32_t>(type.size_bytes, 1, 8)); break;
    case FieldKind::kText: out.kind = Recipe::Kind::kDataLoc; break;
    default: out.kind = Recipe::Kind::kContextAddress; break;
  }
  return out;
}

void add_field(spec::ProbeContext& out, const recording::Field& field, std::optional<uint32_t> offset_bytes,
               spec::ContextRequest& request) {
  types::TypeId type = request.kernel.recorded_type(request.types, field.type);
  if (!type.valid()) type = request.types.uint64();
  if (field.kind == FieldKind::kText && request.types[type].kind == types::Kind::kString)
    type = request.types.string(request.types[type].count, true);
  spec::ContextField added{field.name, type, recipe_of(field, offset_bytes.value_or(0), request.types[type])};
  if (!offset_bytes) {
    added.unreadable = fmt::format("`{}` was not recorded", field.name);
    added.hint =
        field.role == FieldRole::kValue
            ? "of such expressions, numbers, pointers, texts, arrays and structs of at most 16 KiB are recorded"
            : "it could not be read there, or the recorder was to leave it out";
  }
  switch (field.role) {
    case FieldRole::kArgs: out.args.push_back(std::move(added)); break;
    case FieldRole::kArgument: out.arguments.push_back(std::move(added)); break;
    case FieldRole::kResult: out.retval = std::move(added); break;
    case FieldRole::kLocal: out.locals.push_back(std::move(added)); break;
    case FieldRole::kValue: out.recorded.push_back(std::move(added)); break;
    default: break;
  }
}

// Of a timer that was not recorded, there are no registers.
spec::ProbeContext context_of_timer(spec::ContextRequest& request) {
  spec::ProbeContext out = row_of(request.provider).original->context(request);
  out.registers_offset_bytes.reset();
  out.context_struct.clear();
  return out;
}

spec::ProbeContext context(spec::ContextRequest& request) {
  if (request.share.method != kRecorded) return context_of_timer(request);
  const recording::Description& description = *request.kernel.recording();
  const recording::Layout& layout = description.layout_of(static_cast<uint32_t>(request.probes.front().number));
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kTracepoint;
  if (request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  if (layout.points_to_user_space) out.pointers = types::AddressSpace::kUser;
  const ContextShape shape = context_shape(layout, request.kernel, request.types);
  for (size_t i = 0; i < layout.fields.size(); ++i) add_field(out, layout.fields[i], shape.places[i], request);
  return out;
}

Status attach(spec::AttachRequest& request) {
  if (request.program.programs[request.program_id].kind != program::ProgramKind::kTracepoint)
    return row_of(request.provider).original->attach(request);
  for (const program::ProbeId id : request.probes)
    TRY_STATUS(request.machine.attach_raw_tracepoint(request.program_id, request.program.probes[id].name, id.index));
  return {};
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  const recording::Description& description = *request.kernel.recording();
  std::vector<spec::ListedProbe> out;
  for (uint32_t i = 0; i < description.probes.size(); ++i) {
    const recording::Probe& each = description.probes[i];
    const bool is_wanted = request.parts.empty() || matches(each, request.parts);
    if (each.provider != request.provider->name || !is_wanted) continue;
    spec::ListedProbe& listed = out.emplace_back(spec::ListedProbe{each.name, {}});
    if (!request.verbose) continue;
    for (const recording::Field& field : description.layout_of(i).fields)
      if (!field.shown.empty()) listed.arguments.push_back(field.shown);
  }
  return out;
}

}  // namespace

RecordedProviders::RecordedProviders(std::span<const spec::Provider* const> all) {
  for (const spec::Provider* each : all) {
    auto row = std::make_unique<RecordedProvider>();
    static_cast<spec::Provider&>(*row) = *each;
    row->original = each;
    row->list = nullptr;
    rows_.push_back(row.get());
    recorded_.push_back(std::move(row));
    if (each->attach != nullptr && each->timer != spec::Timer::kOnOneCpu) use_recorded(*recorded_.back());
  }
  for (const auto& row : recorded_) {
    const auto returns = std::ranges::find(all, row->return_provider);
    if (returns != all.end()) row->return_provider = rows_[static_cast<size_t>(returns - all.begin())];
  }
}

void RecordedProviders::use_recorded(RecordedProvider& row) {
  row.bind = bind;
  row.context = context;
  row.attach = attach;
  row.list = list;
  row.find_type = nullptr;
  row.needs_target_to_list = false;
}

}  // namespace espy::replay

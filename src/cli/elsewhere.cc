#include "cli/elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "base/strings.h"
#include "probes/common.h"

namespace espy::cli {

namespace {

// The types of the arguments and of the result. "" if there is no pointer to a struct among the arguments: too many
// functions have the same.
std::string shape_of(const kernel::FunctionPrototype& function, const types::Types& types) {
  std::string out = probes::c_spelling(types, function.result);
  bool has_struct = false;
  for (const types::Member& each : function.parameters) {
    const types::Type& type = types[each.type];
    has_struct |=
        type.kind == types::Kind::kPointer && type.element && types[type.element].kind == types::Kind::kStruct;
    out += "," + probes::c_spelling(types, each.type);
  }
  return has_struct ? out : "";
}

std::set<std::string> names_of(const std::vector<std::string>& listed) {
  std::set<std::string> out;
  for (const std::string& each : listed) out.insert(probes::split_module(each).name);
  return out;
}

}  // namespace

Result<Environment*> Elsewhere::environment(size_t index) {
  auto& known = environments_[index];
  if (!known) known = TRY(kernels_.environment(index, options_, host_));
  return known.get();
}

std::string Elsewhere::with_same_arguments(const std::string& function, Environment& lacking, Environment& having) {
  constexpr size_t kShortestWord = 4, kMostNames = 4;
  const auto prototype = having.kernel->find_function(having.types, function, "vmlinux");
  const std::string shape = prototype ? shape_of(*prototype, having.types) : "";
  if (shape.empty()) return "";
  const std::set<std::string> theirs = names_of(having.kernel->functions("*"));
  std::set<std::string> found;
  for (const std::string_view word : split(function, '_')) {
    if (word.size() < kShortestWord) continue;
    for (const auto& each : lacking.kernel->find_functions(&lacking.types, fmt::format("*{}*", word), "vmlinux"))
      if (!theirs.contains(each.name) && shape_of(each, lacking.types) == shape)
        found.insert(fmt::format("`{}`", each.name));
  }
  if (found.empty() || found.size() > kMostNames) return "";
  return join(std::vector<std::string>(found.begin(), found.end()), ", ");
}

// The name of a snapshot is its release, which its author has chosen.
std::string Elsewhere::inlined_into(const std::string& function, size_t lacking) {
  constexpr size_t kMostNames = 8;
  const std::string release = kernels_.release(lacking);
  if (release.find('/') != release.npos) return "";
  std::vector<std::string> paths = {fmt::format("/lib/modules/{}/build/vmlinux", release),
                                    fmt::format("/boot/vmlinux-{}", release)};
  for (const std::string& directory : options_.symbols.debug_directories) {
    paths.push_back(fmt::format("{}/boot/vmlinux-{}", directory, release));
    paths.push_back(fmt::format("{}/lib/modules/{}/vmlinux", directory, release));
  }
  for (const std::string& path : paths) {
    const auto file = symbols::ElfFile::open(path, options_.symbols.debug_directories);
    if (!file) continue;
    const auto info = file->debug_info();
    if (!info) continue;
    std::set<std::string> callers;
    for (const symbols::Statement& each : (*info)->inlined_copies(function))
      if (!each.inlined_into.empty()) callers.insert(fmt::format("`{}`", each.inlined_into));
    if (callers.empty()) continue;
    const std::vector<std::string> names(callers.begin(), callers.end());
    const size_t shown = std::min(names.size(), kMostNames);
    return fmt::format("it is inlined into {}{}, says {}", join(std::span(names).first(shown), ", "),
                       names.size() > shown ? fmt::format(" and {} others", names.size() - shown) : "", path);
  }
  return "";
}

Result<std::string> Elsewhere::tell(const std::string& function, size_t lacking) {
  const std::string inlined = inlined_into(function, lacking);
  const std::string others = TRY(tell_of_others(function, lacking));
  return inlined + (inlined.empty() || others.empty() ? "" : "; ") + others;
}

Result<std::string> Elsewhere::tell_of_others(const std::string& function, size_t lacking) {
  std::vector<std::string> names;
  std::string prototype, alike;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (i == lacking) continue;
    Environment& having = *TRY(environment(i));
    if (having.kernel->functions(function).empty()) continue;
    names.push_back(kernels_.name(i));
    if (prototype.empty()) prototype = having.kernel->c_prototype(function, "vmlinux").value_or("");
    if (alike.empty()) alike = with_same_arguments(function, *TRY(environment(lacking)), having);
  }
  if (names.empty()) return "";
  std::string out = fmt::format("{} {} it", join(names, ", "), names.size() == 1 ? "has" : "have");
  if (!prototype.empty()) out += fmt::format(", as `{}`", prototype);
  if (!alike.empty()) out += fmt::format("; with the same arguments, and only here: {}", alike);
  return out;
}

}  // namespace espy::cli

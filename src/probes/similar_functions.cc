#include "probes/similar_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "probes/common.h"

namespace espy::probes {

namespace {

constexpr size_t kMostNames = 4;

// What a compiler or linker appends to the name of a function, and what the code under that name is.
struct Suffix {
  std::string_view text;
  std::string_view meaning;
};
constexpr Suffix kSuffixes[] = {
    {".isra.", "what the compiler made of it, with other arguments where it saw fit"},
    {".constprop.", "a copy of it for calls with some constant arguments, which are not passed"},
    {".part.", "the part of it that is not inlined"},
    {".llvm.", "it, renamed for the linker"},
    {".cold", "the part of it that runs rarely"},
};

const Suffix* suffix_of(std::string_view name, std::string_view function) {
  if (!name.starts_with(function)) return nullptr;
  const std::string_view rest = name.substr(function.size());
  const auto found = std::ranges::find_if(kSuffixes, [&](const Suffix& each) { return rest.starts_with(each.text); });
  return found == std::end(kSuffixes) ? nullptr : found;
}

// The name without what distinguishes a function from the ones that it calls or that call it: leading underscores, the
// layer (vfs_, ksys_, do_), the prefixes of system calls, and the suffix of functions whose allocations are profiled.
std::string_view stem_of(std::string_view name) {
  const auto without_underscores = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('_'), text.size()));
  };
  constexpr std::string_view kProfiled = "_noprof", kCall = "_sys_", kOldCall = "sys_";
  constexpr size_t kLongestCallPrefix = 6;  // of "arm64_sys_"
  name = without_underscores(name);
  if (name.ends_with(kProfiled)) name.remove_suffix(kProfiled.size());
  if (name.starts_with(kOldCall)) return name.substr(kOldCall.size());
  if (const size_t at = name.find(kCall); at <= kLongestCallPrefix) return name.substr(at + kCall.size());
  for (const std::string_view layer : {"do_", "vfs_", "ksys_", "kernel_"})
    if (name.starts_with(layer)) return without_underscores(name.substr(layer.size()));
  return name;
}

class Similar {
 public:
  explicit Similar(spec::ListRequest& request) : request_(request), function_(request.parts.back()) {
    for (const std::string& each : request.kernel.functions("*")) probed_.insert(split_module(each).name);
  }

  std::string tell() {
    std::vector<std::string> out;
    add_compiled(out);
    if (out.empty()) add_without_code(out);
    add_like_named(out);
    return join(out, "; ");
  }

 private:
  void add_compiled(std::vector<std::string>& out) {
    const bool is_return = request_.provider != nullptr && request_.provider->return_provider == nullptr;
    const std::string_view kind = is_return ? "kretprobe" : "kprobe";
    for (const std::string& each : request_.kernel.code(function_ + ".*")) {
      const std::string name = split_module(each).name;
      const Suffix* suffix = suffix_of(name, function_);
      if (suffix == nullptr || out.size() == kMostNames) continue;
      const std::string_view can = probed_.contains(name) ? "and can be probed" : "and is not in ftrace's list";
      out.push_back(fmt::format("`{}:{}` is {}, {}", kind, name, suffix->meaning, can));
    }
  }

  void add_without_code(std::vector<std::string>& out) {
    if (!request_.kernel.code(function_).empty()) return;
    if (const auto text = request_.kernel.c_prototype(function_, "vmlinux"))
      out.push_back(
          fmt::format("the kernel's types describe `{}`, but it has no code now: it is inlined in all "
                      "places, or ran only when the kernel started",
                      *text));
  }

  void add_like_named(std::vector<std::string>& out) const {
    constexpr size_t kShortest = 4;  // of a name that means something
    const std::string_view stem = stem_of(function_);
    if (stem.size() < kShortest || has_wildcard(function_)) return;
    std::vector<std::string> names;
    for (const std::string& each : probed_)
      if (each != function_ && stem_of(each) == stem && names.size() < kMostNames)
        names.push_back(fmt::format("`{}`", each));
    if (!names.empty()) out.push_back(fmt::format("functions of a similar name: {}", join(names, ", ")));
  }

  spec::ListRequest& request_;
  std::string function_;
  std::set<std::string> probed_;
};

}  // namespace

std::string tell_similar_functions(spec::ListRequest& request) {
  return request.parts.empty() ? "" : Similar(request).tell();
}

}  // namespace espy::probes

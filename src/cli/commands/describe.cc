// espy info: the prototype of a function, the layout of a type, the arguments of a probe, and how each can be traced.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/printable.h"
#include "base/strings.h"
#include "cli/attach_text.h"
#include "cli/command.h"
#include "probes/common.h"
#include "symbols/demangle.h"

namespace espy::cli {

namespace {

class Describer {
 public:
  explicit Describer(Environment& environment) : e_(environment) {}

  // Returns "" if the name is unknown.
  std::string describe(const std::string& name) {
    if (name.find(':') != std::string::npos) return probes(name);
    return functions(name) + types(name) + tracepoints(name);
  }

  // "did you mean `x`?", or "".
  std::string hint(const std::string& name) {
    const std::string near = name.find(':') == std::string::npos ? near_name(name) : "";
    return near.empty() ? "a function, a type or a tracepoint of the kernel, or FILE:FUNCTION"
                        : fmt::format("did you mean `{}`?", near);
  }

 private:
  // ---- Functions and types of the kernel
  std::string functions(const std::string& name) {
    std::string out;
    std::vector<std::string> modules;
    for (const kernel::FunctionPrototype& function : e_.kernel->find_functions(nullptr, name, "*"))
      modules.push_back(function.module);
    if (modules.empty()) modules.emplace_back();  // it may have a prototype although it is not traceable
    for (const std::string& module : modules) {
      const auto prototype = e_.kernel->c_prototype(name, module);
      if (!prototype) continue;
      out += *prototype + "\n";
      if (!module.empty() && module != "vmlinux") out += fmt::format("    in module {}\n", module);
    }
    if (out.empty())  // without BTF
      for (const std::string& found : e_.kernel->functions(name))
        if (const probes::KernelFunction function = probes::split_module(found); function.module != "vmlinux")
          out += fmt::format("    in module {}\n", function.module);
    for (const spec::Provider* provider : e_.registry.providers())
      if (!provider->needs_target_to_list && !is_of_events(*provider))
        out += list(*provider, {name}, false, ":" + name);
    return out;
  }

  std::string types(const std::string& name) {
    const auto text = e_.kernel->c_layout(name);
    return text ? *text + "\n" : "";
  }

  // ---- Probes with arguments
  // Tracepoints and their like, which have fields.
  static bool is_of_events(const spec::Provider& provider) {
    return provider.form.find("EVENT") != std::string_view::npos;
  }

  std::string tracepoints(const std::string& name) {
    std::string out;
    const bool is_word = name.find_first_of(" *") == std::string::npos;
    for (const spec::Provider* provider : e_.registry.providers())
      if (is_word && is_of_events(*provider)) out += list(*provider, {name}, true);
    if (is_word && out.empty())  // a system call by its name
      for (const std::string& event : e_.kernel->tracepoints("syscalls", "sys_*_" + name))
        if (event.ends_with("enter_" + name) || event.ends_with("exit_" + name)) out += probes("tracepoint:" + event);
    return out;
  }

  // Those whose names end in `ending`: some providers list all that they have.
  std::string list(const spec::Provider& provider, const std::vector<std::string>& parts, bool is_verbose,
                   std::string_view ending = "") {
    spec::ListRequest request{parts, is_verbose, *e_.kernel, e_.types, &e_.symbols, e_.config, true};
    std::string out;
    for (const spec::ListedProbe& probe : provider.list ? provider.list(request) : std::vector<spec::ListedProbe>()) {
      if (!probe.name.ends_with(ending)) continue;
      out += "    " + probe.name + "\n";
      for (const std::string& argument : probe.arguments) out += "        " + argument + "\n";
    }
    return out;
  }

  // An attach point; without a provider it is a tracepoint, or a function or mark of a file.
  std::string probes(const std::string& point) {
    const std::vector<std::string> all = split_attach_point(point);
    const std::vector<std::string> behind(all.begin() + 1, all.end());
    if (const spec::Provider* named = e_.registry.find_provider(all[0])) {
      const std::string prototype = behind.empty() ? "" : prototype_of(*named, behind);
      return prototype + list(*named, behind, true);
    }
    std::string out;
    for (const spec::Provider* provider : e_.registry.providers())
      if (is_of_events(*provider) || provider->needs_target_to_list) out += list(*provider, all, true);
    return user_prototypes(all) + out;
  }

  // "int main(int argc, char ** argv);" of each function of a file that has the name, by the debug information that
  // its probes have; "" where there is none. The listings have lines as "int argc: di" and "int retval: ax".
  std::string user_prototypes(const std::vector<std::string>& parts) {
    if (has_wildcard(parts.back())) return "";
    struct Prototype {
      std::string name, result = "void", parameters = {};
      bool is_known = false;
    };
    std::vector<Prototype> found;
    for (const spec::ListedProbe& probe : user_functions(parts)) {
      const std::string name = probe.name.substr(probe.name.find(':') + 1);
      if (found.empty() || std::ranges::find(found, name, &Prototype::name) == found.end()) found.push_back({name});
      Prototype& prototype = *std::ranges::find(found, name, &Prototype::name);
      for (const std::string& line : probe.arguments) {
        const std::string declared = line.substr(0, line.find(':'));
        prototype.is_known |= line.find(": ") != std::string::npos;
        constexpr std::string_view kResult = "retval";
        if (declared.ends_with(" retval") || declared.ends_with("*retval") || declared.ends_with("&retval")) {
          prototype.result = trim(std::string_view(declared).substr(0, declared.size() - kResult.size()));
        } else {
          prototype.parameters += (prototype.parameters.empty() ? "" : ", ") + declared;
        }
      }
    }
    std::string out;
    for (const auto& [name, result, parameters, is_known] : found)
      if (is_known)
        out += fmt::format("{}{}{}({});\n", result, result.ends_with('*') ? "" : " ", plain_function(name),
                           parameters.empty() ? "void" : parameters);
    return out;
  }

  // The probes at the entries and returns of functions of a file, without those at statements and at marks.
  std::vector<spec::ListedProbe> user_functions(const std::vector<std::string>& parts) {
    std::vector<spec::ListedProbe> out;
    for (const spec::Provider* entry : e_.registry.providers()) {
      if (!entry->needs_target_to_list || entry->return_provider == nullptr) continue;
      for (const spec::Provider* provider : {entry, entry->return_provider}) {
        spec::ListRequest request{parts, true, *e_.kernel, e_.types, &e_.symbols, e_.config, true};
        for (spec::ListedProbe& probe : provider->list(request))
          if (split_attach_point(probe.name).at(1).find('@') == std::string::npos) out.push_back(std::move(probe));
      }
    }
    return out;
  }

  // "shop::twice" of "./shop:cpp:\"shop::twice(int)\"": its parameters are shown with their names.
  static std::string plain_function(std::string_view place) {
    const std::vector<std::string> parts = split_attach_point(place);
    const std::string& function = parts.back();
    const std::string symbol = symbols::demangle(function, symbols::DemangleStyle::kName);
    return symbol != function ? symbol : std::string(symbols::name_of_signature(function));
  }

  std::string prototype_of(const spec::Provider& provider, const std::vector<std::string>& parts) {
    if (provider.needs_target_to_list || is_of_events(provider)) return "";
    const auto text = e_.kernel->c_prototype(parts.back(), parts.size() > 1 ? parts[0] : "");
    return text ? *text + "\n" : "";
  }

  // ---- Names that are near
  std::string near_name(const std::string& name) {
    std::vector<std::string> known = e_.kernel->functions("*");
    for (std::string& type : e_.kernel->struct_names("*"))
      known.push_back(name.find(' ') == std::string::npos ? type.substr(type.find(' ') + 1) : std::move(type));
    for (const std::string& event : e_.kernel->tracepoints("*", "*"))
      known.push_back(event.substr(event.find(':') + 1));
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    return nearest(name, candidates);
  }

  Environment& e_;
};

int describe(const Options& options, const Host& host) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  int status = EXIT_SUCCESS;
  Describer describer(**environment);
  for (const std::string& name : options.names) {
    const std::string text = describer.describe(name);
    std::fputs(printable(text).c_str(), stdout);
    if (!text.empty()) continue;
    status = complain({fmt::format("nothing is known as `{}`", name), 0, describer.hint(name)});
  }
  return status;
}

constexpr std::string_view kUsage[] = {"info NAME..."};
constexpr Example kExamples[] = {
    {"espy info vfs_read", "the prototype of a function, the layout of a type, the fields of a tracepoint"}};

}  // namespace

extern const Command kDescribe = {
    .word = "info",
    .operands = Operands::kNames,
    .usage = kUsage,
    .examples = kExamples,
    .run = describe,
};

}  // namespace espy::cli

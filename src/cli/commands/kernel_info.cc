// --info: the features of the running kernel, each found by trying it.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>

#include "base/printable.h"
#include "cli/command.h"
#include "load/hook_costs.h"

namespace espy::cli {

namespace {

// The kernel shows zeros to unprivileged processes (kernel.kptr_restrict).
bool shows_addresses() {
  std::FILE* symbols = std::fopen("/proc/kallsyms", "re");
  if (symbols == nullptr) return false;
  unsigned long long any = 0;
  char line[512];
  for (int i = 0; i < 100 && std::fgets(line, sizeof(line), symbols) != nullptr; ++i)
    any |= std::strtoull(line, nullptr, 16);
  std::fclose(symbols);
  return any != 0;
}

// From the file in securityfs; if it is missing, from what the kernel refuses.
std::string lockdown_line(kernel::Kernel& kernel) {
  const kernel::Lockdown state = kernel.lockdown();
  if (state != kernel::Lockdown::kUnknown) return fmt::format("{} ({})", kernel::name_of(state), kernel::kLockdownFile);
  if (!kernel.has(kernel::Feature::kProbeReadKernel))
    return fmt::format("confidentiality (no {}, but programs may not read kernel memory)", kernel::kLockdownFile);
  return fmt::format("not known to be on (no {}; programs may read kernel memory)", kernel::kLockdownFile);
}

int show_hook_costs(kernel::Kernel& kernel) {
  std::string out = "ns an event takes to reach an empty program and to return, measured on this machine now:\n\n";
  const load::HookCosts costs = load::measure_hook_costs(kernel);
  for (const load::HookCost& cost : costs.all()) {
    const std::string ns = cost.problem.empty() ? fmt::format("{:.0f}", cost.ns) : "-";
    out += fmt::format("  {:>8}  {}{}\n", ns, load::name_of(cost), cost.problem.empty() ? "" : ": " + cost.problem);
  }
  out += "\n`espy --cost SCRIPT` shows it beside the time of the programs\n";

  std::fputs(printable(out).c_str(), stdout);
  return EXIT_SUCCESS;
}

int show_kernel_info(const Options& options, const Host& host) {
  if (const Status may_try = require_privileges(); !may_try) return complain(may_try.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  if (options.shows_cost) return show_hook_costs(*e.kernel);
  utsname name = {};
  ::uname(&name);
  std::string out = fmt::format("espy {}\nkernel {} {}, {} CPUs\nlockdown: {}\n\n", ESPY_VERSION, name.release,
                                name.machine, e.kernel->cpu_count(), lockdown_line(*e.kernel));
  const auto add_row = [&](std::string_view feature, bool is_there, std::string_view how, std::string_view meaning) {
    out += fmt::format("  {:<24}{:<5}{:<10}{}\n", feature, is_there ? "yes" : "no", how, meaning);
  };
  out += fmt::format("  {:<24}{:<5}{:<10}\n", "feature", "here", "tried by");
  add_row("btf", e.kernel->has_btf(), "file", "types of the kernel (/sys/kernel/btf/vmlinux)");
  add_row("tracefs", can_read_tracefs(), "file", "tracepoints and their fields (/sys/kernel/tracing)");
  add_row("kallsyms", shows_addresses(), "file", "addresses of the kernel's functions (/proc/kallsyms)");
  for (const kernel::FeatureRow& row : kernel::feature_rows())
    add_row(row.name, e.kernel->has(row.feature), row.how, fmt::format("{} (Linux {})", row.meaning, row.since));
  out +=
      "\ntried by program, map, link, event: making one; helper: asking the verifier for it; types: finding it in "
      "BTF;\n"
      "file: reading it\n";
  out += "\nprobe types:";
  for (const spec::Provider* provider : e.registry.providers()) out += fmt::format(" {}", provider->name);
  std::fputs((out + "\n").c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kKernelInfo = {
    .option = {0, "info", "", "show what this kernel offers"},
    .option_follows = "no-feature",
    .run = show_kernel_info,
};

}  // namespace espy::cli

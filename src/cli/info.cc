// --info: what this kernel offers, each line found by trying.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>

#include "cli/environment.h"
#include "cli/pipeline.h"

namespace espy::cli {

int show_info(const Options& options) {
  if (const Status may_try = require_privileges(); !may_try) {
    complain(may_try.error());
    return EXIT_FAILURE;
  }
  const auto environment = open_environment(options);
  if (!environment) {
    complain(environment.error());
    return EXIT_FAILURE;
  }
  Environment& e = **environment;
  utsname name = {};
  ::uname(&name);
  std::string out = fmt::format("espy {}\nkernel {} {}, {} CPUs\n\n", ESPY_VERSION, name.release, name.machine,
                                e.kernel->cpu_count());
  out += fmt::format("  {:<24}{:<5}{}\n", "btf", e.kernel->has_btf() ? "yes" : "no", "types of the kernel");
  for (const kernel::FeatureRow& row : kernel::feature_rows())
    out += fmt::format("  {:<24}{:<5}{} (Linux {})\n", row.name, e.kernel->has(row.feature) ? "yes" : "no", row.meaning,
                       row.since);
  out += "\nprobe types:";
  for (const spec::Provider* provider : e.registry.providers()) out += fmt::format(" {}", provider->name);
  std::fputs((out + "\n").c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace espy::cli

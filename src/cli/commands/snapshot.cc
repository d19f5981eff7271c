// espy snapshot: what a kernel offers, in one file, for `espy check --on` elsewhere.
#include "kernel/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/output_file.h"
#include "base/printable.h"
#include "cli/command.h"

namespace espy::cli {

namespace {

kernel::Trial rights() {
  if (!require_privileges()) return kernel::Trial::kNone;
  return is_administrator() ? kernel::Trial::kAll : kernel::Trial::kPrograms;
}

Result<std::vector<std::string>> write_to_output(const Options& options, kernel::Kernel& kernel) {
  const kernel::Trial trial = rights();
  if (!options.output_file) {
    if (::isatty(STDOUT_FILENO) == 1)
      return fail("a snapshot is a compressed file, which a terminal cannot show", 0, "`espy snapshot > KERNEL`");
    return kernel::write_snapshot(kernel, STDOUT_FILENO, trial);
  }
  const OwnedFd file = TRY(open_output(*options.output_file, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return kernel::write_snapshot(kernel, file.get(), trial);
}

int take_snapshot(const Options& options, const Host& host) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  const auto unknown = write_to_output(options, *(*environment)->kernel);
  if (!unknown) return complain(unknown.error());
  if (unknown->empty()) return EXIT_SUCCESS;
  std::string out = "espy: the snapshot does not tell everything, for lack of rights:\n";
  for (const std::string& each : *unknown) out += fmt::format("  {}\n", each);
  out += "  hint: `espy check --on` says \"not known\" where a script depends on it; sudo takes a whole one\n";
  std::fputs(printable(out).c_str(), stderr);
  return EXIT_SUCCESS;
}

constexpr std::string_view kUsage[] = {"snapshot > KERNEL"};
constexpr Example kExamples[] = {
    {"espy snapshot > KERNEL", "what scripts need of this kernel, for espy check --on KERNEL elsewhere"}};

}  // namespace

extern const Command kSnapshot = {
    .word = "snapshot",
    .operands = Operands::kNone,
    .usage = kUsage,
    .examples = kExamples,
    .run = take_snapshot,
};

}  // namespace espy::cli

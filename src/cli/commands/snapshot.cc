// espy snapshot: what a kernel offers, in one file, for `espy check --on` elsewhere.
#include "kernel/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/command.h"

namespace espy::cli {

namespace {

Status write_to_output(const Options& options, kernel::Kernel& kernel) {
  if (!options.output_file) {
    if (::isatty(STDOUT_FILENO) == 1)
      return fail("a snapshot is a compressed file, which a terminal cannot show", 0, "`espy snapshot > KERNEL`");
    return kernel::write_snapshot(kernel, STDOUT_FILENO);
  }
  const OwnedFd file(::open(options.output_file->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return fail_errno("cannot open " + *options.output_file, errno);
  return kernel::write_snapshot(kernel, file.get());
}

int take_snapshot(const Options& options, const Host& host) {
  if (const Status may_try = require_privileges(); !may_try) return complain(may_try.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  const Status done = write_to_output(options, *(*environment)->kernel);
  return done ? EXIT_SUCCESS : complain(done.error());
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

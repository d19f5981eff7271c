// The commands, in the order of --help. A new command is a file in this directory and a line here.
#include "cli/command.h"

#define ESPY_COMMANDS(X) \
  X(kRun)                \
  X(kList)               \
  X(kDescribe)           \
  X(kTrace)              \
  X(kRecord)             \
  X(kCheck)              \
  X(kSnapshot)           \
  X(kBuild)              \
  X(kKernelInfo)         \
  X(kFormat)             \
  X(kLanguageServer)     \
  X(kReference)          \
  X(kExamples)           \
  X(kHelp)               \
  X(kVersion)

namespace espy::cli {

#define ESPY_DECLARE(name) extern const Command name;
ESPY_COMMANDS(ESPY_DECLARE)

#define ESPY_ADDRESS(name) &name,
std::span<const Command* const> commands() {
  static constexpr const Command* kAll[] = {ESPY_COMMANDS(ESPY_ADDRESS)};
  return kAll;
}

}  // namespace espy::cli

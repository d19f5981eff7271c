// The commands, in the order of lists. A new command is a file in this directory and a line here.
#include <algorithm>

#include "cli/command.h"

#define ESPY_COMMANDS(X) \
  X(kRun)                \
  X(kTrace)              \
  X(kStrace)             \
  X(kCount)              \
  X(kLatency)            \
  X(kStacks)             \
  X(kArgs)               \
  X(kProfile)            \
  X(kRecord)             \
  X(kTools)              \
  X(kList)               \
  X(kDescribe)           \
  X(kExplain)            \
  X(kExamples)           \
  X(kHelp)               \
  X(kCheck)              \
  X(kFormat)             \
  X(kBuild)              \
  X(kLanguageServer)     \
  X(kKernelInfo)         \
  X(kSnapshot)           \
  X(kVersion)            \
  X(kReference)

namespace espy::cli {

#define ESPY_DECLARE(name) extern const Command name;
ESPY_COMMANDS(ESPY_DECLARE)

#define ESPY_ADDRESS(name) &name,
std::span<const Command* const> commands() {
  static constexpr const Command* kAll[] = {ESPY_COMMANDS(ESPY_ADDRESS)};
  return kAll;
}

bool is_common(const Command& command, const OptionRow& row) {
  return std::ranges::any_of(command.common, [&](std::string_view name) {
    return name.size() == 1 ? row.short_name == name[0] : row.long_name == name;
  });
}

const Command* find_command(std::string_view word) {
  if (word.empty()) return nullptr;
  const auto is_it = [&](const Command* each) { return each->word == word || each->alias == word; };
  const auto found = std::ranges::find_if(commands(), is_it);
  return found == commands().end() ? nullptr : *found;
}

std::vector<OptionRow> old_spellings() {
  std::vector<OptionRow> out;
  for (const Command* command : commands())
    if (command->has_option() && command->option.is_listed()) out.push_back(command->option);
  return out;
}

}  // namespace espy::cli

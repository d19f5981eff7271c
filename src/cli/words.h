// What espy itself knows about a word, without looking at a kernel: builtins, probe types, config variables, options,
// commands, tools, kernel features and diagnostics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/registry.h"

namespace espy::cli {

// Returns lines of 80 columns for each thing that has this name; "" if there is none.
std::string describe_word(std::string_view word, const spec::Registry& registry);

// All names that describe_word() knows.
std::vector<std::string> known_words(const spec::Registry& registry);

// Returns cause and cure of a diagnostic (docs/reference/messages-*.md); "" if there is none.
// (commands/explain_command.cc)
std::string explain_diagnostic(std::string_view id);
std::vector<std::string_view> diagnostic_ids();

}  // namespace espy::cli

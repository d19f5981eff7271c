// The parts of the documents that are generated from the tables of builtins, probes, options and features.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "spec/registry.h"

namespace espy::cli {

std::string reference_markdown(const spec::Registry& registry);  // docs/reference/builtins.md
std::string options_mdoc();                                      // the list in docs/espy.8, in mdoc(7)

// A shell, and the generated part of docs/espy.SHELL, its completion.
struct ShellRow {
  std::string_view name;
  std::string (*words)(const spec::Registry& registry);
};

std::span<const ShellRow> shells();

}  // namespace espy::cli

// The parts of the documents that are generated from the tables of builtins, probes, options and features.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "spec/registry.h"

namespace espy::cli {

struct ReferencePart {
  std::string_view name;
  std::string (*text)(const spec::Registry& registry);
};

std::span<const ReferencePart> reference_pages();  // docs/reference/NAME.md
std::span<const ReferencePart> shells();           // the generated part of docs/espy.NAME, the completion of a shell
std::string options_mdoc();                        // the generated part of docs/espy.8, in mdoc(7)

}  // namespace espy::cli

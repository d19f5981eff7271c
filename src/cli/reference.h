// The parts of the documents that are generated from the tables of builtins, probes, options and features.
#pragma once

#include <string>

#include "spec/registry.h"

namespace espy::cli {

std::string reference_markdown(const spec::Registry& registry);  // docs/reference.md
std::string options_mdoc();                                      // the list in docs/espy.8, in mdoc(7)
std::string completion_words(const spec::Registry& registry);    // the generated part of docs/espy.bash

}  // namespace espy::cli

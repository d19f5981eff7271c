// The manual's tables, made from the rows that the program itself uses: what is documented is what there is.
#pragma once

#include <string>

#include "spec/registry.h"

namespace espy::cli {

std::string reference_markdown(const spec::Registry& registry);  // docs/reference.md
std::string options_mdoc();                                      // the list in docs/espy.8, in mdoc(7)
std::string completion_words(const spec::Registry& registry);    // the generated part of docs/espy.bash

}  // namespace espy::cli

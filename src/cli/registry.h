// The registry of all builtins and probe types.
#pragma once

#include "spec/registry.h"

namespace espy::cli {

spec::Registry make_registry();

}  // namespace espy::cli

// Every family of builtins and every probe type, in the order in which the manual shows them.
#pragma once

#include "spec/registry.h"

namespace espy::cli {

spec::Registry make_registry();

}  // namespace espy::cli

#include "cli/registry.h"

#include "builtins/all.h"
#include "probes/all.h"

namespace espy::cli {

spec::Registry make_registry() { return spec::Registry(builtins::all(), probes::all()); }

}  // namespace espy::cli

// --user: what espy gives up once the probes are attached.
#pragma once

#include <string_view>
#include <vector>

#include "cli/environment.h"
#include "runtime/identity.h"

namespace espy::cli {

// Makes this process the user's for good, without capabilities; where the kernel lets no other process use open maps,
// it keeps CAP_BPF, and says so. `used`: the capabilities that the script uses; what needs them and can be done ahead
// is done before.
Status give_up_rights(const runtime::Identity& user, const std::vector<std::string_view>& used, Environment& e);

}  // namespace espy::cli

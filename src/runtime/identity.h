// Users that espy, and the command of -c, run as (--user).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy::runtime {

struct Identity {
  std::string name;
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  // all, `group` among them
};

// Finds a user by name, or by "UID" or "UID:GID", in /etc/passwd and /etc/group: a static program cannot load the
// modules of nsswitch.conf. Fails if there is no such user, and for user 0.
Result<Identity> find_identity(std::string_view name);

// Makes this process the user's: its ids, real, effective and saved. Returns 0 or an errno value. The capabilities
// of a process of root go with it, unless PR_SET_KEEPCAPS is set.
int become(const Identity& identity);

// Clears all capabilities of this process but those in `kept`, a mask, for good: no program that it starts gains any.
// Requires that `become` has kept them. Returns 0 or an errno value.
int drop_capabilities(uint64_t kept);

}  // namespace espy::runtime

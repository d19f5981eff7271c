// Files to write to that the user has named, in directories that may belong to others.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace espy {

// Opens the file as open(2) does, with O_CLOEXEC. A symbolic link that another user has put at its end is not followed:
// it could lead to any file that root may write. Links of root and of espy's user are, /dev/stdout among them. The
// error names the path.
Result<OwnedFd> open_output(const std::string& path, int flags, mode_t mode);

}  // namespace espy

// Files behind mounts that another user has made. An overlay in a user namespace can have a FUSE server of its owner as
// a lower layer, and an access through /proc/PID sends requests to that server. A process that waits for a reply is in
// uninterruptible sleep: SIGKILL does not end it.
//
// So a child opens and copies such files, and is left alone if it takes long.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/untrusted_file.h"

namespace espy {

// Whether the path leads, through /proc/PID/root or through a link to an open or mapped file, behind a mount that is
// neither of the mount namespace of espy nor of that of the process, if that belongs to the user namespace of espy; or
// to a FUSE of these. Asks no server.
bool is_behind_foreign_mount(const std::string& path);

// Returns the file that `open` returns in a child. `fd` is a copy in memory; the copies of a run are kept, up to 512
// MiB. Fails (kRefusedFile) for what is larger, and once all children together have taken too long: two seconds, and
// a tenth of the time that passes; one second after the end was requested.
Result<UntrustedFile> open_in_child(const std::string& path, const std::function<Result<UntrustedFile>()>& open);

// The same without a copy: only what the file is.
std::optional<FileState> state_in_child(const std::string& path, const std::function<Result<UntrustedFile>()>& open);

}  // namespace espy

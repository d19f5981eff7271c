// Reading of files that other users can write: programs and libraries, debug files, perf maps, archives, scripts.
//
// espy is root and such a path may lead to a device, a FIFO, a file without end, or a file that changes while espy
// reads it. By a symbolic link in a container, it may lead to a file of the host. Files of the kernel (procfs, sysfs,
// tracefs) are read by read_file(); scripts/check-layers lists the few other places that may open files directly.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/limits.h"
#include "base/result.h"

namespace espy {

// The size in bytes above which a text (a script, an index of libraries, a list of users) is refused.
inline constexpr uint64_t kMaxTextBytes = 64 << 20;

// Returns the size in bytes above which a binary is refused: a quarter of the machine's memory, at least 256 MiB and at
// most 8 GiB.
uint64_t max_binary_bytes();

// Return nullopt unless the path leads to a regular file.
std::optional<FileState> state_of(const std::string& path);
std::optional<FileIdentity> identity_of(const std::string& path);

// A regular file, open for reading, and what it was when it was opened. `path` is for messages.
struct UntrustedFile {
  OwnedFd fd;
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  uint64_t modified_ns = 0;  // since 1970
  uint64_t changed_ns = 0;   // the same for what it is and for its name (st_ctim)

  FileIdentity identity() const { return {device, inode, size_bytes, modified_ns}; }
  FileState state() const { return {identity(), changed_ns}; }
  void take(const FileState& state) {
    device = state.identity.device;
    inode = state.identity.inode;
    size_bytes = state.identity.size_bytes;
    modified_ns = state.identity.modified_ns;
    changed_ns = state.changed_ns;
  }
  // Returns up to `size` bytes at `offset`: fewer at the end of the file.
  Result<std::string> read_at(uint64_t offset, uint64_t size) const;
};

// The code of an Error for a file that is there but refused, for its type, its size, its owner or its structure.
inline constexpr int kRefusedFile = ENOEXEC;

// "cannot open PATH: REASON", with a hint at the capability that files of other processes need.
tl::unexpected<Error> cannot_open(const std::string& path, int code);

// Opens a regular file. Does not wait, for whatever the path leads to, and has no effect on it. Below /proc/PID/root,
// symbolic links are resolved as the process resolves them, and never leave its root. Fails if the file is larger than
// `limit_bytes`. With `owner`, the name must be the file itself, not a link or a mount. The file must belong to that
// user, or to root and be readable for the user.
Result<UntrustedFile> open_untrusted(const std::string& path, uint64_t limit_bytes,
                                     std::optional<uid_t> owner = std::nullopt);

// Returns what an open file is now.
Result<FileState> state_of(const OwnedFd& file);

// Opens the file itself, to attach to it: open_untrusted() opens a copy of a file that is below another user's mount
// (base/untrusted_file.h). This may wait as long as a server there does.
Result<UntrustedFile> open_itself(const std::string& path);

// Returns the content of such a file. Fails if it grows beyond the limit while it is read.
Result<std::string> read_untrusted(const std::string& path, uint64_t limit_bytes,
                                   std::optional<uid_t> owner = std::nullopt);

// Returns the content of a file of any kind that the user has named, such as a pipe: waits until its end. Fails if it
// is larger than `limit_bytes`.
Result<std::string> read_stream(const std::string& path, uint64_t limit_bytes);

// "WHAT would take too much memory", of a file that is refused for that.
tl::unexpected<Error> takes_too_much_memory(const std::string& what);

// Returns what `part` returns, a Result; fails if it takes more than max_binary_bytes() in addition. `what` it reads is
// for the message. For readers that make much more of a file than its size.
template <class Part>
auto within_memory(const std::string& what, Part part) -> decltype(part()) {
  try {
    const MemoryLimit limit(max_binary_bytes());
    return part();
  } catch (const std::bad_alloc&) {
    return takes_too_much_memory(what);
  }
}

// Whether the path is below /proc/PID/root.
bool is_in_process_root(const std::string& path);

// Returns the path from the root of the file system, with `.` and `..` resolved. Looks at no file.
std::string whole_path(const std::string& path);
// Returns a path that leads to the open file whatever becomes of its name: "/proc/self/fd/N".
std::string descriptor_path(const OwnedFd& fd);

// ---- Files below mounts that another user has made. An overlay in a user namespace can have a FUSE server of its
// owner as a lower layer, and an access through /proc/PID sends requests to that server. A process that waits for a
// reply is in uninterruptible sleep: SIGKILL does not end it.
//
// So a child opens and copies such files, and is left alone if it takes long.

// Whether the path leads, through /proc/PID/root or through a link to an open or mapped file, below a mount of another
// user. Such a mount is in neither the mount namespace of espy nor the one of the process, if this belongs to the user
// namespace of espy. It may also be a FUSE mount in these. Asks no server.
bool is_behind_foreign_mount(const std::string& path);

// Returns the file that `open` returns in a child. `fd` is a copy in memory; the copies of a run are kept, up to 512
// MiB. Fails (kRefusedFile) for larger files, and once all children together have taken too long: two seconds, and a
// tenth of the time that passes. After the end was requested, the limit is one second.
Result<UntrustedFile> open_in_child(const std::string& path, const std::function<Result<UntrustedFile>()>& open);

// The same without a copy: only what the file is.
std::optional<FileState> state_in_child(const std::string& path, const std::function<Result<UntrustedFile>()>& open);

}  // namespace espy

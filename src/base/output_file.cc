#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace espy {

namespace {

// Where the link leads; "" if it is in procfs, whose links belong to no directory that others can change.
Result<std::string> target_of(const OwnedFd& link, const std::string& path) {
  struct statfs where = {};
  if (::fstatfs(link.get(), &where) == 0 && where.f_type == PROC_SUPER_MAGIC) return "";
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(link.get(), "", target, sizeof(target));
  if (size < 0) return fail_errno("cannot write to " + path, errno);
  std::string out(target, static_cast<size_t>(size));
  if (out.starts_with('/')) return out;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? out : path.substr(0, slash + 1) + out;
}

}  // namespace

Result<OwnedFd> open_output(const std::string& path, int flags, mode_t mode) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    OwnedFd file(::open(at.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.valid()) return file;
    if (errno != ELOOP) break;
    const OwnedFd link(::open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat state = {};
    if (!link.valid() || ::fstat(link.get(), &state) != 0) break;
    if (!S_ISLNK(state.st_mode)) continue;  // another one by now
    if (state.st_uid != 0 && state.st_uid != ::geteuid())
      return fail(fmt::format("cannot write to {}: {} is a symbolic link of user {}", path, at, state.st_uid), 0,
                  "name the file that it leads to");
    const std::string target = TRY(target_of(link, at));
    if (target.empty()) {
      OwnedFd behind(::open(at.c_str(), flags | O_CLOEXEC, mode));
      if (!behind.valid()) break;
      return behind;
    }
    at = target;
  }
  return fail_errno("cannot write to " + path, errno);
}

}  // namespace espy

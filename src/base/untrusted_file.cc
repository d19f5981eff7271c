#include "base/untrusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/foreign_file.h"
#include "base/read_to_end.h"

namespace espy {
namespace {

// A file is opened to be read only after its type is known: to open a device can have an effect (a watchdog is
// started).
constexpr int kHandleFlags = O_PATH | O_CLOEXEC;
// O_NONBLOCK: for a file with a lease (fcntl(2)), whose holder could delay an open for 45 s.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

struct InRoot {
  std::string root;  // "/proc/PID/root"
  std::string path;  // within it, absolute
};

std::optional<InRoot> split_root(const std::string& path) {
  constexpr std::string_view kProc = "/proc/", kRoot = "/root/";
  if (!path.starts_with(kProc)) return std::nullopt;
  const size_t end = path.find_first_not_of("0123456789", kProc.size());
  if (end == std::string::npos || end == kProc.size() || path.compare(end, kRoot.size(), kRoot) != 0)
    return std::nullopt;
  const size_t inner = end + kRoot.size() - 1;
  return InRoot{path.substr(0, inner), path.substr(inner)};
}

// openat2(2) for a handle. Returns the descriptor; -1 with errno.
int open_handle_at(int directory, const std::string& path, int flags, uint64_t resolve) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(kHandleFlags | flags);
  how.resolve = resolve;
  constexpr int kMaxTries = 16;  // EAGAIN: a directory was renamed during the lookup of a `..`, or a lease
  long fd = -1;
  for (int i = 0; i < kMaxTries && fd < 0 && (i == 0 || errno == EAGAIN); ++i)
    fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how));
  return static_cast<int>(fd);
}

// RESOLVE_IN_ROOT also excludes links of procfs, as RESOLVE_NO_MAGICLINKS does.
int open_in_root(const InRoot& place, uint64_t resolve = 0) {
  const OwnedFd root(::open(place.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return root.valid() ? open_handle_at(root.get(), place.path, 0, RESOLVE_IN_ROOT | resolve) : -1;
}

// Returns a descriptor that only identifies the file; -1 with errno.
int open_handle(const std::string& path) {
  if (const auto place = split_root(path)) {
    const int fd = open_in_root(*place);
    if (fd >= 0 || errno != ENOSYS) return fd;  // before Linux 5.6
  }
  return ::open(path.c_str(), kHandleFlags);
}

// A handle of a file that another user may have put there. Its name is that of the file itself: no link, and no mount,
// by which a user can give it to a file of root that only root may read.
struct Entry {
  OwnedFd handle;               // not valid, with errno
  bool is_behind_link = false;  // of the directory, as the process has made it
};

Entry open_entry(const std::string& path) {
  const size_t name_at = path.rfind('/') + 1;  // 0 if there is none
  const std::string directory = name_at == 0 ? "." : path.substr(0, name_at), name = path.substr(name_at);
  Entry out;
  OwnedFd place;
  if (const auto in_root = split_root(directory)) {
    place = OwnedFd(open_in_root(*in_root, RESOLVE_NO_SYMLINKS));
    out.is_behind_link = !place.valid();
  }
  if (!place.valid()) place = OwnedFd(open_handle(directory));
  if (place.valid()) out.handle = OwnedFd(open_handle_at(place.get(), name, O_NOFOLLOW, RESOLVE_NO_XDEV));
  return out;
}

// Whether what a file says of a process of `user` may be shown: as that user wrote it, or as root did, for all to read.
// A file of root with two names may be a link that the user has made of it.
Status check_owner(const std::string& path, const struct stat& status, uid_t user, bool is_behind_link) {
  if (status.st_uid != 0 && status.st_uid != user)
    return fail(fmt::format("{} belongs to user {}, not to user {} or root", path, status.st_uid, user), kRefusedFile);
  if (status.st_uid != 0) return {};
  if (status.st_nlink > 1) return fail(path + " belongs to root and has other names", kRefusedFile);
  if (user != 0 && ((status.st_mode & S_IROTH) == 0 || is_behind_link))
    return fail(fmt::format("{} belongs to root and may be hidden from user {}", path, user), kRefusedFile);
  return {};
}

// Opens the file of a handle to be read; without procfs, the file that the path leads to now. Returns -1 with errno.
int open_to_read(const OwnedFd& handle, const std::string& path) {
  const int fd = ::open(descriptor_path(handle).c_str(), kFlags);
  return fd < 0 && errno == ENOENT ? ::open(path.c_str(), kFlags) : fd;
}

tl::unexpected<Error> too_large(const std::string& path, uint64_t limit_bytes) {
  return fail(fmt::format("{} is too large: at most {} MiB are read", path, limit_bytes >> 20), kRefusedFile);
}

uint64_t ns_of(const timespec& time) { return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

FileState state_by(const struct stat& status) {
  return {{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), ns_of(status.st_mtim)},
          ns_of(status.st_ctim)};
}

}  // namespace

uint64_t max_binary_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  const uint64_t memory_bytes = pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes : 0;
  return std::clamp<uint64_t>(memory_bytes / 4, uint64_t{256} << 20, uint64_t{8} << 30);
}

tl::unexpected<Error> takes_too_much_memory(const std::string& what) {
  return fail(what + " would take too much memory", kRefusedFile);
}

Result<std::string> UntrustedFile::read_at(uint64_t offset, uint64_t size) const {
  std::string out(size, '\0');
  size_t used = 0;
  while (used < size) {
    const ssize_t got = ::pread(fd.get(), out.data() + used, size - used, static_cast<off_t>(offset + used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot read " + path, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  out.resize(used);
  return out;
}

// The links root, cwd, exe and map_files of a process lead on for those who may trace it (ptrace(2)).
tl::unexpected<Error> cannot_open(const std::string& path, int code) {
  const bool is_of_process = path.starts_with("/proc/") && code == EACCES;
  return fail_errno("cannot open " + path, code, is_of_process ? "files of other processes need CAP_SYS_PTRACE" : "");
}

namespace {

Result<UntrustedFile> open_directly(const std::string& path, uint64_t limit_bytes, std::optional<uid_t> owner) {
  const Entry entry = owner ? open_entry(path) : Entry{OwnedFd(open_handle(path))};
  const OwnedFd& handle = entry.handle;
  struct stat status = {};
  if (!handle.valid() && owner && errno == EXDEV) return fail(path + " is a mount", kRefusedFile);
  if (!handle.valid()) return cannot_open(path, errno);
  if (::fstat(handle.get(), &status) != 0) return fail_errno("cannot stat " + path, errno);
  if (!S_ISREG(status.st_mode)) return fail(path + " is not a file", kRefusedFile);
  if (owner) TRY_STATUS(check_owner(path, status, *owner, entry.is_behind_link));
  UntrustedFile out{OwnedFd(open_to_read(handle, path)), path};
  if (!out.fd.valid()) return cannot_open(path, errno);
  out.take(state_by(status));
  if (out.size_bytes > limit_bytes) return too_large(path, limit_bytes);
  return out;
}

}  // namespace

Result<UntrustedFile> open_itself(const std::string& path) { return open_directly(path, UINT64_MAX, std::nullopt); }

std::optional<FileState> state_of(const std::string& path) {
  if (is_behind_foreign_mount(path))
    return state_in_child(path, [&] { return open_directly(path, UINT64_MAX, std::nullopt); });
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return state_by(status);
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  const auto state = state_of(path);
  return state ? std::optional(state->identity) : std::nullopt;
}

std::string_view what_became_of(const FileState& before, const FileState& now) {
  const FileIdentity &was = before.identity, &is = now.identity;
  if (was.device != is.device || was.inode != is.inode) return "was replaced";
  return was == is ? "was changed" : "was written to";
}

Result<FileState> state_of(const OwnedFd& file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return fail_errno("cannot stat a file", errno);
  return state_by(status);
}

Result<UntrustedFile> open_untrusted(const std::string& path, uint64_t limit_bytes, std::optional<uid_t> owner) {
  const auto open = [&] { return open_directly(path, limit_bytes, owner); };
  return is_behind_foreign_mount(path) ? open_in_child(path, open) : open();
}

Result<std::string> read_stream(const std::string& path, uint64_t limit_bytes) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return fail_errno("cannot open " + path, errno);
  std::string out = TRY(read_to_end(fd.get(), path, limit_bytes));
  if (out.size() > limit_bytes) return too_large(path, limit_bytes);
  return out;
}

Result<std::string> read_untrusted(const std::string& path, uint64_t limit_bytes, std::optional<uid_t> owner) {
  const UntrustedFile file = TRY(open_untrusted(path, limit_bytes, owner));
  std::string out = TRY(file.read_at(0, file.size_bytes));
  // A file that grows is read to its end, as far as the limit allows.
  constexpr uint64_t kChunkBytes = 64 << 10;
  for (;;) {
    const std::string more = TRY(file.read_at(out.size(), kChunkBytes));
    out += more;
    if (out.size() > limit_bytes) return too_large(path, limit_bytes);
    if (more.size() < kChunkBytes) return out;
  }
}

bool is_in_process_root(const std::string& path) { return split_root(path).has_value(); }

std::string whole_path(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

std::string descriptor_path(const OwnedFd& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

}  // namespace espy

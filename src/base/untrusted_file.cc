#include "base/untrusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/end_request.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/process.h"
#include "base/strings.h"

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
  if (status.st_nlink > 1) return fail(path + " belongs to root and has other hard links", kRefusedFile);
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

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// ---- Mounts

// The mounts of a mount namespace, without those of FUSE (proc_pid_mountinfo(5)).
class Mounts {
 public:
  // `process`: "/proc/PID", in that namespace.
  bool has(uint64_t mount, uint64_t device, const std::string& process) {
    constexpr milliseconds kPause(100);
    if (find(mount, device)) return true;
    if (read_at_ != Clock::time_point() && Clock::now() < read_at_ + kPause) return false;
    read(process + "/mountinfo");
    return find(mount, device);
  }

 private:
  bool find(uint64_t mount, uint64_t device) const { return mounts_.contains(mount) || devices_.contains(device); }

  void read(const std::string& path) {
    mounts_.clear();
    devices_.clear();
    read_at_ = Clock::now();
    const Result<std::string> text = read_file(path);
    if (!text) return;
    for (const std::string_view line : split(*text, '\n')) add(line);
  }

  void add(std::string_view line) {
    const auto mount = parse_mount(line);
    if (!mount || mount->type.starts_with("fuse")) return;
    mounts_.insert(mount->id);
    devices_.insert(mount->device);
  }

  std::set<uint64_t> mounts_, devices_;
  Clock::time_point read_at_;
};

std::string link_text(const std::string& path) {
  std::array<char, 64> out;
  const ssize_t got = ::readlink(path.c_str(), out.data(), out.size());
  return std::string(out.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
}

// Whether a mount namespace belongs to another user namespace than that of espy (ioctl_nsfs(2)).
bool belongs_to_others(const std::string& namespace_path) {
  const OwnedFd mounts(::open(namespace_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!mounts.valid()) return false;  // the process has ended
  const OwnedFd owner(::ioctl(mounts.get(), NS_GET_USERNS));
  struct stat theirs = {}, ours = {};
  if (!owner.valid() || ::fstat(owner.get(), &theirs) != 0 || ::stat("/proc/self/ns/user", &ours) != 0) return true;
  return theirs.st_ino != ours.st_ino;
}

constexpr std::string_view kOwn = "/proc/self";

struct MountNamespace {
  bool is_foreign = false;
  Mounts mounts;
};

// `process`: "/proc/PID". Valid until the next call. One of a process that has ended has no mounts.
MountNamespace& namespace_of(const std::string& process) {
  constexpr size_t kMaxKnown = 1000;
  static const std::string ours = link_text(std::string(kOwn) + "/ns/mnt");
  static std::map<std::string, MountNamespace> known;
  if (known.size() >= kMaxKnown) known.clear();
  const auto [found, is_new] = known.try_emplace(link_text(process + "/ns/mnt"));
  if (is_new) found->second.is_foreign = found->first != ours && belongs_to_others(process + "/ns/mnt");
  return found->second;
}

// The device of memfd_create(2), which has no mount that a user could make. 0 if there are none.
uint64_t memory_device() {
  const OwnedFd file(::memfd_create("espy", MFD_CLOEXEC));
  struct stat status = {};
  return file.valid() && ::fstat(file.get(), &status) == 0 ? status.st_dev : 0;
}

// Espy may be in a container itself, where it does not see the mounts of the host.
bool leads_to_foreign_mount(const std::string& link, const std::string& process) {
  struct statx status = {};
  if (::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) != 0) return false;
  const uint64_t mount = (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
  const uint64_t device = makedev(status.stx_dev_major, status.stx_dev_minor);
  static const uint64_t memory = memory_device();
  if (device == memory) return false;
  if (namespace_of(std::string(kOwn)).mounts.has(mount, device, std::string(kOwn))) return false;
  MountNamespace& theirs = namespace_of(process);
  return theirs.is_foreign || !theirs.mounts.has(mount, device, process);
}

// ---- The child

struct Answer {
  bool is_open = false;
  int code = 0;
  FileState state;
  std::array<char, 512> message;  // to a NUL
};

// How long the children of a run may still take.
class Patience {
 public:
  milliseconds left() {
    constexpr std::chrono::seconds kMostAtEnd(1);
    if (is_end_requested()) budget_.lower(kMostAtEnd);
    return std::chrono::duration_cast<milliseconds>(budget_.left());
  }
  void take(Clock::duration time) { budget_.take(time); }

 private:
  TimeBudget budget_{std::chrono::seconds(2)};
};

bool copy_file(const UntrustedFile& file, int copy) {
  constexpr uint64_t kChunkBytes = 1 << 20;
  for (uint64_t at = 0; at < file.size_bytes;) {
    const Result<std::string> bytes = file.read_at(at, std::min(kChunkBytes, file.size_bytes - at));
    if (!bytes || bytes->empty()) return bytes.has_value();
    if (!write_all(copy, *bytes)) return false;
    at += bytes->size();
  }
  return true;
}

// Answers with what the file is, waits for a byte that asks for its content, copies that and answers again. Keeps no
// descriptor of espy: the end of its probes, and of its output, must not wait for this process.
int answer(int socket, int copy, const std::function<Result<UntrustedFile>()>& open) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  constexpr int kSocket = 3, kCopy = 4;
  const OwnedFd moved_socket(::fcntl(socket, F_DUPFD_CLOEXEC, kCopy + 1));
  const OwnedFd moved_copy(::fcntl(copy, F_DUPFD_CLOEXEC, kCopy + 1));
  ::dup2(moved_socket.get(), kSocket);
  ::dup2(moved_copy.get(), kCopy);
  ::syscall(SYS_close_range, kCopy + 1, ~0U, 0);
  Answer out = {};
  const Result<UntrustedFile> file = open();
  out.is_open = file.has_value();
  if (file) out.state = file->state();
  if (!file) {
    out.code = file.error().code;
    ::strncpy(out.message.data(), file.error().message.c_str(), out.message.size() - 1);
  }
  char asked = 0;
  if (::send(kSocket, &out, sizeof(out), MSG_NOSIGNAL) < 0 || !file || ::recv(kSocket, &asked, 1, 0) != 1)
    return EXIT_SUCCESS;
  if (copy_file(*file, kCopy)) ::send(kSocket, &out, sizeof(out), MSG_NOSIGNAL);
  return EXIT_SUCCESS;
}

// A child of init, which nothing waits for. `socket` has its answers.
struct Child {
  OwnedFd socket;
  OwnedFd copy;
};

Result<Child> start_reader(const std::function<Result<UntrustedFile>()>& open) {
  int sockets[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    return fail_errno("cannot make a socket", errno);
  Child out{OwnedFd(sockets[0]), OwnedFd(::memfd_create("espy", MFD_CLOEXEC))};
  const OwnedFd theirs(sockets[1]);
  if (!out.copy.valid()) return fail_errno("cannot make a file in memory", errno);
  TRY_STATUS(start_orphan([&] { return answer(theirs.get(), out.copy.get(), open); }));
  return out;
}

Patience& patience() {
  static Patience out;
  return out;
}

tl::unexpected<Error> takes_too_long(const std::string& path) {
  return fail(path + " is below a mount of another user, and reading it takes too long", kRefusedFile);
}

// Returns what the child sends; fails if that takes too long.
Result<Answer> wait_for_answer(const std::string& path, const Child& child) {
  const auto began = Clock::now();
  Answer out = {};
  ssize_t got = -1;
  for (milliseconds left; (left = patience().left()) > milliseconds(0);) {
    pollfd waited = {child.socket.get(), POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min(left, milliseconds(100)).count()));
    if (ready > 0) got = ::recv(child.socket.get(), &out, sizeof(out), MSG_DONTWAIT);
    if (ready > 0 || Clock::now() - began >= left) break;
  }
  patience().take(Clock::now() - began);
  if (got != sizeof(out)) return takes_too_long(path);
  out.message.back() = '\0';
  return out;
}

Result<Answer> ask(const std::string& path, const Child& child) {
  Answer out = TRY(wait_for_answer(path, child));
  if (!out.is_open) return fail(out.message.data(), out.code);
  return out;
}

// The files that were copied in this run.
class Copies {
 public:
  Result<OwnedFd> get(const std::string& path, const FileIdentity& identity, Child& child) {
    constexpr uint64_t kMostBytes = 512 << 20;
    if (const auto known = files_.find(identity); known != files_.end()) return duplicate(known->second);
    if (identity.size_bytes > kMostBytes - bytes_) return takes_too_much_memory("a copy of " + path);
    bytes_ += identity.size_bytes;
    const char please = 1;
    if (::send(child.socket.get(), &please, sizeof(please), MSG_NOSIGNAL) < 0) return takes_too_long(path);
    TRY(wait_for_answer(path, child));
    return duplicate(files_.emplace(identity, std::move(child.copy)).first->second);
  }

 private:
  static Result<OwnedFd> duplicate(const OwnedFd& fd) {
    OwnedFd out(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!out.valid()) return fail_errno("cannot duplicate a descriptor", errno);
    return out;
  }

  std::map<FileIdentity, OwnedFd> files_;
  uint64_t bytes_ = 0;
};

}  // namespace

bool is_behind_foreign_mount(const std::string& path) {
  constexpr std::string_view kProc = "/proc/", kRoot = "/root";
  if (!path.starts_with(kProc)) return false;
  const size_t end = path.find_first_not_of("0123456789", kProc.size());
  if (end == std::string::npos || end == kProc.size() || path[end] != '/') return false;
  const std::string_view inside = std::string_view(path).substr(end);
  const std::string process = path.substr(0, end);
  if (inside.starts_with(kRoot) || inside.starts_with("/cwd")) return namespace_of(process).is_foreign;
  const bool is_link = inside == "/exe" || inside.starts_with("/map_files/") || inside.starts_with("/fd/");
  return is_link && leads_to_foreign_mount(path, process);
}

Result<UntrustedFile> open_in_child(const std::string& path, const std::function<Result<UntrustedFile>()>& open) {
  static Copies copies;
  if (patience().left() <= milliseconds(0)) return takes_too_long(path);
  Child child = TRY(start_reader(open));
  const Answer answer = TRY(ask(path, child));
  UntrustedFile out{TRY(copies.get(path, answer.state.identity, child)), path};
  out.take(answer.state);
  return out;
}

std::optional<FileState> state_in_child(const std::string& path, const std::function<Result<UntrustedFile>()>& open) {
  if (patience().left() <= milliseconds(0)) return std::nullopt;
  const auto child = start_reader(open);
  const auto answer = child ? ask(path, *child) : tl::unexpected(child.error());
  return answer ? std::optional(answer->state) : std::nullopt;
}

}  // namespace espy

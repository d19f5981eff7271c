#include "load/feature_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/strings.h"

namespace espy::load {
namespace {

using kernel::Feature;

constexpr std::string_view kFormat = "espy features 1";
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr size_t kMaxCacheBytes = 8 * 1024;

std::string content_of(const char* path) {
  const auto text = read_file(path);
  return text ? std::string(trim(*text)) : "";
}

// The effective capabilities, the user namespace, and the label of a security module.
std::string rights() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  struct stat user_namespace = {};
  ::syscall(SYS_capget, &header, data);
  ::stat("/proc/self/ns/user", &user_namespace);
  return fmt::format("{:x}{:08x} {} {}", data[1].effective, data[0].effective, user_namespace.st_ino,
                     content_of("/proc/self/attr/current"));
}

// What is neither in BTF nor in files, which are not slower than the cache, nor changed by settings at run time:
// fentry by kernel.ftrace_enabled, reading and writing of memory by lockdown.
bool can_be_kept(Feature feature) {
  if (feature == Feature::kFentry || feature == Feature::kProbeReadKernel || feature == Feature::kProbeWriteUser)
    return false;
  const std::string_view how = kernel::feature_rows()[static_cast<size_t>(feature)].how;
  return how == "program" || how == "map" || how == "link" || how == "helper" || how == "process";
}

// Whether the file or directory is of this user and has this mode.
bool is_own(const struct stat& status, mode_t mode) {
  return status.st_uid == ::geteuid() && (status.st_mode & 07777) == mode;
}

}  // namespace

std::optional<std::string> feature_cache_key() {
  if (::geteuid() != 0 || ::prctl(PR_GET_SECCOMP) != 0) return std::nullopt;
  const std::string boot = content_of("/proc/sys/kernel/random/boot_id");
  const std::string compiler = content_of("/proc/sys/net/core/bpf_jit_enable");
  utsname kernel = {};
  struct stat executable = {};
  if (boot.empty() || compiler.empty() || ::uname(&kernel) != 0 || ::stat("/proc/self/exe", &executable) != 0)
    return std::nullopt;
  const std::string key = fmt::format("{} {} {} {} {}.{} {} {} {}", boot, compiler, kernel.release, kernel.version,
                                      executable.st_mtim.tv_sec, executable.st_mtim.tv_nsec, executable.st_size,
                                      executable.st_ino, rights());
  if (key.find('\n') != std::string::npos) return std::nullopt;
  return key;
}

FeatureCache::FeatureCache(const std::string& directory, std::string name, std::optional<std::string> key)
    : name_(std::move(name)), key_(std::move(key)) {
  if (!key_) return;
  open_directory(directory);
  if (directory_.valid()) read();
}

FeatureCache::~FeatureCache() {
  if (is_changed_ && directory_.valid()) write();
}

void FeatureCache::open_directory(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  OwnedFd found(::open(path.c_str(), kFlags));
  if (!found.valid() && ::mkdir(path.c_str(), kDirectoryMode) == 0) found = OwnedFd(::open(path.c_str(), kFlags));
  struct stat status = {};
  if (found.valid() && ::fstat(found.get(), &status) == 0 && is_own(status, kDirectoryMode))
    directory_ = std::move(found);
}

void FeatureCache::read() {
  const OwnedFd file(::openat(directory_.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || !is_own(status, kFileMode) || status.st_nlink != 1) return;
  std::string text(kMaxCacheBytes, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0 || static_cast<size_t>(got) == text.size()) return;
  text.resize(static_cast<size_t>(got));
  if (!text.ends_with('\n')) return;
  const std::string start = fmt::format("{}\n{}\n", kFormat, *key_);
  if (!text.starts_with(start)) return;
  std::set<Feature> found;
  for (const std::string_view name : split(std::string_view(text).substr(start.size()), '\n')) {
    const auto feature = kernel::find_feature(name);
    if (name.empty()) continue;
    if (!feature || !can_be_kept(*feature)) return;
    found.insert(*feature);
  }
  known_ = std::move(found);
}

void FeatureCache::add(Feature feature) {
  if (!directory_.valid() || !can_be_kept(feature)) return;
  known_.insert(feature);
  is_changed_ = true;
}

// By a new file of this process, so that another one reads either the old content or the new. A failure costs the next
// run its time.
void FeatureCache::write() const {
  std::string text = fmt::format("{}\n{}\n", kFormat, *key_);
  for (const Feature feature : known_) {
    text += kernel::feature_rows()[static_cast<size_t>(feature)].name;
    text += '\n';
  }
  if (text.size() >= kMaxCacheBytes) return;
  const std::string temporary = fmt::format("{}.{}", name_, ::getpid());
  ::unlinkat(directory_.get(), temporary.c_str(), 0);
  const OwnedFd file(
      ::openat(directory_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) return;
  const bool is_written = ::fchmod(file.get(), kFileMode) == 0 &&
                          ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written || ::renameat(directory_.get(), temporary.c_str(), directory_.get(), name_.c_str()) != 0)
    ::unlinkat(directory_.get(), temporary.c_str(), 0);
}

}  // namespace espy::load

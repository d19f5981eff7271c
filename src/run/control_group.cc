#include "run/control_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "kernel/processes.h"

namespace espy::run {

namespace {

namespace fs = std::filesystem;

Result<std::string> require_mount() {
  std::string mount = kernel::control_group_mount();
  if (!mount.empty()) return mount;
  return fail("no control groups of version 2 are mounted here", 0,
              "`mount -t cgroup2 none /sys/fs/cgroup` mounts them");
}

bool is_version_2(const std::string& path) {
  struct statfs found = {};
  return ::statfs(path.c_str(), &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC;
}

spec::ControlGroup describe(const fs::path& directory) {
  return {directory.string(), !is_version_2(directory.parent_path().string())};
}

Result<spec::ControlGroup> by_path(const std::string& path) {
  std::error_code error;
  fs::path directory = fs::canonical(path, error);
  if (error || path.front() != '/') {
    const fs::path mount = TRY(require_mount());
    directory = fs::canonical(mount / fs::path(path).relative_path(), error);
    if (error)
      return fail(fmt::format("there is no control group {}", path), 0,
                  fmt::format("it is the path of a directory below {}", mount.string()));
  }
  if (!fs::is_directory(directory, error)) return fail(fmt::format("{} is not a directory", path));
  if (is_version_2(directory.string())) return describe(directory);
  const std::string mount = kernel::control_group_mount();
  return fail(fmt::format("{} is not a control group of version 2", path), 0,
              mount.empty() ? "" : fmt::format("those are below {}", mount));
}

// ---- Containers

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }

// The id in the name of a container's directory: docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope,
// crio-ID.scope, nerdctl-ID.scope, or without systemd ID alone, libpod-ID. "" for others.
std::string_view container_id(std::string_view name) {
  constexpr size_t kLeastIdLength = 12;  // as lists of containers show it
  if (name.ends_with(".scope")) name.remove_suffix(std::string_view(".scope").size());
  for (const std::string_view prefix : {"docker-", "libpod-", "cri-containerd-", "crio-", "nerdctl-"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return name.size() >= kLeastIdLength && is_hex(name) ? name : "";
}

bool is_unit(std::string_view name, std::string_view wanted) {
  if (name == wanted) return true;
  for (const std::string_view suffix : {".service", ".scope"})
    if (name.size() == wanted.size() + suffix.size() && name.starts_with(wanted) && name.ends_with(suffix)) return true;
  return false;
}

bool matches(std::string_view name, std::string_view wanted) {
  return is_unit(name, wanted) || (is_hex(wanted) && container_id(name).starts_with(wanted));
}

// The topmost directories that match. Users may make groups of any depth.
void collect(const fs::path& directory, std::string_view wanted, int depth, std::vector<fs::path>& found) {
  constexpr int kDeepest = 32;
  constexpr size_t kMost = 10;
  std::error_code error;
  for (fs::directory_iterator each(directory, error), end; !error && each != end; each.increment(error)) {
    std::error_code ignored;
    if (!each->is_directory(ignored) || found.size() >= kMost) continue;
    if (matches(each->path().filename().string(), wanted)) {
      found.push_back(each->path());
    } else if (depth < kDeepest) {
      collect(each->path(), wanted, depth + 1, found);
    }
  }
}

Result<spec::ControlGroup> by_container(const std::string& wanted) {
  const std::string mount = TRY(require_mount());
  std::vector<fs::path> found;
  collect(mount, wanted, 0, found);
  if (found.empty())
    return fail(fmt::format("no control group below {} belongs to a container or unit `{}`", mount, wanted), 0,
                "`docker ps --no-trunc` shows the ids of containers, `systemd-cgls` all groups; --cgroup takes a path");
  if (found.size() == 1) return describe(found.front());
  std::vector<std::string> names;
  for (const fs::path& each : found) names.push_back(each.string());
  std::ranges::sort(names);
  return fail(fmt::format("`{}` may be any of {}", wanted, fmt::join(names, ", ")), 0,
              "more of the id chooses one, or --cgroup with its path");
}

}  // namespace

Result<std::optional<spec::ControlGroup>> find_control_group(const std::string& path, const std::string& container) {
  if (!path.empty()) return TRY(by_path(path));
  if (!container.empty()) return TRY(by_container(container));
  return std::nullopt;
}

}  // namespace espy::run

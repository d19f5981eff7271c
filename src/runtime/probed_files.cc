#include "runtime/probed_files.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <map>

#include "base/end_request.h"
#include "base/untrusted_file.h"
#include "symbols/archive.h"

namespace espy::runtime {

namespace {

bool is_on_overlay(const std::string& path) {
  struct statfs64 system = {};
  return ::statfs64(path.c_str(), &system) == 0 && system.f_type == OVERLAYFS_SUPER_MAGIC;
}

// The time of the last change is not compared, because a new name or mode of the file changes it, too. Except on
// overlayfs: the first such change copies the file to the upper layer. stat(2) shows the inode of before, but processes
// that start later map the copy, whose inode has no probes (Documentation/filesystems/overlayfs.rst,
// "Non-directories").
std::string change_of(const std::string& path, const FileState& probed) {
  const auto now = state_of(path);
  if (!now || *now == probed) return "";
  if (now->identity == probed.identity) {
    if (!is_on_overlay(path)) return "";
    return fmt::format(
        "{} was changed during the run, and may be a copy in the upper layer of overlayfs now; calls in "
        "a copy are not counted",
        path);
  }
  const std::string_view became = what_became_of({probed.identity, 0}, *now);
  const bool is_other = now->identity.device != probed.identity.device || now->identity.inode != probed.identity.inode;
  return fmt::format("{} {} during the run; {}", path, became,
                     is_other ? "calls in the new file are not counted" : "probes may be at other code than named");
}

}  // namespace

void ProbedFiles::list_files() {
  if (has_list_) return;
  has_list_ = true;
  std::map<std::string, FileState> files;
  for (const program::Probe& probe : program_.probes)
    if (probe.file.is_known()) files.emplace(symbols::path_on_disk(probe.target), probe.file);
  for (auto& [path, state] : files) unchanged_.push_back({path, state});
}

void ProbedFiles::look() {
  list_files();
  std::erase_if(unchanged_, [&](const File& file) {
    std::string change = change_of(file.path, file.state);
    if (change.empty()) return false;
    changes_.push_back(std::move(change));
    return true;
  });
}

void ProbedFiles::look_sometimes() {
  constexpr uint64_t kPauseNs = 10'000'000'000;
  const uint64_t now_ns = monotonic_ns();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kPauseNs;
  look();
}

}  // namespace espy::runtime

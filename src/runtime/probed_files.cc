#include "runtime/probed_files.h"

#include <fmt/format.h>

#include <map>

#include "base/end_request.h"
#include "base/untrusted_file.h"
#include "symbols/archive.h"

namespace espy::runtime {

namespace {

// The time of the last change is not compared: a new name or mode of the file changes it, too.
std::string change_of(const std::string& path, const FileIdentity& probed) {
  const auto now = state_of(path);
  if (!now || now->identity == probed) return "";
  const std::string_view became = what_became_of({probed, 0}, *now);
  const bool is_other = now->identity.device != probed.device || now->identity.inode != probed.inode;
  return fmt::format("{} {} during the run; {}", path, became,
                     is_other ? "calls in the new file are not counted" : "probes may be at other code than named");
}

}  // namespace

void ProbedFiles::list_files() {
  if (has_list_) return;
  has_list_ = true;
  std::map<std::string, FileIdentity> files;
  for (const program::Probe& probe : program_.probes)
    if (probe.file.is_known()) files.emplace(symbols::path_on_disk(probe.target), probe.file.identity);
  for (auto& [path, identity] : files) unchanged_.push_back({path, identity});
}

void ProbedFiles::look() {
  list_files();
  std::erase_if(unchanged_, [&](const File& file) {
    std::string change = change_of(file.path, file.identity);
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

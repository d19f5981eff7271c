#include "kernel/snapshot.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/strings.h"
#include "kernel/dangerous_functions.h"
#include "kernel/functions.h"
#include "kernel/lockdown.h"
#include "kernel/recorded.h"
#include "kernel/tar.h"
#include "kernel/tracefs.h"

namespace espy::kernel {

namespace {

constexpr uint64_t kMaxUnpackedBytes = 512 << 20;
constexpr std::string_view kBtf = "/sys/kernel/btf", kTracing = "/sys/kernel/tracing", kSymbols = "/proc/kallsyms";

class SnapshotWriter {
 public:
  SnapshotWriter(Kernel& kernel, TarWriter archive, Trial trial)
      : kernel_(kernel), archive_(std::move(archive)), trial_(trial) {}

  // Returns what is unknown.
  Result<std::vector<std::string>> write() {
    TRY_STATUS(write_facts());
    TRY_STATUS(write_features());
    TRY_STATUS(write_types());
    TRY_STATUS(write_tracepoints());
    TRY_STATUS(write_probed_functions());
    TRY_STATUS(write_functions());
    if (!unknown_.empty()) TRY_STATUS(archive_.add("unknown", unknown_));
    TRY_STATUS(archive_.finish());
    return std::move(reasons_);
  }

 private:
  // `path` is that of the running kernel, absolute.
  Status add(std::string_view path, std::string_view content) { return archive_.add(path.substr(1), content); }
  Status add_if_readable(const std::string& from, std::string_view path) {
    const auto content = read_file(from);
    return content ? add(path, *content) : Status();
  }
  void set_unknown(Fact fact, std::string_view what, std::string_view why) {
    unknown_ += fmt::format("{}\n", name_of(fact));
    reasons_.push_back(fmt::format("{}: {}", what, why));
  }

  Status write_facts() {
    utsname name = {};
    ::uname(&name);
    TRY_STATUS(archive_.add("release", fmt::format("{}\n{}\n", name.release, name.version)));
    TRY_STATUS(archive_.add("arch", fmt::format("{}\n", kernel_.arch().name)));
    TRY_STATUS(archive_.add("cpus", fmt::format("{}\n", kernel_.cpu_count())));
    TRY_STATUS(archive_.add("page_size", fmt::format("{}\n", kernel_.page_size_bytes())));
    TRY_STATUS(add_if_readable(std::string(kLockdownFile), kLockdownFile));
    const auto config = read_file(fmt::format("/boot/config-{}", name.release));
    return config ? add("/config", *config) : add_if_readable("/proc/config.gz", "/config.gz");
  }

  // Features that types or files show are known without rights.
  Status write_features() {
    std::string features;
    size_t unknown = 0;
    for (const FeatureRow& row : feature_rows()) {
      const bool is_found = may_try(row) && kernel_.has(row.feature);
      // A trial that fails tells nothing if it lacked rights.
      const bool is_unknown = !is_found && (!may_try(row) || (row.needs_admin && trial_ != Trial::kAll));
      unknown += is_unknown ? 1 : 0;
      features += fmt::format("{}{}\n", row.name, is_unknown ? " unknown" : is_found ? "" : " absent");
    }
    if (unknown > 0)
      reasons_.push_back(fmt::format("{} of {} features of BPF, such as {}", unknown, feature_rows().size(),
                                     trial_ == Trial::kNone ? "fentry: they are found by loading programs"
                                                            : "probe_write_user: they are found with CAP_SYS_ADMIN"));
    return archive_.add("features", features);
  }

  bool may_try(const FeatureRow& row) const {
    return trial_ != Trial::kNone || row.how == "types" || row.how == "file";
  }

  Status write_types() {
    for (const std::string& name : names_in(std::string(kBtf)))
      TRY_STATUS(add_if_readable(fmt::format("{}/{}", kBtf, name), fmt::format("{}/{}", kBtf, name)));
    return {};
  }

  Status write_tracepoints() {
    const std::string tracing = find_tracing("");
    const std::vector<std::string> all =
        tracing.empty() ? std::vector<std::string>() : list_tracepoints(tracing, "*", "*");
    if (all.empty() && kernel_.lockdown() != Lockdown::kConfidentiality)
      set_unknown(Fact::kTracepoints, "tracepoints", why_unreadable(kernel_));
    bool is_whole = true;
    for (const std::string& name : all) {
      const size_t colon = name.find(':');
      const std::string file = fmt::format("/events/{}/{}/format", name.substr(0, colon), name.substr(colon + 1));
      const auto format = read_file(tracing + file);
      is_whole &= format.has_value();
      if (format) TRY_STATUS(add(std::string(kTracing) + file, *format));
    }
    if (!is_whole) set_unknown(Fact::kTracepoints, "tracepoints", "their formats are for others to read");
    return {};
  }

  void set_unknown_list(Fact fact, std::string_view what, const Error& why) {
    if (kernel_.has(Feature::kKprobe)) set_unknown(fact, what, why.message);
  }

  // A kernel without ftrace has kprobes, but no list of functions.
  Status write_probed_functions() {
    const std::string tracing = find_tracing("");
    const std::string path = std::string(kTracing) + "/available_filter_functions";
    const auto listed = read_file((tracing.empty() ? std::string(kTracing) : tracing) + "/available_filter_functions");
    if (listed) TRY_STATUS(add(path, *listed));
    if (!listed && (tracing.empty() || listed.error().code != ENOENT))
      set_unknown_list(Fact::kTraceableFunctions, "the functions that can be probed", listed.error());
    return write_forbidden_functions();
  }

  // Without their addresses.
  Status write_forbidden_functions() {
    const auto listed = read_file(std::string(kKprobeBlacklist));
    if (!listed) {
      set_unknown_list(Fact::kForbiddenFunctions, "the functions that must not be probed", listed.error());
      return {};
    }
    std::string lines;
    for (const std::string& name : read_kprobe_blacklist(std::string(kKprobeBlacklist)))
      lines += fmt::format("\t{}\n", name);
    return add(kKprobeBlacklist, lines);
  }

  Status write_functions() {
    constexpr uint64_t kFirst = 0xffffffff81000000, kStep = 16;
    std::string lines;
    uint64_t address = kFirst;
    for_each_line(std::string(kSymbols), [&](std::string_view line) {
      const size_t space = line.find(' ');
      if (space != line.npos && !line.ends_with("[bpf]"))
        lines += fmt::format("{:x}{}\n", address += kStep, line.substr(space));
      return true;
    });
    return add(kSymbols, lines);
  }

  static std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> out;
    DIR* entries = ::opendir(directory.c_str());
    if (entries == nullptr) return out;
    while (const dirent* entry = ::readdir(entries))
      if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
    ::closedir(entries);
    std::ranges::sort(out);
    return out;
  }

  Kernel& kernel_;
  TarWriter archive_;
  Trial trial_;
  std::string unknown_;               // names of facts, a line each
  std::vector<std::string> reasons_;  // for people
};

}  // namespace

Result<std::vector<std::string>> write_snapshot(Kernel& kernel, int fd, Trial trial) {
  return SnapshotWriter(kernel, TRY(TarWriter::create(fd)), trial).write();
}

Result<Snapshot> Snapshot::of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno(path, errno);
  Snapshot out;
  if (S_ISDIR(status.st_mode)) {
    out.directory_ = path;
    const size_t end = path.find_last_not_of('/');
    out.name_ = path.substr(0, end + 1);
    out.name_.erase(0, out.name_.rfind('/') + 1);
    return out;
  }
  out.unpacked_.emplace(TRY(ScratchDirectory::make()));
  out.directory_ = out.unpacked_->path();
  TRY_STATUS(unpack_tar(path, out.directory_, kMaxUnpackedBytes));
  const auto release = read_file(out.directory_ + "/release");
  if (!release) return fail(path + " is not a snapshot of a kernel: it has no release");
  out.name_ = split(*release, '\n').front();
  return out;
}

Result<std::unique_ptr<Kernel>> Snapshot::kernel(const std::function<bool(Feature)>& assume) const {
  return is_file() ? open_snapshot(directory_, assume) : open_recorded_kernel(directory_, assume);
}

Result<std::vector<Feature>> Snapshot::unknown_features() const {
  const RecordedFeatures features = TRY(read_recorded_features(directory_ + "/features", is_file()));
  return std::vector<Feature>(features.unknown.begin(), features.unknown.end());
}

}  // namespace espy::kernel

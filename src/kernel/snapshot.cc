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
#include "kernel/functions.h"
#include "kernel/lockdown.h"
#include "kernel/tar.h"
#include "kernel/tracefs.h"

namespace espy::kernel {

namespace {

constexpr uint64_t kMaxUnpackedBytes = 512 << 20;
constexpr std::string_view kBtf = "/sys/kernel/btf", kTracing = "/sys/kernel/tracing", kSymbols = "/proc/kallsyms";

class SnapshotWriter {
 public:
  SnapshotWriter(Kernel& kernel, TarWriter archive) : kernel_(kernel), archive_(std::move(archive)) {}

  Status write() {
    TRY_STATUS(write_facts());
    TRY_STATUS(write_types());
    TRY_STATUS(write_tracepoints());
    TRY_STATUS(write_functions());
    return archive_.finish();
  }

 private:
  // `path` is that of the running kernel, absolute.
  Status add(std::string_view path, std::string_view content) { return archive_.add(path.substr(1), content); }
  Status add_if_readable(const std::string& from, std::string_view path) {
    const auto content = read_file(from);
    return content ? add(path, *content) : Status();
  }

  Status write_facts() {
    utsname name = {};
    ::uname(&name);
    std::string features;
    for (const FeatureRow& row : feature_rows())
      if (kernel_.has(row.feature)) features += fmt::format("{}\n", row.name);
    TRY_STATUS(archive_.add("release", fmt::format("{}\n{}\n", name.release, name.version)));
    TRY_STATUS(archive_.add("arch", fmt::format("{}\n", kernel_.arch().name)));
    TRY_STATUS(archive_.add("cpus", fmt::format("{}\n", kernel_.cpu_count())));
    TRY_STATUS(archive_.add("page_size", fmt::format("{}\n", kernel_.page_size_bytes())));
    TRY_STATUS(archive_.add("features", features));
    TRY_STATUS(add_if_readable(std::string(kLockdownFile), kLockdownFile));
    return add_if_readable(fmt::format("/boot/config-{}", name.release), "/config");
  }

  Status write_types() {
    for (const std::string& name : names_in(std::string(kBtf)))
      TRY_STATUS(add_if_readable(fmt::format("{}/{}", kBtf, name), fmt::format("{}/{}", kBtf, name)));
    return {};
  }

  Status write_tracepoints() {
    const std::string tracing = find_tracing("");
    if (tracing.empty()) return fail("tracefs is not mounted", ENOENT, "mount -t tracefs tracefs /sys/kernel/tracing");
    for (const std::string& name : list_tracepoints(tracing, "*", "*")) {
      const size_t colon = name.find(':');
      const std::string file = fmt::format("/events/{}/{}/format", name.substr(0, colon), name.substr(colon + 1));
      TRY_STATUS(add_if_readable(tracing + file, std::string(kTracing) + file));
    }
    constexpr std::string_view kTraceable = "/available_filter_functions";
    return add_if_readable(tracing + std::string(kTraceable), std::string(kTracing) + std::string(kTraceable));
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
};

}  // namespace

Status write_snapshot(Kernel& kernel, int fd) { return SnapshotWriter(kernel, TRY(TarWriter::create(fd))).write(); }

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

}  // namespace espy::kernel

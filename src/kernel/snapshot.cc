#include "kernel/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/end_request.h"
#include "base/files.h"
#include "base/format_version.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/directory_kernel.h"
#include "kernel/features.h"
#include "kernel/functions.h"
#include "kernel/tracefs.h"

namespace espy::kernel {

namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kNameBytes = 100, kPrefixBytes = 155;
constexpr uint64_t kMaxArchiveBytes = 256 << 20;
constexpr uint32_t kMaxFiles = 20'000;  // a kernel has some thousands
constexpr int kMaxParts = 8;            // of a path
constexpr uint64_t kMaxSeconds = 20;

// The header of a file, in a block. Numbers are octal text.
struct TarHeader {
  char name[kNameBytes], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type, link[100], magic[6],
      version[2], user[32], group[32], major[8], minor[8], prefix[kPrefixBytes], unused[12];
};
static_assert(sizeof(TarHeader) == kBlockBytes);
constexpr char kRegular = '0';

// The sum of the bytes, with spaces for the checksum itself.
uint32_t checksum_of(TarHeader header) {
  std::memset(header.checksum, ' ', sizeof(header.checksum));
  std::array<unsigned char, kBlockBytes> bytes;
  std::memcpy(bytes.data(), &header, sizeof(header));
  uint32_t sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  return sum;
}

template <size_t kSize>
void put(char (&field)[kSize], std::string_view text) {
  std::memcpy(field, text.data(), std::min(text.size(), kSize));
}

template <size_t kSize>
std::string_view text_of(const char (&field)[kSize]) {
  return {field, ::strnlen(field, kSize)};
}

std::optional<uint64_t> octal(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  uint64_t out = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    out = out * 8 + static_cast<uint64_t>(digit - '0');
  }
  return out;
}

uint64_t padding_after(uint64_t size_bytes) { return (kBlockBytes - size_bytes % kBlockBytes) % kBlockBytes; }

// Relative, not deep, without empty components, "." and "..".
bool is_plain(std::string_view path) {
  for (int parts = 1; parts <= kMaxParts; ++parts) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

class Unpacker {
 public:
  Unpacker(const std::string& path, gzFile stream, const std::string& directory, uint64_t limit_bytes)
      : path_(path), stream_(stream), directory_(directory), left_bytes_(limit_bytes) {}

  Status run() {
    const uint64_t until_ns = monotonic_ns() + kMaxSeconds * 1'000'000'000;
    for (uint32_t files = 0;; ++files) {
      TarHeader header;
      TRY_STATUS(read(&header, sizeof(header)));
      if (header.name[0] == '\0') return {};  // the first of the two blocks that end an archive
      if (files == kMaxFiles) return damaged(fmt::format("it has more than {} files", kMaxFiles));
      if (monotonic_ns() > until_ns) return damaged(fmt::format("it takes more than {} s to unpack", kMaxSeconds));
      TRY_STATUS(unpack(header));
    }
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(fmt::format("{} is not a snapshot of a kernel: {}", path_, what), kRefusedFile,
                "`espy snapshot > FILE` writes one");
  }

  Status read(void* to, uint64_t size_bytes) {
    const int got = ::gzread(stream_, to, static_cast<unsigned>(size_bytes));
    if (got < 0) return damaged("it is damaged");
    if (static_cast<uint64_t>(got) != size_bytes) return damaged("it ends early");
    return {};
  }

  Status unpack(const TarHeader& header) {
    const std::string prefix(text_of(header.prefix));
    const std::string name = (prefix.empty() ? "" : prefix + "/") + std::string(text_of(header.name));
    const auto size = octal({header.size, sizeof(header.size)});
    const auto checksum = octal(text_of(header.checksum));
    if (!size || checksum != checksum_of(header)) return damaged("it is not a tar archive");
    if (header.type != kRegular || !is_plain(name)) return damaged("it has more than plain files");
    if (*size > left_bytes_) return damaged("it is too large");
    left_bytes_ -= *size;
    std::string content(*size + padding_after(*size), '\0');
    TRY_STATUS(read(content.data(), content.size()));
    content.resize(*size);
    return write_file(name, content);
  }

  Status write_file(const std::string& name, std::string_view content) {
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
      if (made_.insert(name.substr(0, slash)).second) ::mkdir((directory_ + "/" + name.substr(0, slash)).c_str(), 0700);
    const std::string path = directory_ + "/" + name;
    const OwnedFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid() || ::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      return fail_errno("cannot write " + path, errno);
    return {};
  }

  const std::string& path_;
  gzFile stream_;
  const std::string& directory_;
  uint64_t left_bytes_;
  std::set<std::string> made_;  // directories: there are half as many as files
};

}  // namespace

Result<TarWriter> TarWriter::create(int fd) {
  OwnedFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  gzFile stream = copy.valid() ? ::gzdopen(copy.get(), "wb6") : nullptr;
  if (stream == nullptr) return fail_errno("cannot write the archive", errno);
  copy.release();  // closed with the stream
  return TarWriter(stream);
}

TarWriter::TarWriter(TarWriter&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

TarWriter::~TarWriter() {
  if (stream_ != nullptr) ::gzclose(static_cast<gzFile>(stream_));
}

Status TarWriter::write(std::string_view bytes) {
  errno = 0;
  if (bytes.empty() || ::gzwrite(static_cast<gzFile>(stream_), bytes.data(), static_cast<unsigned>(bytes.size())) > 0)
    return {};
  return fail_errno("cannot write the archive", errno);
}

Status TarWriter::add(std::string_view path, std::string_view content) {
  TarHeader header = {};
  const size_t slash = path.size() > kNameBytes ? path.rfind('/') : path.npos;
  if (slash != path.npos) put(header.prefix, path.substr(0, slash));
  put(header.name, slash == path.npos ? path : path.substr(slash + 1));
  put(header.mode, "0000644");
  put(header.uid, "0000000");
  put(header.gid, "0000000");
  put(header.size, fmt::format("{:011o}", content.size()));
  put(header.time, "00000000000");
  header.type = kRegular;
  put(header.magic, "ustar");
  put(header.version, "00");
  put(header.checksum, fmt::format("{:06o}", checksum_of(header)));
  header.checksum[7] = ' ';
  std::string block(sizeof(header), '\0');
  std::memcpy(block.data(), &header, sizeof(header));
  TRY_STATUS(write(block));
  TRY_STATUS(write(content));
  return write(std::string(padding_after(content.size()), '\0'));
}

Status TarWriter::finish() {
  TRY_STATUS(write(std::string(2 * kBlockBytes, '\0')));
  errno = 0;
  if (::gzclose(static_cast<gzFile>(std::exchange(stream_, nullptr))) != Z_OK)
    return fail_errno("cannot write the archive", errno);
  return {};
}

Status unpack_tar(const std::string& path, const std::string& directory, uint64_t limit_bytes) {
  UntrustedFile file = TRY(open_untrusted(path, kMaxArchiveBytes));
  gzFile stream = ::gzdopen(file.fd.get(), "rb");
  if (stream == nullptr) return fail_errno("cannot read " + path, errno);
  file.fd.release();
  const Status done = Unpacker(path, stream, directory, limit_bytes).run();
  ::gzclose(stream);
  return done;
}

// ---- A kernel recorded by scripts/record-kernel: the same files below a directory, and `arch`, `cpus`, `page_size`
// and `features` for what no file of the kernel has. The format is in tests/kernels/README.md.

namespace {

constexpr std::string_view kFacts[] = {"tracepoints", "traceable_functions", "forbidden_functions"};
static_assert(std::size(kFacts) == static_cast<size_t>(Fact::kCount));

}  // namespace

std::string_view name_of(Fact fact) { return kFacts[static_cast<size_t>(fact)]; }

std::optional<Fact> find_fact(std::string_view name) {
  const auto found = std::ranges::find(kFacts, name);
  if (found == std::end(kFacts)) return std::nullopt;
  return static_cast<Fact>(found - std::begin(kFacts));
}

Result<RecordedFeatures> read_recorded_features(const std::string& path, bool is_snapshot) {
  constexpr std::string_view kUnknown = " unknown", kAbsent = " absent";
  RecordedFeatures out;
  std::set<Feature> absent;
  const std::string listed = TRY(read_file(path));
  for (std::string_view line : split(listed, '\n')) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    const bool is_unknown = line.ends_with(kUnknown), is_absent = line.ends_with(kAbsent);
    if (is_unknown) line.remove_suffix(kUnknown.size());
    if (is_absent) line.remove_suffix(kAbsent.size());
    const auto feature = find_feature(line);
    if (!feature && is_snapshot) continue;  // a later espy has taken it
    if (!feature) return fail(fmt::format("{}: unknown feature {}", path, line));
    (is_unknown ? out.unknown : is_absent ? absent : out.present).insert(*feature);
  }
  if (!is_snapshot) return out;
  // An earlier espy did not ask for what it does not list.
  for (const FeatureRow& row : feature_rows())
    if (!out.present.contains(row.feature) && !absent.contains(row.feature)) out.unknown.insert(row.feature);
  return out;
}

namespace {

Result<std::unique_ptr<Kernel>> open(const std::string& directory, const std::function<bool(Feature)>& assume,
                                     bool is_snapshot) {
  struct stat status = {};
  if (stat(directory.c_str(), &status) != 0) return fail_errno(directory, errno);

  const std::string arch = TRY(read_file(directory + "/arch"));
  const Arch* known = find_arch(trim(arch));
  if (known == nullptr) return fail(fmt::format("{}: unknown architecture {}", directory, trim(arch)));

  const auto cpus = parse_int(trim(TRY(read_file(directory + "/cpus"))));
  constexpr int64_t kMostCpus = 8192;  // CONFIG_NR_CPUS
  if (!cpus || *cpus < 1 || *cpus > kMostCpus) return fail(directory + "/cpus: not a number of CPUs");

  // Optional: by default the usual page size of the CPU.
  const auto pages = read_file(directory + "/page_size");
  const auto page_size_bytes = pages ? parse_int(trim(*pages)) : std::optional<int64_t>(known->page_size_bytes);
  if (!page_size_bytes || *page_size_bytes < 1 || !std::has_single_bit(static_cast<uint64_t>(*page_size_bytes)))
    return fail(directory + "/page_size: not a power of two");

  const RecordedFeatures recorded = TRY(read_recorded_features(directory + "/features", is_snapshot));
  std::set<Feature> features = recorded.present;
  for (const Feature each : recorded.unknown)
    if (!assume || assume(each)) features.insert(each);
  auto out = std::make_unique<DirectoryKernel>(
      directory,
      DirectoryKernel::Machine{*known, static_cast<uint32_t>(*page_size_bytes), static_cast<uint32_t>(*cpus)},
      Tries{[features](Feature feature) { return features.contains(feature); }});
  const std::string unknown = read_file(directory + "/unknown").value_or("");
  for (const std::string_view line : split(unknown, '\n'))
    if (const auto fact = find_fact(line)) out->set_unknown(*fact);
  return out;
}

}  // namespace

Result<std::unique_ptr<Kernel>> open_recorded_kernel(const std::string& directory,
                                                     const std::function<bool(Feature)>& assume) {
  return open(directory, assume, false);
}

Result<std::unique_ptr<Kernel>> open_snapshot(const std::string& directory,
                                              const std::function<bool(Feature)>& assume) {
  return open(directory, assume, true);
}

namespace {

constexpr uint64_t kMaxUnpackedBytes = 512 << 20;
constexpr int64_t kSnapshotFormat = 1;
constexpr uint32_t kSnapshotReadableSince = release_number(1, 0, 0);
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
    TRY_STATUS(archive_.add("format", fmt::format("{} {}\n", kSnapshotFormat, release_text(kSnapshotReadableSince))));
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

namespace {

// `content` is that of the file `format`: a number and a release.
Status check_format(const std::string& path, std::string_view content) {
  const auto words = split(trim(content), ' ');
  const auto format = parse_int(words.front());
  if (!format || *format < 1)
    return fail(path + " is not a snapshot of a kernel: its format is not a number", kRefusedFile);
  if (*format <= kSnapshotFormat) return {};
  return fail_later_format(path + " is a snapshot", static_cast<uint64_t>(*format),
                           words.size() < 2 ? 0 : parse_release(words[1]).value_or(0));
}

}  // namespace

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
  if (const auto format = read_file(out.directory_ + "/format")) TRY_STATUS(check_format(path, *format));
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

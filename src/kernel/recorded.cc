// A kernel recorded by scripts/record-kernel: the same files below a directory, and `arch`, `cpus`, `page_size` and
// `features` for what no file of the kernel has. The format is in tests/kernels/README.md.
#include "kernel/recorded.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <set>

#include "base/fd.h"
#include "base/strings.h"
#include "kernel/directory_kernel.h"

namespace espy::kernel {

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

}  // namespace espy::kernel

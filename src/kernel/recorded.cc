// A kernel recorded by scripts/record-kernel: the same files below a directory, and `arch`, `cpus`, `page_size` and
// `features` for what no file of the kernel has. The format is in tests/kernels/README.md.
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

// Reads the names of features: of those that the kernel has, and, followed by "unknown", of those that may be there.
Result<std::set<Feature>> read_features(const std::string& path, const std::function<bool(Feature)>& assume) {
  constexpr std::string_view kUnknown = " unknown";
  std::set<Feature> out;
  const std::string listed = TRY(read_file(path));
  for (std::string_view line : split(listed, '\n')) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    const bool is_unknown = line.ends_with(kUnknown);
    if (is_unknown) line.remove_suffix(kUnknown.size());
    const auto feature = find_feature(line);
    if (!feature) return fail(fmt::format("{}: unknown feature {}", path, line));
    if (!is_unknown || !assume || assume(*feature)) out.insert(*feature);
  }
  return out;
}

}  // namespace

std::string_view name_of(Fact fact) { return kFacts[static_cast<size_t>(fact)]; }

std::optional<Fact> find_fact(std::string_view name) {
  const auto found = std::ranges::find(kFacts, name);
  if (found == std::end(kFacts)) return std::nullopt;
  return static_cast<Fact>(found - std::begin(kFacts));
}

Result<std::unique_ptr<Kernel>> open_recorded_kernel(const std::string& directory,
                                                     const std::function<bool(Feature)>& assume) {
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

  const std::set<Feature> features = TRY(read_features(directory + "/features", assume));
  auto out = std::make_unique<DirectoryKernel>(
      directory,
      DirectoryKernel::Machine{*known, static_cast<uint32_t>(*page_size_bytes), static_cast<uint32_t>(*cpus)},
      Tries{[features](Feature feature) { return features.contains(feature); }});
  const std::string unknown = read_file(directory + "/unknown").value_or("");
  for (const std::string_view line : split(unknown, '\n'))
    if (const auto fact = find_fact(line)) out->set_unknown(*fact);
  return out;
}

}  // namespace espy::kernel

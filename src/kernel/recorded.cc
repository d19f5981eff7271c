// A kernel recorded by scripts/record-kernel: the same files below a directory, and `arch`, `cpus`, `page_size` and
// `features` for what no file of the kernel has. The format is in tests/kernels/README.md.
#include <fmt/format.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <set>

#include "base/fd.h"
#include "base/strings.h"
#include "kernel/directory_kernel.h"

namespace espy::kernel {

Result<std::unique_ptr<Kernel>> open_recorded_kernel(const std::string& directory) {
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

  std::set<Feature> features;
  const std::string listed = TRY(read_file(directory + "/features"));
  for (const std::string_view line : split(listed, '\n')) {
    const std::string_view name = trim(line);
    if (name.empty() || name.starts_with('#')) continue;
    const auto feature = find_feature(name);
    if (!feature) return fail(fmt::format("{}/features: unknown feature {}", directory, name));
    features.insert(*feature);
  }
  return std::make_unique<DirectoryKernel>(
      directory,
      DirectoryKernel::Machine{*known, static_cast<uint32_t>(*page_size_bytes), static_cast<uint32_t>(*cpus)},
      Tries{[features](Feature feature) { return features.contains(feature); }});
}

}  // namespace espy::kernel

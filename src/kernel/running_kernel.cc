// The running kernel.
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/strings.h"
#include "kernel/directory_kernel.h"

namespace espy::kernel {
namespace {

// "0-7" or "0,2-7": the last number is the highest possible CPU, and values for each have holes for those between.
uint32_t count_cpus(const std::string& root) {
  const auto text = read_file(root + "/sys/devices/system/cpu/possible");
  if (!text) return 1;
  const std::string_view list = trim(*text);
  const size_t last = list.find_last_of(",-");
  const auto highest = parse_int(last == list.npos ? list : list.substr(last + 1));
  return highest && *highest >= 0 ? static_cast<uint32_t>(*highest) + 1 : 1;
}

}  // namespace

Result<std::unique_ptr<Kernel>> open_kernel(std::string root, Tries tries) {
  while (root.ends_with('/')) root.pop_back();
  struct stat status = {};
  if (stat((root + "/").c_str(), &status) != 0) return fail_errno(root, errno);
  auto kernel = std::make_unique<DirectoryKernel>(root, host_arch(), count_cpus(root), std::move(tries));
  const char* types = std::getenv("BPFTRACE_BTF");
  const Status taken = types != nullptr ? kernel->use_btf_file(types) : Status();
  if (!taken) return fail("BPFTRACE_BTF: " + taken.error().message, taken.error().code);
  return kernel;
}

}  // namespace espy::kernel

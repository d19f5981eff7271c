// The running kernel.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "kernel/cpu_list.h"
#include "kernel/directory_kernel.h"

namespace espy::kernel {

Result<std::unique_ptr<Kernel>> open_kernel(std::string root, Tries tries) {
  while (root.ends_with('/')) root.pop_back();
  struct stat status = {};
  if (stat((root + "/").c_str(), &status) != 0) return fail_errno(root, errno);
  const DirectoryKernel::Machine machine{host_arch(), static_cast<uint32_t>(::sysconf(_SC_PAGESIZE)),
                                         possible_cpu_count(root).value_or(0)};
  auto kernel = std::make_unique<DirectoryKernel>(root, machine, std::move(tries));
  const char* types = std::getenv("BPFTRACE_BTF");
  const Status taken = types != nullptr ? kernel->use_btf_file(types) : Status();
  if (!taken) return fail("BPFTRACE_BTF: " + taken.error().message, taken.error().code);
  return kernel;
}

}  // namespace espy::kernel

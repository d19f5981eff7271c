#include "kernel/described_kernel.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>

#include "base/strings.h"
#include "kernel/directory_kernel.h"
#include "kernel/tracefs.h"

namespace espy::kernel {

namespace {

constexpr const char* kNoDirectory = "/dev/null";  // no path below it leads to a file

class DescribedKernel final : public DirectoryKernel {
 public:
  explicit DescribedKernel(const KernelDescription& description)
      : DirectoryKernel(kNoDirectory, Machine{*description.arch, description.page_size_bytes, description.cpu_count},
                        Tries{description.has}) {
    for (const KernelDescription::Tracepoint& tracepoint : description.tracepoints)
      formats_.emplace(tracepoint.category + ":" + tracepoint.event, tracepoint.format);
  }

  std::vector<std::string> tracepoints(std::string_view category_glob, std::string_view event_glob) override {
    std::vector<std::string> out;
    for (const auto& [name, format] : formats_) {
      const size_t colon = name.find(':');
      if (glob_match(category_glob, name.substr(0, colon)) && glob_match(event_glob, name.substr(colon + 1)))
        out.push_back(name);
    }
    return out;
  }

  Result<Tracepoint> tracepoint(types::Types& types, std::string_view category, std::string_view event) override {
    const auto found = formats_.find(fmt::format("{}:{}", category, event));
    if (found == formats_.end()) return fail(fmt::format("no tracepoint {}:{}", category, event), ENOENT);
    return parse_tracepoint(*this, types, category, event, found->second);
  }

 private:
  std::map<std::string, std::string> formats_;  // by "category:event"
};

}  // namespace

std::unique_ptr<Kernel> make_described_kernel(const KernelDescription& description) {
  return std::make_unique<DescribedKernel>(description);
}

}  // namespace espy::kernel

// Finds the BTF of a kernel module, which programs for its functions need, by name among all BTF objects.
#include <cerrno>

#include "load/linux.h"

namespace espy::load {

namespace {

bool is_named(int fd, const std::string& module) {
  char name[64] = {};
  BtfInfo info;
  info.name = address_of(name);
  info.name_len = sizeof(name);
  InfoAttr attr{static_cast<uint32_t>(fd), sizeof(info), address_of(&info)};
  return bpf(Command::kObjectInfo, attr) >= 0 && info.kernel_btf != 0 && module == name;
}

}  // namespace

Result<OwnedFd> open_module_btf(const std::string& module) {
  NextIdAttr attr;
  while (bpf(Command::kBtfNextId, attr) >= 0) {
    NextIdAttr wanted{attr.next_id, 0, 0};  // start_id is in one union with btf_id
    OwnedFd fd(static_cast<int>(bpf(Command::kBtfById, wanted)));
    if (fd.valid() && is_named(fd.get(), module)) return fd;
    attr.start_id = attr.next_id;
  }
  return fail("the kernel has no type information for its module " + module, ENOENT);
}

}  // namespace espy::load

#include "load/loaded_programs.h"

#include <linux/bpf.h>

#include "kernel/btf.h"
#include "load/bpf.h"
#include "load/program_btf.h"

namespace espy::load {

namespace {

// The BTF of a program.
std::unique_ptr<kernel::Btf> types_of(uint32_t btf_id) {
  NextIdAttr wanted{btf_id, 0, 0};  // start_id is in one union with btf_id
  const OwnedFd fd(static_cast<int>(bpf(Command::kBtfById, wanted)));
  if (!fd.valid()) return nullptr;
  BtfInfo info;
  InfoAttr size{static_cast<uint32_t>(fd.get()), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, size) < 0) return nullptr;
  std::string bytes(info.btf_size, '\0');
  info = {};
  info.btf = address_of(bytes.data());
  info.btf_size = static_cast<uint32_t>(bytes.size());
  InfoAttr whole{static_cast<uint32_t>(fd.get()), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, whole) < 0) return nullptr;
  auto parsed = kernel::Btf::parse(std::move(bytes));
  return parsed ? std::move(*parsed) : nullptr;
}

void append_functions(uint32_t program_id, std::vector<LoadedFunction>& out) {
  const auto program = open_program(program_id);
  if (!program) return;
  bpf_prog_info info = {};
  InfoAttr first{static_cast<uint32_t>(program->get()), sizeof(info), address_of(&info)};
  if (bpf(Command::kObjectInfo, first) < 0 || info.btf_id == 0) return;
  if (info.type == BPF_PROG_TYPE_TRACING || info.type == BPF_PROG_TYPE_EXT) return;
  std::vector<FuncInfoRecord> functions(info.nr_func_info);
  const uint32_t btf_id = info.btf_id;
  info = {};
  info.nr_func_info = static_cast<uint32_t>(functions.size());
  info.func_info_rec_size = sizeof(FuncInfoRecord);
  info.func_info = address_of(functions.data());
  InfoAttr second{static_cast<uint32_t>(program->get()), sizeof(info), address_of(&info)};
  const auto types = types_of(btf_id);
  if (!types || bpf(Command::kObjectInfo, second) < 0) return;
  for (const FuncInfoRecord& function : functions)
    if (const auto record = types->record(function.type_id))
      out.push_back({program_id, function.type_id, std::string(types->name(*record))});
}

}  // namespace

std::vector<LoadedFunction> loaded_functions() {
  std::vector<LoadedFunction> out;
  NextIdAttr attr;
  while (bpf(Command::kProgramNextId, attr) >= 0) {
    append_functions(attr.next_id, out);
    attr.start_id = attr.next_id;
  }
  return out;
}

Result<OwnedFd> open_program(uint32_t id) {
  NextIdAttr wanted{id, 0, 0};
  const long fd = bpf(Command::kProgramById, wanted);
  if (fd < 0) return fail_errno("cannot open the BPF program " + std::to_string(id), static_cast<int>(-fd));
  return OwnedFd(static_cast<int>(fd));
}

}  // namespace espy::load

// Text files of the kernel: mappings of a process, kallsyms, lists of functions and of CPUs.
#include "../reader.h"
#include "base/strings.h"
#include "kernel/cpu_list.h"
#include "kernel/functions.h"
#include "symbols/kernel_symbols.h"
#include "symbols/traced_process.h"

namespace espy::fuzz {

void run_proc_text(std::string_view bytes) {
  for (const std::string_view line : split(bytes, '\n')) {
    symbols::Mapping mapping;
    symbols::parse_mapping(line, mapping);
    use(mapping.path);
  }
  kernel::parse_cpu_count(bytes);
  const MemoryFile file(bytes);
  symbols::KernelSymbols kallsyms(file.path());
  for (const std::string_view name : {"vfs_read", "t", "["})
    if (const auto symbol = kallsyms.find(name)) use(std::string(symbol->module));
  for (const uint64_t address : {uint64_t{0}, uint64_t{0xffffffff81000010}, UINT64_MAX})
    if (const auto symbol = kallsyms.at_or_before(address)) use(std::string(symbol->name));
  for (const std::string& each : kernel::list_functions(file.path(), "/nonexistent", "vfs_*")) use(each);
  for (const std::string& each : kernel::list_functions("/nonexistent", file.path(), "*")) use(each);
  kernel::find_symbol(file.path(), "vfs_read");
}

}  // namespace espy::fuzz

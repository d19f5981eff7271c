// The format of a tracepoint.
#include "kernel/tracefs.h"

#include "../reader.h"
#include "kernel/directory_kernel.h"

namespace espy::fuzz {

void run_tracefs(std::string_view bytes) {
  using namespace kernel;
  DirectoryKernel kernel("/nonexistent", {host_arch(), host_arch().page_size_bytes, 1}, {});
  for (const std::string_view category : {"syscalls", "sched"}) {
    types::Types types;
    const auto parsed = parse_tracepoint(kernel, types, category, "event", bytes);
    if (!parsed) continue;
    for (const TracepointField& field : parsed->fields) use(field.name + field.c_type + to_string(types, field.type));
  }
}

}  // namespace espy::fuzz

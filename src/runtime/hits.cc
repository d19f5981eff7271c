#include "runtime/hits.h"

#include "base/byte_reader.h"

namespace espy::runtime {

namespace {

uint64_t count_of(std::span<const std::byte> globals, const program::HitCounters& counters, program::ProbeId probe,
                  uint32_t cpu) {
  if (counters.stride_bytes == 0) return 0;
  return load_le(globals, counters.offset_bytes + uint64_t{cpu} * counters.stride_bytes + probe.index * 8);
}

}  // namespace

uint64_t hits_of(load::Machine& machine, const program::Program& program, program::ProbeId probe) {
  uint64_t sum = 0;
  const auto globals = machine.memory(program.globals);
  for (uint32_t cpu = 0; cpu < program.cpu_count; ++cpu) sum += count_of(globals, program.hits, probe, cpu);
  return sum;
}

uint64_t count_on_cpu(std::span<const std::byte> globals, const program::Program& program,
                      const program::HitCounters& counters, program::ProgramId id, uint32_t cpu) {
  uint64_t sum = 0;
  for (const program::ProbeId probe : program.probes.ids())
    if (program.probes[probe].program == id) sum += count_of(globals, counters, probe, cpu);
  return sum;
}

}  // namespace espy::runtime

// Script maps as user space sees them: read whole, cleared, zeroed.
#pragma once

#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"

namespace espy::runtime {

class MapReader {
 public:
  MapReader(load::Machine& machine, const program::Program& program, const output::DecodeContext& context)
      : machine_(machine), program_(program), context_(context) {}

  // All entries in display order. A scalar that was never assigned has none.
  Result<output::MapView> read(program::ScriptMapId map);
  Status clear(program::ScriptMapId map);
  Status zero(program::ScriptMapId map);

 private:
  std::span<std::byte> scalar_bytes(const program::ScriptMap& map);  // from its first "assigned" word on
  void read_scalar(const program::ScriptMap& map, output::MapView& view);
  Status read_hash(const program::ScriptMap& map, output::MapView& view);
  Result<std::vector<std::vector<std::byte>>> keys(const program::ScriptMap& map);

  load::Machine& machine_;
  const program::Program& program_;
  output::DecodeContext context_;
};

}  // namespace espy::runtime

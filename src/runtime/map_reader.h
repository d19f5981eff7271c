// MapReader: reads, clears and zeroes the maps of a script.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "types/recent_layout.h"

namespace espy::runtime {

class MapReader {
 public:
  MapReader(load::Machine& machine, const program::Program& program, const output::DecodeContext& context)
      : machine_(machine), program_(program), context_(context) {}

  // Returns all entries in display order; none for a scalar that was never assigned. Of a recent() without keys, only
  // values that were added by `until_ns`, a monotonic time. `is_compact`: in MapView::compact, if they fit; the view
  // must not outlive the reader then.
  Result<output::MapView> read(program::ScriptMapId map, uint64_t until_ns = UINT64_MAX, bool is_compact = false);
  // The entry with a key, none if it is absent. `key` starts with its bytes, as in the map.
  output::MapView read_element(program::ScriptMapId map, std::span<const std::byte> key);
  Status clear(program::ScriptMapId map);  // removes all keys; unsets a scalar
  Status zero(program::ScriptMapId map);   // keeps the keys, zeroes the values

 private:
  output::MapView empty_view(const program::ScriptMap& map) const;
  output::Value hash_value(const output::DecodeContext& context, const program::ScriptMap& map,
                           std::span<const std::byte> bytes) const;
  std::span<std::byte> scalar_bytes(const program::ScriptMap& map);  // from the "assigned" word of CPU 0 on
  void read_scalar(const program::ScriptMap& map, uint64_t until_ns, output::MapView& view);
  Status read_recent(const program::ScriptMap& map, output::MapView& view);
  Status read_hash(const program::ScriptMap& map, output::MapView& view, bool is_compact);
  types::RecentLayout layout_of(const program::ScriptMap& map) const;
  void count_removed_key(const program::ScriptMap& map);
  Result<std::vector<std::vector<std::byte>>> keys(const program::ScriptMap& map);

  load::Machine& machine_;
  const program::Program& program_;
  output::DecodeContext context_;
};

}  // namespace espy::runtime

#include "output/sinks.h"

namespace espy::output {

const std::vector<SinkRow>& sinks() {
  static const std::vector<SinkRow> rows = {
      {"text", "for people, and for pipes that expect bpftrace's text", make_text_sink},
      {"json", "one object a line", make_json_sink},
      {"trace", "spans in the Trace Event Format, for chrome://tracing and Perfetto", make_trace_sink},
      {"folded", "maps keyed by stacks, a line a stack: main;work;leaf 12", make_folded_sink, true},
      {"flame", "the same as a flame graph: one SVG file to open in a browser", make_flame_sink, true},
  };
  return rows;
}

const SinkRow* find_sink(std::string_view name) {
  for (const SinkRow& row : sinks())
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace espy::output

// SpanCollector: the span events of a run, which output::CallTrees places in the call tree of their thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "output/spans.h"
#include "program/program.h"
#include "spec/config.h"

namespace espy::runtime {

class SpanCollector {
 public:
  using Show = std::function<void(const output::SpanEvent&)>;
  SpanCollector(const program::Program& program, const spec::Config& config, Show show);

  // True if as many spans were shown as the configuration asks for.
  bool is_full() const { return trees_.is_full(); }
  // An event of the probe with this index, an index of Program::probes or greater if it is of none.
  void add(output::SpanEvent event, size_t probe_index, output::SpanPlace place);

  // See CallTrees.
  bool is_hidden(uint64_t time_ns) const { return trees_.is_hidden(time_ns); }
  void end_thread(const output::SpanEvent& last) { trees_.end_thread(last); }
  void hide(uint64_t from_ns, uint64_t to_ns) { trees_.hide(from_ns, to_ns); }
  void note_losses() { trees_.note_losses(); }
  void close(uint64_t now_ns) { trees_.close(now_ns); }

 private:
  const program::Program& program_;
  output::CallTrees trees_;
  std::vector<uint32_t> function_numbers_;  // by ProbeId
};

}  // namespace espy::runtime

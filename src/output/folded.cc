// Folded stacks, the input of flamegraph.pl, inferno and speedscope: a line for each stack, the frames from the
// outermost on joined by semicolons, a blank, the weight.
#include <fmt/format.h>

#include <algorithm>

#include "output/collapse_stacks.h"
#include "output/sink.h"
#include "output/text_fallback_sink.h"

namespace espy::output {

namespace {

class FoldedSink final : public TextFallbackSink {
 public:
  FoldedSink(Writer& out, TextStyle style, bool quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(for_terminal(std::move(style), out)) {}

  void map(const MapView& map) override {
    if (!has_stacks(map)) return TextFallbackSink::map(map);
    for (const FoldedStack& stack : collapse_stacks(map, style_)) {
      std::string line;
      for (const FoldedFrame& frame : stack.frames) line += (line.empty() ? "" : ";") + folded_name(frame);
      out_.write(fmt::format("{} {}\n", line, stack.weight));
    }
  }

 private:
  Writer& out_;
  TextStyle style_;
};

std::unique_ptr<Sink> make_folded_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<FoldedSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kFoldedSink = {
    .name = "folded", .doc = "maps keyed by stacks, a line for each stack", .create = make_folded_sink};

}  // namespace espy::output

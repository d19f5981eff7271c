// The rows of the sinks table, each from its own file.
#pragma once

#include "output/sink.h"

namespace espy::output {

std::unique_ptr<Sink> make_text_sink(Writer& out, TextStyle style, bool quiet);
std::unique_ptr<Sink> make_trace_sink(Writer& out, TextStyle style, bool quiet);
std::unique_ptr<Sink> make_folded_sink(Writer& out, TextStyle style, bool quiet);
std::unique_ptr<Sink> make_flame_sink(Writer& out, TextStyle style, bool quiet);
std::unique_ptr<Sink> make_json_sink(Writer& out, TextStyle style, bool quiet);

}  // namespace espy::output

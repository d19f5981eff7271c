// The sink for Perfetto's own format, which `-f trace` writes to a file of this suffix.
#pragma once

#include <memory>
#include <string_view>

#include "output/sink.h"

namespace espy::output {

inline constexpr std::string_view kPerfettoSuffix = ".pftrace";

std::unique_ptr<Sink> make_perfetto_sink(Writer& out, TextStyle style, bool quiet);

}  // namespace espy::output

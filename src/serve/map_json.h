// A map as a JSON object for the page: see docs/metrics.md for its form.
#pragma once

#include <string>

#include "output/format.h"
#include "output/sink.h"
#include "serve/described_map.h"

namespace espy::serve {

// {"name":"@reads","kind":"count","scalar":false,"labels":["comm"],"help":"...","keys":3,"entries":[[["cat"],2],...]}.
// "seen", a share, is there if a budget had probes off. The entries are the largest, in ascending order. A map with
// stacks in its keys has "stacks" and "frames" instead: each stack is [weight, frame, ...], where a frame is an index
// into "frames", outermost first.
std::string map_json(const DescribedMap& map, const output::MapView& view, const output::TextStyle& style);

}  // namespace espy::serve

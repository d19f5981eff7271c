// What a server says of a map besides its values: names for the parts of its key, and a sentence. And the JSON of a map
// for the page.
//
// The parts are named by the expressions that the script has for them: `@[comm, str(args.filename)]` has `comm` and
// `filename`. The variable `labels` of the configuration has precedence. The sentence is the comment above the map.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "check/checked.h"
#include "output/format.h"
#include "output/sink.h"
#include "program/program.h"
#include "source/source.h"
#include "types/type.h"

namespace espy::serve {

struct DescribedMap {
  program::ScriptMapId id;
  std::string name;  // "@reads"
  types::Kind value = types::Kind::kVoid;
  std::vector<std::string> labels;  // a name for each part of the key; distinct; names as Prometheus wants them
  std::string help;                 // one line
  bool has_comment = false;         // `help` is a comment of the script
  bool is_scratch = false;          // check::scratch_maps()
};

// The maps that have values to show, in the order of the script. Fails if `labels` names no map, or has another number
// of names than the map's key has parts.
Result<std::vector<DescribedMap>> describe_maps(const check::Checked& checked, const program::Program& program,
                                                const types::Types& types, const source::Sources& sources,
                                                const std::string& labels);

// Makes a text a name of letters, digits and underscores, which does not begin with a digit or two underscores.
std::string metric_name(std::string_view text);

// A map as a JSON object for the page:
// {"name":"@reads","kind":"count_t","scalar":false,"labels":["comm"],"help":"...","keys":3,"entries":[[["cat"],2],...]}.
// The comment of the script is "help". A "unit" ("nanoseconds") is there if the values have one, "scratch" (true) for
// working maps. "seen", a share, is there if a budget had probes off. The entries are the largest, in ascending order.
// An entry has a third item, the value as text, if the value is a tuple, an array, or the like. A map with stacks in
// its keys has "stacks", "frames" and "kinds" instead. Each stack is [weight, frame, ...], where a frame is an index
// into "frames", outermost first. The string "kinds" has a letter for each frame: u user, k kernel, i inlined, t
// another part of the key, x unknown. The field "sampled" (true) is there if the weights count samples.
std::string map_json(const DescribedMap& map, const output::MapView& view, const output::TextStyle& style);

}  // namespace espy::serve

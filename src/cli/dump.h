// --dump of the stages that have no printer of their own room.
#pragma once

#include <string>

#include "check/checked.h"
#include "program/program.h"
#include "source/source.h"

namespace espy::cli {

// A token a line: its place and its text.
std::string dump_tokens(const source::Sources& sources, source::SourceId script);
// What check found out: maps with key and value, then each unit's probes, context fields and variables.
std::string dump_types(const check::Checked& checked, const types::Types& types);
// A record a line: index, builtin, fields with their offsets.
std::string dump_events(const program::Program& program, const types::Types& types);

}  // namespace espy::cli

// --dump of the stages whose modules have no printer.
#pragma once

#include <string>

#include "check/checked.h"
#include "program/program.h"
#include "source/source.h"

namespace espy::cli {

// One token per line: its position and its text.
std::string dump_tokens(const source::Sources& sources, source::SourceId script);
// The types that check has inferred: of maps, then of each unit's context fields and variables.
std::string dump_types(const check::Checked& checked, const types::Types& types);
// One event schema per line: index, builtin, fields with their offsets.
std::string dump_events(const program::Program& program, const types::Types& types);

}  // namespace espy::cli

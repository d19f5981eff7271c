// Type inference: finds the type of every expression, variable and map of a script.
//
// Types widen: a variable holds everything that is assigned to it, a map everything that any unit puts into it. So all
// units are checked in rounds, until no type changes; facts are written in each, diagnostics in a final one. Types only
// widen, so a few rounds suffice.
#pragma once

#include "check/check.h"
#include "check/defines.h"

namespace espy::check {

// Fills the facts of all units and the types of all maps of `checked`, whose probes are bound already.
void analyze(CheckRequest& request, Checked& checked, const Defines& defines);

}  // namespace espy::check

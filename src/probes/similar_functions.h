// What a kernel has instead of a function that an attach point names: for the hint where nothing matches.
//
// Facts: the names under which the compiler has left code of the function, whether they can be probed, and whether the
// kernel's types describe a function that has no code. Not facts, and said as such: functions with a similar name.
#pragma once

#include <string>

#include "spec/provider.h"

namespace espy::probes {

// Returns sentences without a full stop, separated by "; "; "" if there is nothing to say. The function is the last
// part of the request.
std::string tell_similar_functions(spec::ListRequest& request);

}  // namespace espy::probes

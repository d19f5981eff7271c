// percentile(): a bound of a part of the values that a histogram has counted.
#pragma once

#include "lower/lowering.h"
#include "spec/builtin.h"

namespace espy::builtins {

// Emits the largest value of the first bucket up to which `percent` of `whole` of the values are counted; 0 for an
// empty histogram.
lower::Operand lower_percentile(lower::Lowering& lowering, const spec::CallSite& call);
types::TypeId check_percentile(check::Checker& checker, const spec::CallSite& call);

}  // namespace espy::builtins

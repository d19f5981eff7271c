// `func` where a symbol is expected. It prints as a name; combined with values of ksym() and usym(), it is the address
// of the function.
#pragma once

#include "check/facts.h"

namespace espy::check {

// If `value` is the word `func`, and the probes of the unit are of functions of the kind that the symbol type `wanted`
// has, gives the expression that type and returns true.
bool use_func_as_symbol(Facts& facts, ExprId value, TypeId wanted);

// True if `held` is the type of `func`, and `given` that of a symbol: what holds both holds a symbol, and the next
// round of the checker finds it so.
bool becomes_symbol(const Facts& facts, TypeId held, TypeId given);

}  // namespace espy::check

// The targets of `espy trace`, as they are typed:
//
//   FUNCTION                            a function of the kernel, with all arguments and what it returns
//   FUNCTION(a, a->b.c, return)         with these values; none of them `return`: only its entry
//   FUNCTION(a->b > 100, a)             only where the comparison holds: == != > >= < <=
//   FILE:FUNCTION                       a function of a program or library; with parentheses in its name in quotes
//   PROVIDER:...                        any attach point of the language: t:sched:sched_switch, usdt:FILE:NAME
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy::cli {

// One place of a list.
struct TraceItem {
  std::string text;
  size_t offset = 0;  // in the target, bytes
};

struct TraceTarget {
  std::string text;                // all of it, for messages
  std::string place;               // before the parenthesis
  bool has_list = false;           // a parenthesis followed, maybe an empty one
  std::vector<TraceItem> filters;  // comparisons of values at the entry
  std::vector<TraceItem> values;   // what to show, without `return`
  std::vector<TraceItem> results;  // comparisons of `return`
  bool wants_return = false;
};

// The targets of an argument: "a(x, y),b" has two. Commas in brackets, in quotes and between the angle brackets of a
// template separate nothing.
std::vector<std::string> split_trace_targets(std::string_view text);

Result<TraceTarget> parse_trace_target(const std::string& text);

// Whether an expression has what is returned in it.
bool names_return(std::string_view expression);

// The expression with `retval` in place of `return`, which expressions do not know: "return < 0" becomes
// "retval < 0".
// Each byte stays at its place.
std::string with_result(std::string_view expression);

}  // namespace espy::cli

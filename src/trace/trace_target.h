// The targets of `espy trace`: from words of the command line to probes with typed arguments.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/environment.h"
#include "spec/provider.h"
#include "syntax/ast.h"

namespace espy::trace {

// ---- The typed targets of `espy trace`:
//
//   FUNCTION                            a function of the kernel, with all arguments and what it returns
//   FUNCTION(a, a->b.c, return)         with these values; none of them `return`: only its entry
//   FUNCTION(a->b > 100, a)             only where the comparison holds: == != > >= < <=
//   FILE:FUNCTION                       a function of a program or library; with parentheses in its name in quotes
//   SYSCALL, syscalls:SYSCALL           a system call, if the kernel has no function of this name
//   PROVIDER:...                        any attach point of the language: t:sched:sched_switch, usdt:FILE:NAME

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
// The targets of all arguments.
std::vector<std::string> split_trace_targets(std::span<const std::string> arguments);

Result<TraceTarget> parse_trace_target(const std::string& text);

// Whether an expression contains the return value.
bool names_return(std::string_view expression);

// The expression with `retval` instead of `return`, which expressions do not know: "return < 0" becomes "retval < 0".
// Each byte stays at its place.
std::string with_result(std::string_view expression);

// ---- From the targets of `espy trace` to probes with typed arguments.

// An expression of a script: `args.skb`, `(struct sk_buff *)arg0`, `retval`.
struct TraceValue {
  std::string word;         // "args", "arg0", "retval"; empty: there is no value
  std::string member;       // the name of args in the file; otherwise empty
  types::TypeId cast = {};  // invalid: without a cast

  bool is_there() const { return !word.empty(); }
};

struct TraceArgument {
  std::string name;
  TraceValue value;
  types::TypeId type;  // invalid: unknown
  bool is_readable = true;
};

// Where the probes of an action are.
struct TracePlace {
  std::vector<syntax::AttachPoint> points;  // empty: there is none
  // For functions that a wildcard matched, the probe of each point: with the types of arguments, and without. Else
  // empty: the user has typed the point.
  std::vector<spec::BoundProbe> typed, plain;
};

// The probes of a target, and what they show.
struct TraceProbes {
  TracePlace entry;
  TracePlace leave;      // empty: an event, which has no end, or a function of `unsafe`
  std::string name;      // as it is shown; empty: of a wildcard, shown as `func`
  std::string function;  // the value of `func`; empty: of a wildcard
  std::vector<TraceArgument> arguments;
  std::set<std::string> hidden = {};  // names that cannot be used: names of other arguments, and ""
  TraceValue result;                  // not there: it returns nothing
  std::string why_no_result = {};     // why a result that there is cannot be read: "`retval` is ..."
  std::string prototype;              // in C; empty: unknown
  // The stack pointer, the same at the entry and at the return, distinguishes a call from its callees. An exception may
  // leave calls without a return.
  bool has_frames = false;
  bool is_system_call = false;  // the probes are the events of its entry and its exit
  // Functions without `leave`, because a probe of their returns would end the program if an exception passes.
  std::vector<std::string> unsafe = {};
};

// `names_return`: the user asks for returns, so returns that could end the program are probed, too. One element, or,
// for a wildcard in a program, one for each list of arguments that its functions have. The error has the missing name,
// and the nearest existing name.
Result<std::vector<TraceProbes>> find_trace_probes(const TraceTarget& target, bool names_return,
                                                   run::Environment& environment);

}  // namespace espy::trace

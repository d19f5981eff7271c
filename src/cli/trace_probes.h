// From the targets of `espy trace` to probes with typed arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/environment.h"
#include "cli/trace_target.h"

namespace espy::cli {

struct TraceArgument {
  std::string name;
  std::string source;  // `args.skb`, `(struct sk_buff *)arg0`
  types::TypeId type;  // invalid: unknown
  bool is_readable = true;
};

// The probes of a target, and what they show.
struct TraceProbes {
  std::string entry;     // "fentry:vmlinux:vfs_read"
  std::string leave;     // "fexit:vmlinux:vfs_read"; empty: an event, which has no end
  std::string name;      // as it is shown, a literal; empty: of a wildcard, shown as `func`
  std::string function;  // the value of `func`; empty: of a wildcard
  std::vector<TraceArgument> arguments;
  std::string result;     // "retval", "(int32)retval"; empty: it returns nothing
  std::string prototype;  // in C; empty: unknown
};

// One element, or, for a wildcard in a program, one for each list of arguments that its functions have. The error names
// what is not found, and the nearest name that is.
Result<std::vector<TraceProbes>> find_trace_probes(const TraceTarget& target, Environment& environment);

// The text as a string literal of the language.
std::string literal(std::string_view text);

}  // namespace espy::cli

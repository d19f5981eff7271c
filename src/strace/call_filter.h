// What `-e` chooses: calls by name, class or regular expression, and results.
#pragma once

#include <bitset>
#include <string_view>

#include "base/result.h"
#include "strace/call_table.h"

namespace espy::strace {

struct CallFilter {
  std::bitset<CallTable::kNumbers> calls;
  bool is_all = true;  // calls without a name as well
  bool shows_successful = true, shows_failed = true, shows_unfinished = true;
  bool shows_signals = true;
};

// Applies the argument of one `-e` to the filter: `trace=SET`, `SET`, `status=SET` or `signal=SET`. An unknown name is
// an error with the nearest names.
Status apply_expression(const CallTable& table, std::string_view expression, CallFilter& filter);

}  // namespace espy::strace

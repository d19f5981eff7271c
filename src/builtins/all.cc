#include "builtins/all.h"

namespace espy::builtins {

std::vector<std::span<const spec::Builtin>> all() {
  return {task_builtins(),        time_builtins(),   probe_builtins(),  output_builtins(), span_builtins(),
          aggregation_builtins(), string_builtins(), stack_builtins(),  symbol_builtins(), go_builtins(),
          map_builtins(),         net_builtins(),    packet_builtins(), file_builtins(),   comptime_builtins()};
}

}  // namespace espy::builtins

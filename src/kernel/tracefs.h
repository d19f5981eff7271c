// Tracepoints and the layout of their records, from tracefs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/kernel.h"
#include "types/type.h"

namespace espy::kernel {

// Parses the text of events/CATEGORY/EVENT/format. `kernel` provides the structs, enums and typedefs that fields name.
Result<Tracepoint> parse_tracepoint(Kernel& kernel, types::Types& types, std::string_view category,
                                    std::string_view event, std::string_view format);

// "category:event" under the directory `tracing` (…/tracing), sorted by name.
std::vector<std::string> list_tracepoints(const std::string& tracing, std::string_view category_glob,
                                          std::string_view event_glob);

// Returns the text of the format file of a tracepoint. The code of the error is ENOENT if there is no such tracepoint.
Result<std::string> read_tracepoint_format(const std::string& tracing, std::string_view category,
                                           std::string_view event);

// The directory below `root` where tracefs is mounted; "" if it is not.
std::string find_tracing(const std::string& root);

// The reason why a mounted tracefs lists nothing, for messages.
std::string why_unreadable(Kernel& kernel);
// What makes it readable; "" if lockdown forbids it.
std::string how_to_read_tracefs(Kernel& kernel);

}  // namespace espy::kernel

// What tracefs tells about tracepoints: which there are, and the layout of their records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/kernel.h"
#include "types/type.h"

namespace espy::kernel {

// The text of events/CATEGORY/EVENT/format. `kernel` is asked for the structs, enums and typedefs that fields name.
Result<Tracepoint> parse_tracepoint(Kernel& kernel, types::Types& types, std::string_view category,
                                    std::string_view event, std::string_view format);

// "category:event" under the directory `tracing` (…/tracing), in order of names.
std::vector<std::string> list_tracepoints(const std::string& tracing, std::string_view category_glob,
                                          std::string_view event_glob);

// The directory where tracefs is mounted below `root`; "" if it is not.
std::string find_tracing(const std::string& root);

// Why a tracefs that is there shows nothing.
std::string why_unreadable(Kernel& kernel);

}  // namespace espy::kernel

// %gr: the allocator's gfp_t flags by name.
#pragma once

#include <cstdint>
#include <string>

namespace espy::output {

// "GFP_KERNEL|__GFP_ZERO"; bits without a name as a number. Bit numbers of include/linux/gfp_types.h since Linux 6.9;
// earlier releases have others.
std::string gfp_flags(uint64_t flags);

}  // namespace espy::output

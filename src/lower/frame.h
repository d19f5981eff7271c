// The frame: what callbacks share with the action around them. Offsets in bytes from its start.
#pragma once

#include <cstdint>

namespace espy::lower {

constexpr uint32_t kFrameScratchOffset = 0;  // address of this run's scratch
constexpr uint32_t kFrameLeftOffset = 8;     // how the callback's loop was left
constexpr uint32_t kFrameContextOffset = 16;
constexpr uint32_t kFrameProbeOffset = 24;
constexpr uint32_t kFrameHeaderBytes = 32;  // variables follow

constexpr int64_t kLeftFunction = 2;  // by `return`
constexpr int64_t kLeftAction = 3;    // by exit()

}  // namespace espy::lower

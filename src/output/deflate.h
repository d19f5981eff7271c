// Compression by zlib.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espy::output {

enum class Wrapping : uint8_t { kZlib, kGzip };

// Returns `bytes` compressed, with the header and the checksum of a zlib stream or of a gzip file.
std::string deflated(std::string_view bytes, Wrapping wrapping);

}  // namespace espy::output

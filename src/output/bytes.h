// Bytes as readable text.
#pragma once

#include <string>
#include <string_view>

namespace espy::output {

// Printable ASCII, including backslashes, unchanged; other bytes as \xNN.
std::string escaped(std::string_view bytes);

// Two hexadecimal digits for each byte, joined by `separator`.
std::string hexadecimal(std::string_view bytes, std::string_view separator);

}  // namespace espy::output

// Bytes as readable text.
#pragma once

#include <string>
#include <string_view>

namespace espy::output {

// Printable ASCII, including backslashes, unchanged; other bytes as \xNN.
std::string escaped(std::string_view bytes);

// Every byte as \xNN.
std::string all_escaped(std::string_view bytes);

// Two hexadecimal digits for each byte, separated by blanks.
std::string hexadecimal(std::string_view bytes);

}  // namespace espy::output

// Bytes as readable text.
#pragma once

#include <string>
#include <string_view>

namespace espy::output {

// Printable ASCII as it is (a backslash too), other bytes as \xNN.
std::string escaped(std::string_view bytes);

// Two digits a byte, with `separator` between.
std::string hexadecimal(std::string_view bytes, std::string_view separator);

}  // namespace espy::output

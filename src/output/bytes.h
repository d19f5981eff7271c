// Bytes and numbers that are appended to a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espy::output {

// ---- Numbers and columns that are appended to a text, without strings of their own.

void append_decimal(std::string& out, uint64_t number);
void append_decimal(std::string& out, int64_t number);
// With zeros in front up to `digits`.
void append_decimal(std::string& out, uint64_t number, size_t digits);

// Appends blanks until `out` has `width` bytes from `start` on.
inline void fill_up(std::string& out, size_t start, size_t width) {
  const size_t used = out.size() - start;
  if (used < width) out.append(width - used, ' ');
}

// ---- Bytes as readable text.

// Printable ASCII, including backslashes, unchanged; other bytes as \xNN.
std::string escaped(std::string_view bytes);

// Every byte as \xNN.
std::string all_escaped(std::string_view bytes);

// Two hexadecimal digits for each byte, separated by blanks.
std::string hexadecimal(std::string_view bytes);

}  // namespace espy::output

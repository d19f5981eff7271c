#include "output/bytes.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace espy::output {

void append_decimal(std::string& out, uint64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_decimal(std::string& out, int64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_decimal(std::string& out, uint64_t number, size_t digits) {
  const fmt::format_int text(number);
  if (text.size() < digits) out.append(digits - text.size(), '0');
  out.append(text.data(), text.size());
}

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void append_byte(std::string& out, unsigned char byte) {
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

void append_escape(std::string& out, char c) {
  out += "\\x";
  append_byte(out, static_cast<unsigned char>(c));
}

}  // namespace

std::string escaped(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] >= ' ' && bytes[i] <= '~' && !looks_escaped(bytes.substr(i)))
      out += bytes[i];
    else
      append_escape(out, bytes[i]);
  }
  return out;
}

std::string all_escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_escape(out, c);
  return out;
}

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (!out.empty()) out += ' ';
    append_byte(out, static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace espy::output

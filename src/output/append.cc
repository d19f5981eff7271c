#include "output/append.h"

#include <fmt/format.h>

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

}  // namespace espy::output

// Rust's legacy scheme: a nested name of C++, `_ZN` (length identifier)* `E`, whose last identifier is a hash, `h` and
// 16 hex digits, which is not shown. Characters that linkers do not accept are `$LT$`, `$u7e$`, ..., and `..` is `::`.
//
// Why not rust_demangle of libiberty (20230104): its output and time are unbounded, and symbols are untrusted. A name
// of 239 bytes with nested back references becomes 400 MB in 6 s; one of 22 bytes with a large lifetime binder runs for
// more than 20 s. Of 105,679 names in rustc 1.95 it prints three wrong (128-bit constants) and drops `.cold` and other
// suffixes of 15,269; it does not decode escapes above ASCII. The static binary would be 20 KB smaller.
#include <vector>

#include "symbols/demangle.h"
#include "symbols/rust_names.h"

namespace espy::symbols {

void append_utf8(std::string& out, uint32_t character) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((character >> shift) & 0x3f)); };
  if (character < 0x80) {
    out += static_cast<char>(character);
  } else if (character < 0x800) {
    out += static_cast<char>(0xc0 | (character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    out += static_cast<char>(0xe0 | (character >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (character >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::string_view visible_suffix(std::string_view suffix) {
  return suffix.starts_with(".llvm.") ? std::string_view{} : suffix;
}

std::string demangle_rust(std::string_view mangled) {
  if (mangled.starts_with("_ZN")) return demangle_rust_legacy(mangled.substr(3));
  if (mangled.size() < 3 || !mangled.starts_with("_R") || !is_upper(mangled[2])) return {};
  return demangle_rust_v0(mangled.substr(2));
}

namespace {

// One `$NAME$` of an identifier, without the dollars.
bool append_legacy_escape(std::string& out, std::string_view name) {
  struct Escape {
    std::string_view name;
    char character;
  };
  constexpr Escape kEscapes[] = {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
                                 {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
  for (const Escape& escape : kEscapes) {
    if (escape.name != name) continue;
    out += escape.character;
    return true;
  }
  if (!name.starts_with('u') || name.size() < 2 || name.size() > 7) return false;
  uint32_t code = 0;
  for (const char c : name.substr(1)) {
    if (!is_lower_hex(c)) return false;
    code = code * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  append_utf8(out, code);
  return true;
}

void append_legacy_identifier(std::string& out, std::string_view identifier) {
  if (identifier.starts_with("_$")) identifier.remove_prefix(1);
  while (!identifier.empty()) {
    if (identifier.starts_with("..")) {
      out += "::";
      identifier.remove_prefix(2);
      continue;
    }
    const size_t close = identifier[0] == '$' ? identifier.find('$', 1) : std::string_view::npos;
    if (close != std::string_view::npos && append_legacy_escape(out, identifier.substr(1, close - 1))) {
      identifier.remove_prefix(close + 1);
      continue;
    }
    out += identifier[0];
    identifier.remove_prefix(1);
  }
}

bool is_legacy_hash(std::string_view identifier) {
  if (identifier.size() != 17 || identifier[0] != 'h') return false;
  for (const char c : identifier.substr(1)) {
    if (!is_lower_hex(c)) return false;
  }
  return true;
}

}  // namespace

std::string demangle_rust_legacy(std::string_view rest) {
  std::vector<std::string_view> path;
  while (!rest.empty() && is_digit(rest[0])) {
    size_t length = 0;
    while (!rest.empty() && is_digit(rest[0]) && length < kMaxDemangledBytes) {
      length = length * 10 + static_cast<size_t>(rest[0] - '0');
      rest.remove_prefix(1);
    }
    if (length == 0 || length > rest.size()) return {};
    path.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.starts_with('E') || path.size() < 2 || !is_legacy_hash(path.back())) return {};
  path.pop_back();
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (i > 0) out += "::";
    append_legacy_identifier(out, path[i]);
  }
  out += visible_suffix(rest.substr(1));
  return out;
}

}  // namespace espy::symbols

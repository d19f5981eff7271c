// /proc/PID/maps, line by line.
#include <sys/sysmacros.h>

#include <charconv>

#include "base/fd.h"
#include "base/strings.h"
#include "symbols/symbols.h"

namespace espy::symbols {
namespace {

// The number at the front of `text`, and `text` moved behind it and behind one `separator`.
uint64_t take_number(std::string_view& text, int base, char separator) {
  uint64_t value = 0;
  const char* end = std::from_chars(text.data(), text.data() + text.size(), value, base).ptr;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(separator)) text.remove_prefix(1);
  return value;
}

// The kernel writes a newline in a file name as \012, and nothing else specially.
std::string unescape_path(std::string_view path) {
  std::string out;
  for (size_t at = path.find("\\012"); at != path.npos; at = path.find("\\012")) {
    out += path.substr(0, at);
    out += '\n';
    path.remove_prefix(at + 4);
  }
  out += path;
  return out;
}

// "START-END PERMS OFFSET MAJOR:MINOR INODE      PATH"
Mapping parse_mapping(std::string_view line) {
  Mapping out;
  out.start = take_number(line, 16, '-');
  out.end = take_number(line, 16, ' ');
  out.executable = line.size() > 2 && line[2] == 'x';
  line.remove_prefix(std::min<size_t>(line.size(), 5));
  out.file_offset = take_number(line, 16, ' ');
  const auto major_number = static_cast<unsigned>(take_number(line, 16, ':'));
  const auto minor_number = static_cast<unsigned>(take_number(line, 16, ' '));
  out.device = makedev(major_number, minor_number);
  out.inode = take_number(line, 10, ' ');
  std::string_view path = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::string_view kDeleted = " (deleted)";
  if (out.inode != 0 && path.ends_with(kDeleted)) {
    out.deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  out.path = unescape_path(path);
  return out;
}

}  // namespace

Result<std::vector<Mapping>> read_mappings(uint32_t pid) {
  const std::string text = TRY(read_file("/proc/" + std::to_string(pid) + "/maps"));
  std::vector<Mapping> out;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) out.push_back(parse_mapping(line));
  }
  return out;
}

}  // namespace espy::symbols

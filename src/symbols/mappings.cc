// Parser of /proc/PID/maps (proc_pid_maps(5)).
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/process.h"
#include "base/strings.h"
#include "kernel/proc_path.h"
#include "symbols/process.h"

namespace espy::symbols {
namespace {

// Removes the number at the front of `text`, and one `separator` after it; 0 if there is none.
uint64_t take_field(std::string_view& text, int base, char separator) {
  const uint64_t value = take_number(text, base).value_or(0);
  if (text.starts_with(separator)) text.remove_prefix(1);
  return value;
}

// The kernel escapes newlines in file names as \012, and nothing else.
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
  out.start = take_field(line, 16, '-');
  out.end = take_field(line, 16, ' ');
  out.executable = line.size() > 2 && line[2] == 'x';
  line.remove_prefix(std::min<size_t>(line.size(), 5));
  out.file_offset = take_field(line, 16, ' ');
  const auto major_number = static_cast<unsigned>(take_field(line, 16, ':'));
  const auto minor_number = static_cast<unsigned>(take_field(line, 16, ' '));
  out.device = makedev(major_number, minor_number);
  out.inode = take_field(line, 10, ' ');
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

uint32_t task_with_memory(uint32_t pid) {
  const auto has_memory = [](uint32_t task) {
    char path[2];
    return ::readlink(kernel::proc_path(task, "exe").c_str(), path, sizeof(path)) > 0;
  };
  if (has_memory(pid)) return pid;
  for (const uint32_t task : numbered_entries(kernel::proc_path(pid, "task")))
    if (has_memory(task)) return task;
  return pid;
}

std::vector<Mapping> parse_mappings(std::string_view text) {
  std::vector<Mapping> out;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) out.push_back(parse_mapping(line));
  }
  return out;
}

Result<std::vector<Mapping>> read_mappings(uint32_t pid) {
  std::string text = TRY(read_file(kernel::proc_path(pid, "maps")));
  if (text.empty()) text = TRY(read_file(kernel::proc_path(task_with_memory(pid), "maps")));
  return parse_mappings(text);
}

std::string map_files_path(uint32_t pid, uint64_t start, uint64_t end) {
  return kernel::proc_path(pid, fmt::format("map_files/{:x}-{:x}", start, end));
}

}  // namespace espy::symbols

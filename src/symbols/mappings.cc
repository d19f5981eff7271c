// Parser of /proc/PID/maps (proc_pid_maps(5)).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/fd.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
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
void unescape_path(std::string_view path, std::string& out) {
  out.clear();
  for (size_t at = path.find("\\012"); at != path.npos; at = path.find("\\012")) {
    out += path.substr(0, at);
    out += '\n';
    path.remove_prefix(at + 4);
  }
  out += path;
}

void set_path(std::string_view path, Mapping& out) {
  constexpr std::string_view kDeleted = " (deleted)";
  out.deleted = out.inode != 0 && path.ends_with(kDeleted);
  if (out.deleted) path.remove_suffix(kDeleted.size());
  unescape_path(path, out.path);
}

}  // namespace

// "START-END PERMS OFFSET MAJOR:MINOR INODE      PATH"
void parse_mapping(std::string_view line, Mapping& out) {
  out.start = take_field(line, 16, '-');
  out.end = take_field(line, 16, ' ');
  out.executable = line.size() > 2 && line[2] == 'x';
  out.may_have_probes = line.size() <= 3 || (line[1] != 'w' && line[3] != 's');
  line.remove_prefix(std::min<size_t>(line.size(), 5));
  out.file_offset = take_field(line, 16, ' ');
  const auto major_number = static_cast<unsigned>(take_field(line, 16, ':'));
  const auto minor_number = static_cast<unsigned>(take_field(line, 16, ' '));
  out.device = makedev(major_number, minor_number);
  out.inode = take_field(line, 10, ' ');
  set_path(line.substr(std::min(line.find_first_not_of(' '), line.size())), out);
}

void take_event_path(Mapping& mapping) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (mapping.inode != 0 && mapping.path.ends_with(kDeleted)) {
    mapping.path.resize(mapping.path.size() - kDeleted.size());
    mapping.deleted = true;
  }
  if (mapping.path.starts_with("//")) mapping.path.clear();  // "//anon"
}

bool is_mapped_inode(uint64_t inode, uint64_t mapped) {
  constexpr uint64_t kOwnBits = (uint64_t{1} << 48) - 1;
  return ((inode ^ mapped) & kOwnBits) == 0;
}

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
    if (!line.empty()) parse_mapping(line, out.emplace_back());
  }
  return out;
}

namespace {

// Calls `visit` with each line until it returns false. Stops, and fails with kRefusedFile, behind `most_bytes`. `bytes`
// receives how many there were.
Status visit_lines(const std::string& path, uint64_t most_bytes, uint64_t& bytes,
                   const std::function<bool(std::string_view line)>& visit) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open " + path, errno);
  std::string part;  // begins with the start of a line that the part before has cut
  std::array<char, 64 << 10> more;
  for (;;) {
    const ssize_t got = ::read(fd.get(), more.data(), more.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot read " + path, errno);
    if (got == 0) return {};
    bytes += static_cast<uint64_t>(got);
    if (bytes > most_bytes)
      return fail(fmt::format("{} is too large: at most {} MiB are read", path, most_bytes >> 20), kRefusedFile);
    part.append(more.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = part.find('\n'); end != part.npos; end = part.find('\n', begin)) {
      if (!visit(std::string_view(part).substr(begin, end - begin))) return {};
      begin = end + 1;
    }
    part.erase(0, begin);
  }
}

Status visit_maps(uint32_t pid, uint64_t most_bytes, uint64_t& bytes,
                  const std::function<bool(std::string_view line)>& visit) {
  bytes = 0;
  TRY_STATUS(visit_lines(kernel::proc_path(pid, "maps"), most_bytes, bytes, visit));
  if (bytes > 0) return {};
  return visit_lines(kernel::proc_path(task_with_memory(pid), "maps"), most_bytes, bytes, visit);
}

}  // namespace

// A process can have 65,530 mappings with paths of 4 KB each, of which the kernel makes 256 MB of text in seconds.
Status visit_mappings(uint32_t pid, const std::function<void(std::string_view line)>& visit) {
  uint64_t bytes = 0;
  return visit_maps(pid, kMaxTextBytes, bytes, [&](std::string_view line) {
    visit(line);
    return true;
  });
}

// Without those that are behind the largest text that is read.
Result<std::vector<Mapping>> read_mappings(uint32_t pid) {
  std::vector<Mapping> out;
  const Status status = visit_mappings(pid, [&](std::string_view line) { parse_mapping(line, out.emplace_back()); });
  if (!status && status.error().code != kRefusedFile) return tl::unexpected(status.error());
  return out;
}

Result<uint64_t> visit_mapped_code(uint32_t pid, uint64_t most_bytes,
                                   const std::function<bool(const Mapping& mapping)>& visit) {
  uint64_t bytes = 0;
  Mapping mapping;
  const Status status = visit_maps(pid, std::min(most_bytes, kMaxTextBytes), bytes, [&](std::string_view line) {
    parse_mapping(line, mapping);
    return !mapping.executable || mapping.inode == 0 || visit(mapping);
  });
  if (!status && status.error().code != kRefusedFile) return tl::unexpected(status.error());
  return bytes;
}

namespace {

// struct procmap_query of linux/fs.h, and its ioctl (kernel commit ed5d583a88a9).
struct MappingQuery {
  uint64_t struct_bytes = sizeof(MappingQuery);
  uint64_t wanted_flags = 0;
  uint64_t address = 0;
  uint64_t start = 0, end = 0;
  uint64_t flags = 0;
  uint64_t page_bytes = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  uint32_t device_major = 0, device_minor = 0;
  uint32_t name_bytes = 0;  // of the buffer, then of the name with its NUL
  uint32_t build_id_bytes = 0;
  uint64_t name = 0;  // the address of the buffer
  uint64_t build_id = 0;
};
constexpr unsigned long kQueryMapping = _IOWR('f', 17, MappingQuery);
constexpr uint64_t kExecutable = 4;

}  // namespace

Result<Mapping> query_mapped_code(uint32_t pid, uint64_t address) {
  const std::string path = kernel::proc_path(task_with_memory(pid), "maps");
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open " + path, errno);
  std::array<char, PATH_MAX + 16> name = {};
  MappingQuery query;
  query.wanted_flags = kExecutable;
  query.address = address;
  query.name_bytes = name.size();
  query.name = reinterpret_cast<uintptr_t>(name.data());
  if (::ioctl(fd.get(), kQueryMapping, &query) != 0) return fail_errno("cannot query " + path, errno);
  if (query.inode == 0) return fail_errno("cannot query " + path, ENOENT);
  Mapping out;
  out.start = query.start;
  out.end = query.end;
  out.executable = true;
  out.file_offset = query.file_offset;
  out.device = makedev(query.device_major, query.device_minor);
  out.inode = query.inode;
  set_path(std::string_view(name.data()), out);
  return out;
}

std::string map_files_path(uint32_t pid, uint64_t start, uint64_t end) {
  return kernel::proc_path(pid, fmt::format("map_files/{:x}-{:x}", start, end));
}

}  // namespace espy::symbols

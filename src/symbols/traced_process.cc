#include "symbols/traced_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/clock.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/processes.h"
#include "program/unwind_layout.h"

namespace espy::symbols {

std::optional<struct statx> status_of(const std::string& path) {
  struct statx status = {};
  constexpr int kFlags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
  if (::statx(AT_FDCWD, path.c_str(), kFlags, STATX_INO | STATX_UID, &status) != 0) return std::nullopt;
  return status;
}

bool LayeredDevices::has(uint32_t pid, uint64_t device) {
  constexpr size_t kMost = 10'000;
  if (device == 0 || major(device) != 0) return false;
  if (const auto known = is_layered_.find(device); known != is_layered_.end()) return known->second;
  if (is_layered_.size() > kMost) is_layered_.clear();
  read(pid);
  return is_layered_.try_emplace(device, false).first->second;
}

void LayeredDevices::read(uint32_t pid) {
  const Result<std::string> text = read_file(kernel::proc_path(pid, "mountinfo"));
  if (!text) return;
  for (const std::string_view line : split(*text, '\n'))
    if (const auto mount = parse_mount(line); mount && mount->type == "overlay") is_layered_[mount->device] = true;
}

std::shared_ptr<const CodeImage> CodeImages::share(const Mapping& mapping, uint32_t pid) {
  if (images_.size() >= next_purge_ || path_bytes_ >= next_purge_bytes_) purge();
  auto path = paths_.find(&mapping.path);
  if (path == paths_.end()) {
    path = paths_.insert(std::make_shared<const std::string>(mapping.path)).first;
    path_bytes_ += (*path)->capacity();
  }
  const bool is_layered = pid != 0 && layered_devices_.has(pid, mapping.device);
  return *images_
              .insert(std::make_shared<const CodeImage>(CodeImage{.size_bytes = mapping.end - mapping.start,
                                                                  .file_offset = mapping.file_offset,
                                                                  .device = mapping.device,
                                                                  .inode = mapping.inode,
                                                                  .shared_path = *path,
                                                                  .deleted = mapping.deleted,
                                                                  .is_layered = is_layered}))
              .first;
}

void CodeImages::purge() {
  std::erase_if(images_, [](const auto& image) { return image.use_count() == 1; });
  std::erase_if(paths_, [](const auto& path) { return path.use_count() == 1; });
  path_bytes_ = 0;
  for (const auto& path : paths_) path_bytes_ += path->capacity();
  next_purge_ = std::max(kFirstPurge, 2 * images_.size());
  next_purge_bytes_ = std::max(kFirstPurgeBytes, 2 * path_bytes_);
}

void AddressSpace::add(CodeMapping mapping) {
  code.insert(std::ranges::upper_bound(code, mapping.start, {}, &CodeMapping::start), std::move(mapping));
}

namespace {

constexpr std::string_view kVdso = "[vdso]";

// Overlayfs, which has no device of its own either, may show that of the layer below it.
bool is_device(uint64_t device) { return device != 0 && major(device) != 0; }

}  // namespace

uint8_t CodeMapping::tag() const {
  if (image->inode != 0) return program::file_code_tag(image->inode, image->file_offset - start);
  return image->path() == kVdso ? program::kVdsoCode : program::kAnonymousCode;
}

bool CodeMapping::has_certain_tag() const { return image->inode == 0 || is_device(image->device); }

// The path is as the reader sees it in /proc/PID/maps, and as the process sees it in an event.
bool is_same_code(const CodeMapping& a, const CodeMapping& b) {
  const CodeImage &x = *a.image, &y = *b.image;
  if (x.inode == 0 || y.inode == 0) return x.inode == y.inode && (x.path() == kVdso) == (y.path() == kVdso);
  if (x.file_offset - a.start != y.file_offset - b.start) return false;
  if (x.device == y.device) return x.inode == y.inode;
  const bool may_be_layered = x.is_layered || y.is_layered || is_device(x.device) != is_device(y.device);
  if (!may_be_layered && x.device != 0 && y.device != 0) return false;
  return x.shared_path == y.shared_path;
}

void keep_unmapped(Process& process, const AddressSpace& now) {
  constexpr size_t kMost = 256;
  for (const CodeMapping& code : process.space->code) {
    const auto has = [&](const CodeMapping& each) { return each.has(code.start) && is_same_code(each, code); };
    if (std::ranges::any_of(now.code, has) || std::ranges::any_of(process.unmapped, has)) continue;
    if (process.unmapped.size() >= kMost) process.unmapped.erase(process.unmapped.begin());
    process.unmapped.push_back(code);
  }
}

void replace_mapping(Process& process, const CodeMapping& code) {
  auto space = std::make_shared<AddressSpace>(*process.space);
  std::erase_if(space->code,
                [&](const CodeMapping& each) { return each.start < code.end() && code.start < each.end(); });
  space->add(code);
  keep_unmapped(process, *space);
  process.space = std::move(space);
}

CodeMapping* AddressSpace::find(uint64_t address) {
  const auto after = std::ranges::upper_bound(code, address, {}, &CodeMapping::start);
  if (after == code.begin()) return nullptr;
  CodeMapping& nearest = *(after - 1);
  return address < nearest.end() ? &nearest : nullptr;
}

void AddressSpace::adopt_files(const AddressSpace& older) {
  for (CodeMapping& mine : code) {
    const auto same = std::ranges::lower_bound(older.code, mine.start, {}, &CodeMapping::start);
    if (same == older.code.end() || same->start != mine.start) continue;
    const CodeImage& a = *mine.image;
    const CodeImage& b = *same->image;
    if (a.device != b.device || a.inode != b.inode || a.file_offset != b.file_offset) continue;
    mine.held = same->held;
    mine.file = same->file;
    mine.has_tried_open = same->file != nullptr;
  }
}

std::shared_ptr<AddressSpace> read_address_space(uint32_t pid, CodeImages& images, SkippedFiles& refused) {
  auto out = std::make_shared<AddressSpace>();
  bool has_mappings = false;
  const uint64_t seen_ns = clock_ns(CLOCK_REALTIME);
  Mapping mapping;  // one for all, as pieces of the heap between long paths could not be used for the next one
  const Status status = visit_mappings(pid, [&](std::string_view line) {
    has_mappings = true;
    parse_mapping(line, mapping);
    if (mapping.executable)
      out->code.push_back({.start = mapping.start, .image = images.share(mapping, pid), .seen_us = seen_ns / 1000});
  });
  if (!status) refused.add(status.error());
  if (!has_mappings) return nullptr;
  out->code.shrink_to_fit();
  return out;
}

uint32_t read_namespace_pid(uint32_t pid) {
  const auto ours = status_of("/proc/self/ns/pid");
  const auto theirs = status_of(kernel::proc_path(pid, "ns/pid"));
  if (!ours || !theirs || ours->stx_ino == theirs->stx_ino) return pid;
  const Result<std::string> status = read_file(kernel::proc_path(pid, "status"));
  if (!status) return pid;
  // "NSpid:\t1234\t7": the pid in each namespace, the innermost last.
  for (const std::string_view line : split(*status, '\n')) {
    if (!line.starts_with("NSpid:")) continue;
    return static_cast<uint32_t>(parse_int(split(line, '\t').back()).value_or(pid));
  }
  return pid;
}

// "PID (NAME) STATE ...": the name may contain anything, what follows are numbers, of which this is the 20th.
std::optional<uint64_t> read_start_time(uint32_t pid) {
  constexpr size_t kAt = 20;
  const Result<std::string> text = read_file(kernel::proc_path(pid, "stat"));
  const size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(name_end), ' ');
  const auto time = fields.size() > kAt ? parse_int(fields[kAt]) : std::nullopt;
  return time ? std::optional(static_cast<uint64_t>(*time)) : std::nullopt;
}

std::optional<std::pair<dev_t, ino_t>> read_executable(uint32_t pid) {
  const auto exe = status_of(kernel::proc_path(pid, "exe"));
  if (!exe) return std::nullopt;
  return std::pair{makedev(exe->stx_dev_major, exe->stx_dev_minor), ino_t{exe->stx_ino}};
}

namespace {

std::optional<uint32_t> read_user(uint32_t pid) {
  const Result<std::string> status = read_file(kernel::proc_path(pid, "status"));
  if (!status) return std::nullopt;
  // "Uid:\t1000\t1000\t1000\t1000": real, effective, saved, of file systems.
  for (const std::string_view line : split(*status, '\n')) {
    const auto fields = split(line, '\t');
    if (fields.size() < 3 || fields[0] != "Uid:") continue;
    const auto user = parse_int(fields[2]);
    return user ? std::optional(static_cast<uint32_t>(*user)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

// /proc/PID belongs to the effective user, or to root if the process must not be dumped (proc(5)).
std::optional<uint32_t> read_owner(uint32_t pid) {
  const auto status = status_of(kernel::proc_path(pid, ""));
  return status ? std::optional(uint32_t{status->stx_uid}) : std::nullopt;
}

std::string read_root(uint32_t pid) {
  const auto our_namespace = status_of("/proc/self/ns/mnt"), our_root = status_of("/");
  const auto their_namespace = status_of(kernel::proc_path(pid, "ns/mnt")),
             their_root = status_of(kernel::proc_path(pid, "root"));
  if (!our_namespace || !our_root || !their_namespace || !their_root) return "";
  const bool is_same = our_namespace->stx_ino == their_namespace->stx_ino &&
                       our_root->stx_dev_major == their_root->stx_dev_major &&
                       our_root->stx_dev_minor == their_root->stx_dev_minor && our_root->stx_ino == their_root->stx_ino;
  return is_same ? "" : kernel::proc_path(pid, "root");
}

std::string read_vdso_image() {
  const uint64_t start = ::getauxval(AT_SYSINFO_EHDR);
  const Result<std::vector<Mapping>> mappings = read_mappings(static_cast<uint32_t>(::getpid()));
  if (start == 0 || !mappings) return "";
  for (const Mapping& mapping : *mappings)
    if (mapping.start == start) return {reinterpret_cast<const char*>(start), mapping.end - mapping.start};
  return "";
}

std::shared_ptr<CachedFile> read_vdso() {
  Result<ElfFile> elf = ElfFile::from_image(read_vdso_image(), std::string(kVdso));
  auto out = std::make_shared<CachedFile>();
  if (elf) out->elf = std::make_shared<const ElfFile>(std::move(*elf));
  return out;
}

std::string perf_map_path(uint32_t pid) { return "/tmp/perf-" + std::to_string(pid) + ".map"; }

// Without descriptors, what was not read is not known to be refused either.
void SkippedFiles::add(const Error& error) {
  constexpr size_t kMost = 1000;
  const bool is_told = error.code == kRefusedFile || error.code == EMFILE || error.code == ENFILE;
  if (is_told && reasons.size() < kMost) reasons.insert(error.message);
}

namespace {

constexpr uint64_t kMaxPerfMapBytes = 128 << 20;

// A JIT in a container uses the pid of its namespace, also if its /tmp is a bind mount of the host's.
std::optional<OpenPerfMap> open_perf_map(Process& process, SkippedFiles& refused) {
  if (const auto user = read_user(process.pid)) process.user = user;
  const std::string inner = perf_map_path(process.namespace_pid), outer = perf_map_path(process.pid);
  for (const auto& [path, seen_as] : {std::pair{process.root + inner, inner}, std::pair{outer, outer}}) {
    auto file = open_untrusted(path, kMaxPerfMapBytes, process.user.value_or(0));
    if (file) return OpenPerfMap{std::move(*file), seen_as};
    refused.add(file.error());
  }
  return std::nullopt;
}

// What a JIT has written since it was held is read as well.
std::optional<OpenPerfMap> reopen(const OpenPerfMap& held) {
  auto file = open_untrusted(descriptor_path(held.file.fd), kMaxPerfMapBytes);
  if (!file) return std::nullopt;
  return OpenPerfMap{std::move(*file), held.path};
}

// Returns false if it is the one that is loaded.
bool load_perf_map(Process& process, const OpenPerfMap& opened) {
  constexpr int kLoadPauseFactor = 10;
  constexpr uint64_t kLargeBytes = 64 << 10;
  const UntrustedFile& file = opened.file;
  if (process.perf_map != nullptr && process.perf_map->identity == file.identity()) return false;
  const auto started = std::chrono::steady_clock::now();
  Result<PerfMap> map = PerfMap::read(file);
  if (!map) return false;
  process.perf_map.reset(new LoadedPerfMap{std::move(*map), opened.path, file.identity()});
  process.has_lost_perf_map = false;
  const auto ended = std::chrono::steady_clock::now();
  if (file.size_bytes >= kLargeBytes) process.next_map_load = ended + (ended - started) * kLoadPauseFactor;
  return true;
}

}  // namespace

// A JIT appends to its map as long as it runs, so the map is read whenever an address is not in it; a large one for a
// tenth of the time at most.
bool refresh_perf_map(Process& process, SkippedFiles& refused) {
  if (std::chrono::steady_clock::now() < process.next_map_load) return false;
  std::optional<OpenPerfMap> opened = open_perf_map(process, refused);
  if (!opened && process.held_perf_map != nullptr) opened = reopen(*process.held_perf_map);
  // Looked at last: the map was opened before.
  return opened && !is_another_process(process) && load_perf_map(process, *opened);
}

bool is_another_process(const Process& process) {
  if (process.has_successor || process.start_time == 0) return process.has_successor;
  return read_start_time(process.pid).value_or(process.start_time) != process.start_time;
}

bool keep_perf_map(Process& process, SkippedFiles& refused) {
  constexpr uint64_t kHeldBytes = 1 << 20;
  std::optional<OpenPerfMap> opened = open_perf_map(process, refused);
  if (!opened || is_another_process(process)) return false;
  if (opened->file.size_bytes < kHeldBytes) return load_perf_map(process, *opened);
  const bool is_first = process.held_perf_map == nullptr;
  process.held_perf_map.reset(new OpenPerfMap(std::move(*opened)));
  return is_first;
}

// ---- Parser of /proc/PID/maps (proc_pid_maps(5)).

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

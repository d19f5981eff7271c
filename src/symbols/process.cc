#include "symbols/process.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mounts.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/proc_path.h"
#include "program/unwind.h"

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
  constexpr int kPauseFactor = 10;
  constexpr uint64_t kLargeBytes = 64 << 10;
  const UntrustedFile& file = opened.file;
  if (process.perf_map != nullptr && process.perf_map->identity == file.identity()) return false;
  const auto started = std::chrono::steady_clock::now();
  Result<PerfMap> map = PerfMap::read(file);
  if (!map) return false;
  process.perf_map.reset(new LoadedPerfMap{std::move(*map), opened.path, file.identity()});
  process.has_lost_perf_map = false;
  const auto ended = std::chrono::steady_clock::now();
  if (file.size_bytes >= kLargeBytes) process.next_map_load = ended + (ended - started) * kPauseFactor;
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

}  // namespace espy::symbols

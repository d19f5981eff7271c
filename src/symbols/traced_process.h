// Snapshots of processes for the symbolization of their addresses. Internal to symbols/.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbols/elf_cache.h"
#include "symbols/perf_map.h"
#include "symbols/symbols.h"

namespace espy::symbols {

// What the mappings of one piece of code have in common, whichever process has mapped it and at which address.
struct CodeImage {
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  std::shared_ptr<const std::string> shared_path;  // not null; equal paths are one, so that pointers can be compared
  bool deleted = false;
  bool is_layered = false;  // on overlayfs, so that events may have the device and inode of the layer below it

  const std::string& path() const { return *shared_path; }
  bool is_file() const { return inode != 0 && path().starts_with('/'); }
  auto operator<=>(const CodeImage&) const = default;
};

// The devices of overlayfs among the devices without a disk, from /proc/PID/mountinfo.
class LayeredDevices {
 public:
  bool has(uint32_t pid, uint64_t device);

 private:
  void read(uint32_t pid);

  std::map<uint64_t, bool> is_layered_;
};

// All images in use, each once: thousands of short processes map the same few.
class CodeImages {
 public:
  // `pid`: whose mount namespace lists its device; 0: none has to.
  std::shared_ptr<const CodeImage> share(const Mapping& mapping, uint32_t pid = 0);
  // Drops unused ones.
  void purge();
  uint64_t path_bytes() const { return path_bytes_; }

 private:
  struct ByContent {
    using is_transparent = void;  // finds by a plain pointer
    bool operator()(const auto& a, const auto& b) const { return *a < *b; }
  };
  static constexpr size_t kFirstPurge = 1024;
  static constexpr uint64_t kFirstPurgeBytes = 16 << 20;

  LayeredDevices layered_devices_;
  std::set<std::shared_ptr<const std::string>, ByContent> paths_;
  std::set<std::shared_ptr<const CodeImage>, ByContent> images_;
  uint64_t path_bytes_ = 0;
  // At which number of images, or size of their paths, they are purged.
  size_t next_purge_ = kFirstPurge;
  uint64_t next_purge_bytes_ = kFirstPurgeBytes;
};

// An executable mapping and, after the first lookup in it, its ELF file.
struct CodeMapping {
  uint64_t start = 0;
  std::shared_ptr<const CodeImage> image;               // not null
  std::shared_ptr<const UntrustedFile> held = nullptr;  // a file that only the process leads to
  std::shared_ptr<CachedFile> file = nullptr;
  // In one word, because there can be millions.
  uint64_t seen_us : 56 = 0;  // see Mapping
  bool has_tried_open : 1 = false;
  bool is_not_held : 1 = false;  // though only the process leads to it: there were too many

  uint64_t end() const { return start + image->size_bytes; }
  bool has(uint64_t address) const { return start <= address && address < end(); }
  uint8_t tag() const;  // program::CodeTag of the code in it
  // Whether the kernel's programs have the number of its inode that procfs shows, so that another tag is of other code.
  // Not so on overlayfs, which has no device.
  bool has_certain_tag() const;
};

// Whether both map the same place of one file at each address of both, or both are of no file.
bool is_same_code(const CodeMapping& a, const CodeMapping& b);

// The executable mappings of a process, or of all processes of a program, sorted by address.
struct AddressSpace {
  std::vector<CodeMapping> code;

  // Inserts a mapping that overlaps none.
  void add(CodeMapping mapping);

  CodeMapping* find(uint64_t address);
  // Takes over the open files of the same mappings in `older`, since they may have been deleted.
  void adopt_files(const AddressSpace& older);
};

// A perf map, and its file when it was read.
struct LoadedPerfMap {
  PerfMap map;
  std::string path;  // as the process sees it
  FileIdentity identity;
};

// The file of one, and its path as the process sees it.
struct OpenPerfMap {
  UntrustedFile file;
  std::string path;
};

struct Process {
  uint32_t pid = 0;
  uint64_t used_at = 0;          // counts lookups
  uint32_t task = 0;             // see task_with_memory; 0 if its id is another process's now
  uint64_t start_time = 0;       // which distinguishes it from another process with its id; 0 if it is not known
  uint64_t seen_ns = 0;          // when the snapshot was taken, in CLOCK_MONOTONIC
  bool has_successor = false;    // a fork event shows that another process has the id
  uint32_t namespace_pid = 0;    // in its own pid namespace, as in the names of files it writes
  std::optional<uint32_t> user;  // effective user id; nullopt if the process had ended
  std::string root;              // prefix that makes its paths valid for the tracer: "", or "/proc/PID/root"
  bool is_root_known = true;     // false for a process that has ended, and all that it was started by
  std::shared_ptr<AddressSpace> space;
  std::vector<std::shared_ptr<AddressSpace>> earlier_spaces;  // of other programs that it has executed, oldest first
  std::vector<CodeMapping> unmapped;                          // since earlier snapshots of the program, oldest first
  std::optional<std::pair<dev_t, ino_t>> executable;
  std::chrono::steady_clock::time_point executable_read_at = {};
  std::unique_ptr<LoadedPerfMap> perf_map;
  std::unique_ptr<const OpenPerfMap> held_perf_map;  // that only the process leads to
  bool has_searched_perf_map = false;
  bool has_searched_at_end = false;                          // for the map, after the end of the run was requested
  bool has_lost_perf_map = false;                            // for its size
  std::chrono::steady_clock::time_point next_map_load = {};  // the earliest: limits the time spent on a map that grows
  std::chrono::steady_clock::time_point next_map_search = {};  // the earliest, after one without success
  std::chrono::steady_clock::time_point next_refresh = {};     // the earliest, after one without success
};

// Returns the device, inode and owner of what a path leads to; nullopt with errno if there is none. Asks no file
// server: /proc/PID/exe may be in a file system of FUSE whose user never answers.
std::optional<struct statx> status_of(const std::string& path);

// null if the process has exited, is a kernel thread, or must not be read. `refused` receives a sentence if there is
// more than is read.
std::shared_ptr<AddressSpace> read_address_space(uint32_t pid, CodeImages& images, SkippedFiles& refused);
// Returns the pid in the innermost pid namespace of the process.
uint32_t read_namespace_pid(uint32_t pid);
// Returns the effective user id of a process; root's if it cannot be known.
std::optional<uint32_t> read_owner(uint32_t pid);
// Returns "/proc/PID/root" for a process in another mount namespace or a chroot, otherwise "".
std::string read_root(uint32_t pid);
// Returns when a process was started, in ticks of the kernel; nullopt if it has ended.
std::optional<uint64_t> read_start_time(uint32_t pid);
// Returns the device and inode of the executable of a process.
std::optional<std::pair<dev_t, ino_t>> read_executable(uint32_t pid);

// Returns the ELF image of the vdso, copied from the own process; "" if there is none.
std::string read_vdso_image();
// The same, read; without a file if there is none.
std::shared_ptr<CachedFile> read_vdso();

// Returns the path of the perf map of a process, in its own view; `pid`: in its own pid namespace.
std::string perf_map_path(uint32_t pid);

// Calls `visit` with each line of /proc/PID/maps; fails at the size of a text that is refused (base/untrusted_file.h).
Status visit_mappings(uint32_t pid, const std::function<void(std::string_view line)>& visit);
void parse_mapping(std::string_view line, Mapping& out);
// Takes from the path of a mapping what an event adds to it.
void take_event_path(Mapping& mapping);

// Keeps the mappings that the process has no more, or of which `now` has other code at their start.
void keep_unmapped(Process& process, const AddressSpace& now);

// Replaces overlapping mappings by a mapping, and keeps them as unmapped. Changes a copy: other processes of the
// program may share the address space and have other mappings.
void replace_mapping(Process& process, const CodeMapping& code);

// Returns whether the id is another process's now, as far as that can be seen: not if both have ended.
bool is_another_process(const Process& process);

// Loads the perf map of the process, or reloads it if its file has changed. Returns whether it was loaded. As in perf,
// the file must belong to root or to the user of the process: another user could give false names. It must be no link:
// the user could make espy show what a file of root contains. `refused` receives the reason if a file that exists is
// not read.
bool refresh_perf_map(Process& process, SkippedFiles& refused);
// Makes sure that the perf map can be read after the end of the process: loads it, or, if it is large, only holds it.
// Returns whether it did.
bool keep_perf_map(Process& process, SkippedFiles& refused);

}  // namespace espy::symbols

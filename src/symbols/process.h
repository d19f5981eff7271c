// What is taken down of a process while it runs, to name its addresses later. Inside this room only.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbols/perf_map.h"
#include "symbols/symbols.h"

namespace espy::symbols {

// An executable mapping and, once somebody asked, the ELF file behind it.
struct CodeMapping {
  Mapping mapping;
  bool tried = false;
  std::shared_ptr<const ElfFile> elf = nullptr;
};

// The executable mappings of one process, or of all processes of a program, by address.
struct AddressSpace {
  std::vector<CodeMapping> code;

  CodeMapping* find(uint64_t address);
  // Keeps the files that `older` had open for the same mappings: they may be deleted by now.
  void adopt_files(const AddressSpace& older);
};

// A perf map as it was when its file had this identity.
struct LoadedPerfMap {
  std::unique_ptr<PerfMap> map;
  std::string path;  // as the process sees it
  std::array<uint64_t, 4> identity = {};
};

struct Process {
  uint32_t pid = 0;
  uint32_t inner_pid = 0;  // in its own pid namespace: the one in the names of the files it writes
  std::string root;        // goes in front of its paths to make them ours: "", or "/proc/PID/root" while it lives
  std::shared_ptr<AddressSpace> space;
  std::optional<std::pair<dev_t, ino_t>> program;
  std::chrono::steady_clock::time_point program_read_at = {};
  LoadedPerfMap perf_map;
  bool looked_for_map = false;
  std::chrono::steady_clock::time_point next_refresh = {};  // not before, after a refresh that did not help
};

// Nothing where the process is gone, a zombie, a kernel thread or not ours to see.
std::shared_ptr<AddressSpace> read_address_space(uint32_t pid);
uint32_t read_inner_pid(uint32_t pid);
// "/proc/PID/root" for a process in another mount namespace or behind a chroot, "" for one that sees the files we see.
std::string read_root(uint32_t pid);
// Device and inode of the program that a process runs.
std::optional<std::pair<dev_t, ino_t>> read_program(uint32_t pid);

// The code that the kernel maps into every process, which is in ours too: an ELF file. "" if there is none.
std::string read_vdso_image();

// Loads the process' perf map, or loads it again if its file has changed. Says whether there is something new.
bool refresh_perf_map(Process& process);

}  // namespace espy::symbols

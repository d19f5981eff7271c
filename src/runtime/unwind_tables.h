// The tables by which programs unwind user stacks: made of files here, searched in BPF (program/unwind.h).
//
// In go files and processes that a stack may lead into, and, from the programs, the files that one did. Out come cells
// in the array that they search. A file is read once; what cannot be read is left to frame pointers. Reading takes a
// millisecond for a C library, so nothing is read that no one will need soon.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "load/machine.h"
#include "program/program.h"
#include "program/unwind.h"
#include "symbols/unwind.h"

namespace espy::runtime {

class UnwindTables {
 public:
  UnwindTables(load::Machine& machine, const program::Program& program) : machine_(machine), program_(program) {}

  bool are_wanted() const { return program_.unwinding.files.valid(); }
  void begin();  // from now on programs unwind
  // A program or library, by its path or name, and all libraries that it will load at its start.
  void add_program(const std::string& name);
  // What a process has mapped, until that has taken too long.
  void add_process(uint32_t pid);
  // A program was led to `pc` of a process, in a file of which there is no table; and to the process' others, likely.
  void add_missing(uint32_t pid, uint64_t pc, const program::UnwindFileKey& file);

  // Where a file is, if it can be opened by that name in our own mount namespace; "[vdso]".
  std::optional<std::string> path_of(const program::UnwindFileKey& key) const;

  uint64_t refused_files() const { return refused_files_; }  // for which there was no room

 private:
  void add_file(const std::string& path, const std::string& shown_path);
  bool knows(const program::UnwindFileKey& key) const { return known_.contains(key); }
  void publish(const program::UnwindFileKey& key, const std::vector<symbols::UnwindRow>& rows, std::string path);

  load::Machine& machine_;
  const program::Program& program_;
  std::map<program::UnwindFileKey, std::string> known_;  // and their paths
  size_t used_cells_ = 1;                                // the first says that programs may begin
  uint64_t refused_files_ = 0;
};

}  // namespace espy::runtime

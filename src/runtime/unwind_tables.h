// UnwindTables: the unwind tables of user stacks, built from .eh_frame here, searched in BPF (program/unwind.h).
//
// In: files and processes whose stacks are expected, and the files that programs report as missing. Out: cells in the
// array that the programs search. Each file is read once; for files that cannot be read the programs follow frame
// pointers. Reading takes a millisecond for a C library, so only what is needed soon is read.
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
  void begin();  // adds the vDSO and lets the programs use the tables
  // Adds a program or library, by path or name, and the libraries that it is linked with.
  void add_program(const std::string& name);
  // Adds the files that a process has mapped, for at most 100 ms.
  void add_process(uint32_t pid);
  // Adds the file of `pc`, which a program has reported as missing, then the other files of the process.
  void add_missing(uint32_t pid, uint64_t pc, const program::UnwindFileKey& file);

  // Returns a file's path, or "[vdso]"; nullopt if it is not known or not that file in our mount namespace.
  std::optional<std::string> path_of(const program::UnwindFileKey& key) const;

  uint64_t refused_files() const { return refused_files_; }  // those that did not fit the tables

 private:
  void add_file(const std::string& path, const std::string& shown_path);
  bool knows(const program::UnwindFileKey& key) const { return known_.contains(key); }
  void publish(const program::UnwindFileKey& key, const std::vector<symbols::UnwindRow>& rows, std::string path);

  load::Machine& machine_;
  const program::Program& program_;
  std::map<program::UnwindFileKey, std::string> known_;  // and their paths
  size_t used_cells_ = 1;                                // cell 0: programs may use the tables
  uint64_t refused_files_ = 0;
};

}  // namespace espy::runtime

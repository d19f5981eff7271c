// User stacks by unwind tables: the memory of the tables, the tables, and the stacks that programs have unwound.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/untrusted_file.h"
#include "load/machine.h"
#include "program/program.h"
#include "program/unwind_layout.h"
#include "runtime/process_watch.h"
#include "symbols/symbols.h"
#include "symbols/unwind.h"
#include "types/type.h"

namespace espy::runtime {

// ---- UnwindCells: the memory of the unwind tables that programs search (program/unwind_layout.h): cells in chunks,
// which are added as tables need them.

class UnwindCells {
 public:
  // Adds `count` chunks, from the index `first` on; returns their memory.
  using AddChunks = std::function<Result<std::vector<std::span<std::byte>>>(uint32_t first, uint32_t count)>;
  // `first`: the memory of the first chunk, which may exceed it. `chunk_cells`: a power of two.
  UnwindCells(std::span<std::byte> first, uint32_t chunk_cells, uint32_t max_chunks, AddChunks add_chunks);

  // Lets the programs search the tables.
  void set_ready();

  // Appends a table. `rows` are sorted and not empty. Fails if it does not fit the largest size, or the kernel refuses
  // memory.
  Result<program::UnwindFile> append(const std::vector<symbols::UnwindRow>& rows);
  // True if a table of so many rows fits without another chunk, and leaves a quarter of the first one to others.
  bool has_room_ahead(size_t row_count) const;

  // Returns the number of cells that would have been enough for all tables.
  uint64_t needed() const { return used_ + refused_; }

 private:
  Status grow(uint64_t cells);
  void write(uint64_t first_cell, std::span<const uint64_t> cells);

  uint32_t chunk_cells_;
  uint32_t max_chunks_;
  AddChunks add_chunks_;
  std::vector<std::span<std::byte>> chunks_;
  uint64_t used_ = 1;  // cell 0 says whether the tables are ready
  uint64_t refused_ = 0;
};

// ---- UnwindTables: the unwind tables of user stacks, built from .eh_frame here, searched in BPF
// (program/unwind_layout.h).
//
// In: files and processes whose stacks are expected, and the files that programs report as missing. Out: tables in the
// cells that the programs search. Each file is read once; for files that cannot be read the programs follow frame
// pointers. Reading takes a millisecond for a C library. Files that wait are read between records.
//
// Every user may report a file as missing, and change what a path or an address leads to at any time. A table is
// therefore published under the key of the opened file that it was read from, which the kernel gives (FileKeys).

class UnwindTables {
 public:
  UnwindTables(load::Machine& machine, const program::Program& program)
      : machine_(machine), program_(program), keys_(machine, program) {}

  // Calls `done` after each file that was read: a table can take longer than other work may wait.
  void on_read(std::function<void()> done) { on_read_ = std::move(done); }

  bool are_wanted() const { return program_.unwinding.files.valid(); }
  void begin();  // adds the vDSO and lets the programs use the tables. Call it before the following.
  // Adds a program or library, by path or name, and the libraries that it is linked with.
  void add_program(const std::string& name);
  // Adds the files that a process has mapped: reads them for 100 ms on the CPU, the others wait.
  void add_process(uint32_t pid);
  // Adds the files of the running processes, the busiest first, as far as they fit the first chunk of cells. Reads them
  // for 5 ms on the CPU; the others wait.
  void add_running_processes();
  // Adds the file of `pc`, which a program has reported as missing, then the other files of the process. False if the
  // process does not have this file mapped there any more.
  bool add_missing(uint32_t pid, uint64_t pc, const program::UnwindFileKey& key);
  // The same for a file that such a process had mapped, if `path` is still that file.
  void add_missing(const std::string& path, const program::UnwindFileKey& key);
  // Reads files that wait for about 2 ms. False if none is left.
  bool read_ahead();

  // Returns a file's path, or "[vdso]"; nullopt if it is not known or not that file in our mount namespace.
  std::optional<std::string> path_of(const program::UnwindFileKey& key) const;

  uint64_t refused_files() const { return refused_files_; }  // files without room
  // Returns the number of rows with which all would have found room.
  uint64_t needed_rows() const { return cells_ ? cells_->needed() : 0; }

 private:
  // kLikely: on a guess, as far as it takes no further memory.
  enum class Need : uint8_t { kCertain, kLikely };
  struct WaitingFile {
    uint32_t task = 0;
    symbols::Mapping mapping;
    Need need = Need::kCertain;
    uint64_t size_bytes() const { return sizeof(*this) + mapping.path.size(); }
  };

  struct KnownFile {
    std::string path;  // "": not kept
    FileIdentity identity;
  };

  static std::string mapped_path(const std::string& path);
  static bool is_large(const std::string& path);
  void queue_process(uint32_t pid, Need need);
  // Reads the mappings of a process as far as the limits allow.
  void visit_code(uint32_t pid, const std::function<bool(const symbols::Mapping& mapping)>& visit);
  // Returns the executable mapping of a file that contains the address.
  std::optional<symbols::Mapping> find_code(uint32_t pid, uint64_t pc);
  bool read_next();
  // Reads files that wait, until `is_late` returns true. False if none is left.
  bool read_until(const std::function<bool()>& is_late);
  void add_file(const std::string& path, const std::string& shown_path, Need need);
  // Adds the file, if it has the key `wanted`. False if it has not, or cannot be read.
  bool read(const std::string& path, const std::string& shown_path, Need need,
            const std::optional<program::UnwindFileKey>& wanted = {});
  bool knows(const program::UnwindFileKey& key) const { return known_.contains(key); }
  void publish(const program::UnwindFileKey& key, const std::vector<symbols::UnwindRow>& rows, KnownFile file);

  load::Machine& machine_;
  const program::Program& program_;
  FileKeys keys_;
  std::function<void()> on_read_ = [] {};
  std::optional<UnwindCells> cells_;
  std::map<program::UnwindFileKey, KnownFile> known_;
  std::set<FileIdentity> seen_;  // of files that are known, to spare opening them again
  // Files that wait, and processes whose files wait; large files of these come last.
  std::deque<WaitingFile> files_;
  std::deque<uint32_t> processes_;
  std::deque<WaitingFile> large_files_;
  uint64_t waiting_bytes_ = 0;    // of these files
  uint64_t long_path_bytes_ = 0;  // of the files in known_
  uint64_t long_text_bytes_ = 0;  // of processes, beyond the part that is read of each in any case
  std::chrono::steady_clock::time_point long_text_counted_at_ = std::chrono::steady_clock::now();
  uint64_t refused_files_ = 0;
};

// ---- UnwoundStacks: the user stacks that programs have unwound (program/unwind_layout.h). Reads them, and removes
// stacks without a reference, so that a script that clears its maps sees any number of stacks in a run.
//
// A stack is removed when no map of the script has its key and no program has captured it for an epoch. An epoch is
// longer than a program runs, and ends only when all records from its beginning were handled. A program may still
// capture it between the look at its epoch and its removal. Therefore the removed stacks are kept until the next time,
// and put back if a map has them then.

class UnwoundStacks {
 public:
  // The arguments must outlive the object.
  UnwoundStacks(load::Machine& machine, const program::Program& program, const types::Types& types);

  // Returns the addresses of a stack, innermost first; none if it is not known.
  std::vector<uint64_t> addresses(types::TypeId type, uint64_t key) const;

  // Removes stacks if a map of them is at least half full. Call it only when all records that were there at the last
  // call have been handled. `now_ns`: of any clock.
  Status collect(uint64_t now_ns);

 private:
  using Keys = std::set<uint64_t>;
  struct Kind {
    const program::Program::UnwoundStacks* maps = nullptr;
    uint64_t removed_count = 0;
    std::unordered_map<uint64_t, std::vector<std::byte>> removed;  // at the last time: values, without unused addresses
  };

  bool is_crowded(const Kind& kind) const;
  std::byte* global(uint32_t offset_bytes) const;
  // Returns the keys that the script's maps have, for each of `kinds_`.
  Result<std::vector<Keys>> keys_in_use() const;
  Status restore(Kind& kind, const Keys& in_use);
  Result<size_t> remove(Kind& kind, const Keys& in_use, uint32_t epoch);

  load::Machine& machine_;
  const program::Program& program_;
  const types::Types& types_;
  std::vector<Kind> kinds_;
  std::vector<program::ScriptMapId> maps_;  // maps that have stacks
  bool can_read_all_ = true;                // `maps_`, and there are no records that wait in the kernel
  uint64_t next_ns_ = 0;
  uint64_t interval_ns_;
};

}  // namespace espy::runtime

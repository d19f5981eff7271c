#include "runtime/unwind_tables.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "kernel/proc_path.h"
#include "symbols/needed.h"
#include "symbols/symbols.h"

namespace espy::runtime {

namespace {

using program::UnwindFileKey;
using symbols::Mapping;

constexpr auto kLongest = std::chrono::milliseconds(100);  // that the event loop may be blocked by one process

// nullopt if it is not a regular file.
std::optional<UnwindFileKey> key_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return UnwindFileKey{static_cast<uint64_t>(status.st_size), static_cast<uint32_t>(status.st_ino)};
}

// The path as /proc/PID/maps has it: absolute, without symbolic links. A path through /proc/PID/root stays, since that
// link leads to another file for realpath(3).
std::string mapped_path(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  return !error && key_of(real) == key_of(path) ? real : path;
}

// Names for the mapped file of a process (see task_with_memory), also if it was deleted or is in another mount
// namespace.
std::vector<std::string> paths_of(uint32_t task, const Mapping& mapping) {
  return {symbols::map_files_path(task, mapping.start, mapping.end), kernel::proc_path(task, "root") + mapping.path};
}

// A table: a cell for each page, then one for each row. `first_cell`: its index in the array.
std::vector<uint64_t> make_cells(const std::vector<symbols::UnwindRow>& rows, uint32_t first_page, uint32_t page_count,
                                 uint32_t first_cell) {
  std::vector<uint64_t> cells;
  cells.reserve(page_count + rows.size());
  const uint32_t first_row = first_cell + page_count;
  // A page's first row is the last one that does not start after the page does.
  size_t row = 0;
  const auto last_row_at = [&](uint64_t offset) {
    while (row + 1 < rows.size() && rows[row + 1].file_offset <= offset) ++row;
    return first_row + static_cast<uint32_t>(row);
  };
  for (uint64_t page = first_page; page < uint64_t{first_page} + page_count; ++page) {
    const uint32_t low = last_row_at(page << program::kUnwindPageShift);
    const uint32_t high = last_row_at(((page + 1) << program::kUnwindPageShift) - 1);
    cells.push_back(program::unwind_page_cell(low, high));
  }
  for (const symbols::UnwindRow& each : rows)
    cells.push_back(program::unwind_row_cell(each.file_offset, each.rule.bits));
  return cells;
}

}  // namespace

void UnwindTables::begin() {
  if (const auto rows = symbols::read_vdso_unwind_rows(*program_.arch)) publish(program::kUnwindVdso, *rows, "[vdso]");
  const std::span<std::byte> cells = machine_.memory(program_.unwinding.cells);
  const uint64_t one = 1;
  std::memcpy(cells.data(), &one, sizeof(one));
}

void UnwindTables::publish(const UnwindFileKey& key, const std::vector<symbols::UnwindRow>& rows, std::string path) {
  known_.emplace(key, std::move(path));
  const std::span<std::byte> memory = machine_.memory(program_.unwinding.cells);
  const size_t capacity = memory.size() / sizeof(uint64_t);
  program::UnwindFile file;
  if (!rows.empty()) {
    file.first_page = rows.front().file_offset >> program::kUnwindPageShift;
    file.page_count = (rows.back().file_offset >> program::kUnwindPageShift) - file.first_page + 1;
    if (used_cells_ + file.page_count + rows.size() <= capacity) {
      file.has_table = 1;
      file.first_cell = static_cast<uint32_t>(used_cells_);
      const auto cells = make_cells(rows, file.first_page, file.page_count, file.first_cell);
      std::memcpy(memory.data() + used_cells_ * sizeof(uint64_t), cells.data(), cells.size() * sizeof(uint64_t));
      used_cells_ += cells.size();
    } else {
      ++refused_files_;
    }
  }
  // The system call orders the cells before the entry that refers to them.
  if (!machine_.update(program_.unwinding.files, std::as_bytes(std::span(&key, 1)), std::as_bytes(std::span(&file, 1))))
    ++refused_files_;
}

void UnwindTables::add_file(const std::string& path, const std::string& shown_path) {
  const auto key = key_of(path);
  if (!key || knows(*key)) return;
  if (const auto rows = symbols::read_unwind_rows(path, *program_.arch)) publish(*key, *rows, shown_path);
}

std::optional<std::string> UnwindTables::path_of(const UnwindFileKey& key) const {
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  if (key != program::kUnwindVdso && key_of(known->second) != key) return std::nullopt;
  return known->second;
}

void UnwindTables::add_program(const std::string& name) {
  const auto path = symbols::resolve_library(name, std::nullopt, *program_.arch);
  if (!path) return;
  for (const std::string& file : symbols::needed_files(*path)) add_file(file, mapped_path(file));
}

void UnwindTables::add_process(uint32_t pid) {
  const auto mappings = symbols::read_mappings(pid);
  const uint32_t task = symbols::task_with_memory(pid);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  if (!mappings) return;
  for (const Mapping& mapping : *mappings) {
    if (!mapping.executable || mapping.inode == 0) continue;
    if (std::chrono::steady_clock::now() > deadline) return;
    for (const std::string& path : paths_of(task, mapping)) add_file(path, mapping.path);
  }
}

void UnwindTables::add_missing(uint32_t pid, uint64_t pc, const UnwindFileKey& file) {
  if (knows(file)) return;
  const auto mappings = symbols::read_mappings(pid);
  if (!mappings) return;  // the process has ended
  const auto mapping = std::ranges::find_if(
      *mappings, [&](const Mapping& each) { return each.start <= pc && pc < each.end && each.executable; });
  if (mapping == mappings->end()) return;
  for (const std::string& path : paths_of(symbols::task_with_memory(pid), *mapping)) {
    const auto rows = symbols::read_unwind_rows(path, *program_.arch);
    // By the key that the program reported, which may differ from that of stat(2).
    if (rows && !knows(file)) publish(file, *rows, mapping->path);
  }
  add_process(pid);
}

}  // namespace espy::runtime

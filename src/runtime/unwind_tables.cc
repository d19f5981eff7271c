#include "runtime/unwind_tables.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/untrusted_file.h"
#include "kernel/processes.h"
#include "output/decode.h"
#include "program/layout.h"
#include "runtime/record_decoder.h"
#include "symbols/library.h"
#include "symbols/symbols.h"

namespace espy::runtime {

namespace {

// Returns the cells of a table: one for each page, then one for each row. `file`: its pages, and the index of its first
// cell. Neighbouring pages share a row; it is repeated where the rows of the second one start in another chunk.
std::vector<uint64_t> make_cells(const std::vector<symbols::UnwindRow>& rows, const program::UnwindFile& file,
                                 uint64_t chunk_cells) {
  std::vector<uint64_t> cells(file.page_count);
  cells.reserve(file.page_count + rows.size());
  // The first row of a page is the last one that does not start after the page does.
  size_t row = 0;
  const auto last_row_at = [&](uint64_t offset) {
    while (row + 1 < rows.size() && rows[row + 1].file_offset <= offset) ++row;
    return row;
  };
  size_t written = 0;  // rows before this one have their cells
  for (uint64_t page = 0; page < file.page_count; ++page) {
    const uint64_t begin = (file.first_page + page) << program::kUnwindPageShift;
    const size_t first = last_row_at(begin), last = last_row_at(begin + (1 << program::kUnwindPageShift) - 1);
    uint64_t at = file.first_cell + cells.size() - (written - first);  // of the row `first`
    if (at / chunk_cells != (at + last - first) / chunk_cells) {
      at = (at / chunk_cells + 1) * chunk_cells;
      cells.resize(at - file.first_cell);
      written = first;
    }
    for (; written <= last; ++written)
      cells.push_back(program::unwind_row_cell(rows[written].file_offset, rows[written].rule.bits));
    cells[page] = program::unwind_page_cell(static_cast<uint32_t>(at), static_cast<uint32_t>(at + last - first));
  }
  return cells;
}

}  // namespace

UnwindCells::UnwindCells(std::span<std::byte> first, uint32_t chunk_cells, uint32_t max_chunks, AddChunks add_chunks)
    : chunk_cells_(chunk_cells), max_chunks_(max_chunks), add_chunks_(std::move(add_chunks)), chunks_{first} {}

void UnwindCells::set_ready() { write(0, std::array{uint64_t{1}}); }

Result<program::UnwindFile> UnwindCells::append(const std::vector<symbols::UnwindRow>& rows) {
  program::UnwindFile file;
  file.has_table = 1;
  file.first_cell = static_cast<uint32_t>(used_);
  file.first_page = rows.front().file_offset >> program::kUnwindPageShift;
  file.page_count = (rows.back().file_offset >> program::kUnwindPageShift) - file.first_page + 1;
  const std::vector<uint64_t> cells = make_cells(rows, file, chunk_cells_);
  if (Status done = grow(used_ + cells.size()); !done) {
    refused_ += cells.size();
    return tl::unexpected<Error>(std::move(done).error());
  }
  write(used_, cells);
  used_ += cells.size();
  return file;
}

bool UnwindCells::has_room_ahead(size_t row_count) const { return used_ + row_count <= uint64_t{chunk_cells_} / 4 * 3; }

Status UnwindCells::grow(uint64_t cells) {
  const uint64_t count = (cells + chunk_cells_ - 1) / chunk_cells_;
  if (count <= chunks_.size()) return {};
  if (count > max_chunks_) return fail("the tables have their largest size");
  const auto first = static_cast<uint32_t>(chunks_.size());
  const auto added = TRY(add_chunks_(first, static_cast<uint32_t>(count) - first));
  chunks_.insert(chunks_.end(), added.begin(), added.end());
  return {};
}

void UnwindCells::write(uint64_t first_cell, std::span<const uint64_t> cells) {
  while (!cells.empty()) {
    const uint64_t at = first_cell % chunk_cells_;
    const auto part = cells.first(std::min<uint64_t>(cells.size(), chunk_cells_ - at));
    std::memcpy(chunks_[first_cell / chunk_cells_].data() + at * sizeof(uint64_t), part.data(), part.size_bytes());
    cells = cells.subspan(part.size());
    first_cell += part.size();
  }
}

namespace {

using program::UnwindFileKey;
using symbols::Mapping;
using Clock = std::chrono::steady_clock;

// For how long files are read while nothing else is done: a time on the CPU, as the machine may be busy, and five times
// that if it is busy or the files come from a slow disk.
class ReadingTime {
 public:
  explicit ReadingTime(std::chrono::milliseconds cpu)
      : cpu_end_(thread_cpu_time() + cpu), end_(Clock::now() + cpu * 5) {}
  bool is_over() const { return thread_cpu_time() >= cpu_end_ || Clock::now() >= end_; }

 private:
  std::chrono::nanoseconds cpu_end_;
  Clock::time_point end_;
};

constexpr auto kOfProcess = std::chrono::milliseconds(100);  // for the files of one process
constexpr auto kOfRunning = std::chrono::milliseconds(5);    // for those of all that run, before tracing begins
constexpr auto kAhead = std::chrono::milliseconds(2);        // between records

// A process can map one file, or thousands, 65,530 times, with paths of 4 KB: its text takes the kernel a second. What
// is left out has a table once a program reports it as missing, before Linux 6.11 if it is within these limits then.
constexpr uint64_t kMostTextBytes = 16 << 20;     // of a process: 100,000 mappings of a data base
constexpr uint64_t kAnyTextBytes = 1 << 20;       // of any process,
constexpr uint64_t kLongTextBytes = 256 << 20;    // and beyond it of all together,
constexpr uint64_t kLongTextPerSecond = 4 << 20;  // which is forgotten with time
constexpr uint64_t kProcessFileBytes = 1 << 20;   // the files of a process that wait,
constexpr uint64_t kWaitingFileBytes = 16 << 20;  // of all processes
constexpr uint64_t kLongPathBytes = 256;          // of files that are known: such paths
constexpr uint64_t kMostLongPathBytes = 8 << 20;  // all together

// Names for the mapped file of a process (see task_with_memory), also if it was deleted or is in another mount
// namespace.
std::vector<std::string> paths_of(uint32_t task, const Mapping& mapping) {
  return {symbols::map_files_path(task, mapping.start, mapping.end), kernel::proc_path(task, "root") + mapping.path};
}

}  // namespace

// The path as /proc/PID/maps has it: absolute, without symbolic links. A path through /proc/PID/root stays, since that
// link leads to another file for realpath(3).
std::string UnwindTables::mapped_path(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  return !error && identity_of(real) == identity_of(path) ? real : path;
}

// True for a file whose table takes as long as those of many others.
bool UnwindTables::is_large(const std::string& path) {
  constexpr uint64_t kLargeBytes = 8 << 20;
  const auto identity = identity_of(path);
  return identity && identity->size_bytes > kLargeBytes;
}

void UnwindTables::begin() {
  const auto& maps = program_.unwinding;
  cells_.emplace(
      machine_.memory(maps.cells), static_cast<uint32_t>(program_.maps[maps.cells].value_size / sizeof(uint64_t)),
      program_.maps[maps.more_cells].max_entries,
      [this, &maps](uint32_t first, uint32_t count) { return machine_.add_arrays(maps.more_cells, first, count); });
  if (const auto rows = symbols::read_vdso_unwind_rows(*program_.arch))
    publish(program::kUnwindVdso, *rows, {"[vdso]", {}});
  cells_->set_ready();
}

void UnwindTables::publish(const UnwindFileKey& key, const std::vector<symbols::UnwindRow>& rows, KnownFile known) {
  if (known.path.size() > kLongPathBytes) {
    if (long_path_bytes_ + known.path.size() > kMostLongPathBytes) known.path.clear();
    long_path_bytes_ += known.path.size();
  }
  known_.emplace(key, std::move(known));
  program::UnwindFile file;
  bool is_refused = false;
  if (!rows.empty()) {
    const auto table = cells_->append(rows);
    is_refused = !table;
    file = table.value_or(program::UnwindFile());
  }
  // The system call orders the cells before the entry that refers to them.
  if (!machine_.update(program_.unwinding.files, std::as_bytes(std::span(&key, 1)), std::as_bytes(std::span(&file, 1))))
    is_refused = true;
  if (is_refused) ++refused_files_;
}

bool UnwindTables::read(const std::string& path, const std::string& shown_path, Need need,
                        const std::optional<UnwindFileKey>& wanted) {
  constexpr size_t kMostSeen = 65536;
  const auto file = open_untrusted(path, UINT64_MAX);
  const auto key = file ? keys_.key_of(*file) : std::nullopt;
  if (!key || (wanted && *wanted != *key)) return false;
  const FileIdentity identity = file->identity();
  if (!knows(*key)) {
    const auto rows = symbols::read_unwind_rows(descriptor_path(file->fd), *program_.arch);
    const bool is_refused = !rows && rows.error().code == kRefusedFile;
    if (!rows && rows.error().code != 0 && !is_refused) return false;
    if (need == Need::kLikely && rows && !cells_->has_room_ahead(rows->size())) return false;
    if (keys_.key_now(*file) != key) return false;
    // One that is not an ELF file of this CPU, such as the memory of a JIT compiler, or is refused, has an empty table.
    static const std::vector<symbols::UnwindRow> kNone;
    publish(*key, rows ? *rows : kNone, {shown_path, identity});
    on_read_();
  }
  if (seen_.size() >= kMostSeen) seen_.clear();
  seen_.insert(identity);
  return true;
}

void UnwindTables::add_file(const std::string& path, const std::string& shown_path, Need need) {
  constexpr uint64_t kBytesPerRow = 64;  // of a file, about
  const auto identity = identity_of(path);
  if (!identity || seen_.contains(*identity)) return;
  if (need == Need::kLikely && !cells_->has_room_ahead(identity->size_bytes / kBytesPerRow)) return;
  read(path, shown_path, need);
}

std::optional<std::string> UnwindTables::path_of(const UnwindFileKey& key) const {
  const auto known = known_.find(key);
  if (known == known_.end() || known->second.path.empty()) return std::nullopt;
  if (key != program::kUnwindVdso && identity_of(known->second.path) != known->second.identity) return std::nullopt;
  return known->second.path;
}

void UnwindTables::add_program(const std::string& name) {
  const auto path = symbols::resolve_library(name, std::nullopt, *program_.arch);
  if (!path) return;
  for (const std::string& file : symbols::needed_files(*path)) add_file(file, mapped_path(file), Need::kCertain);
}

void UnwindTables::visit_code(uint32_t pid, const std::function<bool(const Mapping& mapping)>& visit) {
  const auto now = Clock::now();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - long_text_counted_at_);
  long_text_bytes_ -= std::min(long_text_bytes_, static_cast<uint64_t>(seconds.count()) * kLongTextPerSecond);
  long_text_counted_at_ += seconds;
  const uint64_t most = std::min(kMostTextBytes, kAnyTextBytes + kLongTextBytes - long_text_bytes_);
  const auto bytes = symbols::visit_mapped_code(pid, most, visit);
  if (bytes && *bytes > kAnyTextBytes)
    long_text_bytes_ = std::min(kLongTextBytes, long_text_bytes_ + (*bytes - kAnyTextBytes));
}

std::optional<Mapping> UnwindTables::find_code(uint32_t pid, uint64_t pc) {
  if (auto found = symbols::query_mapped_code(pid, pc); found || found.error().code != ENOTTY)
    return found ? std::optional(std::move(*found)) : std::nullopt;
  std::optional<Mapping> out;
  visit_code(pid, [&](const Mapping& each) {
    if (each.start <= pc && pc < each.end) out = each;
    return each.end <= pc;
  });
  return out;
}

// Each file once: of two on one device with one inode number, as some file systems have them, the first.
void UnwindTables::queue_process(uint32_t pid, Need need) {
  const uint32_t task = symbols::task_with_memory(pid);
  std::vector<WaitingFile> files;
  std::set<std::pair<uint64_t, uint64_t>> seen;  // device, inode
  uint64_t bytes = 0;
  visit_code(pid, [&](const Mapping& mapping) {
    if (!seen.emplace(mapping.device, mapping.inode).second) return true;
    WaitingFile file{task, mapping, need};
    bytes += file.size_bytes();
    if (bytes > kProcessFileBytes || waiting_bytes_ + file.size_bytes() > kWaitingFileBytes) return false;
    waiting_bytes_ += file.size_bytes();
    if (need == Need::kLikely && is_large(paths_of(task, mapping).front()))
      large_files_.push_back(std::move(file));
    else
      files.push_back(std::move(file));
    return true;
  });
  files_.insert(files_.begin(), std::move_iterator(files.begin()), std::move_iterator(files.end()));
}

bool UnwindTables::read_next() {
  if (files_.empty() && !processes_.empty()) {
    const uint32_t pid = processes_.front();
    processes_.pop_front();
    queue_process(pid, Need::kLikely);
    return true;
  }
  std::deque<WaitingFile>& queue = files_.empty() ? large_files_ : files_;
  if (queue.empty()) return false;
  const WaitingFile file = std::move(queue.front());
  queue.pop_front();
  waiting_bytes_ -= file.size_bytes();
  for (const std::string& path : paths_of(file.task, file.mapping)) add_file(path, file.mapping.path, file.need);
  return true;
}

bool UnwindTables::read_until(const std::function<bool()>& is_late) {
  while (!is_late())
    if (!read_next()) return false;
  return true;
}

void UnwindTables::add_process(uint32_t pid) {
  queue_process(pid, Need::kCertain);
  const ReadingTime limit(kOfProcess);
  while (!limit.is_over() && !files_.empty() && files_.front().need == Need::kCertain) read_next();
}

void UnwindTables::add_running_processes() {
  const ReadingTime limit(kOfRunning), half(kOfRunning / 2);
  for (const uint32_t pid : kernel::busiest_processes([&] { return half.is_over(); })) processes_.push_back(pid);
  read_until([&] { return limit.is_over(); });
}

bool UnwindTables::read_ahead() {
  if (files_.empty() && processes_.empty() && large_files_.empty()) return false;
  return read_until([limit = ReadingTime(kAhead)] { return limit.is_over(); });
}

bool UnwindTables::add_missing(uint32_t pid, uint64_t pc, const UnwindFileKey& key) {
  if (knows(key)) return true;
  const auto mapping = find_code(pid, pc);
  if (!mapping) return false;
  const auto paths = paths_of(symbols::task_with_memory(pid), *mapping);
  if (std::ranges::none_of(paths,
                           [&](const std::string& path) { return read(path, mapping->path, Need::kCertain, key); }))
    return false;
  add_process(pid);
  return true;
}

void UnwindTables::add_missing(const std::string& path, const UnwindFileKey& key) {
  read(path, path, Need::kCertain, key);
}

namespace {

using types::TypeId;

constexpr uint64_t kShortestIntervalNs = 200'000'000;
constexpr uint64_t kLongestIntervalNs = 30'000'000'000;
constexpr size_t kMostRemoved = 8192;  // at a time, as they are kept
constexpr uint32_t kUnusedEpochs = 2;

// The beginning of a value: see program/unwind_layout.h.
struct Header {
  uint32_t count = 0;
  uint32_t epoch = 0;
};

Header header_of(std::span<const std::byte> value) {
  Header header;
  if (value.size() >= sizeof(header)) std::memcpy(&header, value.data(), sizeof(header));
  return header;
}

std::span<const std::byte> used_part(std::span<const std::byte> value) {
  return value.first(std::min(value.size(), sizeof(Header) + header_of(value).count * sizeof(uint64_t)));
}

bool has_user_stacks(const types::Types& types, TypeId id) {
  if (!id.valid()) return false;
  const types::Type& type = types[id];
  if (type.kind == types::Kind::kUserStack) return true;
  if (type.kind == types::Kind::kPointer || type.kind == types::Kind::kFunction) return false;
  return has_user_stacks(types, type.element) ||
         std::ranges::any_of(type.members, [&](const auto& member) { return has_user_stacks(types, member.type); });
}

}  // namespace

UnwoundStacks::UnwoundStacks(load::Machine& machine, const program::Program& program, const types::Types& types)
    : machine_(machine), program_(program), types_(types), interval_ns_(kShortestIntervalNs) {
  for (const auto& maps : program.unwinding.stacks) kinds_.push_back({.maps = &maps});
  if (kinds_.empty()) return;
  for (const program::ScriptMapId id : program.script_maps.ids()) {
    const program::ScriptMap& map = program.script_maps[id];
    if (!has_user_stacks(types, map.key) && !has_user_stacks(types, map.value)) continue;
    maps_.push_back(id);
    if (map.storage == program::Storage::kThread) can_read_all_ = false;
  }
  for (const program::MapId id : program.maps.ids())
    if (program.maps[id].name == program::kSpanBuffersMap) can_read_all_ = false;
}

std::vector<uint64_t> UnwoundStacks::addresses(TypeId type, uint64_t key) const {
  const auto kind = std::ranges::find_if(kinds_, [&](const Kind& each) { return each.maps->type == type; });
  if (kind == kinds_.end()) return {};
  auto value = machine_.lookup(kind->maps->map, std::as_bytes(std::span(&key, 1)));
  if (const auto removed = kind->removed.find(key); !value && removed != kind->removed.end()) value = removed->second;
  if (!value) return {};
  const std::span<const std::byte> used = used_part(*value).subspan(sizeof(Header));
  std::vector<uint64_t> out(used.size() / sizeof(uint64_t));
  std::memcpy(out.data(), used.data(), out.size() * sizeof(uint64_t));
  return out;
}

std::byte* UnwoundStacks::global(uint32_t offset_bytes) const {
  return machine_.memory(program_.globals).data() + offset_bytes;
}

bool UnwoundStacks::is_crowded(const Kind& kind) const {
  uint64_t added = 0;
  std::memcpy(&added, global(kind.maps->added_offset_bytes), sizeof(added));
  return (added - kind.removed_count) * 2 >= program_.maps[kind.maps->map].max_entries;
}

Status UnwoundStacks::collect(uint64_t now_ns) {
  if (now_ns < next_ns_ || !can_read_all_) return {};
  if (std::ranges::none_of(kinds_, [&](const Kind& kind) { return is_crowded(kind); })) return {};
  uint32_t epoch = 0;
  std::memcpy(&epoch, global(program_.unwinding.epoch_offset_bytes), sizeof(epoch));
  const std::vector<Keys> in_use = TRY(keys_in_use());
  bool is_worth_it = epoch < kUnusedEpochs;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    TRY_STATUS(restore(kinds_[i], in_use[i]));
    const size_t removed = TRY(remove(kinds_[i], in_use[i], epoch));
    is_worth_it = is_worth_it || removed * 16 >= program_.maps[kinds_[i].maps->map].max_entries;
  }
  ++epoch;
  std::memcpy(global(program_.unwinding.epoch_offset_bytes), &epoch, sizeof(epoch));
  interval_ns_ = is_worth_it ? kShortestIntervalNs : std::min(interval_ns_ * 2, kLongestIntervalNs);
  next_ns_ = now_ns + interval_ns_;
  return {};
}

Result<std::vector<UnwoundStacks::Keys>> UnwoundStacks::keys_in_use() const {
  std::vector<Keys> out(kinds_.size());
  output::Resolver resolver;
  resolver.unwound_stack = [&](TypeId type, uint64_t key) -> std::vector<uint64_t> {
    for (size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i].maps->type == type) out[i].insert(key);
    return {};
  };
  MapReader reader(machine_, program_, {types_, resolver});
  for (const program::ScriptMapId map : maps_) TRY_STATUS(reader.read(map, {}));
  return out;
}

Status UnwoundStacks::restore(Kind& kind, const Keys& in_use) {
  for (auto& [key, value] : std::exchange(kind.removed, {})) {
    const auto key_bytes = std::as_bytes(std::span(&key, 1));
    if (!in_use.contains(key) || machine_.lookup(kind.maps->map, key_bytes)) continue;
    value.resize(program_.maps[kind.maps->map].value_size);
    TRY_STATUS(machine_.update(kind.maps->map, key_bytes, value));
    --kind.removed_count;
  }
  return {};
}

Result<size_t> UnwoundStacks::remove(Kind& kind, const Keys& in_use, uint32_t epoch) {
  TRY_STATUS(machine_.for_each(kind.maps->map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    uint64_t number = 0;
    std::memcpy(&number, key.data(), sizeof(number));
    const bool is_old = epoch - header_of(value).epoch >= kUnusedEpochs;
    if (!is_old || in_use.contains(number) || kind.removed.size() == kMostRemoved) return;
    const auto used = used_part(value);
    kind.removed.emplace(number, std::vector<std::byte>(used.begin(), used.end()));
  }));
  for (const auto& [key, value] : kind.removed)
    TRY_STATUS(machine_.remove(kind.maps->map, std::as_bytes(std::span(&key, 1))));
  kind.removed_count += kind.removed.size();
  return kind.removed.size();
}

}  // namespace espy::runtime

// The Symbolizer: which process, which mapping, which file, which function.
//
// An address of a process means something only together with the process' mappings at that moment, and by the time it
// is shown, the process may have loaded a library, called exec, or ended. So mappings are snapshots, taken by
// `remember` or at the first question, and believed as long as they explain the address. If they do not, they are
// taken again; a process that is gone keeps its last snapshot, and what `remember_mapping` was told of it. An address
// that no snapshot explains (garbage, a broken frame pointer) must not cost a read of /proc each time: after a refresh
// that did not help there is a pause. After exec the old mappings might explain addresses of the new program, wrongly,
// if both are linked to one place; so whether it is still the same program is asked too, though not for each frame of a
// stack.
//
// The file behind a mapping is opened by path, when an address in it is first asked for. Two kinds cannot wait, as
// their way leads through the process and ends with it: deleted files (/proc/PID/map_files) and those of another
// mount namespace (/proc/PID/root). These are opened as soon as the snapshot is taken. Keeping the namespace open
// instead would be simpler, and would keep the file systems of every container that ever ran busy.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>

#include "symbols/archive.h"
#include "symbols/kernel_symbols.h"
#include "symbols/process.h"
#include "symbols/symbols.h"

namespace espy::symbols {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRefreshPause = std::chrono::milliseconds(100);
constexpr auto kProgramCheckPause = std::chrono::milliseconds(10);

// Device, inode, time of change (s, ns) and offset in an archive: a replaced file is another file, two paths to one
// file are not.
using FileKey = std::array<uint64_t, 5>;

std::optional<FileKey> key_of(const std::string& path) {
  const auto place = place_on_disk(path);
  struct stat status = {};
  if (!place || ::stat(place->path.c_str(), &status) != 0) return std::nullopt;
  return FileKey{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_mtim.tv_sec),
                 static_cast<uint64_t>(status.st_mtim.tv_nsec), place->offset};
}

std::shared_ptr<const ElfFile> read_vdso() {
  Result<ElfFile> elf = ElfFile::from_image(read_vdso_image(), "[vdso]");
  return elf ? std::make_shared<const ElfFile>(std::move(*elf)) : nullptr;
}

}  // namespace

struct Symbolizer::State {
  explicit State(Options chosen) : options(std::move(chosen)), kernel_symbols(options.kernel_symbols) {}

  Options options;
  KernelSymbols kernel_symbols;
  std::unordered_map<uint32_t, Process> processes;
  std::map<std::pair<dev_t, ino_t>, std::shared_ptr<AddressSpace>> programs;  // kPerProgram only
  std::map<FileKey, std::shared_ptr<const ElfFile>> files;
  std::shared_ptr<const ElfFile> vdso;
  std::map<std::pair<std::shared_ptr<const ElfFile>, uint64_t>, std::vector<SourceFrame>> sources;  // linked addresses

  Process* snapshot(uint32_t pid, bool may_share);
  static bool runs_another_program(Process& process);
  Process* process_for(uint32_t pid, uint64_t address);
  Result<std::shared_ptr<const ElfFile>> open_file(const std::string& path);
  // The file, or, if it is an archive, what is stored in it there.
  Result<std::shared_ptr<const ElfFile>> open_with_code(const std::string& path, uint64_t offset);
  std::shared_ptr<const ElfFile> open_mapped(const Process& process, const Mapping& mapping);
  const ElfFile* file_of(const Process& process, CodeMapping& code);
  struct FileAddress {
    std::shared_ptr<const ElfFile> elf;
    CodeMapping* code = nullptr;
    uint64_t offset = 0;  // in the ELF file
    uint64_t linked = 0;
  };
  std::optional<FileAddress> find_in_file(Process& process, uint64_t address);
  std::optional<Symbol> find_in_elf(const FileAddress& place, uint64_t address) const;
  static std::optional<Symbol> find_in_perf_map(Process& process, uint64_t address);
  std::string shown_name(const std::string& name) const { return options.demangle_cpp ? demangle(name) : name; }
};

// Takes the mappings of a process down, in the place of older ones. nullptr if it is gone and was never known.
Process* Symbolizer::State::snapshot(uint32_t pid, bool may_share) {
  const auto known = processes.find(pid);
  const bool by_program = options.cache == CachePolicy::kPerProgram;
  const auto program = read_program(pid);
  std::shared_ptr<AddressSpace> space;
  if (program && by_program && may_share) {
    if (const auto shared = programs.find(*program); shared != programs.end()) space = shared->second;
  }
  const bool is_new = space == nullptr;
  if (is_new) space = read_address_space(pid);
  if (space == nullptr) return known == processes.end() ? nullptr : &known->second;

  Process& process = processes[pid];
  process.pid = pid;
  process.inner_pid = read_inner_pid(pid);
  process.root = read_root(pid);
  if (is_new && process.space != nullptr) space->adopt_files(*process.space);
  process.space = space;
  process.program = program;
  process.program_read_at = Clock::now();
  if (program && by_program) programs[*program] = space;
  for (CodeMapping& code : space->code) {
    if (code.mapping.deleted || !process.root.empty()) file_of(process, code);
  }
  if (!process.root.empty()) refresh_perf_map(process);
  return &process;
}

bool Symbolizer::State::runs_another_program(Process& process) {
  if (Clock::now() < process.program_read_at + kProgramCheckPause) return false;
  process.program_read_at = Clock::now();
  const auto program = read_program(process.pid);
  return program && program != process.program;
}

// The process as we know it, after a look at it now if what we know does not explain `address`.
Process* Symbolizer::State::process_for(uint32_t pid, uint64_t address) {
  if (options.cache == CachePolicy::kNone) return snapshot(pid, false);
  const auto known = processes.find(pid);
  Process* process = known == processes.end() ? snapshot(pid, true) : &known->second;
  if (process != nullptr && runs_another_program(*process)) process = snapshot(pid, true);
  if (process == nullptr || process->space->find(address) != nullptr) return process;
  if (Clock::now() < process->next_refresh) return process;
  process = snapshot(pid, false);
  if (process->space->find(address) == nullptr) process->next_refresh = Clock::now() + kRefreshPause;
  return process;
}

Result<std::shared_ptr<const ElfFile>> Symbolizer::State::open_file(const std::string& path) {
  const std::optional<FileKey> key = key_of(path);
  if (const auto known = key ? files.find(*key) : files.end(); known != files.end()) return known->second;
  auto file = std::make_shared<const ElfFile>(TRY(ElfFile::open(path, options.debug_directories)));
  if (key) files[*key] = file;
  return file;
}

Result<std::shared_ptr<const ElfFile>> Symbolizer::State::open_with_code(const std::string& path, uint64_t offset) {
  auto file = open_file(path);
  if (file) return file;
  const auto stored = stored_file_at(path, offset);
  return stored ? open_file(fmt::format("{}!/{}", path, stored->name)) : file;
}

std::shared_ptr<const ElfFile> Symbolizer::State::open_mapped(const Process& process, const Mapping& mapping) {
  // The vdso of a 32-bit process is another one.
  if (mapping.path == "[vdso]" && mapping.start > UINT32_MAX) {
    if (vdso == nullptr) vdso = read_vdso();
    return vdso;
  }
  if (mapping.inode == 0 || !mapping.path.starts_with('/')) return nullptr;
  const auto has_inode = [&](const std::string& path) {
    struct stat status = {};
    return ::stat(path.c_str(), &status) == 0 && status.st_ino == mapping.inode;
  };
  const std::string path = process.root + mapping.path;
  std::vector<std::string> candidates;
  if (!mapping.deleted && has_inode(path)) candidates.push_back(path);
  candidates.push_back(map_files_path(process.pid, mapping));
  // Some file systems (btrfs, older overlayfs) show other inodes in maps than stat does.
  if (!mapping.deleted) candidates.push_back(path);
  if (!mapping.deleted && has_inode(mapping.path)) candidates.push_back(mapping.path);
  for (const std::string& candidate : candidates) {
    if (auto file = open_with_code(candidate, mapping.file_offset)) return *file;
  }
  return nullptr;
}

const ElfFile* Symbolizer::State::file_of(const Process& process, CodeMapping& code) {
  if (!code.tried) code.elf = open_mapped(process, code.mapping);
  code.tried = true;
  return code.elf.get();
}

std::optional<Symbolizer::State::FileAddress> Symbolizer::State::find_in_file(Process& process, uint64_t address) {
  CodeMapping* code = process.space->find(address);
  if (code == nullptr || file_of(process, *code) == nullptr) return std::nullopt;
  const uint64_t offset = address - code->mapping.start + code->mapping.file_offset - code->elf->start_in_file();
  const std::optional<uint64_t> linked = code->elf->address_of_offset(offset);
  if (!linked) return std::nullopt;
  return FileAddress{code->elf, code, offset, *linked};
}

std::optional<Symbol> Symbolizer::State::find_in_elf(const FileAddress& place, uint64_t address) const {
  const std::optional<ElfSymbol> function = place.elf->function_at(place.linked);
  if (!function) return std::nullopt;
  const uint64_t offset = place.linked - function->address;
  return Symbol{shown_name(function->name), offset, place.code->mapping.path, address - offset};
}

std::optional<Symbol> Symbolizer::State::find_in_perf_map(Process& process, uint64_t address) {
  LoadedPerfMap& loaded = process.perf_map;
  std::optional<PerfMap::Entry> entry = loaded.map == nullptr ? std::nullopt : loaded.map->at(address);
  // Not there yet, perhaps: the JIT writes a line after it has made the code.
  if (!entry && refresh_perf_map(process)) entry = loaded.map->at(address);
  if (!entry) return std::nullopt;
  return Symbol{std::string(entry->name), address - entry->start, loaded.path, entry->start};
}

Symbolizer::Symbolizer() : Symbolizer(Options{}) {}
Symbolizer::Symbolizer(const Options& options) : state_(std::make_unique<State>(options)) {}
void Symbolizer::configure(bool demangle_cpp, CachePolicy cache) {
  state_->options.demangle_cpp = demangle_cpp;
  state_->options.cache = cache;
}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

bool Symbolizer::read_kernel_ahead() { return state_->kernel_symbols.read_ahead(); }

std::optional<Symbol> Symbolizer::kernel(uint64_t address) {
  const std::optional<KernelSymbol> found = state_->kernel_symbols.at_or_before(address);
  if (!found) return std::nullopt;
  return Symbol{state_->shown_name(std::string(found->name)), address - found->address, std::string(found->module),
                found->address};
}

std::optional<uint64_t> Symbolizer::kernel_address(std::string_view name) {
  const std::optional<KernelSymbol> found = state_->kernel_symbols.find(name);
  if (!found || found->address == 0) return std::nullopt;
  return found->address;
}

std::optional<Symbol> Symbolizer::user(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  if (process == nullptr) return std::nullopt;
  const auto place = state_->find_in_file(*process, address);
  if (auto found = place ? state_->find_in_elf(*place, address) : std::nullopt) return found;
  // For code in a file a map is looked for once: that costs a system call.
  if (place && process->perf_map.map == nullptr && std::exchange(process->looked_for_map, true)) return std::nullopt;
  return State::find_in_perf_map(*process, address);
}

std::vector<SourceFrame> Symbolizer::source(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const auto place = process == nullptr ? std::nullopt : state_->find_in_file(*process, address);
  if (!place) return {};
  const auto [known, is_new] = state_->sources.try_emplace({place->elf, place->linked});
  if (!is_new) return known->second;
  const auto debug = place->elf->debug_info();
  if (!debug) return {};
  known->second = (*debug)->frames_at(place->linked);
  for (SourceFrame& frame : known->second) frame.function = state_->shown_name(frame.function);
  return known->second;
}

std::optional<Symbolizer::FilePlace> Symbolizer::file_place(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const auto place = process == nullptr ? std::nullopt : state_->find_in_file(*process, address);
  if (!place || place->elf->build_id().empty()) return std::nullopt;
  return FilePlace{place->elf->build_id(), place->offset};
}

std::optional<std::string> Symbolizer::user_module(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const CodeMapping* code = process == nullptr ? nullptr : process->space->find(address);
  if (code == nullptr || code->mapping.path.empty()) return std::nullopt;
  return code->mapping.path;
}

std::optional<uint64_t> Symbolizer::load_bias(uint32_t pid, const std::string& path) {
  struct stat status = {};
  const auto elf = state_->open_file(path);
  Process* process = state_->snapshot(pid, false);
  if (!elf || process == nullptr || ::stat(path.c_str(), &status) != 0) return std::nullopt;
  // Inode numbers repeat on other devices, and devices are not told alike everywhere, so the name has a say too.
  std::error_code ignored;
  const std::string real = std::filesystem::canonical(path, ignored).filename().string();
  for (const CodeMapping& code : process->space->code) {
    if (code.mapping.inode != status.st_ino || !code.mapping.path.ends_with("/" + real)) continue;
    if (const auto linked = (*elf)->address_of_offset(code.mapping.file_offset)) return code.mapping.start - *linked;
  }
  return std::nullopt;
}

void Symbolizer::remember(uint32_t pid) { state_->snapshot(pid, true); }

// A copy is changed: other processes of the program may share the address space, and have other mappings.
void Symbolizer::remember_mapping(uint32_t pid, Mapping mapping) {
  Process& process = state_->processes[pid];
  if (process.space == nullptr) {
    process.pid = process.inner_pid = pid;
    process.space = std::make_shared<AddressSpace>();
  } else if (process.space->find(mapping.start) != nullptr) {
    return;
  }
  struct stat status = {};
  if (::stat(mapping.path.c_str(), &status) == 0) mapping.inode = status.st_ino;
  process.space = std::make_shared<AddressSpace>(*process.space);
  const auto behind = std::ranges::upper_bound(process.space->code, mapping.start, {},
                                               [](const CodeMapping& code) { return code.mapping.start; });
  process.space->code.insert(behind, {.mapping = std::move(mapping)});
}

void Symbolizer::forget(uint32_t pid) { state_->processes.erase(pid); }

Result<std::shared_ptr<const ElfFile>> Symbolizer::elf_file(const std::string& path) { return state_->open_file(path); }

}  // namespace espy::symbols

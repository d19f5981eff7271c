// The index of a package (DWARF 5, 7.3.5; for DWARF 4 gcc.gnu.org/wiki/DebugFissionDWP): a header with the version and
// the numbers of columns, units and slots; a hash table of the ids of units and the rows of their pieces; the sections
// that the columns stand for; and for each row and column an offset, and then a size.
//
// The strings of all units are in one section. A .dwo file receives those that its unit refers to.
#include "symbols/dwarf/split_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <thread>

#include "base/byte_reader.h"
#include "base/files.h"
#include "base/limits.h"
#include "symbols/dwarf/dwarf_file.h"
#include "symbols/elf_image.h"

namespace espy::symbols::dwarf {

namespace {

constexpr uint32_t kVersion2 = 2;
constexpr uint32_t kVersion5 = 5;
constexpr uint32_t kMaxColumns = 16;
constexpr uint32_t kMaxUnits = 1 << 20;

std::string_view section_of_column(uint32_t version, uint32_t column) {
  switch (column) {
    case 1: return "info";
    case 3: return "abbrev";
    case 4: return "line";
    case 5: return version == kVersion2 ? "loc" : "loclists";
    case 6: return "str_offsets";
    case 8: return version == kVersion2 ? "" : "rnglists";
    default: return "";  // macros, and types in units of their own
  }
}

std::string section_name(std::string_view part) { return ".debug_" + std::string(part) + ".dwo"; }

// Returns the offsets of strings for a section with these strings alone, and that section.
std::pair<std::string, std::string> with_own_strings(std::string offsets, size_t header_bytes,
                                                     std::string_view strings) {
  std::unordered_map<uint64_t, uint32_t> moved;
  std::string own;
  for (size_t at = header_bytes; at + 4 <= offsets.size(); at += 4) {
    const uint64_t offset = load_le(offsets, at, 4);
    const auto [entry, is_new] = moved.try_emplace(offset, static_cast<uint32_t>(own.size()));
    // Corrupt offsets could share a long string.
    if (is_new && offset < strings.size() && own.size() / 2 < strings.size()) {
      ByteReader reader(strings.substr(offset));
      own += reader.take_string();
    }
    if (is_new) own += '\0';
    std::memcpy(offsets.data() + at, &entry->second, sizeof(entry->second));
  }
  return {std::move(offsets), std::move(own)};
}

}  // namespace

Result<Package> Package::open(const std::string& path) {
  Package out(TRY(ElfImage::open(path)));
  out.read_index();
  if (out.rows_.empty()) return fail(path + " is not a package of debug information");
  return out;
}

void Package::read_index() {
  const std::string_view index = image_.section_bytes(".debug_cu_index");
  ByteReader reader(index);
  version_ = reader.take_le<uint32_t>() & 0xffff;  // 16 bits and two of padding since 5
  columns_ = reader.take_le<uint32_t>();
  const auto units = reader.take_le<uint32_t>(), slots = reader.take_le<uint32_t>();
  if ((version_ != kVersion2 && version_ != kVersion5) || columns_ > kMaxColumns || units > kMaxUnits) return;
  const std::string_view ids = reader.take_bytes(uint64_t{slots} * 8), rows = reader.take_bytes(uint64_t{slots} * 4);
  kinds_ = reader.take_bytes(uint64_t{columns_} * 4);
  const uint64_t table_bytes = uint64_t{units} * columns_ * 4;
  offsets_ = reader.take_bytes(table_bytes);
  sizes_ = reader.take_bytes(table_bytes);
  for (uint32_t slot = 0; reader.ok() && slot < slots && rows_.size() < units; ++slot) {
    const auto row = static_cast<uint32_t>(load_le(rows, uint64_t{slot} * 4, 4));  // from 1; 0: no unit
    if (row != 0 && row <= units) rows_.try_emplace(load_le(ids, uint64_t{slot} * 8), row - 1);
  }
}

// A section has one column, and so one piece.
std::vector<Package::Piece> Package::pieces_of(uint32_t row) const {
  std::vector<Piece> out;
  for (uint32_t column = 0; column < columns_; ++column) {
    const auto section = section_of_column(version_, static_cast<uint32_t>(load_le(kinds_, uint64_t{column} * 4, 4)));
    const uint64_t at = (uint64_t{row} * columns_ + column) * 4;
    const bool is_new = std::ranges::find(out, section, &Piece::section) == out.end();
    if (!section.empty() && is_new) out.push_back({section, load_le(offsets_, at, 4), load_le(sizes_, at, 4)});
  }
  return out;
}

std::string Package::bytes_of(const Piece& piece) const {
  const std::string_view all = image_.section_bytes(section_name(piece.section));
  if (piece.offset > all.size() || piece.size > all.size() - piece.offset) return {};
  return std::string(all.substr(piece.offset, piece.size));
}

std::string Package::file_of(const std::vector<Piece>& pieces) const {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const Piece& piece : pieces) {
    std::string bytes = bytes_of(piece);
    if (piece.section == "str_offsets") {
      constexpr size_t kHeaderBytes = 8;
      auto [offsets, strings] = with_own_strings(std::move(bytes), version_ == kVersion5 ? kHeaderBytes : 0,
                                                 image_.section_bytes(section_name("str")));
      bytes = std::move(offsets);
      sections.emplace_back(section_name("str"), std::move(strings));
    }
    sections.emplace_back(section_name(piece.section), std::move(bytes));
  }
  return make_elf(sections, image_.machine());
}

std::string Package::unit(uint64_t unit_id) const {
  const auto found = rows_.find(unit_id);
  return found == rows_.end() ? "" : file_of(pieces_of(found->second));
}

namespace {

namespace fs = std::filesystem;

// What libdw reads of a .dwo file.
constexpr std::string_view kSections[] = {".debug_info.dwo", ".debug_abbrev.dwo",      ".debug_line.dwo",
                                          ".debug_loc.dwo",  ".debug_loclists.dwo",    ".debug_rnglists.dwo",
                                          ".debug_str.dwo",  ".debug_str_offsets.dwo", ".debug_types.dwo"};

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A build system makes some twenty directories; each takes a descriptor where they are removed.
constexpr ptrdiff_t kMaxDirectories = 64;

bool is_allowed(const fs::path& name) {
  return !name.empty() && std::ranges::find(name, "..") == name.end() &&
         std::distance(name.begin(), name.end()) <= kMaxDirectories;
}

bool write_file(const fs::path& path, const std::string& bytes) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return fd.valid() && write_all(fd.get(), bytes).has_value();
}

// Removes the directories of a file, up to `root`.
void remove_parents(const fs::path& path, const fs::path& root) {
  for (fs::path each = path.parent_path(); each != root && ::rmdir(each.c_str()) == 0;) each = each.parent_path();
}

// Calls `read` in a thread that sees the directory as its root.
bool run_in_root(const std::string& root, const std::function<bool()>& read) {
  bool out = false;
  bool has_memory = true;
  std::thread([&] {
    try {
      out = ::unshare(CLONE_FS) == 0 && ::chroot(root.c_str()) == 0 && ::chdir("/") == 0 && read();
    } catch (const std::bad_alloc&) {
      has_memory = false;
    }
  }).join();
  if (!has_memory) throw std::bad_alloc();
  return out;
}

}  // namespace

std::string make_elf(const std::vector<std::pair<std::string, std::string>>& sections, uint16_t machine) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = machine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(sections.size() + 2);
  header.e_shstrndx = static_cast<uint16_t>(sections.size() + 1);
  std::string out(sizeof(header), '\0'), names(1, '\0'), headers(sizeof(Elf64_Shdr), '\0');
  const auto add = [&](const std::string& name, uint32_t type) {
    Elf64_Shdr section = {};
    section.sh_name = static_cast<uint32_t>(names.size());
    section.sh_type = type;
    section.sh_offset = out.size();
    section.sh_addralign = 1;
    names += name + '\0';
    return section;
  };
  for (const auto& [name, bytes] : sections) {
    Elf64_Shdr section = add(name, SHT_PROGBITS);
    section.sh_size = bytes.size();
    append(headers, section);
    out += bytes;
  }
  Elf64_Shdr section = add(".shstrtab", SHT_STRTAB);
  section.sh_size = names.size();
  append(headers, section);
  out += names;
  out.resize((out.size() + 7) / 8 * 8);
  header.e_shoff = out.size();
  std::memcpy(out.data(), &header, sizeof(header));
  return out += headers;
}

uint64_t disk_bytes_of(const UntrustedFile& file) {
  constexpr uint64_t kBlockBytes = 512;
  struct stat status = {};
  if (::fstat(file.fd.get(), &status) != 0) return 0;
  return std::min(file.size_bytes, static_cast<uint64_t>(status.st_blocks) * kBlockBytes);
}

uint64_t debug_bytes_of(const UntrustedFile& file) {
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(file.fd.get(), ELF_C_READ, nullptr), &elf_end);
  size_t names = 0;
  if (!elf || elf_getshdrstrndx(elf.get(), &names) != 0) return 0;
  uint64_t out = 0;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf.get(), names, header.sh_name);
    if (name != nullptr && std::string_view(name).find("debug") != std::string_view::npos)
      out += std::min(header.sh_size, file.size_bytes);
  }
  return std::min(out, disk_bytes_of(file));
}

std::vector<uint64_t> split_units(std::string& elf) {
  std::vector<uint64_t> out;
  const std::unique_ptr<Elf, decltype(&elf_end)> image(elf_memory(elf.data(), elf.size()), &elf_end);
  if (!image) return out;
  const std::unique_ptr<Dwarf, decltype(&dwarf_end)> dwarf(begin_dwarf(image.get()), &dwarf_end);
  if (!dwarf) return out;
  Dwarf_CU* unit = nullptr;
  uint8_t type = 0;
  while (dwarf_get_units(dwarf.get(), unit, &unit, nullptr, &type, nullptr, nullptr) == 0) {
    uint64_t id = 0;
    if (type == DW_UT_split_compile &&
        dwarf_cu_info(unit, nullptr, nullptr, nullptr, nullptr, &id, nullptr, nullptr) == 0)
      out.push_back(id);
  }
  std::ranges::sort(out);
  return out;
}

namespace {

// Returns the sections of a .dwo file as an ELF file; "" if it cannot be read. Sets the debug_bytes_of() the file.
std::string read_split_file(UntrustedFile file, uint64_t& debug_bytes) {
  std::vector<std::pair<std::string, std::string>> sections;
  uint16_t machine = EM_NONE;
  {
    const Result<ElfImage> image = ElfImage::open(std::move(file));
    if (!image) return "";
    machine = image->machine();
    debug_bytes = debug_bytes_of(image->file());
    for (const std::string_view name : kSections)
      if (image->has_section(name)) sections.emplace_back(name, image->unpacked_section(name));
  }
  return make_elf(sections, machine);
}

bool has_unit(const SplitFile& file, uint64_t id) { return std::ranges::binary_search(file.units, id); }

}  // namespace

SplitFiles::SplitFiles(ScratchDirectory scratch)
    : scratch_(std::move(scratch)), directory_((fs::path(scratch_.path()) / "shown").lexically_normal()) {}

Result<SplitFiles> SplitFiles::make() {
  SplitFiles out(TRY(ScratchDirectory::make()));
  if (::mkdir(out.directory_.c_str(), 0700) != 0) return fail_errno("cannot make a directory " + out.directory_, errno);
  return out;
}

// Decompressed, and without what the files of a package share, a file is several times as large as it was on disk.
void SplitFiles::allow_for(const UntrustedFile& file) {
  constexpr uint64_t kLeastBytes = 256 << 20, kTimes = 4;
  disk_bytes_ += disk_bytes_of(file);
  allowed_bytes_ = std::max(std::min(kLeastBytes + disk_bytes_ * kTimes, max_binary_bytes()), disk_bytes_);
}

bool SplitFiles::take(uint64_t bytes) {
  taken_bytes_ += bytes;
  has_refused_ |= taken_bytes_ > allowed_bytes_;
  return taken_bytes_ <= allowed_bytes_;
}

SplitFile SplitFiles::copy_of(uint64_t file_bytes, const std::function<std::string()>& make) {
  constexpr uint64_t kMemoryTimes = 4;  // read, decompressed, and copied twice
  SplitFile out;
  if (!take(file_bytes)) return out;
  std::string elf;
  try {
    const MemoryLimit limit((allowed_bytes_ - taken_bytes_ + file_bytes) * kMemoryTimes);
    elf = make();
  } catch (const std::bad_alloc&) {
    has_refused_ = true;
    return out;
  }
  if (elf.empty() || (elf.size() > file_bytes && !take(elf.size() - file_bytes))) return out;
  out.units = split_units(elf);
  out.copy = scratch_.path() + "/" + std::to_string(copies_++);
  if (!out.units.empty() && write_file(out.copy, elf)) return out;
  ::unlink(out.copy.c_str());
  return {};
}

SplitFile* SplitFiles::find(const std::string& path, uint64_t unit_id) {
  Result<UntrustedFile> file = open_untrusted(path, max_binary_bytes());
  if (!file) return nullptr;
  const auto [entry, is_new] = known_.try_emplace({file->device, file->inode}, SplitFile());
  SplitFile& known = entry->second;
  if (is_new) allow_for(*file);
  if (is_new || (has_unit(known, unit_id) && known.copy.empty())) {
    const uint64_t file_bytes = file->size_bytes;
    uint64_t debug_bytes = 0;
    known = copy_of(file_bytes, [&] { return read_split_file(std::move(*file), debug_bytes); });
    if (is_new) known.debug_bytes = debug_bytes;
  }
  if (!has_unit(known, unit_id)) return nullptr;
  debug_bytes_ += std::exchange(known.debug_bytes, 0);
  return &known;
}

std::optional<SplitFile> SplitFiles::add(uint64_t unit_id, const std::function<std::string()>& make) {
  SplitFile out = copy_of(0, make);
  return has_unit(out, unit_id) ? std::optional(std::move(out)) : std::nullopt;
}

bool SplitFiles::show(SplitFile& file, const std::string& name, const std::function<bool()>& read) const {
  const fs::path named = name;
  const fs::path place = (fs::path(directory_) / named.relative_path()).lexically_normal();
  if (!is_allowed(named)) return false;
  std::error_code ignored;
  fs::create_directories(place.parent_path(), ignored);
  bool out = false;
  if (::rename(file.copy.c_str(), place.c_str()) == 0) {
    out = named.is_absolute() ? run_in_root(directory_, read) : read();
    // Most have one unit. libdw has mapped the file.
    if (file.units.size() == 1 || ::rename(place.c_str(), file.copy.c_str()) != 0) {
      ::unlink(place.c_str());
      file.copy.clear();
    }
  }
  remove_parents(place, directory_);
  return out;
}

void SplitFiles::hide(const std::function<bool()>& read) const { run_in_root(directory_, read); }

}  // namespace espy::symbols::dwarf

#include "symbols/elf_image.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/byte_reader.h"
#include "base/limits.h"
#include "base/strings.h"
#include "symbols/debug_file.h"

namespace espy::symbols {
namespace {

// Bounds of what a file may claim. libelf allocates what a header says before it reads.
constexpr uint64_t kMaxSections = 1 << 16;
constexpr size_t kMaxProgramHeaders = 256;  // linkers make about ten, and each address is searched in all of them
constexpr uint64_t kMaxSectionNamesBytes = 16 << 20;
constexpr uint64_t kMaxBeginBytes = 64 << 20;  // what libelf takes for so many sections
constexpr size_t kMaxSymbols = 8 << 20;
constexpr size_t kMaxNameBytes = 16 << 10;  // names may share a long string
constexpr uint64_t kMaxBuildIdBytes = 64;   // linkers make 8 to 32
constexpr uint64_t kMaxNotesBytes = 1 << 20;
constexpr size_t kMaxNeeded = 1000;  // libraries
constexpr uint64_t kMaxDynamicBytes = 1 << 20;
constexpr size_t kMaxRunPathBytes = 64 << 10;  // build systems name hundreds of directories

// Returns the text at `offset`, up to `limit_bytes` of it; nullopt if it does not end within the table. Unlike
// elf_strptr(), which can look through the table for each text.
std::optional<std::string_view> text_at(std::string_view table, uint64_t offset, size_t limit_bytes) {
  if (offset >= table.size()) return std::nullopt;
  const std::string_view rest = table.substr(offset, limit_bytes);
  const size_t end = rest.find('\0');
  if (end == rest.npos && rest.size() < limit_bytes) return std::nullopt;
  return rest.substr(0, end);
}

bool is_text_at(std::string_view table, uint64_t offset, std::string_view text) {
  return text_at(table, offset, text.size() + 1) == text;
}

std::string_view view_of(const Elf_Data* data) {
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

// The section stays in memory; empty if it is larger, or not in the file.
std::string_view bytes_of(Elf_Scn* section, uint64_t limit_bytes = UINT64_MAX) {
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) return {};
  if (header.sh_size > limit_bytes) return {};
  return view_of(elf_rawdata(section, nullptr));
}

constexpr uint32_t kCompressedByZstd = 2;  // ELFCOMPRESS_ZSTD, which elf.h has from glibc 2.36 on

// More sections than the header can count are counted by the first section header, which gives the program headers
// their number, too.
template <class FileHeader, class SectionHeader>
bool counts_too_many(const ElfImage& image) {
  const auto header = load_struct<FileHeader>(image.bytes_at(0, sizeof(FileHeader)), 0);
  if (!header || header->e_shoff == 0 || (header->e_shnum != 0 && header->e_phnum != PN_XNUM)) return false;
  const auto first = load_struct<SectionHeader>(image.bytes_at(header->e_shoff, sizeof(SectionHeader)), 0);
  return first && (first->sh_size > kMaxSections || first->sh_info > kMaxSections);
}

}  // namespace

std::optional<std::string> unpack_zstd(Elf* elf, Elf_Scn* section) {
  GElf_Shdr header;
  GElf_Chdr packed;
  if (gelf_getshdr(section, &header) == nullptr || (header.sh_flags & SHF_COMPRESSED) == 0) return std::nullopt;
  if (gelf_getchdr(section, &packed) == nullptr || packed.ch_type != kCompressedByZstd) return std::nullopt;
  const bool is_64bit = gelf_getclass(elf) == ELFCLASS64;
  std::string_view bytes = view_of(elf_rawdata(section, nullptr));
  bytes.remove_prefix(std::min(bytes.size(), is_64bit ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr)));
  std::string out(packed.ch_size, '\0');
  const size_t got = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) != 0 || got != out.size()) return std::nullopt;
  return out;
}

SymbolTable::SymbolTable(Elf* elf, Elf_Data* symbols, Elf_Scn* strings, Elf_Data* versions)
    : symbols_(symbols), versions_(versions), strings_section_(strings) {
  const size_t entry_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
  count_ = entry_bytes == 0 ? 0 : std::min(symbols->d_size / entry_bytes, kMaxSymbols);
}

std::string_view SymbolTable::strings() const {
  if (!strings_) strings_ = bytes_of(strings_section_);
  return *strings_;
}

std::optional<RawSymbol> SymbolTable::at(size_t index) const {
  GElf_Sym symbol;
  if (gelf_getsym(symbols_, static_cast<int>(index), &symbol) == nullptr) return std::nullopt;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return std::nullopt;
  const auto text = text_at(strings(), symbol.st_name, kMaxNameBytes);
  if (!text || text->empty()) return std::nullopt;

  RawSymbol out{.name = *text,
                .address = symbol.st_value,
                .size = symbol.st_size,
                .type = static_cast<unsigned char>(GELF_ST_TYPE(symbol.st_info)),
                .is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
                .text_bytes = static_cast<uint32_t>(text->size())};
  // In .symtab the default version is `f@@V2`, an older one `f@V1`.
  if (const size_t at = out.name.find('@'); at != 0 && at != std::string_view::npos) {
    out.is_old_version = !out.name.substr(at).starts_with("@@");
    out.name = out.name.substr(0, at);
  }
  constexpr GElf_Versym kHiddenVersion = 0x8000;
  GElf_Versym version;
  if (versions_ != nullptr && gelf_getversym(versions_, static_cast<int>(index), &version) != nullptr) {
    out.is_old_version = (version & kHiddenVersion) != 0;
  }
  return out;
}

Result<ElfImage> ElfImage::open(const std::string& path) {
  if (const auto inside = split_archive_path(path)) {
    StoredBytes stored = TRY(read_stored_file(inside->archive, inside->name));
    ElfImage image = TRY(from_bytes(std::move(stored.bytes), path));
    image.offset_in_archive_ = stored.offset;
    image.file_state_ = stored.archive;
    return image;
  }
  return open(TRY(open_untrusted(path, max_binary_bytes())));
}

// Without a mapping, since the access to a mapped page ends the process by SIGBUS after the file was truncated, and
// libelf does not expect that bytes change which it has checked.
Result<ElfImage> ElfImage::open(UntrustedFile file) {
  elf_version(EV_CURRENT);
  ElfImage image;
  image.path_ = file.path;
  image.file_state_ = file.state();
  image.file_ = std::move(file);
  TRY_STATUS(image.check_header());
  {
    const MemoryLimit limit(kMaxBeginBytes);  // the file may have changed since
    image.elf_.reset(elf_begin(image.file_.fd.get(), ELF_C_READ, nullptr));
  }
  return finish(std::move(image));
}

Result<ElfImage> ElfImage::from_bytes(std::string bytes, std::string name) {
  elf_version(EV_CURRENT);
  ElfImage image;
  image.path_ = std::move(name);
  image.bytes_ = std::make_unique<std::string>(std::move(bytes));
  TRY_STATUS(image.check_header());
  image.elf_.reset(elf_memory(image.bytes_->data(), image.bytes_->size()));
  return finish(std::move(image));
}

Result<ElfImage> ElfImage::finish(ElfImage image) {
  Elf* elf = image.elf_.get();
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) return fail(image.path_ + " is not an ELF file");
  if (gelf_getehdr(elf, &image.header_) == nullptr) return fail(image.path_ + " has a broken ELF header");
  TRY_STATUS(image.check_sizes());
  for (size_t i = 0; i < image.segment_count(); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD) continue;
    const uint64_t behind_bytes = image.size_bytes() - std::min(image.size_bytes(), header.p_offset);
    image.segments_.push_back({.address = header.p_vaddr,
                               .file_offset = header.p_offset,
                               .file_size = std::min(header.p_filesz, behind_bytes),
                               .memory_size = header.p_memsz,
                               .executable = (header.p_flags & PF_X) != 0,
                               .writable = (header.p_flags & PF_W) != 0});
  }
  return image;
}

size_t ElfImage::segment_count() const {
  size_t count = 0;
  return elf_getphdrnum(elf_.get(), &count) == 0 ? count : 0;
}

tl::unexpected<Error> ElfImage::fail_too_many(std::string_view what) const {
  return fail(fmt::format("{} has too many {}", path_, what), kRefusedFile);
}

// Refuses what libelf would take much memory for. A program for the other byte order does not run here.
Status ElfImage::check_header() const {
  const std::string identity = bytes_at(0, EI_NIDENT);
  if (!identity.starts_with(ELFMAG)) return {};
  if (identity[EI_DATA] == ELFDATA2MSB)
    return fail(path_ + " has another byte order than the programs of this machine", kRefusedFile);
  const bool has_too_many = identity[EI_CLASS] == ELFCLASS32 ? counts_too_many<Elf32_Ehdr, Elf32_Shdr>(*this)
                                                             : counts_too_many<Elf64_Ehdr, Elf64_Shdr>(*this);
  return has_too_many ? fail_too_many("sections") : Status();
}

// What is read of a file is about as large as the file, unless its sections overlap.
Status ElfImage::check_sizes() const {
  Elf* elf = elf_.get();
  // What was checked before may have changed until libelf read it.
  size_t section_count = 0;
  if (elf_getshdrnum(elf, &section_count) != 0 || section_count > kMaxSections) return fail_too_many("sections");
  if (segment_count() > kMaxProgramHeaders) return fail_too_many("program headers");
  const uint64_t limit_bytes = 2 * size_bytes();
  uint64_t sections_bytes = 0, segments_bytes = 0;
  const auto add = [&](uint64_t& sum, uint64_t bytes) { sum += std::min(bytes, limit_bytes + 1); };
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type != SHT_NOBITS) add(sections_bytes, header.sh_size);
  }
  for (size_t i = 0; i < segment_count(); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type != PT_LOAD)
      add(segments_bytes, header.p_filesz);
  }
  if (sections_bytes > limit_bytes || segments_bytes > limit_bytes)
    return fail(path_ + " has sections that overlap", kRefusedFile);
  return {};
}

std::optional<uint64_t> ElfImage::offset_of_address(uint64_t address) const {
  for (const Segment& segment : segments_)
    if (segment.contains_address(address)) return segment.offset_of_address(address);
  return std::nullopt;
}

std::optional<uint64_t> ElfImage::address_of_offset(uint64_t file_offset) const {
  const Segment* segment = segment_at_offset(file_offset);
  if (segment == nullptr) return std::nullopt;
  return segment->address_of_offset(file_offset);
}

const Segment* ElfImage::segment_at_offset(uint64_t file_offset) const {
  for (const bool executable : {true, false})
    for (const Segment& segment : segments_)
      if (segment.executable == executable && segment.contains_offset(file_offset)) return &segment;
  return nullptr;
}

// Returns the build id in the notes at `offset`; "" if there is none of a size that linkers make.
std::string ElfImage::build_id_in(uint64_t offset, uint64_t notes_bytes, uint64_t alignment) const {
  const Elf_Type type = alignment == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
  Elf_Data* data = elf_getdata_rawchunk(elf_.get(), static_cast<int64_t>(offset), notes_bytes, type);
  const std::string_view notes = view_of(data);
  GElf_Nhdr note;
  size_t name = 0, content = 0;
  for (size_t at = 0; !notes.empty() && (at = gelf_getnote(data, at, &note, &name, &content)) > 0;) {
    const bool is_build_id = note.n_type == NT_GNU_BUILD_ID && is_text_at(notes, name, ELF_NOTE_GNU);
    if (is_build_id && note.n_descsz > 0 && note.n_descsz <= kMaxBuildIdBytes)
      return hexadecimal(notes.substr(content, note.n_descsz));
  }
  return "";
}

std::string ElfImage::build_id() const {
  uint64_t left_bytes = std::min(kMaxNotesBytes, size_bytes());
  std::string out;
  const auto search = [&](uint64_t offset, uint64_t notes_bytes, uint64_t alignment) {
    if (!out.empty() || offset > size_bytes()) return;
    const uint64_t read_bytes = std::min({notes_bytes, left_bytes, size_bytes() - offset});
    left_bytes -= read_bytes;
    if (read_bytes > 0) out = build_id_in(offset, read_bytes, alignment);
  };
  Elf* elf = elf_.get();
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_NOTE)
      search(header.sh_offset, header.sh_size, header.sh_addralign);
  }
  if (elf_nextscn(elf, nullptr) != nullptr) return out;
  for (size_t i = 0; i < segment_count(); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_NOTE)
      search(header.p_offset, header.p_filesz, header.p_align);
  }
  return out;
}

std::optional<std::pair<std::string, uint32_t>> ElfImage::debug_link() const {
  constexpr uint64_t kCrcBytes = 4;
  ByteReader reader(section_bytes(".gnu_debuglink", PATH_MAX + 2 * kCrcBytes));
  const std::string_view name = reader.take_string();
  reader.take_bytes(-reader.offset() % kCrcBytes);
  const auto crc = reader.take_le<uint32_t>();
  if (!reader.ok()) return std::nullopt;
  return std::pair{std::string(name), crc};
}

std::string_view ElfImage::section_bytes(std::string_view name, uint64_t limit_bytes) const {
  const std::string_view out = bytes_of(find_section(name), limit_bytes);
  memory_bytes_ += out.size();
  return out;
}

std::string ElfImage::unpacked_section(std::string_view name) const {
  Elf_Scn* section = find_section(name);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return "";
  if ((header.sh_flags & SHF_COMPRESSED) == 0) return std::string(section_bytes(name));
  GElf_Chdr packed;
  if (gelf_getchdr(section, &packed) == nullptr || packed.ch_size > max_binary_bytes()) return "";
  if (packed.ch_type == kCompressedByZstd) return unpack_zstd(elf_.get(), section).value_or("");
  if (elf_compress(section, 0, 0) < 0) return "";
  const Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return "";
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

bool ElfImage::is_in_file(Elf_Scn* section) {
  GElf_Shdr header;
  return section != nullptr && gelf_getshdr(section, &header) != nullptr && header.sh_type != SHT_NOBITS &&
         header.sh_size > 0;
}

bool ElfImage::has_section(std::string_view name) const { return is_in_file(find_section(name)); }
bool ElfImage::has_section(uint32_t type) const { return is_in_file(find_section(type)); }

std::string ElfImage::bytes_at(uint64_t file_offset, uint64_t size) const {
  if (file_offset > size_bytes() || size > size_bytes() - file_offset) return {};
  if (bytes_) return bytes_->substr(file_offset, size);
  std::string out = file_.read_at(file_offset, size).value_or("");
  return out.size() == size ? out : std::string();
}

std::optional<uint64_t> ElfImage::section_address(std::string_view name) const {
  Elf_Scn* section = find_section(name);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return std::nullopt;
  return header.sh_addr;
}

DynamicNeeds ElfImage::dynamic_needs() const {
  DynamicNeeds out;
  out.interpreter = section_bytes(".interp", PATH_MAX);
  if (!out.interpreter.empty() && out.interpreter.back() == '\0') out.interpreter.pop_back();
  Elf_Scn* section = find_section(SHT_DYNAMIC);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr || header.sh_size > kMaxDynamicBytes) return out;
  GElf_Shdr strings;
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || gelf_getshdr(elf_getscn(elf_.get(), header.sh_link), &strings) == nullptr) return out;
  // Without the other strings, which are those of all symbols.
  const auto text_of = [&](uint64_t offset, uint64_t limit_bytes) {
    const uint64_t left_bytes = strings.sh_size - std::min(strings.sh_size, offset);
    const std::string bytes = bytes_at(strings.sh_offset + offset, std::min(left_bytes, limit_bytes));
    return std::string(text_at(bytes, 0, limit_bytes).value_or(""));
  };
  std::optional<uint64_t> run_path;
  GElf_Dyn entry;
  for (int i = 0; gelf_getdyn(data, i, &entry) != nullptr && entry.d_tag != DT_NULL; ++i) {
    out.has_text_relocations |=
        entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_TEXTREL) != 0);
    if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) run_path = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED && out.libraries.size() < kMaxNeeded)
      out.libraries.push_back(text_of(entry.d_un.d_val, PATH_MAX));
  }
  if (run_path) out.run_path = text_of(*run_path, kMaxRunPathBytes);
  return out;
}

Elf_Scn* ElfImage::find_section(std::string_view name) const {
  size_t names_section = 0;
  if (elf_getshdrstrndx(elf_.get(), &names_section) != 0) return nullptr;
  const std::string_view names = bytes_of(elf_getscn(elf_.get(), names_section), kMaxSectionNamesBytes);
  for (Elf_Scn* section = elf_nextscn(elf_.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf_.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && is_text_at(names, header.sh_name, name)) return section;
  }
  return nullptr;
}

Elf_Scn* ElfImage::find_section(uint32_t type) const {
  for (Elf_Scn* section = elf_nextscn(elf_.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf_.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) return section;
  }
  return nullptr;
}

std::optional<SymbolTable> ElfImage::symbol_table(uint32_t section_type) const {
  Elf_Scn* section = find_section(section_type);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return std::nullopt;
  Elf_Data* symbols = elf_getdata(section, nullptr);
  if (symbols == nullptr || symbols->d_buf == nullptr) return std::nullopt;
  memory_bytes_ += symbols->d_size;
  Elf_Scn* strings = elf_getscn(elf_.get(), header.sh_link);
  if (GElf_Shdr text; gelf_getshdr(strings, &text) != nullptr) memory_bytes_ += text.sh_size;
  Elf_Scn* versions = section_type == SHT_DYNSYM ? find_section(SHT_GNU_versym) : nullptr;
  Elf_Data* version_data = versions == nullptr ? nullptr : elf_getdata(versions, nullptr);
  return SymbolTable(elf_.get(), symbols, strings, version_data);
}

}  // namespace espy::symbols

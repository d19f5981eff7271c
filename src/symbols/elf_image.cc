#include "symbols/elf_image.h"

#include <elfutils/libdwelf.h>

#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"
#include "symbols/archive.h"

namespace espy::symbols {
namespace {

// Bounds of what a file may claim. libelf allocates what a header says before it reads.
constexpr uint64_t kMaxSections = 1 << 16;
constexpr size_t kMaxSymbols = 8 << 20;
constexpr size_t kMaxNameBytes = 16 << 10;  // names may share a long string

}  // namespace

SymbolTable::SymbolTable(Elf* elf, Elf_Data* symbols, size_t strings_section, Elf_Data* versions)
    : elf_(elf), symbols_(symbols), versions_(versions), strings_section_(strings_section) {
  const size_t entry_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
  count_ = entry_bytes == 0 ? 0 : std::min(symbols->d_size / entry_bytes, kMaxSymbols);
}

std::optional<RawSymbol> SymbolTable::at(size_t index) const {
  GElf_Sym symbol;
  if (gelf_getsym(symbols_, static_cast<int>(index), &symbol) == nullptr) return std::nullopt;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return std::nullopt;
  const char* text = elf_strptr(elf_, strings_section_, symbol.st_name);
  if (text == nullptr || *text == '\0') return std::nullopt;

  RawSymbol out{.name = std::string_view(text, ::strnlen(text, kMaxNameBytes)),
                .address = symbol.st_value,
                .size = symbol.st_size,
                .type = static_cast<unsigned char>(GELF_ST_TYPE(symbol.st_info)),
                .is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL};
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
  image.file_ = std::move(file);
  TRY_STATUS(image.check_counts());
  image.elf_.reset(elf_begin(image.file_.fd.get(), ELF_C_READ, nullptr));
  return finish(std::move(image));
}

Result<ElfImage> ElfImage::from_bytes(std::string bytes, std::string name) {
  elf_version(EV_CURRENT);
  ElfImage image;
  image.path_ = std::move(name);
  image.bytes_ = std::make_unique<std::string>(std::move(bytes));
  TRY_STATUS(image.check_counts());
  image.elf_.reset(elf_memory(image.bytes_->data(), image.bytes_->size()));
  return finish(std::move(image));
}

Result<ElfImage> ElfImage::finish(ElfImage image) {
  Elf* elf = image.elf_.get();
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) return fail(image.path_ + " is not an ELF file");
  if (gelf_getehdr(elf, &image.header_) == nullptr) return fail(image.path_ + " has a broken ELF header");
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) count = 0;
  TRY_STATUS(image.check_sizes());
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD) continue;
    image.segments_.push_back({.address = header.p_vaddr,
                               .file_offset = header.p_offset,
                               .file_size = header.p_filesz,
                               .memory_size = header.p_memsz,
                               .executable = (header.p_flags & PF_X) != 0});
  }
  return image;
}

// More sections than the header can count are counted by the first section header, which gives the program headers
// their number, too.
Status ElfImage::check_counts() const {
  const auto header = load_struct<Elf64_Ehdr>(bytes_at(0, sizeof(Elf64_Ehdr)), 0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shoff == 0) return {};
  if (header->e_shnum != 0 && header->e_phnum != PN_XNUM) return {};
  const auto first = load_struct<Elf64_Shdr>(bytes_at(header->e_shoff, sizeof(Elf64_Shdr)), 0);
  if (first && (first->sh_size > kMaxSections || first->sh_info > kMaxSections))
    return fail(path_ + " has too many sections", kRefusedFile);
  return {};
}

// What is read of a file is about as large as the file, unless its sections overlap.
Status ElfImage::check_sizes() const {
  Elf* elf = elf_.get();
  const uint64_t limit_bytes = 2 * size_bytes();
  uint64_t sections_bytes = 0, segments_bytes = 0;
  const auto add = [&](uint64_t& sum, uint64_t bytes) { sum += std::min(bytes, limit_bytes + 1); };
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type != SHT_NOBITS) add(sections_bytes, header.sh_size);
  }
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) count = 0;
  for (size_t i = 0; i < count; ++i) {
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

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string ElfImage::build_id() const {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf_.get(), &bytes);
  return size <= 0 ? "" : hexadecimal({static_cast<const char*>(bytes), static_cast<size_t>(size)});
}

std::optional<std::pair<std::string, uint32_t>> ElfImage::debug_link() const {
  GElf_Word crc = 0;
  const char* name = dwelf_elf_gnu_debuglink(elf_.get(), &crc);
  if (name == nullptr) return std::nullopt;
  return std::pair{std::string(name), crc};
}

std::string_view ElfImage::section_bytes(std::string_view name) const {
  Elf_Scn* section = find_section(name);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) return {};
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  note_read(header);
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

std::string ElfImage::unpacked_section(std::string_view name) const {
  Elf_Scn* section = find_section(name);
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return "";
  if ((header.sh_flags & SHF_COMPRESSED) == 0) return std::string(section_bytes(name));
  GElf_Chdr packed;
  if (gelf_getchdr(section, &packed) == nullptr || packed.ch_size > max_binary_bytes()) return "";
  if (elf_compress(section, 0, 0) < 0) return "";
  const Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return "";
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

bool ElfImage::has_section(std::string_view name) const {
  Elf_Scn* section = find_section(name);
  GElf_Shdr header;
  return section != nullptr && gelf_getshdr(section, &header) != nullptr && header.sh_type != SHT_NOBITS &&
         header.sh_size > 0;
}

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
  out.interpreter = section_bytes(".interp");
  if (!out.interpreter.empty() && out.interpreter.back() == '\0') out.interpreter.pop_back();
  Elf_Scn* section = find_section(SHT_DYNAMIC);
  GElf_Shdr header;
  Elf_Data* data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
  if (data == nullptr || gelf_getshdr(section, &header) == nullptr) return out;
  GElf_Dyn entry;
  for (int i = 0; gelf_getdyn(data, i, &entry) != nullptr && entry.d_tag != DT_NULL; ++i) {
    const bool is_path = entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH;
    const char* text =
        is_path || entry.d_tag == DT_NEEDED ? elf_strptr(elf_.get(), header.sh_link, entry.d_un.d_val) : nullptr;
    if (text != nullptr && is_path) out.run_path = text;
    if (text != nullptr && !is_path) out.libraries.emplace_back(text);
  }
  return out;
}

Elf_Scn* ElfImage::find_section(std::string_view name) const {
  size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return nullptr;
  for (Elf_Scn* section = elf_nextscn(elf_.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf_.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* text = elf_strptr(elf_.get(), names, header.sh_name);
    if (text != nullptr && name == text) return section;
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
  note_read(header);
  if (GElf_Shdr strings; gelf_getshdr(elf_getscn(elf_.get(), header.sh_link), &strings) != nullptr) note_read(strings);
  Elf_Scn* versions = section_type == SHT_DYNSYM ? find_section(SHT_GNU_versym) : nullptr;
  Elf_Data* version_data = versions == nullptr ? nullptr : elf_getdata(versions, nullptr);
  return SymbolTable(elf_.get(), symbols, header.sh_link, version_data);
}

}  // namespace espy::symbols

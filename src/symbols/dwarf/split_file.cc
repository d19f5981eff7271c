#include "symbols/dwarf/split_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <thread>

#include "base/fd.h"
#include "symbols/dwarf/libdw.h"

namespace espy::symbols::dwarf {

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

bool leads_up(const fs::path& path) {
  return std::ranges::any_of(path, [](const fs::path& part) { return part == ".."; });
}

bool write_file(const fs::path& path, const std::string& bytes) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return fd.valid() && write_all(fd.get(), bytes).has_value();
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
  std::string content, names(1, '\0'), headers(sizeof(Elf64_Shdr), '\0');
  const auto add = [&](const std::string& name, uint32_t type) {
    Elf64_Shdr section = {};
    section.sh_name = static_cast<uint32_t>(names.size());
    section.sh_type = type;
    section.sh_offset = sizeof(header) + content.size();
    section.sh_addralign = 1;
    names += name + '\0';
    return section;
  };
  for (const auto& [name, bytes] : sections) {
    Elf64_Shdr section = add(name, SHT_PROGBITS);
    section.sh_size = bytes.size();
    append(headers, section);
    content += bytes;
  }
  Elf64_Shdr section = add(".shstrtab", SHT_STRTAB);
  section.sh_size = names.size();
  append(headers, section);
  content += names;
  content.resize((content.size() + 7) / 8 * 8);
  header.e_shoff = sizeof(header) + content.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + content + headers;
}

std::string read_split_file(const std::string& path) {
  const Result<ElfImage> image = ElfImage::open(path);
  if (!image) return "";
  std::vector<std::pair<std::string, std::string>> sections;
  for (const std::string_view name : kSections)
    if (image->has_section(name)) sections.emplace_back(name, image->unpacked_section(name));
  return make_elf(sections, image->machine());
}

bool has_split_unit(std::string elf, uint64_t unit_id) {
  const std::unique_ptr<Elf, decltype(&elf_end)> image(elf_memory(elf.data(), elf.size()), &elf_end);
  if (!image) return false;
  const std::unique_ptr<Dwarf, decltype(&dwarf_end)> dwarf(begin_dwarf(image.get()), &dwarf_end);
  if (!dwarf) return false;
  Dwarf_CU* unit = nullptr;
  uint8_t type = 0;
  while (dwarf_get_units(dwarf.get(), unit, &unit, nullptr, &type, nullptr, nullptr) == 0) {
    uint64_t id = 0;
    if (type == DW_UT_split_compile &&
        dwarf_cu_info(unit, nullptr, nullptr, nullptr, nullptr, &id, nullptr, nullptr) == 0 && id == unit_id)
      return true;
  }
  return false;
}

Result<SplitDirectory> SplitDirectory::make() { return SplitDirectory(TRY(ScratchDirectory::make())); }

bool SplitDirectory::show(const std::string& elf, const std::string& name, const std::function<bool()>& read) const {
  const fs::path named = name;
  const fs::path copy = path() / named.relative_path();
  if (name.empty() || leads_up(named) || !write_file(copy, elf)) return false;
  const bool out = named.is_absolute() ? run_in_root(path(), read) : read();
  ::unlink(copy.c_str());
  return out;
}

void SplitDirectory::hide(const std::function<bool()>& read) const { run_in_root(path(), read); }

}  // namespace espy::symbols::dwarf

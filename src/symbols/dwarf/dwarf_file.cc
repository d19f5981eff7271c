#include "symbols/dwarf/dwarf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/strings.h"
#include "symbols/debug_file.h"
#include "symbols/dwarf/passing.h"
#include "symbols/dwarf/scopes.h"
#include "symbols/dwarf/split_file.h"

namespace espy::symbols::dwarf {

namespace {

// Must not return (elfutils/libdw.h, dwarf_new_oom_handler; its type has the attribute, which clang does not find in
// [[noreturn]]). libdw is C, but compiled with unwind tables.
__attribute__((noreturn)) void on_out_of_memory() { throw std::bad_alloc(); }

}  // namespace

Dwarf* begin_dwarf(Elf* elf) {
  Dwarf* out = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  if (out != nullptr) throw_if_out_of_memory(out);
  return out;
}

void throw_if_out_of_memory(Dwarf* dwarf) { dwarf_new_oom_handler(dwarf, on_out_of_memory); }

namespace {

constexpr int kMaxReferences = 64;
// Entries of malformed debug information can share a name of megabytes.
constexpr size_t kMaxNameBytes = 8 << 10;
// They can share ranges, too: of one entry, and of all units and functions. Lists of ranges are counted with what they
// have for discarded code: of a unit that can be most, of a function it is all or nothing.
constexpr size_t kMaxUnitRanges = 1 << 16;
constexpr size_t kMaxDiscardedRanges = 1 << 10;
constexpr size_t kMaxFirstRanges = 16;  // until one that is not discarded
// Of one line table, which belongs to one source file, or with LTO to a part of a program.
constexpr uint64_t kMaxLineRows = 4 << 20;
constexpr uint64_t kMaxLineHeaderBytes = 4 << 20;
constexpr size_t kLeastRangeSteps = 4 << 20;
constexpr uint64_t kBytesPerRangeStep = 16;  // of debug information
constexpr size_t kNamesTimes = 4;            // the table of names, for the names of all symbols

Dwarf_Die* mutable_die(const Dwarf_Die& die) { return const_cast<Dwarf_Die*>(&die); }

bool has_debug_info(const ElfImage& image) {
  return image.has_section(".debug_info") || image.has_section(".zdebug_info");
}

tl::unexpected<Error> no_debug_info(const ElfImage& image) {
  const std::string id = image.build_id();
  std::string hint = "compile it with -g, or install its debug package (-dbgsym, -debuginfo)";
  if (!id.empty()) hint += ", whose file is .build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
  return fail(image.path() + " has no debug information", 0, hint + "; `--debuginfo DIR` says where it is");
}

// Returns the package of .dwo files of a program: NAME.dwp in the directory of the program or of its debug file, or in
// one of `debug_directories`. Null if there is none.
std::unique_ptr<Package> find_package(const ElfImage& image, const std::string& debug_path,
                                      const std::vector<std::string>& debug_directories) {
  std::vector<std::string> paths = {image.path() + ".dwp", debug_path + ".dwp"};
  for (const std::string& directory : debug_directories)
    paths.push_back(directory + "/" + std::string(base_name(image.path())) + ".dwp");
  for (const std::string& path : paths) {
    if (!is_file(path)) continue;
    if (Result<Package> found = Package::open(path)) return std::make_unique<Package>(std::move(*found));
  }
  return nullptr;
}

// Returns the size of a section once it is decompressed. Sections named .zdebug_* begin with "ZLIB" and the size, a
// number of eight bytes with the highest byte first.
uint64_t unpacked_bytes(Elf_Scn* section, const GElf_Shdr& header, std::string_view name, const Elf_Data& raw) {
  if (GElf_Chdr packed; (header.sh_flags & SHF_COMPRESSED) != 0 && gelf_getchdr(section, &packed) != nullptr)
    return packed.ch_size;
  if (!name.starts_with(".z") || raw.d_size < 12) return header.sh_size;
  uint64_t out = 0;
  for (size_t i = 4; i < 12; ++i) out = out << 8 | static_cast<const unsigned char*>(raw.d_buf)[i];
  return out;
}

bool is_debug_section(const char* name) {
  return name != nullptr && std::string_view(name).find("debug") != std::string_view::npos;
}

// Reads the sections of debug information into the memory of libelf, as libdw will, and returns how much they take
// once they are decompressed.
uint64_t read_sections(Elf* elf) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return 0;
  uint64_t out = 0;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    const char* name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : nullptr;
    if (!is_debug_section(name)) continue;
    const Elf_Data* raw = elf_rawdata(section, nullptr);
    if (raw != nullptr && raw->d_buf != nullptr)
      out += std::min(unpacked_bytes(section, header, name, *raw), max_binary_bytes() + 1);
  }
  return out;
}

// Returns what the sections with one of these names contain, as libdw has read them, without empty ones; nullopt if the
// names of sections cannot be read.
std::optional<std::vector<std::string_view>> contents_of(Elf* elf, std::span<const std::string_view> wanted) {
  size_t names = 0;
  if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0) return std::nullopt;
  std::vector<std::string_view> out;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    const char* name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : nullptr;
    if (name == nullptr || std::ranges::find(wanted, name) == wanted.end()) continue;
    const Elf_Data* data = elf_getdata(section, nullptr);
    if (data != nullptr && data->d_buf != nullptr && data->d_size > 0)
      out.emplace_back(static_cast<const char*>(data->d_buf), data->d_size);
  }
  return out;
}

// Whether the sections of strings end in a NUL. libdw (0.188) reads names of source files to their NUL, also behind the
// end of the section.
bool has_terminated_strings(Elf* elf) {
  constexpr std::string_view kNames[] = {".debug_str",       ".debug_line_str", ".zdebug_str",
                                         ".zdebug_line_str", ".debug_str.dwo",  ".debug_line_str.dwo"};
  const auto sections = contents_of(elf, kNames);
  return sections && std::ranges::all_of(*sections, [](std::string_view text) { return text.ends_with('\0'); });
}

// Returns the line tables; empty if there are none.
std::string_view line_section(Elf* elf) {
  constexpr std::string_view kNames[] = {".debug_line", ".zdebug_line", ".debug_line.dwo"};
  const auto sections = contents_of(elf, kNames);
  return sections && !sections->empty() ? sections->front() : std::string_view();
}

std::string text_of(const Dwarf_Die& die, unsigned name) {
  std::optional<Dwarf_Attribute> found = own_attribute(die, name);
  const char* text = found ? dwarf_formstring(&*found) : nullptr;
  return text == nullptr ? "" : text;
}

// Returns the name of the .dwo file of a skeleton unit.
std::string name_of_split(const Dwarf_Die& skeleton) {
  std::string name = text_of(skeleton, DW_AT_dwo_name);
  return name.empty() ? text_of(skeleton, DW_AT_GNU_dwo_name) : name;
}

// The same as a path, as compiled.
std::string path_of_split(const Dwarf_Die& skeleton) {
  std::string name = name_of_split(skeleton);
  const std::string directory = text_of(skeleton, DW_AT_comp_dir);
  return name.starts_with('/') || directory.empty() ? name : directory + "/" + name;
}

// Returns "/proc/PID/root" for a file that was opened through a process, otherwise "".
std::string root_of(const std::string& path) {
  constexpr std::string_view kProc = "/proc/";
  const size_t end = path.find_first_not_of("0123456789", kProc.size());
  const bool is_of_process = path.starts_with(kProc) && end != std::string::npos && end > kProc.size();
  return is_of_process && path[end] == '/' ? path.substr(0, end) + "/root" : "";
}

// Returns where the file is that `path` names. What a program in another root names is in that root.
std::string named_by(const std::string& path, const std::string& name) {
  const std::string root = root_of(path);
  if (name.starts_with('/')) return root + name;
  const std::string directory = directory_of(path);
  return (directory.starts_with(root) ? "" : root) + directory + name;
}

}  // namespace

std::optional<Dwarf_Attribute> attribute(const Dwarf_Die& die, unsigned name) {
  TimeLimit::check();
  Dwarf_Attribute out;
  if (dwarf_attr_integrate(mutable_die(die), name, &out) == nullptr) return std::nullopt;
  return out;
}

std::optional<Dwarf_Attribute> own_attribute(const Dwarf_Die& die, unsigned name) {
  TimeLimit::check();
  Dwarf_Attribute out;
  if (dwarf_attr(mutable_die(die), name, &out) == nullptr) return std::nullopt;
  return out;
}

std::string_view linkage_name(const Dwarf_Die& die) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    std::optional<Dwarf_Attribute> found = attribute(die, name);
    const char* text = found ? dwarf_formstring(&*found) : nullptr;
    if (text != nullptr) return {text, ::strnlen(text, kMaxNameBytes)};
  }
  return {};
}

std::optional<Dwarf_Die> unit_of(const Dwarf_Die& die) {
  Dwarf_Die unit;
  if (dwarf_diecu(mutable_die(die), &unit, nullptr, nullptr) == nullptr) return std::nullopt;
  return unit;
}

std::optional<uint64_t> number(const Dwarf_Die& die, unsigned name) {
  std::optional<Dwarf_Attribute> found = attribute(die, name);
  Dwarf_Word out = 0;
  if (!found || dwarf_formudata(&*found, &out) != 0) return std::nullopt;
  return out;
}

bool is_signed(const Dwarf_Attribute& constant) {
  const unsigned form = dwarf_whatform(const_cast<Dwarf_Attribute*>(&constant));
  return form == DW_FORM_sdata || form == DW_FORM_implicit_const;
}

// GCC writes 200 as the byte 0xc8 of DW_FORM_data1, which dwarf_formsdata() takes for -56.
std::optional<int64_t> integer(const Dwarf_Attribute& constant) {
  Dwarf_Attribute value = constant;
  Dwarf_Sword number = 0;
  Dwarf_Word magnitude = 0;
  if (is_signed(constant)) return dwarf_formsdata(&value, &number) == 0 ? std::optional(number) : std::nullopt;
  return dwarf_formudata(&value, &magnitude) == 0 ? std::optional(static_cast<int64_t>(magnitude)) : std::nullopt;
}

bool flag(const Dwarf_Die& die, unsigned name) {
  std::optional<Dwarf_Attribute> found = attribute(die, name);
  bool out = false;
  return found && dwarf_formflag(&*found, &out) == 0 && out;
}

std::string_view name_of(const Dwarf_Die& die) {
  const char* name = dwarf_diename(mutable_die(die));
  return name == nullptr ? std::string_view() : std::string_view(name, ::strnlen(name, kMaxNameBytes));
}

std::string_view producer_of(const Dwarf_Die& die) {
  const std::optional<Dwarf_Die> unit = unit_of(die);
  std::optional<Dwarf_Attribute> found = unit ? own_attribute(*unit, DW_AT_producer) : std::nullopt;
  const char* text = found ? dwarf_formstring(&*found) : nullptr;
  return text == nullptr ? "" : text;
}

std::optional<Dwarf_Die> reference(const Dwarf_Die& die, unsigned name) {
  std::optional<Dwarf_Attribute> found = attribute(die, name);
  Dwarf_Die out;
  if (!found || dwarf_formref_die(&*found, &out) == nullptr) return std::nullopt;
  return out;
}

std::vector<Dwarf_Die> children(const Dwarf_Die& die) {
  std::vector<Dwarf_Die> out;
  Dwarf_Die child;
  if (dwarf_child(mutable_die(die), &child) != 0) return out;
  // A sibling comes later, unless an attribute of a malformed file refers to an earlier one.
  const void* last = nullptr;
  do {
    TimeLimit::check();
    last = child.addr;
    out.push_back(child);
  } while (dwarf_siblingof(&child, &child) == 0 && std::less<>()(last, child.addr));
  return out;
}

std::vector<Dwarf_Die> first_children(const Dwarf_Die& die, size_t limit) {
  std::vector<Dwarf_Die> out;
  Dwarf_Die at = die;
  int status = dwarf_child(&at, &at);
  for (; status == 0 && out.size() < limit; status = dwarf_siblingof(&at, &at)) out.push_back(at);
  return out;
}

std::vector<Subtree> child_subtrees(const Subtree& scope) {
  std::vector<Subtree> out;
  for (const Dwarf_Die& child : children(scope.die)) {
    if (scope.end != nullptr && !std::less<>()(child.addr, scope.end)) break;
    if (!out.empty()) out.back().end = child.addr;
    out.push_back({child, scope.end});
  }
  return out;
}

int tag(const Dwarf_Die& die) { return dwarf_tag(mutable_die(die)); }

namespace {

struct RangeLimits {
  size_t ranges = kMaxUnitRanges;
  size_t discarded = kMaxDiscardedRanges;
};

RangeList read_ranges(const Dwarf_Die& die, RangeLimits most) {
  RangeList out;
  Dwarf_Addr base = 0, low = 0, high = 0;
  ptrdiff_t offset = 0;
  TimeLimit::check();  // one call can pass over any number of base addresses
  while (out.ranges.size() < most.ranges && out.steps - out.ranges.size() < most.discarded &&
         (offset = dwarf_ranges(mutable_die(die), offset, &base, &low, &high)) > 0) {
    ++out.steps;
    // Linkers set the ranges of discarded code to 0.
    if (low != 0 && high > low) out.ranges.push_back({low, high});
  }
  return out;
}

}  // namespace

RangeList range_list_of(const Dwarf_Die& die) { return read_ranges(die, {}); }

std::vector<Range> ranges_of(const Dwarf_Die& die) { return range_list_of(die).ranges; }

std::optional<Range> first_range(const Dwarf_Die& die) {
  const std::vector<Range> ranges = read_ranges(die, {.ranges = 1, .discarded = kMaxFirstRanges}).ranges;
  return ranges.empty() ? std::nullopt : std::optional(ranges.front());
}

SortedRanges::SortedRanges(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, &Range::low);
  for (const Range& range : ranges) {
    if (ranges_.empty() || ranges_.back().high < range.low)
      ranges_.push_back(range);
    else
      ranges_.back().high = std::max(ranges_.back().high, range.high);
  }
}

bool SortedRanges::contains(uint64_t address) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::low);
  return after != ranges_.begin() && std::prev(after)->contains(address);
}

namespace {

constexpr uint64_t kBytesPerByte = 16;

// Returns how much memory the debug information of a file may take, decompressed and read. Compression makes a third to
// a quarter of it, and reading all of it several times as much.
uint64_t max_bytes_of(const ElfImage& image) {
  constexpr uint64_t kLeastBytes = 256 << 20;
  return kLeastBytes + image.file().size_bytes * kBytesPerByte;
}

// Returns how much of that may be its sections alone, which libdw decompresses at once.
uint64_t max_section_bytes_of(const ElfImage& image) {
  constexpr uint64_t kLeastBytes = 32 << 20;
  return kLeastBytes + image.file().size_bytes * kBytesPerByte;
}

}  // namespace

File::Opened File::open_elf(const ElfImage& image) {
  Opened out{.fd = OwnedFd(::fcntl(image.file().fd.get(), F_DUPFD_CLOEXEC, 0))};
  if (out.fd.valid()) out.elf = elf_begin(out.fd.get(), ELF_C_READ, nullptr);
  return out;
}

// Gives the sections that libelf may not be able to decompress their content, in its memory. Returns false if that of
// one is malformed, or compressed in a way that nobody here knows. read_sections() has told how much they take.
bool File::unpack(Opened& opened) {
  size_t names = 0;
  if (elf_getshdrstrndx(opened.elf, &names) != 0) return true;
  bool out = true;
  for (Elf_Scn* section = elf_nextscn(opened.elf, nullptr); section != nullptr;
       section = elf_nextscn(opened.elf, section)) {
    GElf_Shdr header;
    GElf_Chdr packed;
    if (gelf_getshdr(section, &header) == nullptr || (header.sh_flags & SHF_COMPRESSED) == 0) continue;
    if (!is_debug_section(elf_strptr(opened.elf, names, header.sh_name))) continue;
    if (gelf_getchdr(section, &packed) == nullptr || packed.ch_type == ELFCOMPRESS_ZLIB) continue;
    std::optional<std::string> content = unpack_zstd(opened.elf, section);
    Elf_Data* data = content ? elf_getdata(section, nullptr) : nullptr;
    Elf_Data* raw = content ? elf_rawdata(section, nullptr) : nullptr;
    header.sh_flags &= ~static_cast<uint64_t>(SHF_COMPRESSED);
    header.sh_size = content ? content->size() : 0;
    if (data == nullptr || raw == nullptr || gelf_update_shdr(section, &header) == 0) {
      out = false;
      continue;
    }
    std::string& kept = opened.unpacked.emplace_back(std::move(*content));
    for (Elf_Data* each : {data, raw}) {
      each->d_buf = kept.data();
      each->d_size = kept.size();
    }
  }
  return out;
}

Result<std::unique_ptr<File>> File::open(const ElfImage& image, const std::vector<std::string>& debug_directories) {
  std::unique_ptr<File> file(new File);
  file->path_ = image.path();
  file->disk_bytes_ = disk_bytes_of(image.file());
  std::optional<ElfImage> separate;
  if (!has_debug_info(image)) {
    if (auto found = find_debug_file(image, debug_directories)) separate = std::move(*found);
    if (!separate || !has_debug_info(*separate)) return no_debug_info(image);
    file->path_ = separate->path();
    file->debug_ = open_elf(*separate);
    file->disk_bytes_ += debug_bytes_of(separate->file());
  }
  if (image.offset_in_archive() != 0) return fail("debug information of files in archives is not read");
  file->code_ = open_elf(image);
  // Without the section libdw (0.188) reads the whole file into memory, and libelf then leaks the sections.
  file->has_unread_eh_frame_ = file->code_.elf != nullptr && image.has_section(".eh_frame");
  Elf* elf = file->debug_.elf != nullptr ? file->debug_.elf : file->code_.elf;
  file->package_ = find_package(image, file->path_, debug_directories);
  if (file->package_) file->package_bytes_ = debug_bytes_of(file->package_->file());
  // Skeleton units refer to addresses by their index in this section.
  if ((separate ? *separate : image).has_section(".debug_addr"))
    if (auto files = SplitFiles::make()) file->split_files_ = std::make_unique<SplitFiles>(std::move(*files));
  if (file->split_files_) {
    file->split_files_->allow_for(image.file());
    if (separate) file->split_files_->allow_for(separate->file());
    if (file->package_) file->split_files_->allow_for(file->package_->file());
  }
  file->memory_bytes_ = elf == nullptr ? 0 : read_sections(elf);
  file->range_steps_left_ = kLeastRangeSteps + file->memory_bytes_ / kBytesPerRangeStep;
  file->max_bytes_ = max_binary_bytes();
  if (!file->split_files_)
    file->max_bytes_ = std::min(file->max_bytes_, max_bytes_of(image) + (separate ? max_bytes_of(*separate) : 0));
  const uint64_t most = std::min(file->max_bytes_, max_section_bytes_of(separate ? *separate : image));
  if (file->memory_bytes_ > most) return takes_too_much_memory("the debug information of " + file->path_);
  Opened& opened = file->debug_.elf != nullptr ? file->debug_ : file->code_;
  if (elf != nullptr) {
    if (!unpack(opened))
      return fail("the debug information of " + file->path_ + " is malformed, or not compressed by zlib or zstd",
                  kRefusedFile);
    file->dwarf_ = file->begin(opened);
  }
  if (file->dwarf_ == nullptr)
    return fail("cannot read the debug information of " + file->path_ + ": " + dwarf_errmsg(-1));
  if (!has_terminated_strings(dwarf_getelf(file->dwarf_)))
    return fail("the debug information of " + file->path_ + " is malformed", kRefusedFile);
  file->add_supplement(debug_directories);
  file->is_position_independent_ = image.type() == ET_DYN;
  return file;
}

uint64_t File::disk_bytes() const { return disk_bytes_ + (split_files_ ? split_files_->debug_bytes() : 0); }

// libdw searches .dwo files in the directory that the descriptor of the ELF file leads to. Once the sections are in
// memory, a file in a directory of espy's own can have the descriptor for the moment.
Dwarf* File::begin(const Opened& opened) const {
  const auto begin = [&] { return begin_dwarf(opened.elf); };
  if (!split_files_) return begin();
  const OwnedFd own(::fcntl(opened.fd.get(), F_DUPFD_CLOEXEC, 0));
  const std::string name = split_files_->directory() + "/.binary";
  const OwnedFd inside(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!own.valid() || !inside.valid() || ::dup3(inside.get(), opened.fd.get(), O_CLOEXEC) < 0) return begin();
  Dwarf* out = begin();
  ::dup3(own.get(), opened.fd.get(), O_CLOEXEC);
  ::unlink(name.c_str());
  return out;
}

File::~File() {
  if (eh_frame_ != nullptr) dwarf_cfi_end(eh_frame_);
  dwarf_end(dwarf_);
  dwarf_end(supplement_dwarf_);
  if (supplement_.elf != nullptr) elf_end(supplement_.elf);
  if (debug_.elf != nullptr) elf_end(debug_.elf);
  if (code_.elf != nullptr) elf_end(code_.elf);
}

// libdw would open the file by the path that the section names.
void File::add_supplement(const std::vector<std::string>& debug_directories) {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(dwarf_, &name, &id);
  constexpr ssize_t kMaxIdBytes = 64;
  if (id_bytes <= 0 || id_bytes > kMaxIdBytes) return;
  const std::string build_id = hexadecimal({static_cast<const char*>(id), static_cast<size_t>(id_bytes)});
  std::vector<std::string> paths = {named_by(path_, name)};
  for (const std::string& directory : debug_directories)
    if (build_id.size() > 2)
      paths.push_back(directory + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug");
  for (const std::string& path : paths) {
    const Result<ElfImage> image = ElfImage::open(path);
    if (!image || image->build_id() != build_id || !has_debug_info(*image)) continue;
    supplement_ = open_elf(*image);
    if (supplement_.elf != nullptr && read_sections(supplement_.elf) <= max_section_bytes_of(*image))
      unpack(supplement_);
    max_bytes_ = std::min(max_binary_bytes(), max_bytes_ + max_bytes_of(*image));
    supplement_dwarf_ = begin_dwarf(supplement_.elf);
    if (supplement_dwarf_ != nullptr) disk_bytes_ += debug_bytes_of(image->file());
    break;
  }
  if (supplement_dwarf_ == nullptr) {
    if (supplement_.elf != nullptr) elf_end(supplement_.elf);
    no_supplement_ = std::make_unique<std::string>(make_elf({{".debug_info", std::string(1, '\0')}}, EM_NONE));
    supplement_.elf = elf_memory(no_supplement_->data(), no_supplement_->size());
    supplement_dwarf_ = begin_dwarf(supplement_.elf);
  }
  if (supplement_dwarf_ == nullptr) return;
  dwarf_setalt(dwarf_, supplement_dwarf_);
  dwarf_setalt(supplement_dwarf_, supplement_dwarf_);  // it has none, and none is searched for it
}

std::vector<Unit>& File::units() {
  if (has_read_units_) return units_;
  std::vector<Unit> found;
  std::vector<UnitCode> found_code;
  bool has_split = false;
  size_t steps_left = range_steps_left_;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  uint8_t type = 0;
  while (dwarf_get_units(dwarf_, unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    // For an attribute that a skeleton lacks, libdw opens the .dwo file by itself.
    if (type == DW_UT_skeleton && (!split_files_ || !own_attribute(die, DW_AT_comp_dir))) continue;
    has_split |= type == DW_UT_skeleton;
    RangeList code = read_ranges(die, {.ranges = std::min(kMaxUnitRanges, steps_left), .discarded = steps_left});
    steps_left -= std::min(code.steps, steps_left);
    for (const Range& range : code.ranges) found_code.push_back({range, found.size()});
    found.push_back({die, std::move(code.ranges), type == DW_UT_skeleton});
  }
  std::ranges::stable_sort(found_code, {}, [](const UnitCode& code) { return code.range.low; });
  uint64_t highest = 0;
  for (UnitCode& code : found_code) code.highest = highest = std::max(highest, code.range.high);
  units_ = std::move(found);
  unit_code_ = std::move(found_code);
  has_split_units_ = has_split;
  range_steps_left_ = steps_left;
  has_read_units_ = true;
  return units_;
}

// Returns the .dwo file with the unit of that id; null if it is not found. `compiled`: its path, as compiled.
SplitFile* File::find_split_file(const std::string& name, const std::string& compiled, uint64_t id) {
  for (const std::string& path : {named_by(path_, name), root_of(path_).empty() ? compiled : named_by(path_, compiled)})
    if (SplitFile* found = split_files_->find(path, id)) return found;
  return nullptr;
}

bool File::has_refused_parts() const { return has_met_large_lines_ || (split_files_ && split_files_->has_refused()); }

void File::complete(Unit& unit) {
  if (!unit.is_skeleton) return;
  // Reading these can take too long; what follows is not interrupted.
  const std::string name = name_of_split(unit.die), path = path_of_split(unit.die);
  unit.is_skeleton = false;
  uint64_t id = 0;
  Dwarf_Die split = {};
  const auto read = [&](Dwarf_Die* part) {
    return dwarf_cu_info(unit.die.cu, nullptr, nullptr, nullptr, part, &id, nullptr, nullptr) == 0;
  };
  std::optional<SplitFile> packed;
  SplitFile* file = nullptr;
  if (split_files_ && read(nullptr)) {
    if (package_) packed = split_files_->add(id, [&] { return package_->unit(id); });
    if (packed) disk_bytes_ += std::exchange(package_bytes_, 0);
    file = packed ? &*packed : find_split_file(name, path, id);
  }
  const auto read_part = [&] {
    return read(&split) && dwarf_tag(&split) != DW_TAG_invalid &&
           has_terminated_strings(dwarf_getelf(dwarf_cu_getdwarf(split.cu)));
  };
  if (file != nullptr && split_files_->show(*file, name, read_part)) {
    throw_if_out_of_memory(dwarf_cu_getdwarf(split.cu));
    skeletons_.emplace(split.cu, unit.die);
    unit.die = split;
    return;
  }
  if (!has_refused_parts()) unit.missing_part = path;
  if (split_files_) split_files_->hide(read_part);
}

Unit* File::unit_at(uint64_t address) {
  units();
  Unit* unit = known_unit_at(address);
  if (unit != nullptr) complete(*unit);
  return unit;
}

Unit* File::known_unit_at(uint64_t address) {
  auto code = std::ranges::upper_bound(unit_code_, address, {}, [](const UnitCode& each) { return each.range.low; });
  while (code != unit_code_.begin() && std::prev(code)->highest > address) {
    --code;
    if (code->range.contains(address)) return &units_[code->unit];
  }
  return nullptr;
}

bool File::has_bounded_lines(const Dwarf_Die& unit) {
  if (const auto known = bounded_lines_.find(unit.cu); known != bounded_lines_.end()) return known->second;
  return bounded_lines_[unit.cu] = has_bounded_table(unit);
}

// Tables of malformed debug information overlap, so their bytes are counted.
bool File::is_bounded(std::string_view line_section, uint64_t offset) {
  constexpr uint64_t kLeastBytes = 64 << 20, kTimes = 4;
  const auto [known, is_new] = bounded_tables_.try_emplace({line_section.data(), offset}, false);
  if (!is_new) return known->second;
  line_bytes_ += line_table_bytes(line_section, offset);
  const bool is_too_much = line_bytes_ > kLeastBytes + kTimes * memory_bytes_;
  const auto size = is_too_much ? std::nullopt : line_table_size(line_section, offset);
  const bool is_large = size && (size->header_bytes > kMaxLineHeaderBytes || size->rows > kMaxLineRows);
  has_met_large_lines_ |= is_large || is_too_much;
  return known->second = size && !is_large;
}

// The lines of a unit in a .dwo file are those of its skeleton; the .dwo file has one table, with names of files alone.
bool File::has_bounded_table(const Dwarf_Die& unit) {
  uint8_t type = 0;
  Dwarf_Die owner = unit;
  if (dwarf_cu_info(unit.cu, nullptr, &type, nullptr, nullptr, nullptr, nullptr, nullptr) != 0) return false;
  if (type == DW_UT_split_compile || type == DW_UT_split_type) {
    const std::string_view own = line_section(dwarf_getelf(dwarf_cu_getdwarf(unit.cu)));
    const auto skeleton = skeletons_.find(unit.cu);
    if ((!own.empty() && !is_bounded(own, 0)) || skeleton == skeletons_.end()) return false;
    owner = skeleton->second;
  }
  std::optional<Dwarf_Attribute> found = own_attribute(owner, DW_AT_stmt_list);
  Dwarf_Word offset = 0;
  if (!found || dwarf_formudata(&*found, &offset) != 0) return false;
  return is_bounded(line_section(dwarf_getelf(dwarf_cu_getdwarf(owner.cu))), offset);
}

void File::add_function(const Dwarf_Die& die, Functions& out) {
  if (out.range_steps_left == 0) return;
  const RangeList code = range_list_of(die);
  out.range_steps_left -= std::min(code.steps, out.range_steps_left);
  for (const Range& range : code.ranges) out.code.push_back({range, die});
}

// Functions are children of the unit, of namespaces, of classes, and, for closures, of other functions.
void File::add_functions(const Subtree& parent, Functions& out, int depth) {
  if (depth > kMaxReferences) return;
  for (const Subtree& child : child_subtrees(parent)) {
    switch (tag(child.die)) {
      case DW_TAG_subprogram:
        if (own_attribute(child.die, DW_AT_declaration)) break;
        add_function(child.die, out);
        add_functions(child, out, depth + 1);
        break;
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
      case DW_TAG_enumeration_type:
      case DW_TAG_lexical_block: add_functions(child, out, depth + 1); break;
      default: break;
    }
  }
}

void File::index_functions(Unit& unit) {
  if (unit.is_indexed) return;
  complete(unit);
  Functions found{{}, range_steps_left_};
  add_functions({unit.die}, found, 0);
  std::ranges::sort(found.code, {}, [](const FunctionCode& each) { return each.range.low; });
  unit.functions = std::move(found.code);
  range_steps_left_ = found.range_steps_left;
  unit.is_indexed = true;
}

const std::vector<FunctionCode>& File::functions(Unit& unit) {
  index_functions(unit);
  return unit.functions;
}

std::optional<FunctionCode> File::function_at(uint64_t address) {
  Unit* unit = unit_at(address);
  if (unit == nullptr) return std::nullopt;
  index_functions(*unit);
  return known_function_at(address);
}

std::optional<FunctionCode> File::known_function_at(uint64_t address) {
  Unit* unit = known_unit_at(address);
  if (unit == nullptr || !unit->is_indexed) return std::nullopt;
  const auto low = [](const FunctionCode& each) { return each.range.low; };
  const auto after = std::ranges::upper_bound(unit->functions, address, {}, low);
  if (after == unit->functions.begin() || !std::prev(after)->range.contains(address)) return std::nullopt;
  return *std::prev(after);
}

std::vector<std::shared_ptr<Dwarf_Frame>> File::frames_at(uint64_t address) {
  if (has_unread_eh_frame_) eh_frame_ = dwarf_getcfi_elf(code_.elf);
  has_unread_eh_frame_ = false;
  std::vector<std::shared_ptr<Dwarf_Frame>> out;
  for (Dwarf_CFI* cfi : {dwarf_getcfi(dwarf_), eh_frame_}) {
    Dwarf_Frame* frame = nullptr;
    if (cfi != nullptr && dwarf_cfi_addrframe(cfi, address, &frame) == 0) out.emplace_back(frame, std::free);
  }
  return out;
}

std::optional<File::Expression> File::frame_address(uint64_t address) {
  for (const std::shared_ptr<Dwarf_Frame>& frame : frames_at(address)) {
    Expression out;
    out.owner = frame;
    if (dwarf_frame_cfa(frame.get(), &out.ops, &out.count) == 0 && out.count > 0) return out;
  }
  return std::nullopt;
}

std::optional<File::Expression> File::callers_register(uint64_t address, int number) {
  struct Found {
    std::shared_ptr<Dwarf_Frame> frame;
    Dwarf_Op memory[3] = {};
  };
  const auto frames = frames_at(address);
  if (frames.empty()) return std::nullopt;
  const auto found = std::make_shared<Found>(Found{frames.front()});
  Expression out;
  out.owner = found;
  if (dwarf_frame_register(found->frame.get(), number, found->memory, &out.ops, &out.count) != 0) return std::nullopt;
  if (out.count == 0 && out.ops == nullptr) return std::nullopt;
  return out;
}

// A PIE is marked by DF_1_PIE in the dynamic section.
bool File::is_executable() {
  if (!is_position_independent_) return true;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(code_.elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    GElf_Dyn entry;
    for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i)
      if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_PIE) != 0;
  }
  return false;
}

std::optional<GElf_Phdr> File::thread_local_segment() {
  size_t count = 0;
  if (elf_getphdrnum(code_.elf, &count) != 0) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(code_.elf, static_cast<int>(i), &segment) != nullptr && segment.p_type == PT_TLS) return segment;
  }
  return std::nullopt;
}

Calls& File::calls() {
  if (!calls_) calls_ = std::make_unique<Calls>(*this);
  return *calls_;
}

namespace {

Clone clone_of(std::string_view symbol) {
  const auto has = [&](std::string_view suffix) { return symbol.find(suffix) != std::string_view::npos; };
  if (has(".isra.") || has(".part.")) return Clone::kOfResult;
  return has(".constprop.") ? Clone::kOfArguments : Clone::kNone;
}

}  // namespace

void File::add_code_symbols(Elf* elf, CodeSymbols& out) {
  Elf_Scn* section = nullptr;
  while (elf != nullptr && (section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    const Elf_Data* names = elf_getdata(elf_getscn(elf, header.sh_link), nullptr);
    Elf_Data* symbols = elf_getdata(section, nullptr);
    if (symbols == nullptr || names == nullptr || names->d_buf == nullptr) continue;
    size_t left = kNamesTimes * names->d_size;  // symbols of a malformed file share one long name
    const size_t count = header.sh_size / header.sh_entsize;
    GElf_Sym symbol;
    for (size_t i = 0; i < count && gelf_getsym(symbols, static_cast<int>(i), &symbol) != nullptr && left > 0; ++i) {
      const bool is_code = GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
      if (!is_code || symbol.st_name >= names->d_size) continue;
      if (GELF_ST_BIND(symbol.st_info) != STB_LOCAL) out.global.push_back(symbol.st_value);
      const char* begin = static_cast<const char*>(names->d_buf) + symbol.st_name;
      const std::string_view name(begin, ::strnlen(begin, std::min(names->d_size - symbol.st_name, left)));
      left -= name.size();
      if (const Clone clone = clone_of(name); clone != Clone::kNone) out.clones[symbol.st_value] = clone;
    }
  }
}

const File::CodeSymbols& File::symbols_of_code() {
  if (code_symbols_) return *code_symbols_;
  CodeSymbols found;
  add_code_symbols(code_.elf, found);
  add_code_symbols(debug_.elf, found);
  std::ranges::sort(found.global);
  return code_symbols_.emplace(std::move(found));
}

// Names are in .debug_str, short ones in .debug_info. Those of .dwo files and of files shared by several programs (dwz)
// are elsewhere.
bool File::mentions(std::string_view name) {
  Elf* elf = dwarf_getelf(dwarf_);
  size_t names = 0;
  if (elf == nullptr || dwarf_getalt(dwarf_) != nullptr || elf_getshdrstrndx(elf, &names) != 0) return true;
  units();
  if (has_split_units_) return true;
  const std::string text = std::string(name) + '\0';
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    const char* title = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : nullptr;
    if (title == nullptr || (header.sh_flags & SHF_COMPRESSED) != 0) return true;
    const std::string_view known(title);
    if (known != ".debug_str" && known != ".debug_info") continue;
    const Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return true;
    if (::memmem(data->d_buf, data->d_size, text.data(), text.size()) != nullptr) return true;
  }
  return false;
}

std::optional<Dwarf_Die> File::find_definition(int wanted, std::string_view name) {
  for (Unit& unit : units()) {
    complete(unit);
    for (const Dwarf_Die& child : children(unit.die))
      if (tag(child) == wanted && name_of(child) == name && !own_attribute(child, DW_AT_declaration)) return child;
  }
  return std::nullopt;
}

}  // namespace espy::symbols::dwarf

#include "symbols/elf_file.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "symbols/debug_file.h"
#include "symbols/elf_image.h"
#include "symbols/go_functions.h"

namespace espy::symbols {

std::string_view elfutils_version() { return ::dwfl_version(nullptr); }

namespace {

bool is_function(const RawSymbol& symbol) { return symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC; }
// Code that is written in assembler, as parts of the vdso are, may have no type.
bool is_code(const RawSymbol& symbol) { return is_function(symbol) || (symbol.type == STT_NOTYPE && symbol.size != 0); }
bool is_object(const RawSymbol& symbol) { return symbol.type == STT_OBJECT || symbol.type == STT_COMMON; }

// Of several symbols of one name, the one of the lowest rank is returned.
int rank(const RawSymbol& symbol) { return symbol.is_local ? 2 : (symbol.is_old_version ? 1 : 0); }

size_t leading_underscores(std::string_view name) {
  name = name.substr(0, 16);
  return std::min(name.find_first_not_of('_'), name.size());
}

// Bounds the names of a table: they can share one long string, so that a small file would have gigabytes of them. Those
// of compilers take less than their strings and their symbols, which have 24 bytes each.
class NameLimit {
 public:
  explicit NameLimit(uint64_t strings_bytes) : left_bytes_(kLeastBytes + strings_bytes * kPerByte) {}

  // Returns false if the name is too much.
  bool take(uint64_t name_bytes) {
    const uint64_t counted_bytes = name_bytes - std::min(name_bytes, kPerSymbol);
    if (counted_bytes > left_bytes_) return false;
    left_bytes_ -= counted_bytes;
    return true;
  }

 private:
  static constexpr uint64_t kLeastBytes = 1 << 20, kPerByte = 4, kPerSymbol = 96;
  uint64_t left_bytes_;
};

// A function in the address index: only one name for each address. 24 bytes, because libraries have 10^5 of them.
struct IndexEntry {
  uint64_t address;
  const char* name;  // in the string table; may end in `@VERSION`
  uint32_t size;
  uint16_t name_length;
  bool is_ifunc;
  bool is_local;

  std::string_view name_view() const { return {name, name_length}; }
};

// The order of aliases at one address; the first is shown: symbols with a size, then the plainest name.
bool is_preferred(const IndexEntry& a, const IndexEntry& b) {
  if (a.address != b.address) return a.address < b.address;
  const auto key = [](const IndexEntry& e) {
    return std::tuple(e.size == 0, leading_underscores(e.name_view()), e.is_local);
  };
  return key(a) < key(b);
}

// Returns an identifier that every mangled form of `wanted` contains, e.g. `push_back` for `my::vector::push_back`; ""
// if there is none. Demangling is the slow part of a search, and this avoids it for nearly all symbols.
std::string_view required_identifier(std::string_view wanted) {
  wanted = wanted.substr(0, wanted.find('('));
  // Names in std have abbreviations (`Ss` is std::string), and so do operators.
  if (has_wildcard(wanted) || wanted.find("std::") != wanted.npos || wanted.find("operator") != wanted.npos) return {};
  wanted = wanted.substr(0, wanted.find('<'));
  if (const size_t colon = wanted.rfind("::"); colon != wanted.npos) wanted.remove_prefix(colon + 2);
  if (wanted.starts_with('~')) wanted.remove_prefix(1);
  for (const char c : wanted) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) return {};
  }
  return wanted;
}

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase(out, ' ');
  return out;
}

// Whether `glob` is the demangled name of a symbol: with parameters, or, as one of its overloads, without them; of an
// instance of a template also without its arguments. `wanted` is the glob without blanks.
bool matches_demangled(std::string_view symbol, std::string_view glob, const std::string& wanted) {
  const std::string plain = demangle(symbol, DemangleStyle::kName);
  const std::string overload = demangle(symbol, DemangleStyle::kOverload), full = demangle(symbol);
  // `operator[]` is also a glob, so compare for equality first.
  for (const std::string& name : {plain, overload, full})
    if (without_blanks(name) == wanted) return true;
  return without_template_arguments(plain) == glob || glob_match(glob, plain) || glob_match(glob, overload);
}

}  // namespace

struct ElfFile::State {
  explicit State(ElfImage opened) : image(std::move(opened)), build_id(image.build_id()) {
    for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
      if (std::optional<SymbolTable> table = image.symbol_table(type)) tables.push_back(*table);
    }
    // A file with a .symtab needs no separate debug file.
    completed = has_symtab = image.symbol_table(SHT_SYMTAB).has_value();
  }

  ElfImage image;
  std::string build_id;
  std::vector<std::string> debug_directories = {};
  std::vector<SymbolTable> tables;  // in order of preference

  bool has_symtab = false;
  bool completed = false;
  std::optional<ElfImage> debug_image;
  std::optional<SymbolTable> debug_table;
  bool has_searched_go_table = false;
  std::optional<GoFunctionTable> go_table;

  std::optional<Result<std::shared_ptr<DebugInfo>>> debug_info = {};

  std::optional<std::optional<GoBinary>> go_binary = {};

  std::optional<Error> missing_names = {};

  bool indexed = false;
  std::vector<IndexEntry> index;

  void complete();
  void find_go_table();
  void build_index();
  // Whether the symbols include those that stripping removes.
  bool has_all_symbols() const { return has_symtab || debug_table; }

  // Calls `visit` with each symbol that `wanted` accepts, in order of preference of the tables, until it returns true.
  template <class Wanted, class Visit>
  void visit_tables(Wanted wanted, Visit visit) {
    for (const SymbolTable& table : tables) {
      if (visit_table(table, wanted, visit)) return;
    }
    complete();
    if (debug_table && visit_table(*debug_table, wanted, visit)) return;
    if (has_all_symbols()) return;
    find_go_table();
    if (!go_table) return;
    NameLimit limit(go_table->size_bytes());
    for (const GoFunction& function : go_table->functions()) {
      const RawSymbol symbol{function.name, function.address, function.size, STT_FUNC};
      if (!limit.take(function.name.size())) return note_left_out();
      if (wanted(symbol) && visit(symbol)) return;
    }
  }

  template <class Wanted>
  std::optional<ElfSymbol> find(std::string_view name, Wanted wanted);
  template <class Accept>
  std::vector<ElfSymbol> collect_functions(Accept accept);
  ElfSymbol describe(const RawSymbol& symbol) const;

 private:
  template <class Wanted, class Visit>
  bool visit_table(const SymbolTable& table, Wanted wanted, Visit visit) {
    NameLimit limit(table.strings_bytes());
    for (size_t i = 0; i < table.size(); ++i) {
      const std::optional<RawSymbol> symbol = table.at(i);
      if (!symbol) continue;
      if (!limit.take(symbol->text_bytes)) {
        note_left_out();
        break;
      }
      if (wanted(*symbol) && visit(*symbol)) return true;
    }
    return false;
  }

  void note_left_out() {
    missing_names = Error{image.path() + " has too many long names: not all are read", kRefusedFile};
  }
};

void ElfFile::State::complete() {
  if (completed) return;
  completed = true;
  Result<ElfImage> found = find_debug_image(image, debug_directories);
  if (!found) {
    if (found.error().code == kRefusedFile) missing_names = found.error();
    return;
  }
  debug_image = std::move(*found);
  debug_table = debug_image->symbol_table(SHT_SYMTAB);
}

void ElfFile::State::find_go_table() {
  if (!has_searched_go_table) go_table = find_go_functions(image);
  has_searched_go_table = true;
}

ElfSymbol ElfFile::State::describe(const RawSymbol& symbol) const {
  return {.name = std::string(symbol.name),
          .address = symbol.address,
          .file_offset = image.offset_of_address(symbol.address).value_or(0),
          .size = symbol.size,
          .is_ifunc = symbol.type == STT_GNU_IFUNC,
          .is_local = symbol.is_local};
}

template <class Wanted>
std::optional<ElfSymbol> ElfFile::State::find(std::string_view name, Wanted wanted) {
  std::optional<RawSymbol> best;
  visit_tables(wanted, [&](const RawSymbol& symbol) {
    if (symbol.name != name) return false;
    if (!best || rank(symbol) < rank(*best)) best = symbol;
    return rank(*best) == 0;
  });
  if (!best) return std::nullopt;
  return describe(*best);
}

template <class Accept>
std::vector<ElfSymbol> ElfFile::State::collect_functions(Accept accept) {
  std::vector<RawSymbol> found;
  visit_tables(is_function, [&](const RawSymbol& symbol) {
    if (accept(symbol.name)) found.push_back(symbol);
    return false;
  });
  // The best of the symbols with a name and an address.
  std::ranges::stable_sort(found, {},
                           [](const RawSymbol& each) { return std::tuple(each.name, each.address, rank(each)); });
  const auto is_same = [](const RawSymbol& a, const RawSymbol& b) {
    return a.name == b.name && a.address == b.address;
  };
  found.erase(std::unique(found.begin(), found.end(), is_same), found.end());
  std::vector<ElfSymbol> out;
  out.reserve(found.size());
  uint64_t left_bytes = max_binary_bytes() / 4;  // callers make several texts of a name
  for (const RawSymbol& symbol : found) {
    if (symbol.name.size() > left_bytes) {
      note_left_out();
      break;
    }
    left_bytes -= symbol.name.size();
    out.push_back(describe(symbol));
  }
  return out;
}

void ElfFile::State::build_index() {
  if (indexed) return;
  indexed = true;
  visit_tables(is_code, [&](const RawSymbol& symbol) {
    index.push_back({.address = symbol.address,
                     .name = symbol.name.data(),
                     .size = static_cast<uint32_t>(std::min<uint64_t>(symbol.size, UINT32_MAX)),
                     .name_length = static_cast<uint16_t>(std::min<size_t>(symbol.name.size(), UINT16_MAX)),
                     .is_ifunc = symbol.type == STT_GNU_IFUNC,
                     .is_local = symbol.is_local});
    return false;
  });
  std::ranges::stable_sort(index, is_preferred);
  const auto same_place = [](const IndexEntry& a, const IndexEntry& b) { return a.address == b.address; };
  index.erase(std::unique(index.begin(), index.end(), same_place), index.end());
  index.shrink_to_fit();
}

ElfFile::ElfFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ElfFile::ElfFile(ElfFile&&) noexcept = default;
ElfFile& ElfFile::operator=(ElfFile&&) noexcept = default;
ElfFile::~ElfFile() = default;

Result<ElfFile> ElfFile::open(const std::string& path, std::vector<std::string> debug_directories) {
  ElfFile file(std::make_unique<State>(TRY(ElfImage::open(path))));
  file.state_->debug_directories = std::move(debug_directories);
  return file;
}

Result<ElfFile> ElfFile::open(UntrustedFile opened, std::vector<std::string> debug_directories) {
  ElfFile file(std::make_unique<State>(TRY(ElfImage::open(std::move(opened)))));
  file.state_->debug_directories = std::move(debug_directories);
  return file;
}

Result<ElfFile> ElfFile::from_image(std::string image, std::string name) {
  return ElfFile(std::make_unique<State>(TRY(ElfImage::from_bytes(std::move(image), std::move(name)))));
}

const std::string& ElfFile::path() const { return state_->image.path(); }
const std::string& ElfFile::build_id() const { return state_->build_id; }
bool ElfFile::is_position_independent() const { return state_->image.type() == ET_DYN; }
bool ElfFile::is_64bit() const { return state_->image.is_64bit(); }
const FileState& ElfFile::file_state() const { return state_->image.file_state(); }
const ElfImage& ElfFile::image() const { return state_->image; }
uint64_t ElfFile::offset_in_archive() const { return state_->image.offset_in_archive(); }
uint16_t ElfFile::machine() const { return state_->image.machine(); }

std::string ElfFile::debug_file_path() const {
  state_->complete();
  return state_->debug_image ? state_->debug_image->path() : "";
}

bool ElfFile::is_stripped() const {
  state_->complete();
  state_->find_go_table();
  return !state_->has_all_symbols() && !state_->go_table;
}

const std::optional<Error>& ElfFile::missing_names() const { return state_->missing_names; }

uint64_t ElfFile::memory_bytes() const {
  uint64_t out = state_->image.memory_bytes() + state_->index.capacity() * sizeof(IndexEntry);
  if (state_->debug_image) out += state_->debug_image->memory_bytes();
  if (state_->debug_info && *state_->debug_info) out += (**state_->debug_info)->memory_bytes();
  return out;
}

Result<std::shared_ptr<DebugInfo>> ElfFile::debug_info() const {
  auto& known = state_->debug_info;
  if (!known) known = DebugInfo::open(state_->image, state_->debug_directories);
  if (*known)
    if (Status status = (**known)->status(); !status) known = tl::unexpected(status.error());
  return *known;
}

std::optional<SourceFrame> ElfFile::go_frame_at(uint64_t address) const {
  state_->find_go_table();
  const auto line = state_->go_table ? state_->go_table->line_at(address) : std::nullopt;
  const auto function = line ? function_at(address) : std::nullopt;
  if (!function) return std::nullopt;
  return SourceFrame{.function = function->name, .file = std::string(line->file), .line = line->line};
}

const std::optional<GoBinary>& ElfFile::go_binary() const {
  if (!state_->go_binary) state_->go_binary = read_go_binary(state_->image);
  return *state_->go_binary;
}

std::optional<ElfSymbol> ElfFile::find_function(std::string_view name) const { return state_->find(name, is_function); }
std::optional<ElfSymbol> ElfFile::find_object(std::string_view name) const { return state_->find(name, is_object); }

std::map<std::string, std::set<uint64_t>> ElfFile::object_addresses(
    const std::set<std::string, std::less<>>& names) const {
  std::map<std::string, std::set<uint64_t>> out;
  state_->visit_tables(is_object, [&](const RawSymbol& symbol) {
    if (const auto name = names.find(symbol.name); name != names.end()) out[*name].insert(symbol.address);
    return false;
  });
  return out;
}

std::vector<ElfSymbol> ElfFile::functions(std::string_view glob) const {
  return state_->collect_functions([&](std::string_view name) { return glob_match(glob, name); });
}

std::vector<ElfSymbol> ElfFile::functions_by_demangled_name(std::string_view glob) const {
  const std::string_view needle = required_identifier(glob);
  const std::string wanted = without_blanks(glob);
  return state_->collect_functions([&](std::string_view name) {
    if (!name.starts_with("_Z") && !name.starts_with("_R")) return false;
    if (name.find(needle) == name.npos) return false;
    return matches_demangled(name, glob, wanted);
  });
}

std::vector<ElfSymbol> ElfFile::functions_named(std::string_view name) const {
  return state_->collect_functions([&](std::string_view each) { return each == name; });
}

std::vector<std::string> ElfFile::functions_beginning_at(uint64_t address) const {
  std::set<std::string> out;
  state_->visit_tables(is_function, [&](const RawSymbol& symbol) {
    if (symbol.address == address) out.emplace(symbol.name);
    return false;
  });
  return {out.begin(), out.end()};
}

std::optional<ElfSymbol> ElfFile::function_at(uint64_t address) const {
  state_->build_index();
  const std::vector<IndexEntry>& index = state_->index;
  const auto after = std::ranges::upper_bound(index, address, {}, &IndexEntry::address);
  // The nearest symbol before the address may be a small one nested in the one that covers it.
  constexpr std::ptrdiff_t kMaxNested = 16;
  for (std::ptrdiff_t i = 1; i <= std::min<std::ptrdiff_t>(after - index.begin(), kMaxNested); ++i) {
    const IndexEntry& entry = *(after - i);
    const bool unsized_but_nearest = entry.size == 0 && i == 1 && offset_of_address(address).has_value();
    if (address - entry.address >= entry.size && !unsized_but_nearest) continue;
    return ElfSymbol{.name = std::string(entry.name_view()),
                     .address = entry.address,
                     .file_offset = offset_of_address(entry.address).value_or(0),
                     .size = entry.size,
                     .is_ifunc = entry.is_ifunc,
                     .is_local = entry.is_local};
  }
  return std::nullopt;
}

std::optional<ElfSymbol> ElfFile::function_at_offset(uint64_t file_offset) const {
  const std::optional<uint64_t> address = address_of_offset(file_offset);
  if (!address) return std::nullopt;
  return function_at(*address);
}

std::string ElfFile::bytes_at(uint64_t file_offset, uint64_t size) const {
  return state_->image.bytes_at(file_offset, size);
}

std::optional<uint64_t> ElfFile::offset_of_address(uint64_t address) const {
  return state_->image.offset_of_address(address);
}

std::optional<uint64_t> ElfFile::address_of_offset(uint64_t file_offset) const {
  return state_->image.address_of_offset(file_offset);
}

std::optional<ElfFile::LoadedSegment> ElfFile::segment_at_offset(uint64_t file_offset) const {
  const Segment* found = state_->image.segment_at_offset(file_offset);
  if (found == nullptr) return std::nullopt;
  return LoadedSegment{found->address, found->memory_size, found->file_offset};
}

// ---- USDT probes: the notes of <sys/sdt.h>
//
// A note has three addresses (of the probe, of the section .stapsdt.base at link time, of the semaphore or 0) and three
// strings. Prelinking moves the addresses of a file but does not change notes, so the difference between the address of
// .stapsdt.base and the one in the note is added to the others.

namespace {

constexpr uint32_t kNoteType = 3;
constexpr std::string_view kOwner{"stapsdt\0", 8};  // with its NUL

// Takes a field of a note without the padding to 4 bytes that follows it. The last field of a section may lack that.
std::string_view take_field(ByteReader& notes, uint64_t size_bytes) {
  const uint64_t padded_bytes = (size_bytes + 3) & ~uint64_t{3};
  return notes.take_bytes(std::min<uint64_t>(padded_bytes, notes.remaining_bytes())).substr(0, size_bytes);
}

// Returns nullopt if the description is truncated. `base`: the address of .stapsdt.base.
std::optional<UsdtLocation> read_note(const ElfImage& image, std::optional<uint64_t> base,
                                      std::string_view description) {
  const size_t word_bytes = image.is_64bit() ? 8 : 4;
  ByteReader reader(description);
  UsdtLocation out;
  out.address = reader.take_le(word_bytes);
  const uint64_t linked_base = reader.take_le(word_bytes);
  uint64_t semaphore = reader.take_le(word_bytes);
  if (base && linked_base != 0) {
    out.address += *base - linked_base;
    if (semaphore != 0) semaphore += *base - linked_base;
  }
  out.provider = reader.take_string();
  out.name = reader.take_string();
  out.arguments = reader.take_string();
  if (!reader.ok()) return std::nullopt;
  out.file_offset = image.offset_of_address(out.address).value_or(0);
  if (semaphore != 0) out.semaphore_file_offset = image.offset_of_address(semaphore).value_or(0);
  return out;
}

bool is_size(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789f") == std::string_view::npos;
}

}  // namespace

std::vector<UsdtLocation> read_usdt(const ElfFile& file) {
  const ElfImage& image = file.image();
  const std::optional<uint64_t> base = image.section_address(".stapsdt.base");
  std::vector<UsdtLocation> out;
  ByteReader notes(image.section_bytes(".note.stapsdt"));
  while (!notes.at_end()) {
    const auto owner_bytes = notes.take_le<uint32_t>();
    const auto description_bytes = notes.take_le<uint32_t>();
    const auto type = notes.take_le<uint32_t>();
    const std::string_view owner = take_field(notes, owner_bytes);
    const std::string_view description = take_field(notes, description_bytes);
    if (type != kNoteType || owner != kOwner) continue;
    if (auto location = read_note(image, base, description)) out.push_back(std::move(*location));
  }
  return out;
}

std::vector<std::string> split_usdt_arguments(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    const size_t at = word.find('@');
    if (out.empty() || (at != std::string_view::npos && is_size(word.substr(0, at)))) {
      out.emplace_back(word);
    } else {
      out.back() += ' ';
      out.back() += word;
    }
  }
  return out;
}

std::optional<UsdtOperand> parse_usdt_operand(const kernel::Arch& arch, std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  UsdtOperand out;
  std::string_view size_text = text.substr(0, at);
  if (size_text.ends_with('f')) size_text.remove_suffix(1);
  const auto size = parse_int(size_text);
  const auto signed_bytes = size.value_or(0);
  const uint64_t bytes = signed_bytes < 0 ? -static_cast<uint64_t>(signed_bytes) : static_cast<uint64_t>(signed_bytes);
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return std::nullopt;
  out.size_bytes = static_cast<uint8_t>(bytes);
  out.is_signed = signed_bytes < 0;
  return arch.usdt.parse(trim(text.substr(at + 1)), out) ? std::optional(out) : std::nullopt;
}

}  // namespace espy::symbols

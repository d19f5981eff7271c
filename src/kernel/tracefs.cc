// A format file describes each field by a C declaration, as spelled in the tracepoint's macro:
//
//   field:const char * filename;  offset:24;  size:8;  signed:0;
//
// The declaration alone is not enough (typedefs have no size here), nor are the numbers (they do not distinguish a
// string from bytes). So a field has the type of the declaration if it is known, and else one by size and sign.
#include "kernel/tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "base/strings.h"

namespace espy::kernel {
namespace {

using types::AddressSpace;
using types::TypeId;
using types::Types;

// `__data_loc char[]` has its length in the record; as a value it needs a capacity, which the checker sets.
constexpr uint32_t kDynamicStringBytes = 256;

// The parsed C declaration of a field.
struct Declaration {
  std::string name;
  std::string base;  // "unsigned long", "struct page", without qualifiers
  int stars = 0;
  bool is_array = false;
  bool is_function = false;  // a pointer to one
};

bool is_word_char(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Splits "const char * filename" or "unsigned long args[6]".
Declaration take_apart(std::string_view text) {
  Declaration result;
  if (const size_t bracket = text.find('['); bracket != text.npos) {
    result.is_array = true;
    // In `__data_loc char[] name` the name comes after the brackets.
    const size_t close = text.rfind(']');
    const std::string_view behind = close == text.npos ? "" : trim(text.substr(close + 1));
    result.name = behind;
    text = text.substr(0, bracket);
  }
  result.is_function = text.find('(') != text.npos;
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '*') ++result.stars;
    if (!is_word_char(text[i])) {
      ++i;
      continue;
    }
    const size_t start = i;
    while (i < text.size() && is_word_char(text[i])) ++i;
    words.emplace_back(text.substr(start, i - start));
  }
  if (result.name.empty() && !words.empty()) {
    result.name = words.back();
    words.pop_back();
  }
  std::erase_if(words, [](const std::string& word) {
    return word == "const" || word == "volatile" || word == "__user" || word == "__rcu" || word == "__percpu" ||
           word == "__data_loc" || word == "__rel_loc";
  });
  result.base = join(words, " ");
  return result;
}

// The type as the kernel printed it: the declaration without the field's name.
std::string type_text(std::string_view text, const std::string& name) {
  const size_t at = text.rfind(name);
  if (name.empty() || at == text.npos) return std::string(text);
  std::string result(trim(text.substr(0, at)));
  result += text.substr(at + name.size());
  return std::string(trim(result));
}

struct CInt {
  std::string_view name;
  uint32_t size_bytes;
  bool is_signed;
};

constexpr CInt kCInts[] = {
    {"int", 4, true},
    {"unsigned int", 4, false},
    {"unsigned", 4, false},
    {"long", 8, true},
    {"unsigned long", 8, false},
    {"long long", 8, true},
    {"long int", 8, true},
    {"unsigned long long", 8, false},
    {"short", 2, true},
    {"unsigned short", 2, false},
    {"signed char", 1, true},
    {"unsigned char", 1, false},
    {"u8", 1, false},
    {"u16", 2, false},
    {"u32", 4, false},
    {"u64", 8, false},
    {"s8", 1, true},
    {"s16", 2, true},
    {"s32", 4, true},
    {"s64", 8, true},
    {"__u8", 1, false},
    {"__u16", 2, false},
    {"__u32", 4, false},
    {"__u64", 8, false},
    {"__s8", 1, true},
    {"__s16", 2, true},
    {"__s32", 4, true},
    {"__s64", 8, true},
    {"uint8_t", 1, false},
    {"uint16_t", 2, false},
    {"uint32_t", 4, false},
    {"uint64_t", 8, false},
    {"size_t", 8, false},
    {"ssize_t", 8, true},
    {"loff_t", 8, true},
    {"pid_t", 4, true},
    {"uid_t", 4, false},
    {"gid_t", 4, false},
    {"umode_t", 2, false},
    {"off_t", 8, true},
    {"dev_t", 4, false},
};

// Pointers to pointers of one field. C compilers take twelve at least; types in nests without bound would exhaust the
// stack of the functions that walk them.
constexpr int kMaxPointers = 16;

class FieldTyper {
 public:
  FieldTyper(Kernel& kernel, Types& types, AddressSpace space) : kernel_(kernel), types_(types), space_(space) {}

  void set_type(TracepointField& field, const Declaration& declaration) {
    if (field.is_data_loc || field.is_relative_loc) {
      field.type = declaration.base == "char" ? types_.string(kDynamicStringBytes, true)
                                              : types_.pointer(named(declaration.base), AddressSpace::kKernel);
    } else if (declaration.is_array) {
      field.type = array(field, declaration);
    } else if (declaration.stars > 0 || declaration.is_function) {
      field.type = pointer(declaration);
    } else {
      field.type = scalar(field, declaration.base);
    }
  }

 private:
  TypeId pointer(const Declaration& declaration) {
    TypeId type = declaration.is_function ? types_.void_type() : named(declaration.base);
    const int depth = std::clamp(declaration.stars, 1, kMaxPointers);
    for (int i = 0; i < depth; ++i) type = types_.pointer(type, space_);
    return type;
  }

  TypeId array(const TracepointField& field, const Declaration& declaration) {
    TypeId element = declaration.stars > 0 ? pointer(declaration) : named(declaration.base);
    uint32_t size = types_[element].size_bytes;
    if (size == 0) {
      element = types_.int_type(1, false);
      size = 1;
    }
    return types_.array(element, field.size_bytes / size);
  }

  // System call arguments take a whole word of the record but keep their C type: `int dfd` of -100 is -100.
  TypeId scalar(const TracepointField& field, const std::string& base) {
    if (base == "char" && field.size_bytes == 1) return types_.char_type(field.is_signed);
    if (base.starts_with("enum ") || base == "bool") {
      const TypeId type = named(base);
      if (types_[type].size_bytes == field.size_bytes) return type;
    }
    const auto known =
        std::find_if(std::begin(kCInts), std::end(kCInts), [&](const CInt& c) { return c.name == base; });
    if (known != std::end(kCInts) && known->size_bytes <= field.size_bytes) {
      return types_.int_type(known->size_bytes, known->is_signed);
    }
    const uint32_t size = field.size_bytes;
    if (const TypeId type = named(base); types_[type].kind == types::Kind::kInt && types_[type].size_bytes <= size)
      return type;
    if (size == 1 || size == 2 || size == 4 || size == 8) return types_.int_type(size, field.is_signed);
    return types_.array(types_.int_type(1, false), size);
  }

  // The type of a C name; void if it is unknown.
  TypeId named(const std::string& base) {
    if (base == "char") return types_.char_type();
    if (base == "bool" || base == "_Bool") return types_.bool_type();
    const auto known =
        std::find_if(std::begin(kCInts), std::end(kCInts), [&](const CInt& c) { return c.name == base; });
    if (known != std::end(kCInts)) return types_.int_type(known->size_bytes, known->is_signed);
    TypeId found;
    const std::string_view text = base;
    if (text.starts_with("struct ")) {
      found = kernel_.find_struct(types_, text.substr(7));
    } else if (text.starts_with("union ")) {
      found = kernel_.find_struct(types_, text.substr(6));
    } else if (text.starts_with("enum ")) {
      found = kernel_.find_enum(types_, text.substr(5));
    } else if (text != "void") {
      found = kernel_.find_typedef(types_, text);
    }
    return found.valid() ? found : types_.void_type();
  }

  Kernel& kernel_;
  Types& types_;
  AddressSpace space_;
};

// The value of `key` in "offset:24;"; 0 if it is missing.
uint32_t number_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == line.npos) return 0;
  line.remove_prefix(at + key.size());
  return static_cast<uint32_t>(parse_int(line.substr(0, line.find(';'))).value_or(0));
}

std::vector<std::string> subdirectories(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = opendir(path.c_str());
  if (!directory) return names;
  while (const dirent* entry = readdir(directory)) {
    const bool may_be_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
    if (may_be_directory && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<Tracepoint> parse_tracepoint(Kernel& kernel, Types& types, std::string_view category, std::string_view event,
                                    std::string_view format) {
  Tracepoint result{.category = std::string(category), .event = std::string(event), .fields = {}};
  FieldTyper typer(kernel, types, category == "syscalls" ? AddressSpace::kUser : AddressSpace::kKernel);
  bool has_id = false;
  for (std::string_view line : split(format, '\n')) {
    line = trim(line);
    if (line.starts_with("ID:")) {
      const auto id = parse_int(trim(line.substr(3)));
      has_id = id.has_value();
      result.id = static_cast<uint64_t>(id.value_or(0));
    }
    if (!line.starts_with("field:")) continue;
    const std::string_view text = trim(line.substr(6, line.find(';') - 6));
    const Declaration declaration = take_apart(text);
    if (declaration.name.empty() || declaration.name.starts_with("common_")) continue;
    TracepointField field{.name = declaration.name,
                          .c_type = type_text(text, declaration.name),
                          .type = {},
                          .offset_bytes = number_after(line, "offset:"),
                          .size_bytes = number_after(line, "size:"),
                          .is_signed = number_after(line, "signed:") != 0,
                          .is_data_loc = text.starts_with("__data_loc"),
                          .is_relative_loc = text.starts_with("__rel_loc")};
    typer.set_type(field, declaration);
    result.fields.push_back(std::move(field));
  }
  if (!has_id) return fail(fmt::format("the format of tracepoint {}:{} cannot be understood", category, event));
  return result;
}

namespace {

// By the effective user, not the real one.
bool exists(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0; }

}  // namespace

Result<std::string> read_tracepoint_format(const std::string& tracing, std::string_view category,
                                           std::string_view event) {
  auto format = read_file(fmt::format("{}/events/{}/{}/format", tracing, category, event));
  if (!format && format.error().code == ENOENT)
    return fail(fmt::format("no tracepoint {}:{}", category, event), ENOENT);
  return format;
}

std::vector<std::string> list_tracepoints(const std::string& tracing, std::string_view category_glob,
                                          std::string_view event_glob) {
  std::vector<std::string> names;
  const auto matching = [](const std::string& path, std::string_view glob) {
    if (!has_wildcard(glob)) {
      const std::string name(glob);
      return exists(path + "/" + name) ? std::vector<std::string>{name} : std::vector<std::string>{};
    }
    auto all = subdirectories(path);
    std::erase_if(all, [&](const std::string& name) { return !glob_match(glob, name); });
    return all;
  };
  for (const std::string& category : matching(tracing + "/events", category_glob)) {
    for (const std::string& event : matching(tracing + "/events/" + category, event_glob)) {
      // Only events have a format; so do ftrace's own records, which nothing can attach to.
      if (category != "ftrace") names.push_back(category + ":" + event);
    }
  }
  return names;
}

namespace {

bool is_absent() { return ::access("/sys/kernel/tracing/events", F_OK) != 0 && errno == ENOENT; }

}  // namespace

std::string why_unreadable(Kernel& kernel) {
  const std::string forbidden =
      forbidden_by(kernel.lockdown(), Lockdown::kConfidentiality, "to read /sys/kernel/tracing");
  if (!forbidden.empty()) return forbidden;
  return is_absent() ? "tracefs is not mounted at /sys/kernel/tracing" : "/sys/kernel/tracing is for root to read";
}

std::string how_to_read_tracefs(Kernel& kernel) {
  if (kernel.lockdown() == Lockdown::kConfidentiality) return "";
  return is_absent() ? "mount -t tracefs tracefs /sys/kernel/tracing; a container needs it as a volume"
                     : "run espy with sudo, or give it CAP_DAC_READ_SEARCH";
}

std::string find_tracing(const std::string& root) {
  for (const char* place : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (exists(root + place + "/events")) return root + place;
  }
  return "";
}

}  // namespace espy::kernel

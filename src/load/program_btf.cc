#include "load/program_btf.h"

#include <linux/btf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "load/linux.h"

namespace espy::load {

namespace {

constexpr uint32_t kMaxLine = (1U << 22) - 1;
constexpr uint32_t kMaxColumn = (1U << 10) - 1;

class Writer {
 public:
  Writer() { strings_.push_back('\0'); }

  uint32_t string(const std::string& text) {
    const auto [at, is_new] = offsets_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (is_new) strings_.append(text.c_str(), text.size() + 1);
    return at->second;
  }

  // Appends a type record with its data; returns its id.
  uint32_t type(uint32_t name, uint32_t kind, uint32_t vlen, uint32_t size_or_type,
                const std::vector<uint32_t>& rest = {}) {
    put(name);
    put(kind << 24 | vlen);
    put(size_or_type);
    for (const uint32_t word : rest) put(word);
    return ++last_id_;
  }

  std::string finish() const {
    btf_header header = {};
    header.magic = BTF_MAGIC;
    header.version = BTF_VERSION;
    header.hdr_len = sizeof(header);
    header.type_len = static_cast<uint32_t>(types_.size());
    header.str_off = header.type_len;
    header.str_len = static_cast<uint32_t>(strings_.size());
    std::string blob(reinterpret_cast<const char*>(&header), sizeof(header));
    return blob + types_ + strings_;
  }

 private:
  void put(uint32_t word) { types_.append(reinterpret_cast<const char*>(&word), sizeof(word)); }

  std::string types_;
  std::string strings_;
  std::map<std::string, uint32_t> offsets_;
  uint32_t last_id_ = 0;
};

std::string identifier(const std::string& name) {
  std::string out;
  for (const char c : name) out += (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out.insert(0, "_");
  return out;
}

class LineTable {
 public:
  LineTable(Writer& writer, const source::Sources& sources) : writer_(writer), sources_(sources) {}

  // Adds the location of `insn`: that of the instruction before if `span` is invalid.
  void add(uint32_t insn, source::Span span) {
    while (span.valid() && span.expansion.valid()) span = sources_[span.expansion].call;
    if (span.valid()) set_place(span);
    if (!records_.empty() && records_.back().insn == insn) records_.pop_back();
    last_.insn = insn;
    records_.push_back(last_);
  }

  std::vector<LineInfoRecord> take() { return std::move(records_); }

 private:
  void set_place(source::Span span) {
    const source::LineColumn place = sources_.line_column(span.source, span.begin);
    last_.file_name_offset = writer_.string(sources_[span.source].name);
    last_.line_offset = writer_.string(std::string(sources_.line(span.source, place.line)));
    last_.line_column = std::min(place.line, kMaxLine) << 10 | std::min(place.column, kMaxColumn);
  }

  Writer& writer_;
  const source::Sources& sources_;
  LineInfoRecord last_;
  std::vector<LineInfoRecord> records_;
};

// The verifier requires a line at the first instruction of every function.
std::vector<LineInfoRecord> make_lines(const program::BpfProgram& program, const source::Sources& sources,
                                       Writer& writer) {
  LineTable table(writer, sources);
  table.add(0, program.lines.empty() ? source::Span{} : program.lines.front().span);
  size_t next_function = 0;
  const auto start_functions = [&](uint32_t up_to) {
    for (; next_function < program.functions.size() && program.functions[next_function].insn < up_to; ++next_function)
      table.add(program.functions[next_function].insn, {});
  };
  for (const program::LineInfo& line : program.lines) {
    start_functions(line.insn);
    while (next_function < program.functions.size() && program.functions[next_function].insn == line.insn)
      ++next_function;
    table.add(line.insn, line.span);
  }
  start_functions(static_cast<uint32_t>(program.code.size()));
  return table.take();
}

}  // namespace

MapBtf make_map_btf(uint32_t value_bytes) {
  Writer writer;
  MapBtf out;
  out.key_id = writer.type(writer.string("int"), BTF_KIND_INT, 0, 4, {BTF_INT_SIGNED << 24 | 32});
  out.value_id = writer.type(writer.string("value"), BTF_KIND_STRUCT, 0, value_bytes);
  out.blob = writer.finish();
  return out;
}

ProgramBtf make_program_btf(const program::BpfProgram& program, const source::Sources& sources) {
  Writer writer;
  ProgramBtf out;
  constexpr uint32_t kIntEncoding = BTF_INT_SIGNED << 24 | 64;
  const uint32_t int_id = writer.type(writer.string("long"), BTF_KIND_INT, 0, 8, {kIntEncoding});
  const uint32_t pointer_id = writer.type(0, BTF_KIND_PTR, 0, 0);
  for (const program::FunctionInfo& function : program.functions) {
    uint32_t parameter_type = function.is_global ? int_id : pointer_id;
    if (function.memory_bytes != 0) {  // a struct without members is enough: the verifier uses its size
      const uint32_t memory_id = writer.type(writer.string("memory"), BTF_KIND_STRUCT, 0, function.memory_bytes);
      parameter_type = writer.type(0, BTF_KIND_PTR, 0, memory_id);
    }
    std::vector<uint32_t> parameters;
    for (uint32_t i = 0; i < function.parameter_count; ++i) {
      parameters.push_back(writer.string("a" + std::to_string(i)));
      parameters.push_back(parameter_type);
    }
    const uint32_t prototype = writer.type(0, BTF_KIND_FUNC_PROTO, function.parameter_count, int_id, parameters);
    const uint32_t linkage = function.is_global ? BTF_FUNC_GLOBAL : BTF_FUNC_STATIC;
    const uint32_t id = writer.type(writer.string(identifier(function.name)), BTF_KIND_FUNC, linkage, prototype);
    out.functions.push_back({function.insn, id});
  }
  out.lines = make_lines(program, sources, writer);
  out.blob = writer.finish();
  return out;
}

// ---- Finds the BTF of a kernel module, which programs for its functions need, by name among all BTF objects.

namespace {

bool is_named(int fd, const std::string& module) {
  char name[64] = {};
  BtfInfo info;
  info.name = address_of(name);
  info.name_len = sizeof(name);
  InfoAttr attr{static_cast<uint32_t>(fd), sizeof(info), address_of(&info)};
  return bpf(Command::kObjectInfo, attr) >= 0 && info.kernel_btf != 0 && module == name;
}

}  // namespace

Result<OwnedFd> open_module_btf(const std::string& module) {
  NextIdAttr attr;
  while (bpf(Command::kBtfNextId, attr) >= 0) {
    NextIdAttr wanted{attr.next_id, 0, 0};  // start_id is in one union with btf_id
    OwnedFd fd(static_cast<int>(bpf(Command::kBtfById, wanted)));
    if (fd.valid() && is_named(fd.get(), module)) return fd;
    attr.start_id = attr.next_id;
  }
  return fail("the kernel has no type information for its module " + module, ENOENT);
}

}  // namespace espy::load

// uprobe, uretprobe: functions of programs and libraries.
//
// The problem: a user names a binary and a function, the kernel wants a file and an offset in it; wildcards stand for
// thousands of functions; a perf event each takes a system call to attach and a grace period to detach, a minute for a
// thousand.
//
// The trick: one uprobe_multi link (Linux 6.6) takes all offsets of a file, attaches in milliseconds, detaches in tens
// of them, and gives each offset a cookie: the probe's index. So all functions of an attach point share one program and
// one link, and a single function goes the same way. Where the kernel has no such link, or does not take its pid
// filter, a perf event each it is, and the closing is left to the helper process of `detach_all`.
//
// How a place is found: FUNCTION by the ELF symbol tables (symtab, then dynsym, then the separate debug file),
// FUNCTION+OFFSET behind it, 0xADDRESS as a virtual address of the file, cpp:"ns::f" by the demangled name, all
// overloads at once. Symbols give virtual addresses, the program headers make them file offsets. Several names of one
// address are one probe.
//
// A uprobe runs in the thread that hit it and may be preempted there: two threads can be in the same program on one
// CPU, so aggregations are atomic and scratch memory is taken by turns (lower/scratch.h). It may even sleep there,
// while a page that the script reads is brought in (lower/reads.cc): the program keeps its CPU and its scratch
// meanwhile.
//
// The kernel refuses what it cannot single-step, not what is in the midst of an instruction: boundaries are checked
// here, by walking through the function. What needs debug information (arguments and variables by name, lines of the
// source) is in uprobe_debug.cc.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/all.h"
#include "probes/common.h"
#include "probes/uprobe_debug.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

constexpr char kShapeBegin = '\n';  // in `share`; a path has none

template <const spec::Provider& kRow>
class Binder {
 public:
  explicit Binder(spec::BindRequest& request) : request_(request) {}

  std::vector<spec::BoundProbe> bind() {
    const auto parts = request_.parts;
    if (const auto place = parse_line_target(parts)) return at_line(*place);
    if (parts.size() == 1 && request_.config.pid)
      return in_file(fmt::format("/proc/{}/exe", *request_.config.pid), parts);
    if (parts.size() < 2 || parts.size() > 3) return wrong_form(request_, kRow.form, "uprobe:/bin/bash:readline");
    if (has_wildcard(parts[0])) return in_files(parts[0], parts.subspan(1));
    const auto path = symbols::resolve_library(parts[0], request_.config.pid);
    if (!path) return environment_error(path.error());
    return in_file(*path, parts.subspan(1));
  }

 private:
  std::vector<spec::BoundProbe> environment_error(const Error& error) {
    request_.diagnostics.error("bad-target", request_.point.span, error.message, error.hint);
    return {};
  }

  // Of many files most do not have the function, and some may be gone before they are read.
  std::vector<spec::BoundProbe> in_files(const std::string& pattern, std::span<const std::string> place) {
    is_one_of_many_ = true;
    std::vector<spec::BoundProbe> all;
    for (const std::string& path : symbols::find_libraries(pattern, request_.config.pid)) {
      for (spec::BoundProbe& bound : in_file(path, place)) {
        bound.probe.is_optional = true;
        all.push_back(std::move(bound));
      }
    }
    return all;
  }

  std::vector<spec::BoundProbe> in_file(const std::string& path, std::span<const std::string> place) {
    out_.clear();
    const auto file = request_.symbols->elf_file(path);
    if (!file && is_one_of_many_) return {};
    if (!file) return environment_error(file.error());
    path_ = path;
    // One program serves all files, but that arguments are elsewhere in those of Go, and symbols in each.
    shared_path_ = is_one_of_many_ && !request_.uses_file && !(*file)->go_binary() ? "*" : path;
    const std::string& last = place.back();
    if (place.size() == 2 && place[0] == "cpp") {
      add_all(**file, (*file)->functions_by_demangled_name(last));
    } else if (const auto address = parse_int(last); address && *address >= 0) {
      add_address(**file, static_cast<uint64_t>(*address), last);
    } else if (has_wildcard(last)) {
      add_all(**file, (*file)->functions(last));
    } else {
      add_function(**file, last);
    }
    return finished(**file);
  }

  std::vector<spec::BoundProbe> at_line(const LineTarget& place) {
    if (&kRow == &kUretprobe) {
      request_.diagnostics.error("offset-on-return", request_.point.span,
                                 "a uretprobe fires when a function returns: it takes no line");
      return {};
    }
    const std::string binary =
        place.binary.empty() && request_.config.pid ? fmt::format("/proc/{}/exe", *request_.config.pid) : place.binary;
    const auto path = symbols::resolve_library(binary, request_.config.pid);
    const auto file = path ? request_.symbols->elf_file(*path) : tl::unexpected(path.error());
    const auto debug = file ? (*file)->debug_info() : tl::unexpected(file.error());
    if (!debug) return environment_error(debug.error());
    path_ = shared_path_ = *path;
    const std::vector<symbols::Statement> statements = (*debug)->statements(place.file, place.line, place.column);
    if (statements.empty()) return no_statement(**debug, place);
    for (const symbols::Statement& statement : statements) {
      const auto offset = (*file)->offset_of_address(statement.address);
      if (!offset) continue;
      add(statement.function, *offset, 0);
      program::Probe& probe = out_.back().probe;
      if (const auto symbol = (*file)->function_at(statement.address))
        probe.offset = statement.address - symbol->address;
      probe.number = statement.line;
      probe.name = fmt::format("{}:{}@{}:{}", kRow.name, path_, place.file, statement.line);
      if (place.column != 0) probe.name += fmt::format(":{}", place.column);
    }
    return finished(**file);
  }

  std::vector<spec::BoundProbe> no_statement(symbols::DebugInfo& debug, const LineTarget& place) {
    const std::string lines = near_lines(debug, place);
    const std::string similar = lines.empty() ? near_file(debug, place.file) : "";
    if (lines.empty())
      request_.diagnostics.error("no-such-file", request_.point.span,
                                 fmt::format("{} has no code from a source file `{}`", path_, place.file),
                                 similar.empty() ? "" : fmt::format("did you mean `{}`?", similar));
    else
      request_.diagnostics.error("no-such-line", request_.point.span,
                                 fmt::format("no statement begins at {}:{}", place.file, place.line), lines);
    return {};
  }

  // Probes share a program if what the action reads lies in the same places. Where a wildcard's functions return
  // different types, results are plain numbers.
  std::vector<spec::BoundProbe> finished(const symbols::ElfFile& file) {
    const bool is_return = &kRow == &kUretprobe;
    const WantedFields wanted{request_.uses_args && !is_return, request_.uses_locals && !is_return,
                              request_.uses_retval && is_return};
    if (!wanted.any()) return std::move(out_);
    std::vector<spec::BoundProbe> described;
    std::set<std::string> shapes;
    std::optional<Error> problem;
    for (spec::BoundProbe& bound : out_) {
      const auto fields = user_fields(file, request_.types, bound.probe, wanted);
      if (!fields) problem = fields.error();
      // Of a wildcard those without debug information or arguments are left out.
      if (!fields && !wanted.retval) continue;
      const auto is_readable = [](const spec::ContextField& field) { return field.unreadable.empty(); };
      if (fields && wanted.args && out_.size() > 1 && std::ranges::none_of(fields->args, is_readable)) continue;
      const std::string shape = fields ? shape_of(*fields) : "";
      shapes.insert(shape);
      described.push_back(bound);
      if (fields) described.back().share += kShapeBegin + shape;
    }
    if (wanted.retval && shapes.size() > 1) return std::move(out_);
    if (described.empty() && problem && !is_one_of_many_) {
      request_.diagnostics.error("no-debug-info", request_.point.span, problem->message, problem->hint);
    }
    return described;
  }

  // The program's entry was called by nobody: what a uretprobe would take for the return address is argc.
  static bool has_no_return(const std::string& function) { return &kRow == &kUretprobe && function == "_start"; }

  // Compilers put what is seldom run elsewhere, under a name of its own: no function, and never called.
  bool is_part(const std::string& function) const {
    return function.find(".cold") != function.npos && request_.parts.back().find("cold") == std::string::npos;
  }

  // A function's entry, or its return. A Go function may be entered twice for one call, and as its stack moves, the
  // kernel must not put a return address of its own there: it is probed where it returns.
  void add_boundary(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol, const std::string& name) {
    if (!file.go_binary()) return add(name, symbol.file_offset, 0);
    const kernel::Arch& arch = request_.kernel.arch();
    const std::string_view bytes = file.bytes_at(symbol.file_offset, symbol.size);
    const std::span code(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (&kRow != &kUretprobe) return add(name, symbol.file_offset + symbols::after_stack_check(arch, code), 0);
    for (const uint64_t at : symbols::return_instructions(arch, code)) {
      add(name, symbol.file_offset + at, 0);
      out_.back().probe.number = kAtReturnInstruction;
    }
  }

  void add_all(const symbols::ElfFile& file, const std::vector<symbols::ElfSymbol>& found) {
    std::set<uint64_t> seen;
    for (const symbols::ElfSymbol& symbol : found) {
      if (symbol.is_ifunc || is_part(symbol.name) || has_no_return(symbol.name)) continue;
      if (!seen.insert(symbol.file_offset).second) continue;
      const size_t before = out_.size();
      add_boundary(file, symbol, symbol.name);
      for (size_t i = before; i < out_.size(); ++i) out_[i].probe.is_optional = true;
    }
  }

  void add_function(const symbols::ElfFile& file, const std::string& text) {
    const FunctionOffset place = split_offset(text);
    const auto symbol = file.find_function(place.function);
    if (!symbol && is_one_of_many_) return;
    if (!symbol) return place.offset == 0 && add_copies(file, text) ? void() : suggest(file, place.function);
    if (&kRow == &kUretprobe && place.offset > 0) {
      request_.diagnostics.error("offset-on-return", request_.point.span,
                                 "a uretprobe fires when a function returns: it takes no offset");
      return;
    }
    if (has_no_return(place.function)) {
      request_.diagnostics.error("no-return", request_.point.span,
                                 "`_start` is where a program begins: it never returns");
      return;
    }
    if (place.offset > 0 && place.offset >= symbol->size) {
      request_.diagnostics.error(
          "offset-outside", request_.point.span,
          fmt::format("`{}` is {} bytes long: offset {} is outside it", place.function, symbol->size, place.offset));
      return;
    }
    if (place.offset == 0) return add_boundary(file, *symbol, place.function);
    if (!is_boundary(file, *symbol, place.function, place.offset)) return;
    add(place.function, symbol->file_offset, place.offset);
  }

  // A breakpoint in the midst of an instruction would make another one of it.
  bool is_boundary(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol, const std::string& name,
                   uint64_t offset) {
    const kernel::Arch& arch = request_.kernel.arch();
    const std::string_view code = file.bytes_at(symbol.file_offset, symbol.size);
    if (arch.instruction_length == nullptr || file.machine() != arch.elf_machine) return true;
    const std::span bytes(reinterpret_cast<const uint8_t*>(code.data()), code.size());
    uint64_t at = 0;
    while (at < offset && at < bytes.size()) {
      const uint32_t length = arch.instruction_length(bytes.subspan(at));
      if (length == 0) return true;  // data among the code
      if (at + length > offset) {
        request_.diagnostics.error("not-an-instruction", request_.point.span,
                                   fmt::format("`{}+{}` is in the midst of an instruction", name, offset),
                                   fmt::format("instructions begin at +{} and +{}", at, at + length));
        return false;
      }
      at += length;
    }
    return true;
  }

  void add_address(const symbols::ElfFile& file, uint64_t address, const std::string& text) {
    const auto offset = file.offset_of_address(address);
    if (!offset) {
      request_.diagnostics.error("address-outside", request_.point.span,
                                 fmt::format("{} has no code at {}", path_, text));
      return;
    }
    const auto symbol = file.function_at(address);
    if (symbol && !is_boundary(file, *symbol, symbol->name, address - symbol->address)) return;
    add(text, *offset, 0);
  }

  // A function of which there is nothing but inlined copies is probed where they begin.
  bool add_copies(const symbols::ElfFile& file, const std::string& function) {
    const auto debug = &kRow == &kUprobe ? file.debug_info() : fail("");
    if (!debug) return false;
    const size_t before = out_.size();
    for (const symbols::Statement& copy : (*debug)->inlined_copies(function)) {
      const auto offset = file.offset_of_address(copy.address);
      if (!offset) continue;
      add(copy.function, *offset, 0);
      out_.back().probe.number = copy.line;
    }
    return out_.size() > before;
  }

  void suggest(const symbols::ElfFile& file, const std::string& name) {
    const std::vector<symbols::ElfSymbol> all = file.functions();
    std::vector<std::string_view> names;
    for (const symbols::ElfSymbol& symbol : all) names.push_back(symbol.name);
    const std::string near = nearest(name, names);
    if (near.empty()) return;  // the checker says that nothing matches
    request_.diagnostics.error("no-such-function", request_.point.span,
                               fmt::format("{} has no function `{}`", path_, name),
                               fmt::format("did you mean `{}`?", near));
  }

  void add(const std::string& function, uint64_t file_offset, uint64_t offset) {
    spec::BoundProbe bound;
    bound.probe.provider = kRow.name;
    bound.probe.target = path_;
    bound.probe.function = function;
    bound.probe.address = file_offset + offset;
    bound.probe.offset = offset;
    bound.probe.name = fmt::format("{}:{}:{}", kRow.name, path_, function);
    if (offset > 0) bound.probe.name += fmt::format("+{}", offset);
    bound.probe.span = request_.point.span;
    const bool is_multi = request_.kernel.has(kernel::Feature::kUprobeMulti);
    bound.share = is_multi ? "multi/" + shared_path_ : "perf/" + bound.probe.name;
    out_.push_back(std::move(bound));
  }

  spec::BindRequest& request_;
  std::string path_;
  std::string shared_path_;      // whose probes share a program
  bool is_one_of_many_ = false;  // of the files that a wildcard stands for
  std::vector<spec::BoundProbe> out_;
};

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  return Binder<kRow>(request).bind();
}

// arg0, arg1, ... of a Go function: in Go's registers, or, before Go 1.17, on the stack. The first result is where the
// others' is.
void use_go_convention(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types, bool uses_registers,
                       bool is_return) {
  if (is_return) return;
  const auto is_numbered = [](const spec::ContextField& field) { return field.name.starts_with("arg"); };
  const auto count = static_cast<uint32_t>(std::ranges::count_if(context.arguments, is_numbered));
  std::erase_if(context.arguments, is_numbered);
  std::vector<spec::ContextField> out;
  using Kind = spec::Recipe::Kind;
  for (const uint32_t offset : symbols::go_argument_offsets(arch))
    if (uses_registers)
      out.push_back({fmt::format("arg{}", out.size()), types.uint64(), {Kind::kContext, offset, 0, 8, false}});
  while (!uses_registers && out.size() < count) {
    const auto at = static_cast<uint32_t>(arch.stack_argument_start_bytes + out.size() * 8);
    out.push_back({fmt::format("arg{}", out.size()),
                   types.uint64(),
                   {Kind::kUserStackWord, arch.stack_pointer_offset, at, 8, false}});
  }
  context.arguments.insert(context.arguments.begin(), out.begin(), out.end());
}

template <bool kIsReturn>
spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out = uprobe_context(request, kIsReturn);
  const program::Probe& probe = request.probes.front();
  add_frame(out, request.kernel.arch(), kIsReturn);
  const auto file = request.symbols != nullptr ? request.symbols->elf_file(probe.target) : fail("");
  if (!file) return out;
  if (const auto& go = (*file)->go_binary()) {
    use_go_convention(out, request.kernel.arch(), request.types, go->uses_registers, kIsReturn);
    // A stack that grows moves: calls cannot be told apart by where they are.
    out.frame.reset();
    out.return_address.reset();
  }
  if (request.share.find(kShapeBegin) == std::string_view::npos) return out;
  const WantedFields wanted{request.uses_args && !kIsReturn, request.uses_locals && !kIsReturn,
                            request.uses_retval && kIsReturn};
  auto fields = user_fields(**file, request.types, probe, wanted);
  if (!fields) return out;
  const auto complete = [&](const spec::ContextField& field) { request.kernel.complete(request.types, field.type); };
  std::ranges::for_each(fields->args, complete);
  std::ranges::for_each(fields->locals, complete);
  out.args = std::move(fields->args);
  out.locals = std::move(fields->locals);
  if (fields->retval) out.retval = std::move(fields->retval);
  return out;
}

template <bool kIsReturn>
Status attach(spec::AttachRequest& request) {
  if (request.program.programs[request.program_id].expected_attach_type == kAttachUprobeSession) {
    const std::vector<program::ProbeId> entries = probes_of(request, kUprobe);
    return attach_uprobes({request.machine, request.program, request.program_id, entries, request.config}, false);
  }
  const program::Probe& first = request.program.probes[request.probes.front()];
  return attach_uprobes(request, kIsReturn && first.number != kAtReturnInstruction);
}

std::vector<std::shared_ptr<const symbols::ElfFile>> listed_files(spec::ListRequest& request, std::string_view binary) {
  const auto& pid = request.config.pid;
  const std::string target = binary.empty() && pid ? fmt::format("/proc/{}/exe", *pid) : std::string(binary);
  std::vector<std::string> paths;
  if (has_wildcard(target))
    paths = symbols::find_libraries(target, pid);
  else if (auto path = symbols::resolve_library(target, pid))
    paths.push_back(std::move(*path));
  std::vector<std::shared_ptr<const symbols::ElfFile>> out;
  for (const std::string& path : paths)
    if (const auto file = request.symbols->elf_file(path)) out.push_back(*file);
  return out;
}

// Statements as probes: with -v where each is, and what can be read there.
std::vector<spec::ListedProbe> list_statements(spec::ListRequest& request, const symbols::ElfFile& file,
                                               symbols::DebugInfo& debug,
                                               const std::vector<symbols::Statement>& statements) {
  std::vector<spec::ListedProbe> out;
  for (const symbols::Statement& statement : statements) {
    const std::string_view name = base_name(statement.file);
    spec::ListedProbe listed{fmt::format("uprobe:{}@{}:{}", file.path(), name, statement.line)};
    if (!request.verbose) {
      if (out.empty() || out.back().name != listed.name) out.push_back(std::move(listed));
      continue;
    }
    std::string where = fmt::format("column {} in {}", statement.column, statement.function);
    if (!statement.inlined_into.empty()) where += ", inlined into " + statement.inlined_into;
    if (const auto function = file.function_at(statement.address))
      where += fmt::format(", at {}+{}", function->name, statement.address - function->address);
    listed.arguments =
        describe_variables(debug, request.types, request.kernel.arch(), statement.address, statement.function);
    listed.arguments.insert(listed.arguments.begin(), std::move(where));
    out.push_back(std::move(listed));
  }
  return out;
}

template <const spec::Provider& kRow>
void add_listed(spec::ListRequest& request, const symbols::ElfFile& file, const symbols::ElfSymbol& symbol,
                std::vector<spec::ListedProbe>& out) {
  spec::ListedProbe listed{fmt::format("{}:{}:{}", kRow.name, file.path(), symbol.name), {}};
  if (request.verbose) {
    if (const auto debug = file.debug_info())
      listed.arguments = &kRow == &kUprobe
                             ? describe_arguments(**debug, request.types, request.kernel.arch(), symbol.address)
                             : describe_result(**debug, request.types, request.kernel.arch(), symbol.address);
  }
  out.push_back(std::move(listed));
}

template <const spec::Provider& kRow>
void list_functions(spec::ListRequest& request, const symbols::ElfFile& file, std::vector<spec::ListedProbe>& out) {
  const std::string pattern = request.parts.size() < 2 ? "*" : request.parts.back();
  const bool is_cpp = request.parts.size() == 3 && request.parts[1] == "cpp";
  const std::vector<symbols::ElfSymbol> found =
      is_cpp ? file.functions_by_demangled_name(pattern) : file.functions(pattern);
  for (const symbols::ElfSymbol& symbol : found) add_listed<kRow>(request, file, symbol, out);
  const auto debug = request.verbose && found.size() == 1 && &kRow == &kUprobe ? file.debug_info() : fail("");
  if (!debug) return;
  for (spec::ListedProbe& each :
       list_statements(request, file, **debug, (*debug)->statements_of(found.front().address)))
    out.push_back(std::move(each));
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  if (request.parts.empty() && !request.config.pid) return {};
  std::vector<spec::ListedProbe> out;
  if (const auto place = parse_line_target(request.parts)) {
    const auto files = listed_files(request, place->binary);
    const auto debug = files.size() == 1 && &kRow == &kUprobe ? files[0]->debug_info() : fail("");
    if (!debug) return {};
    return list_statements(request, *files[0], **debug, (*debug)->statements(place->file, place->line, place->column));
  }
  for (const auto& file : listed_files(request, request.parts.empty() ? "" : request.parts[0]))
    list_functions<kRow>(request, *file, out);
  return out;
}

}  // namespace

const spec::Provider kUprobe = {
    .name = "uprobe",
    .aliases = {"u"},
    .doc =
        "Fires when a function of a program or library is entered, or at an instruction or a statement inside it. With "
        "debug information, `args` has its arguments and `locals` the variables that can be read there. BINARY is a "
        "path, a "
        "command in $PATH, the name of a library, `ARCHIVE!/PATH` of a library that lies uncompressed in a ZIP "
        "archive, or a "
        "wildcard: of a path, or of the names of the files that processes, or the one of -p, run and have loaded.",
    .form = "uprobe:BINARY:FUNCTION, uprobe:BINARY:FUNCTION+OFFSET, uprobe:BINARY:0xADDRESS or uprobe:BINARY@FILE:LINE",
    .bind = bind<kUprobe>,
    .context = context<false>,
    .attach = attach<false>,
    .list = list<kUprobe>,
    .needs_target_to_list = true,
    .example = "uprobe:libc:getaddrinfo { printf(\"%s asks for %s\\n\", comm, str(arg0)); }"};

const spec::Provider kUretprobe = {.name = "uretprobe",
                                   .aliases = {"ur"},
                                   .doc =
                                       "Fires when a function of a program or library returns. With debug information, "
                                       "`retval` has its type.",
                                   .form = "uretprobe:BINARY:FUNCTION",
                                   .bind = bind<kUretprobe>,
                                   .context = context<true>,
                                   .attach = attach<true>,
                                   .list = list<kUretprobe>,
                                   .needs_target_to_list = true,
                                   .example = "uretprobe:/bin/bash:readline { printf(\"%s\\n\", str(retval)); }"};

}  // namespace espy::probes

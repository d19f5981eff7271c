// uprobe and uretprobe: functions, instructions and source lines of programs and libraries.
//
// The problem. Users name a binary and a function; the kernel needs a file and an offset. A wildcard can match
// thousands of functions, and a perf event for each takes a system call to attach and a grace period to detach, which
// is a minute for a thousand functions.
//
// The approach. One uprobe_multi link (Linux 6.6) takes all offsets of a file and a cookie for each: the index of the
// probe. It attaches in milliseconds, detaches in tens of them, and all functions of an attach point share one program.
// If the kernel has no such link, or its pid filter does not work, each probe is a perf event, and the helper process
// of `detach_all` closes them.
//
// Lookup. FUNCTION is found in the ELF symbol tables (symtab, dynsym, the separate debug file); FUNCTION+OFFSET is
// relative to it; 0xADDRESS is a virtual address of the file; cpp:"ns::f" is a demangled name, with all of its
// overloads (user_function.h). Symbols have virtual addresses, which the program headers map to file offsets. Several
// names for an address are one probe.
//
// Preemption. A uprobe runs in the thread that hit it and can be preempted, so two threads can run the same program on
// one CPU: aggregations are atomic, and scratch memory is reserved per run (lower/memory.cc). With a sleepable program,
// the thread can also wait for a page that the script reads (lower/reads.cc); it keeps its CPU and its scratch memory
// meanwhile.
//
// Limits. The kernel refuses instructions that it cannot single-step, but not offsets inside an instruction, so
// instruction boundaries are checked here, by decoding the function from its start.
//
// See also: user_function.cc for what needs debug information (arguments and variables by name, source lines) and for
// listing, uprobe_attach.cc for attaching.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/strings.h"
#include "base/untrusted_file.h"
#include "load/machine.h"
#include "probes/breaking_places.h"
#include "probes/probe_support.h"
#include "probes/user_function.h"
#include "symbols/elf_image.h"
#include "symbols/library.h"
#include "symbols/returns.h"
#include "symbols/symbols.h"
#include "symbols/unwind.h"

namespace espy::probes {

extern const spec::Provider kUprobe;
extern const spec::Provider kUretprobe;

namespace {

constexpr size_t kMostResultTypes = 16;  // of the functions of a wildcard, each with a program of its own

constexpr uint64_t kStackCheckBytes = 256;  // at the start of a Go function: have its stack check, if any
constexpr size_t kMostReturns = 1 << 20;    // of a file: more than may be probed

template <const spec::Provider& kRow>
class Binder {
 public:
  explicit Binder(spec::BindRequest& request) : request_(request) {}

  std::vector<spec::BoundProbe> bind() {
    if (!request_.is_listing() && report_shared_frames(request_)) return {};
    return bind_in_processes(request_, [this](std::optional<uint32_t> pid, SeenFiles& seen) {
      pid_ = pid;
      seen_files_ = &seen;
      return bind_names();
    });
  }

 private:
  std::vector<spec::BoundProbe> bind_names() {
    const auto parts = request_.parts;
    if (const auto place = parse_line_target(parts)) return at_line(*place);
    if (parts.size() == 1 && pid_) return in_file(fmt::format("/proc/{}/exe", *pid_), parts);
    if (parts.size() < 2 || !parse_function_pattern(parts.subspan(1)))
      return report_wrong_form(request_, kRow.form, "uprobe:/bin/bash:readline");
    if (has_wildcard(parts[0])) return in_files(parts[0], parts.subspan(1));
    const auto path = symbols::resolve_library(parts[0], pid_, request_.kernel.arch());
    if (!path) return missing_file(path.error());
    return in_file(*path, parts.subspan(1));
  }

  std::vector<spec::BoundProbe> missing_file(const Error& error) {
    request_.missing.error("bad-target", request_.point.span, error.message, error.hint);
    return {};
  }

  std::vector<spec::BoundProbe> environment_error(const Error& error) {
    refuse("bad-target", error.message, error.hint);
    return {};
  }

  // Files without the function, and files that cannot be read any more, are skipped.
  std::vector<spec::BoundProbe> in_files(const std::string& pattern, std::span<const std::string> place) {
    has_file_wildcard_ = true;
    std::vector<spec::BoundProbe> all;
    for (const std::string& path : symbols::find_libraries(pattern, pid_)) {
      for (spec::BoundProbe& bound : in_file(path, place)) {
        bound.probe.is_optional = true;
        all.push_back(std::move(bound));
      }
    }
    return all;
  }

  std::vector<spec::BoundProbe> in_file(const std::string& path, std::span<const std::string> place) {
    out_.clear();
    read_code_ = {};
    finder_.reset();
    keeps_returns_ = unwinds_ = false;
    unseen_ = stopping_ = {};
    const auto file = open_to_probe(request_, path);
    if (!file && has_file_wildcard_) return {};
    if (!file) return without_symbols(path, place.back(), file.error());
    if (!has_file_wildcard_) warn_unless_mapped(request_, path, **file, pid_);
    if (!is_new_file(*seen_files_, **file)) return {};
    take_file(path, **file);
    // One program serves all files, except Go binaries, which have another calling convention, and actions that use
    // symbols of the file.
    is_for_any_file_ = has_file_wildcard_ && !request_.uses.file && !(*file)->go_binary();
    pattern_ = parse_function_pattern(place).value_or(FunctionPattern{});
    const std::string& text = pattern_.text;
    const auto address = pattern_.is_source_name ? std::nullopt : parse_int(text);
    if (address && *address >= 0)
      add_address(**file, static_cast<uint64_t>(*address), text);
    else
      add_functions(**file);
    tell_returns();
    return with_layouts(**file);
  }

  // In a file that is not ELF, such as a Windows program, addresses are offsets in the file.
  std::vector<spec::BoundProbe> without_symbols(const std::string& path, const std::string& place, const Error& error) {
    const auto offset = parse_int(place);
    if (error.code == ENOENT) return missing_file(error);
    if (!request_.config.allow_unsafe || !offset || *offset < 0 || &kRow == &kUretprobe)
      return environment_error(error);
    path_ = path;
    file_ = state_of(path).value_or(FileState());
    add_at(place, static_cast<uint64_t>(*offset));
    return std::move(out_);
  }

  std::vector<spec::BoundProbe> at_line(const LineTarget& place) {
    if (&kRow == &kUretprobe) {
      refuse("offset-on-return", "a uretprobe fires at the return of a function and takes no line");
      return {};
    }
    const std::string binary = place.binary.empty() && pid_ ? fmt::format("/proc/{}/exe", *pid_) : place.binary;
    const auto path = symbols::resolve_library(binary, pid_, request_.kernel.arch());
    const auto file = path ? open_to_probe(request_, *path) : tl::unexpected(path.error());
    if (!path || (!file && file.error().code == ENOENT)) return missing_file(path ? file.error() : path.error());
    const auto debug = file ? (*file)->debug_info() : tl::unexpected(file.error());
    if (!debug) return environment_error(debug.error());
    warn_unless_mapped(request_, *path, **file, pid_);
    if (!is_new_file(*seen_files_, **file)) return {};
    take_file(*path, **file);
    const std::vector<symbols::Statement> statements = (*debug)->statements(place.file, place.line, place.column);
    if (const Status status = (*debug)->status(); !status) return environment_error(status.error());
    if (statements.empty()) return no_statement(**debug, place);
    for (const symbols::Statement& statement : statements) {
      // Registers hold the arguments at the entry of a function; its variables have no values yet.
      const bool is_at_entry = statement.entry != 0 && place.column == 0 && !request_.uses.locals;
      const uint64_t address = is_at_entry ? statement.entry : statement.address;
      const auto offset = (*file)->offset_of_address(address);
      if (!offset) continue;
      add_at(statement.function, *offset);
      program::Probe& probe = out_.back().probe;
      if (const auto symbol = (*file)->function_at(address)) probe.offset = address - symbol->address;
      probe.number = statement.line;
      probe.name = fmt::format("{}:{}@{}:{}", kRow.name, path_, place.file, statement.line);
      if (place.column != 0) probe.name += fmt::format(":{}", place.column);
    }
    return with_layouts(**file);
  }

  std::vector<spec::BoundProbe> no_statement(symbols::DebugInfo& debug, const LineTarget& place) {
    const std::string lines = nearest_lines_hint(debug, place);
    const std::string similar = lines.empty() ? most_similar_file(debug, place.file) : "";
    if (lines.empty())
      request_.missing.error("no-such-file", request_.point.span,
                             fmt::format("{} has no code from a source file `{}`", path_, place.file),
                             similar.empty() ? "" : fmt::format("did you mean `{}`?", similar));
    else
      request_.missing.error("no-such-line", request_.point.span,
                             fmt::format("no statement begins at {}:{}", place.file, place.line), lines);
    return {};
  }

  // Adds the layout of the debug fields to `share`: probes share a program if the fields that the action reads are at
  // the same locations. If the functions of a wildcard return many different types, pointers are all `void *`.
  std::vector<spec::BoundProbe> with_layouts(const symbols::ElfFile& file) {
    refuse_breaking(request_, file, out_, replaces_return);
    std::vector<spec::BoundProbe> described = describe(file);
    move_behind_nops(request_, file, described);  // after the layouts, which are those at the entry
    return described;
  }

  std::vector<spec::BoundProbe> describe(const symbols::ElfFile& file) {
    const bool is_return = &kRow == &kUretprobe;
    const WantedFields wanted{request_.uses.args && !is_return, request_.uses.locals && !is_return,
                              request_.uses.retval && is_return};
    if (!wanted.any()) return std::move(out_);
    std::vector<spec::BoundProbe> described;
    std::vector<size_t> pointers;  // indexes of those that return one
    std::set<std::string> layouts;
    std::optional<Error> problem;
    LeftOut left_out;
    for (spec::BoundProbe& bound : out_) {
      const auto fields = user_fields(file, request_.types, bound.probe, wanted);
      if (!fields) problem = fields.error();
      // Functions of a wildcard are skipped without debug information, arguments, or a result that can be read.
      const std::string why = fields ? why_nothing_to_read(*fields, wanted, bound.probe) : fields.error().message;
      const bool is_skipped = fields ? out_.size() > 1 && !why.empty() : !wanted.retval;
      if (is_skipped) left_out.add(bound.probe.function, why);
      if (is_skipped) continue;
      const std::string layout = fields ? layout_key(*fields) : "";
      layouts.insert(layout);
      if (fields && fields->retval && is_opaque_pointer(fields->retval->type)) pointers.push_back(described.size());
      described.push_back(bound);
      if (fields) described.back().share.layout = layout;
    }
    if (layouts.size() > kMostResultTypes)
      for (const size_t index : pointers) {
        described[index].share.layout = "";
        described[index].share.is_any_pointer = true;
      }
    if (described.empty() && problem && !has_file_wildcard_) {
      refuse("no-debug-info", problem->message, problem->hint);
    }
    if (!described.empty()) tell_left_out(left_out);
    return described;
  }

  static bool replaces_return(const program::Probe& probe) { return &kRow == &kUretprobe && !is_at_return(probe); }

  void tell_left_out(const LeftOut& left_out) {
    if (left_out.count == 0 || request_.is_listing()) return;
    warning("functions-left-out",
            fmt::format("espy skips {} of {} functions of {}, because nothing of them can be read: {}", left_out.count,
                        out_.size(), path_, left_out.names),
            left_out.first_reason);
  }

  static std::string why_nothing_to_read(const UserFields& fields, const WantedFields& wanted,
                                         const program::Probe& probe) {
    if (wanted.retval) return fields.retval ? fields.retval->unreadable : "";
    const std::vector<spec::ContextField>& arguments = fields.args;
    if (!wanted.args) return "";
    if (arguments.empty()) return fmt::format("`{}` has no arguments", probe.function);
    const auto is_readable = [](const spec::ContextField& field) { return field.unreadable.empty(); };
    return std::ranges::any_of(arguments, is_readable) ? "" : arguments.front().unreadable;
  }

  bool is_opaque_pointer(types::TypeId id) const {
    const types::Type& type = request_.types[id];
    return type.kind == types::Kind::kPointer && !request_.types[type.element].char_like;
  }

  // The entry point has no caller: a uretprobe would take argc for its return address.
  static bool has_no_return(const std::string& function) { return &kRow == &kUretprobe && function == "_start"; }

  // Compilers move unlikely code to a separate symbol, which is not a function and is never called.
  bool is_cold_part(const std::string& function) const {
    return function.find(".cold") != function.npos && request_.parts.back().find("cold") == std::string::npos;
  }

  // Adds the entry of a function, or its return. The entry of a Go function comes after its stack check, which may run
  // twice for a call.
  void add_boundary(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol) {
    if (&kRow == &kUretprobe && !request_.is_listing() && (file.go_binary() || keeps_returns_))
      return add_returns(file, symbol);
    add(symbol.name, entry_of(file, symbol), 0);
  }

  // The offset in the file of the probe at the entry.
  uint64_t entry_of(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol) const {
    if (!file.go_binary()) return symbol.file_offset;
    const std::string bytes = file.bytes_at(symbol.file_offset, std::min(symbol.size, kStackCheckBytes));
    const std::span code(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    return symbol.file_offset + symbols::after_stack_check(request_.kernel.arch(), code);
  }

  // The kernel sees the return of a call by replacing its return address. A Go stack can move, and an exception does
  // not pass that address, so these functions have a probe at each return instruction. Functions in C++ or Rust that
  // can return in another way are probed as the kernel does it, and named in a warning.
  void add_returns(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol) {
    if (!read_code_.add(symbol)) return refuse_overlapping_code();
    const symbols::Returns returns = finder(file).find(symbol);
    const bool is_go = file.go_binary().has_value();
    const bool is_empty = !returns.file_offsets.empty() && returns.file_offsets.front() == symbol.file_offset;
    if (returns.file_offsets.empty() && returns.why_incomplete.empty() && !has_wildcard(pattern_.text))
      refuse("no-return", fmt::format("`{}` never returns: it has no return instruction",
                                      shown_function(symbol.name, request_.config)));
    const bool is_replaced = !is_go && (is_empty || !returns.why_incomplete.empty());
    if (is_go && !returns.why_incomplete.empty()) unseen_.add(symbol.name, returns.why_incomplete);
    if (is_replaced) add(symbol.name, symbol.file_offset, 0);
    if (is_replaced && !is_empty) note_stopping(symbol.name, returns.why_incomplete);
    for (const uint64_t at : is_replaced ? std::vector<uint64_t>() : returns.file_offsets) {
      if (out_.size() >= kMostReturns) return refuse_overlapping_code();
      add(symbol.name, at, 0);
      out_.back().probe.offset = at - entry_of(file, symbol);
      out_.back().probe.number = kAtReturnInstruction;
      out_.back().share.method += kAtReturns;
    }
  }

  // The probe that was added last is of a return whose address the kernel replaces.
  void note_stopping(const std::string& function, const std::string& why) {
    out_.back().probe.number = kStopsExceptions;
    stopping_.add(shown_function(function, request_.config), why);
  }

  // Warns of what is known about returns.
  void tell_returns() {
    if (request_.is_listing()) return;
    if (unseen_.count > 0)
      warning("returns-not-seen", fmt::format("espy may miss returns of {} in {}", unseen_.text(), path_),
              unseen_.reason());
    if (stopping_.count > 0 && !unwinds_)
      warning("breaks-program",
              fmt::format("{} uses functions that switch stacks: a switch within {} can break the program", path_,
                          stopping_.text()),
              fmt::format("{}, so the kernel has to replace its return address; `uprobe` is safe", stopping_.reason()));
    if (stopping_.count > 0 && unwinds_)
      warning("stops-exceptions",
              fmt::format("an exception that passes {} in {} ends the program", stopping_.text(), path_),
              fmt::format("{}, so the kernel has to replace its return address; `uprobe` is safe", stopping_.reason()));
  }

  // Of files by a wildcard, this one is skipped.
  void refuse_overlapping_code() {
    if (!read_code_.is_refused && !has_file_wildcard_)
      refuse("bad-target",
             path_ + " has functions that overlap, or too much code to look for the return instructions of all");
    read_code_.is_refused = true;
    out_.clear();
  }

  // Without a size nothing tells that code begins there: a breakpoint in data corrupts it.
  bool may_be_data(const symbols::ElfSymbol& symbol) const { return symbol.size == 0 && !request_.config.allow_unsafe; }

  void refuse_unknown_size(const std::string& name) {
    refuse("unknown-size", fmt::format("the symbol table has no size for `{}`: it may not be a function", name),
           "--unsafe attaches there; a probe that hits no instruction breaks the program");
  }

  // A symbol may be in memory that no byte of the file is loaded to.
  static bool is_in_file(const symbols::ElfSymbol& symbol) { return symbol.file_offset != 0; }

  void refuse_no_code(const std::string& name) {
    refuse("no-code", fmt::format("`{}` is not a function: {} has no code there", name, path_));
  }

  void add_chosen(const symbols::ElfFile& file, std::vector<symbols::ElfSymbol> found) {
    constexpr bool kIsReturn = &kRow == &kUretprobe;
    const bool reads_registers = request_.uses.context && !request_.is_listing();
    ProbedFunctions chosen = choose_functions(file, pattern_, std::move(found), {kIsReturn, reads_registers});
    if (chosen.error) {
      if (!has_file_wildcard_) refuse("indirect-function", chosen.error->message, chosen.error->hint);
      return;
    }
    add_all(file, chosen.functions);
    if (request_.is_listing() || has_file_wildcard_) return;
    tell_counted_again(file, chosen.functions);
    tell_shared_code(file, chosen.functions);
    std::string hint;
    add_inlined(file, chosen.missed, hint);
    add_thunks(file, chosen.functions, chosen.missed);
    if (chosen.missed.empty()) return;
    const std::string which = has_wildcard(pattern_.text) ? fmt::format("functions that match `{}`", pattern_.text)
                                                          : fmt::format("`{}`", pattern_.text);
    // --strict refuses it (run/run_script.cc).
    warning("partly-probed", fmt::format("not all calls of {} are seen: {}", which, join(chosen.missed, "; ")), hint);
  }

  // At the attach point.
  void refuse(const char* id, std::string message, std::string hint = "") const {
    request_.diagnostics.error(id, request_.point.span, std::move(message), std::move(hint));
  }
  void warning(const char* id, std::string message, std::string hint = "") const {
    request_.diagnostics.warning(id, request_.point.span, std::move(message), std::move(hint));
  }

  // Of functions that begin with a loop, the kernel fires in each iteration. A destructor that frees the object (D0 in
  // the Itanium C++ ABI, 5.1.4.3) calls the one that does not.
  void tell_counted_again(const symbols::ElfFile& file, const std::vector<symbols::ElfSymbol>& functions) {
    if (has_wildcard(pattern_.text) && !request_.config.counting.losses) return;
    const bool is_generic = pattern_.text.find('[') != std::string::npos;
    if (file.go_binary() && functions.size() > 1 && !has_wildcard(pattern_.text) && !is_generic)
      warning("counted-again",
              fmt::format("a call may count twice: {} functions are named `{}`, and one can be the entry of another",
                          functions.size(), pattern_.text),
              "probe one of them by its address, as `-lv` shows it");
    if (file.go_binary() || !file.is_64bit() || file.machine() != request_.kernel.arch().elf_machine) return;
    LeftOut again, twice;
    symbols::ReadCode code;
    std::map<std::string, uint64_t> destructors;  // by name up to the kind
    for (const symbols::ElfSymbol& each : functions) {
      if (each.size == 0 || !is_in_file(each) || !code.add(each)) continue;
      const std::vector<uint64_t> targets = is_probed(each) ? finder(file).jump_targets(each) : std::vector<uint64_t>();
      if (std::ranges::binary_search(targets, each.file_offset) ||
          std::ranges::binary_search(targets, behind_nops(request_.kernel, file, each.file_offset)))
        again.add(shown_function(each.name, request_.config), "");
      const size_t kind = each.name.rfind('D');
      if (!each.name.starts_with("_ZN") || kind == each.name.npos || kind + 2 > each.name.size() ||
          !each.name.substr(kind + 2).starts_with("Ev"))
        continue;
      const auto [known, is_new] = destructors.try_emplace(each.name.substr(0, kind), each.file_offset);
      if (!is_new && known->second != each.file_offset) twice.add(shown_function(each.name, request_.config), "");
    }
    // --strict refuses these (run/run_script.cc).
    if (again.count > 0)
      warning("counted-again",
              fmt::format("each iteration of a loop counts as a call: {} {} back to the first "
                          "instruction",
                          again.text(), again.count == 1 ? "jumps" : "jump"),
              "a probe at a line outside of the loop fires once");
    if (twice.count > 0)
      warning("counted-again",
              fmt::format("a call may count twice: {} can be destructors that call each other", twice.text()),
              "probe one of them by its symbol, as `-l` lists it");
  }

  // Linkers and compilers keep one of several functions with the same code. GCC leaves a jump to it in the others.
  void tell_shared_code(const symbols::ElfFile& file, const std::vector<symbols::ElfSymbol>& functions) {
    constexpr size_t kMostFunctions = 16;
    constexpr uint64_t kMostOfJump = 9;  // bytes, of endbr64 and a jump
    if (has_wildcard(pattern_.text) || functions.size() > kMostFunctions) return;
    LeftOut others, leading;
    for (const symbols::ElfSymbol& function : functions)
      for (const std::string& name : file.functions_beginning_at(function.address))
        if (std::ranges::find(functions, name, &symbols::ElfSymbol::name) == functions.end() &&
            !may_be_alias(name, function.name))
          others.add(shown_function(name, request_.config), "");
    if (reads_all(file)) {
      for (const symbols::ElfSymbol& each : file.functions()) {
        const bool is_thunk = each.name.starts_with("_ZTh") || each.name.starts_with("_ZTv");
        if (each.size == 0 || each.size > kMostOfJump || is_thunk || is_probed(each)) continue;
        if (std::ranges::any_of(finder(file).jump_targets(each), [&](uint64_t target) {
              return std::ranges::find(functions, target, &symbols::ElfSymbol::file_offset) != functions.end();
            }))
          leading.add(shown_function(each.name, request_.config), "");
      }
    }
    // --strict refuses these (run/run_script.cc).
    if (others.count > 0)
      warning("shared-code",
              fmt::format("calls of {} count as calls of `{}`: they have the same code", others.text(), pattern_.text));
    if (leading.count > 0)
      warning("shared-code", fmt::format("calls of {} count as calls of `{}`: {} there and may have the same code",
                                         leading.text(), pattern_.text, leading.count == 1 ? "it jumps" : "they jump"));
  }

  // Calls by way of a second base go through a thunk, into which a compiler may have copied the function.
  void add_thunks(const symbols::ElfFile& file, const std::vector<symbols::ElfSymbol>& functions,
                  std::vector<std::string>& missed) {
    constexpr uint64_t kMostOfJump = 32;  // bytes of a thunk that changes `this` and jumps to the function
    constexpr size_t kMostFunctions = 16;
    if (has_wildcard(pattern_.text) || functions.size() > kMostFunctions) return;
    for (const symbols::ElfSymbol& function : functions) {
      if (!function.name.starts_with("_ZN")) continue;
      for (const char* kind : {"_ZTh*_", "_ZTv*_"}) {
        for (const symbols::ElfSymbol& thunk : file.functions(kind + function.name.substr(2))) {
          const auto leads_out = [&](uint64_t target) {
            return target < thunk.file_offset || target >= thunk.file_offset + thunk.size;
          };
          const bool is_jump =
              thunk.size <= kMostOfJump && std::ranges::any_of(finder(file).jump_targets(thunk), leads_out);
          if (!is_jump && !is_probed(thunk) && missed.size() < kMostFunctions)
            missed.push_back(fmt::format("`{}` has a copy of its code", shown_function(thunk.name, request_.config)));
        }
      }
    }
  }

  bool reads_all(const symbols::ElfFile& file) const {
    constexpr uint64_t kSmallBytes = 1 << 20;  // decoded in a millisecond or two
    return request_.config.counting.losses || file.image().file().size_bytes <= kSmallBytes;
  }

  symbols::ReturnFinder& finder(const symbols::ElfFile& file) {
    if (!finder_) finder_.emplace(file, request_.kernel.arch(), reads_all(file));
    return *finder_;
  }

  // Whether a probe is at its first instruction.
  bool is_probed(const symbols::ElfSymbol& function) const {
    return std::ranges::find(out_, function.file_offset,
                             [](const spec::BoundProbe& each) { return each.probe.address; }) != out_.end();
  }

  // Where a function of this name is inlined, its calls pass no probe. To find the places takes as long as to read the
  // debug information, so they are looked for where it is small, or exact numbers are wanted.
  void add_inlined(const symbols::ElfFile& file, std::vector<std::string>& missed, std::string& hint) {
    constexpr uint64_t kSmallBytes = 8 << 20;
    if (has_wildcard(pattern_.text) || file.go_binary() || !file.is_64bit()) return;
    if (!request_.config.counting.losses && file.image().file().size_bytes > kSmallBytes) return;
    const auto debug = file.debug_info();
    if (!debug) return;
    const std::vector<symbols::Statement> copies = (*debug)->inlined_copies(pattern_.text);
    if (copies.empty()) return;
    missed.push_back(copies.size() == 1 ? "it is inlined in one place"
                                        : fmt::format("it is inlined in {} places", copies.size()));
    const std::vector<symbols::SourceFrame> frames = (*debug)->frames_at(copies[0].address);
    if (!frames.empty())
      hint = fmt::format("uprobe:{}@{}:{} fires in them, too", path_, base_name(frames[0].file), copies[0].line);
  }

  void add_all(const symbols::ElfFile& file, const std::vector<symbols::ElfSymbol>& found) {
    if (found.size() == 1 && !has_wildcard(pattern_.text)) return add_one(file, found.front());
    std::set<uint64_t> seen;
    for (const symbols::ElfSymbol& symbol : found) {
      if (symbol.is_ifunc || is_cold_part(symbol.name) || has_no_return(symbol.name) || may_be_data(symbol)) continue;
      if (!is_in_file(symbol)) continue;
      if (!seen.insert(symbol.file_offset).second) continue;
      const size_t before = out_.size();
      add_boundary(file, symbol);
      if (read_code_.is_refused) return;
      for (size_t i = before; i < out_.size(); ++i) out_[i].probe.is_optional = true;
    }
  }

  void add_one(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol) {
    if (!is_in_file(symbol)) return refuse_no_code(symbol.name);
    if (may_be_data(symbol)) return refuse_unknown_size(symbol.name);
    if (!has_no_return(symbol.name)) return add_boundary(file, symbol);
    refuse("no-return", "`_start` is the entry point of a program and never returns");
  }

  void add_functions(const symbols::ElfFile& file) {
    FunctionPattern whole = pattern_;
    std::vector<symbols::ElfSymbol> found = find_user_functions(file, whole);
    const FunctionOffset place = split_offset(pattern_.text);
    if (found.empty() && place.function != pattern_.text) {
      pattern_.text = place.function;
      found = find_user_functions(file, pattern_);
      if (!found.empty()) return add_at_offset(file, found, place);
    } else {
      pattern_ = whole;
    }
    if (!found.empty()) return add_chosen(file, std::move(found));
    if (has_file_wildcard_) return;
    if (const std::string why = why_cut_off(file); !why.empty()) {
      report_unavailable(request_, "bad-target", why);
      return;
    }
    if (has_wildcard(pattern_.text)) return;
    if (place.offset == 0 && add_inlined_copies(file, pattern_.text)) return;
    suggest(file);
  }

  void add_at_offset(const symbols::ElfFile& file, const std::vector<symbols::ElfSymbol>& found,
                     const FunctionOffset& place) {
    const symbols::ElfSymbol& symbol = found.front();
    if (found.size() > 1)
      return refuse(
          "ambiguous-function",
          fmt::format("{} functions are named `{}`, and an offset needs a single one", found.size(), place.function),
          pattern_.is_source_name
              ? fmt::format("name it with its parameters: {}", function_in_probe_name(pattern_, symbol.name, {}))
              : fmt::format("an address is in one of them: {:#x}", symbol.address + place.offset));
    if (&kRow == &kUretprobe)
      return refuse("offset-on-return", "a uretprobe fires at the return of a function and takes no offset");
    if (!is_in_file(symbol)) return refuse_no_code(place.function);
    if (may_be_data(symbol)) return refuse_unknown_size(place.function);
    if (symbol.size > 0 && place.offset >= symbol.size)
      return refuse("offset-outside", fmt::format("`{}` is {} bytes long: offset {} is outside it", place.function,
                                                  symbol.size, place.offset));
    if (!is_boundary(file, symbol, place.function, place.offset)) return;
    add(symbol.name, symbol.file_offset, place.offset);
  }

  bool is_boundary(const symbols::ElfFile& file, const symbols::ElfSymbol& symbol, const std::string& name,
                   uint64_t offset) {
    const uint64_t most = offset + request_.kernel.arch().max_instruction_bytes;
    return is_boundary(file, file.bytes_at(symbol.file_offset, std::min(symbol.size, most)), name, offset);
  }

  // Returns false, and reports an error, if the offset in `code`, which begins at `name`, is inside an instruction,
  // where a breakpoint would corrupt it.
  bool is_boundary(const symbols::ElfFile& file, std::string_view code, const std::string& name, uint64_t offset) {
    const kernel::Arch& arch = request_.kernel.arch();
    if (arch.instruction_length == nullptr || file.machine() != arch.elf_machine) return true;
    const std::span bytes(reinterpret_cast<const uint8_t*>(code.data()), code.size());
    uint64_t at = 0;
    while (at < offset && at < bytes.size()) {
      const uint32_t length = arch.instruction_length(bytes.subspan(at));
      if (length == 0) return true;  // data, or an unknown instruction
      if (at + length > offset) {
        refuse("not-an-instruction", fmt::format("`{}+{}` is in the middle of an instruction", name, offset),
               fmt::format("instructions begin at +{} and +{}", at, at + length));
        return false;
      }
      at += length;
    }
    return true;
  }

  // The same for an address that no symbol covers: rows of the unwind table begin at instructions.
  bool is_boundary(const symbols::ElfFile& file, uint64_t file_offset, const std::string& address) {
    if (request_.config.allow_unsafe) return true;
    const auto rows = symbols::read_unwind_rows(file, request_.kernel.arch());
    const symbols::UnwindRow* row = rows ? symbols::find_row(*rows, static_cast<uint32_t>(file_offset)) : nullptr;
    if (row != nullptr && row->rule.base() != symbols::FrameBase::kUnknown) {
      constexpr uint64_t kLongestInstruction = 16;  // bytes
      const uint64_t offset = file_offset - row->file_offset;
      const auto begin = file.address_of_offset(row->file_offset);
      return is_boundary(file, file.bytes_at(row->file_offset, offset + kLongestInstruction),
                         fmt::format("{:#x}", begin.value_or(row->file_offset)), offset);
    }
    refuse("unknown-code",
           fmt::format("neither symbols nor unwind tables of {} show an instruction at {}", path_, address),
           "--unsafe attaches there; a probe within an instruction breaks the program");
    return false;
  }

  void add_address(const symbols::ElfFile& file, uint64_t address, const std::string& text) {
    const auto offset = file.offset_of_address(address);
    if (!offset) {
      refuse("address-outside", fmt::format("{} has no code at {}", path_, text));
      return;
    }
    const auto symbol = file.function_at(address);
    const bool is_good =
        symbol ? is_boundary(file, *symbol, symbol->name, address - symbol->address) : is_boundary(file, *offset, text);
    if (!is_good) return;
    if (&kRow == &kUretprobe && (file.go_binary() || keeps_returns_))
      return add_return_at(file, symbol, address, *offset, text);
    if (!symbol) return add_at(text, *offset);
    add(symbol->name, *offset - (address - symbol->address), address - symbol->address);
    out_.back().probe.name = fmt::format("{}:{}:{}", kRow.name, path_, text);
  }

  // The return of the function at an address of a file in which return addresses should stay.
  void add_return_at(const symbols::ElfFile& file, const std::optional<symbols::ElfSymbol>& symbol, uint64_t address,
                     uint64_t offset, const std::string& text) {
    const bool is_function = symbol && symbol->address == address && symbol->size > 0;
    if (is_function) {
      add_returns(file, *symbol);
    } else if (file.go_binary()) {
      refuse("no-such-function", fmt::format("no function of {} begins at {}", path_, text),
             "a probe of a return that is not a function's breaks a Go program");
    } else {
      add_at(symbol ? shown_function(symbol->name, request_.config) : text, offset);
      note_stopping(text, "no function is known to begin there");
    }
    for (spec::BoundProbe& each : out_) each.probe.name = fmt::format("{}:{}:{}", kRow.name, path_, text);
  }

  // Adds probes at the inlined copies of a function that has no other code. Returns false if there are none.
  bool add_inlined_copies(const symbols::ElfFile& file, const std::string& function) {
    const auto debug = &kRow == &kUprobe ? file.debug_info() : fail("");
    if (!debug) return false;
    const size_t before = out_.size();
    for (const symbols::Statement& copy : (*debug)->inlined_copies(function)) {
      const auto offset = file.offset_of_address(copy.address);
      if (!offset) continue;
      add_at(copy.function, *offset);
      out_.back().probe.number = copy.line;
    }
    const size_t count = out_.size() - before;
    if (count > 0 && !request_.is_listing())
      warning("inlined-copies",
              fmt::format("{} inlined cop{} of `{}` {} probed, whose first instructions a compiler may have moved",
                          count, count == 1 ? "y" : "ies", function, count == 1 ? "is" : "are"),
              "counts can differ from the number of calls; `noinline` in the source gives the function its own code");
    return count > 0;
  }

  // The library with the function that a file of its own had before, or that the program calls: since glibc 2.34,
  // libpthread.so.0 is empty, and libc.so.6 has its functions. "" if there is none.
  std::string library_with_function() {
    constexpr size_t kMostFiles = 32;
    if (request_.symbols == nullptr || is_in_process_root(path_)) return "";
    const std::vector<std::string> files = symbols::needed_files(path_);
    for (size_t i = 1; i < std::min(files.size(), kMostFiles); ++i) {
      const auto file = request_.symbols->elf_file(files[i]);
      if (file && (*file)->find_function(pattern_.text)) return files[i];
    }
    return "";
  }

  void suggest(const symbols::ElfFile& file) {
    if (const auto made = made_of(file, pattern_.text); !made.empty() && !has_wildcard(pattern_.text)) {
      constexpr size_t kMostNames = 4;
      std::string names;
      for (size_t i = 0; i < made.size() && i < kMostNames; ++i)
        names += fmt::format("{}`{}`", i > 0 ? ", " : "", made[i]);
      report_unavailable(
          request_, "no-such-function",
          fmt::format("{} has no function `{}`: the compiler has made {} of it", path_, pattern_.text, names),
          fmt::format("name them, or `{}.*`; their arguments are others", pattern_.text));
      return;
    }
    if (const std::string library = library_with_function(); !library.empty()) {
      report_unavailable(request_, "no-such-function", fmt::format("{} has no function `{}`", path_, pattern_.text),
                         fmt::format("{} has it", library));
      return;
    }
    const std::string near = nearest_function(file, pattern_);
    if (near.empty() && !file.is_stripped()) return;  // the checker reports that nothing matches
    const std::string reason = file.is_stripped() ? ": it is stripped, only exported functions have names" : "";
    report_unavailable(request_, "no-such-function",
                       fmt::format("{} has no function `{}`{}", path_, pattern_.text, reason),
                       near.empty() ? how_to_get_names(file) : fmt::format("did you mean `{}`?", near));
  }

  static std::string how_to_get_names(const symbols::ElfFile& file) {
    const std::string& id = file.build_id();
    std::string out = "install its debug package (-dbgsym, -debuginfo)";
    if (id.size() > 2) out += fmt::format(", whose file is .build-id/{}/{}.debug", id.substr(0, 2), id.substr(2));
    return out + "; `--debuginfo DIR` says where it is; or name an address: 0x1234";
  }

  void add(const std::string& symbol, uint64_t file_offset, uint64_t offset) {
    add_at(shown_function(symbol, request_.config), file_offset + offset);
    program::Probe& probe = out_.back().probe;
    probe.offset = offset;
    probe.name = fmt::format("{}:{}:{}", kRow.name, path_, function_in_probe_name(pattern_, symbol, request_.config));
    if (offset > 0) probe.name += fmt::format("+{}", offset);
  }

  // Adds a probe at an instruction; `function` is what `func` shows.
  void add_at(const std::string& function, uint64_t file_offset) {
    spec::BoundProbe bound;
    bound.probe.provider = kRow.name;
    bound.probe.target = path_;
    bound.probe.function = function;
    bound.probe.address = file_offset;
    bound.probe.name = fmt::format("{}:{}:{}", kRow.name, path_, function);
    bound.probe.span = request_.point.span;
    bound.probe.file = file_;
    bound.probe.file_start = file_start_;
    bound.share = share_of_uprobe(request_.kernel, bound.probe, is_for_any_file_);
    out_.push_back(std::move(bound));
  }

  void take_file(const std::string& path, const symbols::ElfFile& file) {
    path_ = path;
    file_ = file.file_state();
    file_start_ = file.offset_in_archive();
    unwinds_ = &kRow == &kUretprobe && symbols::may_be_unwound(file);
    keeps_returns_ = unwinds_ || (&kRow == &kUretprobe && symbols::switches_stacks(file));
  }

  spec::BindRequest& request_;
  std::optional<uint32_t> pid_;      // of -p, whose files are probed
  SeenFiles* seen_files_ = nullptr;  // of all processes
  std::string path_;
  FileState file_;
  uint64_t file_start_ = 0;       // in the archive
  bool is_for_any_file_ = false;  // files share a program
  FunctionPattern pattern_;
  bool has_file_wildcard_ = false;
  symbols::ReadCode read_code_;
  std::optional<symbols::ReturnFinder> finder_;
  bool keeps_returns_ = false;  // return addresses are not replaced where that can be avoided
  bool unwinds_ = false;        // because of exceptions
  LeftOut unseen_;              // Go functions that can return elsewhere
  LeftOut stopping_;            // functions of kStopsExceptions
  std::vector<spec::BoundProbe> out_;
};

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  return Binder<kRow>(request).bind();
}

// Replaces arg0, arg1, ... by the arguments of the Go calling convention: in registers or, before Go 1.17, on the
// stack. The first result is in the same register as in C.
void use_go_convention(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types, bool uses_registers,
                       bool is_return) {
  if (is_return) return;
  const auto is_numbered = [](const spec::ContextField& field) { return field.name.starts_with("arg"); };
  const auto count = static_cast<uint32_t>(std::ranges::count_if(context.arguments, is_numbered));
  std::erase_if(context.arguments, is_numbered);
  std::vector<spec::ContextField> out;
  using Kind = spec::Recipe::Kind;
  for (const uint32_t offset : arch.go.argument_offsets)
    if (uses_registers)
      out.push_back({fmt::format("arg{}", out.size()), types.uint64(), {Kind::kContext, offset, 0, 8, false}});
  while (!uses_registers && out.size() < count) {
    const auto at = static_cast<uint32_t>(arch.go.stack_argument_start_bytes + out.size() * 8);
    out.push_back({fmt::format("arg{}", out.size()),
                   types.uint64(),
                   {Kind::kUserStackWord, arch.stack_pointer_offset, at, 8, false}});
  }
  context.arguments.insert(context.arguments.begin(), out.begin(), out.end());
}

// Functions of 32-bit programs get arguments by another convention, results of 64 bits are in two registers, and calls
// push 4 bytes.
void use_no_convention(spec::ProbeContext& context) {
  const auto refuse = [](spec::ContextField& field) {
    field.unreadable = fmt::format("`{}` is not known in 32-bit programs", field.name);
    field.hint = "`reg(NAME)` has the registers";
  };
  std::ranges::for_each(context.arguments, refuse);
  if (context.retval) refuse(*context.retval);
  context.frame.reset();
  context.return_address.reset();
}

// The return instruction has not removed the return address yet, and the kernel follows no calls.
void see_calls_at_instructions(spec::ProbeContext& context) {
  context.frame->displacement = 0;
  context.deepest_nesting = 0;
  context.session_attach_type = 0;
}

template <bool kIsReturn>
spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out = uprobe_context(request, kIsReturn);
  const program::Probe& probe = request.probes.front();
  add_frame(out, request.kernel.arch(), kIsReturn);
  const bool is_at_instruction = kIsReturn && probe.number == kAtReturnInstruction;
  if (is_at_instruction) see_calls_at_instructions(out);
  const auto file = request.symbols != nullptr ? request.symbols->elf_file(probe.target) : fail("");
  if (!file) return out;
  if (kernel::find_arch((*file)->machine()) == nullptr) use_no_convention(out);
  if (const auto& go = (*file)->go_binary()) {
    use_go_convention(out, request.kernel.arch(), request.types, go->uses_registers, kIsReturn);
    // A Go stack can move when it grows, so the address of a frame does not identify a call.
    out.frame.reset();
    out.return_address.reset();
  }
  if (!request.share.layout) return out;
  const WantedFields wanted{request.uses.args && !kIsReturn, request.uses.locals && !kIsReturn,
                            request.uses.retval && kIsReturn};
  auto fields = user_fields(**file, request.types, probe, wanted);
  if (!fields) return out;
  const auto complete = [&](const spec::ContextField& field) { request.kernel.complete(request.types, field.type); };
  std::ranges::for_each(fields->args, complete);
  std::ranges::for_each(fields->locals, complete);
  out.args = std::move(fields->args);
  out.locals = std::move(fields->locals);
  const bool has_result = fields->retval.has_value();
  if (has_result) out.retval = std::move(fields->retval);
  if (has_result && request.share.is_any_pointer)
    out.retval->type = request.types.pointer(request.types.void_type(), types::AddressSpace::kUser);
  return out;
}

template <bool kIsReturn>
Status attach(spec::AttachRequest& request) {
  if (request.program.programs[request.program_id].expected_attach_type == kAttachUprobeSession)
    return attach_uprobes(request, probes_of(request, kUprobe), false);
  const program::Probe& first = request.program.probes[request.probes.front()];
  return attach_uprobes(request, request.probes, kIsReturn && first.number != kAtReturnInstruction);
}

}  // namespace

bool stops_exceptions(const program::Probe& probe) {
  return probe.provider == kUretprobe.name && probe.number == kStopsExceptions;
}

bool is_at_return(const program::Probe& probe) {
  return probe.provider == kUretprobe.name && probe.number == kAtReturnInstruction;
}

extern const spec::Provider kUprobe = {
    .name = "uprobe",
    .aliases = {"u"},
    .doc =
        "Fires at the entry of a function of a program or library, or at an instruction or statement inside it. With "
        "debug information, `args` has the arguments, and `locals` the variables that are readable there. BINARY is a "
        "path, a command in $PATH, the name of a library, or `ARCHIVE!/PATH` for an uncompressed library in a ZIP "
        "archive. A wildcard matches paths, or the files that processes (or the -p process) have mapped.",
    .form = "uprobe:BINARY:FUNCTION, uprobe:BINARY:FUNCTION+OFFSET, uprobe:BINARY:0xADDRESS or uprobe:BINARY@FILE:LINE",
    .bind = bind<kUprobe>,
    .context = context<false>,
    .attach = attach<false>,
    .list = list_uprobes,
    .tell_similar = tell_why_unreadable,
    .find_type = find_program_type,
    .return_provider = &kUretprobe,
    .needs_target_to_list = true,
    .example = "uprobe:libc:getaddrinfo { printf(\"%s asks for %s\\n\", comm, str(arg0)); }"};

extern const spec::Provider kUretprobe = {
    .name = "uretprobe",
    .aliases = {"ur"},
    .doc = "Fires at the return of a function of a program or library. With debug information, `retval` has its type.",
    .form = "uretprobe:BINARY:FUNCTION",
    .bind = bind<kUretprobe>,
    .context = context<true>,
    .attach = attach<true>,
    .list = list_uretprobes,
    .tell_similar = tell_why_unreadable,
    .find_type = find_program_type,
    .needs_target_to_list = true,
    .example = "uretprobe:/bin/bash:readline { printf(\"%s\\n\", str(retval)); }"};

}  // namespace espy::probes

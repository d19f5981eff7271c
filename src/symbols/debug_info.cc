#include "symbols/debug_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <tuple>

#include "base/end_request.h"
#include "base/fatal.h"
#include "symbols/demangle.h"
#include "symbols/dwarf/dwarf_file.h"
#include "symbols/dwarf/location.h"
#include "symbols/dwarf/passing.h"
#include "symbols/dwarf/scopes.h"
#include "symbols/dwarf/split_file.h"
#include "symbols/dwarf/types.h"
#include "symbols/go_functions.h"

namespace espy::symbols {

namespace {

using dwarf::Clone;
using dwarf::kInVectorRegister;
using dwarf::LocateResult;
using dwarf::Row;
using dwarf::Site;
using dwarf::VisibleVariable;
using Clock = std::chrono::steady_clock;

// Readable lines are hints; of thousands of variables in a function of thousands of lines they would take minutes.
constexpr size_t kMaxReadableRows = 1 << 20;
// In less time the memory that is taken is not worth the two microseconds of looking.
constexpr std::chrono::milliseconds kLongPart(1);
// What is kept of the blocks of functions: as a number of functions, and of blocks with their ranges.
constexpr size_t kMaxScopes = 64;
constexpr size_t kMaxScopesSize = 1 << 19;

constexpr std::string_view kOfClone =
    "cannot be known here: the function is a copy whose arguments the compiler has changed";
constexpr std::string_view kBehindUnknown = "comes after an argument whose place is not known";
constexpr std::string_view kBehindResult = "is not known, because the result may take the register of an argument";
constexpr const char* kBehindRemoved = "comes after an argument that the compiler may have removed";

std::string description_of(const std::string& path) { return "the debug information of " + path; }

tl::unexpected<Error> takes_too_long(const std::string& path) {
  return fail(description_of(path) + " would take too long", kRefusedFile);
}

SpareTime& spare_time() {
  static SpareTime out;
  return out;
}

// Whether `wanted` is the last components of `path`: "file.c" and "dir/file.c" match "/home/me/dir/file.c".
bool ends_with_components(std::string_view path, std::string_view wanted) {
  if (!path.ends_with(wanted)) return false;
  return path.size() == wanted.size() || wanted.starts_with('/') || path[path.size() - wanted.size() - 1] == '/';
}

std::string function_name(const Dwarf_Die& function) {
  const std::string linked(dwarf::linkage_name(function));
  return linked.empty() ? std::string(dwarf::name_of(function)) : demangle(linked, DemangleStyle::kName);
}

// The Go compiler describes results as parameters.
bool is_result(const Dwarf_Die& parameter) { return dwarf::flag(parameter, DW_AT_variable_parameter); }

// Returns the path of a source file, made absolute with the compilation directory.
std::string absolute_path(const Dwarf_Die& unit, std::string_view file) {
  std::optional<Dwarf_Attribute> found = dwarf::own_attribute(unit, DW_AT_comp_dir);
  const char* directory = found ? dwarf_formstring(&*found) : nullptr;
  if (file.empty() || file.starts_with('/') || directory == nullptr) return std::string(file);
  return fmt::format("{}/{}", directory, file);
}

bool is_go(const Dwarf_Die& function) { return dwarf::producer_of(function).starts_with("Go "); }

bool uses_go_registers(const Dwarf_Die& function) {
  return is_go(function) && dwarf::producer_of(function).find("regabi") != std::string_view::npos;
}

bool is_inlined(const Dwarf_Die& scope) { return dwarf::tag(scope) == DW_TAG_inlined_subroutine; }

// Whether an inlined instance is the second half of the function around it: GCC can make a function of that half, and
// inline it again. Its call has the place of the declaration.
bool is_second_half(const Dwarf_Die& inlined, const Dwarf_Die& around) {
  const auto origin_of = [](const Dwarf_Die& die) {
    const auto origin = dwarf::reference(die, DW_AT_abstract_origin);
    return origin.value_or(die);
  };
  const Dwarf_Die declared = origin_of(inlined);
  if (declared.addr != origin_of(around).addr) return false;
  const auto is_same = [&](unsigned of_call, unsigned of_declaration) {
    return dwarf::number(inlined, of_call) == dwarf::number(declared, of_declaration);
  };
  return is_same(DW_AT_call_line, DW_AT_decl_line) && is_same(DW_AT_call_column, DW_AT_decl_column);
}

}  // namespace

struct DebugInfo::State : std::enable_shared_from_this<DebugInfo::State> {
  explicit State(const kernel::Arch& of_file) : arch(of_file), time(spare_time(), is_end_requested) {}

  std::string path;                   // of the program
  std::unique_ptr<dwarf::File> file;  // null after give_up()
  Status failure = {};                // why it gave up
  bool is_limited = false;            // within limited()
  uint64_t taken_bytes = 0;           // by what was read so far
  const kernel::Arch& arch;
  DebugTime time;  // for source lines
  std::optional<dwarf::TypeReader> reader;
  std::optional<dwarf::TypeIndex> index;
  std::map<std::tuple<uint64_t, uint64_t, const void*>, ReadableLines> readable;  // by function, scope and variable

  std::map<const void*, std::vector<Row>> breakpoints;  // by function
  std::map<const void*, dwarf::Scopes> scopes;          // by function; the latest
  dwarf::OptimisedUnits optimised = {};
  size_t readable_rows = 0;          // looked at for readable_lines
  dwarf::HintLimit hint_limit = {};  // for them

  uint64_t memory_bytes() const { return file ? file->memory_bytes() + taken_bytes : 0; }

  // Returns what `part` returns. libdw makes objects of a hundred bytes of two bytes in a file: if that takes more
  // memory than File::max_bytes(), gives up. Returns {} then and from then on.
  template <class Part>
  auto limited(Part part) -> decltype(part()) {
    if (is_limited) return part();
    if (!file) return {};
    is_limited = true;
    const auto begin = Clock::now();
    try {
      const uint64_t most = file->max_bytes();
      const MemoryLimit limit(most - std::min(memory_bytes(), most));
      auto out = part();
      if (Clock::now() - begin > kLongPart) taken_bytes += limit.taken_bytes();
      is_limited = false;
      return out;
    } catch (const std::bad_alloc&) {
      give_up(takes_too_much_memory(description_of(path)));
    } catch (const TookTooLong&) {
      give_up(takes_too_long(path));
    }
    is_limited = false;
    return {};
  }

  // Returns what `part` returns; throws TookTooLong if it takes more than the time for source lines.
  template <class Part>
  auto within_time(Part part) -> decltype(part()) {
    const auto begin = thread_cpu_time();
    const auto count = [&] { time.take(thread_cpu_time() - begin, file->disk_bytes(), Clock::now()); };
    try {
      const TimeLimit limit(time.left(file->disk_bytes(), Clock::now()));
      auto out = part();
      count();
      return out;
    } catch (...) {
      count();
      throw;
    }
  }

  void give_up(Status why) {
    failure = std::move(why);
    reader.reset();
    index.reset();
    readable.clear();
    breakpoints.clear();
    scopes.clear();
    file.reset();
  }

  dwarf::TypeReader& reader_for(types::Types& types) {
    if (!reader) {
      // Types can be completed after the DebugInfo is gone, so the completer keeps its state alive.
      const auto complete = [self = shared_from_this()](types::Types&, types::TypeId id) {
        self->limited([&] {
          self->reader->complete(id);
          return true;
        });
      };
      reader.emplace(*file, types, complete, path);
    }
    CHECK(&reader->types() == &types);
    return *reader;
  }

  DebugVariable describe(types::Types& types, const VisibleVariable& variable, const Site& site) {
    const std::optional<Dwarf_Die> type = dwarf::type_of(variable.die);
    DebugVariable out{variable.name, dwarf::c_name(type), reader_for(types).convert(type)};
    LocateResult found = dwarf::locate(*file, arch, variable.die, site);
    if (site.is_entry() && found.is_frame && !found.is_list) {
      found = {std::nullopt, "has no value yet where its function is entered"};
    }
    out.place = std::move(found.place);
    out.why = std::move(found.why);
    finish(types, out, type);
    if (!out.place) out.readable = readable_lines(site, variable);
    return out;
  }

  // The reference is valid until the next call for another function.
  dwarf::Scopes& scopes_of(const Dwarf_Die& function) {
    if (const auto known = scopes.find(function.addr); known != scopes.end()) return known->second;
    size_t size = 0;
    for (const auto& [address, each] : scopes) size += each.size();
    if (scopes.size() >= kMaxScopes || size > kMaxScopesSize) scopes.clear();
    return scopes.try_emplace(function.addr, function).first->second;
  }

  // Whether the function with code at the address, and the blocks in it, were read: then what frames_at() takes in
  // addition is little.
  bool has_read(uint64_t address) {
    const auto function = file ? file->known_function_at(address) : std::nullopt;
    const auto known = function ? scopes.find(function->die.addr) : scopes.end();
    return known != scopes.end() && known->second.has_read(address);
  }

  const std::vector<Row>& breakpoint_rows(const Site& site) {
    if (const auto known = breakpoints.find(site.function.addr); known != breakpoints.end()) return known->second;
    std::vector<Row> rows = dwarf::breakpoint_rows(scopes_of(site.function), dwarf::statement_rows_in(*file, site));
    return breakpoints.emplace(site.function.addr, std::move(rows)).first->second;
  }

  // Calls `visit` with the rows of each line table.
  template <class Visit>
  void visit_rows(Visit visit) {
    std::set<const void*> seen;
    for (const dwarf::Unit& unit : file->units()) {
      const void* table = dwarf::line_table(*file, unit.die);
      if (table != nullptr && seen.insert(table).second) visit(dwarf::statement_rows(*file, unit.die));
    }
  }

  // Cached: expensive, and the same for all addresses in a function.
  const ReadableLines& readable_lines(const Site& site, const VisibleVariable& variable) {
    const uint64_t scope = variable.scope->empty() ? 0 : variable.scope->lowest();
    const auto key = std::tuple(site.entry, scope, static_cast<const void*>(variable.die.addr));
    if (const auto known = readable.find(key); known != readable.end()) return known->second;
    const std::vector<Row>& rows = breakpoint_rows(site);
    readable_rows += rows.size();
    ReadableLines out;
    if (readable_rows <= kMaxReadableRows) out = dwarf::readable_lines(*file, arch, site, variable, rows, hint_limit);
    return readable.emplace(key, std::move(out)).first->second;
  }

  // Replaces a reference to a std::string by the string.
  void finish(types::Types& types, DebugVariable& variable, const std::optional<Dwarf_Die>& type) {
    if (!type || !variable.place) return;
    const Dwarf_Die plain = dwarf::peeled(*type);
    const int tag = dwarf::tag(plain);
    const bool is_reference = tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
    const auto target = is_reference ? dwarf::type_of(plain) : std::nullopt;
    auto& pieces = variable.place->pieces;
    if (!target || !reader_for(types).is_standard_string(*target) || pieces.size() != 1) return;
    // The reference holds the address of the object, whose first word is the address of the text.
    variable.type = reader_for(types).convert(target);
    types::LocationPiece& piece = pieces[0];
    if (piece.kind == types::LocationPiece::Kind::kMemory) piece.steps.push_back({types::LocationOp::Code::kRead, 8});
    piece.kind = types::LocationPiece::Kind::kMemory;
  }

  // Returns the index of the scope whose parameters are the arguments: that of the inlined function, or 0.
  static size_t argument_scope(const std::vector<Dwarf_Die>& scopes, std::string_view inlined) {
    for (size_t i = scopes.size(); !inlined.empty() && i-- > 0;)
      if (is_inlined(scopes[i]) && function_name(scopes[i]) == inlined) return i;
    return 0;
  }

  std::vector<DebugVariable> entry_arguments(types::Types& types, const Site& site);
  struct Place {
    std::optional<types::ValueLocation> place;
    std::string_view why = {};  // if there is none
  };
  std::vector<Place> conventional_places(types::Types& types, const Site& site,
                                         const std::vector<VisibleVariable>& values,
                                         const std::vector<LocateResult>& found);
  std::vector<VisibleVariable> go_results(const Site& site) const;
  std::optional<DebugVariable> go_result(types::Types& types, const Site& site);
  types::TypeId converted(types::Types& types, const std::optional<Dwarf_Die>& type);

  // As in DebugInfo. Each can take much memory, see limited().
  bool knows(uint64_t address);
  std::string missing_part(uint64_t address);
  std::vector<SourceFrame> frames_at(uint64_t address);
  std::vector<DebugVariable> arguments(types::Types& types, uint64_t address, std::string_view inlined);
  std::vector<DebugVariable> locals(types::Types& types, uint64_t address, std::string_view inlined);
  std::optional<DebugVariable> result(types::Types& types, uint64_t address);
  NamedType find_type(types::Types& types, TypeCategory category, std::string_view name, uint64_t address);
  std::optional<uint32_t> member_offset(std::string_view type, std::string_view member);
  std::vector<Statement> statements(std::string_view source, uint32_t line, uint32_t column);
  std::vector<Statement> statements_of(uint64_t address);
  std::vector<Statement> inlined_copies(std::string_view function);
  std::vector<uint32_t> lines(std::string_view source);
  std::vector<std::string> files();

  // The functions of a statement, as in Statement.
  struct Functions {
    std::string function;
    std::string inlined_into;
  };
  static Functions functions_of(const std::vector<Dwarf_Die>& scopes);
  void add_inlined_instances(const dwarf::Subtree& scope, int depth, const Site& site, const Dwarf_Die& around,
                             std::string_view function, std::vector<Statement>& out);
  uint64_t after_prologue(const Site& site);
  void add_statements(std::vector<Row> rows, std::vector<Statement>& out);
  void add_statements_in(const Site& site, const std::vector<Row>& rows, std::vector<Statement>& out);
};

std::vector<DebugInfo::State::Place> DebugInfo::State::conventional_places(types::Types& types, const Site& site,
                                                                           const std::vector<VisibleVariable>& values,
                                                                           const std::vector<LocateResult>& found) {
  std::vector<Place> out(values.size());
  const auto add = [&](std::vector<std::optional<types::ValueLocation>> places) {
    for (size_t i = 0; i < places.size(); ++i) out[i] = {std::move(places[i]), kInVectorRegister};
  };
  if (uses_go_registers(site.function)) {
    std::vector<types::TypeId> plain;
    for (const VisibleVariable& each : values) plain.push_back(converted(types, dwarf::type_of(each.die)));
    add(go_locations(types, arch, plain));
    return out;
  }
  const dwarf::Passed result = dwarf::passed_value(reader_for(types), dwarf::type_of(site.function), nullptr);
  std::string_view unknown = result.unknown.empty() ? "" : kBehindResult;
  std::vector<kernel::PassedValue> known;
  for (size_t i = 0; i < values.size(); ++i) {
    dwarf::Passed passed = dwarf::passed_value(reader_for(types), dwarf::type_of(values[i].die), &found[i]);
    if (!unknown.empty() || !passed.unknown.empty()) {
      out[i].why = unknown.empty() ? passed.unknown : unknown;
      if (unknown.empty()) unknown = kBehindUnknown;
    } else {
      known.push_back(passed.value);
    }
  }
  add(arch.argument_locations(types, arch, known, result.value));
  return out;
}

types::TypeId DebugInfo::State::converted(types::Types& types, const std::optional<Dwarf_Die>& type) {
  const types::TypeId out = reader_for(types).convert(type);
  if (types[out].kind == types::Kind::kStruct) reader->complete(out);
  return out;
}

// Whether a compiler may have taken an argument out of the calls, as all of them pass the same, or it is not used. The
// others have moved up then. All calls are known only of a function that other files do not see, or of a copy of it.
bool is_removed_argument(const Dwarf_Die& function, const VisibleVariable& parameter, const LocateResult& found) {
  if (found.why == dwarf::kPointsToNothing || dwarf::attribute(parameter.die, DW_AT_const_value)) return true;
  return !dwarf::attribute(parameter.die, DW_AT_location) && !dwarf::flag(function, DW_AT_external);
}

bool lacks_bytes(const types::ValueLocation& place) {
  return std::ranges::any_of(place.pieces, [](const types::LocationPiece& piece) {
    return piece.kind == types::LocationPiece::Kind::kNothing && piece.size_bytes > 0;
  });
}

// At the entry of a function, a location list gives the locations of arguments. A single location is only valid after
// the prologue, so the calling convention gives them.
std::vector<DebugVariable> DebugInfo::State::entry_arguments(types::Types& types, const Site& site) {
  std::vector<VisibleVariable> parameters = dwarf::variables_of(site.function);
  std::erase_if(parameters, [](const VisibleVariable& each) { return !each.is_parameter || is_result(each.die); });
  std::vector<LocateResult> located;
  for (const VisibleVariable& each : parameters) located.push_back(dwarf::locate(*file, arch, each.die, site));
  const auto conventional = conventional_places(types, site, parameters, located);
  const bool is_always_conventional = uses_go_registers(site.function);  // location lists of Go are incomplete
  // Why arguments are not where the convention has them.
  std::string_view no_convention =
      file->clone_at(site.entry) != Clone::kNone
          ? kOfClone
          : dwarf::why_no_convention(site.function, dwarf::linkage_of(*file, site.function, site.entry, optimised));
  std::vector<DebugVariable> out;
  for (size_t i = 0; i < parameters.size(); ++i) {
    LocateResult& found = located[i];
    const bool is_removed = !is_always_conventional && is_removed_argument(site.function, parameters[i], found);
    const bool is_stored_later =
        is_always_conventional || (!is_removed && !found.is_list && (found.is_frame || !found.place) &&
                                   dwarf::attribute(parameters[i].die, DW_AT_location).has_value());
    if (is_removed && no_convention.empty()) no_convention = kBehindRemoved;
    if (parameters[i].name.empty()) continue;
    const std::optional<Dwarf_Die> type = dwarf::type_of(parameters[i].die);
    DebugVariable argument{parameters[i].name, dwarf::c_name(type), converted(types, type)};
    if (!is_stored_later) {
      argument.place = std::move(found.place);
      argument.why = std::move(found.why);
    } else if (no_convention.empty()) {
      argument.place = conventional[i].place;
      if (!argument.place || lacks_bytes(*argument.place)) argument.why = conventional[i].why;
    } else {
      argument.why = no_convention;
    }
    finish(types, argument, type);
    if (!argument.place) argument.readable = readable_lines(site, parameters[i]);
    out.push_back(std::move(argument));
  }
  return out;
}

DebugInfo::DebugInfo(std::shared_ptr<State> state) : state_(std::move(state)) {}
DebugInfo::~DebugInfo() = default;

Result<std::shared_ptr<DebugInfo>> DebugInfo::open(const ElfImage& image,
                                                   const std::vector<std::string>& debug_directories) {
  const kernel::Arch* arch = kernel::find_arch(image.machine());  // null for 32-bit files
  auto state = std::make_shared<State>(arch != nullptr ? *arch : kernel::host_arch());
  state->path = image.path();
  if (state->time.left(dwarf::disk_bytes_of(image.file()), Clock::now()) <= DebugTime::Duration::zero())
    return takes_too_long(image.path());
  const auto begin = thread_cpu_time();
  auto file = within_memory(description_of(image.path()), [&] { return dwarf::File::open(image, debug_directories); });
  const uint64_t disk_bytes = file ? (*file)->disk_bytes() : dwarf::disk_bytes_of(image.file());
  state->time.take(thread_cpu_time() - begin, disk_bytes, Clock::now());
  state->file = TRY(std::move(file));
  return std::shared_ptr<DebugInfo>(new DebugInfo(std::move(state)));
}

uint64_t DebugInfo::memory_bytes() const { return state_->memory_bytes(); }

Status DebugInfo::status() const {
  if (!state_->file || !state_->file->has_refused_parts()) return state_->failure;
  return takes_too_much_memory(description_of(state_->path));
}

bool DebugInfo::State::knows(uint64_t address) { return file->function_at(address).has_value(); }

std::string DebugInfo::State::missing_part(uint64_t address) {
  const dwarf::Unit* unit = file->unit_at(address);
  return unit == nullptr ? "" : unit->missing_part;
}

std::vector<SourceFrame> DebugInfo::State::frames_at(uint64_t address) {
  const dwarf::Unit* unit = file->unit_at(address);
  if (unit == nullptr) return {};
  dwarf::SourceLine line = dwarf::line_at(*file, unit->die, address);
  const auto function = file->function_at(address);
  std::vector<SourceFrame> out;
  if (!function && line.line != 0) out.push_back({"", absolute_path(unit->die, line.file), line.line});
  if (!function) return out;
  const std::vector<Dwarf_Die> around = scopes_of(function->die).at(address);
  for (size_t i = around.size(); i-- > 0;) {
    if (i > 0 && !is_inlined(around[i])) continue;
    std::string name(dwarf::linkage_name(around[i]));
    if (name.empty()) name = dwarf::name_of(around[i]);
    out.push_back({std::move(name), absolute_path(unit->die, line.file), line.line, i > 0});
    if (i > 0) line = dwarf::call_line(*file, around[i]);
  }
  return out;
}

std::vector<DebugVariable> DebugInfo::State::arguments(types::Types& types, uint64_t address,
                                                       std::string_view inlined) {
  const auto site = dwarf::site_at(*file, address);
  if (!site) return {};
  const std::vector<Dwarf_Die> around = scopes_of(site->function).at(address);
  const size_t scope = State::argument_scope(around, inlined);
  if (site->is_entry() && scope == 0) return entry_arguments(types, *site);
  std::vector<DebugVariable> out;
  for (const VisibleVariable& each : dwarf::variables_of(around[scope]))
    if (each.is_parameter && !each.name.empty() && !is_result(each.die)) out.push_back(describe(types, each, *site));
  return out;
}

std::vector<DebugVariable> DebugInfo::State::locals(types::Types& types, uint64_t address, std::string_view inlined) {
  const auto site = dwarf::site_at(*file, address);
  if (!site) return {};
  const std::vector<Dwarf_Die> around = scopes_of(site->function).at(address);
  const size_t with_arguments = State::argument_scope(around, inlined);
  std::vector<DebugVariable> out;
  std::set<std::string> seen;
  for (size_t i = around.size(); i-- > 0;) {
    for (const VisibleVariable& each : dwarf::variables_of(around[i])) {
      if (each.name.empty() || !seen.insert(each.name).second || (each.is_parameter && i == with_arguments)) continue;
      out.push_back(describe(types, each, *site));
    }
  }
  return out;
}

std::optional<DebugVariable> DebugInfo::State::result(types::Types& types, uint64_t address) {
  const auto site = dwarf::site_at(*file, address);
  if (site && is_go(site->function)) return go_result(types, *site);
  const auto type = site ? dwarf::type_of(site->function) : std::nullopt;
  if (!type || dwarf::is_of_assembler(*type)) return std::nullopt;
  DebugVariable out{"retval", dwarf::c_name(type), converted(types, type)};
  const dwarf::Linkage linkage = dwarf::linkage_of(*file, site->function, site->entry, optimised);
  const std::string_view no_convention = file->clone_at(site->entry) == Clone::kOfResult
                                             ? kOfClone
                                             : dwarf::why_no_result(site->function, types[out.type], linkage);
  const dwarf::Passed passed = dwarf::passed_value(reader_for(types), type, nullptr);
  kernel::ResultPlace found;
  if (no_convention.empty() && passed.unknown.empty())
    found = arch.result_location(types, arch, passed.value);
  else
    found.why = no_convention.empty() ? passed.unknown : no_convention;
  const bool is_in_memory = found.place && found.place->pieces[0].kind == types::LocationPiece::Kind::kMemory;
  if (is_in_memory && dwarf::may_lose_address(site->function, linkage)) found = {std::nullopt, dwarf::kNoAddress};
  out.place = std::move(found.place);
  if (!out.place) out.why = found.why;
  finish(types, out, type);
  return out;
}

std::vector<VisibleVariable> DebugInfo::State::go_results(const Site& site) const {
  std::vector<VisibleVariable> out;
  for (VisibleVariable& each : dwarf::variables_of(site.function)) {
    if (!each.is_parameter || !is_result(each.die)) continue;
    if (each.name.starts_with('~')) each.name.erase(0, 1);  // ~r0: unnamed in the source
    out.push_back(std::move(each));
  }
  return out;
}

// The result at a return instruction. Several results become members of a record.
std::optional<DebugVariable> DebugInfo::State::go_result(types::Types& types, const Site& site) {
  const std::vector<VisibleVariable> results = go_results(site);
  if (results.empty()) return std::nullopt;
  std::vector<types::Member> members;
  std::vector<types::TypeId> values;
  std::string c_type;
  for (const VisibleVariable& each : results) {
    const std::optional<Dwarf_Die> type = dwarf::type_of(each.die);
    values.push_back(converted(types, type));
    members.push_back({.name = each.name, .type = values.back()});
    c_type += (c_type.empty() ? "" : ", ") + dwarf::c_name(type);
  }
  if (!uses_go_registers(site.function)) {
    // On the stack: the debug information has the location.
    const LocateResult found = dwarf::locate(*file, arch, results.front().die, site);
    return DebugVariable{"retval", c_type, values.front(), found.place, found.why};
  }
  const auto places = go_locations(types, arch, values);
  DebugVariable out{"retval", c_type, values.front(), places.front()};
  if (!std::ranges::all_of(places, &std::optional<types::ValueLocation>::has_value)) out.place.reset();
  if (!out.place) out.why = kInVectorRegister;
  if (results.size() == 1 || !out.place) return out;
  out.type = types.record(members);
  out.c_type = "(" + c_type + ")";
  uint32_t done = 0;
  std::vector<types::LocationPiece> pieces;
  for (size_t i = 0; i < results.size(); ++i) {
    const types::Member& member = types[out.type].members[i];
    if (member.offset_bytes() > done)
      pieces.push_back({types::LocationPiece::Kind::kNothing, member.offset_bytes() - done});
    for (types::LocationPiece piece : places[i]->pieces) {
      if (piece.size_bytes == 0) piece.size_bytes = types[member.type].size_bytes;
      pieces.push_back(std::move(piece));
    }
    done = member.offset_bytes() + types[member.type].size_bytes;
  }
  out.place = types::ValueLocation{std::move(pieces)};
  return out;
}

DebugInfo::NamedType DebugInfo::State::find_type(types::Types& types, TypeCategory category, std::string_view name,
                                                 uint64_t address) {
  using dwarf::NameCategory;
  static const std::map<TypeCategory, std::vector<NameCategory>> kSearched = {
      {TypeCategory::kStruct, {NameCategory::kClass}},
      {TypeCategory::kEnum, {NameCategory::kEnum}},
      {TypeCategory::kAny, {NameCategory::kTypedef, NameCategory::kClass, NameCategory::kEnum}},
      {TypeCategory::kEnumerator, {NameCategory::kEnumerator}}};
  if (!index) index.emplace(*file);
  const dwarf::Unit* unit = file->unit_at(address);
  const auto near = unit != nullptr ? std::optional(unit->die) : std::nullopt;
  NamedType out;
  for (const NameCategory each : kSearched.at(category)) {
    const auto [die, candidates] = index->find(each, name, near);
    out.candidates = candidates;
    if (!die && candidates.empty()) continue;
    if (!die) return out;
    const types::TypeId type = reader_for(types).convert(die);
    out.type = type;
    if (each != NameCategory::kEnumerator) return out;
    for (const types::Enumerator& enumerator : types[type].enumerators)
      if (enumerator.name == dwarf::last_part(name)) out.value = enumerator.value;
    return out;
  }
  return out;
}

std::optional<uint32_t> DebugInfo::State::member_offset(std::string_view type, std::string_view member) {
  const auto found = file->find_definition(DW_TAG_structure_type, type);
  if (!found) return std::nullopt;
  for (const Dwarf_Die& child : dwarf::children(*found))
    if (dwarf::tag(child) == DW_TAG_member && dwarf::name_of(child) == member) return dwarf::offset_of(child);
  return std::nullopt;
}

// ---- Statements

DebugInfo::State::Functions DebugInfo::State::functions_of(const std::vector<Dwarf_Die>& scopes) {
  Functions out{function_name(scopes.front()), ""};
  const auto inlined = std::find_if(scopes.rbegin(), scopes.rend(), is_inlined);
  if (inlined != scopes.rend()) out = {function_name(*inlined), std::move(out.function)};
  return out;
}

// Returns the address of the first statement of a function. One that keeps arguments in memory stores them in its
// prologue: there it is the address of the second statement, where they have been stored. `site`: its entry.
uint64_t DebugInfo::State::after_prologue(const Site& site) {
  const auto fills_memory = [&](const VisibleVariable& variable) {
    const LocateResult found = dwarf::locate(*file, arch, variable.die, site);
    return found.is_frame && !found.is_list;
  };
  if (std::ranges::none_of(dwarf::variables_of(site.function), fills_memory)) return site.entry;
  uint64_t next = UINT64_MAX;
  for (const Row& row : dwarf::statement_rows_in(*file, site))
    if (row.address > site.entry) next = std::min(next, row.address);
  return next == UINT64_MAX ? site.entry : next;
}

// Appends the statements for `rows`, which belong to one unit.
void DebugInfo::State::add_statements(std::vector<Row> rows, std::vector<Statement>& out) {
  std::ranges::stable_sort(rows, {}, &Row::address);
  for (size_t begin = 0; begin < rows.size();) {
    const auto site = dwarf::site_at(*file, rows[begin].address);
    const auto is_inside = [&](const Row& row) {
      const auto function = file->known_function_at(row.address);
      return function && function->die.addr == site->function.addr;
    };
    size_t end = begin + 1;
    while (site && end < rows.size() && is_inside(rows[end])) ++end;
    if (site)
      add_statements_in(
          *site, {rows.begin() + static_cast<ptrdiff_t>(begin), rows.begin() + static_cast<ptrdiff_t>(end)}, out);
    begin = end;
  }
}

void DebugInfo::State::add_statements_in(const Site& site, const std::vector<Row>& rows, std::vector<Statement>& out) {
  dwarf::Scopes& in_function = scopes_of(site.function);
  std::map<const void*, Functions> known;  // by the innermost scope
  std::optional<uint64_t> first;           // where the function begins, for breakpoints
  for (const Row& row : dwarf::breakpoint_rows(in_function, rows)) {
    const bool is_entry = row.address == site.entry;
    if (is_entry && !first) first = after_prologue({site.entry, site.function, site.entry});
    const uint64_t address = is_entry ? *first : row.address;
    const std::vector<Dwarf_Die>& here = in_function.at(address);
    const auto [functions, is_new] = known.try_emplace(here.back().addr);
    if (is_new) functions->second = functions_of(here);
    out.push_back({address, std::string(row.file), row.line, row.column, functions->second.function,
                   functions->second.inlined_into, is_entry ? site.entry : 0});
  }
}

std::vector<Statement> DebugInfo::State::statements(std::string_view source, uint32_t line, uint32_t column) {
  std::vector<Statement> out;
  visit_rows([&](std::vector<Row> rows) {
    std::erase_if(rows, [&](const Row& row) {
      return (line != 0 && row.line != line) || (column != 0 && row.column != column) ||
             !ends_with_components(row.file, source);
    });
    add_statements(std::move(rows), out);
  });
  return out;
}

std::vector<Statement> DebugInfo::State::statements_of(uint64_t address) {
  std::vector<Statement> out;
  if (const auto site = dwarf::site_at(*file, address)) add_statements(dwarf::statement_rows_in(*file, *site), out);
  return out;
}

// `around`: the innermost function that `scope` is in.
void DebugInfo::State::add_inlined_instances(const dwarf::Subtree& scope, int depth, const Site& site,
                                             const Dwarf_Die& around, std::string_view function,
                                             std::vector<Statement>& out) {
  constexpr int kMaxDepth = 64;
  if (depth > kMaxDepth) return;
  for (const dwarf::Subtree& inner : dwarf::child_subtrees(scope)) {
    const Dwarf_Die& child = inner.die;
    const int tag = dwarf::tag(child);
    if (tag != DW_TAG_lexical_block && tag != DW_TAG_inlined_subroutine) continue;
    add_inlined_instances(inner, depth + 1, site, is_inlined(child) ? child : around, function, out);
    if (!is_inlined(child) || (dwarf::name_of(child) != function && function_name(child) != function)) continue;
    if (is_second_half(child, around)) continue;
    const std::optional<uint64_t> begin = dwarf::entry_of(child);
    if (!begin) continue;
    const auto line = dwarf::reference(child, DW_AT_abstract_origin);
    const auto number = line ? dwarf::number(*line, DW_AT_decl_line) : std::nullopt;
    out.push_back(
        {*begin, "", static_cast<uint32_t>(number.value_or(1)), 0, function_name(child), function_name(site.function)});
  }
}

std::vector<Statement> DebugInfo::State::inlined_copies(std::string_view function) {
  std::vector<Statement> out;
  for (dwarf::Unit& unit : file->units())
    for (const dwarf::FunctionCode& code : file->functions(unit))
      add_inlined_instances({code.die}, 0, {code.range.low, code.die, code.range.low}, code.die, function, out);
  std::ranges::sort(out, {}, &Statement::address);
  const auto is_same = [](const Statement& a, const Statement& b) { return a.address == b.address; };
  out.erase(std::unique(out.begin(), out.end(), is_same), out.end());
  return out;
}

std::vector<uint32_t> DebugInfo::State::lines(std::string_view source) {
  std::set<uint32_t> out;
  visit_rows([&](const std::vector<Row>& rows) {
    for (const Row& row : rows)
      if (ends_with_components(row.file, source)) out.insert(row.line);
  });
  return {out.begin(), out.end()};
}

std::vector<std::string> DebugInfo::State::files() {
  std::set<std::string> out;
  visit_rows([&](const std::vector<Row>& rows) {
    for (const Row& row : rows) out.emplace(row.file);
  });
  return {out.begin(), out.end()};
}

// ---- The same within a limit of memory

bool DebugInfo::knows(uint64_t address) const {
  return state_->limited([&] { return state_->knows(address); });
}

std::string DebugInfo::missing_part(uint64_t address) const {
  return state_->limited([&] { return state_->missing_part(address); });
}

std::vector<SourceFrame> DebugInfo::frames_at(uint64_t address) {
  if (state_->has_read(address)) return state_->frames_at(address);
  return state_->limited([&] {
    // Alone, as it can read a .dwo file, whose size explains more time than that of the program.
    state_->within_time([&] { return state_->file->unit_at(address); });
    return state_->within_time([&] { return state_->frames_at(address); });
  });
}

std::vector<DebugVariable> DebugInfo::arguments(types::Types& types, uint64_t address, std::string_view inlined) {
  return state_->limited([&] { return state_->arguments(types, address, inlined); });
}

std::vector<DebugVariable> DebugInfo::locals(types::Types& types, uint64_t address, std::string_view inlined) {
  return state_->limited([&] { return state_->locals(types, address, inlined); });
}

std::optional<DebugVariable> DebugInfo::result(types::Types& types, uint64_t address) {
  return state_->limited([&] { return state_->result(types, address); });
}

DebugInfo::NamedType DebugInfo::find_type(types::Types& types, TypeCategory category, std::string_view name,
                                          uint64_t address) {
  return state_->limited([&] { return state_->find_type(types, category, name, address); });
}

std::optional<uint32_t> DebugInfo::member_offset(std::string_view type, std::string_view member) {
  return state_->limited([&] { return state_->member_offset(type, member); });
}

std::vector<Statement> DebugInfo::statements(std::string_view file, uint32_t line, uint32_t column) {
  return state_->limited([&] { return state_->statements(file, line, column); });
}

std::vector<Statement> DebugInfo::statements_of(uint64_t address) {
  return state_->limited([&] { return state_->statements_of(address); });
}

std::vector<Statement> DebugInfo::inlined_copies(std::string_view function) {
  return state_->limited([&] { return state_->inlined_copies(function); });
}

std::vector<uint32_t> DebugInfo::lines(std::string_view file) {
  return state_->limited([&] { return state_->lines(file); });
}

std::vector<std::string> DebugInfo::files() {
  return state_->limited([&] { return state_->files(); });
}

// ---- DebugTime

namespace {

// Reading all of the debug information of a program takes 5 to 6 ns for each byte of its file (measured: C, C++), and
// up to four times as much if it is compressed. Slow machines take several times as long.
constexpr std::chrono::nanoseconds kPerByte(64);
constexpr std::chrono::nanoseconds kPerFile = std::chrono::milliseconds(2);

std::chrono::nanoseconds explained_by(uint64_t disk_bytes) {
  return kPerFile + kPerByte * static_cast<int64_t>(std::min<uint64_t>(disk_bytes, uint64_t{1} << 40));
}

}  // namespace

DebugTime::Duration DebugTime::left(uint64_t disk_bytes, Moment now) const {
  const Duration most = explained_by(disk_bytes) - taken_ + from_spare_ + spare_.budget.left(now);
  return is_at_end_() ? std::min(most, spare_.at_end.left(now)) : most;
}

void DebugTime::take(Duration time, uint64_t disk_bytes, Moment now) {
  if (is_at_end_()) spare_.at_end.take(time, now);
  taken_ += time;
  const Duration more = taken_ - explained_by(disk_bytes) - from_spare_;
  if (more <= Duration::zero()) return;
  from_spare_ += more;
  spare_.budget.take(more, now);
}

}  // namespace espy::symbols

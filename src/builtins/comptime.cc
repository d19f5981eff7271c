// Builtins that are evaluated at compile time: queries about types, the kernel and the command line. They fold to
// constants, so that `if comptime (...)` can test them.
#include <elf.h>

#include <cstring>

#include "base/strings.h"
#include "base/untrusted_file.h"
#include "builtins/builtin_support.h"
#include "load/bpf.h"
#include "output/format.h"

namespace espy::builtins {

namespace {

using check::Checker;
using spec::CallSite;
using types::Kind;
using types::Type;
using types::TypeId;

TypeId fold_bool(Checker& checker, const CallSite& call, bool is_true) {
  checker.fold(call.expr, int64_t{is_true});
  return checker.types().bool_type();
}

// ---- Queries about types

bool is_string(const Type& type) { return type.kind == Kind::kString; }
bool is_pointer(const Type& type) { return type.kind == Kind::kPointer; }
bool is_array(const Type& type) { return type.kind == Kind::kArray; }
bool is_number(const Type& type) { return type.kind == Kind::kInt; }
bool is_unsigned(const Type& type) { return type.kind == Kind::kInt && !type.is_signed; }

template <bool (*kTest)(const Type&)>
TypeId check_type(Checker& checker, const CallSite& call) {
  return fold_bool(checker, call, kTest(checker.types()[checker.type(call.arguments[0])]));
}

TypeId check_is_literal(Checker& checker, const CallSite& call) {
  const syntax::ExprId what = call.arguments[0];
  const bool is_known = checker.integer(what) || checker.text(what);
  return fold_bool(checker, call, is_known && !checker.ast().get<syntax::Name>(what));
}

// ---- Queries about the kernel

TypeId check_kfunc(Checker& checker, const CallSite& call) {
  const auto name = checker.text(call.arguments[0]);
  return fold_bool(checker, call, name && checker.kernel().kfunc_id(*name).has_value());
}

// The kernel does not publish which program types may call a kfunc, so this loads a small program and sees whether the
// verifier accepts it.
TypeId check_kfunc_allowed(Checker& checker, const CallSite& call) {
  const auto name = checker.text(call.arguments[0]);
  const uint32_t type = load::number_of(checker.unit().context.kind);
  return fold_bool(checker, call, name && checker.kernel().is_kfunc_allowed(*name, type));
}

// ---- config: the configuration variables, as a record of constants

struct Setting {
  std::string_view name;
  uint64_t (*value)(const spec::Config&);
  bool is_bool = false;
};

constexpr Setting kSettings[] = {
    {"max_strlen", [](const spec::Config& config) { return config.limits.max_strlen; }},
    {"max_map_keys", [](const spec::Config& config) { return config.limits.max_map_keys; }},
    {"max_probes", [](const spec::Config& config) { return config.limits.max_probes; }},
    {"max_bpf_progs", [](const spec::Config& config) { return config.limits.max_bpf_progs; }},
    {"max_cat_bytes", [](const spec::Config& config) { return config.limits.max_cat_bytes; }},
    {"max_system_bytes", [](const spec::Config& config) { return config.limits.max_system_bytes; }},
    {"max_system_seconds", [](const spec::Config& config) { return config.limits.max_system_seconds; }},
    {"max_compile_seconds", [](const spec::Config& config) { return config.limits.max_compile_seconds; }},
    {"on_stack_limit", [](const spec::Config& config) { return config.ignored.on_stack_limit; }},
    {"log_size", [](const spec::Config& config) { return config.limits.log_size; }},
    {"perf_rb_pages", [](const spec::Config& config) { return config.limits.perf_rb_pages; }},
    {"cpp_demangle", [](const spec::Config& config) { return uint64_t{config.symbols.demangle}; }, true},
    {"lazy_symbolication", [](const spec::Config& config) { return uint64_t{config.ignored.lazy_symbolication}; },
     true},
    {"print_maps_on_exit", [](const spec::Config& config) { return uint64_t{config.print.maps_on_exit}; }, true},
    {"show_debug_info", [](const spec::Config& config) { return uint64_t{config.symbols.debug_info}; }, true},
};

struct TextSetting {
  std::string_view name;
  std::string (*value)(const spec::Config&);
};

constexpr TextSetting kTextSettings[] = {
    {"license", [](const spec::Config& config) { return config.license; }},
    {"str_trunc_trailer", [](const spec::Config& config) { return config.print.trunc_trailer; }},
    {"missing_probes",
     [](const spec::Config& config) {
       constexpr const char* kWords[] = {"error", "warn", "ignore"};
       return std::string(kWords[static_cast<size_t>(config.missing_probes)]);
     }},
    {"stack_mode",
     [](const spec::Config& config) {
       constexpr const char* kWords[] = {"bpftrace", "perf", "raw", "build_id"};
       return std::string(kWords[static_cast<size_t>(config.symbols.stack_mode)]);
     }},
};

TypeId check_config(Checker& checker, const CallSite&) {
  types::Types& types = checker.types();
  std::vector<types::Member> members;
  for (const Setting& setting : kSettings)
    members.push_back(
        {.name = std::string(setting.name), .type = setting.is_bool ? types.bool_type() : types.uint64()});
  for (const TextSetting& setting : kTextSettings) {
    const size_t length = setting.value(checker.config()).size();
    members.push_back({.name = std::string(setting.name), .type = types.string(static_cast<uint32_t>(length + 1))});
  }
  return types.record(std::move(members));
}

lower::Operand lower_config(lower::Lowering& lowering, const CallSite& call) {
  const TypeId type = lowering.type(call.expr);
  const types::Type& record = lowering.types()[type];
  std::string bytes(record.size_bytes, '\0');
  const auto put = [&](size_t member, const void* from, size_t size) {
    std::memcpy(bytes.data() + record.members[member].offset_bytes(), from, size);
  };
  for (size_t i = 0; i < std::size(kSettings); ++i) {
    const uint64_t value = kSettings[i].value(lowering.config());
    put(i, &value, kSettings[i].is_bool ? 1 : sizeof(value));
  }
  for (size_t i = 0; i < std::size(kTextSettings); ++i) {
    const std::string text = kTextSettings[i].value(lowering.config());
    put(std::size(kSettings) + i, text.data(), text.size());
  }
  return {type, lowering.constant_bytes(bytes), true};
}

// ---- elf_info: facts about a binary, as a record of constants

constexpr std::string_view kElfMembers[] = {"is_elf", "is_exe", "is_pie"};

TypeId check_elf_info(Checker& checker, const CallSite&) {
  std::vector<types::Member> members;
  for (const std::string_view name : kElfMembers)
    members.push_back({.name = std::string(name), .type = checker.types().bool_type()});
  return checker.types().record(std::move(members));
}

// By the ELF header: ET_EXEC is loaded at its link address, ET_DYN (a library or a position-independent executable)
// anywhere.
lower::Operand lower_elf_info(lower::Lowering& lowering, const CallSite& call) {
  const auto file = open_untrusted(lowering.text(call.arguments[0]).value_or(""), UINT64_MAX);
  Elf64_Ehdr header = {};
  const std::string bytes_read = file ? file->read_at(0, sizeof(header)).value_or("") : "";
  if (bytes_read.size() == sizeof(header)) std::memcpy(&header, bytes_read.data(), sizeof(header));
  const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  const std::string bytes = {static_cast<char>(is_elf), static_cast<char>(is_elf && header.e_type == ET_EXEC),
                             static_cast<char>(is_elf && header.e_type == ET_DYN)};
  return {lowering.type(call.expr), lowering.constant_bytes(bytes), true};
}

// ---- Compile-time errors

// The values must be constants, because the message is formatted at compile time.
TypeId check_fail(Checker& checker, const CallSite& call) {
  const TypeId nothing = check_format(checker, call);
  const auto format = output::Formatter::create(checker.text(call.arguments[0]).value_or(""));
  if (!format) return nothing;
  std::vector<output::Argument> values;
  for (const syntax::ExprId argument : call.arguments.subspan(1)) {
    if (const auto number = checker.integer(argument)) {
      values.push_back({.value = {*number}, .is_c_int = output::is_c_int(checker.types()[checker.type(argument)])});
    } else if (const auto text = checker.text(argument)) {
      values.push_back({.value = {output::StringValue{*text}}});
    } else {
      checker.error("not-constant", checker.ast()[argument].span,
                    "this must be a constant that is known at compile time");
      return nothing;
    }
  }
  std::string message;
  format->append(message, values, {});
  checker.error(kRefusedByScript, call.span, message);
  return nothing;
}

TypeId check_assert_str(Checker& checker, const CallSite& call) {
  const TypeId type = checker.type(call.arguments[0]);
  if (!is_string(checker.types()[type]))
    checker.error("static-assert", checker.ast()[call.arguments[0]].span,
                  "this must be a string, not " + to_string(checker.types(), type));
  return checker.types().void_type();
}

lower::Operand lower_nothing(lower::Lowering&, const CallSite&) { return {}; }

TypeId check_static_assert(Checker& checker, const CallSite& call) {
  if (checker.integer(call.arguments[0]) == 0)
    checker.error("static-assert", call.span, checker.text(call.arguments[1]).value_or(""));
  return checker.types().void_type();
}

// ---- getopt: `espy script.bt -- --NAME=VALUE` -----------------------------------------------------------------------

std::optional<bool> parse_bool(std::string_view text) {
  const std::string word = to_lower(text);
  if (word.empty() || word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  return std::nullopt;
}

std::string default_text(Checker& checker, syntax::ExprId value) {
  if (const auto text = checker.text(value)) return "\"" + *text + "\"";
  const int64_t number = checker.integer(value).value_or(0);
  if (checker.types()[checker.type(value)].kind == Kind::kBool) return number != 0 ? "true" : "false";
  return std::to_string(number);
}

// The type of the default is the type of the option; an option without a default is a switch.
TypeId check_getopt(Checker& checker, const CallSite& call) {
  types::Types& types = checker.types();
  const auto name = checker.text(call.arguments[0]);
  if (!name) return types.bool_type();
  std::optional<std::string> given;
  for (const auto& [option, value] : checker.config().arguments.named)
    if (option == *name) given = value;
  const auto report = [&](const char* expected) {
    checker.error("bad-option", call.span, "`--" + *name + "` takes " + expected + ", not `" + *given + "`");
  };
  const bool has_default = call.arguments.size() > 1;
  check::ScriptOption option{*name, "false", {}};
  if (call.arguments.size() > 2) option.doc = checker.text(call.arguments[2]).value_or("");
  if (has_default) option.initial = default_text(checker, call.arguments[1]);
  checker.note_option(std::move(option));
  const bool is_switch = !has_default || types[checker.type(call.arguments[1])].kind == Kind::kBool;
  if (is_switch) {
    const auto value = given ? parse_bool(*given) : std::optional(false);
    if (!value) report("true or false");
    const bool default_value = has_default && checker.integer(call.arguments[1]).value_or(0) != 0;
    return fold_bool(checker, call, given ? value.value_or(false) : default_value);
  }
  if (const auto number = checker.integer(call.arguments[1])) {
    const auto value = given ? parse_int(*given) : number;
    if (!value) report("a number");
    checker.fold(call.expr, value.value_or(0));
    const bool is_large = given && !given->starts_with('-') && value.value_or(0) < 0;
    return is_large ? types.uint64() : types.int64();
  }
  const std::string text = given ? *given : checker.text(call.arguments[1]).value_or("");
  checker.fold(call.expr, text);
  return types.string(static_cast<uint32_t>(text.size() + 1));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any is_literal(any e)",
     .doc = "True if the expression is a literal, or is computed from literals.",
     .check = check_is_literal,
     .example = "begin { print(is_literal(1)); }"},
    {.sig = "any is_str(any e)",
     .doc = "True if the expression is a string.",
     .check = check_type<is_string>,
     .example = "begin { print(is_str(\"a\")); }"},
    {.sig = "any is_ptr(any e)",
     .doc = "True if the expression is a pointer.",
     .check = check_type<is_pointer>,
     .example = "begin { print(is_ptr(curtask)); }"},
    {.sig = "any is_array(any e)",
     .doc = "True if the expression is an array.",
     .check = check_type<is_array>,
     .example = "begin { print(is_array(pton(\"::1\"))); }"},
    {.sig = "any is_integer(any e)",
     .doc = "True if the expression is an integer.",
     .check = check_type<is_number>,
     .example = "begin { print(is_integer(pid)); }"},
    {.sig = "any is_unsigned_integer(any e)",
     .doc = "True if the expression is an unsigned integer.",
     .check = check_type<is_unsigned>,
     .example = "begin { print(is_unsigned_integer(pid)); }"},
    {.sig = "any config",
     .doc = "The configuration variables, as a record: `config.max_strlen`.",
     .kind = spec::BuiltinKind::kVariable,
     .check = check_config,
     .lower = lower_config,
     .example = "begin { print(config.max_strlen); }"},
    {.sig = "any kfunc_exist(literal string name)",
     .doc = "True if the kernel has a kfunc of this name.",
     .check = check_kfunc,
     .example = "begin { print(kfunc_exist(\"bpf_no_such_function\")); }"},
    {.sig = "any kfunc_allowed(literal string name)",
     .doc = "True if the probes of this action may call this kfunc; espy asks the verifier.",
     .check = check_kfunc_allowed,
     .example = "begin { print(kfunc_allowed(\"bpf_no_such_function\")); }"},
    {.sig = "void fail(literal string format, ...)",
     .doc = "Fails the compilation with this message, formatted as by printf() from constants, unless it is in a "
            "branch that `comptime` discards.",
     .check = check_fail},
    {.sig = "any elf_info(literal string path)",
     .doc = "Describes an ELF file: `.is_elf`, `.is_exe` (an executable with a fixed address), `.is_pie` (a "
            "position-independent executable or a library).",
     .check = check_elf_info,
     .lower = lower_elf_info,
     .example = "begin { print(elf_info(\"/bin/sh\").is_elf); }"},
    {.sig = "void static_assert(literal any condition, literal string message)",
     .doc = "Fails the compilation with this message if the condition is false.",
     .check = check_static_assert,
     .example = "begin { static_assert(1 + 1 == 2, \"odd\"); }"},
    {.sig = "void assert_str(any e)",
     .doc = "Fails the compilation if the expression is not a string.",
     .check = check_assert_str,
     .lower = lower_nothing,
     .example = "begin { assert_str(comm); }"},
    {.sig = "any getopt(literal string name, literal any default = false, literal string description = \"\")",
     .doc = "The value of the script's option `--name`, given after `--` on the command line. The default's type is "
            "the option's type; without a default it is a switch.",
     .check = check_getopt,
     .example = "begin { print(getopt(\"count\", 5)); }"},
};

}  // namespace

extern const spec::BuiltinFamily kComptime = {.title = "Questions to the compiler", .rows = kRows};

}  // namespace espy::builtins

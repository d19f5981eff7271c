// What a script consists of besides its own text: headers, imported files, the library.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "base/strings.h"
#include "base/untrusted_file.h"
#include "check/check_passes.h"
#include "kernel/abi_constants.h"
#include "kernel/c_compiler.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"
#include "syntax/preprocess.h"

namespace espy::check {

using kernel::CCompiler;
using source::SourceId;
using source::Span;
using syntax::CDefine;
using syntax::CInclude;

// ---- Headers

namespace {

// Directories of the kernel's headers, below an include directory.
constexpr std::string_view kKernelDirectories[] = {
    "linux", "net",   "asm",  "asm-generic", "uapi",  "trace", "crypto", "drm", "scsi", "sound", "rdma",
    "media", "kunit", "acpi", "xen",         "video", "soc",   "keys",   "kvm", "vdso", "ufs",   "memory"};

bool is_kernel_header(const CInclude& include) {
  if (!include.is_system) return false;
  if (include.path == "vmlinux.h") return true;
  const size_t slash = include.path.find('/');
  if (slash == std::string::npos) return false;
  return std::ranges::find(kKernelDirectories, include.path.substr(0, slash)) != std::end(kKernelDirectories);
}

// --include takes a file, or a header of the kernel or the system.
CInclude forced_include(const std::string& file) {
  const CInclude as_system{.span = {}, .path = file, .is_system = true};
  return is_kernel_header(as_system) ? as_system : CInclude{.span = {}, .path = file};
}

// All words of `text`, including those in comments: a superset of the names that the script uses.
std::set<std::string, std::less<>> words_of(std::string_view text) {
  std::set<std::string, std::less<>> out;
  for (size_t at = 0; at < text.size();) {
    if (!syntax::is_word(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && syntax::is_word(text[end])) ++end;
    if (syntax::is_word_start(text[at])) out.emplace(text.substr(at, end - at));
    at = end;
  }
  return out;
}

// NAME_2, but not Name or x.
bool looks_like_constant(std::string_view name) {
  if (name.size() < 3 || name == "BEGIN" || name == "END") return false;
  return std::ranges::all_of(name, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || syntax::is_digit(c); });
}

// A generated C file, and which header each of its lines includes.
struct HeaderUnit {
  std::string text;
  std::vector<std::pair<std::string, Span>> lines;  // the header's name, empty if the line is not an include
  bool is_empty = true;                             // it includes nothing

  void add_line(const std::string& line, const std::string& header, Span span) {
    text += line + "\n";
    lines.emplace_back(header, span);
    is_empty &= header.empty();
  }
};

class HeaderReader {
 public:
  explicit HeaderReader(CheckRequest& request) : request_(request) {
    prelude_.constant = [&kernel = request_.kernel](std::string_view name) {
      return kernel::abi_constant(kernel.arch(), name);
    };
  }

  syntax::Prelude read(SourceId source, bool is_script) {
    const source::Source& text = request_.sources[source];
    const auto& forced = request_.config.headers.files;
    const bool has_include = text.text.find("include") != std::string::npos || (!forced.empty() && is_script);
    // To ask is to map the types of the kernel.
    if (has_include || text.text.find(syntax::kBtfMacro) != std::string::npos)
      prelude_.has_btf = request_.kernel.has_btf();
    if (request_.files != nullptr) return recorded(text.name);
    if (!has_include) return std::move(prelude_);
    if (is_script) words_ = words_of(text.text);
    directory_ = std::filesystem::path(text.name).parent_path().string();
    source::Diagnostics ignored;  // the parser proper reports them
    draft_ = syntax::parse(request_.sources, source, ignored, prelude_);
    compile(is_script);
    record(text.name);
    return std::move(prelude_);
  }

  syntax::Prelude read(const syntax::Ast& built) {
    if (request_.config.headers.files.empty()) return std::move(prelude_);
    prelude_.has_btf = request_.kernel.has_btf();
    words_.emplace();
    for (const syntax::Expr& each : built.exprs) {
      if (const auto* name = std::get_if<syntax::Name>(&each.node)) words_->insert(name->name);
      if (const auto* call = std::get_if<syntax::Call>(&each.node)) words_->insert(call->name);
    }
    draft_ = built;
    compile(true);
    return std::move(prelude_);
  }

  syntax::Prelude read_header(const std::string& path, Span at) {
    std::error_code ignored;
    prelude_.has_btf = request_.kernel.has_btf();
    const std::string key = std::filesystem::path(path).lexically_normal().string();
    if (request_.files != nullptr) return recorded(key);
    const std::string absolute = std::filesystem::absolute(path, ignored).string();
    has_own_header_ = true;
    user_.add_line(fmt::format("#include \"{}\"", absolute), path, at);
    compile_user();
    record(key);
    return std::move(prelude_);
  }

 private:
  // Compiles the headers of `draft_`.
  void compile(bool is_script) {
    source::Diagnostics ignored;
    spec::Config config = request_.config;
    read_config(draft_, config, ignored);
    max_compile_seconds_ = config.limits.max_compile_seconds;
    if (is_script)
      for (const std::string& file : request_.config.headers.files) add(forced_include(file));
    for (const syntax::CDefinition& definition : draft_.c_definitions) add(definition);
    if (!user_.is_empty) compile_user();
    if (!kernel_.is_empty && (!prelude_.has_btf || misses_something())) compile_kernel();
  }

  // What a compiler made of the headers of the file with this name, where the script was checked before.
  syntax::Prelude recorded(const std::string& name) {
    const auto found = request_.files->headers.find(name);
    if (found == request_.files->headers.end()) return std::move(prelude_);
    for (const CDefine& macro : found->second.macros) prelude_.definitions.emplace_back(macro);
    for (const HeaderTypes& types : found->second.types)
      if (const Status added = request_.kernel.add_types(types.btf, types.before_kernel); !added)
        request_.diagnostics.error("bad-header", {}, added.error().message);
    return std::move(prelude_);
  }

  void record(const std::string& name) {
    if (request_.recorded == nullptr || (user_.is_empty && kernel_.is_empty)) return;
    request_.recorded->headers[name] = {defines(prelude_), std::move(compiled_types_)};
  }

  void add(const syntax::CDefinition& definition) {
    if (const auto* include = std::get_if<CInclude>(&definition)) {
      const std::string name =
          fmt::format("{}{}{}", include->is_system ? '<' : '"', include->path, include->is_system ? '>' : '"');
      if (!is_kernel_header(*include)) {
        has_own_header_ |= !include->is_system;
        user_.add_line("#include " + name, name, include->span);
      } else if (prelude_.has_btf) {
        // Kernel code gets the macros for ioctl numbers through other headers.
        if (kernel_.is_empty) add_if_there("<linux/ioctl.h>", include->span);
        add_if_there(name, include->span);
      } else {
        kernel_.add_line("#include " + name, name, include->span);
      }
    } else if (const auto* define = std::get_if<CDefine>(&definition)) {
      const std::string parameters =
          define->is_function_like ? fmt::format("({})", join(define->parameters, ",")) : std::string();
      for (HeaderUnit* unit : {&user_, &kernel_})
        unit->add_line(fmt::format("#define {}{} {}", define->name, parameters, define->body), "", define->span);
      own_.insert(define->name);
    }
  }

  // Not all headers of the kernel may be installed; those that are installed are used.
  void add_if_there(const std::string& name, Span span) {
    kernel_.add_line(fmt::format("#if __has_include({0})\n#include {0}\n#endif", name), name, span);
    kernel_.lines.insert(kernel_.lines.end(), 2, {"", span});
  }

  // Words of the script in the form of constants that are not known without a header: neither the script nor BTF
  // defines them, nor are they part of the kernel's ABI.
  std::set<std::string> unknown_constants() {
    for (const syntax::CDefinition& definition : draft_.c_definitions) {
      if (const auto* known = std::get_if<syntax::CStruct>(&definition)) own_.insert(known->name);
      if (const auto* known = std::get_if<syntax::CEnum>(&definition)) {
        own_.insert(known->name);
        for (const auto& [name, value] : known->enumerators) own_.insert(name);
      }
    }
    for (const CDefine& define : defines(prelude_)) own_.insert(define.name);
    std::set<std::string> out;
    for (const syntax::Expr& expr : draft_.exprs) {
      const auto* name = std::get_if<syntax::Name>(&expr.node);
      if (name == nullptr || !looks_like_constant(name->name) || own_.contains(name->name)) continue;
      if (!request_.kernel.find_enumerator(request_.types, name->name) && !prelude_.constant(name->name))
        out.insert(name->name);
    }
    return out;
  }

  // True if the script names a constant or a type that neither it nor BTF defines.
  bool misses_something() {
    if (!unknown_constants().empty()) return true;
    for (const syntax::TypeName& name : draft_.type_names) {
      if (name.tag == syntax::TypeName::Tag::kNone || own_.contains(name.name)) continue;
      if (!request_.kernel.c_definition(name.name)) return true;
    }
    return false;
  }

  static std::vector<CDefine> defines(const syntax::Prelude& prelude) {
    std::vector<CDefine> out;
    for (const syntax::CDefinition& definition : prelude.definitions)
      if (const auto* define = std::get_if<CDefine>(&definition)) out.push_back(*define);
    return out;
  }

  std::vector<std::string> common_flags() const {
    std::vector<std::string> out;
    if (prelude_.has_btf) out.push_back(std::string("-D") + syntax::kBtfMacro);
    out.insert(out.end(), {"-iquote", directory_.empty() ? "." : directory_});
    for (const std::string& directory : request_.config.headers.directories) out.push_back("-I" + directory);
    return out;
  }

  void compile_user() {
    const Status done = compile(user_, common_flags(), true, request_.diagnostics);
    if (done) return;
    // Many scripts include <sys/socket.h> only for AF_INET.
    if (done.error().code == ENOENT && !has_own_header_ && prelude_.has_btf && !misses_something()) return;
    complain(user_, done.error(), request_.diagnostics);
  }

  // Uses the headers of the kernel itself if installed, else its user-space API headers.
  void compile_kernel() {
    std::vector<std::string> flags = common_flags();
    if (const auto own = kernel::kernel_header_flags(request_.kernel.arch()))
      flags.insert(flags.end(), own->begin(), own->end());
    // With BTF this is only an attempt; if it fails, the name is reported as unknown later.
    source::Diagnostics ignored;
    source::Diagnostics& diagnostics = prelude_.has_btf ? ignored : request_.diagnostics;
    if (const Status done = compile(kernel_, flags, false, diagnostics); !done)
      complain(kernel_, done.error(), diagnostics);
  }

  Status compile(const HeaderUnit& unit, const std::vector<std::string>& flags, bool before_kernel,
                 source::Diagnostics& diagnostics) {
    CCompiler compiler = TRY(CCompiler::open(flags, max_compile_seconds_));
    const auto macros = TRY(compiler.macros(unit.text));
    if (!macros) return refuse(unit, compiler, diagnostics);
    std::vector<std::string> chosen, constants;
    for (const auto& [name, body] : *macros) {
      if (!is_named(name) || !is_wanted(name, body)) continue;
      chosen.push_back(name);
      if (!body.starts_with('(')) constants.push_back(name);
    }
    const auto compiled = TRY(compiler.compile(unit.text, constants));
    if (!compiled) return refuse(unit, compiler, diagnostics);
    if (!compiled->btf.empty()) {
      TRY_STATUS(request_.kernel.add_types(compiled->btf, before_kernel));
      compiled_types_.push_back({compiled->btf, before_kernel});
    }
    // The body of a macro may name others.
    for (size_t i = 0; i < chosen.size(); ++i)
      define(chosen[i], first_include(unit).second, *macros, compiled->numbers, chosen);
    return {};
  }

  // Headers of an import are visible to all files, including imports read later.
  bool is_named(const std::string& name) const { return words_ ? words_->contains(name) : !name.starts_with("__"); }

  // Skips macros that expand to their own name (enumerators) and those without a body. Definitions of the script and
  // keywords of the language take precedence.
  bool is_wanted(const std::string& name, const std::string& body) const {
    return !name.empty() && trim(body) != name && !own_.contains(name) && !request_.registry.find_builtin(name);
  }

  void define(const std::string& name, Span span, const CCompiler::Macros& macros,
              const std::map<std::string, int64_t, std::less<>>& numbers, std::vector<std::string>& chosen) {
    const std::string& body = macros.find(name)->second;
    if (const auto number = numbers.find(name); number != numbers.end()) {
      prelude_.definitions.push_back(CDefine{span, name, false, {}, std::to_string(number->second)});
      return;
    }
    syntax::DefineText text = syntax::read_define(name + body);
    prelude_.definitions.push_back(
        CDefine{span, name, text.is_function_like, std::move(text.parameters), std::move(text.body)});
    for (const std::string& word : words_of(body)) {
      const auto other = macros.find(word);
      if (other == macros.end() || !is_wanted(word, other->second)) continue;
      if (std::ranges::find(chosen, word) == chosen.end()) chosen.push_back(word);
    }
  }

  // The compiler's first error as a diagnostic.
  static Status refuse(const HeaderUnit& unit, const CCompiler& compiler, source::Diagnostics& diagnostics) {
    if (compiler.problems().empty())
      return fail("the C compiler failed" +
                  (compiler.last_words().empty() ? " without a message" : ": " + compiler.last_words()));
    const kernel::CProblem& problem = compiler.problems().front();
    const bool is_known = problem.line > 0 && problem.line <= unit.lines.size();
    if (!is_known) {
      diagnostics.error("unfit-c-compiler", first_include(unit).second,
                        "the C compiler lacks a required feature: " + problem.message,
                        "gcc 12 or later describes types as BTF: set CC to it");
      return {};
    }
    const auto& [header, span] = unit.lines[problem.line - 1];
    if (problem.is_missing_file) {
      const std::string missing = problem.message.substr(0, problem.message.find(": "));
      diagnostics.error("no-such-header", span,
                        problem.where.empty()
                            ? fmt::format("there is no header `{}`", missing)
                            : fmt::format("there is no header `{}`, which {} includes", missing, problem.where),
                        "-I DIRECTORY adds a directory to search");
    } else {
      diagnostics.error("bad-header", span,
                        fmt::format("the C compiler rejects {}: {}", header.empty() ? "this" : header,
                                    problem.where.empty() ? problem.message : problem.where + ": " + problem.message));
    }
    return {};
  }

  static const std::pair<std::string, Span>& first_include(const HeaderUnit& unit) {
    return *std::ranges::find_if(unit.lines, [](const auto& line) { return !line.first.empty(); });
  }

  static void complain(const HeaderUnit& unit, const Error& error, source::Diagnostics& diagnostics) {
    const auto& [header, span] = first_include(unit);
    if (error.code == ENOENT)
      diagnostics.error("no-c-compiler", span, header + " needs a C compiler to be read, and there is none",
                        "install gcc, or define in the script what it uses");
    else
      diagnostics.error("bad-header", span, error.message, error.hint);
  }

  CheckRequest& request_;
  uint64_t max_compile_seconds_ = request_.config.limits.max_compile_seconds;
  std::optional<std::set<std::string, std::less<>>> words_;  // of the script; nullopt for an import
  std::set<std::string, std::less<>> own_;
  syntax::Prelude prelude_;
  syntax::Ast draft_;
  std::string directory_;
  bool has_own_header_ = false;  // a header that is not the kernel's: "x.h"
  std::vector<HeaderTypes> compiled_types_;
  HeaderUnit user_, kernel_;
};

}  // namespace

syntax::Prelude read_script_headers(SourceId script, CheckRequest& request) {
  return HeaderReader(request).read(script, true);
}

syntax::Prelude read_script_headers(const syntax::Ast& built, CheckRequest& request) {
  return HeaderReader(request).read(built);
}

syntax::Prelude read_import_headers(SourceId import, CheckRequest& request) {
  return HeaderReader(request).read(import, false);
}

// ---- Imports

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kScript = ".bt";
constexpr std::string_view kHeader = ".h";

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// True if users other than root can change the file, whose code would run as root.
bool is_world_writable(const fs::path& directory) {
  struct stat status = {};
  return ::stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0;
}

class Importer {
 public:
  Importer(syntax::Ast& whole, SourceId script, CheckRequest& request)
      : whole_(whole),
        script_(script),
        request_(request),
        sources_(request.sources),
        diagnostics_(request.diagnostics) {}

  // The script's own definitions are moved away, and appended after the imports.
  void run() {
    syntax::Ast own;
    move_top_level(whole_, own);
    const fs::path path(sources_[script_].name);
    std::error_code ignored;
    seen_.insert(fs::weakly_canonical(path, ignored));
    import_all(own.imports, path);
    move_top_level(own, whole_);
  }

 private:
  static void move_top_level(syntax::Ast& from, syntax::Ast& to) {
    append(to.c_definitions, from.c_definitions);
    append(to.config, from.config);
    append(to.imports, from.imports);
    append(to.map_declarations, from.map_declarations);
    append(to.macros, from.macros);
    append(to.functions, from.functions);
    append(to.actions, from.actions);
    from.c_definitions.clear(), from.config.clear(), from.imports.clear(), from.map_declarations.clear();
    from.macros.clear(), from.functions.clear(), from.actions.clear();
  }

  void import_all(const std::vector<syntax::Import>& imports, const fs::path& importer) {
    for (const syntax::Import& import : imports) import_path(importer.parent_path() / import.path, import.span);
  }

  void import_path(const fs::path& path, Span at) {
    const std::string key = path.lexically_normal().string();
    if (request_.files != nullptr) return import_recorded(key, at);
    if (request_.recorded != nullptr) request_.recorded->imports.try_emplace(key);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      diagnostics_.error("no-such-import", at, fmt::format("there is no file `{}`", path.string()),
                         "paths are relative to the file that imports");
      return;
    }
    if (!fs::is_directory(status)) return import_file(path, at, true, key);
    if (refuse_directory(path, at)) return;
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (entry.is_regular_file(error)) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) import_file(file, at, false, key);
  }

  void import_recorded(const std::string& key, Span at) {
    const auto found = request_.files->imports.find(key);
    if (found == request_.files->imports.end()) {
      diagnostics_.error("no-such-import", at, fmt::format("the tool has no file `{}`", key));
      return;
    }
    for (const ImportedFile& file : found->second)
      if (seen_.insert(file.name).second) read_text(file.name, file.text, at);
  }

  bool refuse_directory(const fs::path& directory, Span at) {
    const fs::path named = directory.empty() ? fs::path(".") : directory;
    if (!is_world_writable(named)) return false;
    diagnostics_.error("unsafe-import", at, fmt::format("any user may write to `{}`", named.string()),
                       "remove that permission: chmod o-w " + named.string());
    return true;
  }

  // `key`: of the import, in ScriptFiles.
  void import_file(const fs::path& path, Span at, bool is_named, const std::string& key) {
    const std::string name = path.filename().string();
    if (name.ends_with(".bpf.c")) {
      if (is_named)
        diagnostics_.error("not-importable", at, "BPF programs in C cannot be imported",
                           "write it in this language: `fn name($a : type) : type { ... }`");
      return;
    }
    if (!name.ends_with(kScript) && !name.ends_with(kHeader)) {
      if (is_named)
        diagnostics_.error("not-importable", at, fmt::format("`{}` is neither a script nor a header", name),
                           "import takes .bt and .h files, and directories of them");
      return;
    }
    std::error_code error;
    if (!seen_.insert(fs::weakly_canonical(path, error)).second) return;
    if (refuse_directory(path.parent_path(), at)) return;
    Result<std::string> text = read_untrusted(path.string(), kMaxTextBytes);
    if (!text) {
      diagnostics_.error("no-such-import", at, text.error().message);
      return;
    }
    if (request_.recorded != nullptr)
      request_.recorded->imports[key].push_back({path.lexically_normal().string(), *text});
    read_text(path, std::move(*text), at);
  }

  void read_text(const fs::path& path, std::string text, Span at) {
    const SourceId source = sources_.add(path.lexically_normal().string(), std::move(text), at);
    if (path.extension() == kHeader && !is_readable(source)) {
      syntax::Prelude compiled = HeaderReader(request_).read_header(path.string(), at);
      return append(whole_.c_definitions, compiled.definitions);
    }
    read(path, source);
  }

  // C headers may contain more than this language can parse: functions, variables, macros of a compiler.
  bool is_readable(SourceId header) const {
    source::Diagnostics problems;
    syntax::parse(sources_, header, problems);
    return !problems.has_errors();
  }

  void read(const fs::path& path, SourceId source) {
    const syntax::Prelude prelude = read_import_headers(source, request_);
    syntax::Ast part = syntax::parse_part(sources_, source, whole_, diagnostics_, prelude);
    for (const syntax::ConfigEntry& entry : part.config)
      diagnostics_.error("config-in-import", entry.span, "only the script itself may set `config`");
    part.config.clear();
    import_all(part.imports, path);
    move_top_level(part, whole_);
  }

  syntax::Ast& whole_;
  SourceId script_;
  CheckRequest& request_;
  source::Sources& sources_;
  source::Diagnostics& diagnostics_;
  std::set<fs::path> seen_;
};

}  // namespace

void read_imports(syntax::Ast& ast, SourceId script, CheckRequest& request) {
  if (!ast.imports.empty()) Importer(ast, script, request).run();
}

// ---- The library

namespace {

struct Entry {
  std::string_view name;
  std::string_view text;
};

constexpr Entry kLibrary[] = {
    {"assert_userspace_probe", R"(
macro assert_userspace_probe() {
  static_assert(probetype == "uprobe" || probetype == "uretprobe" || probetype == "usdt",
                "this needs a probe of a program: uprobe, uretprobe or usdt");
}
)"},
    // Only the types are compared; no lookup is generated.
    {"check_key", R"(
macro check_key(@map, key) { _ = sizeof(@map[key]); }
)"},
    {"elf_is_exe", R"(
macro elf_is_exe(path) { elf_info(path).is_exe }
)"},
    {"memcmp_record", R"(
macro memcmp_record(left, right) {
  static_assert(sizeof(left) == sizeof(right), "records of different sizes cannot be compared");
  memcmp(left, right, sizeof(left))
}
)"},
    {"usdt_arg", R"(
macro usdt_arg(n) {
  if comptime (n == 0) { arg0 }
  else if comptime (n == 1) { arg1 }
  else if comptime (n == 2) { arg2 }
  else if comptime (n == 3) { arg3 }
  else if comptime (n == 4) { arg4 }
  else if comptime (n == 5) { arg5 }
  else if comptime (n == 6) { arg6 }
  else if comptime (n == 7) { arg7 }
  else if comptime (n == 8) { arg8 }
  else if comptime (n == 9) { arg9 }
  else if comptime (n == 10) { arg10 }
  else if comptime (n == 11) { arg11 }
  else { fail("a USDT probe has at most twelve arguments") }
}
)"},
};

class Library {
 public:
  Library(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics)
      : ast_(ast), sources_(sources), diagnostics_(diagnostics) {}

  // Added macros may name others; the tree grows during the loop.
  void run() {
    for (uint32_t i = 0; i < ast_.exprs.size(); ++i) {
      const syntax::ExprId id{i};
      if (const auto* call = ast_.get<syntax::Call>(id)) use(call->name);
      if (const auto* name = ast_.get<syntax::Name>(id)) use(name->name);
    }
  }

 private:
  void use(std::string_view name) {
    const auto* entry = std::ranges::find(kLibrary, name, &Entry::name);
    if (entry == std::end(kLibrary) || !added_.insert(entry).second) return;
    const source::SourceId text = sources_.add("library:" + std::string(name), std::string(entry->text));
    syntax::Ast part = syntax::parse_part(sources_, text, ast_, diagnostics_);
    for (syntax::Macro& macro : part.macros)
      if (!is_defined(macro)) ast_.macros.push_back(std::move(macro));
  }

  // By the script, for the same number of arguments.
  bool is_defined(const syntax::Macro& macro) const {
    const auto hides = [&](const syntax::Macro& other) {
      return other.name == macro.name && take_as_many(other, macro);
    };
    return std::ranges::any_of(ast_.macros, hides) ||
           std::ranges::find(ast_.functions, macro.name, &syntax::Function::name) != ast_.functions.end();
  }

  syntax::Ast& ast_;
  source::Sources& sources_;
  source::Diagnostics& diagnostics_;
  std::set<const Entry*> added_;
};

}  // namespace

void add_library(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics) {
  Library(ast, sources, diagnostics).run();
}

}  // namespace espy::check

#include "check/headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/strings.h"
#include "check/config.h"
#include "kernel/abi_constants.h"
#include "kernel/c_compiler.h"
#include "syntax/lexer.h"
#include "syntax/preprocess.h"

namespace espy::check {

namespace {

using kernel::CCompiler;
using source::SourceId;
using source::Span;
using syntax::CDefine;
using syntax::CInclude;

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
    const auto& forced = request_.config.include_files;
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
    if (request_.config.include_files.empty()) return std::move(prelude_);
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
    max_compile_seconds_ = config.max_compile_seconds;
    if (is_script)
      for (const std::string& file : request_.config.include_files) add(forced_include(file));
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
    for (const std::string& directory : request_.config.include_directories) out.push_back("-I" + directory);
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
  uint64_t max_compile_seconds_ = request_.config.max_compile_seconds;
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

syntax::Prelude read_headers(SourceId source, bool is_script, CheckRequest& request) {
  return HeaderReader(request).read(source, is_script);
}

syntax::Prelude read_headers(const syntax::Ast& built, CheckRequest& request) {
  return HeaderReader(request).read(built);
}

syntax::Prelude compile_header(const std::string& path, Span at, CheckRequest& request) {
  return HeaderReader(request).read_header(path, at);
}

}  // namespace espy::check

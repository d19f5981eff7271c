#include "check/import.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/untrusted_file.h"
#include "check/headers.h"
#include "syntax/parser.h"

namespace espy::check {

namespace {

namespace fs = std::filesystem;
using source::SourceId;
using source::Span;

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
      syntax::Prelude compiled = compile_header(path.string(), at, request_);
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
    const syntax::Prelude prelude = read_headers(source, false, request_);
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

}  // namespace espy::check

#include "check/library.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "check/expand.h"
#include "syntax/parser.h"

namespace espy::check {

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
      return other.name == macro.name && take_the_same(other, macro);
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

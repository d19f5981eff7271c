#include "compile_script.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "check/check.h"
#include "compile/compile.h"
#include "ir/ir_text.h"
#include "run/environment.h"
#include "symbols/symbols.h"
#include "syntax/parser.h"

namespace espy::fuzz {

namespace {

const char* name_of(compile::Stage stage) {
  switch (stage) {
    case compile::Stage::kLower: return "lowered";
    case compile::Stage::kOptimize: return "optimized";
    case compile::Stage::kOutlineLoops: return "outlined";
    case compile::Stage::kEmit: return "emitted";
  }
  return "";
}

void require_sound(const ir::Module& module, std::string_view what, const std::string& script) {
  const std::string wrong = ir::verify(module);
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n%s\n--- script\n%s\n", std::string(what).c_str(), wrong.c_str(), script.c_str());
  std::abort();
}

}  // namespace

ScriptCompiler::ScriptCompiler(kernel::Kernel& kernel) : kernel_(kernel), registry_(run::make_registry()) {}

void ScriptCompiler::compile(const std::string& script, Compilation& out) {
  source::Diagnostics diagnostics;
  const source::SourceId source = out.sources.add("stdin", script);
  syntax::Ast ast = syntax::parse(out.sources, source, diagnostics);
  const bool is_parsed = !diagnostics.has_errors();
  spec::Config config;
  config.allow_unsafe = true;
  symbols::Symbolizer symbolizer;  // of one set of types
  check::CheckRequest request{out.sources, registry_, kernel_, out.types, &symbolizer, config, diagnostics};
  const check::Checked checked = check::check(std::move(ast), request);
  render(diagnostics, out.sources);
  out.is_accepted = is_parsed && !diagnostics.has_errors();
  if (!out.is_accepted) return;
  compile::Options options;
  options.observer = [&](const compile::StageResult& result) {
    require_sound(result.ir, name_of(result.stage), script);
  };
  options.after_pass = [&](std::string_view pass, const ir::Module& module) {
    require_sound(module, "after " + std::string(pass), script);
  };
  compile::Compiled compiled = compile::compile(checked, out.types, kernel_, options);
  if (!compiled.diagnostics.has_errors()) out.program = std::move(compiled.program);
}

}  // namespace espy::fuzz

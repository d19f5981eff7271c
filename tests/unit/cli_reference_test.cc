// The documents agree with the tables: they are made from them, and every row has its words and an example that checks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "check/check.h"
#include "cli/command.h"
#include "cli/reference.h"
#include "kernel/kernel.h"
#include "run/environment.h"
#include "symbols/symbols.h"
#include "syntax/parser.h"

namespace espy::cli {
namespace {

const std::string kRoot = ESPY_ROOT;

std::string document(const std::string& name) {
  const auto text = read_file(kRoot + "/docs/" + name);
  EXPECT_TRUE(text.has_value()) << name;
  return text.value_or("");
}

// What stands between the lines that hold `begin generated` and `end generated`.
std::string generated_part(const std::string& text) {
  const size_t begin = text.find('\n', text.find("begin generated"));
  const size_t end = text.find("end generated");
  if (begin == text.npos || end == text.npos || end < begin) return "";
  return text.substr(begin + 1, text.rfind('\n', end) - begin);
}

// The errors that the recorded kernel gives for a script, as a reader would see them.
std::string errors_of(const std::string& script) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  types::Types types;
  symbols::Symbolizer symbols;
  auto kernel = kernel::open_recorded_kernel(kRoot + "/tests/kernels/6.18-full-x86_64");
  if (!kernel) return kernel.error().message;
  spec::Config config;
  config.allow_unsafe = true;
  config.tracee.has_child = true;
  config.tracee.child_pid = 1;
  config.runs_tests = script.starts_with("test:");
  config.runs_benchmarks = script.starts_with("bench:");
  const spec::Registry registry = run::make_registry();
  syntax::Ast ast = syntax::parse(sources, sources.add("example", script), diagnostics);
  check::CheckRequest request{sources, registry, **kernel, types, &symbols, config, diagnostics};
  [[maybe_unused]] const check::Checked checked = check::check(std::move(ast), request);
  std::string out;
  for (const source::Diagnostic& each : diagnostics.all())
    if (each.severity == source::Severity::kError) out += render(each, sources);
  return out;
}

TEST(CliReference, IsWhatTheTablesSay) {
  for (const ReferencePart& page : reference_pages())
    EXPECT_EQ(document(fmt::format("reference/{}.md", page.name)), page.text(run::make_registry())) << "make docs";
  EXPECT_EQ(generated_part(document("espy.8")), options_mdoc()) << "make docs";
  for (const ReferencePart& shell : shells())
    EXPECT_EQ(generated_part(document("espy." + std::string(shell.name))), shell.text(run::make_registry()))
        << "make docs";
}

TEST(CliReference, EveryRowHasItsWords) {
  const spec::Registry registry = run::make_registry();
  for (const auto& family : registry.families())
    for (const spec::Builtin& row : family) EXPECT_TRUE(row.doc.ends_with('.')) << row.sig;
  for (const spec::Provider* provider : registry.providers()) {
    EXPECT_FALSE(provider->doc.empty()) << provider->name;
    EXPECT_TRUE(provider->form.starts_with(provider->name)) << provider->name;
    EXPECT_FALSE(provider->example.empty()) << provider->name;
  }
  for (const check::ConfigRow& row : check::config_rows())
    EXPECT_TRUE(row.doc.empty() || row.doc.ends_with('.')) << row.name;
}

TEST(CliReference, EveryExampleChecks) {
  const spec::Registry registry = run::make_registry();
  for (const auto& family : registry.families()) {
    for (const spec::Builtin& row : family) {
      if (!row.example.empty()) {
        EXPECT_EQ(errors_of(std::string(row.example)), "") << row.sig;
      }
    }
  }
  for (const spec::Provider* provider : registry.providers()) {
    const std::string errors = errors_of(std::string(provider->example));
    // The recorded kernel is cut down, and the machine may have another build of a program, or none.
    const bool is_elsewhere = errors.find("[no-such-probe]") != std::string::npos;
    if (!is_elsewhere) {
      EXPECT_EQ(errors, "") << provider->name;
    }
  }
}

TEST(CliReference, HelpNamesEveryOption) {
  std::string general;
  for (const OptionGroup& group : option_groups()) general += help_of_options(group);
  for (const OptionRow& row : option_rows())
    EXPECT_NE(general.find(option_names(row)), general.npos) << option_names(row);
  for (const Command* command : commands())
    for (const OptionRow& row : command->options)
      EXPECT_NE(help_of(*command).find(option_names(row)), std::string::npos) << option_names(row);
}

}  // namespace
}  // namespace espy::cli

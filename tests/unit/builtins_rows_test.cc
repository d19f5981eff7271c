// Every row of every family: a signature that reads, a doc, an example that parses and checks; and what check hooks
// say.
#include <gtest/gtest.h>

#include <set>

#include "../support/fake_kernel.h"
#include "builtins/all_builtins.h"
#include "builtins/builtin_support.h"
#include "check/check.h"
#include "check/signature.h"
#include "probes/all_probes.h"
#include "syntax/parser.h"

namespace espy::builtins {
namespace {

spec::Registry registry() { return {all(), probes::all()}; }

std::vector<const spec::Builtin*> rows() {
  std::vector<const spec::Builtin*> out;
  for (const auto& family : all())
    for (const spec::Builtin& row : family) out.push_back(&row);
  return out;
}

// The ids of what checking `script` says, with a space between.
std::string complaints(const std::string& script) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  types::Types types;
  espy::testing::FakeKernel kernel;
  spec::Config config;
  config.allow_unsafe = true;
  const spec::Registry known = registry();
  syntax::Ast ast = syntax::parse(sources, sources.add("test", script), diagnostics);
  check::CheckRequest request{sources, known, kernel, types, nullptr, config, diagnostics};
  [[maybe_unused]] const check::Checked checked = check::check(std::move(ast), request);
  std::string out;
  for (const source::Diagnostic& each : diagnostics.all()) {
    if (each.severity != source::Severity::kError) continue;
    if (!out.empty()) out += ' ';
    out += each.id;
  }
  return out;
}

TEST(BuiltinRows, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const spec::Builtin* row : rows()) EXPECT_TRUE(names.insert(spec::name_of(*row)).second) << row->sig;
}

TEST(BuiltinRows, SayWhatTheyAre) {
  for (const spec::Builtin* row : rows()) {
    EXPECT_TRUE(row->doc.ends_with(".")) << row->sig;
    const check::Signature signature = check::parse_signature(row->sig);
    EXPECT_FALSE(signature.result.empty()) << row->sig;
    for (const check::Parameter& parameter : signature.parameters) EXPECT_FALSE(parameter.type.empty()) << row->sig;
    if (signature.result == "any") {
      EXPECT_NE(row->check, nullptr) << row->sig;
    }
    EXPECT_EQ(row->kind == spec::BuiltinKind::kAggregation && spec::name_of(*row) != "recent",
              row->lower_update != nullptr)
        << row->sig;
  }
}

TEST(BuiltinRows, ExamplesOfBeginProbesCheck) {
  for (const spec::Builtin* row : rows()) {
    const std::string example(row->example);
    const bool needs_kernel = row->needs || example.find("curtask") != std::string::npos ||
                              example.find("kaddr") != std::string::npos ||
                              row->sig.find("task_struct") != row->sig.npos;
    if (!example.starts_with("begin") || needs_kernel) continue;
    EXPECT_EQ(complaints(example), "") << example;
  }
}

TEST(BuiltinChecks, RefuseWhatCannotBe) {
  EXPECT_EQ(complaints("begin { print(kstack(prf)); }"), "stack-mode");
  EXPECT_EQ(complaints("begin { print(kstack(build_id)); }"), "stack-mode");
  EXPECT_EQ(complaints("begin { print(ustack(build_id)); }"), "");
  EXPECT_EQ(complaints("begin { print(ustack(perf, 2000)); }"), "stack-frames");
  EXPECT_EQ(complaints("begin { print(ustack(3, perf)); }"), "stack-arguments");
  EXPECT_EQ(complaints("begin { print(nsecs(boott)); }"), "unknown-clock");
  EXPECT_EQ(complaints("begin { print(pid(other)); }"), "unknown-namespace");
  EXPECT_EQ(complaints("begin { print(comm(1)); }"), "comm-of-pid");
  EXPECT_EQ(complaints("begin { print(macaddr()); }"), "wrong-arity");
  EXPECT_EQ(complaints("begin { print(pton(\"1.2.3\")); }"), "bad-address");
  EXPECT_EQ(complaints("begin { @ = hist(1, 6); }"), "hist-bits");
  EXPECT_EQ(complaints("begin { @ = lhist(1, 10, 0, 1); }"), "lhist-range");
  EXPECT_EQ(complaints("begin { @ = tseries(1, 1s, 1001); }"), "tseries-intervals");
  EXPECT_EQ(complaints("begin { @ = tseries(1, 1s, 5, \"mx\"); }"), "tseries-aggregation");
  EXPECT_EQ(complaints("begin { print(reg(\"ip\")); }"), "no-registers");
  EXPECT_EQ(complaints("begin { printf(\"%d\"); }"), "format-arguments");
  EXPECT_EQ(complaints("begin { fail(\"no\"); }"), "fail");
}

TEST(BuiltinChoices, NameTheNearestOrAll) {
  EXPECT_EQ(suggestion("prf", {"perf", "raw"}), "did you mean `perf`?");
  EXPECT_EQ(suggestion("quite_else", {"perf", "raw"}), "expected one of perf, raw");
}

}  // namespace
}  // namespace espy::builtins

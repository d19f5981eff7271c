// The Checker that builtins' `check` functions are given.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/checker.h"
#include "check/facts.h"
#include "check/maps.h"
#include "check/reporter.h"

namespace espy::check {

class BuiltinChecker final : public Checker {
 public:
  BuiltinChecker(CheckRequest& request, Checked& checked, Facts& facts, Reporter& reporter, const Round& round,
                 const Maps& maps)
      : request_(request), checked_(checked), facts_(facts), reporter_(reporter), round_(round), maps_(maps) {}

  types::Types& types() override { return request_.types; }
  kernel::Kernel& kernel() override { return request_.kernel; }
  symbols::Symbolizer* symbols() override { return request_.symbols; }
  const spec::Config& config() const override { return checked_.config; }
  const syntax::Ast& ast() const override { return checked_.ast; }
  const Unit& unit() const override { return std::as_const(facts_).unit(); }
  const program::Probe& first_probe() const override { return facts_.first_probe(); }
  std::vector<std::string> probe_types() const override;
  TypeId type(ExprId expr) const override { return facts_.type(expr); }
  const Constant& constant(ExprId expr) const override { return facts_.constant(expr); }
  bool is_keyed(ExprId map) const override { return maps_.is_keyed(map); }
  void measure_stacks() override { checked_.measures_stacks = true; }
  void act_in_all_tasks() override {
    for (Unit& unit : checked_.units) unit.context.is_limited_to_pid = false;
  }
  void fold(ExprId call, Constant value) override { facts_.fact(call).constant = std::move(value); }
  void note_option(ScriptOption option) override;
  void error(std::string_view id, Span span, std::string message, std::string hint = {}) override {
    reporter_.error(id, span, std::move(message), std::move(hint));
  }
  void warning(std::string_view id, Span span, std::string message, std::string hint = {}) override {
    reporter_.warning(id, span, std::move(message), std::move(hint));
  }

 private:
  CheckRequest& request_;
  Checked& checked_;
  Facts& facts_;
  Reporter& reporter_;
  const Round& round_;
  const Maps& maps_;
};

}  // namespace espy::check

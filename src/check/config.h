// The variables of `config = { }` and their BPFTRACE_* names in the environment.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "check/check.h"

namespace espy::check {

// A variable as the manual shows it.
struct ConfigRow {
  std::string_view name;
  std::string_view old_name;  // may be empty
  std::string_view doc;       // empty: accepted and without effect
  std::string initial;        // the default
};
std::vector<ConfigRow> config_rows();

// Reads the script's entries into `config`. Variables set by the environment keep their values.
void read_config(const syntax::Ast& ast, spec::Config& config, source::Diagnostics& diagnostics);

// Reports maps of `print_units` that the script does not have.
void check_units(const Checked& checked, source::Diagnostics& diagnostics);

// The value of a variable that is read where it is used, and has no field in spec::Config: that of the environment,
// otherwise that of the script; "" if neither sets it.
std::string config_value(const syntax::Ast& ast, std::string_view name,
                         const std::function<const char*(const char*)>& getenv);

}  // namespace espy::check

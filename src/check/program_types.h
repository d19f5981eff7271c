// Types and enumerators of the programs that a script traces, by name. Their debug information is read only for a name
// that neither the script nor the language defines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/facts.h"
#include "kernel/kernel.h"
#include "spec/registry.h"

namespace espy::check {

class ProgramTypes {
 public:
  ProgramTypes(Facts& facts, const Checked& checked, const spec::Registry& registry, kernel::Kernel& kernel)
      : facts_(facts), checked_(checked), registry_(registry), kernel_(kernel) {}

  using Category = spec::ProgramTypeRequest::Category;
  // kOwn: the programs that the probes of the unit are in. kAny: for a unit without such probes, those of all units.
  enum class Scope : uint8_t { kOwn, kAny };
  struct Found {
    TypeId type;
    int64_t value = 0;  // of an enumerator
  };
  // nullopt if no program has the name, or if it is ambiguous: explain() tells.
  std::optional<Found> find(Scope scope, Category category, const std::string& name);
  TypeId find_type(Scope scope, Category category, const std::string& name);
  // Defines a struct that the script only declares as the program's of the same name.
  void define(TypeId declared);

  struct Explanation {
    std::string message;  // instead of "no type named"; may be empty
    std::string hint;
  };
  // Why a name was not found; nullopt if no program was asked.
  std::optional<Explanation> explain(const std::string& name) const;

 private:
  const std::vector<const program::Probe*>& probes_in_programs(Scope scope);
  const spec::Provider* asked(const program::Probe& probe) const;
  std::optional<Found> search(Scope scope, Category category, const std::string& name);

  Facts& facts_;
  const Checked& checked_;
  const spec::Registry& registry_;
  kernel::Kernel& kernel_;
  std::map<std::pair<size_t, Scope>, std::vector<const program::Probe*>> probes_;           // by unit: a cache
  std::map<std::tuple<size_t, Scope, Category, std::string>, std::optional<Found>> found_;  // by unit: a cache
  std::map<std::pair<size_t, std::string>, Explanation> explanations_;                      // by unit and name
};

}  // namespace espy::check

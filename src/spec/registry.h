// All builtins and probe types. Created by cli/registry.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "spec/builtin.h"
#include "spec/provider.h"

namespace espy::spec {

class Registry {
 public:
  Registry(std::vector<BuiltinFamily> families, std::vector<const Provider*> providers)
      : families_(std::move(families)), providers_(std::move(providers)) {}

  // Null if there is none.
  const Builtin* find_builtin(std::string_view name) const {
    for (const BuiltinFamily& family : families_)
      for (const Builtin& row : family)
        if (name_of(row) == name) return &row;
    return nullptr;
  }
  // By name or alias, ignoring case. Null if there is none.
  const Provider* find_provider(std::string_view name) const;

  std::span<const BuiltinFamily> families() const { return families_; }
  std::span<const Provider* const> providers() const { return providers_; }

 private:
  std::vector<BuiltinFamily> families_;
  std::vector<const Provider*> providers_;
};

inline const Provider* Registry::find_provider(std::string_view name) const {
  const auto equal = [](std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if ((a[i] | 0x20) != (b[i] | 0x20)) return false;
    return true;
  };
  for (const Provider* provider : providers_) {
    if (equal(provider->name, name)) return provider;
    for (const std::string_view alias : provider->aliases)
      if (equal(alias, name)) return provider;
  }
  return nullptr;
}

}  // namespace espy::spec

// spec: the interfaces of plugins (builtin.h, provider.h), their tables, and the configuration of a run (config.h).
//
// Registry: all builtins and probe types. Created by run/environment.cc.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
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
  // By name or alias, ignoring case if there is none in that case: `u` is uprobe, `U` usdt. Null if there is none.
  const Provider* find_provider(std::string_view name) const;

  std::span<const BuiltinFamily> families() const { return families_; }
  std::span<const Provider* const> providers() const { return providers_; }

 private:
  std::vector<BuiltinFamily> families_;
  std::vector<const Provider*> providers_;
};

inline const Provider* Registry::find_provider(std::string_view name) const {
  const Provider* in_other_case = nullptr;
  const auto equal_but_case = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  for (const Provider* provider : providers_) {
    if (provider->name == name || std::ranges::find(provider->aliases, name) != provider->aliases.end())
      return provider;
    const auto is_named = [&](std::string_view own) { return std::ranges::equal(own, name, equal_but_case); };
    if (!in_other_case && (is_named(provider->name) || std::ranges::any_of(provider->aliases, is_named)))
      in_other_case = provider;
  }
  return in_other_case;
}

}  // namespace espy::spec

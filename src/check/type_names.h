// Types as the script writes them: `struct foo *[4]`, `uint8`, `typeof($x)`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "check/expressions.h"
#include "check/program_types.h"
#include "kernel/kernel.h"

namespace espy::check {

class TypeNames {
 public:
  TypeNames(Facts& facts, Reporter& reporter, const Round& round, Expressions& expressions, ProgramTypes& program_types,
            kernel::Kernel& kernel, const spec::Config& config)
      : facts_(facts),
        reporter_(reporter),
        round_(round),
        expressions_(expressions),
        program_types_(program_types),
        kernel_(kernel),
        config_(config) {}

  // Invalid, with an error, if there is no such type; invalid for an invalid id.
  TypeId type(syntax::TypeNameId id);
  // A type with a name of one word; invalid, without an error, if there is none.
  TypeId plain_type(const std::string& name);

 private:
  TypeId base_type(const syntax::TypeName& name);
  TypeId composite_type(const syntax::TypeName& name);
  TypeId tagged_type(const syntax::TypeName& name);
  TypeId array_type(const syntax::TypeName& name, size_t suffix, TypeId element);
  types::AddressSpace space_of(TypeId element) const;
  std::optional<int64_t> length(ExprId count);
  void report_unknown(const syntax::TypeName& name);

  Facts& facts_;
  Reporter& reporter_;
  const Round& round_;
  Expressions& expressions_;
  ProgramTypes& program_types_;
  kernel::Kernel& kernel_;
  const spec::Config& config_;
};

}  // namespace espy::check

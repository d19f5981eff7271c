// Composite values and their parts: members, elements, tuples and records.
#pragma once

#include <string>

#include "check/constants.h"
#include "check/context_fields.h"
#include "check/expressions.h"
#include "check/program_types.h"
#include "check/variables.h"
#include "kernel/kernel.h"

namespace espy::check {

// Reports that nothing is known of what a struct holds, and why.
void refuse_incomplete(const Facts& facts, Reporter& reporter, const kernel::Kernel& kernel, TypeId type, Span span);

class Members {
 public:
  Members(Facts& facts, Reporter& reporter, const Round& round, Expressions& expressions, ContextFields& context_fields,
          Constants& constants, Variables& variables, ProgramTypes& program_types, kernel::Kernel& kernel)
      : facts_(facts),
        reporter_(reporter),
        round_(round),
        expressions_(expressions),
        context_fields_(context_fields),
        constants_(constants),
        variables_(variables),
        program_types_(program_types),
        kernel_(kernel) {}

  TypeId access(ExprId id, const syntax::Access& node);
  TypeId tuple_access(ExprId id, const syntax::TupleAccess& node);
  // An element of an array, a string or the like; elements of maps are MapExpressions'.
  TypeId index(ExprId id, const syntax::Index& node);
  TypeId tuple(const syntax::Tuple& node);
  TypeId record(ExprId id, const syntax::Record& node);

  // The type of a `type` that is read from memory of `space`: pointers in user memory point to user memory.
  TypeId loaded_type(types::AddressSpace space, TypeId type);

 private:
  TypeId member(TypeId base, const std::string& name, Span name_span);
  TypeId element(ExprId id, TypeId base, ExprId index);
  // Returns the path to a member of this name in the members of a struct, up to one pointer away: "q.disk"; "" if there
  // is none.
  std::string path_to(TypeId holder, const std::string& name);
  // Adds the members of a struct of a program or the kernel that was only named so far.
  void complete(TypeId id);

  Facts& facts_;
  Reporter& reporter_;
  const Round& round_;
  Expressions& expressions_;
  ContextFields& context_fields_;
  Constants& constants_;
  Variables& variables_;
  ProgramTypes& program_types_;
  kernel::Kernel& kernel_;
};

}  // namespace espy::check

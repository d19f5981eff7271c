// Refuses values that are too large to be copied, and structs that nothing is known of.
//
// Variables, map elements, tuples, records and function arguments are copies in per-CPU memory, which is allocated
// before the script runs. The size of a struct or an array comes from the traced program, which is untrusted. Reading a
// member, an element or the address copies nothing else of it.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "check/facts.h"
#include "check/reporter.h"
#include "kernel/kernel.h"
#include "spec/config.h"

namespace espy::check {

class CopiedValues {
 public:
  CopiedValues(Facts& facts, Reporter& reporter, kernel::Kernel& kernel, const spec::Config& config)
      : facts_(facts), reporter_(reporter), kernel_(kernel), config_(config) {}

  // False if no type is to be refused; there is nothing to look for then.
  bool may_be_refused() const;
  // Reports the values of the unit that `facts` has entered.
  void check_unit();
  void check_map(const CheckedMap& map);

 private:
  const ExprFact& fact_of(ExprId id) const { return std::as_const(facts_).unit().fact(id); }
  void check_below(ExprId root);
  void check_expr(ExprId id);
  void note_operands(ExprId id);
  void note_arguments(const syntax::Call& call, const spec::Builtin& builtin);
  void skip_below(ExprId id);
  bool is_read_in_place(ExprId id) const;
  bool is_cast_in_place(const syntax::Cast& cast, TypeId to) const;
  bool refuse_if_large(TypeId type, Span span);
  bool refuse_if_incomplete(TypeId type, Span span);
  bool refuse_if_many(ExprId id);
  void complete(TypeId type);
  bool is_incomplete(TypeId type);
  uint64_t bytes_of(TypeId type);

  Facts& facts_;
  Reporter& reporter_;
  kernel::Kernel& kernel_;
  const spec::Config& config_;
  std::set<ExprId> in_place_;  // of which only a part or the address is read
  std::set<ExprId> skipped_;   // not evaluated, or reported with what they are a part of
};

}  // namespace espy::check

// The values that a probe's context offers: `args`, `locals`, `retval`, `argN`, `sargN`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/facts.h"
#include "check/reporter.h"
#include "kernel/kernel.h"

namespace espy::check {

class ContextFields {
 public:
  ContextFields(Facts& facts, Reporter& reporter, kernel::Kernel& kernel, const spec::Config& config)
      : facts_(facts), reporter_(reporter), kernel_(kernel), config_(config) {}

  // The type of a context's word; invalid, with an error, if the probe does not offer it. nullopt for other names.
  std::optional<TypeId> name(ExprId id, const std::string& name);
  // The type of an expression whose value the recording has; invalid, with an error, if it could not be recorded.
  // nullopt for other expressions.
  std::optional<TypeId> recorded(ExprId id);
  // The fields that `args` and `locals` stand for; null for other words.
  const std::vector<spec::ContextField>* named(std::string_view word) const;
  // A record of the fields of `args` or `locals` that can be read here.
  TypeId record_type(std::string_view word);
  // The field `name` of `args` or `locals`; null, with an error, if there is none or it cannot be read here.
  const spec::ContextField* field(std::string_view word, const std::string& name, Span span);
  // For `locals.s.x` where parts of `s` cannot be read here: if `x` (`member_name`) can, notes that `base` is the
  // field `s`, and returns true.
  bool use_readable_part(ExprId base, const std::string& member_name);

 private:
  TypeId all_fields(ExprId id, const std::string& word);
  TypeId return_value(ExprId id);
  TypeId argument(ExprId id, const std::string& name, size_t number);
  TypeId use(ExprId id, const spec::ContextField& field);
  TypeId shown_type(const spec::ContextField& field);
  bool is_readable(const spec::ContextField& field, Span span);
  void report_missing(const std::string& what, Span span, std::string hint = {});
  void report_no_fields(std::string_view word, Span span);
  void report_unknown_field(std::string_view word, const std::string& name, const std::vector<std::string>& names,
                            Span span);

  Facts& facts_;
  Reporter& reporter_;
  kernel::Kernel& kernel_;
  const spec::Config& config_;
  std::map<std::pair<size_t, std::string>, TypeId> record_types_;  // by unit and word: a cache
};

}  // namespace espy::check

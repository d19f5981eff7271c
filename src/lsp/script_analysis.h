// Facts about a document: its tree, its types and its errors; and questions about a place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "source/diagnostic.h"
#include "spec/registry.h"

namespace espy::lsp {

// A text that was parsed and checked. `owner` keeps what the references lead to.
struct Analysis {
  const spec::Registry& registry;
  kernel::Kernel& kernel;
  types::Types& types;
  source::Sources& sources;
  const source::Diagnostics& diagnostics;
  source::SourceId script;
  check::Checked checked;
  std::shared_ptr<void> owner;

  const syntax::Ast& ast() const { return checked.ast; }
};

// What the server needs of the rest of espy.
struct Services {
  // Checks a script for the kernel in use; `name` is shown in messages, and imports are relative to it.
  std::function<Result<std::unique_ptr<Analysis>>(const std::string& name, const std::string& text)> analyze;
  // Lists the names of a provider's probes; `parts` are patterns after it, none for all.
  std::function<std::vector<std::string>(const spec::Provider& provider, const std::vector<std::string>& parts)> list;
  // Checks for the kernel of a snapshot from now on, or, without a path, for the one that runs.
  std::function<Status(const std::string& snapshot)> use_kernel;
  const spec::Registry& registry;
  std::string version;
};

// An expression at a place, with the unit whose facts are known of it.
struct Found {
  syntax::ExprId expr;
  const check::Unit* unit = nullptr;  // null if no unit has checked it

  const check::ExprFact* fact() const { return unit ? &unit->fact(expr) : nullptr; }
};

// Returns the innermost expression around an offset of the script.
std::optional<Found> find_expression(const Analysis& analysis, uint32_t offset);
// Returns a unit of the action around the offset; null if there is none.
const check::Unit* find_unit(const Analysis& analysis, uint32_t offset);
// Returns the type that is named at the offset, in a cast, a declaration or sizeof(); null if there is none.
const syntax::TypeName* find_type_name(const Analysis& analysis, uint32_t offset);
// Returns the type of an expression in any unit; invalid if it is unknown.
types::TypeId type_of(const Analysis& analysis, syntax::ExprId expr);

// A word of the script: an identifier, with its `$` or `@`.
struct Word {
  std::string text;
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const Word&) const = default;
};
// Returns the word that the offset is in or behind.
std::optional<Word> word_at(std::string_view text, uint32_t offset);

}  // namespace espy::lsp

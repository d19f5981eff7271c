// The names of a script for editors: the word under the cursor, definitions and uses, probes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lsp/document.h"
#include "lsp/script_analysis.h"

namespace espy::lsp {

// ---- The word that is written at a place of a script, by the text before it alone. The text may be wrong or
// unfinished.

struct Place {
  enum class Kind : uint8_t {
    kNothing,      // a comment, a text, a number
    kAttachPoint,  // outside of braces, but not in a predicate
    kMember,       // after `.` or `->`
    kMap,
    kVariable,
    kName,
  };
  Kind kind = Kind::kNothing;
  uint32_t begin = 0;  // of the word that is written
};
Place place_of(std::string_view text, uint32_t offset);

// A call whose arguments the place is among.
struct OpenCall {
  std::string name;
  uint32_t argument = 0;  // index
};
// Returns the innermost call; nullopt if there is none.
std::optional<OpenCall> open_call(std::string_view text, uint32_t offset);

// ---- Where the names of a script are defined and used: definition, references, renaming, symbols, types of variables.

// The scheme of documents that the server makes: "espy-btf:///struct task_struct.c".
constexpr std::string_view kTypeScheme = "espy-btf:///";

// Returns the Location of the definition for the name at the offset; null if there is none.
Json definition(const Document& document, uint32_t offset);
// Returns the text of a document of kTypeScheme: the C definition of a type, in the kernel that `analysis` was made
// for.
std::string type_document(const Analysis& analysis, std::string_view uri);
// Returns the Locations of all uses of the variable, map, function or macro at the offset.
Json references(const Document& document, uint32_t offset);
// Returns the WorkspaceEdit that gives it another name; fails if that is not possible.
Result<Json> rename(const Document& document, uint32_t offset, const std::string& new_name);
// Returns the DocumentSymbols: actions, functions, macros.
Json symbols(const Document& document);
// Returns the InlayHints: the types of variables and maps where they are assigned first.
Json inlay_hints(const Document& document);

// ---- The names of probes, which are listed once for each provider, and for each file of user probes.

class ProbeNames {
 public:
  explicit ProbeNames(const Services& services) : services_(services) {}

  // Returns the names that begin with `prefix`, at most `most` of them, sorted: "kprobe:vfs_read". `prefix` has the
  // provider and its colon; of a probe in a file, the file and the next colon as well.
  std::vector<std::string> with_prefix(const std::string& prefix, size_t most);
  // Lists the names of the next provider without a list, so a completion need not. False if there is none.
  bool list_ahead();
  // Forgets all, as another kernel is in use.
  void clear() { lists_.clear(); }

 private:
  const std::vector<std::string>& list(const std::string& head);

  const Services& services_;
  std::map<std::string, std::vector<std::string>, std::less<>> lists_;
};

// ---- Completion: probes where an attach point is written, members after a dot, maps, variables, builtins and
// keywords.

// Returns the CompletionList for an offset of the document.
Json complete(const Services& services, ProbeNames& probes, const Document& document, uint32_t offset);

}  // namespace espy::lsp

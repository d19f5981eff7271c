// The families of builtins, in the order of the manual. A new family is a file in this directory and a line here; a new
// builtin is a row in the file of its family.
#include "builtins/all_builtins.h"

#define ESPY_FAMILIES(X) \
  X(kTask)               \
  X(kTime)               \
  X(kProbe)              \
  X(kOutput)             \
  X(kSpan)               \
  X(kAggregation)        \
  X(kString)             \
  X(kStack)              \
  X(kSymbol)             \
  X(kGo)                 \
  X(kMap)                \
  X(kNet)                \
  X(kPacket)             \
  X(kFile)               \
  X(kComptime)

namespace espy::builtins {

#define ESPY_DECLARE(name) extern const spec::BuiltinFamily name;
ESPY_FAMILIES(ESPY_DECLARE)

#define ESPY_ELEMENT(name) name,
std::vector<spec::BuiltinFamily> all() { return {ESPY_FAMILIES(ESPY_ELEMENT)}; }

}  // namespace espy::builtins

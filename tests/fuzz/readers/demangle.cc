// Names of symbols, one a line.
#include "symbols/demangle.h"

#include <cstdlib>

#include "../reader.h"
#include "base/strings.h"

namespace espy::fuzz {

void run_demangle(std::string_view bytes) {
  using namespace symbols;
  constexpr size_t kMaxNames = 8, kMaxShownBytes = 8 << 20;
  size_t names = 0;
  for (const std::string_view name : split(bytes, '\n')) {
    if (++names > kMaxNames) break;
    for (const DemangleStyle style : {DemangleStyle::kSignature, DemangleStyle::kOverload, DemangleStyle::kName}) {
      const std::string shown = demangle(name, style);
      if (shown.size() > kMaxShownBytes) std::abort();
      use(shown);
    }
    use(demangle_rust(name));
    use(name_of_signature(name));
  }
}

}  // namespace espy::fuzz

// Text of traced programs in JSON output.
#include <cstdio>
#include <cstdlib>

#include "../json_reader.h"
#include "../reader.h"
#include "base/strings.h"

namespace espy::fuzz {

void run_json(std::string_view bytes) {
  const std::string quoted = json_string(bytes);
  if (JsonReader(quoted).is_value_alone()) return;
  std::fprintf(stderr, "not JSON: %s\n", quoted.c_str());
  std::abort();
}

}  // namespace espy::fuzz

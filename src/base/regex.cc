#include "base/regex.h"

namespace espy {

Result<Regex> Regex::compile(const std::string& pattern) {
  auto regex = std::make_unique<regex_t>();
  if (const int code = ::regcomp(regex.get(), pattern.c_str(), REG_EXTENDED | REG_NOSUB); code != 0) {
    char reason[128] = {};
    ::regerror(code, regex.get(), reason, sizeof(reason));
    return fail("`" + pattern + "` is no regular expression: " + reason);
  }
  return Regex(std::unique_ptr<regex_t, Free>(regex.release()));
}

}  // namespace espy

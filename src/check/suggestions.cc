#include "check/suggestions.h"

#include "base/strings.h"

namespace espy::check {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string_view prefix) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const std::string best = nearest(word, views);
  return best.empty() ? std::string() : "did you mean `" + std::string(prefix) + best + "`?";
}

}  // namespace espy::check

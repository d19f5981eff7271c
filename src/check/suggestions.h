// Hints for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espy::check {

// "did you mean `PREFIXx`?" where x is the candidate nearest to `word`; "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view prefix = {});

}  // namespace espy::check

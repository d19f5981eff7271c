// Differences of two texts as a unified diff.
#pragma once

#include <string>
#include <string_view>

namespace espy::golden {

// The lines that differ, with three lines of context, below "--- expected" and "+++ actual" and a line
// "@@ -LINE,COUNT +LINE,COUNT @@" for each hunk. The number of changed lines is minimal. A missing newline at the end
// of a text is shown as "\ No newline at end of file". "" if the texts are equal.
std::string unified_diff(std::string_view expected, std::string_view actual);

}  // namespace espy::golden

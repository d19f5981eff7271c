// The words of a command line, one a line, and attach points among them.
#include <string>
#include <vector>

#include "../reader.h"
#include "base/strings.h"
#include "cli/options.h"
#include "run/attach_words.h"

namespace espy::fuzz {

void run_command_line(std::string_view bytes) {
  std::vector<std::string> words;
  for (const std::string_view word : split(bytes, '\n')) words.emplace_back(word.substr(0, word.find('\0')));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  if (const auto options = cli::parse_options(arguments); !options) use(options.error().message);
  for (const std::string& word : words) {
    for (const std::string& part : run::split_unquoted(word, ',')) use(part);
    for (const std::string& part : run::split_attach_point(word)) use(part);
  }
}

}  // namespace espy::fuzz

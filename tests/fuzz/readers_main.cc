// PROGRAM --list | --run NAME FILE... | NAME SECONDS [--seed=N] [FILE-OR-DIR...]
//
// Random bytes against a reader (reader.h); --run: files as they are.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "mutate.h"
#include "reader.h"
#include "scripts.h"

namespace {

using namespace espy::fuzz;

// Returns the contents of files, and of the files in directories.
std::vector<std::string> read_files(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      out.push_back(read_whole(path.c_str()));
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
      if (entry.is_regular_file()) out.push_back(read_whole(entry.path().c_str()));
  }
  return out;
}

int run_files(const Reader& reader, const std::vector<std::string>& paths) {
  for (const std::string& bytes : read_files(paths)) run_limited(reader, bytes);
  return 0;
}

int fuzz(const Reader& reader, int seconds, uint32_t seed, const std::vector<std::string>& paths) {
  const auto try_one = [&](const std::string& bytes, Counts&) { run_limited(reader, bytes); };
  const auto drive_with = [&](const auto& mutator) {
    const auto next = [&](Random& random) { return mutator.next(random); };
    return drive(std::string(reader.name).c_str(), seconds, seed, {next, try_one, {}, 2000});
  };
  const bool is_script = reader.content == Content::kScript;
  return is_script ? drive_with(ScriptMutator(read_files(paths))) : drive_with(ByteMutator(read_files(paths)));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  uint32_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0)
      seed = static_cast<uint32_t>(std::strtoul(argv[i] + 7, nullptr, 10));
    else
      words.emplace_back(argv[i]);
  }
  if (!words.empty() && words[0] == "--list") {
    list_readers("driver");
    return 0;
  }
  const bool is_run = words.size() > 1 && words[0] == "--run";
  const Reader* reader = words.size() > 1 ? find_reader(words[is_run ? 1 : 0]) : nullptr;
  if (reader == nullptr) {
    std::fprintf(stderr, "usage: --list | --run NAME FILE... | NAME SECONDS [FILE-OR-DIR...]\n");
    return 2;
  }
  const std::vector<std::string> paths(words.begin() + 2, words.end());
  return is_run ? run_files(*reader, paths) : fuzz(*reader, std::atoi(words[1].c_str()), seed, paths);
}

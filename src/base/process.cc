#include "base/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"

namespace espy {

namespace {

// Returns the environment with LC_ALL=C.
std::vector<std::string> english_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("LC_ALL=")) out.emplace_back(text);
  }
  out.emplace_back("LC_ALL=C");
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  const char* variable = std::getenv("PATH");
  const std::string_view directories = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" : variable;
  for (const std::string_view directory : split(directories, ':')) {
    std::string path(directory.empty() ? "." : directory);
    path += '/';
    path += name;
    if (is_file(path) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

Result<ProcessOutput> run_process(const std::vector<std::string>& argv, const std::string& scratch) {
  const std::string out_path = scratch + "/stdout", err_path = scratch + "/stderr";
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_path.c_str(), kWrite, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_path.c_str(), kWrite, 0600);
  std::vector<std::string> words = argv, environment = english_environment();
  pid_t child = 0;
  const int code =
      ::posix_spawnp(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return fail_errno("cannot run " + argv[0], code);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno("cannot wait for " + argv[0], errno);
  }
  ProcessOutput output;
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  output.out = TRY(read_file(out_path));
  output.err = TRY(read_file(err_path));
  return output;
}

namespace {

Result<std::string> make_directory() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/espy.XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("cannot make a directory " + path, errno);
  return path;
}

void remove_directory(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<ScratchDirectory> ScratchDirectory::make() {
  return ScratchDirectory(TRY(Janitor::start(make_directory, remove_directory)));
}

ScratchDirectory::~ScratchDirectory() {
  if (!path().empty()) remove_directory(path());
}

std::vector<uint32_t> numbered_entries(const std::string& directory) {
  std::vector<uint32_t> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (const auto number = parse_int(it->path().filename().string())) out.push_back(static_cast<uint32_t>(*number));
  return out;
}

}  // namespace espy

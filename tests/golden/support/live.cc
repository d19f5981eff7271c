#include "golden/support/live.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/files.h"
#include "base/strings.h"
#include "golden/support/child.h"
#include "golden/support/live_case.h"

namespace espy::golden {

namespace {

constexpr uint32_t kCommandTimeoutMs = 30'000;  // of `needs:` and `check:`

using Environment = std::vector<std::pair<std::string, std::string>>;

// Of the time limits, where the machine is emulated.
uint32_t time_factor(const Places& places) { return places.is_emulated ? 4 : 1; }

// A temporary directory, removed with its content by the destructor.
class Scratch {
 public:
  Scratch() {
    if (::mkdtemp(path_) != nullptr) ::chmod(path_, 0755);  // some tests run as another user
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/espy-live.XXXXXX";
};

bool is_in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_in_name(text[at - 1])) && (end == text.size() || !is_in_name(text[end]))) return true;
  }
  return false;
}

// The test, and the scripts of `parts` that it calls.
std::string with_parts(const std::string& path, const std::string& text) {
  constexpr std::string_view kParts = "parts/";
  std::string out = text;
  for (size_t at = text.find(kParts); at != text.npos; at = text.find(kParts, at + 1)) {
    size_t end = at + kParts.size();
    while (end < text.size() && (is_in_name(text[end]) || text[end] == '.')) ++end;
    const std::string part = text.substr(at, end - at);
    out += read_file((std::filesystem::path(path).parent_path() / part).string()).value_or("");
  }
  return out;
}

// What $BIN names: a directory whose `programs` has a copy of each program that the test mentions, and links to the
// others. The kernel probes files, so a test that counts the calls of a program does not see those of other tests.
class OwnPrograms {
 public:
  OwnPrograms(const std::string& shared, const std::string& text) : path_(shared + "/own.XXXXXX") {
    namespace fs = std::filesystem;
    if (::mkdtemp(path_.data()) == nullptr) return;
    fs::permissions(path_, fs::perms(0755));
    std::error_code failed;
    fs::create_directory(path_ + "/programs", failed);
    for (const fs::directory_entry& entry : fs::directory_iterator(shared + "/programs", failed)) {
      const fs::path own = path_ / fs::path("programs") / entry.path().filename();
      if (has_word(text, entry.path().filename().string()) && entry.is_regular_file(failed))
        fs::copy_file(entry.path(), own, failed);
      else
        fs::create_symlink(entry.path(), own, failed);
    }
  }
  ~OwnPrograms() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnPrograms(const OwnPrograms&) = delete;
  OwnPrograms& operator=(const OwnPrograms&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool succeeds(const std::string& command, const Environment& environment, const Places& places) {
  const uint32_t timeout_ms = kCommandTimeoutMs * time_factor(places);
  return run_program({"/bin/sh", "-c", command}, "", environment, timeout_ms).status == 0;
}

std::string failed_checks(const LiveCase& c, const Environment& environment, const Places& places) {
  std::string out;
  for (const Demand& demand : c.demands)
    if (demand.key == "check" && !succeeds("(\n" + demand.text + "\n) <\"$OUT\"", environment, places))
      out += fmt::format("not met: check: {}\n", demand.text);
  return out;
}

}  // namespace

Judgement run_live_test(const std::string& path, const Places& places) {
  const auto text = read_file(path);
  if (!text) return {Verdict::kFailed, text.error().message};
  const auto c = parse_live_case(path, *text);
  if (!c) return {Verdict::kFailed, c.error().message};
  if (!places.no_live.empty()) return {Verdict::kSkipped, places.no_live};
  const Scratch scratch;
  const OwnPrograms programs(places.espy.substr(0, places.espy.rfind('/')) + "/tests/live", with_parts(path, *text));
  const std::string out_path = scratch.path() + "/out", err_path = scratch.path() + "/err";
  const Environment environment = {{"ESPY", places.espy},
                                   {"FILE", fmt::format("{}/{}", places.root, path)},
                                   {"BIN", programs.path()},
                                   {"SCRATCH", scratch.path()},
                                   {"TIME_FACTOR", fmt::format("{}", time_factor(places))},
                                   {"CCACHE_DISABLE", "1"},  // it gives .dwo files of other directories
                                   {"OUT", out_path},
                                   {"ERR", err_path}};
  if (!c->needs.empty() && !succeeds(c->needs, environment, places))
    return {Verdict::kSkipped, "this machine lacks: " + fmt::format("{}", fmt::join(split(c->needs, '\n'), "; "))};
  Outcome outcome =
      run_program({"/bin/bash", "-c", shell_program(*c)}, "", environment, c->timeout_ms * time_factor(places));
  outcome.out = read_file(out_path).value_or("");
  outcome.err = read_file(err_path).value_or("");
  const std::string trouble =
      outcome.timed_out ? "it did not end\n" : unmet_demands(*c, outcome) + failed_checks(*c, environment, places);
  if (trouble.empty()) return {};
  return {Verdict::kFailed, trouble + "stdout:\n" + outcome.out + "stderr:\n" + outcome.err};
}

}  // namespace espy::golden

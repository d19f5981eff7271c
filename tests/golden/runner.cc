// golden_runner: runs the tests that are scripts.
//
//   golden_runner --all               all of tests/golden, language, live and scripts, from the repository's root
//   golden_runner --simulated         tests/golden and tests/language on the simulator alone
//   golden_runner PATH...             files, or folders of them
//   golden_runner --emulated PATH...  in an emulator: live tests have four times their time limits
//   golden_runner --bless [PATH...]   rewrites the goldens' expectations with what comes out now
//
// Each golden runs in the simulator, and, where nothing has to be fired, again on this kernel through build/espy.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "golden/support/child.h"
#include "golden/support/execute.h"
#include "golden/support/live.h"
#include "load/machine.h"

namespace espy::golden {

namespace {

namespace fs = std::filesystem;

struct Totals {
  uint32_t passed = 0;
  uint32_t failed = 0;
  uint32_t skipped = 0;
};

void show(Totals& totals, const std::string& name, const Judgement& judgement) {
  switch (judgement.verdict) {
    case Verdict::kPassed: ++totals.passed; break;
    case Verdict::kSkipped:
      ++totals.skipped;
      fmt::print("SKIP {}: {}\n", name, judgement.text);
      break;
    case Verdict::kFailed:
      ++totals.failed;
      fmt::print("FAIL {}\n{}\n", name, judgement.text);
      break;
  }
  std::fflush(stdout);
}

// Scripts below a folder `parts` are imported by others.
bool is_part(const fs::path& path) { return std::ranges::find(path, "parts") != path.end(); }

std::vector<std::string> find_cases(const std::vector<std::string>& places) {
  std::vector<std::string> out;
  for (const std::string& place : places) {
    if (!fs::is_directory(place)) {
      out.push_back(place);
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(place))
      if (entry.path().extension() == ".bt" && !is_part(entry.path())) out.push_back(entry.path().string());
  }
  std::ranges::sort(out);
  return out;
}

std::string why_not_live() {
  if (::geteuid() != 0) return "the real kernel needs root";
  if (!load::open_linux()->try_feature(kernel::Feature::kBpfV3)) return "this kernel does not let us load BPF programs";
  return "";
}

void run_golden(const std::string& path, const Places& places, bool bless, Totals& totals) {
  if (path.find("tests/live/") != std::string::npos || path.find("tests/scripts/") != std::string::npos) {
    if (!bless) show(totals, path, run_live_test(path, places));
    return;
  }
  if (path.find("tests/language/") != std::string::npos) {
    show(totals, path, run_script_tests(path, places, false));
    if (!places.is_simulated) show(totals, path + " (live)", run_script_tests(path, places, true));
    return;
  }
  auto c = read_case(path);
  if (!c) return show(totals, path, {Verdict::kFailed, c.error().message});
  const Judgement judgement = run_simulated(*c, places, bless);
  show(totals, path, judgement);
  if (bless) {
    if (judgement.verdict == Verdict::kPassed) std::ofstream(path) << write_case(*c);
  } else if (c->runs_live() && !places.is_simulated) {
    show(totals, path + " (live)", run_live(*c, places));
  }
}

// The shell programs of live tests do not quote $ESPY and $BIN. Symbolic links give a directory whose path has other
// characters a plain path until the end.
class PlainPaths {
 public:
  ~PlainPaths() {
    std::error_code ignored;
    if (!links_.empty()) fs::remove_all(links_, ignored);
  }
  std::string of(const std::string& directory) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
    if (directory.find_first_not_of(kPlain) == directory.npos) return directory;
    if (links_.empty()) {
      char path[] = "/tmp/espy-paths.XXXXXX";
      if (::mkdtemp(path) == nullptr) return directory;
      links_ = path;
      fs::permissions(links_, fs::perms(0755));
    }
    const fs::path link = links_ / std::to_string(++count_);
    fs::create_symlink(directory, link);
    return link.string();
  }

 private:
  fs::path links_;
  int count_ = 0;
};

int run(const std::vector<std::string>& arguments) {
  std::signal(SIGHUP, SIG_DFL);  // nohup ignores it, and so would all programs here
  bool bless = false, all = false, is_simulated = false, is_emulated = false;
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (argument == "--bless") {
      bless = true;
    } else if (argument == "--all") {
      all = true;
    } else if (argument == "--simulated") {
      is_simulated = true;
    } else if (argument == "--emulated") {
      is_emulated = true;
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.empty()) paths = {"tests/golden"};
  if (all) paths = {"tests/golden", "tests/language", "tests/live", "tests/scripts"};
  if (is_simulated) paths = {"tests/golden", "tests/language"};
  Places places;
  PlainPaths plain;
  places.root = plain.of(fs::current_path().string());
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  places.espy = plain.of(fs::absolute(build).string()) + "/espy";
  places.is_simulated = is_simulated;
  places.is_emulated = is_emulated;
  places.no_live = fs::exists(places.espy) ? why_not_live() : "there is no " + places.espy;
  own_descendants();
  Totals totals;
  for (const std::string& path : find_cases(paths)) run_golden(path, places, bless, totals);
  end_descendants();
  fmt::print("{} passed, {} failed, {} skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace espy::golden

int main(int argc, char** argv) { return espy::golden::run({argv + 1, argv + argc}); }

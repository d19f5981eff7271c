// golden_runner: runs the tests that are scripts.
//
//   golden_runner --all               all of tests/golden, language, live and scripts, from the repository's root
//   golden_runner --simulated         tests/golden and tests/language on the simulator alone
//   golden_runner PLACE...            files, folders of them, or words: `maps` is each test with it in its path
//   golden_runner --list [PLACE...]   prints which tests these are
//   golden_runner --jobs N            how many run at once (default: as many as there are CPUs), those with an
//                                     `alone:` line one by one after the others
//   golden_runner --emulated PLACE... in an emulator: live tests have four times their time limits
//   golden_runner --bless [PLACE...]  rewrites the expectations of goldens with what comes out now
//
// Each golden runs in the simulator, and, if nothing has to be fired, again on this kernel through build/espy.
//
// What fails on this kernel beside other tests runs once more, alone, at the end. If it passes then, it counts as
// passed, and "passed when run alone:" names it.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files.h"
#include "golden/support/child.h"
#include "golden/support/execute.h"
#include "golden/support/live.h"
#include "golden/support/live_case.h"
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

constexpr const char* kFolders[] = {"tests/golden", "tests/language", "tests/live", "tests/scripts"};

// Scripts below a folder `parts` are imported by others.
bool is_part(const fs::path& path) { return std::ranges::find(path, "parts") != path.end(); }

void find_cases(const std::string& folder, std::vector<std::string>& out) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".bt" && !is_part(entry.path())) out.push_back(entry.path().string());
}

// The files of these places, sorted. A place that is neither a file nor a folder is a word in paths; one that is in
// none is taken for a file.
std::vector<std::string> find_cases(const std::vector<std::string>& places) {
  std::vector<std::string> out, all;
  for (const std::string& place : places) {
    if (fs::is_directory(place)) {
      find_cases(place, out);
      continue;
    }
    const size_t before = out.size();
    if (!fs::exists(place)) {
      if (all.empty())
        for (const char* folder : kFolders) find_cases(folder, all);
      std::ranges::copy_if(all, std::back_inserter(out),
                           [&](const auto& each) { return each.find(place) != each.npos; });
    }
    if (out.size() == before) out.push_back(place);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

constexpr size_t kShownBytes = 4000;                 // of a test that runs again
constexpr std::string_view kLiveSuffix = " (live)";  // of a test that runs in the simulator as well

bool is_live(const std::string& path) {
  return path.find("tests/live/") != path.npos || path.find("tests/scripts/") != path.npos;
}

// Whether others must not run beside it.
bool is_alone(const std::string& path) {
  if (!is_live(path)) return false;
  const auto text = read_file(path);
  const auto c = text ? parse_live_case(path, *text) : fail("");
  return c && !c->alone.empty();
}

std::string why_not_live() {
  if (::geteuid() != 0) return "the real kernel needs root";
  if (!load::open_linux()->try_feature(kernel::Feature::kBpfV3)) return "this kernel does not let us load BPF programs";
  return "";
}

using Show = std::function<void(const std::string& name, const Judgement& judgement)>;

void run_test(const std::string& path, const Places& places, bool bless, const Show& show) {
  if (is_live(path)) {
    if (!bless) show(path, run_live_test(path, places));
    return;
  }
  if (path.find("tests/language/") != path.npos) {
    show(path, run_script_tests(path, places, false));
    if (!places.is_simulated) show(path + std::string(kLiveSuffix), run_script_tests(path, places, true));
    return;
  }
  auto c = read_case(path);
  if (!c) return show(path, {Verdict::kFailed, c.error().message});
  const Judgement judgement = run_simulated(*c, places, bless);
  show(path, judgement);
  if (bless) {
    if (judgement.verdict == Verdict::kPassed) std::ofstream(path) << write_case(*c);
  } else if (c->runs_live() && !places.is_simulated) {
    show(path + std::string(kLiveSuffix), run_live(*c, places));
  }
}

// What a worker writes into its pipe for each judgement, before the name and the text.
struct Report {
  Verdict verdict;
  uint32_t name_bytes, text_bytes;
};

// A process that takes the next of the tests until there is none. It ends when this process does.
struct Worker {
  pid_t pid = 0;
  OwnedFd reports;
  std::string unread;
};

Worker start_worker(const std::vector<std::string>& tests, std::atomic<uint32_t>& next, const Places& places) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  OwnedFd reading(ends[0]), writing(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return {pid, std::move(reading), ""};
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  own_descendants();
  for (uint32_t i = next++; i < tests.size(); i = next++)
    run_test(tests[i], places, false, [&](const std::string& name, const Judgement& judgement) {
      const Report report = {judgement.verdict, static_cast<uint32_t>(name.size()),
                             static_cast<uint32_t>(judgement.text.size())};
      const std::string bytes =
          std::string(reinterpret_cast<const char*>(&report), sizeof(report)) + name + judgement.text;
      if (!write_all(writing.get(), bytes)) ::_exit(1);
    });
  end_descendants();
  ::_exit(0);
}

// Shows the whole reports of `unread`, and removes them.
void take_reports(std::string& unread, const Show& show) {
  Report report = {};
  while (unread.size() >= sizeof(report)) {
    unread.copy(reinterpret_cast<char*>(&report), sizeof(report));
    const size_t size = sizeof(report) + report.name_bytes + report.text_bytes;
    if (unread.size() < size) return;
    show(unread.substr(sizeof(report), report.name_bytes),
         {report.verdict, unread.substr(sizeof(report) + report.name_bytes, report.text_bytes)});
    unread.erase(0, size);
  }
}

void run_at_once(const std::vector<std::string>& tests, uint32_t jobs, const Places& places, const Show& show) {
  void* shared =
      ::mmap(nullptr, sizeof(std::atomic<uint32_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  auto* next = new (shared) std::atomic<uint32_t>(0);
  own_descendants();
  const OwnedFd end_signals = open_end_signals();
  std::vector<Worker> workers;
  while (workers.size() < std::min<size_t>(jobs, tests.size())) workers.push_back(start_worker(tests, *next, places));
  while (!workers.empty()) {
    std::vector<pollfd> waiting;
    for (const Worker& worker : workers) waiting.push_back({worker.reports.get(), POLLIN, 0});
    waiting.push_back({end_signals.get(), POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), -1);
    if (waiting.back().revents != 0) end_by(end_signals);
    for (size_t i = workers.size(); i-- > 0;) {
      if (waiting[i].revents == 0) continue;
      Worker& worker = workers[i];
      char bytes[1 << 16];
      const ssize_t size = ::read(worker.reports.get(), bytes, sizeof(bytes));
      if (size > 0) {
        worker.unread.append(bytes, static_cast<size_t>(size));
        take_reports(worker.unread, show);
        continue;
      }
      int status = 0;
      ::waitpid(worker.pid, &status, 0);
      if (status != 0) show("a process that runs tests", {Verdict::kFailed, fmt::format("it ended: {:#x}\n", status)});
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (*next < tests.size())
    show("golden_runner", {Verdict::kFailed, fmt::format("{} tests were not run\n", tests.size() - *next)});
  ::munmap(shared, sizeof(*next));
}

// The tests that failed beside others once more, one by one. `failed` has names as they were shown.
void run_again(const std::vector<std::string>& failed, const Places& places, const Show& show) {
  std::vector<std::string> paths, passed;
  for (const std::string& name : failed) paths.push_back(name.substr(0, name.rfind(kLiveSuffix)));
  run_at_once(paths, 1, places, [&](const std::string& name, const Judgement& judgement) {
    if (std::ranges::find(failed, name) == failed.end()) return;  // the simulator's half, which has been shown
    if (judgement.verdict == Verdict::kPassed) passed.push_back(name);
    show(name, judgement);
  });
  if (!passed.empty()) fmt::print("passed when run alone: {}\n", fmt::join(passed, ", "));
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
  bool bless = false, all = false, is_simulated = false, is_emulated = false, is_list = false;
  uint32_t jobs = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::string> paths;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--bless") {
      bless = true;
    } else if (argument == "--all") {
      all = true;
    } else if (argument == "--simulated") {
      is_simulated = true;
    } else if (argument == "--emulated") {
      is_emulated = true;
    } else if (argument == "--list") {
      is_list = true;
    } else if (argument == "--jobs" && i + 1 < arguments.size()) {
      const std::string& text = arguments[++i];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), jobs);
      if (error != std::errc() || end != text.data() + text.size() || jobs == 0) {
        fmt::print(stderr, "golden_runner: --jobs takes a number from 1 on, not `{}`\n", text);
        return 2;
      }
    } else if (argument.starts_with("-")) {
      fmt::print(stderr, "golden_runner: unknown option {}\n", argument);
      return 2;
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.empty()) paths = {"tests/golden"};
  if (all) paths = {std::begin(kFolders), std::end(kFolders)};
  if (is_simulated) paths = {"tests/golden", "tests/language"};
  const std::vector<std::string> tests = find_cases(paths);
  if (is_list) {
    for (const std::string& test : tests) fmt::print("{}\n", test);
    return 0;
  }
  Places places;
  PlainPaths plain;
  places.root = plain.of(fs::current_path().string());
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  places.espy = plain.of(fs::absolute(build).string()) + "/espy";
  places.is_simulated = is_simulated;
  places.is_emulated = is_emulated;
  places.no_live = fs::exists(places.espy) ? why_not_live() : "there is no " + places.espy;
  Totals totals;
  const Show add = [&](const std::string& name, const Judgement& judgement) { show(totals, name, judgement); };
  if (bless) {
    own_descendants();
    for (const std::string& path : tests) run_test(path, places, true, add);
    end_descendants();
  } else {
    std::vector<std::string> together, alone;
    for (const std::string& path : tests) (is_alone(path) ? alone : together).push_back(path);
    jobs = static_cast<uint32_t>(std::min<size_t>(jobs, together.size()));
    std::vector<std::string> failed;
    run_at_once(together, jobs, places, [&](const std::string& name, const Judgement& judgement) {
      const bool is_on_kernel = is_live(name) || name.ends_with(kLiveSuffix);
      if (jobs <= 1 || !is_on_kernel || judgement.verdict != Verdict::kFailed) return add(name, judgement);
      fmt::print("{} failed beside others, and will run again:\n{}\n", name, judgement.text.substr(0, kShownBytes));
      failed.push_back(name);
    });
    run_at_once(alone, 1, places, add);
    run_again(failed, places, add);
  }
  fmt::print("{} passed, {} failed, {} skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace espy::golden

int main(int argc, char** argv) { return espy::golden::run({argv + 1, argv + argc}); }

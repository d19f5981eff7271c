#include "golden/support/live.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
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

bool succeeds(const std::string& command, const Environment& environment, const Places& places) {
  const uint32_t timeout_ms = kCommandTimeoutMs * time_factor(places);
  return run_program({"/bin/sh", "-c", command}, "", environment, timeout_ms).status == 0;
}

std::string failed_checks(const LiveCase& c, const Environment& environment, const Places& places) {
  std::string out;
  for (const Demand& demand : c.demands)
    if (demand.key == "check" && !succeeds("( " + demand.text + " ) <\"$OUT\"", environment, places))
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
  const std::string out_path = scratch.path() + "/out", err_path = scratch.path() + "/err";
  const Environment environment = {{"ESPY", places.espy},
                                   {"FILE", fmt::format("{}/{}", places.root, path)},
                                   {"BIN", places.espy.substr(0, places.espy.rfind('/')) + "/tests/live"},
                                   {"SCRATCH", scratch.path()},
                                   {"TIME_FACTOR", fmt::format("{}", time_factor(places))},
                                   {"CCACHE_DISABLE", "1"},  // it gives .dwo files of other directories
                                   {"OUT", out_path},
                                   {"ERR", err_path}};
  if (!c->needs.empty() && !succeeds(c->needs, environment, places))
    return {Verdict::kSkipped, "this machine lacks: " + c->needs};
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

#include "golden/support/execute.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <regex>

#include "base/strings.h"
#include "cli/command.h"
#include "golden/support/child.h"
#include "golden/support/diff.h"
#include "golden/support/stage.h"

namespace espy::golden {

namespace {

constexpr uint32_t kTimeoutMs = 20'000;

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// ---- In the simulator -----------------------------------------------------------------------------------------------

Result<cli::Options> parse_arguments(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  return cli::parse_options(pointers);
}

// Makes the session play the case's events.
class Player {
 public:
  Player(const Case& c, Stage stage) : case_(c), stage_(stage) {}

  Result<bool> next() {
    while (line_ < case_.fires.size() && times_ == case_.fires[line_].count) {
      ++line_;
      times_ = 0;
    }
    if (line_ == case_.fires.size()) return false;
    ++times_;
    if (const Status done = stage_.fire(case_.fires[line_]); !done)
      return fail(fmt::format("fire: {}: {}", case_.fires[line_].text, done.error().message));
    return true;
  }

 private:
  const Case& case_;
  Stage stage_;
  size_t line_ = 0;
  uint32_t times_ = 0;
};

int simulate(const Case& c, const Places& places, const std::vector<std::string>& arguments) {
  const std::string recorded = fmt::format("{}/tests/kernels/{}", places.root, c.kernel);
  auto kernel = kernel::open_recorded_kernel(recorded);
  auto options = parse_arguments(arguments);
  if (!kernel || !options) {
    run::complain(kernel ? options.error() : kernel.error());
    return EXIT_FAILURE;
  }
  if (::chdir(directory_of(c.path).c_str()) != 0) return EXIT_FAILURE;
  for (const auto& [name, value] : c.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv("TZ", "UTC", 1);
  simulator::Simulator* simulated = nullptr;
  std::unique_ptr<Player> player;
  run::Host host;
  host.check_can_run = [](const run::RunOptions&) { return Status(); };
  host.open = [&](const run::RunOptions& o) -> Result<std::unique_ptr<run::Environment>> {
    auto machine = std::make_unique<simulator::Simulator>();
    simulated = machine.get();
    auto environment = run::make_environment(o, std::move(machine), std::move(*kernel));
    environment->after_pass = opt::verify_after_pass;
    environment->symbols = symbols::Symbolizer({.kernel_symbols = recorded + "/proc/kallsyms"});
    return environment;
  };
  host.prepare = [&](const program::Program& program, run::Environment& e, runtime::SessionOptions& session) {
    Stage stage(*simulated, program, *e.kernel, e.types);
    stage.set_task(simulated->world().task);
    player = std::make_unique<Player>(c, stage);
    session.replay.next_event = [&] { return player->next(); };
  };
  return options->command->run(*options, host);
}

// "Attached 3 probes" says nothing in a test whose probes are before one's eyes.
std::string without_attached(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n'))
    if (!(line.starts_with("Attached ") && (line.ends_with(" probe") || line.ends_with(" probes"))))
      out += fmt::format("{}\n", line);
  out.pop_back();
  return out;
}

// Whether a line quotes the script, underlines it, or is a hint.
bool is_below_diagnostic(std::string_view line) {
  const size_t at = line.find_first_not_of(" 0123456789");
  return line.starts_with(" ") && at != line.npos && (line[at] == '|' || line.substr(at).starts_with("hint: "));
}

// The beginning of a diagnostic: "FILE:LINE:COLUMN: error: TEXT [ID]"; also without a place, and notes without an id.
const std::regex kDiagnostic(R"((?:(.+):(\d+:\d+): )?(error|warning|note): .*?( \[[a-z][a-z0-9-]*\])?)");

// What `-d STAGE` printed, without its heading and the empty lines at the end.
std::string without_heading(const std::string& text) {
  std::string out = text.substr(std::min(text.find('\n') + 1, text.size()));
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

struct Got {
  std::string text;
  std::string problem;  // it ended in a way that no section can expect
};

std::string how_it_ended(const Outcome& outcome) {
  if (outcome.timed_out) return "it did not end";
  if (outcome.status >= 128) return fmt::format("it died of signal {}\n{}", outcome.status - 128, outcome.err);
  return "";
}

Got get_section(const Case& c, const Places& places, const std::string& name) {
  std::vector<std::string> arguments = c.arguments;
  if (name == "json") {
    arguments.insert(arguments.begin(), {"-f", "json"});
  } else {
    arguments.insert(arguments.begin(), {"-d", name});
  }
  const Outcome outcome = run_child([&] { return simulate(c, places, arguments); }, kTimeoutMs);
  std::string problem = how_it_ended(outcome);
  if (problem.empty() && name != "json" && outcome.status != 0) problem = outcome.err;
  return {name == "json" ? outcome.out : without_heading(outcome.out), problem};
}

class Judge {
 public:
  Judge(Case& c, const Places& places, bool bless) : case_(c), places_(places), bless_(bless) {}

  Judgement judge() {
    const Outcome main = run_child([&] { return simulate(case_, places_, case_.arguments); }, kTimeoutMs);
    complain(how_it_ended(main));
    err_ = without_attached(main.err);
    if (bless_) bless_main(main);
    if (bless_ && err_.empty()) std::erase_if(case_.sections, is_of_stderr);
    for (Section& section : case_.sections) compare(section, main);
    if (std::ranges::none_of(case_.sections, is_of_stderr) && !err_.empty()) complain("on stderr:\n" + err_);
    if (case_.find("stdout") == nullptr && case_.find("json") == nullptr && !main.out.empty())
      complain("on stdout:\n" + main.out);
    if (main.status != case_.exit_status && !main.timed_out && main.status < 128)
      complain(fmt::format("exit status {}, not {}\n", main.status, case_.exit_status));
    return {text_.empty() ? Verdict::kPassed : Verdict::kFailed, text_};
  }

 private:
  static bool is_of_stderr(const Section& section) { return section.name == "stderr" || section.name == "diagnostics"; }
  std::string file() const { return case_.path.substr(case_.path.rfind('/') + 1); }

  // A new file gets the sections that its run has something for; a section stays where it is wanted empty.
  void bless_main(const Outcome& main) {
    case_.exit_status = main.status;
    if (case_.find("stdout") == nullptr && case_.find("json") == nullptr && !main.out.empty())
      case_.sections.insert(case_.sections.begin(), {"stdout", ""});
    if (std::ranges::none_of(case_.sections, is_of_stderr) && !err_.empty())
      case_.sections.push_back({case_.path.find("/messages/") == std::string::npos ? "diagnostics" : "stderr", ""});
  }

  void compare(Section& section, const Outcome& main) {
    Got got;
    if (section.name == "stdout") {
      got.text = main.out;
    } else if (section.name == "stderr") {
      got.text = err_;
    } else if (section.name == "diagnostics") {
      got.text = without_texts(err_, file());
    } else {
      got = get_section(case_, places_, section.name);
    }
    complain(got.problem);
    if (bless_) section.text = got.text;  // kept only if it ended well
    if (got.text != section.text) complain(fmt::format("{}:\n{}", section.name, unified_diff(section.text, got.text)));
  }

  void complain(const std::string& text) { text_ += text; }

  Case& case_;
  const Places& places_;
  bool bless_;
  std::string err_;
  std::string text_;
};

}  // namespace

std::string without_texts(std::string_view err, std::string_view file) {
  std::string out;
  bool is_below = false;
  for (const std::string_view line : split(err, '\n')) {
    std::cmatch found;
    if (is_below && is_below_diagnostic(line)) continue;
    is_below = std::regex_match(line.data(), line.data() + line.size(), found, kDiagnostic);
    if (!is_below) {
      out += fmt::format("{}\n", line);
      continue;
    }
    if (found[1].matched && found[1].str() != file) out += found[1].str() + ":";
    if (found[2].matched) out += found[2].str() + " ";
    out += fmt::format("{}{}\n", found[3].str(), found[4].str());
  }
  if (!out.empty()) out.pop_back();
  return out;
}

Judgement run_simulated(Case& c, const Places& places, bool bless) { return Judge(c, places, bless).judge(); }

Judgement run_script_tests(const std::string& path, const Places& places, bool is_live) {
  if (is_live && !places.no_live.empty()) return {Verdict::kSkipped, places.no_live};
  Case c{.path = path, .arguments = {"--test", path.substr(path.rfind('/') + 1)}};
  Outcome outcome;
  if (is_live) {
    std::vector<std::string> argv = c.arguments;
    argv.insert(argv.begin(), places.espy);
    outcome = run_program(argv, directory_of(path), {{"TZ", "UTC"}}, kTimeoutMs);
  } else {
    outcome = run_child([&] { return simulate(c, places, c.arguments); }, kTimeoutMs);
  }
  const std::string problem = how_it_ended(outcome);
  if (problem.empty() && outcome.status == 0) return {};
  return {Verdict::kFailed, problem + outcome.out + outcome.err};
}

Judgement run_live(const Case& c, const Places& places) {
  if (!places.no_live.empty()) return {Verdict::kSkipped, places.no_live};
  std::vector<std::string> argv = {places.espy};
  argv.insert(argv.end(), c.arguments.begin(), c.arguments.end());
  std::vector<std::pair<std::string, std::string>> environment = c.environment;
  environment.emplace_back("TZ", "UTC");
  const Outcome outcome = run_program(argv, directory_of(c.path), environment, kTimeoutMs);
  std::string text = how_it_ended(outcome);
  const Section* expected = c.find("stdout");
  if (expected != nullptr && outcome.out != expected->text)
    text += fmt::format("stdout:\n{}", unified_diff(expected->text, outcome.out));
  if (outcome.status != c.exit_status) text += fmt::format("exit status {}, not {}\n", outcome.status, c.exit_status);
  if (!text.empty()) text += outcome.err;
  return {text.empty() ? Verdict::kPassed : Verdict::kFailed, text};
}

}  // namespace espy::golden

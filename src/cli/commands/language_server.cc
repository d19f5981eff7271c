// espy lsp: the language server, on standard input and output.
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "cli/command.h"
#include "cli/registry.h"
#include "kernel/snapshot.h"
#include "lsp/server.h"

namespace espy::cli {

namespace {

// The kernel that scripts are checked for: this machine's, or that of a snapshot.
class Workspace {
 public:
  explicit Workspace(const Options& options) : options_(options) {}

  Status use_kernel(const std::string& snapshot) {
    snapshot_.reset();
    if (!snapshot.empty()) snapshot_.emplace(TRY(kernel::Snapshot::of(snapshot)));
    return {};
  }

  // Without privileges features cannot be tried, and are taken to be there.
  Result<std::unique_ptr<Environment>> open() const {
    if (snapshot_) return make_environment(options_, load::open_linux(), TRY(snapshot_->kernel()));
    if (require_privileges()) return open_environment(options_);
    return make_environment(options_, load::open_linux(),
                            TRY(kernel::open_kernel("/", {[](kernel::Feature) { return true; }})));
  }

  Result<std::unique_ptr<lsp::Analysis>> analyze(const std::string& name, const std::string& text) const {
    const std::shared_ptr<Environment> e = TRY(open());
    const source::SourceId script = e->sources.add(name, text);
    check::CheckRequest request = e->check_request();
    request.is_listing = true;
    syntax::Ast ast = parse_script(script, request);
    check::Checked checked = check::check(std::move(ast), request);
    return std::make_unique<lsp::Analysis>(
        lsp::Analysis{e->registry, *e->kernel, e->types, e->sources, e->diagnostics, script, std::move(checked), e});
  }

  std::vector<std::string> list(const spec::Provider& provider, const std::vector<std::string>& parts) const {
    const auto e = open();
    if (!e) return {};
    spec::ListRequest request{parts, false, *(*e)->kernel, (*e)->types, &(*e)->symbols, (*e)->config};
    std::vector<std::string> out;
    for (spec::ListedProbe& probe : provider.list(request)) out.push_back(std::move(probe.name));
    return out;
  }

 private:
  const Options& options_;
  std::optional<kernel::Snapshot> snapshot_;
};

int serve_language(const Options& options, const Host&) {
  Workspace workspace(options);
  const spec::Registry registry = make_registry();
  const lsp::Services services{
      [&](const std::string& name, const std::string& text) { return workspace.analyze(name, text); },
      [&](const spec::Provider& provider, const std::vector<std::string>& parts) {
        return workspace.list(provider, parts);
      },
      [&](const std::string& snapshot) { return workspace.use_kernel(snapshot); }, registry, ESPY_VERSION};
  lsp::Connection connection(STDIN_FILENO, STDOUT_FILENO);
  const auto status = lsp::Server(services, connection).run();
  return status ? *status : complain(status.error());
}

constexpr std::string_view kUsage[] = {"lsp"};
constexpr Example kExamples[] = {{"espy lsp", "the language server for editors, on standard input and output"}};

}  // namespace

extern const Command kLanguageServer = {
    .word = "lsp",
    .operands = Operands::kNone,
    .usage = kUsage,
    .examples = kExamples,
    .run = serve_language,
};

}  // namespace espy::cli

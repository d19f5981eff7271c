// What an editor sends: messages, and scripts with a place in them.
#include <fcntl.h>

#include "../reader.h"
#include "base/files.h"
#include "lsp/names.h"
#include "lsp/server.h"

namespace espy::fuzz {

namespace {

constexpr size_t kMaxPlaces = 4;  // the text is read up to each, twice

// Without probes and kernel: no script can be checked.
lsp::Services services(const spec::Registry& registry) {
  return {[](const std::string&, const std::string&) -> Result<std::unique_ptr<lsp::Analysis>> { return fail("none"); },
          [](const spec::Provider&, const std::vector<std::string>&) { return std::vector<std::string>(); },
          [](const std::string&) { return Status(); }, registry, "0"};
}

void serve(std::string_view bytes) {
  const MemoryFile input(bytes);
  const OwnedFd in(::open(input.path().c_str(), O_RDONLY | O_CLOEXEC));
  const OwnedFd out(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const spec::Registry registry({}, {});
  const lsp::Services none = services(registry);
  lsp::Connection connection(in.get(), out.get());
  if (const auto status = lsp::Server(none, connection).run(); !status) use(status.error().message);
}

}  // namespace

void run_lsp(std::string_view bytes) {
  serve(bytes);
  // The same as the only message, and as a script that is being written.
  serve("Content-Length: " + std::to_string(bytes.size()) + "\r\n\r\n" + std::string(bytes));
  const lsp::Text text{std::string(bytes)};
  const size_t step = bytes.size() / kMaxPlaces + 1;
  for (size_t at = 0; at <= bytes.size(); at += step) {
    const auto offset = static_cast<uint32_t>(at);
    use(bytes.substr(lsp::place_of(bytes, offset).begin));
    if (const auto call = lsp::open_call(bytes, offset)) use(call->name);
    use(bytes.substr(text.offset(text.position(offset))));
  }
}

}  // namespace espy::fuzz

#include "run/attach_words.h"

#include <utility>

namespace espy::run {

size_t find_unquoted(std::string_view text, char wanted, size_t from) {
  bool is_quoted = false;
  for (size_t i = from; i < text.size(); ++i) {
    if (is_quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && text[i] == wanted) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::vector<std::string> split_unquoted(std::string_view text, char separator) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t at = find_unquoted(text, separator); at != text.npos; at = find_unquoted(text, separator, begin)) {
    out.emplace_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  out.emplace_back(text.substr(begin));
  return out;
}

std::vector<std::string> split_attach_point(std::string_view text) {
  std::vector<std::string> out = split_unquoted(text, ':');
  for (std::string& part : out) {
    std::string plain;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '"') continue;
      if (part[i] == '\\' && i + 1 < part.size() && part[i + 1] == '"') ++i;
      plain += part[i];
    }
    part = std::move(plain);
  }
  return out;
}

std::vector<spec::BoundProbe> bind_probes(Environment& environment, const spec::Config& config,
                                          const spec::Provider& provider, const std::vector<std::string>& parts,
                                          spec::Uses uses, source::Diagnostics& diagnostics) {
  uses.context = true;
  const syntax::AttachPoint point;
  spec::BindRequest request{.point = point,
                            .parts = parts,
                            .kernel = *environment.kernel,
                            .types = environment.types,
                            .symbols = &environment.symbols,
                            .config = config,
                            .diagnostics = diagnostics,
                            .missing = diagnostics,
                            .uses = uses,
                            .provider = &provider};
  return provider.bind(request);
}

bool is_about_returns(const source::Diagnostic& diagnostic) {
  return diagnostic.id == "returns-not-seen" || diagnostic.id == "stops-exceptions";
}

spec::ProbeContext context_of(Environment& environment, const spec::Provider& provider, const spec::BoundProbe& bound,
                              spec::Uses uses) {
  spec::ContextRequest request{.probes = std::span(&bound.probe, 1),
                               .share = bound.share,
                               .kernel = *environment.kernel,
                               .types = environment.types,
                               .symbols = &environment.symbols,
                               .uses = uses,
                               .provider = &provider};
  return provider.context(request);
}

}  // namespace espy::run

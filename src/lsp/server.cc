#include "lsp/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/files.h"
#include "base/strings.h"
#include "lsp/hover.h"
#include "lsp/names.h"
#include "syntax/format_script.h"
#include "syntax/parser.h"

namespace espy::lsp {

namespace {

constexpr size_t kMostHeaderBytes = 4000;
constexpr std::string_view kEndOfHeader = "\r\n\r\n";

// The number behind "Content-Length:"; nullopt if there is none.
std::optional<uint64_t> content_length(std::string_view header) {
  for (const std::string_view line : split(header, '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos || to_lower(trim(line.substr(0, colon))) != "content-length") continue;
    std::string_view value = trim(line.substr(colon + 1));
    const auto length = take_number(value, 10);
    if (length && value.empty()) return length;
  }
  return std::nullopt;
}

}  // namespace

bool Connection::has_input() const {
  if (!buffer_.empty()) return true;
  pollfd input = {in_, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0;
}

Result<bool> Connection::fill() {
  char bytes[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(in_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("cannot read from the editor", errno);
    buffer_.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }
}

Result<std::optional<size_t>> Connection::take_header() {
  const size_t end = buffer_.find(kEndOfHeader);
  if (end == buffer_.npos) {
    if (buffer_.size() <= kMostHeaderBytes) return std::nullopt;
    return fail("the input is not of the Language Server Protocol", EPROTO, "`espy lsp` is started by editors");
  }
  const auto length = content_length(std::string_view(buffer_).substr(0, end));
  if (!length) return fail("a message has no Content-Length", EPROTO, "`espy lsp` is started by editors");
  if (*length > kMostBytes) return fail(fmt::format("a message has {} bytes; {} is the limit", *length, kMostBytes));
  buffer_.erase(0, end + kEndOfHeader.size());
  return static_cast<size_t>(*length);
}

Result<std::optional<std::string>> Connection::read() {
  std::optional<size_t> length = TRY(take_header());
  while (!length) {
    if (!TRY(fill())) return std::nullopt;
    length = TRY(take_header());
  }
  while (buffer_.size() < *length)
    if (!TRY(fill())) return fail("the input ends within a message", EPROTO);
  std::string body = buffer_.substr(0, *length);
  buffer_.erase(0, *length);
  return body;
}

Status Connection::write(const std::string& body) {
  return write_all(out_, fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body));
}

namespace {

// The place in the script: that of a macro's call, of the import that leads to it, or its begin.
source::Span place_in_script(const Analysis& analysis, source::Span span) {
  while (span.valid() && span.expansion.valid()) span = analysis.sources[span.expansion].call;
  while (span.valid() && span.source != analysis.script) span = analysis.sources[span.source].imported_at;
  return span.valid() ? span : source::Span{analysis.script, 0, 0};
}

Json diagnostic(const Document& document, const source::Diagnostic& each) {
  const Analysis& analysis = *document.analysis;
  const source::Span place = place_in_script(analysis, each.span);
  std::string message = each.message;
  if (each.span.valid() && each.span.source != analysis.script) {
    const source::LineColumn at = analysis.sources.line_column(each.span.source, each.span.begin);
    message = fmt::format("{}:{}: {}", analysis.sources[each.span.source].name, at.line, message);
  }
  if (!each.hint.empty()) message += "\n" + each.hint;
  return {{"range", range_of(document.text, place.begin, place.end)},
          {"severity", each.severity == source::Severity::kError     ? 1
                       : each.severity == source::Severity::kWarning ? 2
                                                                     : 3},
          {"source", "espy"},
          {"code", std::string(each.id)},
          {"message", message}};
}

// X of "did you mean `X`?".
std::string proposal(std::string_view message) {
  constexpr std::string_view kQuestion = "did you mean `";
  const size_t begin = message.find(kQuestion);
  if (begin == message.npos) return "";
  const std::string_view rest = message.substr(begin + kQuestion.size());
  const size_t end = rest.find('`');
  return end == rest.npos ? "" : std::string(rest.substr(0, end));
}

}  // namespace

Json diagnostics(const Document& document) {
  Json out = Json::array();
  if (!document.analysis) return out;
  for (const source::Diagnostic& each : document.analysis->diagnostics.all()) out.push_back(diagnostic(document, each));
  return out;
}

Json code_actions(const Document& document, const Json& diagnostics) {
  Json out = Json::array();
  if (!diagnostics.is_array()) return out;
  for (const Json& each : diagnostics) {
    const std::string wanted = proposal(text_of(at(each, {"message"})));
    const Position start = position_of(at(each, {"range", "start"}));
    const Position end = position_of(at(each, {"range", "end"}));
    if (wanted.empty() || start == end) continue;
    const Json edit = {{"range", {{"start", json_of(start)}, {"end", json_of(end)}}}, {"newText", wanted}};
    out.push_back({{"title", fmt::format("Replace by `{}`", wanted)},
                   {"kind", "quickfix"},
                   {"isPreferred", true},
                   {"diagnostics", Json::array({each})},
                   {"edit", {{"changes", {{document.uri, Json::array({edit})}}}}}});
  }
  return out;
}

namespace {

// Error codes of JSON-RPC and of the protocol.
constexpr int kParseError = -32700;
constexpr int kMethodNotFound = -32601;
constexpr int kRequestFailed = -32803;

constexpr size_t kMostDocuments = 1000;

Json error_of(int code, const std::string& message) { return {{"code", code}, {"message", message}}; }

Json capabilities() {
  return {{"positionEncoding", "utf-16"},
          {"textDocumentSync", {{"openClose", true}, {"change", 1}}},  // 1: the whole text
          {"completionProvider", {{"triggerCharacters", {":", ".", ">", "@", "$", "/"}}}},
          {"hoverProvider", true},
          {"signatureHelpProvider", {{"triggerCharacters", {"(", ","}}}},
          {"definitionProvider", true},
          {"referencesProvider", true},
          {"renameProvider", true},
          {"documentFormattingProvider", true},
          {"documentSymbolProvider", true},
          {"inlayHintProvider", true},
          {"codeActionProvider", {{"codeActionKinds", {"quickfix"}}}}};
}

}  // namespace

const Server::Method* Server::find_method(const std::string& name) {
  static constexpr Method kMethods[] = {
      {"initialize", &Server::initialize},
      {"shutdown", &Server::shut_down},
      {"textDocument/completion", &Server::complete},
      {"textDocument/hover", &Server::hover},
      {"textDocument/signatureHelp", &Server::help_with_signature},
      {"textDocument/definition", &Server::find_definition},
      {"textDocument/references", &Server::find_references},
      {"textDocument/rename", &Server::rename},
      {"textDocument/formatting", &Server::format},
      {"textDocument/documentSymbol", &Server::list_symbols},
      {"textDocument/inlayHint", &Server::list_hints},
      {"textDocument/codeAction", &Server::list_actions},
      {"espy/typeDocument", &Server::read_type},
  };
  const auto* found = std::ranges::find_if(kMethods, [&](const Method& each) { return name == each.name; });
  return found == std::end(kMethods) ? nullptr : found;
}

Result<int> Server::run() {
  while (!is_ended_) {
    if (!connection_.has_input()) TRY_STATUS(publish_changes());
    while (!documents_.empty() && !connection_.has_input() && probes_.list_ahead()) {
    }
    const std::optional<std::string> body = TRY(connection_.read());
    if (!body) break;
    TRY_STATUS(handle(*body));
  }
  return is_shut_down_ ? EXIT_SUCCESS : EXIT_FAILURE;
}

Status Server::send(Json message) {
  message["jsonrpc"] = "2.0";
  // Names of traced programs may be of any bytes.
  return connection_.write(message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Status Server::show_error(const Error& error) {
  const std::string text = error.hint.empty() ? error.message : error.message + ": " + error.hint;
  return send({{"method", "window/showMessage"}, {"params", {{"type", 1}, {"message", "espy: " + text}}}});
}

Status Server::handle(const std::string& body) {
  const Json message = Json::parse(body, nullptr, false);
  if (message.is_discarded()) return send({{"id", nullptr}, {"error", error_of(kParseError, "this is not JSON")}});
  const std::string name = text_of(at(message, {"method"}));
  const Json& id = at(message, {"id"});
  if (name.empty()) return {};  // a response; no request of ours asks for one
  if (id.is_null()) return notice(name, at(message, {"params"}));
  const Method* method = find_method(name);
  if (!method) return send({{"id", id}, {"error", error_of(kMethodNotFound, "espy has no method " + name)}});
  const Answer answer = (this->*method->answer)(at(message, {"params"}));
  if (!answer) return send({{"id", id}, {"error", error_of(kRequestFailed, answer.error().message)}});
  return send({{"id", id}, {"result", *answer}});
}

Status Server::notice(const std::string& method, const Json& params) {
  const std::string uri = text_of(at(params, {"textDocument", "uri"}));
  if (method == "exit") {
    is_ended_ = true;
  } else if (method == "textDocument/didOpen") {
    if (documents_.size() >= kMostDocuments) return show_error({"too many documents are open"});
    documents_[uri] = {uri, path_of(uri), Text(text_of(at(params, {"textDocument", "text"})))};
  } else if (method == "textDocument/didChange") {
    const auto found = documents_.find(uri);
    const Json& changes = at(params, {"contentChanges"});
    if (found == documents_.end() || !changes.is_array() || changes.empty()) return {};
    found->second.text = Text(text_of(at(changes.back(), {"text"})));
    found->second.is_checked = false;
  } else if (method == "textDocument/didClose") {
    if (documents_.erase(uri) > 0)
      return send(
          {{"method", "textDocument/publishDiagnostics"}, {"params", {{"uri", uri}, {"diagnostics", Json::array()}}}});
  } else if (method == "workspace/didChangeConfiguration") {
    return set_options(at(params, {"settings", "espy"}));
  }
  return {};
}

void Server::check(Document& document) {
  document.is_checked = true;
  auto analysis = services_.analyze(document.path, document.text.bytes());
  document.analysis = analysis ? std::move(*analysis) : nullptr;
}

Document* Server::document(const Json& params) {
  const auto found = documents_.find(text_of(at(params, {"textDocument", "uri"})));
  if (found == documents_.end()) return nullptr;
  if (!found->second.is_checked) found->second.is_unpublished = true, check(found->second);
  return &found->second;
}

Status Server::publish_changes() {
  for (auto& [uri, document] : documents_) {
    if (document.is_checked && !document.is_unpublished) continue;
    if (!document.is_checked) check(document);
    document.is_unpublished = false;
    TRY_STATUS(send({{"method", "textDocument/publishDiagnostics"},
                     {"params", {{"uri", uri}, {"diagnostics", diagnostics(document)}}}}));
  }
  return {};
}

Status Server::set_options(const Json& options) {
  if (!options.is_object()) return {};
  if (const Status used = services_.use_kernel(text_of(at(options, {"kernel"}))); !used)
    return show_error(used.error());
  probes_.clear();
  for (auto& [uri, document] : documents_) document.is_checked = false;
  return {};
}

Server::Answer Server::initialize(const Json& params) {
  TRY_STATUS(set_options(at(params, {"initializationOptions"})));
  return Json{{"capabilities", capabilities()}, {"serverInfo", {{"name", "espy"}, {"version", services_.version}}}};
}

Server::Answer Server::shut_down(const Json&) {
  is_shut_down_ = true;
  return Json();
}

Server::Answer Server::complete(const Json& params) {
  const Document* script = document(params);
  if (!script) return Json();
  return lsp::complete(services_, probes_, *script, script->text.offset(position_of(at(params, {"position"}))));
}

Server::Answer Server::hover(const Json& params) {
  const Document* script = document(params);
  if (!script) return Json();
  return lsp::hover(services_, *script, script->text.offset(position_of(at(params, {"position"}))));
}

Server::Answer Server::help_with_signature(const Json& params) {
  const Document* script = document(params);
  if (!script) return Json();
  return signature_help(services_, *script, script->text.offset(position_of(at(params, {"position"}))));
}

Server::Answer Server::find_definition(const Json& params) {
  const Document* script = document(params);
  if (!script) return Json();
  return definition(*script, script->text.offset(position_of(at(params, {"position"}))));
}

Server::Answer Server::find_references(const Json& params) {
  const Document* script = document(params);
  if (!script) return Json();
  return references(*script, script->text.offset(position_of(at(params, {"position"}))));
}

Server::Answer Server::rename(const Json& params) {
  const Document* script = document(params);
  if (!script) return fail("the document is not open");
  const uint32_t offset = script->text.offset(position_of(at(params, {"position"})));
  return lsp::rename(*script, offset, text_of(at(params, {"newName"})));
}

Server::Answer Server::format(const Json& params) {
  const Document* script = document(params);
  if (!script) return Json();
  source::Sources sources;
  source::Diagnostics problems;
  const source::SourceId source = sources.add(script->path, script->text.bytes());
  const syntax::Ast ast = syntax::parse(sources, source, problems);
  // As --fmt: headers are not read, so a length that they define is unknown.
  const bool is_wrong = std::ranges::any_of(problems.all(), [](const source::Diagnostic& each) {
    return each.severity == source::Severity::kError && each.id != "not-a-constant";
  });
  if (is_wrong) return fail("the script has errors, and cannot be formatted");
  const auto end = static_cast<uint32_t>(script->text.bytes().size());
  return Json::array({{{"range", range_of(script->text, 0, end)}, {"newText", syntax::format(ast, sources, source)}}});
}

Server::Answer Server::list_symbols(const Json& params) {
  const Document* script = document(params);
  return script ? symbols(*script) : Json();
}

Server::Answer Server::list_hints(const Json& params) {
  const Document* script = document(params);
  return script ? inlay_hints(*script) : Json();
}

Server::Answer Server::list_actions(const Json& params) {
  const Document* script = document(params);
  return script ? code_actions(*script, at(params, {"context", "diagnostics"})) : Json();
}

Server::Answer Server::read_type(const Json& params) {
  auto analysis = services_.analyze("", "begin { }");
  if (!analysis) return tl::unexpected<Error>(analysis.error());
  return Json{{"text", type_document(**analysis, text_of(at(params, {"uri"})))}};
}

}  // namespace espy::lsp

// lsp: the language server: what editors show of scripts while they are written.
//
// Takes requests of the Language Server Protocol 3.17 on standard input; gives diagnostics, completions and the like.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "lsp/document.h"
#include "lsp/names.h"

namespace espy::lsp {

// ---- The base protocol of the Language Server Protocol: messages of JSON, each after a header with its length.

class Connection {
 public:
  // Reads from `in`, writes to `out`; closes neither.
  Connection(int in, int out) : in_(in), out_(out) {}

  // Waits for a message and returns its body; nullopt at the end of the input. Fails if the input is not of the
  // protocol, or a message is longer than kMostBytes.
  Result<std::optional<std::string>> read();
  // True if a part of another message is there already.
  bool has_input() const;
  Status write(const std::string& body);

  static constexpr size_t kMostBytes = size_t{16} << 20;

 private:
  // Appends what the input has, at least a byte. False at its end.
  Result<bool> fill();
  // The length that the header gives; nullopt if the header is not complete yet.
  Result<std::optional<size_t>> take_header();

  int in_;
  int out_;
  std::string buffer_;
};

// ---- Diagnostics, and the corrections that their hints propose.

// Returns the Diagnostics of the document. Errors in an imported file are shown at the import.
Json diagnostics(const Document& document);
// Returns the CodeActions for diagnostics that the editor has: `did you mean X?` replaces the underlined text by X.
Json code_actions(const Document& document, const Json& diagnostics);

// ---- The language server: what editors show of scripts while they are written, by the Language Server Protocol 3.17.
//
// One thread answers the messages of one editor in their order. Texts are checked as a run would check them, with the
// same diagnostics; nothing is loaded. A check has its own types and kernel, so that nothing of an earlier text stays.
// Diagnostics are sent when no further message waits, so that fast typing costs one check.

class Server {
 public:
  Server(const Services& services, Connection& connection)
      : services_(services), connection_(connection), probes_(services) {}

  // Serves until the editor sends `exit` or ends. Returns the exit status: 0 if it sent `shutdown` before.
  Result<int> run();

 private:
  using Answer = Result<Json>;
  struct Method {
    const char* name;
    Answer (Server::*answer)(const Json& params);
  };
  static const Method* find_method(const std::string& name);

  Status handle(const std::string& body);
  Status notice(const std::string& method, const Json& params);
  Status send(Json message);
  Status show_error(const Error& error);

  Answer initialize(const Json& params);
  Answer shut_down(const Json& params);
  Answer complete(const Json& params);
  Answer hover(const Json& params);
  Answer help_with_signature(const Json& params);
  Answer find_definition(const Json& params);
  Answer find_references(const Json& params);
  Answer rename(const Json& params);
  Answer format(const Json& params);
  Answer list_symbols(const Json& params);
  Answer list_hints(const Json& params);
  Answer list_actions(const Json& params);
  Answer read_type(const Json& params);

  // The document of `textDocument`, checked; null if the editor has not opened it.
  Document* document(const Json& params);
  void check(Document& document);
  Status publish_changes();
  Status set_options(const Json& options);

  const Services& services_;
  Connection& connection_;
  ProbeNames probes_;
  std::map<std::string, Document> documents_;  // by URI
  bool is_shut_down_ = false;
  bool is_ended_ = false;
};

}  // namespace espy::lsp

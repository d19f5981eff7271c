// The language server: what editors show of scripts while they are written, by the Language Server Protocol 3.17.
//
// One thread answers the messages of one editor in their order. Texts are checked as a run would check them, with the
// same diagnostics; nothing is loaded. A check has its own types and kernel, so that nothing of an earlier text stays.
// Diagnostics are sent when no further message waits, so that fast typing costs one check.
#pragma once

#include <map>
#include <string>

#include "lsp/connection.h"
#include "lsp/document.h"
#include "lsp/json.h"
#include "lsp/probe_names.h"

namespace espy::lsp {

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

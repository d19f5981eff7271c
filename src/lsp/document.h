// A document that the editor has open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lsp/analysis.h"
#include "lsp/text.h"

namespace espy::lsp {

struct Document {
  std::string uri;
  std::string path;  // of `uri`; the URI itself if it is no file's
  Text text{""};
  int64_t version = 0;
  bool is_checked = false;                       // whether `analysis` is of this text
  bool is_unpublished = false;                   // whether the editor lacks its diagnostics
  std::unique_ptr<Analysis> analysis = nullptr;  // null if it could not be checked
};

// "file:///a%20b.bt" is "/a b.bt"; other URIs are returned as they are.
std::string path_of(std::string_view uri);
std::string uri_of(std::string_view path);

}  // namespace espy::lsp

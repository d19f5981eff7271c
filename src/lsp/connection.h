// The base protocol of the Language Server Protocol: messages of JSON, each behind a header with its length.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace espy::lsp {

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

}  // namespace espy::lsp

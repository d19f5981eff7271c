#include "lsp/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/strings.h"

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

}  // namespace espy::lsp

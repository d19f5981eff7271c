#include "runtime/capture.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace espy::runtime {

Capture::Capture(OwnedFd file, const output::TextStyle& style)
    : file_(std::move(file)),
      writer_(file_.get(), output::Buffering::kFull),
      inner_(output::find_sink("text")->create(writer_, style, true)) {}

Result<std::unique_ptr<Capture>> Capture::make(const output::TextStyle& style) {
  OwnedFd file(::memfd_create("espy-test", MFD_CLOEXEC));
  if (!file.valid()) return fail_errno("cannot keep the output of tests", errno);
  return std::unique_ptr<Capture>(new Capture(std::move(file), style));
}

std::string Capture::take() {
  writer_.flush();
  const off_t size = ::lseek(file_.get(), 0, SEEK_CUR);
  std::string out(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  const ssize_t got = ::pread(file_.get(), out.data(), out.size(), 0);
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  ::lseek(file_.get(), 0, SEEK_SET);
  return out;
}

void Capture::message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line,
                      uint32_t column, uint32_t end_column) {
  const bool is_error = kind == "errorf" || kind == "runtime_error";
  has_failed_ |= is_error;
  const std::string place = file.empty() ? "" : fmt::format("{}:{}:{}-{}: ", file, line, column, end_column);
  writer_.write(
      fmt::format("{}{}: {}{}", place, is_error ? "ERROR" : "WARNING", text, text.ends_with('\n') ? "" : "\n"));
}

void Capture::helper_error(const output::HelperError& error) {
  writer_.write(fmt::format("{}:{}:{}-{}: WARNING: {} ({}: {})\n", error.file, error.line, error.column,
                            error.end_column, error.message, error.helper, error.code));
}

}  // namespace espy::runtime

// The output formats, a line each: the row that the format's file defines. The first one is the default.
#include <fmt/format.h>

#include "output/sink.h"

namespace espy::output {

#define FOR_EACH_SINK(row)                                                                                            \
  row(kTextSink) row(kJsonSink) row(kTraceSink) row(kFoldedSink) row(kFlameSink) row(kPprofSink) row(kSpeedscopeSink) \
      row(kOtlpSink)

#define DECLARE_ROW(row) extern const SinkRow row;
FOR_EACH_SINK(DECLARE_ROW)
#undef DECLARE_ROW

const std::vector<SinkRow>& sinks() {
#define LIST_ROW(row) row,
  static const std::vector<SinkRow> rows = {FOR_EACH_SINK(LIST_ROW)};
#undef LIST_ROW
  return rows;
}

const SinkRow* find_sink(std::string_view name) {
  for (const SinkRow& row : sinks())
    if (row.name == name) return &row;
  return nullptr;
}

std::string sinks_doc() {
  std::string out;
  for (const SinkRow& row : sinks())
    out += fmt::format("{}{}{}: {}", out.empty() ? "" : "; ", row.name, out.empty() ? " (default)" : "", row.doc);
  return out;
}

}  // namespace espy::output

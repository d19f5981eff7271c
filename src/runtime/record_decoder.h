// RecordDecoder: the fields of drained records as values and as formatted text.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "load/machine.h"
#include "output/decode.h"
#include "output/format.h"
#include "program/program.h"
#include "runtime/resolver.h"
#include "runtime/unwound_stacks.h"
#include "spec/config.h"
#include "symbols/symbols.h"

namespace espy::runtime {

// How values are shown, by the configuration.
output::TextStyle text_style(const spec::Config& config);

class RecordDecoder {
 public:
  // The arguments must outlive the decoder.
  RecordDecoder(load::Machine& machine, const program::Program& program, const types::Types& types,
                symbols::Symbolizer& symbols, const UnwoundStacks& unwound_stacks, const spec::Config& config,
                StackDetail detail);
  RecordDecoder(const RecordDecoder&) = delete;
  RecordDecoder& operator=(const RecordDecoder&) = delete;

  // Refers to the decoder.
  output::DecodeContext context();

  output::Value value(const program::EventField& field, std::span<const std::byte> record);
  // The value of an integer field of up to 8 bytes, sign-extended by its type.
  int64_t integer(const program::EventField& field, std::span<const std::byte> record) const;
  // The fields from `first_field` on by the schema's literal, a valid format; good until the next call.
  const std::string& format(const program::EventSchema& schema, std::span<const std::byte> record, size_t literal_index,
                            size_t first_field);

  // The strings that max_strlen truncated, of records and of maps, since the start.
  const output::TruncatedStrings& truncated_strings() const { return truncated_strings_; }

 private:
  const output::Formatter& formatter(const program::EventSchema& schema, size_t literal_index);

  const program::Program& program_;
  const types::Types& types_;
  output::Resolver resolver_;
  output::TextStyle style_;
  bool shows_addresses_;
  output::TruncatedStrings truncated_strings_;
  std::vector<std::map<size_t, output::Formatter>> formatters_;  // by EventId, then by literal
  std::string text_;                                             // of the last `format`
};

}  // namespace espy::runtime

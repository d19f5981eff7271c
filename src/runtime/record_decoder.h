// RecordDecoder: the fields of drained records as values and as formatted text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
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

// What formatted text is for: to be used, such as the path of a file, or to be shown as output or as a message.
enum class TextUse : uint8_t { kData, kOutput, kMessage };

// What goes to a terminal, of the formats whose text is lines.
struct TerminalText {
  bool is_output = false;
  bool is_messages = false;
  std::shared_ptr<const std::set<std::string>> own_texts = {};  // see output::TextStyle
};

class RecordDecoder {
 public:
  // The arguments must outlive the decoder.
  RecordDecoder(load::Machine& machine, const program::Program& program, const types::Types& types,
                symbols::Symbolizer& symbols, const UnwoundStacks& unwound_stacks, const spec::Config& config,
                StackDetail detail);
  RecordDecoder(const RecordDecoder&) = delete;
  RecordDecoder& operator=(const RecordDecoder&) = delete;

  void show_on(const TerminalText& terminal);
  const output::TextStyle& style(TextUse use) const { return styles_[static_cast<size_t>(use)]; }
  // Refers to the decoder.
  output::DecodeContext context();

  output::Value value(const program::EventField& field, std::span<const std::byte> record);
  // The value of an integer field of up to 8 bytes, sign-extended by its type.
  int64_t integer(const program::EventField& field, std::span<const std::byte> record) const;
  // The fields from `first_field` on by the schema's literal, a valid format; good until the next call.
  const std::string& format(const program::EventSchema& schema, std::span<const std::byte> record, size_t literal_index,
                            size_t first_field, TextUse use = TextUse::kData);

  // The strings that max_strlen truncated, of records and of maps, since the start.
  const output::TruncatedStrings& truncated_strings() const { return truncated_strings_; }

 private:
  const output::Formatter& formatter(const program::EventSchema& schema, size_t literal_index);

  const program::Program& program_;
  const types::Types& types_;
  output::Resolver resolver_;
  std::array<output::TextStyle, 3> styles_;  // by TextUse
  bool shows_addresses_;
  output::TruncatedStrings truncated_strings_;
  std::vector<std::map<size_t, output::Formatter>> formatters_;  // by EventId, then by literal
  std::string text_;                                             // of the last `format`
};

}  // namespace espy::runtime

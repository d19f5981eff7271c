#include "runtime/record_decoder.h"

#include <cstring>

#include "base/check.h"
#include "runtime/resolver.h"

namespace espy::runtime {

output::TextStyle text_style(const spec::Config& config) {
  return {.truncation_trailer = config.str_trunc_trailer,
          .has_zeros = config.print_zeros,
          .is_c = config.print_layout == spec::PrintLayout::kC,
          .max_depth = static_cast<uint32_t>(config.print_depth),
          .max_items = static_cast<uint32_t>(config.print_items),
          .span_layout = config.span_layout,
          .has_units = config.print_units,
          .units = config.map_units,
          .has_percentiles = config.hist_percentiles};
}

RecordDecoder::RecordDecoder(load::Machine& machine, const program::Program& program, const types::Types& types,
                             symbols::Symbolizer& symbols, const UnwoundStacks& unwound_stacks,
                             const spec::Config& config, StackDetail detail)
    : program_(program),
      types_(types),
      resolver_(make_resolver(machine, program, symbols, unwound_stacks, detail)),
      styles_{text_style(config), text_style(config), text_style(config)},
      shows_addresses_(config.print_addresses),
      truncated_strings_{config.max_strlen, 0},
      formatters_(program.events.size()) {}

void RecordDecoder::show_on(const TerminalText& terminal) {
  output::TextStyle& of_output = styles_[static_cast<size_t>(TextUse::kOutput)];
  output::TextStyle& of_messages = styles_[static_cast<size_t>(TextUse::kMessage)];
  of_output.is_for_terminal = terminal.is_output;
  of_messages.is_for_terminal = terminal.is_messages;
  of_output.own_texts = of_messages.own_texts = terminal.own_texts;
}

output::DecodeContext RecordDecoder::context() {
  return {types_, resolver_, program_.formats, &truncated_strings_, shows_addresses_};
}

output::Value RecordDecoder::value(const program::EventField& field, std::span<const std::byte> record) {
  return output::decode_field(context(), field, record);
}

int64_t RecordDecoder::integer(const program::EventField& field, std::span<const std::byte> record) const {
  const types::Type& type = types_[field.type];
  CHECK(type.size_bytes <= 8 && !field.is_in_tail);
  uint64_t bits = 0;
  std::memcpy(&bits, record.data() + field.offset_bytes, type.size_bytes);
  const int unused = 64 - 8 * static_cast<int>(type.size_bytes);
  if (unused == 0) return static_cast<int64_t>(bits);
  return type.is_signed ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
}

const output::Formatter& RecordDecoder::formatter(const program::EventSchema& schema, size_t literal_index) {
  auto& formatters = formatters_[static_cast<size_t>(&schema - &*program_.events.begin())];
  if (const auto at = formatters.find(literal_index); at != formatters.end()) return at->second;
  auto formatter = output::Formatter::create(schema.literals[literal_index]);
  CHECK(formatter.has_value());  // `check` has parsed it
  return formatters.emplace(literal_index, std::move(*formatter)).first->second;
}

const std::string& RecordDecoder::format(const program::EventSchema& schema, std::span<const std::byte> record,
                                         size_t literal_index, size_t first_field, TextUse use) {
  text_.clear();
  formatter(schema, literal_index).append_record(text_, context(), schema, first_field, record, style(use));
  return text_;
}

}  // namespace espy::runtime

// From bytes of records and maps to values and text.
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
#include "output/sink.h"
#include "program/program.h"
#include "runtime/resolver.h"
#include "runtime/unwind_tables.h"
#include "spec/config.h"
#include "symbols/symbols.h"
#include "types/parts.h"

namespace espy::runtime {

// ---- RecordDecoder: the fields of drained records as values and as formatted text.

// How values are shown, by the configuration.
output::TextStyle text_style(const spec::Config& config);

// What formatted text is for: to be used, such as the path of a file, or to be shown as output or as a message.
enum class TextUse : uint8_t { kData, kOutput, kMessage };

// Output to a terminal, in formats whose text is lines.
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

// ---- MapReader: reads, clears and zeroes the maps of a script.

class MapReader {
 public:
  MapReader(load::Machine& machine, const program::Program& program, const output::DecodeContext& context)
      : machine_(machine), program_(program), context_(context) {}

  struct Wanted {
    uint64_t until_ns = UINT64_MAX;  // of a recent() without keys: values that were added by then, a monotonic time
    bool is_compact = false;  // in MapView::compact, if the entries fit; the view must not outlive the reader then
  };
  // Returns all entries in display order; none for a scalar that was never assigned.
  Result<output::MapView> read(program::ScriptMapId map, const Wanted& wanted);
  // The entry with a key, none if it is absent. `key` starts with its bytes, as in the map.
  output::MapView read_element(program::ScriptMapId map, std::span<const std::byte> key);
  Status clear(program::ScriptMapId map);  // removes all keys; unsets a scalar
  Status zero(program::ScriptMapId map);   // keeps the keys, zeroes the values

 private:
  output::MapView empty_view(const program::ScriptMap& map) const;
  output::Value hash_value(const output::DecodeContext& context, const program::ScriptMap& map,
                           std::span<const std::byte> bytes) const;
  std::span<std::byte> scalar_bytes(const program::ScriptMap& map);  // from the "assigned" word of CPU 0 on
  void read_scalar(const program::ScriptMap& map, uint64_t until_ns, output::MapView& view);
  Status read_recent(const program::ScriptMap& map, output::MapView& view);
  Status read_hash(const program::ScriptMap& map, output::MapView& view, const Wanted& wanted);
  types::RecentLayout layout_of(const program::ScriptMap& map) const;
  void count_removed_key(const program::ScriptMap& map);
  Result<std::vector<std::vector<std::byte>>> keys(const program::ScriptMap& map);

  load::Machine& machine_;
  const program::Program& program_;
  output::DecodeContext context_;
};

}  // namespace espy::runtime

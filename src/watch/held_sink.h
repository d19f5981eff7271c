// HeldSink: keeps the output of a run while a screen hides where it would go, and passes it on afterwards.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "output/forwarding_sink.h"
#include "output/span_text.h"

namespace espy::watch {

class HeldSink final : public output::ForwardingSink {
 public:
  // `holds_text`, `holds_messages`: the screen hides where text, and where messages go. Maps that the script prints are
  // not kept: the screen shows them. `inner` must outlive the sink.
  HeldSink(output::Sink& inner, output::TextStyle style, bool holds_text, bool holds_messages)
      : output::ForwardingSink(inner),
        style_(std::move(style)),
        holds_text_(holds_text),
        holds_messages_(holds_messages) {}

  void hold() { is_holding_ = true; }
  // Passes on what was kept: the last of it, if it was much.
  void release();

  void text(std::string_view kind, std::string_view text) override;
  void text_line(std::string_view kind, std::string_view text) override;
  void value(const output::Value& value) override;
  void span(const output::SpanEvent& event) override;
  void map(const output::MapView& map) override;
  void lost(uint64_t events) override;
  void cost(const output::CostReport& report) override;
  void explain(std::string_view text) override;
  void helper_error(const output::HelperError& error) override;
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override;

 private:
  struct Kept {
    std::function<void(output::Sink&)> pass_on;
    size_t bytes = 0;
  };
  bool holds_text() const { return is_holding_ && holds_text_; }
  bool holds_messages() const { return is_holding_ && holds_messages_; }
  void keep(size_t bytes, std::function<void(output::Sink&)> pass_on);
  void keep_text(std::string_view kind, std::string text);

  output::TextStyle style_;
  output::SpanText spans_{style_};
  bool holds_text_, holds_messages_;
  bool is_holding_ = false;
  std::deque<Kept> kept_;
  size_t bytes_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace espy::watch

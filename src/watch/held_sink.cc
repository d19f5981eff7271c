#include "watch/held_sink.h"

#include <fmt/format.h>

namespace espy::watch {

namespace {

constexpr size_t kMaxKept = 10'000;
constexpr size_t kMaxBytes = 4 << 20;

}  // namespace

void HeldSink::keep(size_t bytes, std::function<void(output::Sink&)> pass_on) {
  kept_.push_back({std::move(pass_on), bytes});
  bytes_ += bytes;
  while (kept_.size() > kMaxKept || bytes_ > kMaxBytes) {
    bytes_ -= kept_.front().bytes;
    kept_.pop_front();
    ++left_out_;
  }
}

void HeldSink::keep_text(std::string_view kind, std::string text) {
  const size_t bytes = text.size();
  keep(bytes, [kind = std::string(kind), text = std::move(text)](output::Sink& sink) { sink.text(kind, text); });
}

void HeldSink::release() {
  if (!is_holding_) return;
  is_holding_ = false;
  if (holds_text_)
    if (std::string rest = spans_.flush(); !rest.empty()) keep_text("span", std::move(rest));
  if (left_out_ > 0)
    inner().message(
        "runtime_error",
        fmt::format("output while the screen was shown that is left out here (-o FILE keeps it): {} parts", left_out_),
        "", 0, 0, 0);
  for (const Kept& kept : kept_) kept.pass_on(inner());
  kept_.clear();
  bytes_ = left_out_ = 0;
}

void HeldSink::text(std::string_view kind, std::string_view text) {
  if (!holds_text()) return inner().text(kind, text);
  keep_text(kind, std::string(text));
}

void HeldSink::text_line(std::string_view kind, std::string_view text) {
  if (!holds_text()) return inner().text_line(kind, text);
  keep(text.size(),
       [kind = std::string(kind), text = std::string(text)](output::Sink& sink) { sink.text_line(kind, text); });
}

void HeldSink::value(const output::Value& value) {
  if (!holds_text()) return inner().value(value);
  keep_text("print", output::to_text(value, style_) + "\n");
}

void HeldSink::span(const output::SpanEvent& event) {
  if (!holds_text()) return inner().span(event);
  keep_text("span", spans_.add(event));
}

void HeldSink::map(const output::MapView& map) {
  if (!holds_text()) inner().map(map);
}

void HeldSink::lost(uint64_t events) {
  if (!holds_messages()) return inner().lost(events);
  keep(sizeof(events), [events](output::Sink& sink) { sink.lost(events); });
}

void HeldSink::cost(const output::CostReport& report) {
  if (!holds_messages()) return inner().cost(report);
  keep(sizeof(report), [report](output::Sink& sink) { sink.cost(report); });
}

void HeldSink::explain(std::string_view text) {
  if (!holds_messages()) return inner().explain(text);
  keep(text.size(), [text = std::string(text)](output::Sink& sink) { sink.explain(text); });
}

void HeldSink::helper_error(const output::HelperError& error) {
  if (!holds_messages()) return inner().helper_error(error);
  keep(error.excerpt.size(),
       [error, helper = std::string(error.helper), message = std::string(error.message), file = std::string(error.file),
        excerpt = std::string(error.excerpt)](output::Sink& sink) {
         output::HelperError copy = error;
         copy.helper = helper;
         copy.message = message;
         copy.file = file;
         copy.excerpt = excerpt;
         sink.helper_error(copy);
       });
}

void HeldSink::message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line,
                       uint32_t column, uint32_t end_column) {
  if (!holds_messages()) return inner().message(kind, text, file, line, column, end_column);
  keep(text.size(), [kind = std::string(kind), text = std::string(text), file = std::string(file), line, column,
                     end_column](output::Sink& sink) { sink.message(kind, text, file, line, column, end_column); });
}

}  // namespace espy::watch

// Spans that are kept in the kernel, with the thread, until it is known whether their tree is shown: the code of
// span_hold(), span_release() and span_drop(). program/layout.h describes the memory.
#pragma once

#include <functional>

#include "lower/lowering.h"
#include "output/spans.h"
#include "spec/builtin.h"

namespace espy::builtins {

// The frame of the call whose entry or return is probed, and at the entry the address that it returns to; 0 if unknown.
struct CallFrame {
  ir::ValueId frame, return_address;
};
CallFrame frame_of(lower::Lowering& lowering);

// Whether the script calls span_hold(). Its spans are shown only as parts of trees then.
bool holds_spans(lower::Lowering& lowering);

// Emits code that runs `emit` where the thread has a buffer that takes an event of this kind. Otherwise the event is
// counted in the buffer, or dropped if there is none.
void keep_span(lower::Lowering& lowering, output::SpanKind kind,
               const std::function<void(const lower::SpanBuffer&)>& emit);

lower::Operand lower_span_hold(lower::Lowering& lowering, const spec::CallSite& call);
lower::Operand lower_span_release(lower::Lowering& lowering, const spec::CallSite& call);
lower::Operand lower_span_drop(lower::Lowering& lowering, const spec::CallSite& call);

// The record by which span_release() shows a tree: fields and numbers of its schema.
constexpr const char* kSpanRelease = "span_release";
enum TreeField : size_t {
  kTreePid,
  kTreeTid,
  kTreeComm,
  kTreeCpu,
  kTreeBegin,
  kTreeHead,
  kTreeBefore,
  kTreeLeftOut,
  kTreeData
};
enum TreeNumber : size_t { kTreeDataBytes };

}  // namespace espy::builtins

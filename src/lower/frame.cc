#include "lower/frame.h"

namespace espy::lower {

void Frame::begin() { slot_ = ir().add_slot(8, 8, "frame"); }

ValueId Frame::address() {
  if (functions_.is_in_callback()) return callback_address_;
  return ir().slot(slot_);
}

uint32_t Frame::add(uint32_t size_bytes) {
  const uint32_t at = size_bytes_;
  size_bytes_ += size_bytes;
  return at;
}

void Frame::with_callback(ValueId address, const std::function<void()>& body) {
  has_callbacks_ = true;
  const ValueId outer = callback_address_;
  callback_address_ = address;
  body();
  callback_address_ = outer;
}

void Frame::write_setup(ValueId scratch_base, ValueId probe_index) {
  if (size_bytes_ == kFrameHeaderBytes && !has_callbacks_) return;
  functions_.function().slots[slot_].size_bytes = size_bytes_;
  const ValueId frame = ir().slot(slot_);
  ir().zero(frame, size_bytes_);
  ir().store(8, frame, scratch_base, kFrameScratchOffset);
  ir().store(8, frame, ir().context(), kFrameContextOffset);
  if (probe_index.valid()) ir().store(8, frame, probe_index, kFrameProbeOffset);
}

}  // namespace espy::lower

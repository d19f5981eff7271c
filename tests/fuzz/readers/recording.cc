// Recordings: the bytes as a file, and, as checksums keep random bytes out of a file, as the payloads of its blocks;
// alone, and as files of a ring.
// The first two bytes are the size of the description.
#include "../reader.h"
#include "base/byte_reader.h"
#include "kernel/described_kernel.h"
#include "recording/reader.h"
#include "recording/writer.h"
#include "replay/player.h"

namespace espy::fuzz {

namespace {

// As a replay does it: the types of the fields, and a context that is filled with each event.
class Contexts {
 public:
  explicit Contexts(const recording::Description& description) : description_(description) {
    if (kernel::find_arch(description.arch) == nullptr) return;
    kernel_ = kernel::make_described_kernel(description, [](kernel::Feature) { return false; });
    for (uint32_t i = 0; i < description.types.size(); ++i)
      use(types::to_string(types_, kernel_->recorded_type(types_, i)));
    for (const recording::Layout& layout : description.layouts) contexts_.emplace_back(layout, *kernel_, types_);
  }

  void fill(const recording::Event& event) {
    if (!kernel_) return;
    const std::span<std::byte> context = contexts_[description_.probes[event.probe].layout].fill(event);
    use({reinterpret_cast<const char*>(context.data()), context.size()});
  }

 private:
  const recording::Description& description_;
  types::Types types_;
  std::unique_ptr<kernel::Kernel> kernel_;
  std::vector<replay::Context> contexts_;
};

void read_all(const std::vector<std::string>& paths) {
  auto reader = recording::Reader::open(paths);
  if (!reader) return use(reader.error().message);
  Contexts contexts(reader->description());
  reader->tell_times();
  recording::Event event;
  while (reader->next(event)) {
    if (event.task == nullptr) continue;
    use(event.task->comm);
    for (const recording::Value& value : event.values) {
      use(value.text);
      use({reinterpret_cast<const char*>(value.stack.data()), value.stack.size_bytes()});
    }
    contexts.fill(event);
  }
  for (const auto& [place, frames] : reader->names())
    for (const recording::Frame& frame : frames) use(frame.symbol + frame.module + frame.file);
  for (const std::string& damage : reader->damages()) use(damage);
}

std::string block(recording::BlockKind kind, std::string_view payload) {
  recording::BlockHeader header{.kind = kind};
  const std::string stored = recording::compress(payload, header);
  const auto head = recording::encode(header);
  return std::string(head.data(), head.size()) + stored;
}

std::string file_of(std::string_view description, std::string_view events) {
  std::string out(recording::kFileMagic);
  out += std::string({static_cast<char>(recording::kVersion), 0, 0, 0, 0, 0, 0, 0});
  return out + block(recording::BlockKind::kDescription, description) + block(recording::BlockKind::kEvents, events);
}

// Items of a description: the file of that number in a ring.
std::string in_ring(char number) { return std::string("\x0d\1\1\x0e\1") + number; }

}  // namespace

void run_recording(std::string_view bytes) {
  read_all({MemoryFile(bytes).path()});
  const size_t size = load_le(bytes, 0, 2);
  const std::string_view rest = bytes.substr(std::min<size_t>(bytes.size(), 2));
  const std::string description(rest.substr(0, size));
  const std::string_view events = rest.substr(std::min(rest.size(), size));
  read_all({MemoryFile(file_of(description, events)).path()});
  read_all({MemoryFile(file_of(description + in_ring(1), events)).path(),
            MemoryFile(file_of(description + in_ring(3), events)).path()});
}

}  // namespace espy::fuzz

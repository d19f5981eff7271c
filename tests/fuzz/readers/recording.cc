// Recordings: the bytes as a file, and, as checksums keep random bytes out of a file, as the payloads of its blocks.
// The first two bytes are the size of the description.
#include "../reader.h"
#include "base/byte_reader.h"
#include "recording/reader.h"
#include "recording/writer.h"

namespace espy::fuzz {

namespace {

void read_all(const std::string& path) {
  auto reader = recording::Reader::open(path);
  if (!reader) return use(reader.error().message);
  recording::Event event;
  while (reader->next(event)) {
    use(event.task->comm);
    for (const recording::Value& value : event.values) use(value.text);
  }
  for (const std::string& damage : reader->damages()) use(damage);
}

std::string block(recording::BlockKind kind, std::string_view payload) {
  recording::BlockHeader header{.kind = kind};
  const std::string stored = recording::compress(payload, header);
  const auto head = recording::encode(header);
  return std::string(head.data(), head.size()) + stored;
}

}  // namespace

void run_recording(std::string_view bytes) {
  read_all(MemoryFile(bytes).path());
  const size_t size = load_le(bytes, 0, 2);
  const std::string_view rest = bytes.substr(std::min<size_t>(bytes.size(), 2));
  std::string file(recording::kFileMagic);
  file += std::string({static_cast<char>(recording::kVersion), 0, 0, 0, 0, 0, 0, 0});
  file += block(recording::BlockKind::kDescription, rest.substr(0, size));
  file += block(recording::BlockKind::kEvents, rest.substr(std::min(rest.size(), size)));
  read_all(MemoryFile(file).path());
}

}  // namespace espy::fuzz

// Bytes by hand, and what a sink makes of values.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "output/decode.h"
#include "output/sink.h"

namespace espy::output {

using Bytes = std::vector<std::byte>;

inline void append(Bytes& out, const void* from, size_t size) {
  const auto* at = static_cast<const std::byte*>(from);
  out.insert(out.end(), at, at + size);
}

// The objects one behind the other, without padding.
template <class... T>
Bytes bytes_of(const T&... values) {
  Bytes out;
  (append(out, &values, sizeof(values)), ...);
  return out;
}

inline Bytes text_bytes(std::string_view text, size_t capacity) {
  Bytes out(capacity);
  std::memcpy(out.data(), text.data(), std::min(capacity, text.size()));
  return out;
}

// The words of an aggregation, all zeros but those given.
inline Bytes words(size_t count, const std::vector<std::pair<size_t, uint64_t>>& set) {
  Bytes out(count * 8);
  for (const auto& [index, value] : set) std::memcpy(out.data() + index * 8, &value, 8);
  return out;
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::vector<std::shared_ptr<const Frame>> shared(const std::vector<Frame>& frames) {
  std::vector<std::shared_ptr<const Frame>> out;
  for (const Frame& frame : frames) out.push_back(std::make_shared<Frame>(frame));
  return out;
}

struct World {
  types::Types types;
  Resolver resolver;
  std::vector<std::string> formats;

  DecodeContext context() const { return {types, resolver, formats}; }
  Value decode(types::TypeId type, const Bytes& bytes) const { return output::decode(context(), type, bytes); }
  Value merge(types::TypeId type, const Bytes& bytes, uint32_t cpus) const {
    return decode_per_cpu(context(), type, bytes, cpus);
  }
  std::string text(types::TypeId type, const Bytes& bytes) const { return to_text(decode(type, bytes), {}); }
};

inline std::string read_all(int fd) {
  std::string out(static_cast<size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
  return out;
}

// Times that begin at 1 s, a second further in each call, and 1000 s later since the epoch; ids from 1 on.
inline RunInfo run_info() {
  return {.now_ns = [now_ns = uint64_t{0}]() mutable { return now_ns += 1'000'000'000; },
          .wall_ns = [](uint64_t boot_ns) { return boot_ns + 1'000'000'000'000; },
          .random = [last = uint64_t{0}]() mutable { return ++last; },
          .host = [] { return std::string("machine"); }};
}

// What the sink of this name writes.
inline std::string shown(std::string_view sink_name, const std::function<void(Sink&)>& use, TextStyle style = {}) {
  const int fd = ::memfd_create("shown", 0);
  {
    Writer out(fd, Buffering::kFull);
    const auto sink = find_sink(sink_name)->create(out, std::move(style), Quiet::kNo);
    sink->begin(run_info());
    use(*sink);
  }
  std::string text = read_all(fd);
  ::close(fd);
  return text;
}

inline MapView scalar(std::string_view name, Value value) {
  MapView view;
  view.name = name;
  view.is_scalar = true;
  view.entries.push_back({{}, std::move(value)});
  return view;
}

inline MapView keyed(std::string_view name, std::vector<MapEntry> entries) {
  MapView view;
  view.name = name;
  view.entries = std::move(entries);
  sort_for_display(view.entries);
  return view;
}

inline Value number(int64_t value) { return {value}; }
inline Value string(std::string text) { return {StringValue{std::move(text), false}}; }
inline Value tuple(std::vector<Value> items) { return {TupleValue{std::move(items)}}; }

}  // namespace espy::output

#include "load/process_events.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "kernel/cpu_list.h"

namespace espy::load {

namespace {

using Bytes = std::span<const std::byte>;
using Kind = ProcessEvent::Kind;

// Powers of two (perf_event_open(2), "MMAP layout"). A process that starts takes about 1 KB: the mappings of its
// program and of three libraries. espy may come late by a tenth of a second on a busy machine.
constexpr size_t kMostRingBytes = 512 << 10, kLeastRingBytes = 32 << 10, kAllRingsBytes = 8 << 20;
constexpr size_t kHeaderBytes = sizeof(perf_event_header);
constexpr size_t kTimeBytes = 8;  // behind each record, because of sample_id_all

perf_event_attr make_attributes(size_t ring_bytes) {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof(attr);
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.mmap = attr.mmap2 = 1;
  attr.comm = attr.comm_exec = 1;
  attr.task = 1;
  attr.watermark = 1;
  attr.wakeup_watermark = static_cast<uint32_t>(ring_bytes / 2);
  return attr;
}

// The rest of a record of type MMAP2, from `pid` on.
void read_mapping(Bytes record, ProcessEvent& out) {
  constexpr size_t kPathOffset = 64;
  out.start = load_le(record, 8);
  out.end = out.start + load_le(record, 16);
  out.file_offset = load_le(record, 24);
  out.device = makedev(load_le(record, 32, 4), load_le(record, 36, 4));
  out.inode = load_le(record, 40);
  const Bytes rest = record.subspan(std::min(kPathOffset, record.size()));
  const std::string_view path(reinterpret_cast<const char*>(rest.data()), rest.size());
  out.path = path.substr(0, path.find('\0'));
}

// nullopt for records of no interest. `record`: without its header and time.
std::optional<ProcessEvent> parse(uint32_t type, uint32_t flags, Bytes record) {
  constexpr uint32_t kNoProcess = UINT32_MAX;
  ProcessEvent out;
  out.pid = static_cast<uint32_t>(load_le(record, 0, 4));
  if (out.pid == 0 || out.pid == kNoProcess) return std::nullopt;  // outside of our namespace, or gone
  const auto thread = static_cast<uint32_t>(load_le(record, type == PERF_RECORD_MMAP2 ? 4 : 8, 4));
  switch (type) {
    case PERF_RECORD_FORK:
      out.kind = Kind::kStart;
      out.parent = static_cast<uint32_t>(load_le(record, 4, 4));
      if (out.parent == out.pid) return std::nullopt;  // a thread
      return out;
    case PERF_RECORD_EXIT:
      out.kind = Kind::kEnd;
      if (thread != out.pid) return std::nullopt;
      return out;
    case PERF_RECORD_COMM:
      out.kind = Kind::kExecute;
      if ((flags & PERF_RECORD_MISC_COMM_EXEC) == 0) return std::nullopt;
      return out;
    case PERF_RECORD_MMAP2:
      out.kind = Kind::kMap;
      read_mapping(record, out);
      return out;
    default: return std::nullopt;
  }
}

// Copies bytes that may continue at the start of the ring.
void copy_out(Bytes data, uint64_t position, std::span<std::byte> out) {
  const size_t at = position % data.size();
  const size_t first = std::min(out.size(), data.size() - at);
  std::memcpy(out.data(), data.data() + at, first);
  std::memcpy(out.data() + first, data.data(), out.size() - first);
}

// Maps a ring that has up to `most_bytes` of data: the most that the kernel allows. nullopt if it allows none; errno
// says why.
std::optional<Mapping> map_ring(int event, size_t page_bytes, size_t most_bytes) {
  for (size_t data_bytes = most_bytes;; data_bytes /= 2) {
    const size_t bytes = page_bytes + data_bytes;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (memory != MAP_FAILED) return Mapping(static_cast<std::byte*>(memory), bytes);
    const bool may_be_smaller = errno == EPERM || errno == ENOMEM;
    if (!may_be_smaller || data_bytes <= std::max(kLeastRingBytes, page_bytes)) return std::nullopt;
  }
}

}  // namespace

Result<ProcessEvents> ProcessEvents::open() {
  ProcessEvents out;
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const uint32_t cpus = kernel::possible_cpu_count().value_or(1);
  size_t ring_bytes = std::clamp(std::bit_floor(kAllRingsBytes / cpus), kLeastRingBytes, kMostRingBytes);
  ring_bytes = std::max(ring_bytes, page_bytes);
  perf_event_attr attr = make_attributes(ring_bytes);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    OwnedFd event(
        static_cast<int>(::syscall(__NR_perf_event_open, &attr, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event.valid() && errno == ENODEV) continue;  // it is offline
    if (!event.valid()) return fail_errno("cannot open a perf event", errno);
    auto ring = map_ring(event.get(), page_bytes, ring_bytes);
    if (!ring) return fail_errno("cannot map the ring of a perf event", errno);
    out.rings_.push_back({std::move(event), std::move(*ring)});
  }
  return out;
}

void ProcessEvents::read(const Ring& ring, std::vector<ProcessEvent>& out) {
  const std::span<std::byte> memory = ring.memory.bytes();
  auto* page = reinterpret_cast<perf_event_mmap_page*>(memory.data());
  const Bytes data = memory.subspan(page->data_offset, page->data_size);
  const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  uint64_t tail = page->data_tail;
  std::vector<std::byte> record;
  while (tail < head) {
    perf_event_header header;
    copy_out(data, tail, std::as_writable_bytes(std::span(&header, 1)));
    if (header.size < kHeaderBytes + kTimeBytes) break;
    record.resize(header.size);
    copy_out(data, tail, record);
    tail += header.size;
    const Bytes body = Bytes(record).subspan(kHeaderBytes, header.size - kHeaderBytes - kTimeBytes);
    if (header.type == PERF_RECORD_LOST) {
      lost_ += load_le(body, sizeof(uint64_t));  // behind an id
    } else if (auto event = parse(header.type, header.misc, body)) {
      event->time_ns = load_le(record, header.size - kTimeBytes);
      out.push_back(std::move(*event));
    }
  }
  std::atomic_ref(page->data_tail).store(head, std::memory_order_release);
}

std::vector<int> ProcessEvents::descriptors() const {
  std::vector<int> out;
  for (const Ring& ring : rings_) out.push_back(ring.event.get());
  return out;
}

void ProcessEvents::drain(const std::function<void(const ProcessEvent&)>& visit) {
  std::vector<ProcessEvent> events;
  for (const Ring& ring : rings_) read(ring, events);
  std::ranges::stable_sort(events, {}, &ProcessEvent::time_ns);
  for (const ProcessEvent& event : events) visit(event);
}

}  // namespace espy::load

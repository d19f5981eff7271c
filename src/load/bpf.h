// bpf(2): wrappers of its commands, and processes that close links in the background.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/files.h"
#include "base/result.h"
#include "program/program.h"

namespace espy::load {

// ---- Wrappers of bpf(2).
//
// The attributes are declared here as in include/uapi/linux/bpf.h of Linux 6.18, because the headers of the build
// machine may be older than the kernel. The kernel accepts shorter attributes than its own, and longer ones whose tail
// is zero. Members that it does not know must be zero, so there must be no padding, which would have any value. A
// kernel with fewer members refuses such an attribute now and then, by EINVAL.

constexpr uint32_t kNameBytes = 16;

enum class Command : int {
  kMapCreate = 0,
  kMapLookup = 1,
  kMapUpdate = 2,
  kMapDelete = 3,
  kMapNextKey = 4,
  kProgLoad = 5,
  kObjectPin = 6,
  kTestRun = 10,
  kProgramNextId = 11,
  kProgramById = 13,
  kObjectInfo = 15,
  kRawTracepointOpen = 17,
  kBtfLoad = 18,
  kBtfById = 19,
  kMapFreeze = 22,
  kBtfNextId = 23,
  kMapLookupBatch = 24,
  kMapUpdateBatch = 26,
  kLinkCreate = 28,
  kEnableStats = 32,
  kIterCreate = 33,
};

struct MapCreateAttr {
  uint32_t map_type = 0;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  uint32_t max_entries = 0;
  uint32_t map_flags = 0;
  uint32_t inner_map_fd = 0;
  uint32_t numa_node = 0;
  char map_name[kNameBytes] = {};
  uint32_t map_ifindex = 0;
  uint32_t btf_fd = 0;
  uint32_t btf_key_type_id = 0;
  uint32_t btf_value_type_id = 0;
};

struct MapElementAttr {
  uint32_t map_fd = 0;
  uint32_t unused = 0;
  uint64_t key = 0;
  uint64_t value = 0;  // or the next key
  uint64_t flags = 0;
};

struct InfoAttr {
  uint32_t bpf_fd = 0;
  uint32_t info_len = 0;  // the size of `info`: struct bpf_prog_info, bpf_btf_info, ...
  uint64_t info = 0;
};

struct NextIdAttr {
  uint32_t start_id = 0;
  uint32_t next_id = 0;
  uint32_t open_flags = 0;
};

struct BtfInfo {  // struct bpf_btf_info
  uint64_t btf = 0;
  uint32_t btf_size = 0;
  uint32_t id = 0;
  uint64_t name = 0;
  uint32_t name_len = 0;
  uint32_t kernel_btf = 0;
};

struct MapBatchAttr {
  uint64_t in_batch = 0;
  uint64_t out_batch = 0;
  uint64_t keys = 0;
  uint64_t values = 0;
  uint32_t count = 0;
  uint32_t map_fd = 0;
  uint64_t elem_flags = 0;
  uint64_t flags = 0;
};

struct ProgLoadAttr {
  uint32_t prog_type = 0;
  uint32_t insn_cnt = 0;
  uint64_t insns = 0;
  uint64_t license = 0;
  uint32_t log_level = 0;
  uint32_t log_size = 0;
  uint64_t log_buf = 0;
  uint32_t kern_version = 0;
  uint32_t prog_flags = 0;
  char prog_name[kNameBytes] = {};
  uint32_t prog_ifindex = 0;
  uint32_t expected_attach_type = 0;
  uint32_t prog_btf_fd = 0;
  uint32_t func_info_rec_size = 0;
  uint64_t func_info = 0;
  uint32_t func_info_cnt = 0;
  uint32_t line_info_rec_size = 0;
  uint64_t line_info = 0;
  uint32_t line_info_cnt = 0;
  uint32_t attach_btf_id = 0;
  uint32_t attach_btf_obj_fd = 0;
  uint32_t core_relo_cnt = 0;
};

struct EnableStatsAttr {
  uint32_t type = 0;  // BPF_STATS_RUN_TIME
};

struct TestRunAttr {
  uint32_t prog_fd = 0;
  uint32_t retval = 0;
  uint32_t data_size_in = 0;
  uint32_t data_size_out = 0;
  uint64_t data_in = 0;
  uint64_t data_out = 0;
  uint32_t repeat = 0;
  uint32_t duration = 0;
  uint32_t ctx_size_in = 0;
  uint32_t ctx_size_out = 0;
  uint64_t ctx_in = 0;
  uint64_t ctx_out = 0;
  uint32_t flags = 0;
  uint32_t cpu = 0;
};

struct RawTracepointAttr {
  uint64_t name = 0;
  uint32_t prog_fd = 0;
  uint32_t unused = 0;
  uint64_t cookie = 0;
};

struct BtfLoadAttr {
  uint64_t btf = 0;
  uint64_t log_buf = 0;
  uint32_t btf_size = 0;
  uint32_t log_size = 0;
  uint32_t log_level = 0;
  uint32_t log_true_size = 0;  // Linux 6.4
};

struct MapFreezeAttr {
  uint32_t map_fd = 0;
};

struct PinAttr {
  uint64_t path = 0;
  uint32_t bpf_fd = 0;
  uint32_t file_flags = 0;
};

struct IterCreateAttr {
  uint32_t link_fd = 0;
  uint32_t flags = 0;
};

struct LinkCreateAttr {
  uint32_t prog_fd = 0;
  uint32_t target_fd = 0;
  uint32_t attach_type = 0;
  uint32_t flags = 0;
  union {
    uint64_t words[6] = {};  // all of the union is zero at first
    struct {
      uint64_t cookie;
    } perf_event;
    struct {
      uint32_t target_btf_id;
      uint32_t unused;
      uint64_t cookie;
    } tracing;
    struct {
      uint64_t info;
      uint32_t info_bytes;
    } iterator;
    struct {
      uint64_t path;
      uint64_t offsets;
      uint64_t ref_ctr_offsets;
      uint64_t cookies;
      uint32_t count;
      uint32_t flags;
      uint32_t pid;
      uint32_t unused;
    } uprobe_multi;
    struct {
      uint32_t flags;
      uint32_t count;
      uint64_t syms;
      uint64_t addrs;
      uint64_t cookies;
    } kprobe_multi;
  };
};
static_assert(sizeof(LinkCreateAttr) == offsetof(LinkCreateAttr, words) + sizeof(LinkCreateAttr::words));

// struct bpf_link_info, its members for kprobes. A kernel that does not know a member leaves it 0.
struct LinkInfo {
  enum Type : uint32_t { kPerfEvent = 7, kKprobeMulti = 8 };                          // BPF_LINK_TYPE_*
  enum PerfType : uint32_t { kPerfKprobe = 3, kPerfKretprobe = 4, kPerfSample = 6 };  // BPF_PERF_EVENT_*
  uint32_t type = 0;
  uint32_t id = 0;
  uint32_t program_id = 0;
  union {
    struct {
      alignas(8) uint64_t addresses;
      uint32_t count;
      uint32_t flags;
      uint64_t missed;
      uint64_t cookies;
    } kprobe_multi = {};
    struct {
      uint32_t type;
      uint32_t unused;
      uint64_t function;
      uint32_t name_length;
      uint32_t offset;
      uint64_t address;
      uint64_t missed;
      uint64_t cookie;
    } perf_event;
  };
};

// What may be missing where bpf(2) or perf_event_open(2) fails with EPERM: a hint.
std::string why_not_permitted();

// bpf(2). Returns its result, or -errno.
long bpf(Command command, void* attr, size_t size);

template <class Attr>
long bpf(Command command, Attr& attr) {
  static_assert(std::is_same_v<Attr, LinkCreateAttr> || std::has_unique_object_representations_v<Attr>,
                "the attribute has padding");
  return bpf(command, &attr, sizeof(attr));
}

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Copies at most 15 bytes; replaces bytes that the kernel does not allow in a name ([A-Za-z0-9_.]) by '_'.
void copy_name(char (&to)[kNameBytes], std::string_view name);

// BPF_PROG_TYPE_* and BPF_MAP_TYPE_* of a kind.
uint32_t number_of(program::ProgramKind kind);
uint32_t number_of(program::MapKind kind);

// Attach types (enum bpf_attach_type).
constexpr uint32_t kAttachTraceRawTp = 23;
constexpr uint32_t kAttachTraceFentry = 24;
constexpr uint32_t kAttachTraceFexit = 25;
constexpr uint32_t kAttachTraceIter = 28;
constexpr uint32_t kAttachPerfEvent = 41;
constexpr uint32_t kAttachKprobeMulti = 42;
constexpr uint32_t kAttachUprobeMulti = 48;
constexpr uint32_t kAttachKprobeSession = 56;
constexpr uint32_t kAttachUprobeSession = 57;

// ---- LinkCloser: processes that close descriptors of this one. Closing the link of a function detaches it at once,
// and then waits for tens of milliseconds until none of its programs runs any more. This process does not wait, and a
// waiting link does not delay the next one.

class LinkCloser {
 public:
  // Starts the processes, which share the table of descriptors and end with this one.
  static Result<std::unique_ptr<LinkCloser>> start();
  LinkCloser(const LinkCloser&) = delete;
  LinkCloser& operator=(const LinkCloser&) = delete;
  ~LinkCloser();

  // Gives up ownership of descriptors. Returns the number of the job, which ends when all of them are closed; nullopt
  // if the processes have gone.
  std::optional<uint64_t> close_soon(std::span<const int> descriptors);
  bool has_closed(uint64_t job) const;

 private:
  struct Progress;  // shared with the processes
  LinkCloser(OwnedFd received, OwnedFd orders, Progress* progress, pid_t process)
      : received_(std::move(received)), orders_(std::move(orders)), progress_(progress), process_(process) {}

  OwnedFd received_;  // of the processes, which have the same table
  OwnedFd orders_;
  Progress* progress_;
  pid_t process_;  // the first, with which the others end
  uint64_t jobs_ = 0;
};

}  // namespace espy::load

#include "output/gfp.h"

#include <fmt/format.h>

#include <string_view>

namespace espy::output {

namespace {

struct Flag {
  std::string_view name;
  uint64_t bits;
};

constexpr uint64_t kIo = 0x40, kFs = 0x80, kZero = 0x100, kDirect = 0x400, kKswapd = 0x800;
constexpr uint64_t kReclaim = kDirect | kKswapd;
constexpr uint64_t kKernel = kReclaim | kIo | kFs;
constexpr uint64_t kHighmem = 0x02, kMovable = 0x08, kNoWarn = 0x2000, kHardwall = 0x100000, kAccount = 0x400000;
constexpr uint64_t kHighuserMovable = kKernel | kHardwall | kHighmem | kMovable;
constexpr uint64_t kTransparentHuge = (kHighuserMovable | 0x40000 | 0x80000 | kNoWarn) & ~kReclaim;

// Combinations precede their parts.
constexpr Flag kGfpFlags[] = {
    {"GFP_TRANSHUGE", kTransparentHuge | kDirect},
    {"GFP_TRANSHUGE_LIGHT", kTransparentHuge},
    {"GFP_HIGHUSER_MOVABLE", kHighuserMovable},
    {"GFP_HIGHUSER", kKernel | kHardwall | kHighmem},
    {"GFP_USER", kKernel | kHardwall},
    {"GFP_KERNEL_ACCOUNT", kKernel | kAccount},
    {"GFP_KERNEL", kKernel},
    {"GFP_NOFS", kReclaim | kIo},
    {"GFP_ATOMIC", 0x20 | kKswapd},
    {"GFP_NOIO", kReclaim},
    {"GFP_NOWAIT", kKswapd | kNoWarn},
    {"GFP_DMA", 0x01},
    {"__GFP_HIGHMEM", kHighmem},
    {"GFP_DMA32", 0x04},
    {"__GFP_MOVABLE", kMovable},
    {"__GFP_RECLAIMABLE", 0x10},
    {"__GFP_HIGH", 0x20},
    {"__GFP_IO", kIo},
    {"__GFP_FS", kFs},
    {"__GFP_ZERO", kZero},
    {"__GFP_DIRECT_RECLAIM", kDirect},
    {"__GFP_KSWAPD_RECLAIM", kKswapd},
    {"__GFP_WRITE", 0x1000},
    {"__GFP_NOWARN", kNoWarn},
    {"__GFP_RETRY_MAYFAIL", 0x4000},
    {"__GFP_NOFAIL", 0x8000},
    {"__GFP_NORETRY", 0x10000},
    {"__GFP_MEMALLOC", 0x20000},
    {"__GFP_COMP", 0x40000},
    {"__GFP_NOMEMALLOC", 0x80000},
    {"__GFP_HARDWALL", kHardwall},
    {"__GFP_THISNODE", 0x200000},
    {"__GFP_ACCOUNT", kAccount},
    {"__GFP_ZEROTAGS", 0x800000},
};

}  // namespace

std::string gfp_flags(uint64_t flags) {
  if (flags == 0) return "none";
  std::string out;
  for (const Flag& flag : kGfpFlags) {
    if ((flags & flag.bits) != flag.bits) continue;
    out += (out.empty() ? "" : "|") + std::string(flag.name);
    flags &= ~flag.bits;
  }
  if (flags != 0) out += fmt::format("{}{:#x}", out.empty() ? "" : "|", flags);
  return out;
}

}  // namespace espy::output

// Kinds of arguments of kinds.def: numbers, texts, times, files, memory, processes, and calls whose arguments depend on
// each other. call_sockets.cc has the rest.
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/sysinfo.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>

#include "base/byte_reader.h"
#include "strace/call_decoder.h"
#include "strace/capture_script.h"

namespace espy::strace {

// ---- Numbers

void Decoder::show_int() { decimal(as_int(value())); }
void Decoder::show_fd() { decimal(as_int(value())); }
void Decoder::show_uint() { unsigned_decimal(value() & kLow32Bits); }
void Decoder::show_long() { decimal(static_cast<int64_t>(value())); }
void Decoder::show_ulong() { unsigned_decimal(value()); }
void Decoder::show_size() { unsigned_decimal(value()); }
void Decoder::show_off() { decimal(static_cast<int64_t>(value())); }
void Decoder::show_hex() { hex(value()); }
void Decoder::show_addr() { pointer(value()); }
void Decoder::show_mode() { octal(value() & 07777); }
void Decoder::show_signal() { put(signal_name(value() & kLow32Bits)); }

void Decoder::show_uid() {
  const auto id = static_cast<uint32_t>(value());
  if (id == UINT32_MAX) return put("-1");
  unsigned_decimal(id);
}

void Decoder::show_dirfd() {
  constexpr int64_t kCurrentDirectory = -100;
  if (as_int(value()) == kCurrentDirectory) return put("AT_FDCWD");
  show_fd();
}

void Decoder::show_flags() {
  constexpr uint64_t kSyncBits = 0x6000;  // AT_STATX_SYNC_TYPE
  const bool is_statx = argument().set == "at_statx";
  const uint64_t bits = value() & kLow32Bits;
  if (is_statx && bits != 0 && (bits & kSyncBits) == 0) put("AT_STATX_SYNC_AS_STAT|");
  flags(argument().set, bits);
}

void Decoder::show_enum() { one_of(argument().set, value() & kLow32Bits); }

void Decoder::show_int_pointer() {
  int32_t number = 0;
  if (fetch(value(), number)) *out_ += fmt::format("[{}]", number);
}

void Decoder::show_off_pointer() {
  int64_t number = 0;
  if (fetch(value(), number)) *out_ += fmt::format("[{}]", number);
}

// The length of an address: before, and after if it differs.
void Decoder::show_length() {
  int32_t before = 0, after = 0;
  if (value() == 0) return put("NULL");
  const auto first = state_->memory.bytes(value(), 4, true), last = state_->memory.bytes(value(), 4);
  if (!first || !last || first->size() < 4 || last->size() < 4) return not_there(value());
  std::memcpy(&before, first->data(), 4);
  std::memcpy(&after, last->data(), 4);
  if (has_failed() || before == after)
    *out_ += fmt::format("[{}]", before);
  else
    *out_ += fmt::format("[{} => {}]", before, after);
}

void Decoder::raw_arguments(size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (i > first) next();
    hex(value(i));
  }
}

// ---- Texts

void Decoder::show_path() { text_at(value(), true); }
void Decoder::show_str() { text_at(value(), false); }
void Decoder::show_bytes() { bytes_at(value(), length()); }
void Decoder::show_bytes_random() { bytes_at(value(), length(), true); }

void Decoder::show_argv() {
  if (value() == 0) return put("NULL");
  put("[");
  for (uint64_t i = 0;; ++i) {
    const auto text = state_->memory.pointer(value() + 8 * i);
    if (!text) return not_there(value() + 8 * i);
    if (*text == 0) break;
    if (i > 0) next();
    if (i == kMostElements) {
      put("...");
      break;
    }
    text_at(*text, false);
  }
  put("]");
}

void Decoder::show_envp() {
  pointer(value());
  if (value() == 0) return;
  if (state_->count == kUnknownCount) {
    is_missing_ = state_->has_returned;  // it is not read again
    return;
  }
  *out_ += fmt::format(" /* {} var{} */", state_->count, state_->count == 1 ? "" : "s");
}

// ---- Times

void Decoder::show_timespec() { time_at(value(), "tv_nsec"); }
void Decoder::show_timeval() { time_at(value(), "tv_usec"); }

// It is filled only if a signal has interrupted the sleep.
void Decoder::show_remaining() {
  constexpr int64_t kRestartBlock = -516, kInterrupted = -4;
  if (state_->result == kRestartBlock || state_->result == kInterrupted) return show_timespec();
  pointer(value());
}

void Decoder::show_timespecs() {
  constexpr int64_t kNow = (1 << 30) - 1, kOmit = (1 << 30) - 2;  // UTIME_NOW, UTIME_OMIT of linux/stat.h
  int64_t times[4] = {};
  if (!fetch(value(), times)) return;
  put("[");
  for (size_t i = 0; i < 4; i += 2) {
    if (i > 0) next();
    if (times[i + 1] == kNow || times[i + 1] == kOmit) {
      put(times[i + 1] == kNow ? "UTIME_NOW" : "UTIME_OMIT");
      continue;
    }
    time_of(times[i], times[i + 1], "tv_nsec");
    date(times[i], times[i + 1]);
  }
  put("]");
}

void Decoder::show_timevals() {
  int64_t times[4] = {};
  if (!fetch(value(), times)) return;
  put("[");
  for (size_t i = 0; i < 4; i += 2) {
    if (i > 0) next();
    time_of(times[i], times[i + 1], "tv_usec");
    date(times[i], times[i + 1] * 1000);
  }
  put("]");
}

void Decoder::show_itimerval() { show_timer("tv_usec"); }
void Decoder::show_itimerspec() { show_timer("tv_nsec"); }

void Decoder::show_timer(std::string_view fraction_name) {
  int64_t times[4] = {};
  if (!fetch(value(), times)) return;
  put("{it_interval=");
  time_of(times[0], times[1], fraction_name);
  put(", it_value=");
  time_of(times[2], times[3], fraction_name);
  put("}");
}

void Decoder::show_time_pointer() {
  int64_t seconds = 0;
  if (!fetch(value(), seconds)) return;
  *out_ += fmt::format("[{}", seconds);
  date(seconds, 0);
  put("]");
}

void Decoder::show_tms() {
  int64_t parts[4] = {};
  if (fetch(value(), parts))
    *out_ += fmt::format("{{tms_utime={}, tms_stime={}, tms_cutime={}, tms_cstime={}}}", parts[0], parts[1], parts[2],
                         parts[3]);
}

// ---- Files

void Decoder::show_open_flags() { open_flags(value()); }
void Decoder::show_open_mode() { octal(value() & 07777); }

void Decoder::show_open_how() {
  uint64_t how[3] = {};
  if (!fetch(value(), how)) return;
  put("{flags=");
  open_flags(how[0]);
  if (how[1] != 0) {
    put(", mode=");
    octal(how[1]);
  }
  put(", resolve=");
  hex(how[2]);
  put("}");
}

void Decoder::show_mknod() {
  const uint64_t mode = value() & kLow32Bits;
  file_mode(mode);
  if (!S_ISCHR(mode) && !S_ISBLK(mode)) return;
  next();
  device(value(index_ + 1) & kLow32Bits);
}

void Decoder::show_stat() {
  struct stat file = {};
  if (!fetch(value(), file)) return;
  put("{");
  if (style_.is_verbose) {
    put("st_dev=");
    device(file.st_dev);
    *out_ += fmt::format(", st_ino={}, ", file.st_ino);
  }
  put("st_mode=");
  file_mode(file.st_mode);
  if (style_.is_verbose)
    *out_ += fmt::format(", st_nlink={}, st_uid={}, st_gid={}, st_blksize={}, st_blocks={}", file.st_nlink, file.st_uid,
                         file.st_gid, file.st_blksize, file.st_blocks);
  if (S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)) {
    put(", st_rdev=");
    device(file.st_rdev);
  } else {
    *out_ += fmt::format(", st_size={}", file.st_size);
  }
  if (!style_.is_verbose) return put(", ...}");
  const auto time = [&](std::string_view name, const timespec& at) {
    *out_ += fmt::format(", {}={}", name, at.tv_sec);
    date(at.tv_sec, at.tv_nsec);
    *out_ += fmt::format(", {}_nsec={}", name, at.tv_nsec);
  };
  time("st_atime", file.st_atim);
  time("st_mtime", file.st_mtim);
  time("st_ctime", file.st_ctim);
  put("}");
}

void Decoder::show_statx() {
  struct statx file = {};
  if (!fetch(value(), file)) return;
  put("{stx_mask=");
  flags("statx", file.stx_mask);
  if (style_.is_verbose) *out_ += fmt::format(", stx_blksize={}", file.stx_blksize);
  put(", stx_attributes=");
  flags("statx_attributes", file.stx_attributes);
  if (style_.is_verbose)
    *out_ += fmt::format(", stx_nlink={}, stx_uid={}, stx_gid={}", file.stx_nlink, file.stx_uid, file.stx_gid);
  put(", stx_mode=");
  file_mode(file.stx_mode);
  if (style_.is_verbose) *out_ += fmt::format(", stx_ino={}", file.stx_ino);
  *out_ += fmt::format(", stx_size={}", file.stx_size);
  if (!style_.is_verbose) return put(", ...}");
  *out_ += fmt::format(", stx_blocks={}, stx_attributes_mask=", file.stx_blocks);
  flags("statx_attributes", file.stx_attributes_mask);
  const auto time = [&](std::string_view name, const statx_timestamp& at) {
    *out_ += fmt::format(", {}={{tv_sec={}, tv_nsec={}}}", name, at.tv_sec, at.tv_nsec);
    date(at.tv_sec, at.tv_nsec);
  };
  time("stx_atime", file.stx_atime);
  time("stx_btime", file.stx_btime);
  time("stx_ctime", file.stx_ctime);
  time("stx_mtime", file.stx_mtime);
  *out_ += fmt::format(", stx_rdev_major={}, stx_rdev_minor={}, stx_dev_major={}, stx_dev_minor={}}}",
                       file.stx_rdev_major, file.stx_rdev_minor, file.stx_dev_major, file.stx_dev_minor);
}

// struct statfs of 64-bit kernels (include/uapi/asm-generic/statfs.h).
void Decoder::show_statfs() {
  uint64_t words[15] = {};
  if (!fetch(value(), words)) return;
  put("{f_type=");
  one_of("statfs_type", words[0]);
  *out_ += fmt::format(
      ", f_bsize={}, f_blocks={}, f_bfree={}, f_bavail={}, f_files={}, f_ffree={}, f_fsid={{val=[{:#x}, {:#x}]}}",
      words[1], words[2], words[3], words[4], words[5], words[6], words[7] & kLow32Bits, words[7] >> 32);
  *out_ += fmt::format(", f_namelen={}, f_frsize={}, f_flags=", words[8], words[9]);
  flags("statfs_flags", words[10]);
  put("}");
}

void Decoder::show_entries() {
  pointer(value());
  if (state_->count == kUnknownCount) {
    is_missing_ = true;
    return put(" /* not read */");
  }
  *out_ += fmt::format(" /* {} entr{} */", state_->count, state_->count == 1 ? "y" : "ies");
}

void Decoder::show_fd_pair() {
  int32_t fds[2] = {};
  if (fetch(value(), fds)) *out_ += fmt::format("[{}, {}]", fds[0], fds[1]);
}

void Decoder::vector_at(uint64_t address, uint64_t count, uint64_t most_bytes) {
  if (address == 0) return put("NULL");
  if (count == 0) return put("[]");
  const uint64_t shown = std::min<uint64_t>(count, kMostElements);
  const auto vector = find(address, shown * 16);
  if (!vector) return;
  const std::string copy(*vector);
  put("[");
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) next();
    const uint64_t base = load_le(copy, i * 16), size_bytes = load_le(copy, i * 16 + 8);
    put("{iov_base=");
    const uint64_t filled = std::min(size_bytes, most_bytes);
    if (has_failed() && argument().is_filled)
      pointer(base);
    else
      bytes_at(base, filled);
    *out_ += fmt::format(", iov_len={}}}", size_bytes);
    most_bytes -= filled;
  }
  put(shown < count ? ", ...]" : "]");
}

void Decoder::show_iovec() { vector_at(value(), length(), UINT64_MAX); }
void Decoder::show_iovec_read() {
  vector_at(value(), length(), static_cast<uint64_t>(std::max<int64_t>(state_->result, 0)));
}

void Decoder::show_iovec_shape() {
  const uint64_t shown = std::min<uint64_t>(length(), kMostElements);
  if (shown == 0) return put("[]");
  const auto vector = find(value(), shown * 16);
  if (!vector) return;
  const std::string copy(*vector);
  put("[");
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) next();
    put("{iov_base=");
    pointer(load_le(copy, i * 16));
    *out_ += fmt::format(", iov_len={}}}", load_le(copy, i * 16 + 8));
  }
  put(shown < length() ? ", ...]" : "]");
}

// struct flock of 64-bit kernels (include/uapi/asm-generic/fcntl.h).
void Decoder::lock_at(uint64_t address, bool is_read) {
  struct Lock {
    int16_t type, whence;
    int64_t start, length;
    int32_t pid;
  } lock = {};
  if (!fetch(address, lock)) return;
  put("{l_type=");
  one_of("lock", static_cast<uint64_t>(lock.type));
  put(", l_whence=");
  one_of("whence", static_cast<uint64_t>(lock.whence));
  *out_ += fmt::format(", l_start={}, l_len={}", lock.start, lock.length);
  if (is_read) *out_ += fmt::format(", l_pid={}", lock.pid);
  put("}");
}

void Decoder::show_fcntl() {
  const std::string_view command = table_.set("fcntl").name_of(value() & kLow32Bits);
  const uint64_t more = value(index_ + 1);
  const bool is_lock =
      command == "F_SETLK" || command == "F_SETLKW" || command == "F_OFD_SETLK" || command == "F_OFD_SETLKW";
  const bool is_query = command == "F_GETLK" || command == "F_OFD_GETLK";
  if (is_query && !state_->has_returned) {
    is_missing_ = true;
    return;
  }
  one_of("fcntl", value() & kLow32Bits);
  if (command.starts_with("F_GET") && !is_query && command != "F_GETOWN_EX") return;
  next();
  if (command == "F_SETFD") return flags("fd_flags", more);
  if (command == "F_SETFL") return open_flags(more);
  if (command.starts_with("F_DUPFD") || command == "F_SETPIPE_SZ" || command == "F_SETOWN")
    return decimal(as_int(more));
  if (is_lock || is_query) return lock_at(more, is_query);
  hex(more);
}

void Decoder::show_ioctl() {
  const uint64_t request = value() & kLow32Bits, more = value(index_ + 1);
  const std::string_view name = table_.set("ioctl").name_of(request);
  if (!name.empty()) {
    put(name);
  } else {
    constexpr std::string_view kDirections[] = {"_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"};
    *out_ += fmt::format("_IOC({}, {:#x}, {:#x}, ", kDirections[request >> 30], request >> 8 & 0xff, request & 0xff);
    hex(request >> 16 & 0x3fff);
    put(")");
  }
  if (name == "FIOCLEX" || name == "FIONCLEX" || name == "TIOCEXCL" || name == "TIOCNXCL" || name == "TIOCNOTTY")
    return;
  next();
  const bool is_written = name == "FIONBIO" || name == "FIOASYNC" || name == "TIOCSPGRP" || name == "TIOCSPTLCK";
  const bool is_number =
      name == "FIONREAD" || name == "TIOCOUTQ" || name == "TIOCGPGRP" || name == "TIOCGSID" || name == "TIOCGPTN";
  int32_t number = 0;
  if (is_written || (is_number && !has_failed())) {
    if (fetch(more, number)) *out_ += fmt::format("[{}]", number);
    return;
  }
  if (name == "TIOCGWINSZ" && !has_failed()) {
    winsize size = {};
    if (fetch(more, size))
      *out_ += fmt::format("{{ws_row={}, ws_col={}, ws_xpixel={}, ws_ypixel={}}}", size.ws_row, size.ws_col,
                           size.ws_xpixel, size.ws_ypixel);
    return;
  }
  if (name.empty()) return hex(more);
  if (name == "FICLONE" || name == "TCFLSH" || name == "TCSBRK" || name == "TIOCSCTTY") return decimal(as_int(more));
  pointer(more);
}

// ---- Memory

void Decoder::show_map_flags() {
  constexpr uint64_t kTypeBits = 0xf;
  uint64_t bits = value() & kLow32Bits;
  one_of("map_type", bits & kTypeBits);
  bits &= ~kTypeBits;
  flags_in(table_.set("map"), bits, false);
  if (bits != 0) *out_ += fmt::format("|{:#x}", bits);
}

void Decoder::show_mremap() {
  constexpr uint64_t kFixedOrKept = 2 | 4;  // MREMAP_FIXED, MREMAP_DONTUNMAP
  flags("mremap", value());
  if (!(value() & kFixedOrKept)) return;
  next();
  pointer(value(index_ + 1));
}

void Decoder::show_ipc_key() {
  if (value() == 0) return put("IPC_PRIVATE");
  hex(value() & kLow32Bits);
}

void Decoder::show_ipc_flags() {
  uint64_t bits = value() & kLow32Bits;
  const uint64_t mode = bits & 0777;
  bits &= ~uint64_t{0777};
  if (flags_in(table_.set("ipc"), bits, true)) put("|");
  if (bits != 0) *out_ += fmt::format("{:#x}|", bits);
  octal(mode);
}

// ---- Processes and signals

// CPUs without fork() have the pointer for thread-local storage before the pointer for the thread
// (CONFIG_CLONE_BACKWARDS).
void Decoder::show_clone() {
  put("child_stack=");
  pointer(value(1));
  put(", flags=");
  uint64_t bits = value(0) & ~uint64_t{0xff};
  const uint64_t signal = value(0) & 0xff;
  const bool has_flags = flags_in(table_.set("clone"), bits, true);
  if (bits != 0) *out_ += fmt::format("{}{:#x}", has_flags ? "|" : "", bits);
  if (signal != 0) *out_ += fmt::format("{}{}", has_flags || bits != 0 ? "|" : "", signal_name(signal));
  if (value(0) == 0) put("0");
}

void Decoder::show_clone_result() {
  const bool is_backwards =
      kernel::find_arch(table_.arch().name) != nullptr &&
      std::ranges::none_of(table_.arch().syscalls, [](const auto& call) { return call.name == "fork"; });
  const uint64_t bits = value(0), thread_pointer = value(is_backwards ? 3 : 4), child = value(is_backwards ? 4 : 3);
  if (bits & CLONE_PARENT_SETTID) {
    put(", parent_tid=");
    if (has_failed())
      pointer(value(2));
    else
      *out_ += fmt::format("[{}]", state_->result);
  }
  if (bits & CLONE_SETTLS) *out_ += fmt::format(", tls={:#x}", thread_pointer);
  if (bits & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) {
    put(", child_tidptr=");
    pointer(child);
  }
}

// struct clone_args (include/uapi/linux/sched.h): flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size,
// tls, set_tid, set_tid_size, cgroup.
void Decoder::show_clone3() {
  uint64_t words[11] = {};
  if (!fetch(value(), words)) return;
  put("{flags=");
  flags("clone", words[0]);
  const auto member = [&](std::string_view name, uint64_t number) {
    *out_ += fmt::format(", {}=", name);
    pointer(number);
  };
  if (words[0] & CLONE_PIDFD) member("pidfd", words[1]);
  if (words[0] & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) member("child_tid", words[2]);
  if (words[0] & CLONE_PARENT_SETTID) member("parent_tid", words[3]);
  *out_ += fmt::format(", exit_signal={}", signal_name(words[4]));
  member("stack", words[5]);
  put(", stack_size=");
  hex(words[6]);
  if (words[0] & CLONE_SETTLS) member("tls", words[7]);
  put("}");
}

void Decoder::show_clone3_result() {
  const auto words = state_->memory.bytes(value(0), 8, true);
  if (!has_failed() && words && words->size() == 8 && load_le(*words) & CLONE_PARENT_SETTID)
    *out_ += fmt::format(" => {{parent_tid=[{}]}}", state_->result);
  next();
  unsigned_decimal(value(1));
}

void Decoder::show_wait_status() {
  if (value() == 0) return put("NULL");
  if (state_->result == 0) return pointer(value());
  int32_t status = 0;
  if (!fetch(value(), status)) return;
  if (WIFEXITED(status)) {
    *out_ += fmt::format("[{{WIFEXITED(s) && WEXITSTATUS(s) == {}}}]", WEXITSTATUS(status));
  } else if (WIFSIGNALED(status)) {
    *out_ +=
        fmt::format("[{{WIFSIGNALED(s) && WTERMSIG(s) == {}{}}}]", signal_name(static_cast<uint64_t>(WTERMSIG(status))),
                    WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
  } else if (WIFSTOPPED(status)) {
    *out_ +=
        fmt::format("[{{WIFSTOPPED(s) && WSTOPSIG(s) == {}}}]", signal_name(static_cast<uint64_t>(WSTOPSIG(status))));
  } else {
    put(WIFCONTINUED(status) ? "[{WIFCONTINUED(s)}]" : fmt::format("[{:#x}]", status));
  }
}

void Decoder::show_rusage() {
  int64_t words[18] = {};
  const bool is_wait = is_named("wait4") || is_named("waitid");
  if (is_wait && is_named("wait4") && state_->result == 0) return pointer(value());
  if (!fetch(value(), words)) return;
  put("{ru_utime=");
  time_of(words[0], words[1], "tv_usec");
  put(", ru_stime=");
  time_of(words[2], words[3], "tv_usec");
  if (!style_.is_verbose) return put(", ...}");
  constexpr std::string_view kNames[] = {"maxrss",  "ixrss",   "idrss",  "isrss",  "minflt",   "majflt", "nswap",
                                         "inblock", "oublock", "msgsnd", "msgrcv", "nsignals", "nvcsw",  "nivcsw"};
  for (size_t i = 0; i < std::size(kNames); ++i) *out_ += fmt::format(", ru_{}={}", kNames[i], words[4 + i]);
  put("}");
}

void Decoder::show_siginfo() {
  if (value() == 0) return put("NULL");
  const auto found = find(value(), 48);
  if (!found) return;
  const std::string info(*found);
  if (load_le(info, 0, 4) == 0) return put("{}");
  std::string text;
  std::string& out = *out_;
  Decoder::show_signal(static_cast<int>(load_le(info, 0, 4)), info, text);
  out_ = &out;
  put(std::string_view(text).substr(text.find('{')));
}

void Decoder::show_sigset() {
  uint64_t set = 0;
  if (fetch(value(), set)) signal_set(set);
}

// struct sigaction of 64-bit kernels: handler, flags, restorer, mask.
void Decoder::show_sigaction() {
  uint64_t words[4] = {};
  if (!fetch(value(), words)) return;
  constexpr uint64_t kRestorer = 0x4000000;  // SA_RESTORER
  put("{sa_handler=");
  constexpr std::string_view kHandlers[] = {"SIG_DFL", "SIG_IGN"};
  if (words[0] < std::size(kHandlers))
    put(kHandlers[words[0]]);
  else
    pointer(words[0]);
  put(", sa_mask=");
  signal_set(words[3]);
  put(", sa_flags=");
  flags("sa", words[1]);
  if (words[1] & kRestorer) {
    put(", sa_restorer=");
    pointer(words[2]);
  }
  put("}");
}

void Decoder::show_sigreturn() {}

void Decoder::show_stack() {
  uint64_t words[3] = {};
  if (!fetch(value(), words)) return;
  put("{ss_sp=");
  pointer(words[0]);
  put(", ss_flags=");
  flags("stack_flags", words[1] & kLow32Bits);
  *out_ += fmt::format(", ss_size={}}}", words[2]);
}

void Decoder::show_rlimit() {
  uint64_t limits[2] = {};
  if (!fetch(value(), limits)) return;
  const std::string_view infinite = is_named("prlimit64") ? "RLIM64_INFINITY" : "RLIM_INFINITY";
  const auto limit = [&](uint64_t number) {
    if (number == UINT64_MAX) return put(infinite);
    *out_ += number > 1024 && number % 1024 == 0 ? fmt::format("{}*1024", number / 1024) : fmt::format("{}", number);
  };
  put("{rlim_cur=");
  limit(limits[0]);
  put(", rlim_max=");
  limit(limits[1]);
  put("}");
}

void Decoder::show_cpus() {
  const uint64_t size_bytes = std::min<uint64_t>(length(), 128);
  if (size_bytes == 0) return pointer(value());
  const auto found = find(value(), size_bytes);
  if (!found) return;
  put("[");
  bool is_first = true;
  for (uint64_t cpu = 0; cpu < size_bytes * 8; ++cpu) {
    if (!(static_cast<unsigned char>((*found)[cpu / 8]) >> cpu % 8 & 1)) continue;
    if (!is_first) put(" ");
    is_first = false;
    unsigned_decimal(cpu);
  }
  put("]");
}

void Decoder::show_uids() {
  const uint64_t shown = std::min<uint64_t>(length(), kMostElements);
  if (shown == 0) return value() == 0 ? put("NULL") : put("[]");
  const auto found = find(value(), shown * 4);
  if (!found) return;
  put("[");
  for (uint64_t i = 0; i < shown; ++i) *out_ += fmt::format("{}{}", i > 0 ? ", " : "", load_le(*found, i * 4, 4));
  put(shown < length() ? ", ...]" : "]");
}

void Decoder::show_utsname() {
  utsname names = {};
  const auto found = find(value(), 390);
  if (!found) return;
  std::memcpy(&names, found->data(), sizeof(names));
  *out_ += "{sysname=";
  const auto member = [&](std::string_view name, const char* text) {
    put(name);
    quoted(std::string_view(text, ::strnlen(text, 65)), false);
  };
  member("", names.sysname);
  member(", nodename=", names.nodename);
  if (!style_.is_verbose) return put(", ...}");
  member(", release=", names.release);
  member(", version=", names.version);
  member(", machine=", names.machine);
  member(", domainname=", names.domainname);
  put("}");
}

void Decoder::show_sysinfo() {
  struct sysinfo now = {};
  if (!fetch(value(), now)) return;
  *out_ +=
      fmt::format("{{uptime={}, loads=[{}, {}, {}], totalram={}, freeram={}, sharedram={}, bufferram={}", now.uptime,
                  now.loads[0], now.loads[1], now.loads[2], now.totalram, now.freeram, now.sharedram, now.bufferram);
  *out_ += fmt::format(", totalswap={}, freeswap={}, procs={}, totalhigh={}, freehigh={}, mem_unit={}}}", now.totalswap,
                       now.freeswap, now.procs, now.totalhigh, now.freehigh, now.mem_unit);
}

// ---- Calls whose arguments depend on each other

void Decoder::show_futex() {
  const uint64_t operation = value(1) & FUTEX_CMD_MASK & kLow32Bits;
  pointer(value(0));
  next();
  const std::string_view name = table_.set("futex").name_of(operation);
  if (name.empty())
    hex(value(1) & kLow32Bits);
  else
    put(name);
  if (!name.empty() && value(1) & FUTEX_PRIVATE_FLAG) put("_PRIVATE");
  if (!name.empty() && value(1) & FUTEX_CLOCK_REALTIME) put("|FUTEX_CLOCK_REALTIME");
  const auto number = [&](size_t index) {
    next();
    unsigned_decimal(value(index) & kLow32Bits);
  };
  const auto timeout = [&] {
    next();
    time_at(value(3), "tv_nsec");
  };
  const auto bits = [&] {
    next();
    const uint64_t mask = value(5) & kLow32Bits;
    if (mask == kLow32Bits)
      put("FUTEX_BITSET_MATCH_ANY");
    else
      hex(mask);
  };
  switch (operation) {
    case FUTEX_WAIT: number(2); return timeout();
    case FUTEX_WAKE:
    case FUTEX_FD: return number(2);
    case FUTEX_WAIT_BITSET:
      number(2);
      timeout();
      return bits();
    case FUTEX_WAKE_BITSET: number(2); return bits();
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: return timeout();
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI: return;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI:
      number(2);
      number(3);
      next();
      pointer(value(4));
      if (operation != FUTEX_REQUEUE) number(5);
      return;
    default: break;
  }
  number(2);
  next();
  raw_arguments(3, 3);
}

void Decoder::show_arch_prctl() {
  one_of("arch_prctl", value() & kLow32Bits);
  next();
  pointer(value(1));
}

void Decoder::show_prctl() {
  const std::string_view name = table_.set("prctl").name_of(value() & kLow32Bits);
  one_of("prctl", value() & kLow32Bits);
  if (name == "PR_GET_DUMPABLE" || name == "PR_GET_KEEPCAPS" || name == "PR_GET_SECCOMP" ||
      name == "PR_GET_TIMERSLACK" || name == "PR_GET_SECUREBITS")
    return;
  next();
  if (name == "PR_SET_NAME") return text_at(value(1), false);
  if (name == "PR_SET_PDEATHSIG") return put(signal_name(value(1)));
  if (name == "PR_SET_DUMPABLE" || name == "PR_SET_KEEPCAPS" || name == "PR_SET_TIMERSLACK")
    return unsigned_decimal(value(1));
  if (name == "PR_SET_NO_NEW_PRIVS" || name == "PR_GET_NO_NEW_PRIVS") return raw_arguments(1, 4);
  if (name == "PR_SET_VMA") {
    put("PR_SET_VMA_ANON_NAME, ");
    pointer(value(2));
    next();
    unsigned_decimal(value(3));
    next();
    return text_at(value(4), false);
  }
  raw_arguments(1, 4);
}

}  // namespace espy::strace

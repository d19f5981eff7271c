// path(): the path of an open file.
//
// bpf_d_path() is allowed in a few kernel functions only, so this walks the dentries as the kernel does: from the file
// to its directory and so on to the root; at the root of a mounted file system it continues at the mount point. Names
// are found last first and written to a buffer from its end.
//
// Pipes, sockets and the like are in no directory: they are named by the kind of file and the number of the inode, as
// in /proc/PID/fd.
//
// Limits: unlike d_path(), the walk takes no locks, so a path that is renamed at the same time may be mixed from old
// and new names. Directories above a chroot are included, and deleted files are not marked.
#include <algorithm>
#include <bit>
#include <climits>
#include <functional>
#include <utility>

#include "builtins/builtin_support.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using spec::CallSite;
using types::AddressSpace;
using types::Kind;
using types::TypeId;

constexpr uint32_t kMaxNameBytes = 255;  // NAME_MAX
constexpr uint32_t kMaxPathBytes = PATH_MAX;
constexpr int64_t kMaxSteps = 64;  // names and mounts up to the root

// File systems without directories, and those that hold files without one (memfd_create(2)): linux/magic.h.
constexpr int64_t kPipeFs = 0x50495045, kSocketFs = 0x534f434b, kAnonInodeFs = 0x09041934;
constexpr int64_t kNamespaceFs = 0x6e736673, kPidFs = 0x50494446, kTmpFs = 0x01021994, kHugeTlbFs = 0x958458f6;

TypeId check_path(Checker& checker, const CallSite& call) {
  for (const char* tag : {"path", "dentry", "mount"}) {
    if (checker.kernel().find_struct(checker.types(), tag).valid()) continue;
    checker.error("no-btf", call.span, "`path` needs the type information of the kernel (BTF)");
    break;
  }
  const TypeId argument_type = checker.type(call.arguments[0]);
  const types::Type& type = checker.types()[argument_type];
  const bool is_path = type.kind == Kind::kStruct && type.name == "path";
  if (!is_path && type.kind != Kind::kPointer && type.kind != Kind::kInt)
    checker.error("wrong-argument", checker.ast()[call.arguments[0]].span,
                  "`path`'s first argument must be a `struct path` or its address, not " +
                      to_string(checker.types(), argument_type));
  uint64_t capacity = checker.config().limits.max_strlen;
  if (call.arguments.size() > 1) {
    const int64_t size = checker.integer(call.arguments[1]).value_or(1);
    if (size < 1 || size > int64_t{kMaxPathBytes})
      checker.error("path-length", checker.ast()[call.arguments[1]].span, "the size must be from 1 to 4096 bytes");
    else
      capacity = static_cast<uint64_t>(size);
  }
  return checker.types().string(static_cast<uint32_t>(std::min<uint64_t>(capacity, kMaxPathBytes)));
}

// Emits the walk from a file to the root. `begin` is the offset in the buffer of the path found so far.
class PathWalk {
 public:
  // The path keeps its last `kept_bytes`, with its NUL.
  PathWalk(Lowering& lowering, uint32_t size_bytes, uint32_t kept_bytes)
      : lowering_(lowering),
        ir_(lowering.ir()),
        size_(size_bytes),
        kept_(kept_bytes),
        buffer_(lowering.memory(size_ + 256, "path")) {
    ir_.store(1, at(ir_.constant(size_ - 1)), ir_.constant(0));
  }

  // Returns the address of the first byte of the path.
  ValueId walk(const MemoryRef& path) {
    const ValueId file = member(path.address, "path", {"dentry"});
    const ir::BlockId step = ir_.add_block("step");
    const ir::BlockId done = ir_.add_block("walked");
    const ValueId dentry = ir_.add_block_parameter(step), mount = ir_.add_block_parameter(step);
    const ValueId begin = ir_.add_block_parameter(step), count = ir_.add_block_parameter(step);
    const ValueId end_begin = ir_.add_block_parameter(done);
    ir_.jump(step, {file, mount_of(path.address), ir_.constant(size_ - 1), ir_.constant(0)});

    ir_.enter(step);
    const ir::BlockId cross = ir_.add_block("cross"), inside = ir_.add_block("inside"), next = ir_.add_block("next");
    const ValueId next_dentry = ir_.add_block_parameter(next), next_mount = ir_.add_block_parameter(next);
    const ValueId next_begin = ir_.add_block_parameter(next);
    ir_.branch(Condition::eq, dentry, member(mount, "mount", {"mnt", "mnt_root"}), cross, inside);

    ir_.enter(cross);  // the root of a file system: continue at its mount point, if there is one
    const ValueId above = member(mount, "mount", {"mnt_parent"});
    const ValueId place = member(mount, "mount", {"mnt_mountpoint"});
    const ir::BlockId up = ir_.add_block("up"), top = ir_.add_block("top");
    ir_.branch(Condition::eq, above, mount, top, up);
    ir_.enter(up);
    ir_.jump(next, {place, above, begin});
    ir_.enter(top);
    ir_.jump(done, {begin});

    ir_.enter(inside);
    const ValueId parent = member(dentry, "dentry", {"d_parent"});
    const ir::BlockId named = ir_.add_block("named"), lost = ir_.add_block("lost"), fits = ir_.add_block("fits");
    ir_.branch(Condition::eq, parent, dentry, lost, named);
    ir_.enter(named);
    const ValueId length = bounded(lowering_, member(dentry, "dentry", {"d_name", "len"}), kMaxNameBytes);
    ir_.branch(Condition::ult, length, begin, fits, lost);
    ir_.enter(lost);
    ir_.jump(done, {begin});
    ir_.enter(fits);
    ir_.jump(next, {parent, mount, prepend(begin, member(dentry, "dentry", {"d_name", "name"}), length)});

    ir_.enter(next);
    const ValueId counted = ir_.binary(Op::k_add, count, 1);
    const ir::BlockId again = ir_.add_block("again"), enough = ir_.add_block("enough");
    ir_.branch(Condition::ult, counted, kMaxSteps, again, enough);
    ir_.enter(again);
    ir_.jump(step, {next_dentry, next_mount, next_begin, counted});
    ir_.enter(enough);
    ir_.jump(done, {next_begin});

    ir_.enter(done);
    return finish(file, end_begin);
  }

 private:
  ValueId at(ValueId begin) { return ir_.binary(Op::k_add, buffer_, begin); }

  ValueId member(ValueId base, std::string_view tag, std::initializer_list<std::string_view> path) {
    return kernel_member(lowering_, base, lowering_.kernel().find_struct(lowering_.types(), tag), path).value;
  }

  // `struct path` points to a `struct vfsmount`, which is a member of the `struct mount`.
  ValueId mount_of(ValueId path) {
    const TypeId mount = lowering_.kernel().find_struct(lowering_.types(), "mount");
    lowering_.kernel().complete(lowering_.types(), mount);
    const auto part = types::find_member(lowering_.types(), mount, "mnt");
    return ir_.binary(Op::k_sub, member(path, "path", {"mnt"}), part ? part->offset_bits / 8 : 0);
  }

  ValueId prepend(ValueId begin, ValueId name, ValueId length) {
    const ValueId before = ir_.binary(Op::k_sub, ir_.binary(Op::k_sub, begin, length), 1);
    const ValueId place = ir_.binary(Op::k_and, before, size_ - 1);
    ir_.call(Helper::probe_read_kernel, {at(ir_.binary(Op::k_add, place, 1)), length, name});
    ir_.store(1, at(place), ir_.constant('/'));
    return place;
  }

  // ---- Files in no directory: what d_path() gets from dentry_operations::d_dname

  ValueId masked(ValueId offset) { return ir_.binary(Op::k_and, offset, size_ - 1); }

  // Writes constant text before `begin`. Returns where it begins.
  ValueId prepend_text(ValueId begin, std::string_view text) {
    const ValueId place = masked(ir_.binary(Op::k_sub, begin, static_cast<int64_t>(text.size())));
    const ValueId address = at(place);
    for (size_t i = 0; i < text.size(); ++i) ir_.store(1, address, ir_.constant(text[i]), static_cast<int64_t>(i));
    return place;
  }

  // Writes the name of a dentry before `begin`.
  ValueId prepend_name(ValueId begin, ValueId dentry) {
    const ValueId length = bounded(lowering_, member(dentry, "dentry", {"d_name", "len"}), kMaxNameBytes);
    const ValueId place = masked(ir_.binary(Op::k_sub, begin, length));
    ir_.call(Helper::probe_read_kernel, {at(place), length, member(dentry, "dentry", {"d_name", "name"})});
    return place;
  }

  // Writes "[NUMBER]", the inode, to the end of the buffer. These file systems have numbers of 32 bits.
  ValueId inode_number(ValueId dentry) {
    constexpr int64_t kMaxDigits = 10;
    ValueId number = ir_.binary(Op::k_and, member(dentry, "dentry", {"d_inode", "i_ino"}), UINT32_MAX);
    ValueId begin = ir_.constant(size_ - 3);
    ir_.store(1, buffer_, ir_.constant(']'), size_ - 2);
    for (int64_t i = 0; i < kMaxDigits; ++i) {
      const ValueId digit = ir_.binary(Op::k_add, ir_.binary(Op::k_umod, number, 10), '0');
      if (i > 0) begin = ir_.binary(Op::k_sub, begin, ir_.binary(Op::k_ne, number, 0));
      ir_.store(1, buffer_, digit, size_ - 3 - i);
      number = ir_.binary(Op::k_udiv, number, 10);
    }
    return prepend_text(begin, "[");
  }

  // "mnt:[4026531841]"
  ValueId namespace_name(ValueId dentry) {
    constexpr uint32_t kMaxBytes = 32;
    const ValueId space = member(dentry, "dentry", {"d_inode", "i_private"});
    const ValueId name = member(space, "ns_common", {"ops", "name"});
    const ValueId copy = lowering_.memory(kMaxBytes, "namespace");
    const ValueId length =
        bounded(lowering_, lowering_.read_string(copy, kMaxBytes, name, AddressSpace::kKernel, false), kMaxBytes - 1);
    const ValueId begin = prepend_text(inode_number(dentry), ":");
    const ValueId place = masked(ir_.binary(Op::k_sub, begin, length));
    ir_.call(Helper::probe_read_kernel, {at(place), length, name});
    return place;
  }

  ValueId nameless(ValueId dentry) {
    using Text = std::function<ValueId()>;
    const ValueId magic = member(dentry, "dentry", {"d_sb", "s_magic"});
    const ValueId end = ir_.constant(size_ - 1);
    const Text root = [&] { return prepend_text(end, "/"); };
    const Text deleted = [&] { return prepend_text(prepend_name(prepend_text(end, " (deleted)"), dentry), "/"); };
    const Text unlinked = [&] {
      const ValueId top = member(dentry, "dentry", {"d_sb", "s_root"});
      return lowering_.select(Condition::eq, dentry, top, root, deleted);
    };
    const std::pair<int64_t, Text> kinds[] = {
        {kPipeFs, [&] { return prepend_text(inode_number(dentry), "pipe:"); }},
        {kSocketFs, [&] { return prepend_text(inode_number(dentry), "socket:"); }},
        {kAnonInodeFs, [&] { return prepend_text(prepend_name(end, dentry), "anon_inode:"); }},
        {kPidFs, [&] { return prepend_text(end, "anon_inode:[pidfd]"); }},
        {kNamespaceFs, [&] { return namespace_name(dentry); }},
        {kTmpFs, unlinked},
        {kHugeTlbFs, unlinked}};
    Text choice = root;
    for (const auto& kind : kinds)
      choice = [this, magic, kind, otherwise = choice] {
        return lowering_.select(Condition::eq, magic, ir_.constant(kind.first), kind.second, otherwise);
      };
    return choice();
  }

  // Without any name, the path is that of a file in no directory, "/", or empty if there is no file.
  ValueId finish(ValueId file, ValueId begin) {
    const ValueId first = lowering_.select(
        Condition::eq, begin, ir_.constant(size_ - 1),
        [&] {
          return lowering_.select(
              Condition::eq, file, ir_.constant(0), [&] { return begin; }, [&] { return nameless(file); });
        },
        [&] { return begin; });
    const ValueId first_kept = ir_.constant(size_ - kept_);
    return at(lowering_.select(
        Condition::ult, first, first_kept, [&] { return first_kept; }, [&] { return first; }));
  }

  Lowering& lowering_;
  ir::Builder& ir_;
  uint32_t size_;  // a power of two
  uint32_t kept_;
  ValueId buffer_;
};

ValueId lower_path_into(Lowering& lowering, const CallSite& call, ValueId destination, uint32_t capacity_bytes) {
  const MemoryRef path = referenced_memory(lowering, call.arguments[0]);
  const uint32_t kept = lowering.types()[lowering.type(call.expr)].count;
  const uint32_t size = std::bit_ceil(std::max(kept, 2 * kMaxNameBytes));
  const ValueId first = PathWalk(lowering, size, kept).walk(path);
  return lowering.read_string(destination, capacity_bytes, first, AddressSpace::kKernel, false);
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any path(any path, literal int size = max_strlen)",
     .doc = "The path of a file, from a `struct path`: `path(args.file->f_path)`. A path that does not fit `size` "
            "bytes, with its NUL, keeps its end.",
     .check = check_path,
     .lower_into = lower_path_into,
     .kept = spec::Kept::kYes,
     .example = "rawtracepoint:sched_process_exec { print(path(args.bprm->file->f_path)); exit(); }"},
};

}  // namespace

extern const spec::BuiltinFamily kFile = {.title = "Files", .rows = kRows};

}  // namespace espy::builtins

// A file system with one file, `program`, the copy of another. Answers until SIGUSR1 comes, and nothing from then on.
// Usage: silent_files FILE DIRECTORY DEVICE; becomes a server in the background once it is mounted, and prints its
// process id.
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kRoot = 1, kProgram = 2, kMostBytes = 1 << 20 };

static char content[kMostBytes];
static ssize_t content_bytes;
static int device;
static volatile sig_atomic_t is_silent;

static void become_silent(int number) {
  (void)number;
  is_silent = 1;
}

static struct fuse_attr attributes_of(uint64_t node) {
  struct fuse_attr out = {.ino = node, .nlink = 1, .blksize = 4096};
  out.mode = node == kRoot ? S_IFDIR | 0755 : S_IFREG | 0755;
  if (node == kProgram) out.size = (uint64_t)content_bytes;
  return out;
}

static void reply(const struct fuse_in_header* request, int error, const void* body, size_t bytes) {
  static char out[sizeof(struct fuse_out_header) + kMostBytes];
  const struct fuse_out_header header = {(uint32_t)(sizeof(header) + bytes), error, request->unique};
  memcpy(out, &header, sizeof(header));
  memcpy(out + sizeof(header), body, bytes);
  if (write(device, out, header.len) < 0) perror("reply");
}

static void reply_to_read(const struct fuse_in_header* request, const struct fuse_read_in* read) {
  const uint64_t at = read->offset < (uint64_t)content_bytes ? read->offset : (uint64_t)content_bytes;
  const uint64_t left = (uint64_t)content_bytes - at;
  reply(request, 0, content + at, read->size < left ? read->size : left);
}

static void answer(const struct fuse_in_header* request, const void* body) {
  switch (request->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_out out = {.major = 7, .minor = 31, .max_write = 65536};
      return reply(request, 0, &out, sizeof(out));
    }
    case FUSE_GETATTR: {
      const struct fuse_attr_out out = {.attr = attributes_of(request->nodeid)};
      return reply(request, 0, &out, sizeof(out));
    }
    case FUSE_LOOKUP: {
      const struct fuse_entry_out out = {.nodeid = kProgram, .attr = attributes_of(kProgram)};
      if (strcmp(body, "program") != 0) return reply(request, -ENOENT, "", 0);
      return reply(request, 0, &out, sizeof(out));
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
      const struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
      return reply(request, 0, &out, sizeof(out));
    }
    case FUSE_READ: return reply_to_read(request, body);
    case FUSE_STATFS: {
      const struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};
      return reply(request, 0, &out, sizeof(out));
    }
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: return;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_READDIR:
    case FUSE_FLUSH: return reply(request, 0, "", 0);
    default: return reply(request, -ENOSYS, "", 0);
  }
}

int main(int argc, char** argv) {
  static char request[kMostBytes];
  char options[100];
  if (argc != 4) return 2;
  content_bytes = read(open(argv[1], O_RDONLY), content, sizeof(content));
  device = open(argv[3], O_RDWR);
  snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  if (content_bytes < 0 || mount("silent", argv[2], "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
    perror("silent_files");
    return 1;
  }
  if (fork() != 0) return 0;
  signal(SIGUSR1, become_silent);
  printf("%d\n", getpid());
  fflush(stdout);
  for (ssize_t got; (got = read(device, request, sizeof(request))) > 0 || errno == EINTR || errno == ENOENT;)
    if (got > 0 && !is_silent) answer((struct fuse_in_header*)request, request + sizeof(struct fuse_in_header));
  return 0;
}

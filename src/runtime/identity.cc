#include "runtime/identity.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

#include "base/strings.h"
#include "base/untrusted_file.h"

namespace espy::runtime {

namespace {

// 2^32 - 1 means "unchanged" in setresuid(2).
std::optional<uint32_t> parse_id(std::string_view text) {
  const auto id = parse_int(text);
  if (text.empty() || !id || *id < 0 || *id >= std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*id);
}

// The user with this name, or with this number as uid.
std::optional<Identity> find_user(std::string_view passwd, std::string_view name) {
  const auto number = parse_id(name);
  for (const std::string_view line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const auto user = parse_id(fields[2]), group = parse_id(fields[3]);
    if (!user || !group || (fields[0] != name && user != number)) continue;
    return Identity{std::string(fields[0]), *user, *group, {*group}};
  }
  return std::nullopt;
}

void add_groups(std::string_view group_file, Identity& identity) {
  for (const std::string_view line : split(group_file, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const auto members = split(fields[3], ',');
    const auto group = parse_id(fields[2]);
    if (!group || std::ranges::find(members, std::string_view(identity.name)) == members.end()) continue;
    if (std::ranges::find(identity.groups, *group) == identity.groups.end()) identity.groups.push_back(*group);
  }
}

}  // namespace

Result<Identity> find_identity(std::string_view name) {
  Identity out;
  const size_t colon = name.find(':');
  const auto user = parse_id(name.substr(0, colon));
  const auto group = colon == name.npos ? std::nullopt : parse_id(name.substr(colon + 1));
  if (user && group) {
    out = {std::string(name), *user, *group, {*group}};
  } else {
    const auto found = find_user(read_untrusted("/etc/passwd", kMaxTextBytes).value_or(""), name);
    if (!found)
      return fail(fmt::format("there is no user `{}` in /etc/passwd", name), 0,
                  "--user takes a name, or the numbers UID:GID");
    out = *found;
    add_groups(read_untrusted("/etc/group", kMaxTextBytes).value_or(""), out);
  }
  if (out.user == 0) return fail("--user takes another user than root");
  return out;
}

int become(const Identity& identity) {
  if (::setgroups(identity.groups.size(), identity.groups.data()) != 0) return errno;
  if (::setresgid(identity.group, identity.group, identity.group) != 0) return errno;
  return ::setresuid(identity.user, identity.user, identity.user) == 0 ? 0 : errno;
}

int drop_capabilities(uint64_t kept) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i)
    data[i].effective = data[i].permitted = static_cast<uint32_t>(kept >> (32 * i));
  return ::syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

}  // namespace espy::runtime

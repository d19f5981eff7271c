#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "base/files.h"

namespace espy {
namespace {

TEST(Mounts, HaveTheirPlaceAndTypeBehindAnyNumberOfTags) {
  for (const std::string_view tags : {"", "shared:1 ", "shared:1 master:7 "}) {
    const std::string line = "36 35 98:4 /mnt1 /mnt2 rw,noatime " + std::string(tags) + "- overlay /dev/root rw";
    const auto mount = parse_mount(line);
    ASSERT_TRUE(mount) << line;
    EXPECT_EQ(mount->id, 36u);
    EXPECT_EQ(mount->device, makedev(98, 4));
    EXPECT_EQ(mount->place, "/mnt2");
    EXPECT_EQ(mount->type, "overlay");
  }
}

TEST(Mounts, AreNotOtherLines) {
  for (const std::string_view line : {"", "-", "36 35 98:4 /mnt1 - ext4", "36 35 98 /mnt1 /mnt2 rw - ext4 a rw",
                                      "36 35 98:4 /mnt1 /mnt2 rw -", "x 35 98:4 /mnt1 /mnt2 rw - ext4 a rw"})
    EXPECT_FALSE(parse_mount(line)) << line;
}

}  // namespace
}  // namespace espy

// Profiles for speedscope.
#include <gtest/gtest.h>

#include "output_support.h"

namespace espy::output {
namespace {

Value stack(bool is_user, const std::vector<std::string>& inner_first) {
  StackValue out;
  out.is_user = is_user;
  for (const std::string& name : inner_first)
    out.frames.push_back(std::make_shared<Frame>(Frame{0x1000, name, 3, is_user ? "/usr/lib/libx.so" : "", {}}));
  return {std::move(out)};
}

TEST(Speedscope, MapsAreProfilesOfSharedFrames) {
  MapView view =
      keyed("@", {{tuple({stack(false, {"vfs_read"}), string("ca\xff"), stack(true, {"", "main"})}), {uint64_t{12}}},
                  {tuple({stack(false, {}), string("ca\xff"), stack(true, {"main"})}), {uint64_t{2}}}});
  view.kind = types::Kind::kCount;
  view.sampled = {"cpu", "nanoseconds", 10};
  MapView bytes = keyed("@bytes", {{stack(true, {"main"}), {int64_t{7}}}});
  bytes.kind = types::Kind::kSum;
  const std::string out = shown("speedscope", [&](Sink& sink) {
    sink.map(bytes);
    sink.map(view);
    sink.finish();
  });
  EXPECT_EQ(out,
            R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"espy )" ESPY_VERSION R"(",
"shared":{"frames":[{"name":"main","file":"/usr/lib/libx.so"},
{"name":"ca\\xff"},
{"name":"libx.so","file":"/usr/lib/libx.so"},
{"name":"vfs_read","file":"[kernel]"}]},
"profiles":[
{"type":"sampled","name":"@","unit":"nanoseconds","startValue":0,"endValue":140,
"samples":[[1,0],[1,0,2,3]],
"weights":[20,120]},
{"type":"sampled","name":"@bytes","unit":"bytes","startValue":0,"endValue":7,
"samples":[[0]],
"weights":[7]}]}
)");
}

}  // namespace
}  // namespace espy::output

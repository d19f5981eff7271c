#include "output/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#include "base/check.h"

namespace espy::output {

std::string deflated(std::string_view bytes, Wrapping wrapping) {
  constexpr int kWindowBits = 15, kGzipHeader = 16, kMemoryLevel = 8;
  z_stream stream = {};
  const int window = kWindowBits + (wrapping == Wrapping::kGzip ? kGzipHeader : 0);
  // Fails only if there is no memory.
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out;
  char buffer[16 * 1024];
  int state = Z_OK;
  do {
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(bytes.size(), UINT_MAX);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(part);
      bytes.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    state = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, sizeof(buffer) - stream.avail_out);
  } while (state == Z_OK || state == Z_BUF_ERROR);
  ::deflateEnd(&stream);
  CHECK(state == Z_STREAM_END);
  return out;
}

}  // namespace espy::output

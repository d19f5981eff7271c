// Handles requests that carry the context of a trace, and reads a file for each.
#include <fcntl.h>
#include <unistd.h>

#ifdef __clang__
#define noipa noinline
#endif

__attribute__((noipa)) int handle(const char* traceparent, int file) {
  char bytes[64];
  return (int)read(file, bytes, sizeof(bytes)) + (traceparent[0] != '0');
}

int main(void) {
  const int file = open("/dev/zero", O_RDONLY);
  int sum = 0;
  for (int i = 0; i < 3; i++) {
    char traceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    traceparent[34] = (char)('1' + i);
    sum += handle(traceparent, file);
  }
  return sum == 3 * 64 ? 0 : 1;
}

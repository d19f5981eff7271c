// A shared library on the way from a program to itself.
int through(int (*function)(int), int value);

int through(int (*function)(int), int value) {
  volatile int kept[40];
  kept[value % 40] = function(value);
  return kept[value % 40];
}

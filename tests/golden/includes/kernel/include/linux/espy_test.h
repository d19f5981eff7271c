#ifdef __KERNEL__
#define ESPY_TEST_LIMIT 17
struct espy_test {
  long a, b;
};
#endif

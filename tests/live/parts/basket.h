/* What programs/mangled.cc calls a Basket, for C. */
#include <stddef.h>
#define BASKET_LIMIT 50
struct basket {
  int total;
};
static inline size_t basket_size(void) { return sizeof(struct basket); }

#ifndef POINT_H
#define POINT_H
#include <stdint.h>
#define POINT_NAME_SIZE 12
#define POINT_NAME "origin"
#define POINT_SUM(a, b) ((a) + (b) + POINT_NAME_SIZE)
#define POINT_LARGE 0xffffffffffULL
#define POINT_LETTER 'p'
#define POINT_HALF 0.5
typedef struct point {
  uint8_t tag;
  uint32_t low : 3, high : 5;
  union {
    int x;
    char y;
  };
  char name[POINT_NAME_SIZE];
  int (*move)(int);
} point_t;
enum color { RED, GREEN = 7, BLUE = -1 };
static inline int twice(int x) { return 2 * x; }
#endif

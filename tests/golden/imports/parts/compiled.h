#pragma once
#include <limits.h>
#define COMPILED (INT_MAX - 1)
struct compiled { long a[3]; };
static inline int unused(void) { return 0; }
extern int variable;

#define SIDES 4
struct shape { char name[SIDES]; int sides; };

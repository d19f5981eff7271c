#define EXTRA 5

#define ESPY_BROKEN 5
this is not C;

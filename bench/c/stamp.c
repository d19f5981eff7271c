// stamp FILE: writes the time (CLOCK_MONOTONIC, ns) into FILE and ends. A tracer that is given it by -c starts it once
// all is attached, and ends when it has ended.
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;
	if (!file)
		return 1;
	fprintf(file, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
	return fclose(file) != 0;
}

/* Microseconds of dlopen of the library that the first word names: the median of many. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TIMES 3001

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

int main(int count, char **words)
{
	static double times[TIMES];

	for (int i = 0; count > 1 && i < TIMES; i++) {
		double start = now();
		void *library = dlopen(words[1], RTLD_NOW);

		times[i] = now() - start;
		if (!library) {
			puts(dlerror());
			return 1;
		}
		dlclose(library);
	}
	qsort(times, TIMES, sizeof *times, compare);
	printf("%.2f dlopen + constructor\n", times[TIMES / 2]);
	return 0;
}

/*
 * Microseconds of dlopen of the library that the first word names, and of an empty one that the second
 * names: what the loader takes for any. Both in turns; the medians of many.
 */
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

static double load(const char *name)
{
	double start = now(), took;
	void *library = dlopen(name, RTLD_NOW);

	took = now() - start;
	if (!library) {
		puts(dlerror());
		exit(1);
	}
	dlclose(library);
	return took;
}

int main(int count, char **words)
{
	static double times[TIMES], empty[TIMES];

	if (count != 3)
		return 2;
	for (int i = 0; i < TIMES; i++) {
		times[i] = load(words[1]);
		empty[i] = load(words[2]);
	}
	qsort(times, TIMES, sizeof *times, compare);
	qsort(empty, TIMES, sizeof *empty, compare);
	printf("%.2f dlopen + constructor\n", times[TIMES / 2]);
	printf("%.2f dlopen of an empty library\n", empty[TIMES / 2]);
	printf("%.2f difference of the two\n", times[TIMES / 2] - empty[TIMES / 2]);
	return 0;
}

/* Sources that rely on what <numa.h> includes, and have a guard of their own around it. */
#ifndef NUMA_H
#define NUMA_H
#include <numa.h>
#endif
#include <numa.h>
#include <numaif.h>

int main(void)
{
	char *text = (char *)malloc(8);
	int all_good;

	if (!text)
		abort();
	memset(text, 0, 8);
	all_good = numa_available() >= -1 && atoi("7") == 7 && strlen(text) == 0 && MPOL_BIND == 2;
	free(text);
	exit(all_good ? EXIT_SUCCESS : EXIT_FAILURE);
}

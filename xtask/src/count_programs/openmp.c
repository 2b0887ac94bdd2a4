/* Five sweeps over 16 MiB by two threads of OpenMP, filled by the same threads. */
#include <stdio.h>
#include <stdlib.h>

#include "pages.h"

#define COUNT (2ul << 20)

int main(void)
{
	double *numbers = aligned_alloc(4096, COUNT * sizeof *numbers), sum = 0;

	if (!numbers)
		return 1;
	keep(numbers, COUNT * sizeof *numbers);
#pragma omp parallel for num_threads(2) schedule(static)
	for (size_t at = 0; at < COUNT; at++)
		numbers[at] = 1;
	for (int round = 0; round < 5; round++)
#pragma omp parallel for num_threads(2) schedule(static) reduction(+ : sum)
		for (size_t at = 0; at < COUNT; at++)
			sum += numbers[at];
	report("openmp");
	printf("%.0f\n", sum);
	return sum == 5.0 * COUNT ? 0 : 1;
}

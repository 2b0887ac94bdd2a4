/* The triad of STREAM on ranks: a = b + s * c. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 1 << 20 };

int main(int count, char **words) {
    MPI_Init(&count, &words);
    double *a = malloc(LENGTH * sizeof *a), *b = malloc(LENGTH * sizeof *b), *c = malloc(LENGTH * sizeof *c);
    for (long at = 0; at < LENGTH; at++)
        a[at] = 1, b[at] = 2, c[at] = 3;
    for (long round = 0;; round++) {
        for (long at = 0; at < LENGTH; at++)
            a[at] = b[at] + 3 * c[at];
        double sum = 0, own = a[round % LENGTH];
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (sum < 0)
            puts("never");
    }
    MPI_Finalize();
    return 0;
}

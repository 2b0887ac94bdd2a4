/* Two processes and a segment that both use: one writes, the other reads. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 64 << 20 };

int main(void) {
    char *shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(shared, 1, SIZE);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        for (volatile long sum = 0;; usleep(1000))
            for (long at = 0; at < SIZE; at += 256)
                sum += shared[at];
    }
    for (char value = 0;; value++, usleep(1000))
        for (long at = 0; at < SIZE; at += 256)
            shared[at] = value;
}

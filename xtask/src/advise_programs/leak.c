/* A program that grows steadily, and reads what it has. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 64 << 20, STEP = 256 << 10, MOST = 4096 };

int main(void) {
    static char *parts[MOST];
    char *first = malloc(FIRST);
    memset(first, 1, FIRST);
    for (int count = 0; count < MOST; count++) {
        parts[count] = malloc(STEP);
        memset(parts[count], 1, STEP);
        volatile long sum = 0;
        /* About a second of work on an emulated CPU. */
        for (int round = 0; round < 40; round++)
            for (long at = 0; at < FIRST; at += 512)
                sum += first[at];
    }
    return 0;
}

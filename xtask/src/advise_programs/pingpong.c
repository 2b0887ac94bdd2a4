/* Two real-time threads that hand a message back and forth through locked memory. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 48 << 20 };
static char *memory;
static int turn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *player(void *own) {
    struct sched_param urgent = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &urgent);
    for (unsigned long at = 0;; at = (at + 4096) % SIZE) {
        pthread_mutex_lock(&lock);
        while (turn != (int)(long)own)
            pthread_cond_wait(&changed, &lock);
        for (int part = 0; part < 4096; part += 64)
            memory[at + part]++;
        turn = !turn;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        if (at % (256 << 10) == 0)
            usleep(1000);
    }
    return NULL;
}

int main(void) {
    memory = malloc(SIZE);
    memset(memory, 1, SIZE);
    mlockall(MCL_CURRENT);
    pthread_t other;
    pthread_create(&other, NULL, player, (void *)1);
    player((void *)0);
    return 0;
}

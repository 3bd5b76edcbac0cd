/* forward NANOSECONDS FD…: forwards IPv4 packets between TUN devices after a delay. The last byte of the destination
 * address is the number of the device, from 1. Ends when standard input is closed. */

#define _GNU_SOURCE
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 4096, MOST = 65536, DEVICES = 16 };

typedef struct {
    int64_t due;
    int to, size;
    unsigned char *bytes;
} Packet;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int count, char **words) {
    static Packet waiting[PLACES]; /* a ring buffer: all packets wait for the same time, so the first one is due first */
    static unsigned char bytes[MOST];
    const int64_t delay = count > 1 ? atoll(words[1]) : 0;
    const int devices = count - 2;
    uint64_t first = 0, next = 0;
    struct pollfd polled[DEVICES + 1] = {{.fd = 0, .events = POLLIN}};
    if (devices < 1 || devices > DEVICES) return 2;
    for (int i = 0; i < devices; i++) polled[i + 1] = (struct pollfd){.fd = atoi(words[i + 2]), .events = POLLIN};
    for (;;) {
        struct timespec left = {1, 0};
        if (first < next) {
            const int64_t ns = waiting[first % PLACES].due - now();
            left = (struct timespec){0, ns > 0 ? ns : 0};
        }
        ppoll(polled, (nfds_t)devices + 1, &left, NULL);
        if (polled[0].revents) return 0;
        for (int i = 1; i <= devices; i++) {
            if (!polled[i].revents) continue;
            for (ssize_t size; (size = read(polled[i].fd, bytes, MOST)) > 0;) {
                const int to = bytes[19];
                if (bytes[0] >> 4 != 4 || to < 1 || to > devices || next - first == PLACES) continue;
                unsigned char *copy = malloc((size_t)size);
                if (!copy) return 1;
                waiting[next++ % PLACES] = (Packet){now() + delay, to, (int)size, memcpy(copy, bytes, (size_t)size)};
            }
        }
        while (first < next && waiting[first % PLACES].due <= now()) {
            const Packet packet = waiting[first++ % PLACES];
            /* if the device accepts no more, the packet is lost, as on a network, and TCP sends it again */
            const ssize_t written = write(polled[packet.to].fd, packet.bytes, (size_t)packet.size);
            (void)written;
            free(packet.bytes);
        }
    }
}

/* The plainest client there can be, to compare with: poll, raw sockets, no JSON.
 *
 *   plain_client PORT STREAMS REQUESTS TOKENS
 *
 * STREAMS at a time, closed loop, 256 tokens in. A read with `"content":"` and text after it counts as a token's;
 * the answer ends with the chunk of length 0. Prints one JSON line: TTFT and time per token in ms, CPU seconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

typedef struct { double sent, first, last; int reads; char tail[8]; } Stream;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (void *)&where, sizeof where)) { perror("connect"); exit(1); }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int build(char *into, int tokens) {
    char body[4096];
    int size = sprintf(body, "{\"model\":\"truth\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_tokens\":%d,\"messages\":[{\"role\":\"user\",\"content\":\"", tokens);
    for (int i = 0; i < 256; i++) size += sprintf(body + size, "word%d ", i % 10);
    size += sprintf(body + size, "\"}]}");
    return sprintf(into, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", size, body);
}

static void begin(int fd, Stream *s, const char *request, int size) {
    memset(s, 0, sizeof *s);
    if (send(fd, request, size, MSG_NOSIGNAL) != size) { perror("send"); exit(1); }
    s->sent = now();
}

/* Whether the answer is whole after these bytes. */
static int take(Stream *s, char *part, int size, double at) {
    char *content = memmem(part, size, "\"content\":\" ", 12);
    if (content) {
        if (!s->first) s->first = at;
        s->last = at;
        s->reads++;
    }
    char end[16];
    int keep = strlen(s->tail), add = size < 7 ? size : 7;
    memcpy(end, s->tail, keep);
    memcpy(end + keep, part + size - add, add);
    end[keep + add] = 0;
    int from = keep + add > 7 ? keep + add - 7 : 0;
    strcpy(s->tail, end + from);
    return strlen(s->tail) >= 5 && !strcmp(s->tail + strlen(s->tail) - 5, "0\r\n\r\n");
}

static int rising(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "plain_client PORT STREAMS REQUESTS TOKENS\n"), 2;
    int port = atoi(argv[1]), streams = atoi(argv[2]), requests = atoi(argv[3]), tokens = atoi(argv[4]);
    static char request[8192], part[65536];
    int size = build(request, tokens), begun = 0, ended = 0;
    struct pollfd *fds = calloc(streams, sizeof *fds);
    Stream *all = calloc(streams, sizeof *all);
    double *ttft = calloc(requests, sizeof *ttft), sum = 0, itl = 0;
    for (int i = 0; i < streams; i++) fds[i] = (struct pollfd){.fd = open_to(port), .events = POLLIN};
    double zero = now();
    for (int i = 0; i < streams && begun < requests; i++, begun++) begin(fds[i].fd, &all[i], request, size);
    while (ended < requests) {
        poll(fds, streams, -1);
        for (int i = 0; i < streams; i++) {
            if (!fds[i].revents) continue;
            int n = recv(fds[i].fd, part, sizeof part, 0);
            double at = now();
            if (n <= 0) { fprintf(stderr, "a stream was cut\n"); return 1; }
            if (!take(&all[i], part, n, at)) continue;
            ttft[ended++] = (all[i].first - all[i].sent) * 1e3;
            itl += tokens > 1 ? (all[i].last - all[i].first) * 1e3 / (tokens - 1) : 0;
            if (begun < requests) begun++, begin(fds[i].fd, &all[i], request, size);
        }
    }
    double wall = now() - zero;
    for (int i = 0; i < requests; i++) sum += ttft[i];
    qsort(ttft, requests, sizeof *ttft, rising);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"ttft_mean\": %.4f, \"ttft_p50\": %.4f, \"ttft_p99\": %.4f, \"tpot_mean\": %.5f, \"cpu\": %.4f, \"wall\": %.3f, \"tokens\": %ld}\n",
           sum / requests, ttft[requests / 2], ttft[(int)(requests * 0.99)], itl / requests, cpu, wall, (long)requests * tokens);
    return 0;
}

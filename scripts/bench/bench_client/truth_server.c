/* A server whose times are known: streams chat or text completions at exact moments and logs every send.
 *
 *   truth_server PORT [--ttft MS] [--itl MS] [--tokens N] [--per-chunk N] [--errors EVERY] [--stall EVERY MS]
 *                [--log FILE] [--late-head]
 *
 * Times are absolute: token k of a request that was read whole at t goes out at t + ttft + k * itl, whatever came
 * between. `max_tokens` of the body wins over --tokens. --per-chunk: tokens in one event (speculative decoding).
 * --errors: every so many-th request gets 500. --stall: every so many-th request stops once, in its middle.
 * --late-head: the response's head goes out with the first token, not at once.
 * The log, text, written at SIGTERM: request, event, ns of CLOCK_MONOTONIC before its send; event -1: read whole.
 * At the same time a line on stdout: CPU seconds, sends, how late they were (mean, most, in microseconds).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 8192, ROOM = 65536 };
typedef long long ns_t;

static struct {
    double ttft, itl, stall;
    int port, tokens, per_chunk, errors, stalls, late_head;
    const char *log;
} option = {50, 20, 0, 8000, 128, 1, 0, 0, 0, NULL};

typedef struct {
    int fd, request, tokens, sent, chat, usage, heap_at;
    long have; /* bytes in `in` */
    ns_t begun, due;
    char *in;
} Connection;

typedef struct { int request, event; ns_t at; } Entry;

static Connection *connections[CONNECTIONS], *heap[CONNECTIONS];
static int heap_size, requests;
static Entry *entries;
static long entry_count, entry_room;
static ns_t late_sum, late_most;
static long late_count;
static volatile sig_atomic_t stopping;

static ns_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void log_event(int request, int event, ns_t at) {
    if (!option.log) return;
    if (entry_count == entry_room) entries = realloc(entries, (entry_room = entry_room ? entry_room * 2 : 1 << 20) * sizeof(Entry));
    entries[entry_count++] = (Entry){request, event, at};
}

/* A heap of connections by the time of their next send. */
static void place(int at, Connection *c) { heap[at] = c; c->heap_at = at; }

static void sift(int at) {
    Connection *c = heap[at];
    while (at > 0 && heap[(at - 1) / 2]->due > c->due) { place(at, heap[(at - 1) / 2]); at = (at - 1) / 2; }
    for (int child; (child = 2 * at + 1) < heap_size; at = child) {
        if (child + 1 < heap_size && heap[child + 1]->due < heap[child]->due) child++;
        if (heap[child]->due >= c->due) break;
        place(at, heap[child]);
    }
    place(at, c);
}

static void schedule(Connection *c, ns_t due) {
    c->due = due;
    if (c->heap_at < 0) place(heap_size++, c);
    sift(c->heap_at);
}

static void unschedule(Connection *c) {
    int at = c->heap_at;
    if (at < 0) return;
    c->heap_at = -1;
    if (at != --heap_size) { place(at, heap[heap_size]); sift(at); }
}

static void drop(Connection *c) {
    unschedule(c);
    connections[c->fd] = NULL;
    close(c->fd);
    free(c->in);
    free(c);
}

static int put(Connection *c, const char *text, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = send(c->fd, text + done, size - done, MSG_NOSIGNAL);
        if (n > 0) { done += n; continue; }
        if (n < 0 && errno == EAGAIN) { usleep(50); continue; }
        return drop(c), 0;
    }
    return 1;
}

static const char HEAD[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

static int event(char *into, const char *data) { return sprintf(into, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data); }

static int token_event(Connection *c, char *into, int last, int count) {
    char data[2048], text[512] = "";
    for (int i = 0; i < count && i < 32; i++) strcat(text, " token");
    const char *finish = last ? "\"length\"" : "null";
    if (c->chat)
        sprintf(data, "{\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"created\":1795233952,\"model\":\"truth\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,\"finish_reason\":%s,\"token_ids\":null}]}", c->request, text, finish);
    else
        sprintf(data, "{\"id\":\"cmpl-%d\",\"object\":\"text_completion\",\"created\":1795233952,\"model\":\"truth\",\"choices\":[{\"index\":0,\"text\":\"%s\",\"logprobs\":null,\"finish_reason\":%s,\"stop_reason\":null}]}", c->request, text, finish);
    return event(into, data);
}

static int closing_events(Connection *c, char *into) {
    int size = 0;
    char data[512];
    if (c->usage) {
        sprintf(data, "{\"id\":\"chatcmpl-%d\",\"object\":\"%s\",\"created\":1795233952,\"model\":\"truth\",\"choices\":[],\"usage\":{\"prompt_tokens\":256,\"total_tokens\":%d,\"completion_tokens\":%d}}", c->request, c->chat ? "chat.completion.chunk" : "text_completion", 256 + c->tokens, c->tokens);
        size += event(into, data);
    }
    size += event(into + size, "[DONE]");
    return size + sprintf(into + size, "0\r\n\r\n");
}

/* The next event of a stream is due. */
static void play(Connection *c) {
    char out[8192];
    int size = 0, first = c->sent == 0, count = c->tokens - c->sent < option.per_chunk ? c->tokens - c->sent : option.per_chunk;
    if (first && option.late_head) size += sprintf(out, "%s", HEAD);
    if (first && c->chat)
        size += event(out + size, "{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\"created\":1795233952,\"model\":\"truth\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}");
    int last = c->sent + count == c->tokens;
    size += token_event(c, out + size, last, count);
    if (last) size += closing_events(c, out + size);
    ns_t at = now(), late = at - c->due;
    late_sum += late;
    late_count++;
    if (late > late_most) late_most = late;
    log_event(c->request, c->sent, at);
    c->sent += count;
    if (last) unschedule(c);
    else {
        int stalls = option.stalls && c->request % option.stalls == 0 && c->sent >= c->tokens / 2;
        schedule(c, c->begun + (ns_t)((option.ttft + option.itl * c->sent + (stalls ? option.stall : 0)) * 1e6));
    }
    put(c, out, size);
}

static void answer(Connection *c, const char *status, const char *body) {
    char out[1024];
    put(c, out, sprintf(out, "HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s", status, strlen(body), body));
}

static const char WHOLE[] = "{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion\",\"created\":1795233952,\"model\":\"truth\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\" token\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":256,\"total_tokens\":257,\"completion_tokens\":1}}";

/* The whole request is in c->in: head of `head` bytes, then the body. */
static void begin(Connection *c, char *body) {
    c->begun = now();
    c->have = 0;
    if (!strncmp(c->in, "GET ", 4)) return answer(c, "200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"truth\",\"object\":\"model\",\"owned_by\":\"us\",\"max_model_len\":131072}]}");
    if (!strstr(c->in, "completions")) return answer(c, "404 Not Found", "{\"detail\":\"Not Found\"}");
    c->request = requests++;
    log_event(c->request, -1, c->begun);
    if (!strstr(body, "\"stream\": true") && !strstr(body, "\"stream\":true")) return answer(c, "200 OK", WHOLE);
    if (option.errors && c->request % option.errors == option.errors - 1) return answer(c, "500 Internal Server Error", "{\"error\":{\"message\":\"meant to fail\",\"code\":500}}");
    c->chat = !!strstr(c->in, "/chat/");
    c->usage = !!strstr(body, "include_usage");
    c->tokens = option.tokens;
    char *limit = strstr(body, "\"max_tokens\"");
    if (!limit) limit = strstr(body, "\"max_completion_tokens\"");
    if (limit && (limit = strchr(limit, ':'))) c->tokens = atoi(limit + 1);
    if (c->tokens < 1) c->tokens = 1;
    c->sent = 0;
    schedule(c, c->begun + (ns_t)(option.ttft * 1e6));
    if (!option.late_head) put(c, HEAD, sizeof HEAD - 1);
}

static void take(Connection *c) {
    ssize_t n = recv(c->fd, c->in + c->have, ROOM - 1 - c->have, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return drop(c);
    c->in[c->have += n] = 0;
    char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
    if (!end) return;
    char *length = strcasestr(c->in, "content-length:");
    long body = length && length < end ? atol(length + 15) : 0, head = end + 4 - c->in;
    if (head + body >= ROOM) return answer(c, "413 Too Large", "{}"), drop(c);
    if (c->have >= head + body) begin(c, end + 4);
}

static void welcome(int poll, int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        if (fd >= CONNECTIONS) { close(fd); continue; }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Connection *c = connections[fd] = calloc(1, sizeof *c);
        *c = (Connection){.fd = fd, .heap_at = -1, .in = malloc(ROOM)};
        struct epoll_event interest = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &interest);
    }
}

static void report(void) {
    FILE *file = option.log ? fopen(option.log, "w") : NULL;
    for (long i = 0; file && i < entry_count; i++) fprintf(file, "%d %d %lld\n", entries[i].request, entries[i].event, entries[i].at);
    if (file) fclose(file);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"cpu\": %.3f, \"sends\": %ld, \"late_mean_us\": %.1f, \"late_most_us\": %.1f}\n",
           used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6, late_count,
           late_count ? late_sum / 1e3 / late_count : 0, late_most / 1e3);
}

static void stop(int signal_number) { (void)signal_number; stopping = 1; }

static void options(int argc, char **argv) {
    option.port = argc > 1 ? atoi(argv[1]) : 8000;
    for (int i = 2; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "0";
        if (!strcmp(name, "--late-head")) { option.late_head = 1; continue; }
        i++;
        if (!strcmp(name, "--ttft")) option.ttft = atof(value);
        else if (!strcmp(name, "--itl")) option.itl = atof(value);
        else if (!strcmp(name, "--tokens")) option.tokens = atoi(value);
        else if (!strcmp(name, "--per-chunk")) option.per_chunk = atoi(value);
        else if (!strcmp(name, "--errors")) option.errors = atoi(value);
        else if (!strcmp(name, "--log")) option.log = value;
        else if (!strcmp(name, "--stall")) { option.stalls = atoi(value); option.stall = atof(argv[++i]); }
        else { fprintf(stderr, "unknown option %s\n", name); exit(2); }
    }
}

static int listen_at(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (void *)&where, sizeof where) || listen(fd, 4096)) { perror("listen"); exit(1); }
    return fd;
}

int main(int argc, char **argv) {
    options(argc, argv);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1);
    struct rlimit files = {CONNECTIONS, CONNECTIONS};
    setrlimit(RLIMIT_NOFILE, &files);
    int listener = listen_at(option.port), poll = epoll_create1(0);
    struct epoll_event ready[256], interest = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &interest);
    puts("ready");
    fflush(stdout);
    while (!stopping) {
        for (int few = 0; few < 32 && heap_size && heap[0]->due <= now(); few++) play(heap[0]);
        ns_t left = heap_size ? heap[0]->due - now() : 1000000000LL;
        if (left < 0) left = 0;
        struct timespec wait = {left / 1000000000LL, left % 1000000000LL};
        int count = syscall(SYS_epoll_pwait2, poll, ready, 256, &wait, NULL, 0);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) welcome(poll, listener);
            else if (connections[fd]) take(connections[fd]);
        }
    }
    report();
    return 0;
}

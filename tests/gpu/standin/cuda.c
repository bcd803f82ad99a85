/* A driver for GPUs that are not here: what CUDA's public driver API says of memory, streams and
 * contexts, held to its word. Memory of a device cannot be touched by the CPU; copies happen when
 * somebody waits; every call is logged with its thread and context; any call can be made to fail.
 * What a program does wrong is a line of the log that begins with "!". Nothing is computed.
 *
 * Environment: STANDIN_CARDS (1), STANDIN_MIG (1 where the first card is one slice).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100,
       INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500 };
enum { CARDS = 8, DEEP = 16 };

typedef struct context { int device, retained; unsigned flags; } context;
typedef struct block {
    char *address, *shadow; /* what programs get, and what lies there; for host memory the same */
    size_t size;
    context *owner; /* NULL for host memory */
    struct block *next;
} block;
typedef struct copy { char *to, *from; size_t size; struct copy *next; } copy;
typedef struct stream { context *owner; unsigned flags; copy *first; struct stream *next; } stream;
typedef struct fault { char name[40]; int number, code, forever; struct fault *next; } fault;
typedef struct { char bytes[16]; } uuid;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static context contexts[CARDS];
static block *blocks;
static stream *streams;
static fault *faults;
static int ready, seen[CARDS], count, broken;
static size_t room = 1u << 30;
static char *lines;
static size_t length;
static __thread context *stack[DEEP];
static __thread int depth;

static void note(const char *form, ...) {
    char line[256];
    va_list words;
    va_start(words, form);
    size_t more = (size_t)vsnprintf(line, sizeof line - 1, form, words);
    va_end(words);
    lines = realloc(lines, length + more + 2);
    memcpy(lines + length, line, more);
    strcpy(lines + length + more, "\n");
    length += more + 1;
}

static context *current(void) { return depth ? stack[depth - 1] : NULL; }

/* Begin a call: log it, and give what it is to fail with; 0 for nothing. */
static int enter(const char *name, int in_context) {
    pthread_mutex_lock(&lock);
    note("%s thread=%d context=%d", name, (int)gettid(), current() ? current()->device : -1);
    for (fault *each = faults; each; each = each->next)
        if (!strcmp(each->name, name) && each->number && !--each->number) {
            if (each->forever) broken = each->code;
            return each->code;
        }
    if (!ready && strcmp(name, "cuInit")) return NOT_INITIALIZED;
    if (!in_context) return 0;
    if (broken) return broken;
    if (!current()) note("! %s without a context", name);
    return current() ? 0 : INVALID_CONTEXT;
}
static int leave(int code) { pthread_mutex_unlock(&lock); return code; }
static int wrong(const char *what, int code) { note("! %s", what); return leave(code); }
#define BEGIN(in_context) { int code_ = enter(__func__, in_context); if (code_) return leave(code_); }
#define CHECK(fine, code) if (!(fine)) return wrong(#fine, code)

/* The block that holds all of a piece of memory. */
static block *holds(const void *address, size_t size, context *owner) {
    for (block *each = blocks; each; each = each->next)
        if (each->owner == owner && each->address <= (char *)address &&
            (char *)address + size <= each->address + each->size) return each;
    return NULL;
}
static int exists(const stream *wanted) {
    for (stream *each = streams; each; each = each->next)
        if (each == wanted) return each->owner == current();
    return 0;
}
static int pending(const block *held) {
    for (stream *each = streams; each; each = each->next)
        for (copy *one = each->first; one; one = one->next)
            if ((one->to >= held->shadow && one->to < held->shadow + held->size) ||
                (one->from >= held->shadow && one->from < held->shadow + held->size)) return 1;
    return 0;
}
static block *add(size_t size, context *owner) {
    block *made = calloc(1, sizeof *made);
    int file = memfd_create("memory", 0);
    if (ftruncate(file, (off_t)size)) abort();
    made->shadow = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    made->address = owner ? mmap(NULL, size, PROT_NONE, MAP_SHARED, file, 0) : made->shadow;
    close(file);
    made->size = size, made->owner = owner, made->next = blocks;
    return blocks = made;
}
static void drop(block *held) {
    block **link = &blocks;
    while (*link != held) link = &(*link)->next;
    *link = held->next;
    munmap(held->shadow, held->size);
    if (held->owner) munmap(held->address, held->size);
    free(held);
}
static void identity(int card, uuid *found) {
    int slice = card == 0 && getenv("STANDIN_MIG");
    for (int i = 0; i < 16; i++) found->bytes[i] = (char)i;
    found->bytes[0] = (char)((slice ? 0xb0 : 0xa0) + card);
}
static int named(int card, const char *word) {
    uuid own;
    char text[48];
    identity(card, &own);
    int at = sprintf(text, "%s", card == 0 && getenv("STANDIN_MIG") ? "MIG-" : "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(text + at, "%s%02x", strchr("\4\6\10\12", i) && i ? "-" : "",
                      (unsigned char)own.bytes[i]);
    return !strncmp(text, word, strlen(word)) && strlen(word) > 4;
}

int cuInit(unsigned flags) {
    BEGIN(0);
    CHECK(!flags, INVALID_VALUE);
    if (ready) return leave(0);
    const char *given = getenv("STANDIN_CARDS"), *order = getenv("CUDA_DEVICE_ORDER");
    int cards = given ? atoi(given) : 1, by_bus = order && !strcmp(order, "PCI_BUS_ID");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int all[CARDS];
    for (int i = 0; i < cards; i++) all[i] = by_bus ? i : cards - 1 - i; /* the fastest first */
    if (!visible) {
        memcpy(seen, all, sizeof all);
        count = cards;
    } else {
        char words[512], *rest = words;
        snprintf(words, sizeof words, "%s", visible);
        for (char *word; (word = strtok_r(rest, ", ", &rest)) && count < CARDS;) {
            int found = -1, several = 0;
            char *end;
            long index = strtol(word, &end, 10);
            if (!*end && index >= 0 && index < cards) found = all[index];
            for (int i = 0; *end && i < cards; i++) if (named(i, word)) found = i, several++;
            if (found < 0 || several > 1) break;
            seen[count++] = found;
        }
    }
    if (getenv("STANDIN_MIG") && count) count = 1;
    ready = 1;
    return leave(count ? 0 : NO_DEVICE);
}
int cuDriverGetVersion(int *version) { BEGIN(0); *version = 13000; return leave(0); }
int cuDeviceGetCount(int *found) { BEGIN(0); *found = count; return leave(0); }
int cuDeviceGet(int *device, int number) {
    BEGIN(0);
    CHECK(number >= 0 && number < count, INVALID_DEVICE);
    *device = number;
    return leave(0);
}
int cuDeviceGetUuid_v2(uuid *found, int device) {
    BEGIN(0);
    CHECK(device >= 0 && device < count, INVALID_DEVICE);
    identity(seen[device], found);
    return leave(0);
}
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    BEGIN(0);
    CHECK(device >= 0 && device < count, INVALID_DEVICE);
    contexts[device].flags = flags;
    return leave(0);
}
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    BEGIN(0);
    CHECK(device >= 0 && device < count, INVALID_DEVICE);
    *flags = contexts[device].flags, *active = contexts[device].retained > 0;
    return leave(0);
}
int cuDevicePrimaryCtxRetain(context **found, int device) {
    BEGIN(0);
    CHECK(device >= 0 && device < count, INVALID_DEVICE);
    contexts[device].device = device, contexts[device].retained++;
    *found = &contexts[device];
    return leave(0);
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    BEGIN(0);
    CHECK(device >= 0 && device < count && contexts[device].retained, INVALID_CONTEXT);
    contexts[device].retained--;
    return leave(0);
}
int cuCtxDetach(context *left) { /* PyCUDA, at the end of the process */
    BEGIN(0);
    CHECK(left >= contexts && left < contexts + CARDS, INVALID_CONTEXT);
    return leave(0);
}
int cuCtxPushCurrent_v2(context *pushed) {
    BEGIN(0);
    CHECK(pushed >= contexts && pushed < contexts + CARDS && pushed->retained, INVALID_CONTEXT);
    CHECK(depth < DEEP, INVALID_CONTEXT);
    stack[depth++] = pushed;
    return leave(0);
}
int cuCtxPopCurrent_v2(context **popped) {
    BEGIN(0);
    CHECK(depth, INVALID_CONTEXT);
    depth--;
    if (popped) *popped = stack[depth];
    return leave(0);
}
int cuCtxGetCurrent(context **found) { BEGIN(0); *found = current(); return leave(0); }
int cuCtxGetDevice(int *device) { BEGIN(1); *device = current()->device; return leave(0); }
int cuStreamCreate(stream **made, unsigned flags) {
    BEGIN(1);
    stream *one = calloc(1, sizeof *one);
    one->owner = current(), one->flags = flags, one->next = streams;
    if (!flags) note("! a stream that waits for the legacy stream");
    *made = streams = one;
    return leave(0);
}
int cuStreamSynchronize(stream *waited) {
    BEGIN(1);
    CHECK(exists(waited), INVALID_HANDLE);
    for (copy *each; (each = waited->first); free(each)) {
        memcpy(each->to, each->from, each->size);
        waited->first = each->next;
    }
    return leave(0);
}
int cuStreamDestroy_v2(stream *ended) {
    BEGIN(1);
    CHECK(exists(ended), INVALID_HANDLE);
    if (ended->first) note("! a stream is destroyed that has work");
    stream **link = &streams;
    while (*link != ended) link = &(*link)->next;
    *link = ended->next;
    free(ended);
    return leave(0);
}
int cuMemAlloc_v2(char **address, size_t size) {
    BEGIN(1);
    CHECK(size, INVALID_VALUE);
    size_t used = 0;
    for (block *each = blocks; each; each = each->next) used += each->owner ? each->size : 0;
    if (used + size > room) return leave(OUT_OF_MEMORY);
    *address = add(size, current())->address;
    return leave(0);
}
int cuMemFree_v2(char *address) {
    BEGIN(1);
    block *held = holds(address, 1, current());
    CHECK(held && held->address == address, INVALID_VALUE);
    if (pending(held)) note("! memory is given back before it was copied");
    drop(held);
    return leave(0);
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) {
    BEGIN(1);
    CHECK(size, INVALID_VALUE);
    if (!(flags & 1)) note("! pinned memory is for one context only");
    *address = add(size, NULL)->address;
    return leave(0);
}
int cuMemFreeHost(void *address) {
    BEGIN(1);
    block *held = holds(address, 1, NULL);
    CHECK(held && held->address == address, INVALID_VALUE);
    if (pending(held)) note("! memory is given back before it was copied");
    drop(held);
    return leave(0);
}
static int enqueue(char *device, char *host, size_t size, stream *on, int up) {
    block *there = holds(device, size, current());
    CHECK(there, INVALID_VALUE);
    CHECK(exists(on), INVALID_HANDLE);
    if (!holds(host, size, NULL)) note("! a copy of memory that is not pinned");
    copy *one = calloc(1, sizeof *one), **last = &on->first;
    char *shadow = there->shadow + (device - there->address);
    one->to = up ? shadow : host, one->from = up ? host : shadow, one->size = size;
    while (*last) last = &(*last)->next;
    *last = one;
    note("%s %zu", up ? "up" : "down", size);
    return leave(0);
}
int cuMemcpyHtoDAsync_v2(char *to, void *from, size_t size, stream *on) {
    BEGIN(1);
    return enqueue(to, from, size, on, 1);
}
int cuMemcpyDtoHAsync_v2(void *to, char *from, size_t size, stream *on) {
    BEGIN(1);
    return enqueue(from, to, size, on, 0);
}
/* Every kernel is one that ends badly: the context is broken from then on. */
int cuModuleLoadData(void **module, const void *image) {
    BEGIN(1)
    CHECK(module && image && strstr(image, ".entry"), INVALID_VALUE);
    *module = (void *)image;
    return leave(0);
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    BEGIN(1)
    CHECK(function && module && name && strstr(module, name), INVALID_VALUE);
    *function = module;
    return leave(0);
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned wide, unsigned high,
                   unsigned deep, unsigned shared, stream *on, void **arguments, void **more) {
    BEGIN(1)
    CHECK(function && x && y && z && wide && high && deep, INVALID_VALUE);
    (void)shared, (void)on, (void)arguments, (void)more;
    broken = 719;
    return leave(0);
}
int cuCtxSynchronize(void) { BEGIN(1) return leave(0); }
int cuGetErrorString(int code, const char **text) {
    static const struct { int code; const char *text; } known[] = {
        {1, "invalid argument"}, {2, "out of memory"}, {201, "invalid device context"},
        {700, "an illegal memory access was encountered"}, {718, "invalid program counter"},
        {719, "unspecified launch failure"}, {721, "tensor memory not completely freed"},
        {999, "unknown error"}};
    static char other[1000][24];
    *text = NULL;
    if (code < 0 || code > 999) return INVALID_VALUE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) *text = known[i].text;
    if (!*text) sprintf(other[code], "the text of %d", code), *text = other[code];
    return 0;
}

int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
#define F(name) {#name, (void *)name}
#define V(name) {#name, (void *)name##_v2}
static const struct { const char *name; void *call; } calls[] = {
    F(cuInit), F(cuDriverGetVersion), F(cuDeviceGetCount), F(cuDeviceGet), V(cuDeviceGetUuid),
    V(cuDevicePrimaryCtxSetFlags), F(cuDevicePrimaryCtxGetState), F(cuDevicePrimaryCtxRetain),
    V(cuDevicePrimaryCtxRelease), V(cuCtxPushCurrent), V(cuCtxPopCurrent), F(cuCtxGetCurrent),
    F(cuCtxGetDevice), F(cuStreamCreate), F(cuStreamSynchronize), V(cuStreamDestroy), V(cuMemAlloc),
    V(cuMemFree), F(cuMemHostAlloc), F(cuMemFreeHost), V(cuMemcpyHtoDAsync), V(cuMemcpyDtoHAsync),
    F(cuGetErrorString), V(cuGetProcAddress)};

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    *found = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name)) *found = calls[i].call;
    if (status) *status = *found ? 0 : 1;
    return *found ? 0 : NOT_FOUND;
}

/* What tests call. */
void standin_fail(const char *name, int number, int code, int forever) {
    fault *made = calloc(1, sizeof *made);
    snprintf(made->name, sizeof made->name, "%s", name);
    made->number = number, made->code = code, made->forever = forever, made->next = faults;
    faults = made;
}
void standin_mend(void) { faults = NULL, broken = 0; }
void standin_room(size_t bytes) { room = bytes; }
const char *standin_log(void) { return lines ? lines : ""; }
void standin_held(size_t found[4]) { /* device and host blocks, streams, retained contexts */
    memset(found, 0, 4 * sizeof *found);
    for (block *each = blocks; each; each = each->next) found[each->owner ? 0 : 1]++;
    for (stream *each = streams; each; each = each->next) found[2]++;
    for (int i = 0; i < CARDS; i++) found[3] += (size_t)contexts[i].retained;
}
unsigned standin_flags(int device) { return contexts[device].flags; }

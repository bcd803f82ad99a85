/* NVML for the cards of cuda.c: what they are, in the order of the bus, whatever CUDA shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
typedef struct { int number, slice; } card;
static card cards[8], part = {0, 1};

static int amount(void) { return getenv("STANDIN_CARDS") ? atoi(getenv("STANDIN_CARDS")) : 1; }
static void uuid(const card *one, char *text) {
    sprintf(text, "%s-%02x010203-0405-0607-0809-0a0b0c0d0e0f", one->slice ? "MIG" : "GPU",
            (one->slice ? 0xb0 : 0xa0) + one->number);
}
int nvmlInit_v2(void) {
    for (int i = 0; i < 8; i++) cards[i].number = i;
    return 0;
}
int nvmlInitWithFlags(unsigned flags) { return flags ? INVALID_ARGUMENT : nvmlInit_v2(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == NOT_FOUND ? "Not Found" : "Not Supported"; }
int nvmlSystemGetDriverVersion(char *text, unsigned room) {
    return snprintf(text, room, "580.65.06") < 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) { return *version = 13000, 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = (unsigned)amount(), 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, card **found) {
    return index < (unsigned)amount() ? (*found = &cards[index], 0) : INVALID_ARGUMENT;
}
int nvmlDeviceGetHandleByUUID(const char *text, card **found) {
    char own[80];
    for (int i = 0; i <= amount(); i++) {
        card *one = i < amount() ? &cards[i] : &part;
        uuid(one, own);
        if (!strcmp(own, text) && (!one->slice || getenv("STANDIN_MIG"))) return *found = one, 0;
    }
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(const card *one, char *text, unsigned room) {
    return room < 80 ? INVALID_ARGUMENT : (uuid(one, text), 0);
}
int nvmlDeviceGetName(const card *one, char *text, unsigned room) {
    return snprintf(text, room, "Stand-in%s", one->slice ? " MIG 1g.10gb" : "") < 0;
}
int nvmlDeviceGetCudaComputeCapability(const card *one, int *major, int *minor) {
    return one->slice ? NOT_SUPPORTED : (*major = 8, *minor = 9, 0);
}
int nvmlDeviceGetMigMode(const card *one, unsigned *now, unsigned *later) {
    return *now = *later = one->number == 0 && getenv("STANDIN_MIG"), 0;
}
int nvmlDeviceGetMaxMigDeviceCount(const card *one, unsigned *count) {
    return *count = one->number == 0 ? 7 : 0, 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(const card *one, unsigned index, card **found) {
    return one->number || index ? NOT_FOUND : (*found = &part, 0);
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const card *one, card **found) {
    return *found = &cards[one->number], 0;
}

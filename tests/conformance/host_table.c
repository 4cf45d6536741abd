/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "tests/conformance/host_table.h"

/* Before each block: where it really starts, and proof that it is ours. */
typedef struct block {
    void *base;
    uint64_t mark;
} block;

#define BLOCK_MARK 0x43454C4C47415445u
#define BLOCK_FREED 0x4652454544424C4Bu

static void *allocate(void *context, size_t alignment, size_t size)
{
    host_table *host = context;
    size_t extra = sizeof(block) + alignment;
    char *base, *data;

    if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
        size > SIZE_MAX - extra)
        return NULL;
    if (alignment < sizeof(block))
        alignment = sizeof(block);
    base = malloc(sizeof(block) + alignment + size);
    if (base == NULL)
        return NULL;
    data = base + sizeof(block);
    data += (alignment - (uintptr_t)data % alignment) % alignment;
    ((block *)(void *)data)[-1] = (block){ base, BLOCK_MARK };
    /* Contents are undefined: make a plugin that relies on zeros fail. */
    memset(data, 0xFB, size);
    (void)__atomic_add_fetch(&host->outstanding, 1, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&host->allocations, 1, __ATOMIC_RELAXED);
    return data;
}

static void release(void *context, void *memory)
{
    host_table *host = context;
    block *header;

    if (memory == NULL)
        return;
    header = (block *)memory - 1;
    if (header->mark != BLOCK_MARK) {
        (void)__atomic_add_fetch(&host->misuses, 1, __ATOMIC_RELAXED);
        return;
    }
    header->mark = BLOCK_FREED;
    (void)__atomic_sub_fetch(&host->outstanding, 1, __ATOMIC_RELAXED);
    free(header->base);
}

static void log_line(void *context, int32_t level, const char *text)
{
    static const char *const names[] = { "error", "warning", "info", "debug" };
    const host_table *host = context;

    if (level <= CELLGATE_LOG_WARNING || host->verbose)
        (void)fprintf(stderr, "plugin %s: %s\n",
                      level >= 0 && level <= 3 ? names[level] : "?", text);
}

static const char *setting(void *context, const cellgate_settings *settings,
                           const char *key)
{
    const host_table *host = context;

    for (size_t k = 0; k < host->key_count; k++) {
        if (strcmp(host->keys[k].name, key) != 0)
            continue;
        for (size_t i = 0; settings != NULL && i < settings->count; i++)
            if (strcmp(settings->list[i].key, key) == 0)
                return settings->list[i].value;
        return host->keys[k].default_text;
    }
    return NULL;
}

static uint32_t thread_budget(void *context, const char *resource)
{
    (void)resource;
    return ((const host_table *)context)->threads;
}

static int32_t excludes(void *context, const cellgate_settings *settings,
                        const char *variant)
{
    (void)context;
    (void)settings;
    (void)variant;
    return 0;
}

static uint64_t clock_now(void *context)
{
    struct timespec now;

    (void)context;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void host_table_init(host_table *host, uint32_t threads, int verbose)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    memset(host, 0, sizeof *host);
    host->table = (cellgate_host){ .struct_size = sizeof host->table,
                                   .context = host,
                                   .log = log_line,
                                   .allocate = allocate,
                                   .release = release,
                                   .setting = setting,
                                   .thread_budget = thread_budget,
                                   .clock = clock_now,
                                   .excludes = excludes };
    host->threads = threads > 0 ? threads : online > 0 ? (uint32_t)online : 1;
    host->verbose = verbose;
}

int64_t host_outstanding(host_table *host)
{
    return __atomic_load_n(&host->outstanding, __ATOMIC_RELAXED);
}

uint64_t host_allocations(host_table *host)
{
    return __atomic_load_n(&host->allocations, __ATOMIC_RELAXED);
}

uint64_t host_misuses(host_table *host)
{
    return __atomic_load_n(&host->misuses, __ATOMIC_RELAXED);
}

/* ---- Canonical forms of settings ---------------------------------------- */

static int canonical_boolean(const char *text, char *to, size_t size)
{
    static const char *const yes[] = { "yes", "true", "on", "1" };
    static const char *const no[] = { "no", "false", "off", "0" };

    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) == 0)
            return snprintf(to, size, "yes") > 0;
        if (strcasecmp(text, no[i]) == 0)
            return snprintf(to, size, "no") > 0;
    }
    return 0;
}

static int within(const cellgate_key *key, int64_t value)
{
    return (key->minimum == 0 && key->maximum == 0) ||
           (value >= key->minimum && value <= key->maximum);
}

static int canonical_number(const cellgate_key *key, const char *text, char *to,
                            size_t size)
{
    static const char units[] = "KMGT";
    const char *unit;
    char *end;
    int64_t value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text)
        return 0;
    if (key->type == CELLGATE_KEY_SIZE && *end != '\0' && end[1] == '\0' &&
        (unit = strchr(units, *end)) != NULL) {
        int shift = 10 * (int)(unit - units + 1);
        if (value < 0 || value > INT64_MAX >> shift)
            return 0;
        value *= (int64_t)1 << shift;
        end++;
    }
    return *end == '\0' && within(key, value) &&
           snprintf(to, size, "%" PRId64, value) > 0;
}

static int canonical_seconds(const char *text, char *to, size_t size)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = { { "", 1 },  { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 },
                  { "s", 1 }, { "min", 60 },  { "h", 3600 } };
    char *end;
    double value = strtod(text, &end);

    if (end == text || !(value >= 0))
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].name) == 0)
            return snprintf(to, size, "%.17g", value * units[i].seconds) > 0;
    return 0;
}

/* Whether text is one of "a|b|c". */
static int is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);

    for (const char *at = choices; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, "|");
        if (n == length && strncmp(at, text, n) == 0)
            return 1;
        at += n + (at[n] == '|');
    }
    return 0;
}

int host_canonical(const cellgate_key *key, const char *text, char *canonical,
                   size_t size)
{
    switch (key->type) {
    case CELLGATE_KEY_BOOLEAN:
        return canonical_boolean(text, canonical, size);
    case CELLGATE_KEY_INTEGER:
    case CELLGATE_KEY_SIZE:
        return canonical_number(key, text, canonical, size);
    case CELLGATE_KEY_SECONDS:
        return canonical_seconds(text, canonical, size);
    case CELLGATE_KEY_CHOICE:
        if (!is_choice(key->choices, text))
            return 0;
        break;
    default:
        break;
    }
    return snprintf(canonical, size, "%s", text) < (int)size;
}

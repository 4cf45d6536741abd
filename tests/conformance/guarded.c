/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/conformance/guarded.h"

/* Elements before and after the data. Odd, so that the data of a block from
 * malloc(), aligned to 16, is aligned to 4. */
#define MARGIN 65

static int map_pages(guarded *g, size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (count + MARGIN) * sizeof(uint32_t);
    char *base;

    bytes = (bytes + page - 1) / page * page;
    base = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return -1;
    g->mapping = base;
    g->mapped = bytes + page;
    if (mprotect(base + bytes, page, PROT_NONE) != 0)
        return -1;
    g->total = count + MARGIN;
    g->start = (uint32_t *)(void *)(base + bytes) - g->total;
    return 0;
}

int guarded_init(guarded *g, size_t count, guard_kind kind)
{
    memset(g, 0, sizeof *g);
    g->count = count;
    if (kind == GUARD_PAGE) {
        if (map_pages(g, count) != 0) {
            guarded_finish(g);
            return -1;
        }
    } else {
        g->total = count + 2 * MARGIN;
        g->start = malloc(g->total * sizeof(uint32_t));
        if (g->start == NULL)
            return -1;
    }
    g->data = g->start + MARGIN;
    guarded_reset(g);
    return 0;
}

void guarded_finish(guarded *g)
{
    if (g->mapping != NULL)
        (void)munmap(g->mapping, g->mapped);
    else
        free(g->start);
    free(g->before);
    memset(g, 0, sizeof *g);
}

void guarded_fill(guarded *g, uint32_t bits)
{
    for (size_t i = 0; i < g->total; i++)
        g->start[i] = bits;
}

void guarded_reset(guarded *g)
{
    guarded_fill(g, GUARD_PATTERN);
}

int guarded_seal(guarded *g)
{
    free(g->before);
    g->before = malloc((g->total > 0 ? g->total : 1) * sizeof(uint32_t));
    if (g->before == NULL)
        return -1;
    if (g->total > 0)
        memcpy(g->before, g->start, g->total * sizeof(uint32_t));
    return 0;
}

int guarded_is_sealed(const guarded *g)
{
    return g->total == 0 ||
           memcmp(g->before, g->start, g->total * sizeof(uint32_t)) == 0;
}

int guarded_is_blank(const guarded *g)
{
    for (size_t i = 0; i < g->total; i++)
        if (g->start[i] != GUARD_PATTERN)
            return 0;
    return 1;
}

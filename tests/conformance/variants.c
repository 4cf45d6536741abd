/* SPDX-License-Identifier: Apache-2.0 */
/* --variants: what a device has for the cases, in the order of its lists. */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

/* One name; `refusal` is empty once it was offered for a case. */
typedef struct listed {
    char name[sizeof((cellgate_variant *)NULL)->name];
    char refusal[sizeof((cellgate_variant *)NULL)->refusal];
} listed;

struct variant_list {
    size_t count;
    listed of[];
};

static listed *find(struct variant_list *list, const char *name)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (strcmp(list->of[i].name, name) == 0)
            return &list->of[i];
    return NULL;
}

static void note(suite *s, const cellgate_variant *variant)
{
    listed *known = find(s->variants, variant->name);
    size_t count = s->variants != NULL ? s->variants->count : 0;
    struct variant_list *grown;

    if (known != NULL) {
        if (variant->refusal[0] == '\0')
            known->refusal[0] = '\0';
        return;
    }
    grown =
        realloc(s->variants, sizeof *grown + (count + 1) * sizeof grown->of[0]);
    if (grown == NULL) {
        (void)fprintf(stderr, "cellgate conform: no memory\n");
        exit(SUITE_NO_MEMORY);
    }
    memcpy(grown->of[count].name, variant->name, sizeof variant->name);
    memcpy(grown->of[count].refusal, variant->refusal, sizeof variant->refusal);
    grown->count = count + 1;
    s->variants = grown;
}

void variants_note(suite *s, const test_case *c)
{
    cellgate_shape shape = { sizeof shape, c->batch, c->steps };
    char description[1000];
    case_data data;

    if (s->device == NULL || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    crash_context(description, "(support)");
    for (uint32_t i = 0; i < SUITE_MAX_VARIANTS; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_variant v = { .struct_size = sizeof v };

        if (s->plugin.table.support(s->device, &data.structure, &shape, i, &v,
                                    &error) != CELLGATE_OK)
            break;
        v.name[sizeof v.name - 1] = '\0';
        v.refusal[sizeof v.refusal - 1] = '\0';
        note(s, &v);
    }
    case_data_finish(&data);
}

void variants_print(suite *s)
{
    for (size_t i = 0; s->variants != NULL && i < s->variants->count; i++) {
        const listed *of = &s->variants->of[i];

        printf("  %s%s%s\n", of->name,
               of->refusal[0] != '\0' ? ": refused: " : "", of->refusal);
    }
    free(s->variants);
    s->variants = NULL;
}

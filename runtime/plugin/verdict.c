/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/verdict.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at `at`, or 0: not one, or a control. */
static size_t character(const unsigned char *at)
{
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    uint32_t code;
    size_t i;

    if (size == 1)
        return at[0] >= 0x20 && at[0] != 0x7F;
    if (at[0] < 0xC2 || at[0] > 0xF4)
        return 0;
    code = at[0] & (0x7Fu >> size);
    for (i = 1; i < size; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3F);
    }
    if ((size == 2 && code < 0xA0) || (size == 3 && code < 0x800) ||
        (size == 4 && (code < 0x10000 || code > 0x10FFFF)) ||
        (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    return size;
}

char *cg_verdict_clean(const char *text)
{
    size_t length = strnlen(text, CG_VERDICT_TEXT_MAX);
    char *clean = calloc(length + 1, 1);
    size_t from = 0;

    if (clean == NULL)
        return NULL;
    while (from < length) {
        size_t size = character((const unsigned char *)text + from);
        if (size == 0 || size > length - from) {
            clean[from] = text[from] == '\n' || text[from] == '\t' ? ' ' : '?';
            from++;
        } else {
            memcpy(clean + from, text + from, size);
            from += size;
        }
    }
    return clean;
}

bool cg_verdict_text(char **text, const char *from)
{
    char *clean = cg_verdict_clean(from != NULL ? from : "");

    if (clean == NULL)
        return false;
    free(*text);
    *text = clean;
    return true;
}

cg_verdict *cg_verdict_create(void)
{
    cg_verdict *verdict = calloc(1, sizeof *verdict);

    if (verdict == NULL)
        return NULL;
    verdict->status = CELLGATE_INTERNAL;
    if (!cg_verdict_text(&verdict->reason, "") ||
        !cg_verdict_text(&verdict->name, "") ||
        !cg_verdict_text(&verdict->version, "") ||
        !cg_verdict_text(&verdict->build, "")) {
        cg_verdict_destroy(verdict);
        return NULL;
    }
    return verdict;
}

static void free_keys(cellgate_key *keys, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        free((char *)keys[i].name);
        free((char *)keys[i].default_text);
        free((char *)keys[i].choices);
        free((char *)keys[i].help);
    }
    free(keys);
}

static void free_texts(char **texts, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void cg_verdict_destroy(cg_verdict *verdict)
{
    if (verdict == NULL)
        return;
    free(verdict->reason);
    free(verdict->name);
    free(verdict->version);
    free(verdict->build);
    free_keys(verdict->keys, verdict->key_count);
    free_texts(verdict->watched, verdict->watched_count);
    free_texts(verdict->variants, verdict->variant_count);
    free(verdict->devices);
    free(verdict);
}

void cg_verdict_set(cg_verdict *verdict, cellgate_status status,
                    const char *format, ...)
{
    char text[CG_VERDICT_TEXT_MAX];
    va_list arguments;

    verdict->status = status;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)cg_verdict_text(&verdict->reason, text);
}

static bool copy_key(cellgate_key *to, const cellgate_key *from)
{
    memset(to, 0, sizeof *to);
    to->struct_size = sizeof *to;
    to->type = from->type;
    to->minimum = from->minimum;
    to->maximum = from->maximum;
    return cg_verdict_text((char **)&to->name, from->name) &&
           cg_verdict_text((char **)&to->default_text, from->default_text) &&
           (from->choices == NULL ||
            cg_verdict_text((char **)&to->choices, from->choices)) &&
           cg_verdict_text((char **)&to->help, from->help);
}

static bool copy_keys(cg_verdict *verdict, const cellgate_plugin *table)
{
    size_t i;

    if (table->key_count == 0)
        return true;
    verdict->keys = calloc(table->key_count, sizeof *verdict->keys);
    if (verdict->keys == NULL)
        return false;
    verdict->key_count = table->key_count;
    for (i = 0; i < table->key_count; i++)
        if (!copy_key(&verdict->keys[i], &table->keys[i]))
            return false;
    return true;
}

/* A list that ends with NULL, or of which `most` are taken. */
static bool copy_texts(char ***texts, size_t *text_count,
                       const char *const *from, size_t most)
{
    size_t count = 0;

    while (from != NULL && from[count] != NULL && count < most)
        count++;
    if (count == 0)
        return true;
    *texts = calloc(count, sizeof **texts);
    if (*texts == NULL)
        return false;
    for (; *text_count < count; ++*text_count)
        if (!cg_verdict_text(&(*texts)[*text_count], from[*text_count]))
            return false;
    return true;
}

bool cg_verdict_identify(cg_verdict *verdict, const cellgate_plugin *table)
{
    verdict->abi = table->abi_version;
    return cg_verdict_text(&verdict->name, table->name) &&
           cg_verdict_text(&verdict->version, table->version) &&
           cg_verdict_text(&verdict->build, table->build) &&
           copy_keys(verdict, table) &&
           copy_texts(&verdict->watched, &verdict->watched_count,
                      table->watched, CG_VERDICT_WATCHED_MAX) &&
           copy_texts(&verdict->variants, &verdict->variant_count,
                      table->variants, CG_VERDICT_VARIANTS_MAX);
}

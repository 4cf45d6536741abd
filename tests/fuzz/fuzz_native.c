/* SPDX-License-Identifier: Apache-2.0 */
/* The native file: the safetensors container, and the graph in its metadata. */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/model_use.h"
#include "tests/fuzz/target.h"

const char fuzz_target[] = "native";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_load_model(memory_file(data, size));
    return 0;
}

/* Longer than any that a mutation makes. */
#define TEXT_ROOM (1u << 16)

/* A new header with a changed graph in it; NULL if it has none. */
static char *change_graph(const uint8_t *header, size_t size)
{
    json_t *json = json_loadb((const char *)header, size, 0, NULL);
    json_t *metadata = json_object_get(json, "__metadata__");
    const char *graph = json_string_value(json_object_get(metadata, "graph"));
    size_t length = graph != NULL ? strlen(graph) : 0;
    char *text = malloc(TEXT_ROOM), *changed = NULL;

    FUZZ_REQUIRE(text != NULL);
    if (length > 0 && length < TEXT_ROOM) {
        memcpy(text, graph, length);
        length = LLVMFuzzerMutate((uint8_t *)text, length, TEXT_ROOM);
        /* Fails for what is no UTF-8 any more. */
        if (json_object_set_new(metadata, "graph",
                                json_stringn(text, length)) == 0)
            changed = json_dumps(json, JSON_COMPACT);
    }
    free(text);
    json_decref(json);
    return changed;
}

/* Puts another header before the same tensors; the new size, or 0. */
static size_t replace_header(uint8_t *data, size_t size, size_t room,
                             const char *header, size_t old)
{
    const uint64_t length = strlen(header);

    if (length + size - old > room)
        return 0;
    memmove(data + 8 + length, data + 8 + old, size - 8 - old);
    memcpy(data, &length, sizeof length);
    memcpy(data + 8, header, length);
    return size - old + length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed)
{
    uint64_t length = 0;
    char *header = NULL;
    size_t made = 0;

    if (size > 8)
        memcpy(&length, data, sizeof length);
    if (size > 8 && length <= size - 8 && length < TEXT_ROOM / 2 &&
        seed % 8 != 7) {
        if (seed % 8 < 5) {
            header = change_graph(data + 8, (size_t)length);
        } else if ((header = calloc(1, TEXT_ROOM + 1)) != NULL) {
            memcpy(header, data + 8, (size_t)length);
            (void)LLVMFuzzerMutate((uint8_t *)header, (size_t)length,
                                   TEXT_ROOM);
        }
    }
    if (header != NULL)
        made = replace_header(data, size, room, header, (size_t)length);
    free(header);
    return made != 0 ? made : LLVMFuzzerMutate(data, size, room);
}

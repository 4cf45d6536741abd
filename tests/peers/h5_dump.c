/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says what the reader of HDF5 files makes of them, for a script that knows
 * what is in them. Commands come on standard input, one a line, parts separated
 * by tabs:
 *
 *   open FILE        members PATH        shape PATH
 *   data PATH        texts PATH NAME
 *
 * Each is answered by a line "STATUS COUNT TEXT"; after it come, for "members"
 * and "texts", COUNT texts, each "LENGTH\n" and its bytes; for "shape", COUNT
 * extents a line; for "data", COUNT float32 numbers, little-endian.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/formats/h5.h"

typedef struct dump_state {
    unsigned char *image;
    cg_h5 *h5;
    cellgate_error error;
} dump_state;

static void answer(const dump_state *state, cellgate_status status,
                   size_t count)
{
    printf("%s %zu %s\n", cellgate_status_name(status), count,
           status == CELLGATE_OK ? "" : state->error.text);
}

static void answer_texts(const dump_state *state, cellgate_status status,
                         const cg_h5_strings *texts)
{
    answer(state, status, status == CELLGATE_OK ? texts->count : 0);
    for (size_t i = 0; status == CELLGATE_OK && i < texts->count; i++)
        printf("%zu\n%s", strlen(texts->items[i]), texts->items[i]);
}

static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    long length;

    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0) {
        *size = (size_t)length;
        bytes = malloc(*size + 1);
        rewind(file);
        if (bytes != NULL && fread(bytes, 1, *size, file) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}

static void open_file(dump_state *state, const char *path)
{
    size_t size = 0;
    cellgate_status status;

    cg_h5_close(state->h5);
    free(state->image);
    state->h5 = NULL;
    state->image = read_file(path, &size);
    if (state->image == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    status =
        cg_h5_open(state->image, size, "the file", &state->h5, &state->error);
    answer(state, status, 0);
}

static void show_shape(dump_state *state, const char *path)
{
    cg_h5_extents shape;
    const cellgate_status status =
        cg_h5_shape(state->h5, path, &shape, &state->error);

    answer(state, status, status == CELLGATE_OK ? (size_t)shape.rank : 0);
    for (int32_t axis = 0; status == CELLGATE_OK && axis < shape.rank; axis++)
        printf("%lld\n", (long long)shape.extents[axis]);
}

static void show_data(dump_state *state, const char *path)
{
    cg_h5_extents shape;
    size_t count = 1;
    float *data = NULL;
    cellgate_status status =
        cg_h5_shape(state->h5, path, &shape, &state->error);

    if (status == CELLGATE_OK)
        status = cg_h5_check(state->h5, path, shape.rank, shape.extents,
                             &state->error);
    for (int32_t axis = 0; status == CELLGATE_OK && axis < shape.rank; axis++)
        count *= (size_t)shape.extents[axis];
    if (status == CELLGATE_OK && (data = malloc(4 * count + 1)) == NULL)
        exit(1);
    if (status == CELLGATE_OK)
        status = cg_h5_read(state->h5, path, count, data, &state->error);
    answer(state, status, status == CELLGATE_OK ? count : 0);
    if (status == CELLGATE_OK)
        fwrite(data, sizeof *data, count, stdout);
    free(data);
}

static void obey(dump_state *state, const char *verb, const char *path,
                 const char *name)
{
    cg_h5_strings texts;

    state->error.text[0] = '\0';
    if (strcmp(verb, "open") == 0)
        open_file(state, path);
    else if (state->h5 == NULL)
        puts("INVALID 0 no file is open");
    else if (strcmp(verb, "members") == 0)
        answer_texts(state,
                     cg_h5_members(state->h5, path, &texts, &state->error),
                     &texts);
    else if (strcmp(verb, "texts") == 0)
        answer_texts(state,
                     cg_h5_texts(state->h5, path, name, &texts, &state->error),
                     &texts);
    else if (strcmp(verb, "shape") == 0)
        show_shape(state, path);
    else if (strcmp(verb, "data") == 0)
        show_data(state, path);
    else
        puts("INVALID 0 no such command");
}

int main(void)
{
    dump_state state = { .error = CELLGATE_ERROR_INIT };
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        char *rest = line;
        const char *parts[3] = { "", "", "" };

        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < 3 && rest != NULL; i++)
            parts[i] = strsep(&rest, "\t");
        obey(&state, parts[0], parts[1], parts[2]);
        fflush(stdout);
    }
    cg_h5_close(state.h5);
    free(state.image);
    free(line);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/h5_questions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/scratch_folder.h"

/* ---- The list ------------------------------------------------------------ */

static void split(char *line, h5_question *question)
{
    char *rest = line;

    question->file = strsep(&rest, "\t");
    question->kind = strsep(&rest, "\t");
    question->path = strsep(&rest, "\t");
    assert_non_null(question->path);
    while (rest != NULL) {
        assert_in_range(question->count, 0, H5_MAX_PARTS - 1);
        question->parts[question->count++] = strsep(&rest, "\t");
    }
}

h5_questions h5_questions_read(void)
{
    h5_questions questions = { 0 };
    size_t size, lines = 0;
    char *rest;

    questions.text =
        (char *)read_whole_file(CELLGATE_FIXTURES "/h5/EXPECTED", &size);
    assert_true(size > 0 && questions.text[size - 1] == '\n');
    questions.text[size - 1] = '\0';
    for (size_t i = 0; i < size; i++)
        lines += questions.text[i] == '\n' || questions.text[i] == '\0';
    questions.items = calloc(lines, sizeof *questions.items);
    assert_non_null(questions.items);
    for (rest = questions.text; rest != NULL;)
        split(strsep(&rest, "\n"), &questions.items[questions.count++]);
    return questions;
}

void h5_questions_finish(h5_questions *questions)
{
    free(questions->items);
    free(questions->text);
}

unsigned char *h5_fixture(const char *name, size_t *size)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/h5/%s.h5", CELLGATE_FIXTURES, name);
    return read_whole_file(path, size);
}

cg_h5_extents h5_question_shape(const h5_question *question)
{
    cg_h5_extents shape = { 0 };
    const char *at = question->parts[0];

    assert_true(question->count > 0);
    while (*at >= '0' && *at <= '9') {
        char *end;

        shape.extents[shape.rank++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return shape;
}

/* ---- Answers ------------------------------------------------------------- */

static cellgate_status read_data(cg_h5 *h5, const h5_question *question,
                                 bool right, cellgate_error *error)
{
    const cg_h5_extents shape = h5_question_shape(question);
    size_t elements = 1;
    float *data;
    cellgate_status status =
        cg_h5_check(h5, question->path, shape.rank, shape.extents, error);

    if (status != CELLGATE_OK)
        return status;
    for (int32_t axis = 0; axis < shape.rank; axis++)
        elements *= (size_t)shape.extents[axis];
    data = malloc(elements * sizeof *data + 1);
    assert_non_null(data);
    status = cg_h5_read(h5, question->path, elements, data, error);
    for (size_t i = 0; status == CELLGATE_OK && right && i < elements; i++)
        if (data[i] != ((float)(i % 13) - 6) / 4)
            fail_msg("%s: '%s': element %zu is %g", question->file,
                     question->path, i, (double)data[i]);
    free(data);
    return status;
}

/* "*3*ab" stands for "ababab". */
static bool is_text(const char *text, const char *expected)
{
    char *unit;
    unsigned long times;

    if (expected[0] != '*')
        return strcmp(text, expected) == 0;
    times = strtoul(expected + 1, &unit, 10);
    unit++;
    for (; times > 0; times--, text += strlen(unit))
        if (strncmp(text, unit, strlen(unit)) != 0)
            return false;
    return *text == '\0';
}

static void compare(const h5_question *question, size_t first,
                    const cg_h5_strings *texts)
{
    if (texts->count != question->count - first)
        fail_msg("%s: '%s' has %zu texts", question->file, question->path,
                 texts->count);
    for (size_t i = 0; i < texts->count; i++)
        if (!is_text(texts->items[i], question->parts[first + i]))
            fail_msg("%s: '%s': '%s', not '%s'", question->file, question->path,
                     texts->items[i], question->parts[first + i]);
}

static cellgate_status read_texts(cg_h5 *h5, const h5_question *question,
                                  bool right, cellgate_error *error)
{
    const size_t first = strcmp(question->kind, "texts") == 0;
    cg_h5_strings texts;
    const cellgate_status status =
        first != 0
            ? cg_h5_texts(h5, question->path, question->parts[0], &texts, error)
            : cg_h5_members(h5, question->path, &texts, error);

    if (status == CELLGATE_OK && right)
        compare(question, first, &texts);
    for (size_t i = 0; status == CELLGATE_OK && i < texts.count; i++)
        assert_true(strlen(texts.items[i]) < (size_t)-1);
    return status;
}

cellgate_status h5_question_ask(cg_h5 *h5, const h5_question *question,
                                bool right, cellgate_error *error)
{
    if (strcmp(question->kind, "data") == 0 ||
        strcmp(question->kind, "refused") == 0)
        return read_data(h5, question, right, error);
    if (strcmp(question->kind, "absent") == 0)
        return cg_h5_has(h5, question->path) ? CELLGATE_OK : CELLGATE_NOT_FOUND;
    return read_texts(h5, question, right, error);
}
